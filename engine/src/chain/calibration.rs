//! Gains around a model, from what its card says of volts and loudness.

use crate::model::card::Levels;

/// Loudness that a normalised output has, dB RMS of full scale.
const NORMAL_DB: f64 = -18.0;
/// Most that any gain changes, dB: what a card says may be nonsense.
const MOST_DB: f64 = 60.0;

/// How loud the output of a model is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputLevel {
    /// As the model makes it.
    #[default]
    Raw,
    /// As loud as every other model, by the loudness of its card: that of a standard signal, not of what is played.
    Normalised,
    /// As many volts at the interface's output as the gear has at its own.
    Calibrated,
}

/// What a player says of levels; by default nothing, which changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Level that a sine of 1 kHz with a peak of full scale has at the interface, dBu. With it the model is driven as the gear was.
    pub interface_dbu: Option<f32>,
    /// How loud the output is made.
    pub output: OutputLevel,
}

impl Calibration {
    /// Gains before and after a model with those levels, -60 to 60 dB; 0 for what the levels do not tell.
    #[must_use]
    pub fn gains_db(self, levels: Levels) -> [f32; 2] {
        let interface_dbu = self.interface_dbu.map(f64::from);
        let input = interface_dbu.zip(levels.input_dbu).map(|(interface, model)| interface - model);
        let output = match self.output {
            OutputLevel::Raw => None,
            OutputLevel::Normalised => levels.loudness_db.map(|loudness| NORMAL_DB - loudness),
            OutputLevel::Calibrated => interface_dbu.zip(levels.output_dbu).map(|(interface, model)| model - interface),
        };
        [input, output].map(|gain| gain.unwrap_or_default().clamp(-MOST_DB, MOST_DB) as f32)
    }

    /// Why some of it changes nothing on a model with those levels, in a few words each.
    pub fn untold(self, levels: Levels) -> impl Iterator<Item = &'static str> {
        let input = self.interface_dbu.is_some() && levels.input_dbu.is_none();
        let output = match self.output {
            OutputLevel::Normalised if levels.loudness_db.is_none() => Some("the model does not tell its loudness"),
            OutputLevel::Calibrated if levels.output_dbu.is_none() => Some("the model does not tell its output level"),
            OutputLevel::Calibrated if self.interface_dbu.is_none() => Some("the interface's level is not told"),
            _ => None,
        };
        input.then_some("the model does not tell its input level").into_iter().chain(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: Levels = Levels { input_dbu: Some(18.3), output_dbu: Some(9.5), loudness_db: Some(-21.0) };

    fn of(interface_dbu: Option<f32>, output: OutputLevel) -> Calibration {
        Calibration { interface_dbu, output }
    }

    #[test]
    fn what_is_not_asked_for_changes_nothing() {
        assert_eq!(Calibration::default().gains_db(TOLD), [0.0; 2]);
        assert_eq!(Calibration::default().untold(Levels::default()).count(), 0);
    }

    #[test]
    fn the_model_is_driven_as_the_gear_was_and_heard_as_it_was() {
        // An interface that clips at 12.3 dBu into a model that was made with one that clips at 18.3 dBu: 6 dB less.
        let [input, output] = of(Some(12.3), OutputLevel::Calibrated).gains_db(TOLD);
        assert!((input + 6.0).abs() < 1e-5 && (output + 2.8).abs() < 1e-5, "{input} dB, {output} dB");
        assert_eq!(of(Some(18.3), OutputLevel::Raw).gains_db(TOLD)[1], 0.0);
        // Louder than -18 dB becomes softer, and the interface does not matter.
        assert_eq!(of(None, OutputLevel::Normalised).gains_db(TOLD), [0.0, 3.0]);
        let loud = Levels { loudness_db: Some(-11.5), ..TOLD };
        assert_eq!(of(None, OutputLevel::Normalised).gains_db(loud), [0.0, -6.5]);
    }

    #[test]
    fn nonsense_on_a_card_stays_within_limits() {
        let odd = Levels { input_dbu: Some(-1e300), output_dbu: Some(f64::MAX), loudness_db: Some(1e9) };
        assert_eq!(of(Some(12.0), OutputLevel::Calibrated).gains_db(odd), [60.0; 2]);
        assert_eq!(of(None, OutputLevel::Normalised).gains_db(odd), [0.0, -60.0]);
    }

    #[test]
    fn what_is_not_told_changes_nothing_and_is_said() {
        let said = |calibration: Calibration, levels| {
            assert_eq!(calibration.gains_db(levels), [0.0; 2]);
            calibration.untold(levels).collect::<Vec<_>>()
        };
        let (input, output) = ("the model does not tell its input level", "the model does not tell its output level");
        let none = Levels::default();
        assert_eq!(said(of(Some(12.0), OutputLevel::Raw), none), [input]);
        assert_eq!(said(of(Some(12.0), OutputLevel::Calibrated), none), [input, output]);
        assert_eq!(said(of(None, OutputLevel::Calibrated), TOLD), ["the interface's level is not told"]);
        let loudness = "the model does not tell its loudness";
        assert_eq!(said(of(None, OutputLevel::Normalised), Levels { loudness_db: None, ..TOLD }), [loudness]);
        assert_eq!(of(Some(12.0), OutputLevel::Calibrated).untold(TOLD).count(), 0);
    }
}
