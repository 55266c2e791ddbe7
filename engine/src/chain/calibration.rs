//! Gains around a model, derived from the levels on its card.

use crate::model::card::Levels;

/// Target loudness of normalised output, dB RMS of full scale.
const NORMAL_DB: f64 = -18.0;
/// Largest gain, dB; guards against wrong levels on a card.
const MAX_GAIN_DB: f64 = 60.0;

/// Output level of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputLevel {
    /// Unchanged.
    #[default]
    Raw,
    /// Equal loudness of all models for a standard signal, by the loudness on their cards.
    Normalised,
    /// The voltage of the captured device, at the output of the audio interface.
    Calibrated,
}

/// Level settings of a player. The defaults change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Level in dBu of a full-scale 1 kHz sine at the audio interface. If set, the model is driven
    /// as the captured device was.
    pub interface_dbu: Option<f32>,
    /// Output level.
    pub output: OutputLevel,
}

impl Calibration {
    /// Returns the gains before and after a model, −60 to 60 dB; 0 dB if a level is unknown.
    #[must_use]
    pub fn gains_db(self, levels: Levels) -> [f32; 2] {
        let interface_dbu = self.interface_dbu.map(f64::from);
        let input = interface_dbu
            .zip(levels.input_dbu)
            .map(|(interface, model)| interface - model);
        let output = match self.output {
            OutputLevel::Raw => None,
            OutputLevel::Normalised => levels.loudness_db.map(|loudness| NORMAL_DB - loudness),
            OutputLevel::Calibrated => interface_dbu
                .zip(levels.output_dbu)
                .map(|(interface, model)| model - interface),
        };
        [input, output].map(|gain| gain.unwrap_or_default().clamp(-MAX_GAIN_DB, MAX_GAIN_DB) as f32)
    }

    /// Returns why settings have no effect on a model with these levels.
    pub fn missing_levels(self, levels: Levels) -> impl Iterator<Item = &'static str> {
        let input = self.interface_dbu.is_some() && levels.input_dbu.is_none();
        let output = match self.output {
            OutputLevel::Normalised if levels.loudness_db.is_none() => {
                Some("the model states no loudness")
            }
            OutputLevel::Calibrated if levels.output_dbu.is_none() => {
                Some("the model states no output level")
            }
            OutputLevel::Calibrated if self.interface_dbu.is_none() => {
                Some("the level of the interface is not set")
            }
            _ => None,
        };
        input
            .then_some("the model states no input level")
            .into_iter()
            .chain(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: Levels = Levels {
        input_dbu: Some(18.3),
        output_dbu: Some(9.5),
        loudness_db: Some(-21.0),
    };

    fn of(interface_dbu: Option<f32>, output: OutputLevel) -> Calibration {
        Calibration {
            interface_dbu,
            output,
        }
    }

    #[test]
    fn the_defaults_change_nothing() {
        assert_eq!(Calibration::default().gains_db(LEVELS), [0.0; 2]);
        assert_eq!(
            Calibration::default()
                .missing_levels(Levels::default())
                .count(),
            0
        );
    }

    #[test]
    fn calibration_reproduces_the_levels_of_the_device() {
        // An interface with 12.3 dBu at full scale and a model captured at 18.3 dBu: 6 dB less.
        let [input, output] = of(Some(12.3), OutputLevel::Calibrated).gains_db(LEVELS);
        assert!(
            (input + 6.0).abs() < 1e-5 && (output + 2.8).abs() < 1e-5,
            "{input} dB, {output} dB"
        );
        assert_eq!(of(Some(18.3), OutputLevel::Raw).gains_db(LEVELS)[1], 0.0);
        // Normalised to -18 dB, independently of the interface.
        assert_eq!(
            of(None, OutputLevel::Normalised).gains_db(LEVELS),
            [0.0, 3.0]
        );
        let loud = Levels {
            loudness_db: Some(-11.5),
            ..LEVELS
        };
        assert_eq!(
            of(None, OutputLevel::Normalised).gains_db(loud),
            [0.0, -6.5]
        );
    }

    #[test]
    fn gains_are_limited() {
        let odd = Levels {
            input_dbu: Some(-1e300),
            output_dbu: Some(f64::MAX),
            loudness_db: Some(1e9),
        };
        assert_eq!(
            of(Some(12.0), OutputLevel::Calibrated).gains_db(odd),
            [60.0; 2]
        );
        assert_eq!(
            of(None, OutputLevel::Normalised).gains_db(odd),
            [0.0, -60.0]
        );
    }

    #[test]
    fn unknown_levels_change_nothing_and_are_reported() {
        let reported = |calibration: Calibration, levels| {
            assert_eq!(calibration.gains_db(levels), [0.0; 2]);
            calibration.missing_levels(levels).collect::<Vec<_>>()
        };
        let (input, output) = (
            "the model states no input level",
            "the model states no output level",
        );
        let none = Levels::default();
        assert_eq!(reported(of(Some(12.0), OutputLevel::Raw), none), [input]);
        assert_eq!(
            reported(of(Some(12.0), OutputLevel::Calibrated), none),
            [input, output]
        );
        assert_eq!(
            reported(of(None, OutputLevel::Calibrated), LEVELS),
            ["the level of the interface is not set"]
        );
        let loudness = "the model states no loudness";
        assert_eq!(
            reported(
                of(None, OutputLevel::Normalised),
                Levels {
                    loudness_db: None,
                    ..LEVELS
                }
            ),
            [loudness]
        );
        assert_eq!(
            of(Some(12.0), OutputLevel::Calibrated)
                .missing_levels(LEVELS)
                .count(),
            0
        );
    }
}
