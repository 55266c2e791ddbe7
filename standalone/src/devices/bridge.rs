//! Joins an input device to an output device that runs on its own.
//!
//! Between them is a ring with a fixed number of frames in it, which is the latency. It is filled before the output takes
//! anything. The two devices never run at quite the same speed: when the ring runs dry there is silence until it is filled
//! again; when it holds much too much it is emptied down to the latency.

use std::sync::Arc;

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::stage::Meter;

/// The input's end.
pub(super) struct BridgeIn {
    ring: HeapProd<f32>,
    channels: usize,
    meter: Arc<Meter>,
}

/// The output's end.
pub(super) struct BridgeOut {
    ring: HeapCons<f32>,
    channels: usize,
    latency: usize,
    limit: usize,
    state: State,
    scratch: Vec<f32>,
    meter: Arc<Meter>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Never yet full.
    Starting,
    Running,
    /// Has run dry.
    Starved,
}

/// How many frames a bridge must hold between blocks of these lengths, so that neither side waits for the other as long as
/// both are on time: at worst, an output block is due just before an input block comes.
pub(super) fn bridge_latency(input_block: usize, output_block: usize) -> usize {
    input_block + output_block
}

/// A bridge for blocks of these lengths, in frames; output blocks may be longer than said, at the price of silence.
pub(super) fn bridge(
    channels: usize,
    input_block: usize,
    output_block: usize,
    meter: &Arc<Meter>,
) -> (BridgeIn, BridgeOut) {
    let latency = bridge_latency(input_block, output_block);
    // As much again, or blocks that only come unevenly would be taken for drift.
    let limit = 2 * latency;
    let (tx, rx) = HeapRb::new((limit + latency) * channels).split();
    let meter_in = meter.clone();
    let scratch = vec![0.0; output_block.max(1) * channels];
    let out = BridgeOut { ring: rx, channels, latency, limit, state: State::Starting, scratch, meter: meter.clone() };
    (BridgeIn { ring: tx, channels, meter: meter_in }, out)
}

impl BridgeIn {
    /// Hands over interleaved frames, as many as there is room for.
    pub fn push(&mut self, interleaved: impl ExactSizeIterator<Item = f32>) {
        let frames = interleaved.len() / self.channels;
        let room = (self.ring.vacant_len() / self.channels).min(frames);
        self.ring.push_iter(interleaved.take(room * self.channels));
        self.meter.count_dropped(frames - room);
    }
}

impl BridgeOut {
    /// Makes ready for an output buffer of some frames; whether there is sound for it.
    pub fn prepare(&mut self, frames: usize) -> bool {
        let held = self.ring.occupied_len() / self.channels;
        if self.state != State::Running && held >= self.latency.max(frames) {
            // What came before the output did was never promised to anybody.
            if self.state == State::Starved {
                self.meter.count_dropped(held - self.latency.max(frames));
            }
            self.ring.skip((held - self.latency.max(frames)) * self.channels);
            self.state = State::Running;
        } else if self.state == State::Running && held > self.limit {
            self.ring.skip((held - self.latency) * self.channels);
            self.meter.count_dropped(held - self.latency);
        } else if self.state == State::Running && held < frames {
            self.state = State::Starved;
        }
        if self.state == State::Starved {
            self.meter.count_inserted(frames);
        }
        self.state == State::Running
    }

    /// Takes as many frames as the planar block has, which [`prepare`](Self::prepare) found to be there.
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

    /// Two devices of given speeds and blocks; what is recorded is the number of the frame, from 1 on, and twice it.
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
            self.played.extend((0..frames).map(|frame| [planar[0][frame], planar[1][frame]]));
        }

        /// Runs both for some frames of the output; `input_speed` is the input's beside the output's.
        fn run(&mut self, frames: usize, input_block: usize, output_block: usize, input_speed: f64) {
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

    fn devices(input_block: usize, output_block: usize) -> (Devices, Arc<Meter>) {
        let meter = Arc::new(Meter::default());
        let (tx, rx) = bridge(2, input_block, output_block, &meter);
        (Devices { tx, rx, recorded: 0, played: Vec::new() }, meter)
    }

    #[test]
    fn latency_is_what_was_told_and_does_not_change() {
        for (input_block, output_block) in [(64, 64), (256, 64), (64, 256), (480, 441), (1, 7)] {
            let (mut devices, meter) = devices(input_block, output_block);
            devices.run(20_000, input_block, output_block, 1.0);
            assert_eq!(meter.drift().dropped_frames + meter.drift().inserted_frames, 0);
            let first = devices.played.iter().position(|frame| frame[0] != 0.0).unwrap();
            for (frame, played) in devices.played[first..].iter().enumerate() {
                assert_eq!(*played, [played[0], 2.0 * played[0]]);
                assert_eq!(played[0], devices.played[first][0] + frame as f32, "{input_block} to {output_block}");
            }
            // When the first was taken, exactly the latency lay in the ring.
            let recorded_then = devices.played[first][0] as usize - 1 + bridge_latency(input_block, output_block);
            assert_eq!(recorded_then % input_block, 0);
        }
    }

    #[test]
    fn an_input_that_is_too_fast_or_too_slow_is_made_up_for_and_counted() {
        for speed in [1.01, 0.99] {
            let (mut devices, meter) = devices(64, 64);
            devices.run(100_000, 64, 64, speed);
            let drift = meter.drift();
            assert_eq!(drift.dropped_frames > 0, speed > 1.0, "{drift:?}");
            assert_eq!(drift.inserted_frames > 0, speed < 1.0, "{drift:?}");
            // 1 % of what was played, give or take what the ring holds and one more pause.
            let made_up = drift.dropped_frames.max(drift.inserted_frames);
            assert!((700..=1300).contains(&made_up), "{drift:?}");
            // Time never runs backwards, and latency stays near what was told.
            let heard: Vec<f32> = devices.played.iter().map(|frame| frame[0]).filter(|n| *n != 0.0).collect();
            assert!(heard.is_sorted());
            let behind = devices.recorded as f32 - heard.last().unwrap();
            assert!(behind <= 3.0 * 128.0, "{behind}");
        }
    }
}
