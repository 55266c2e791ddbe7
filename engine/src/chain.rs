//! Signal chain around a model: gate → tone → gain → model → gain → DC blocker → tone → cabinet →
//! reverb.
//!
//! All stages run at the host's rate without latency. A stage that is off passes samples unchanged
//! at no cost. [`Calibration`] computes gains from the levels on a model's card.

mod calibration;
mod impulse_file;

pub use calibration::{Calibration, OutputLevel};
pub use impulse_file::{ImpulseError, ImpulseFile, MAX_KEPT_BYTES};

use ondes_kernels::FlushToZero;

use crate::dsp::cabinet::CabinetSlot;
use crate::dsp::dc_blocker::DcBlocker;
use crate::dsp::level::db_to_amplitude;
use crate::dsp::noise_gate::NoiseGate;
use crate::dsp::ramp::Ramp;
use crate::dsp::reverb::{DEFAULT_TIME_S, Reverb};
use crate::dsp::tone::Tone;

/// Settings of a chain. By default all stages are off, except for a cabinet if one is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainSettings {
    /// Gate threshold in dB of full scale; `None` keeps the gate open.
    pub gate_db: Option<f32>,
    /// Gains of bass, middle and treble, dB.
    pub tone: [f32; 3],
    /// Position of the tone control.
    pub tone_position: TonePosition,
    /// Removes the DC offset of the model's output.
    pub block_dc: bool,
    /// Mix of the cabinet, 0 to 1.
    pub cabinet: f32,
    /// Amount of reverberation, 0 to 1, and its time, s; see [`Reverb::set`].
    pub reverb: [f32; 2],
    /// Gains directly before and after the model, dB.
    pub gains_db: [f32; 2],
}

/// Position of the tone control relative to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TonePosition {
    /// Before the model; changes the sound that drives it.
    Before,
    /// After the model; changes the sound that it makes.
    #[default]
    After,
}

impl Default for ChainSettings {
    fn default() -> Self {
        Self {
            gate_db: None,
            tone: [0.0; 3],
            tone_position: TonePosition::default(),
            block_dc: false,
            cabinet: 1.0,
            reverb: [0.0, DEFAULT_TIME_S],
            gains_db: [0.0; 2],
        }
    }
}

impl ChainSettings {
    /// Returns the tone gains before and after the model, dB.
    fn tones(&self) -> [[f32; 3]; 2] {
        match self.tone_position {
            TonePosition::Before => [self.tone, [0.0; 3]],
            TonePosition::After => [[0.0; 3], self.tone],
        }
    }
}

/// Effects before and after a model. Changes of settings are smoothed.
///
/// # Examples
/// ```
/// use ondes_engine::chain::{Chain, ChainSettings};
///
/// let mut chain = Chain::new(48_000, 64);
/// chain.set(&ChainSettings { gains_db: [6.0, -6.0], ..ChainSettings::default() });
/// chain.reset();
/// let (mut left, mut right) = ([0.1; 64], [0.1; 64]);
/// chain.process_input(&mut [&mut left, &mut right]);
/// // The model runs here.
/// chain.process_output(&mut left, &mut right, true);
/// assert!((left[63] - 0.1).abs() < 1e-6 && left == right);
/// ```
pub struct Chain {
    gate: NoiseGate,
    /// One for each channel.
    before: [Tone; 2],
    /// Before and after the model.
    gains: [Ramp; 2],
    /// `[channel]`, as `after`; the right ones are behind while the output is mono.
    dc_blockers: [DcBlocker; 2],
    after: [Tone; 2],
    /// Samples for which the output's channels may still differ.
    stereo_samples: usize,
    cabinet: CabinetSlot,
    reverb: Reverb,
    /// Tail of the filters in samples.
    ring: usize,
}

/// Tail of tone controls and DC blocker, s.
const RING_S: f64 = 0.1;
/// Tails after which the filters of both channels have forgotten that these differed: an offset of
/// full scale in one of them has decayed by 100 dB in the DC blocker.
const CHANNEL_RINGS: usize = 4;
/// Duration of gain changes, s.
const RAMP_S: f64 = 0.020;

impl Chain {
    /// Creates a chain with all stages off, for a sample rate in Hz and blocks of at most
    /// `max_block` samples.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let tone = Tone::new(sample_rate);
        Self {
            gate: NoiseGate::new(sample_rate),
            before: [tone.clone(), tone.clone()],
            gains: [Ramp::new(1.0, RAMP_S, sample_rate); 2],
            dc_blockers: [DcBlocker::new(sample_rate), DcBlocker::new(sample_rate)],
            after: [tone.clone(), tone],
            stereo_samples: 0,
            cabinet: CabinetSlot::new(sample_rate, max_block),
            reverb: Reverb::new(sample_rate),
            ring: (RING_S * f64::from(sample_rate)) as usize,
        }
    }

    /// Applies settings; changes are smoothed.
    pub fn set(&mut self, settings: &ChainSettings) {
        let [before, after] = settings.tones();
        self.gate.set(settings.gate_db);
        self.before.iter_mut().for_each(|tone| tone.set(before));
        for (gain, db) in self.gains.iter_mut().zip(settings.gains_db) {
            gain.set_target(db_to_amplitude(db));
        }
        self.dc_blockers
            .iter_mut()
            .for_each(|blocker| blocker.set(settings.block_dc));
        self.after.iter_mut().for_each(|tone| tone.set(after));
        self.cabinet.set(settings.cabinet);
        let [amount, time] = settings.reverb;
        self.reverb.set(amount, time);
    }

    /// Clears all state and completes changes that are being smoothed.
    pub fn reset(&mut self) {
        self.gate.reset();
        self.before.iter_mut().for_each(Tone::reset);
        self.gains.iter_mut().for_each(Ramp::finish);
        self.dc_blockers.iter_mut().for_each(DcBlocker::reset);
        self.after.iter_mut().for_each(Tone::reset);
        self.stereo_samples = 0;
        self.cabinet.reset();
        self.reverb.reset();
    }

    /// Returns the slot of the cabinet.
    pub fn cabinet_slot(&mut self) -> &mut CabinetSlot {
        &mut self.cabinet
    }

    /// Processes the model's input in place, `[channel][frame]`, of one or two channels.
    pub fn process_input(&mut self, channels: &mut [&mut [f32]]) {
        // Decaying filter states become denormal numbers, which are a hundred times slower.
        let _flush = FlushToZero::on();
        self.gate.process(channels);
        for (tone, channel) in self.before.iter_mut().zip(&mut *channels) {
            tone.process(channel);
        }
        amplify(&mut self.gains[0], channels);
    }

    /// Processes the model's output in place, at most a block. Unless `is_stereo`, both channels
    /// are equal.
    ///
    /// # Panics
    /// If there are more samples than in a block, or the lengths differ.
    pub fn process_output(&mut self, left: &mut [f32], right: &mut [f32], is_stereo: bool) {
        let _flush = FlushToZero::on();
        let is_stereo = self.track_channels(left.len(), is_stereo);
        if is_stereo {
            amplify(&mut self.gains[1], &mut [left, right]);
        } else {
            amplify(&mut self.gains[1], &mut [left]);
        }
        let count = if is_stereo { 2 } else { 1 };
        for (channel, sound) in [&mut *left, &mut *right]
            .into_iter()
            .enumerate()
            .take(count)
        {
            self.dc_blockers[channel].process(sound);
            self.after[channel].process(sound);
        }
        if !is_stereo {
            right.copy_from_slice(left);
        }
        self.cabinet.process(left, right, is_stereo);
        self.reverb.process(left, right);
    }

    /// Returns whether both channels must be processed: the model's output is stereo, or the
    /// filters still contain output that was. What begins to be stereo continues from the left
    /// channel's filters.
    fn track_channels(&mut self, frames: usize, is_stereo: bool) -> bool {
        if is_stereo {
            if self.stereo_samples == 0 {
                self.dc_blockers[1] = self.dc_blockers[0].clone();
                self.after[1] = self.after[0].clone();
            }
            self.stereo_samples = CHANNEL_RINGS * self.ring + self.cabinet.tail_samples() + 1;
            return true;
        }
        let may_differ = self.stereo_samples > 0;
        self.stereo_samples = self.stereo_samples.saturating_sub(frames);
        may_differ
    }

    /// Returns whether the output channels may differ.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.stereo_samples > 0 || self.cabinet.is_stereo() || !self.reverb.is_neutral()
    }

    /// Returns how long the chain sounds after its input has ended, in samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let [left, right] = &self.before;
        let filters = left.is_neutral()
            && right.is_neutral()
            && self.after[0].is_neutral()
            && self.dc_blockers[0].is_neutral();
        let cabinet = if self.cabinet.is_neutral() {
            0
        } else {
            self.cabinet.tail_samples()
        };
        self.reverb.tail_samples() + cabinet + if filters { 0 } else { self.ring }
    }
}

/// Applies a gain to all channels.
fn amplify(gain: &mut Ramp, channels: &mut [&mut [f32]]) {
    if gain.settled() == Some(1.0) {
        return;
    }
    let start = *gain;
    for channel in channels {
        *gain = start;
        channel
            .iter_mut()
            .for_each(|sample| *sample *= gain.advance());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernels;
    use crate::dsp::cabinet::{Cabinet, Response};
    use crate::dsp::level::{max_step, peak};

    const RATE: u32 = 48_000;

    fn tone(frames: usize) -> Vec<f32> {
        (0..frames).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect()
    }

    /// Plays sound through a chain around a model that distorts.
    fn through(chain: &mut Chain, sound: &[f32], block: usize) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (sound.to_vec(), sound.to_vec());
        for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
            chain.process_input(&mut [left, right]);
            left.iter_mut()
                .for_each(|sample| *sample = (5.0 * *sample).tanh());
            right.copy_from_slice(left);
            chain.process_output(left, right, false);
        }
        [left, right]
    }

    #[test]
    fn defaults_pass_samples_unchanged() {
        let mut chain = Chain::new(RATE, 512);
        chain.set(&ChainSettings::default());
        let sound = tone(5_000);
        let driven: Vec<f32> = sound.iter().map(|sample| (5.0 * sample).tanh()).collect();
        assert_eq!(through(&mut chain, &sound, 100), [driven.clone(), driven]);
        assert_eq!(chain.tail_samples(), 0);
    }

    #[test]
    fn non_finite_samples_do_not_persist() {
        let mut chain = Chain::new(RATE, 512);
        let settings = ChainSettings {
            gate_db: Some(-40.0),
            tone: [3.0; 3],
            block_dc: true,
            ..ChainSettings::default()
        };
        let taps: Vec<f32> = (0..900).map(|n| (-(n as f32) / 100.0).exp()).collect();
        let response = Response::new(vec![taps], RATE).unwrap();
        chain
            .cabinet_slot()
            .replace(Box::new(
                Cabinet::new(&response, RATE, Kernels::detect()).unwrap(),
            ))
            .ok()
            .unwrap();
        for tone_position in [TonePosition::Before, TonePosition::After] {
            chain.set(&ChainSettings {
                tone_position,
                ..settings
            });
            let mut hostile = tone(2_000);
            (hostile[700], hostile[701], hostile[702]) =
                (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
            through(&mut chain, &hostile, 100);
            let output = through(&mut chain, &tone(2_000), 100);
            assert!(
                output.iter().flatten().all(|sample| sample.is_finite()),
                "{tone_position:?}"
            );
        }
    }

    #[test]
    fn output_does_not_depend_on_block_length() {
        let settings = ChainSettings {
            gate_db: Some(-40.0),
            tone: [3.0, -6.0, 9.0],
            tone_position: TonePosition::Before,
            block_dc: true,
            cabinet: 0.7,
            reverb: [0.3, 0.5],
            gains_db: [4.0, -3.0],
        };
        let taps: Vec<f32> = (0..900)
            .map(|n| (-(n as f32) / 100.0).exp() * (n as f32 * 0.3).cos())
            .collect();
        let response =
            Response::new(vec![taps.clone(), taps.into_iter().rev().collect()], RATE).unwrap();
        let play = |block| {
            let mut chain = Chain::new(RATE, 512);
            chain.set(&settings);
            let cabinet = Cabinet::new(&response, RATE, Kernels::detect()).unwrap();
            chain
                .cabinet_slot()
                .replace(Box::new(cabinet))
                .ok()
                .unwrap();
            let mut output = through(&mut chain, &tone(3_000), block);
            chain.set(&ChainSettings {
                tone_position: TonePosition::After,
                ..settings
            });
            for (output, more) in output
                .iter_mut()
                .zip(through(&mut chain, &tone(3_000), block))
            {
                output.extend(more);
            }
            assert_eq!(chain.tail_samples(), 36_000 + 899 + 4_800);
            output
        };
        let expected = play(500);
        assert!(expected[0] != expected[1]);
        for block in [1, 60, 250] {
            assert_eq!(play(block), expected, "blocks of {block}");
        }
    }

    #[test]
    fn stereo_output_is_two_mono_outputs() {
        let settings = ChainSettings {
            tone: [3.0, -6.0, 9.0],
            block_dc: true,
            cabinet: 0.7,
            gains_db: [0.0, -3.0],
            ..ChainSettings::default()
        };
        let taps: Vec<f32> = (0..900)
            .map(|n| (-(n as f32) / 100.0).exp() * (n as f32 * 0.3).cos())
            .collect();
        let response = Response::new(vec![taps], RATE).unwrap();
        let new_chain = || {
            let mut chain = Chain::new(RATE, 512);
            let cabinet = Cabinet::new(&response, RATE, Kernels::detect()).unwrap();
            chain
                .cabinet_slot()
                .replace(Box::new(cabinet))
                .ok()
                .unwrap();
            chain.set(&settings);
            chain
        };
        // Mono, stereo, and mono again, while the settings change.
        let left: Vec<f32> = tone(48_000);
        let mut right: Vec<f32> = left.iter().map(|sample| 0.5 - sample).collect();
        right[..8_000].copy_from_slice(&left[..8_000]);
        right[16_000..].copy_from_slice(&left[16_000..]);
        let play = |input: [&[f32]; 2], is_stereo: &dyn Fn(usize) -> bool| {
            let mut chain = new_chain();
            let mut output = input.map(<[f32]>::to_vec);
            let [left, right] = &mut output;
            for (index, (left, right)) in
                left.chunks_mut(250).zip(right.chunks_mut(250)).enumerate()
            {
                if index == 40 {
                    chain.set(&ChainSettings {
                        gains_db: [0.0, 5.0],
                        tone: [0.0; 3],
                        ..settings
                    });
                }
                chain.process_output(left, right, is_stereo(index));
            }
            output
        };
        let [left_alone, _] = play([&left, &left], &|_| false);
        let [_, right_alone] = play([&right, &right], &|_| false);
        let both = play([&left, &right], &|index| (32..64).contains(&index));
        assert_eq!(both[0], left_alone);
        assert_eq!(both[1][..16_000], right_alone[..16_000]);
        // The difference of the filters' states decays before the channels become one.
        let differences = both[1][16_000..]
            .iter()
            .zip(&right_alone[16_000..])
            .map(|(a, b)| (a - b).abs());
        let difference = differences.fold(0.0, f32::max);
        assert!(difference < 1e-4, "{difference}");
    }

    #[test]
    fn gain_changes_are_smooth_and_reversible() {
        let mut chain = Chain::new(RATE, 512);
        let sound = vec![0.1; 4_800];
        let driven = |gain_db: f32| (5.0 * 0.1 * db_to_amplitude(gain_db)).tanh();
        chain.set(&ChainSettings {
            gains_db: [6.0, -12.0],
            ..ChainSettings::default()
        });
        let output = through(&mut chain, &sound, 100);
        let expected = driven(6.0) * db_to_amplitude(-12.0);
        assert!(
            (output[0][4_799] - expected).abs() < 1e-6 && output[0] == output[1],
            "{} for {expected}",
            output[0][4_799]
        );
        assert!(
            max_step(&output[0]) < 1e-3 && (output[0][0] - driven(0.0)).abs() < 1e-3,
            "{}",
            max_step(&output[0])
        );
        assert_eq!(chain.tail_samples(), 0);
        chain.set(&ChainSettings::default());
        let back = through(&mut chain, &sound, 100);
        assert!(max_step(&back[0]) < 1e-3);
        assert_eq!(back[0][2_000..], vec![driven(0.0); 2_800]);
        // Settings before a reset are effective at once.
        chain.set(&ChainSettings {
            gains_db: [6.0, 0.0],
            ..ChainSettings::default()
        });
        chain.reset();
        assert_eq!(through(&mut chain, &sound, 100)[0][0], driven(6.0));
    }

    #[test]
    fn tone_position_matters() {
        let output = |position| {
            let mut chain = Chain::new(RATE, 512);
            chain.set(&ChainSettings {
                tone: [12.0; 3],
                tone_position: position,
                ..ChainSettings::default()
            });
            chain.reset();
            peak(&through(&mut chain, &tone(5_000), 500)[0])
        };
        assert!(output(TonePosition::Before) <= 1.0 && output(TonePosition::After) > 2.0);
    }
}
