//! Queues from MIDI ports to the audio thread.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ondes_engine::sync::lock;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::block_clock::BlockClock;
use super::midi_message::MidiMessage;

/// Largest number of connected ports.
const MAX_PORTS: usize = 32;

/// Capacity of a port's queue: a second of a saturated MIDI cable.
const PORT_CAPACITY: usize = 1024;

/// The audio thread's end: all ports merged in order of time.
pub struct MidiReceiver {
    receivers: Vec<HeapCons<MidiMessage>>,
    clock: BlockClock,
    queues: Arc<PortQueues>,
}

impl MidiReceiver {
    /// Passes the messages of a block to `play`, in order, each with its frame in 0 … `frames` − 1.
    /// Call it once at the start of each block. Messages are delayed by the length of the largest
    /// block.
    pub fn receive(&mut self, frames: usize, play: impl FnMut(usize, &MidiMessage)) {
        self.receive_at(Instant::now(), frames, play);
    }

    fn receive_at(
        &mut self,
        now: Instant,
        frames: usize,
        mut play: impl FnMut(usize, &MidiMessage),
    ) {
        let start = self.clock.begin(now, frames);
        let mut last = 0;
        // Bounded, so that a flood of messages cannot hold up the sound.
        for _ in 0..MAX_PORTS * PORT_CAPACITY {
            let heads = self
                .receivers
                .iter_mut()
                .filter_map(|sender| Some((sender.try_peek()?.at, sender)));
            let Some((at, sender)) = heads.min_by_key(|(at, _)| *at) else {
                return;
            };
            let Some(frame) = self.clock.frame(at, start, frames) else {
                return;
            };
            let Some(message) = sender.try_pop() else {
                return;
            };
            // A message that overtook an earlier one is not played before it.
            last = frame.max(last);
            play(last, &message);
        }
    }
}

impl Drop for MidiReceiver {
    fn drop(&mut self) {
        *lock(&self.queues.idle_receivers) = Some(std::mem::take(&mut self.receivers));
    }
}

/// Queues between ports and audio thread, allocated once: ports take and return senders.
pub(crate) struct PortQueues {
    idle_senders: Mutex<Vec<HeapProd<MidiMessage>>>,
    idle_receivers: Mutex<Option<Vec<HeapCons<MidiMessage>>>>,
    /// Selected channels, one bit each.
    channels: AtomicU16,
    dropped_messages: AtomicU64,
}

impl PortQueues {
    /// Creates queues for 32 ports of 1024 messages each.
    pub fn new() -> Arc<Self> {
        let (senders, receivers) = (0..MAX_PORTS)
            .map(|_| HeapRb::new(PORT_CAPACITY).split())
            .unzip();
        Arc::new(Self {
            idle_senders: Mutex::new(senders),
            idle_receivers: Mutex::new(Some(receivers)),
            channels: AtomicU16::new(u16::MAX),
            dropped_messages: AtomicU64::new(0),
        })
    }

    /// Returns the audio thread's end, for blocks of at most `max_block` frames at `sample_rate`
    /// Hz; `None` while another one is in use. Queued messages are dropped.
    pub fn receiver(self: &Arc<Self>, sample_rate: u32, max_block: usize) -> Option<MidiReceiver> {
        let mut receivers = lock(&self.idle_receivers).take()?;
        for receiver in &mut receivers {
            receiver.clear();
        }
        Some(MidiReceiver {
            receivers,
            clock: BlockClock::new(sample_rate, max_block),
            queues: self.clone(),
        })
    }

    /// Returns the number of messages dropped because a queue was full.
    pub fn dropped_messages(&self) -> u64 {
        self.dropped_messages.load(Relaxed)
    }

    /// Returns a sender for a port; `None` if all are in use.
    pub fn sender(self: &Arc<Self>) -> Option<PortSender> {
        let ring = lock(&self.idle_senders).pop()?;
        Some(PortSender {
            ring: Some(ring),
            queues: self.clone(),
        })
    }

    /// Selects the channels that all ports send, one bit each, channel 1 the lowest.
    pub fn select_channels(&self, channels: u16) {
        self.channels.store(channels, Relaxed);
    }
}

/// A port's end of a queue; returned to the pool when dropped.
pub(crate) struct PortSender {
    ring: Option<HeapProd<MidiMessage>>,
    queues: Arc<PortQueues>,
}

impl PortSender {
    /// Sends a message that arrived `at`, if its channel is selected. Neither waits nor allocates.
    pub fn send(&mut self, at: Instant, message: &[u8]) {
        let Some(message) = MidiMessage::new(at, message) else {
            return;
        };
        let channels = self.queues.channels.load(Relaxed);
        let selected = message
            .channel()
            .is_none_or(|channel| channels & (1 << channel) != 0);
        let Some(ring) = self.ring.as_mut().filter(|_| selected) else {
            return;
        };
        if ring.try_push(message).is_err() {
            self.queues.dropped_messages.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for PortSender {
    fn drop(&mut self) {
        if let Some(ring) = self.ring.take() {
            lock(&self.queues.idle_senders).push(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn receiver(queues: &Arc<PortQueues>) -> MidiReceiver {
        queues.receiver(1000, 10).unwrap()
    }

    #[test]
    fn ports_are_merged_in_order_of_time() {
        let queues = PortQueues::new();
        let mut receiver = receiver(&queues);
        let (mut a, mut b) = (queues.sender().unwrap(), queues.sender().unwrap());
        let origin = Instant::now();
        let ms = |ms| origin + Duration::from_millis(ms);
        for at in [1, 4, 12] {
            a.send(ms(at), &[0x90, at as u8, 100]);
        }
        for at in [2, 3, 11] {
            b.send(ms(at), &[0x80, at as u8, 0]);
        }
        let mut played = Vec::new();
        for block in 0..4 {
            receiver.receive_at(ms(10 * block), 10, |frame, message| {
                played.push((block, frame, message.bytes()[1]))
            });
        }
        assert_eq!(
            played,
            [
                (1, 1, 1),
                (1, 2, 2),
                (1, 3, 3),
                (1, 4, 4),
                (2, 1, 11),
                (2, 2, 12)
            ]
        );
    }

    #[test]
    fn unselected_channels_and_invalid_messages_are_not_sent() {
        let queues = PortQueues::new();
        let mut receiver = receiver(&queues);
        let mut sender = queues.sender().unwrap();
        queues.select_channels(0b101);
        let now = Instant::now();
        let sent: [&[u8]; 10] = [
            &[0x90, 1, 1],
            &[0x91, 2, 2],
            &[0xC2, 3],
            &[0xF8],
            &[0xF2, 4, 5],
            &[0xF0, 1, 0xF7],
            &[],
            &[0x40, 1],
            &[0xF0, 1, 2, 3, 4],
            &[0xF0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xF7],
        ];
        for message in sent {
            sender.send(now, message);
        }
        let mut played = Vec::new();
        receiver.receive_at(now + Duration::from_secs(1), 10, |frame, message| {
            assert_eq!(frame, 0);
            played.push(message.bytes().to_vec());
        });
        assert_eq!(
            played,
            [
                &[0x90, 1, 1][..],
                &[0xC2, 3],
                &[0xF8],
                &[0xF2, 4, 5],
                &[0xF0, 1, 0xF7]
            ]
        );
    }

    #[test]
    fn senders_and_receiver_are_reusable_and_overflow_is_counted() {
        let queues = PortQueues::new();
        let receivers: Vec<_> = std::iter::from_fn(|| queues.sender()).collect();
        assert_eq!(receivers.len(), MAX_PORTS);
        drop(receivers);
        let mut sender = queues.sender().unwrap();
        for _ in 0..PORT_CAPACITY + 3 {
            sender.send(Instant::now(), &[0xF8]);
        }
        assert_eq!(queues.dropped_messages.load(Relaxed), 3);
        drop(receiver(&queues));
        assert!(lock(&queues.idle_receivers).is_some());
    }
}
