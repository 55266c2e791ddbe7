//! Busses as hosts give them: any number of channels, announced and given, null pointers, blocks of
//! any length, 64-bit samples, and calls in any order. Nothing may crash, and one channel sounds as
//! one channel.

mod calls;
mod clap;
#[cfg(target_os = "linux")]
mod vst3;

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::host::{EFFECT, Host, INSTRUMENT, energy, json, state};

const RATE: f64 = 48_000.0;
const BLOCK: usize = 64;
/// Numbers of channels that are announced and given.
const CHANNELS: [u32; 4] = [0, 1, 2, 6];
/// Value of samples before the plugin writes.
const UNTOUCHED: f64 = 77.0;

/// An instance in a host of one format.
trait Instance {
    /// Requests channels of all busses, inputs first; returns whether the plugin accepts them.
    fn arrange(&mut self, inputs: &[u32], outputs: &[u32]) -> bool;
    /// Returns the channels of all input busses and of all output busses.
    fn arrangement(&self) -> [Vec<u32>; 2];
    fn activate(&mut self, sample_rate: f64, block: usize) -> bool;
    fn deactivate(&mut self);
    /// Processes a block; `None` gives a null pointer for all busses.
    fn process(
        &mut self,
        inputs: Option<&[Bus]>,
        outputs: Option<&[Bus]>,
        frames: usize,
        is_wide: bool,
    );
}

/// Samples of a bus, `[channel][frame]`, as pointers.
struct Bus {
    narrow: Vec<Vec<f32>>,
    wide: Vec<Vec<f64>>,
    narrow_pointers: Vec<*mut f32>,
    wide_pointers: Vec<*mut f64>,
    channels: u32,
    has_pointers: bool,
}

impl Bus {
    fn new(channels: u32, sample: impl Fn(usize, usize) -> f64, frames: usize) -> Self {
        let channel = |channel: usize| -> Vec<f64> {
            (0..frames).map(|frame| sample(channel, frame)).collect()
        };
        let mut wide: Vec<Vec<f64>> = (0..channels as usize).map(channel).collect();
        let to_narrow = |channel: &Vec<f64>| channel.iter().map(|sample| *sample as f32).collect();
        let mut narrow: Vec<Vec<f32>> = wide.iter().map(to_narrow).collect();
        let wide_pointers = wide.iter_mut().map(Vec::as_mut_ptr).collect();
        let narrow_pointers = narrow.iter_mut().map(Vec::as_mut_ptr).collect();
        Self {
            narrow,
            wide,
            narrow_pointers,
            wide_pointers,
            channels,
            has_pointers: true,
        }
    }

    fn empty(channels: u32, frames: usize) -> Self {
        Self::new(channels, |_, _| UNTOUCHED, frames)
    }

    /// Gives a null pointer for a channel.
    fn without_channel(mut self, channel: usize) -> Self {
        self.narrow_pointers[channel] = null_mut();
        self.wide_pointers[channel] = null_mut();
        self
    }

    /// Gives a null pointer in the place of all channels'.
    fn without_pointers(mut self) -> Self {
        self.has_pointers = false;
        self
    }

    fn pointers(&self, is_wide: bool) -> *mut c_void {
        match (self.has_pointers, is_wide) {
            (false, _) => null_mut(),
            (true, false) => self.narrow_pointers.as_ptr().cast_mut().cast(),
            (true, true) => self.wide_pointers.as_ptr().cast_mut().cast(),
        }
    }

    fn samples(&self, channel: usize, is_wide: bool) -> Vec<f64> {
        if is_wide {
            self.wide[channel].clone()
        } else {
            self.narrow[channel]
                .iter()
                .map(|sample| f64::from(*sample))
                .collect()
        }
    }
}

fn tone(channel: usize, frame: usize) -> f64 {
    0.3 * (frame as f64 * 0.03 * (channel + 1) as f64).sin()
}

/// Returns the state of a plugin that plays in the callback.
fn inline_state(id: &str) -> Vec<u8> {
    let mut saved = json(&Host::new(id).save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    state(&saved)
}

/// Runs a test with each plugin in each format; the flag says that it is the effect.
fn for_all(mut test: impl FnMut(&mut dyn Instance, bool)) {
    for id in [INSTRUMENT, EFFECT] {
        let (saved, is_effect) = (inline_state(id), id == EFFECT);
        test(&mut clap::Clap::new(id, &saved), is_effect);
        #[cfg(target_os = "linux")]
        test(&mut vst3::Vst3::new(id, &saved), is_effect);
    }
}

#[test]
fn mono_and_stereo_are_accepted_and_nothing_else() {
    for_all(|instance, is_effect| {
        for input in CHANNELS {
            for side_chain in CHANNELS {
                for output in CHANNELS {
                    let inputs: &[u32] = if is_effect {
                        &[input, side_chain]
                    } else {
                        &[side_chain]
                    };
                    let is_supported = (!is_effect || (1..=2).contains(&input))
                        && side_chain <= 2
                        && (1..=2).contains(&output);
                    let before = instance.arrangement();
                    assert_eq!(
                        instance.arrange(inputs, &[output]),
                        is_supported,
                        "{inputs:?} to {output}"
                    );
                    let expected = if is_supported {
                        [inputs.to_vec(), vec![output]]
                    } else {
                        before
                    };
                    assert_eq!(
                        instance.arrangement(),
                        expected,
                        "after {inputs:?} to {output}"
                    );
                }
            }
        }
        // Only the first busses, too many, and while active.
        let first: &[u32] = if is_effect { &[1] } else { &[] };
        assert!(
            instance.arrange(first, &[1])
                && !instance.arrange(&[1, 1, 1], &[1])
                && !instance.arrange(&[], &[1, 1])
        );
        assert!(instance.activate(RATE, BLOCK));
        assert!(!instance.arrange(first, &[2]));
        instance.deactivate();
        assert!(instance.arrange(first, &[2]));
    });
}

#[test]
fn any_channels_may_be_given() {
    for_all(|instance, is_effect| {
        for (input, side_chain, output) in [(2, 2, 2), (1, 1, 1), (1, 0, 2), (2, 1, 1), (1, 2, 2)] {
            let inputs: &[u32] = if is_effect {
                &[input, side_chain]
            } else {
                &[side_chain]
            };
            assert!(instance.arrange(inputs, &[output]));
            assert!(instance.activate(RATE, BLOCK));
            for given_in in CHANNELS {
                for given_side_chain in CHANNELS {
                    for given_out in CHANNELS {
                        for (frames, is_wide) in [
                            (BLOCK, false),
                            (1, true),
                            (0, false),
                            (5 * BLOCK + 3, false),
                        ] {
                            let mut ins = vec![Bus::new(given_side_chain, tone, frames)];
                            if is_effect {
                                ins.insert(0, Bus::new(given_in, tone, frames));
                            }
                            let outs = [Bus::empty(given_out, frames)];
                            instance.process(Some(&ins), Some(&outs), frames, is_wide);
                            for channel in 0..given_out as usize {
                                let samples = outs[0].samples(channel, is_wide);
                                assert!(
                                    samples.iter().all(|sample| sample.abs() < 4.0),
                                    "{given_in} to {given_out}"
                                );
                                let is_silent = samples.iter().all(|sample| *sample == 0.0);
                                assert!(
                                    channel < 2 || is_silent,
                                    "channel {channel} does not exist"
                                );
                            }
                        }
                    }
                }
            }
            instance.deactivate();
        }
    });
}

#[test]
fn null_pointers_are_silent() {
    for_all(|instance, is_effect| {
        assert!(instance.activate(RATE, BLOCK));
        let buses = |bus: &dyn Fn() -> Bus| {
            (0..1 + usize::from(is_effect))
                .map(|_| bus())
                .collect::<Vec<_>>()
        };
        for is_wide in [false, true] {
            let full: &dyn Fn() -> Bus = &|| Bus::new(2, tone, BLOCK);
            let inputs: [&dyn Fn() -> Bus; 5] = [
                full,
                &|| full().without_channel(0),
                &|| full().without_channel(1),
                &|| full().without_channel(0).without_channel(1),
                &|| full().without_pointers(),
            ];
            for input in inputs {
                let outputs = [
                    Bus::empty(2, BLOCK),
                    Bus::empty(2, BLOCK).without_channel(0),
                    Bus::empty(2, BLOCK).without_channel(1),
                    Bus::empty(2, BLOCK).without_pointers(),
                    Bus::empty(1, BLOCK).without_channel(0),
                ];
                for output in outputs {
                    instance.process(Some(&buses(input)), Some(&[output]), BLOCK, is_wide);
                }
                instance.process(Some(&buses(input)), None, BLOCK, is_wide);
                instance.process(Some(&buses(input)), Some(&[]), BLOCK, is_wide);
            }
            let output = [Bus::empty(2, BLOCK)];
            instance.process(None, Some(&output), BLOCK, is_wide);
            instance.process(Some(&[]), Some(&output), BLOCK, is_wide);
            assert!(
                output[0]
                    .samples(1, is_wide)
                    .iter()
                    .all(|sample| *sample != UNTOUCHED),
                "the output is written"
            );
            instance.process(None, None, BLOCK, is_wide);
            instance.process(None, None, 0, is_wide);
        }
        instance.deactivate();
    });
}

/// Plays two seconds of one tone, or one on each side; returns the output's channels.
fn play(
    instance: &mut dyn Instance,
    given: [u32; 2],
    frames: usize,
    is_wide: bool,
) -> Vec<Vec<f64>> {
    let mut sound = vec![Vec::new(); given[1] as usize];
    for start in (0..24_000).step_by(frames) {
        let input = Bus::new(
            given[0],
            |channel, frame| tone(channel, start + frame),
            frames,
        );
        let side_chain = Bus::new(given[0], |_, _| 0.0, frames);
        let output = [Bus::empty(given[1], frames)];
        instance.process(Some(&[input, side_chain]), Some(&output), frames, is_wide);
        let output = (0..given[1] as usize).map(|channel| output[0].samples(channel, is_wide));
        sound
            .iter_mut()
            .zip(output)
            .for_each(|(sound, output)| sound.extend(output));
    }
    sound
}

#[test]
fn one_channel_sounds_as_one_channel() {
    for_all(|instance, is_effect| {
        if !is_effect {
            return;
        }
        // A fresh activation starts the same way each time.
        let mut sounds = |announced: [u32; 2], given: [u32; 2], frames: usize, is_wide: bool| {
            assert!(instance.arrange(&[announced[0], 1], &[announced[1]]));
            assert!(instance.activate(RATE, 480));
            let sound = play(instance, given, frames, is_wide);
            instance.deactivate();
            sound
        };
        let [mono] = &sounds([1, 1], [1, 1], 480, false)[..] else {
            unreachable!()
        };
        let mono = mono.clone();
        let stereo = sounds([2, 2], [2, 2], 480, false);
        let samples: Vec<f32> = mono.iter().map(|sample| *sample as f32).collect();
        assert!(energy(&samples) > 1e-4 && stereo[0] == mono && stereo[1] != mono);
        let mean: Vec<f64> = stereo[0]
            .iter()
            .zip(&stereo[1])
            .map(|(left, right)| f64::from(0.5 * *left as f32 + 0.5 * *right as f32))
            .collect();
        let both = [mono.clone(), mono.clone()];
        assert!(
            sounds([1, 2], [1, 2], 480, false) == both,
            "one channel to two"
        );
        assert!(
            sounds([2, 1], [2, 1], 480, false) == [mean.clone()],
            "two channels to one"
        );
        // A host that gives other channels than it has announced.
        assert!(sounds([2, 2], [1, 1], 480, false) == [mono.clone()]);
        assert!(sounds([2, 2], [1, 2], 480, false) == both);
        assert!(sounds([1, 1], [1, 2], 480, false) == both);
        assert!(sounds([2, 2], [2, 1], 480, false) == [mean]);
        // Blocks that are longer than announced, and 64-bit samples.
        assert!(sounds([1, 1], [1, 1], 12_000, false) == [mono.clone()]);
        let wide = sounds([1, 1], [1, 1], 480, true);
        let differs = wide[0]
            .iter()
            .zip(&mono)
            .any(|(one, other)| (one - other).abs() > 1e-6);
        assert!(!differs, "64-bit samples are the same sound");
    });
}
