//! What stands before and after an amplifier: gate → tone → gain → model → gain → DC blocker → tone → cabinet.
//!
//! A [`Calibration`] is where the gains may come from.
//!
//! All of it is at the host's rate and adds no latency. What is not in use passes samples as they are, and costs nothing.

mod calibration;
mod impulse_file;

pub use calibration::{Calibration, OutputLevel};
pub use impulse_file::{ImpulseError, ImpulseFile};

use ondes_kernels::FlushToZero;

use crate::dsp::cabinet::CabinetSlot;
use crate::dsp::dc_blocker::DcBlocker;
use crate::dsp::level::db_to_amplitude;
use crate::dsp::noise_gate::NoiseGate;
use crate::dsp::ramp::Ramp;
use crate::dsp::tone::Tone;

/// Where all knobs of a chain stand. By default nothing changes anything, but for a cabinet where there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainSettings {
    /// Peaks of the input above this open the gate, dB of full scale; without it the gate is open.
    pub gate_db: Option<f32>,
    /// Bass, middle and treble, dB.
    pub tone: [f32; 3],
    /// Where the tone control stands.
    pub placement: TonePosition,
    /// Whether what the model adds to all samples alike is taken away.
    pub block_dc: bool,
    /// Share of the cabinet's sound, 0 … 1.
    pub cabinet: f32,
    /// Gains directly before and after the model, dB.
    pub gains_db: [f32; 2],
}

/// Where a tone control stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TonePosition {
    /// Before the model: it changes what is driven.
    Before,
    /// After the model: it changes what is heard.
    #[default]
    After,
}

impl Default for ChainSettings {
    fn default() -> Self {
        Self {
            gate_db: None,
            tone: [0.0; 3],
            placement: TonePosition::default(),
            block_dc: false,
            cabinet: 1.0,
            gains_db: [0.0; 2],
        }
    }
}

impl ChainSettings {
    /// Gains of the tone controls before and after the model, dB.
    fn tones(&self) -> [[f32; 3]; 2] {
        match self.placement {
            TonePosition::Before => [self.tone, [0.0; 3]],
            TonePosition::After => [[0.0; 3], self.tone],
        }
    }
}

/// All stages but the model. Knobs go to where they are set without clicks.
pub struct Chain {
    gate: NoiseGate,
    /// `[channel]`
    before: [Tone; 2],
    /// Before the model and after it.
    gains: [Ramp; 2],
    dc_blocker: DcBlocker,
    after: Tone,
    cabinet: CabinetSlot,
    /// Samples that stages ring on, but for the cabinet.
    ring: usize,
}

/// Time in which tone controls and the DC blocker ring on, s.
const RING_S: f64 = 0.1;
/// Time in which a gain goes to its new value, s.
const RAMP_S: f64 = 0.020;

impl Chain {
    /// A chain in which nothing is in use, for a host that has a rate in Hz and blocks of up to so many samples.
    #[must_use]
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        let tone = Tone::new(sample_rate);
        Self {
            gate: NoiseGate::new(sample_rate),
            before: [tone.clone(), tone.clone()],
            gains: [Ramp::new(1.0, RAMP_S, sample_rate); 2],
            dc_blocker: DcBlocker::new(sample_rate),
            after: tone,
            cabinet: CabinetSlot::new(sample_rate, max_block),
            ring: (RING_S * f64::from(sample_rate)) as usize,
        }
    }

    /// Sends all knobs to where they shall stand.
    pub fn set(&mut self, settings: &ChainSettings) {
        let [before, after] = settings.tones();
        self.gate.set(settings.gate_db);
        self.before.iter_mut().for_each(|tone| tone.set(before));
        for (gain, db) in self.gains.iter_mut().zip(settings.gains_db) {
            gain.go(db_to_amplitude(db));
        }
        self.dc_blocker.set(settings.block_dc);
        self.after.set(after);
        self.cabinet.set(settings.cabinet);
    }

    /// Forgets all that was heard; everything is at once as it was set to be.
    pub fn reset(&mut self) {
        self.gate.reset();
        self.before.iter_mut().for_each(Tone::reset);
        self.gains.iter_mut().for_each(Ramp::arrive);
        self.dc_blocker.reset();
        self.after.reset();
        self.cabinet.reset();
    }

    /// Where the cabinet stands.
    pub fn cabinet(&mut self) -> &mut CabinetSlot {
        &mut self.cabinet
    }

    /// What comes to the model, `[channel][frame]`, of one channel or two.
    pub fn before(&mut self, channels: &mut [&mut [f32]]) {
        // What dies away in filters ends up in numbers that would cost a hundred times the others.
        let _flush = FlushToZero::on();
        self.gate.process(channels);
        for (tone, channel) in self.before.iter_mut().zip(&mut *channels) {
            tone.process(channel);
        }
        amplify(&mut self.gains[0], channels);
    }

    /// What comes from the model: from `left` to both channels. At most a block.
    ///
    /// # Panics
    /// When there are more samples than in the longest block, or lengths differ.
    pub fn after(&mut self, left: &mut [f32], right: &mut [f32]) {
        let _flush = FlushToZero::on();
        amplify(&mut self.gains[1], &mut [left]);
        self.dc_blocker.process(left);
        self.after.process(left);
        self.cabinet.process(left, right);
    }

    /// Whether both channels of what comes out may differ.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        !self.cabinet.is_neutral()
    }

    /// Samples that still sound after the model is silent.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let [left, right] = &self.before;
        let filters =
            left.is_neutral() && right.is_neutral() && self.after.is_neutral() && self.dc_blocker.is_neutral();
        let cabinet = if self.cabinet.is_neutral() { 0 } else { self.cabinet.tail_samples() };
        cabinet + if filters { 0 } else { self.ring }
    }
}

/// The same gain for all channels, sample by sample.
fn amplify(gain: &mut Ramp, channels: &mut [&mut [f32]]) {
    if gain.rest() == Some(1.0) {
        return;
    }
    let begun = *gain;
    for channel in channels {
        *gain = begun;
        channel.iter_mut().for_each(|sample| *sample *= gain.advance());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernels;
    use crate::dsp::cabinet::{Cabinet, Response};

    const RATE: u32 = 48_000;

    fn tone(frames: usize) -> Vec<f32> {
        (0..frames).map(|n| 0.3 * (n as f32 * 0.05).sin()).collect()
    }

    /// A whole chain around a model that drives hard.
    fn through(chain: &mut Chain, sound: &[f32], block: usize) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (sound.to_vec(), sound.to_vec());
        for (left, right) in left.chunks_mut(block).zip(right.chunks_mut(block)) {
            chain.before(&mut [left, right]);
            left.iter_mut().for_each(|sample| *sample = (5.0 * *sample).tanh());
            chain.after(left, right);
        }
        [left, right]
    }

    #[test]
    fn by_default_samples_pass_as_they_are() {
        let mut chain = Chain::new(RATE, 512);
        chain.set(&ChainSettings::default());
        let sound = tone(5_000);
        let driven: Vec<f32> = sound.iter().map(|sample| (5.0 * sample).tanh()).collect();
        assert_eq!(through(&mut chain, &sound, 100), [driven.clone(), driven]);
        assert_eq!(chain.tail_samples(), 0);
    }

    #[test]
    fn what_is_no_number_is_forgotten() {
        let mut chain = Chain::new(RATE, 512);
        let settings = ChainSettings { gate_db: Some(-40.0), tone: [3.0; 3], block_dc: true, ..ChainSettings::default() };
        let taps: Vec<f32> = (0..900).map(|n| (-(n as f32) / 100.0).exp()).collect();
        let response = Response::new(vec![taps], RATE).unwrap();
        chain.cabinet().replace(Box::new(Cabinet::new(&response, RATE, Kernels::detect()).unwrap())).ok().unwrap();
        for placement in [TonePosition::Before, TonePosition::After] {
            chain.set(&ChainSettings { placement, ..settings });
            let mut hostile = tone(2_000);
            (hostile[700], hostile[701], hostile[702]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
            through(&mut chain, &hostile, 100);
            let heard = through(&mut chain, &tone(2_000), 100);
            assert!(heard.iter().flatten().all(|sample| sample.is_finite()), "{placement:?}");
        }
    }

    #[test]
    fn everything_in_use_sounds_alike_in_any_blocks() {
        let settings = ChainSettings {
            gate_db: Some(-40.0),
            tone: [3.0, -6.0, 9.0],
            placement: TonePosition::Before,
            block_dc: true,
            cabinet: 0.7,
            gains_db: [4.0, -3.0],
        };
        let taps: Vec<f32> = (0..900).map(|n| (-(n as f32) / 100.0).exp() * (n as f32 * 0.3).cos()).collect();
        let response = Response::new(vec![taps.clone(), taps.into_iter().rev().collect()], RATE).unwrap();
        let play = |block| {
            let mut chain = Chain::new(RATE, 512);
            chain.set(&settings);
            let cabinet = Cabinet::new(&response, RATE, Kernels::detect()).unwrap();
            chain.cabinet().replace(Box::new(cabinet)).ok().unwrap();
            let mut heard = through(&mut chain, &tone(3_000), block);
            chain.set(&ChainSettings { placement: TonePosition::After, ..settings });
            for (heard, more) in heard.iter_mut().zip(through(&mut chain, &tone(3_000), block)) {
                heard.extend(more);
            }
            assert_eq!(chain.tail_samples(), 899 + 4_800);
            heard
        };
        let whole = play(500);
        assert!(whole[0] != whole[1]);
        for block in [1, 60, 250] {
            assert_eq!(play(block), whole, "blocks of {block}");
        }
    }

    #[test]
    fn gains_go_where_they_are_set_without_a_click_and_back_to_the_bit() {
        let mut chain = Chain::new(RATE, 512);
        let sound = vec![0.1; 4_800];
        let driven = |gain_db: f32| (5.0 * 0.1 * db_to_amplitude(gain_db)).tanh();
        chain.set(&ChainSettings { gains_db: [6.0, -12.0], ..ChainSettings::default() });
        let heard = through(&mut chain, &sound, 100);
        let wanted = driven(6.0) * db_to_amplitude(-12.0);
        assert!((heard[0][4_799] - wanted).abs() < 1e-6 && heard[0] == heard[1], "{} for {wanted}", heard[0][4_799]);
        let step = |heard: &[f32]| heard.windows(2).fold(0.0_f32, |most, pair| most.max((pair[1] - pair[0]).abs()));
        assert!(step(&heard[0]) < 1e-3 && (heard[0][0] - driven(0.0)).abs() < 1e-3, "{}", step(&heard[0]));
        assert_eq!(chain.tail_samples(), 0);
        chain.set(&ChainSettings::default());
        let back = through(&mut chain, &sound, 100);
        assert!(step(&back[0]) < 1e-3);
        assert_eq!(back[0][2_000..], vec![driven(0.0); 2_800]);
        // Set before anything is heard they are there at once.
        chain.set(&ChainSettings { gains_db: [6.0, 0.0], ..ChainSettings::default() });
        chain.reset();
        assert_eq!(through(&mut chain, &sound, 100)[0][0], driven(6.0));
    }

    #[test]
    fn where_the_tone_stands_counts() {
        let heard = |placement| {
            let mut chain = Chain::new(RATE, 512);
            chain.set(&ChainSettings { tone: [12.0; 3], placement, ..ChainSettings::default() });
            chain.reset();
            through(&mut chain, &tone(5_000), 500)[0].iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()))
        };
        assert!(heard(TonePosition::Before) <= 1.0 && heard(TonePosition::After) > 2.0);
    }
}
