//! The tuner: reads the input and follows its pitch.

use std::time::{Duration, Instant};

use ondes_engine::dsp::tuner::TunerPitch;
use ondes_player::state::TunerSettings;
use ondes_player::tuner::TunerInput;

use super::InstanceViewModel;
use crate::command::TunerCommand;
use crate::view::{REFERENCE_HZ, TunerView};

/// Readings whose median is shown.
const READINGS: usize = 5;
/// Ratio beyond which a reading is another note: half a semitone.
const OTHER_NOTE: f64 = 1.03;
/// Time for which the last reading stays.
const HOLD: Duration = Duration::from_millis(250);

/// State of the tuner while it is open.
#[derive(Default)]
pub(super) struct Tuner {
    pitch: Option<(f64, TunerPitch)>,
    /// Samples read so far, see [`TunerInput::read`].
    read: usize,
    samples: Vec<f32>,
    readings: Vec<f64>,
    latest: Option<Instant>,
    open: bool,
}

impl Tuner {
    pub fn set_open(&mut self, open: bool, input: &TunerInput) {
        input.set_open(open);
        *self = Self {
            open,
            read: input.recorded_samples(),
            ..Self::default()
        };
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns whether there is a reading, which moves the strobe or ends soon.
    pub fn has_reading(&self) -> bool {
        !self.readings.is_empty()
    }

    /// Reads the input at the host's rate in Hz.
    pub fn refresh(&mut self, input: &TunerInput, rate_hz: f64, now: Instant) {
        if !self.open || rate_hz <= 0.0 {
            return;
        }
        #[expect(clippy::float_cmp, reason = "any other rate needs another detector")]
        if self.pitch.as_ref().is_none_or(|(rate, _)| *rate != rate_hz) {
            self.pitch = Some((rate_hz, TunerPitch::new(rate_hz)));
        }
        let Some((_, pitch)) = &mut self.pitch else {
            return;
        };
        if !input.read(&mut self.read, &mut self.samples) {
            pitch.clear();
        }
        if !self.samples.is_empty() {
            pitch.push(&self.samples);
            if let Some(hz) = pitch.frequency_hz() {
                self.latest = Some(now);
                let other = |last: &f64| !(1.0 / OTHER_NOTE..OTHER_NOTE).contains(&(hz / last));
                if self.readings.last().is_some_and(other) {
                    self.readings.clear();
                }
                if self.readings.len() == READINGS {
                    self.readings.remove(0);
                }
                self.readings.push(hz);
            }
        }
        if self
            .latest
            .is_none_or(|latest| now.duration_since(latest) > HOLD)
        {
            self.readings.clear();
        }
    }

    /// Returns the pitch to show, Hz.
    fn pitch_hz(&self) -> Option<f32> {
        let mut sorted = self.readings.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).map(|hz| *hz as f32)
    }

    /// Returns what is shown.
    pub fn view(&self, available: bool, settings: TunerSettings) -> TunerView {
        let TunerSettings { reference_hz, mute } = settings;
        let reference_hz = valid_reference(reference_hz);
        TunerView {
            available,
            open: self.open,
            mute,
            reference_hz,
            pitch_hz: self.pitch_hz(),
        }
    }
}

/// Clamps a reference to the allowed range; NaN becomes 440 Hz.
fn valid_reference(hz: f32) -> f32 {
    if hz.is_nan() {
        TunerSettings::default().reference_hz
    } else {
        hz.clamp(REFERENCE_HZ.0, REFERENCE_HZ.1)
    }
}

impl InstanceViewModel {
    pub(super) fn handle_tuner(&mut self, command: TunerCommand) {
        match command {
            TunerCommand::Open(open) => self.open_tuner(open),
            TunerCommand::Mute(mute) => {
                self.instance.tuner.set_muted(mute);
                self.change_settings(|settings| settings.tuner.mute = mute);
            }
            TunerCommand::SetReference(hz) => {
                self.change_settings(|settings| settings.tuner.reference_hz = valid_reference(hz));
            }
        }
    }

    /// Opens or closes the tuner.
    pub(super) fn open_tuner(&mut self, open: bool) {
        self.instance
            .tuner
            .set_muted(self.instance.read_state(|state| state.window).tuner.mute);
        self.tuner.set_open(open, &self.instance.tuner);
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;

    const RATE: f32 = 48_000.0;

    fn sine(hz: f32, from: usize) -> Vec<f32> {
        (from..from + 1_600)
            .map(|n| 0.2 * (TAU * hz * n as f32 / RATE).sin())
            .collect()
    }

    #[test]
    fn a_tone_is_shown_while_it_sounds() {
        let (input, mut tuner, start) = (TunerInput::default(), Tuner::default(), Instant::now());
        input.record(&[&sine(110.0, 0)]);
        tuner.refresh(&input, RATE.into(), start);
        assert_eq!(tuner.pitch_hz(), None, "it is closed");
        tuner.set_open(true, &input);
        let frame = |n: u64| start + Duration::from_millis(33 * n);
        for n in 0..10 {
            let tone = sine(110.0, 1_600 * n);
            input.record(&[&tone, &tone]);
            tuner.refresh(&input, RATE.into(), frame(n as u64));
        }
        let shown = tuner.pitch_hz().expect("it sounds");
        assert!((shown - 110.0).abs() < 0.03, "{shown}");
        // The last reading stays for a moment, then nothing is shown.
        input.record(&[&[0.0; 1_600]]);
        tuner.refresh(&input, RATE.into(), frame(10));
        assert!(tuner.pitch_hz().is_some());
        for n in 11..30 {
            input.record(&[&[0.0; 1_600]]);
            tuner.refresh(&input, RATE.into(), frame(n));
        }
        assert_eq!(tuner.pitch_hz(), None);
        // Nor does it stay when the host stops.
        for n in 30..40 {
            input.record(&[&sine(220.0, 1_600 * n)]);
            tuner.refresh(&input, RATE.into(), frame(n as u64));
        }
        assert!(tuner.pitch_hz().is_some());
        tuner.refresh(&input, RATE.into(), frame(60));
        assert_eq!(tuner.pitch_hz(), None);
    }

    #[test]
    fn one_wrong_reading_is_not_shown() {
        let tuner = Tuner {
            readings: vec![110.0, 110.1, 111.9, 110.0, 110.1],
            ..Tuner::default()
        };
        assert_eq!(tuner.pitch_hz(), Some(110.1));
        assert_eq!(
            [430.0, 500.0, f32::NAN].map(valid_reference),
            [430.0, 450.0, 440.0]
        );
    }
}
