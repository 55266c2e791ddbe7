//! Connects an input device to an output device with another clock.
//!
//! Both are joined by a ring that is kept at a fixed number of frames: the latency. It is filled
//! before the output reads. When the faster output has emptied the ring, there is silence until it
//! is filled again; when the faster input has filled it to twice the latency, it is cut back to the
//! latency.

use std::sync::Arc;

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::callback_slot::StreamStats;

/// End of the input device.
pub(super) struct BridgeIn {
    ring: HeapProd<f32>,
    channels: usize,
    stats: Arc<StreamStats>,
}

/// End of the output device.
pub(super) struct BridgeOut {
    ring: HeapCons<f32>,
    channels: usize,
    latency: usize,
    limit: usize,
    state: BridgeState,
    scratch: Vec<f32>,
    stats: Arc<StreamStats>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BridgeState {
    /// Not filled for the first time yet.
    Starting,
    /// Passes samples on.
    Running,
    /// Ran empty and is being filled again.
    Starved,
}

/// Returns the frames that a bridge must hold for these block lengths so that neither side runs
/// short: in the worst case an output block is due just before an input block arrives.
pub(super) fn bridge_latency(input_block: usize, output_block: usize) -> usize {
    input_block + output_block
}

/// Creates a bridge for block lengths in frames. Longer output blocks cause silence.
pub(super) fn bridge(
    channels: usize,
    input_block: usize,
    output_block: usize,
    stats: &Arc<StreamStats>,
) -> (BridgeIn, BridgeOut) {
    let latency = bridge_latency(input_block, output_block);
    // Twice the latency, so that unevenly timed blocks are not taken for drift.
    let limit = 2 * latency;
    let (tx, rx) = HeapRb::new((limit + latency) * channels).split();
    let stats_in = stats.clone();
    let scratch = vec![0.0; output_block.max(1) * channels];
    let out = BridgeOut {
        ring: rx,
        channels,
        latency,
        limit,
        state: BridgeState::Starting,
        scratch,
        stats: stats.clone(),
    };
    (
        BridgeIn {
            ring: tx,
            channels,
            stats: stats_in,
        },
        out,
    )
}

impl BridgeIn {
    /// Pushes interleaved frames, as many as fit.
    pub fn push(&mut self, interleaved: impl ExactSizeIterator<Item = f32>) {
        let frames = interleaved.len() / self.channels;
        let room = (self.ring.vacant_len() / self.channels).min(frames);
        self.ring.push_iter(interleaved.take(room * self.channels));
        self.stats.count_dropped(frames - room);
    }
}

impl BridgeOut {
    /// Prepares an output buffer of `frames`; returns whether there is input for it.
    pub fn prepare(&mut self, frames: usize) -> bool {
        let held = self.ring.occupied_len() / self.channels;
        if self.state != BridgeState::Running && held >= self.latency.max(frames) {
            // Input before the first output is not counted as dropped.
            if self.state == BridgeState::Starved {
                self.stats.count_dropped(held - self.latency.max(frames));
            }
            self.ring
                .skip((held - self.latency.max(frames)) * self.channels);
            self.state = BridgeState::Running;
        } else if self.state == BridgeState::Running && held > self.limit {
            self.ring.skip((held - self.latency) * self.channels);
            self.stats.count_dropped(held - self.latency);
        } else if self.state == BridgeState::Running && held < frames {
            self.state = BridgeState::Starved;
        }
        if self.state == BridgeState::Starved {
            self.stats.count_inserted(frames);
        }
        self.state == BridgeState::Running
    }

    /// Reads `frames` frames, which [`prepare`](Self::prepare) has found to be available, into
    /// planar buffers.
    pub fn pop(&mut self, planar: &mut [Vec<f32>], frames: usize) {
        let mut done = 0;
        while done < frames {
            let count = (frames - done).min(self.scratch.len() / self.channels);
            let scratch = &mut self.scratch[..count * self.channels];
            self.ring.pop_slice(scratch);
            for (channel, samples) in planar.iter_mut().enumerate() {
                let taken = scratch[channel..].iter().step_by(self.channels);
                for (sample, taken) in samples[done..done + count].iter_mut().zip(taken) {
                    *sample = *taken;
                }
            }
            done += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two devices of given speeds and block lengths; the input is the frame number, from 1 on, and
    /// twice that.
    struct Devices {
        tx: BridgeIn,
        rx: BridgeOut,
        recorded: usize,
        played: Vec<[f32; 2]>,
    }

    impl Devices {
        fn record(&mut self, frames: usize) {
            let numbers = self.recorded + 1..=self.recorded + frames;
            let samples: Vec<f32> = numbers.flat_map(|n| [n as f32, 2.0 * n as f32]).collect();
            self.tx.push(samples.into_iter());
            self.recorded += frames;
        }

        fn play(&mut self, frames: usize) {
            let mut planar = vec![vec![0.0; frames]; 2];
            if self.rx.prepare(frames) {
                self.rx.pop(&mut planar, frames);
            }
            self.played
                .extend((0..frames).map(|frame| [planar[0][frame], planar[1][frame]]));
        }

        /// Runs both for `frames` frames of the output; `input_speed` is relative to the output.
        fn run(
            &mut self,
            frames: usize,
            input_block: usize,
            output_block: usize,
            input_speed: f64,
        ) {
            let (start, recorded) = (self.played.len(), self.recorded);
            while self.played.len() < start + frames {
                let due = ((self.played.len() - start) as f64 * input_speed) as usize + input_block;
                while self.recorded - recorded + input_block <= due {
                    self.record(input_block);
                }
                self.play(output_block);
            }
        }
    }

    fn devices(input_block: usize, output_block: usize) -> (Devices, Arc<StreamStats>) {
        let stats = Arc::new(StreamStats::default());
        let (tx, rx) = bridge(2, input_block, output_block, &stats);
        (
            Devices {
                tx,
                rx,
                recorded: 0,
                played: Vec::new(),
            },
            stats,
        )
    }

    #[test]
    fn the_latency_is_exact_and_constant() {
        for (input_block, output_block) in [(64, 64), (256, 64), (64, 256), (480, 441), (1, 7)] {
            let (mut devices, stats) = devices(input_block, output_block);
            devices.run(20_000, input_block, output_block, 1.0);
            assert_eq!(
                stats.drift().dropped_frames + stats.drift().inserted_frames,
                0
            );
            let first = devices
                .played
                .iter()
                .position(|frame| frame[0] != 0.0)
                .unwrap();
            for (frame, played) in devices.played[first..].iter().enumerate() {
                assert_eq!(*played, [played[0], 2.0 * played[0]]);
                assert_eq!(
                    played[0],
                    devices.played[first][0] + frame as f32,
                    "{input_block} to {output_block}"
                );
            }
            // When the first frame was read, the ring held exactly the latency.
            let recorded_then =
                devices.played[first][0] as usize - 1 + bridge_latency(input_block, output_block);
            assert_eq!(recorded_then % input_block, 0);
        }
    }

    #[test]
    fn clock_drift_is_compensated_and_counted() {
        for speed in [1.01, 0.99] {
            let (mut devices, stats) = devices(64, 64);
            devices.run(100_000, 64, 64, speed);
            let drift = stats.drift();
            assert_eq!(drift.dropped_frames > 0, speed > 1.0, "{drift:?}");
            assert_eq!(drift.inserted_frames > 0, speed < 1.0, "{drift:?}");
            // 1 % of the output, within what the ring holds and one more pause.
            let made_up = drift.dropped_frames.max(drift.inserted_frames);
            assert!((700..=1300).contains(&made_up), "{drift:?}");
            // The order of frames is kept, and the latency stays near its nominal value.
            let heard: Vec<f32> = devices
                .played
                .iter()
                .map(|frame| frame[0])
                .filter(|n| *n != 0.0)
                .collect();
            assert!(heard.is_sorted());
            let behind = devices.recorded as f32 - heard.last().unwrap();
            assert!(behind <= 3.0 * 128.0, "{behind}");
        }
    }
}
