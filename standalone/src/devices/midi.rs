//! MIDI in: ports that come and go, merged into one stream that an audio callback reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use super::jack_midi::JackMidi;
use super::quiet;
use super::sequencer::Sequencer;
use super::timing::BlockClock;

/// The most ports that are heard at once.
const LINES: usize = 32;

/// Messages of one port that can wait for the audio thread: a second of a cable that is never silent.
const LINE_MESSAGES: usize = 1024;

/// How often ports are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How often it is seen to that a server is still there.
const GLANCE: Duration = Duration::from_millis(100);

/// Which MIDI is heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MidiChoice {
    /// The ports.
    pub ports: MidiPorts,
    /// The channels, one bit each, channel 1 the lowest. Clock, start and stop have no channel and are always heard.
    pub channels: u16,
}

/// Ports by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MidiPorts {
    /// All that there are and that come later, except loops within the system.
    #[default]
    All,
    /// Those that have one of these in their name, now or later; case does not matter.
    Names(Vec<String>),
}

impl Default for MidiChoice {
    fn default() -> Self {
        Self { ports: MidiPorts::All, channels: u16::MAX }
    }
}

impl MidiPorts {
    pub(super) fn want(&self, name: &str) -> bool {
        match self {
            // What is sent to it comes back, so all would be heard twice.
            Self::All => !name.contains("Midi Through"),
            Self::Names(names) => names.iter().any(|wanted| has(name, wanted)),
        }
    }
}

fn has(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

/// A message of up to three bytes. System-exclusive messages are not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidiMessage {
    /// When it came.
    pub at: Instant,
    bytes: [u8; 3],
    length: u8,
}

impl MidiMessage {
    /// A message, if these bytes are one: a status and up to two data bytes.
    pub fn new(at: Instant, message: &[u8]) -> Option<Self> {
        let status = *message.first()?;
        if message.len() > 3 || status < 0x80 || status == 0xF0 || status == 0xF7 {
            return None;
        }
        let mut bytes = [0; 3];
        bytes[..message.len()].copy_from_slice(message);
        Some(Self { at, bytes, length: message.len() as u8 })
    }

    /// Status and data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// 0 … 15, for messages that have a channel.
    pub fn channel(&self) -> Option<u8> {
        (self.bytes[0] < 0xF0).then_some(self.bytes[0] & 0x0F)
    }
}

/// How the ports stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MidiStatus {
    /// Names of the ports that are heard.
    pub connected: Vec<String>,
    /// Names that were asked for and that no port has.
    pub missing: Vec<String>,
    /// Why there is nothing to be had from a system, one line each.
    pub troubles: Vec<String>,
}

/// MIDI input, until it is dropped.
pub struct Midi {
    orders: Option<Sender<MidiChoice>>,
    pool: Arc<Pool>,
    status: Arc<Mutex<MidiStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl Midi {
    /// Starts to listen. Other programs and devices find an input called "Ondes" where the system allows that.
    pub fn open(choice: MidiChoice) -> Self {
        let (orders, inbox) = mpsc::channel();
        let (tx, rx) = (0..LINES).map(|_| HeapRb::new(LINE_MESSAGES).split()).unzip();
        let pool = Arc::new(Pool { lines: Mutex::new(tx), ends: Mutex::new(Some(rx)), lost: AtomicU64::new(0) });
        let status = Arc::<Mutex<MidiStatus>>::default();
        let keeper = Keeper { inbox, pool: pool.clone(), status: status.clone() };
        let thread = match std::thread::Builder::new().name("ondes-midi".into()).spawn(move || keeper.run(choice)) {
            Ok(thread) => Some(thread),
            Err(error) => {
                lock(&status).troubles = vec![format!("no thread for MIDI: {error}")];
                None
            }
        };
        Self { orders: Some(orders), pool, status, thread }
    }

    /// Goes over to other ports or channels.
    pub fn choose(&self, choice: MidiChoice) {
        // Without its thread there is nobody to tell, and the status says so.
        self.orders.as_ref().map(|orders| orders.send(choice).ok());
    }

    /// The end for the audio thread, for blocks of at most `max_block` frames at `sample_rate` in Hz. There is one; it can be
    /// had again once it was dropped, which must not happen on the audio thread. It starts with what comes from now on.
    pub fn receiver(&self, sample_rate: u32, max_block: usize) -> Option<MidiReceiver> {
        let mut lines = lock(&self.pool.ends).take()?;
        for line in &mut lines {
            line.clear();
        }
        Some(MidiReceiver { lines, clock: BlockClock::new(sample_rate, max_block), pool: self.pool.clone() })
    }

    /// How the ports stand.
    pub fn status(&self) -> MidiStatus {
        lock(&self.status).clone()
    }

    /// Messages that the audio thread did not take in time and that were left out, so far.
    pub fn lost(&self) -> u64 {
        self.pool.lost.load(Relaxed)
    }
}

impl Drop for Midi {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own thread.
            drop(thread.join());
        }
    }
}

/// The audio thread's end: all ports in one stream, in order of time.
pub struct MidiReceiver {
    lines: Vec<HeapCons<MidiMessage>>,
    clock: BlockClock,
    pool: Arc<Pool>,
}

impl MidiReceiver {
    /// To be called once at the beginning of each block. Hands what is heard in it to `play`, in order, each with its frame
    /// in 0 … `frames` − 1. What came is heard a fixed time later, the length of the longest block.
    pub fn receive(&mut self, frames: usize, play: impl FnMut(usize, &MidiMessage)) {
        self.receive_at(Instant::now(), frames, play);
    }

    fn receive_at(&mut self, now: Instant, frames: usize, mut play: impl FnMut(usize, &MidiMessage)) {
        let start = self.clock.begin(now, frames);
        let mut last = 0;
        // Others keep sending: what comes in while we look is bounded, or a flood would hold up the sound.
        for _ in 0..LINES * LINE_MESSAGES {
            let heads = self.lines.iter_mut().filter_map(|line| Some((line.try_peek()?.at, line)));
            let Some((at, line)) = heads.min_by_key(|(at, _)| *at) else { return };
            let Some(frame) = self.clock.frame(at, start, frames) else { return };
            let Some(message) = line.try_pop() else { return };
            // One that overtook an earlier one on its way is not heard before it.
            last = frame.max(last);
            play(last, &message);
        }
    }
}

impl Drop for MidiReceiver {
    fn drop(&mut self) {
        *lock(&self.pool.ends) = Some(std::mem::take(&mut self.lines));
    }
}

/// The lines between ports and audio thread. They are made once: the audio thread must not see any come or go.
pub(super) struct Pool {
    lines: Mutex<Vec<HeapProd<MidiMessage>>>,
    ends: Mutex<Option<Vec<HeapCons<MidiMessage>>>>,
    lost: AtomicU64,
}

impl Pool {
    /// A line for a port, as long as there are any.
    pub fn line(self: &Arc<Self>, channels: u16) -> Option<Line> {
        let ring = lock(&self.lines).pop()?;
        Some(Line { ring: Some(ring), channels, pool: self.clone() })
    }
}

/// A port's end of a line; free for another port when dropped.
pub(super) struct Line {
    ring: Option<HeapProd<MidiMessage>>,
    channels: u16,
    pool: Arc<Pool>,
}

impl Line {
    /// Sends a message that came at some time, unless nobody wants it. Neither waits nor allocates.
    pub fn send(&mut self, at: Instant, message: &[u8]) {
        let Some(message) = MidiMessage::new(at, message) else { return };
        let wanted = message.channel().is_none_or(|channel| self.channels & (1 << channel) != 0);
        let Some(ring) = self.ring.as_mut().filter(|_| wanted) else { return };
        if ring.try_push(message).is_err() {
            self.pool.lost.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(ring) = self.ring.take() {
            lock(&self.pool.lines).push(ring);
        }
    }
}

/// A port that can be heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MidiPort {
    /// The system that has it: "ALSA", "JACK" …
    pub system: String,
    /// Its name.
    pub name: String,
}

/// The ports that there are, and why a system has none to offer, one line each.
pub fn ports() -> (Vec<MidiPort>, Vec<String>) {
    quiet::hush();
    let systems = [
        (super::sequencer::SYSTEM, super::sequencer::ports()),
        #[cfg(target_os = "linux")]
        (super::jack::HOST, super::jack_midi::ports()),
    ];
    let (mut ports, mut troubles) = (Vec::new(), Vec::new());
    for (system, found) in systems {
        match found {
            Ok(names) => ports.extend(names.into_iter().map(|name| MidiPort { system: system.into(), name })),
            Err(trouble) => troubles.push(trouble),
        }
    }
    (ports, troubles)
}

/// The thread that looks for ports.
struct Keeper {
    inbox: Receiver<MidiChoice>,
    pool: Arc<Pool>,
    status: Arc<Mutex<MidiStatus>>,
}

impl Keeper {
    fn run(self, mut choice: MidiChoice) {
        quiet::hush();
        let mut sequencer = Sequencer::default();
        #[cfg(target_os = "linux")]
        let mut jack = JackMidi::default();
        loop {
            let mut connected = Vec::new();
            let mut troubles = Vec::new();
            let mut gather = |found: Result<Vec<String>, String>| match found {
                Ok(names) => connected.extend(names),
                Err(trouble) => troubles.push(trouble),
            };
            let of_system = sequencer.look(&choice, &self.pool);
            #[cfg(target_os = "linux")]
            let of_jack = jack.look(&choice, &self.pool, of_system.is_ok());
            gather(of_system);
            #[cfg(target_os = "linux")]
            gather(of_jack);
            let missing = match &choice.ports {
                MidiPorts::All => Vec::new(),
                MidiPorts::Names(names) => {
                    let there = |wanted: &String| connected.iter().any(|name| has(name, wanted));
                    names.iter().filter(|wanted| !there(wanted)).cloned().collect()
                }
            };
            *lock(&self.status) = MidiStatus { connected, missing, troubles };

            let looked = Instant::now();
            while looked.elapsed() < LOOK {
                match self.inbox.recv_timeout(GLANCE) {
                    Ok(other) => {
                        choice = self.inbox.try_iter().last().unwrap_or(other);
                        // Lines know which channels pass: those in use are laid anew.
                        sequencer = Sequencer::default();
                        #[cfg(target_os = "linux")]
                        {
                            jack = JackMidi::default();
                        }
                        break;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                // A client of a server that is gone must go at once: as long as there is one, JACK's library does not see
                // the server that comes next.
                #[cfg(target_os = "linux")]
                if jack.is_gone() {
                    jack = JackMidi::default();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Arc<Pool> {
        let (tx, rx) = (0..LINES).map(|_| HeapRb::new(LINE_MESSAGES).split()).unzip();
        Arc::new(Pool { lines: Mutex::new(tx), ends: Mutex::new(Some(rx)), lost: AtomicU64::new(0) })
    }

    fn receiver(pool: &Arc<Pool>) -> MidiReceiver {
        let lines = lock(&pool.ends).take().unwrap();
        MidiReceiver { lines, clock: BlockClock::new(1000, 10), pool: pool.clone() }
    }

    #[test]
    fn ports_are_merged_in_order_of_time_at_their_frames() {
        let pool = pool();
        let mut receiver = receiver(&pool);
        let (mut a, mut b) = (pool.line(u16::MAX).unwrap(), pool.line(u16::MAX).unwrap());
        let origin = Instant::now();
        let ms = |ms| origin + Duration::from_millis(ms);
        for at in [1, 4, 12] {
            a.send(ms(at), &[0x90, at as u8, 100]);
        }
        for at in [2, 3, 11] {
            b.send(ms(at), &[0x80, at as u8, 0]);
        }
        let mut heard = Vec::new();
        for block in 0..4 {
            receiver.receive_at(ms(10 * block), 10, |frame, message| heard.push((block, frame, message.bytes()[1])));
        }
        assert_eq!(heard, [(1, 1, 1), (1, 2, 2), (1, 3, 3), (1, 4, 4), (2, 1, 11), (2, 2, 12)]);
    }

    #[test]
    fn channels_are_chosen_and_what_is_no_message_is_not_sent() {
        let pool = pool();
        let mut receiver = receiver(&pool);
        let mut line = pool.line(0b101).unwrap();
        let now = Instant::now();
        let sent: [&[u8]; 9] = [
            &[0x90, 1, 1],
            &[0x91, 2, 2],
            &[0xC2, 3],
            &[0xF8],
            &[0xF2, 4, 5],
            &[0xF0, 1, 0xF7],
            &[],
            &[0x40, 1],
            &[0xF0, 1, 2, 3, 4, 0xF7],
        ];
        for message in sent {
            line.send(now, message);
        }
        let mut heard = Vec::new();
        receiver.receive_at(now + Duration::from_secs(1), 10, |frame, message| {
            assert_eq!(frame, 0);
            heard.push(message.bytes().to_vec());
        });
        assert_eq!(heard, [&[0x90, 1, 1][..], &[0xC2, 3], &[0xF8], &[0xF2, 4, 5]]);
    }

    #[test]
    fn lines_and_receiver_can_be_had_again_and_what_is_too_much_is_counted() {
        let pool = pool();
        let lines: Vec<_> = std::iter::from_fn(|| pool.line(1)).collect();
        assert_eq!(lines.len(), LINES);
        drop(lines);
        let mut line = pool.line(1).unwrap();
        for _ in 0..LINE_MESSAGES + 3 {
            line.send(Instant::now(), &[0xF8]);
        }
        assert_eq!(pool.lost.load(Relaxed), 3);
        drop(receiver(&pool));
        assert!(lock(&pool.ends).is_some());
    }

    #[test]
    fn a_choice_survives_being_written_down() {
        let choice = MidiChoice { ports: MidiPorts::Names(vec!["Keystep".into()]), channels: 3 };
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(text, r#"{"ports":{"names":["Keystep"]},"channels":3}"#);
        assert_eq!(serde_json::from_str::<MidiChoice>(&text).unwrap(), choice);
        assert_eq!(serde_json::from_str::<MidiChoice>("{}").unwrap(), MidiChoice::default());
        assert!(choice.ports.want("Arturia KEYSTEP:port 1") && !choice.ports.want("Midi Through"));
    }
}
