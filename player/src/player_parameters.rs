//! Parameter values in the form that the audio thread uses.

use ondes_engine::chain::{Calibration, ChainSettings};
use ondes_engine::dsp::level::db_to_amplitude;
use ondes_engine::instrument::MidiSettings;
use ondes_engine::pipeline::{ControlId, GLIDE, PLAY_MODE, TRANSPOSE, VOICES};

use crate::choice::{mpe_zone, output_level, tone_position};
use crate::macros::MACRO_COUNT;
use crate::parameter::{self, ParameterId};
use crate::value_format::{GATE_OFF_DB, INTERFACE_OFF_DBU, SILENT_DB, given_ms};

/// All parameters at the start of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerParameters {
    /// Outputs the dry signal only.
    pub bypass: bool,
    /// Factor of the input gain.
    pub input_gain: f32,
    /// Factor of the output gain.
    pub output_gain: f32,
    /// Share of the model's sound, 0 … 1.
    pub mix: f32,
    /// Requests silence when it becomes true.
    pub panic: bool,
    /// Request the next scene, and the one before, when they become true.
    pub scene_steps: [bool; 2],
    /// Pitch, voices and glide of notes.
    pub notes: NoteParameters,
    /// Settings of the decoder of MIDI messages.
    pub midi: MidiSettings,
    /// Positions of the macros, 0 … 1.
    pub macros: [f32; MACRO_COUNT],
    /// Settings of the signal chain, without the gains that depend on the model.
    pub chain: ChainSettings,
    /// Calibration, from which those gains follow.
    pub calibration: Calibration,
}

/// Pitch, voices and glide of notes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoteParameters {
    /// Shift of all pitches, semitones.
    pub semitones: f32,
    /// 0 the model's mode, 1 polyphonic, 2 monophonic, 3 legato.
    pub mode: u8,
    /// Time of the slide between notes that share a voice, ms; the model's own below 0.
    pub glide_ms: f32,
    /// Number of voices; 0 for the model's own.
    pub voices: u8,
}

impl PlayerParameters {
    /// Reads all parameters through `value`.
    #[must_use]
    pub fn read(value: impl Fn(ParameterId) -> f32) -> Self {
        let is_on = |id| value(id) > 0.5;
        Self {
            bypass: is_on(parameter::BYPASS),
            input_gain: linear(value(parameter::INPUT_GAIN)),
            output_gain: linear(value(parameter::OUTPUT_GAIN)),
            mix: value(parameter::MIX),
            panic: is_on(parameter::PANIC),
            scene_steps: [parameter::NEXT_SCENE, parameter::PREVIOUS_SCENE].map(is_on),
            notes: NoteParameters {
                semitones: value(parameter::TRANSPOSE) + value(parameter::TUNE) / 100.0,
                mode: value(parameter::MODE) as u8,
                glide_ms: given_ms(value(parameter::GLIDE)).unwrap_or(-1.0),
                voices: value(parameter::VOICES) as u8,
            },
            midi: MidiSettings {
                bend_range_semitones: Some(value(parameter::BEND_RANGE)),
                zone: mpe_zone(value(parameter::MPE)),
            },
            macros: std::array::from_fn(|index| value(ParameterId(index as u32))),
            chain: ChainSettings {
                gate_db: Some(value(parameter::GATE)).filter(|db| *db > GATE_OFF_DB),
                tone: parameter::TONE_GAINS.map(&value),
                tone_position: tone_position(value(parameter::TONE)),
                block_dc: is_on(parameter::BLOCK_DC),
                cabinet: value(parameter::CABINET),
                reverb: [parameter::REVERB, parameter::REVERB_TIME].map(&value),
                ..ChainSettings::default()
            },
            calibration: Calibration {
                interface_dbu: Some(value(parameter::INTERFACE_LEVEL))
                    .filter(|dbu| *dbu > INTERFACE_OFF_DBU),
                output: output_level(value(parameter::OUTPUT_LEVEL)),
            },
        }
    }
}

/// Returns the factor of a gain.
fn linear(gain_db: f32) -> f32 {
    if gain_db <= SILENT_DB {
        0.0
    } else {
        db_to_amplitude(gain_db)
    }
}

impl NoteParameters {
    /// Returns the engine's controls for these parameters.
    #[must_use]
    pub fn controls(&self) -> [(ControlId, f32); 4] {
        let Self {
            semitones,
            mode,
            glide_ms,
            voices,
        } = *self;
        [
            (TRANSPOSE, semitones),
            (PLAY_MODE, mode.into()),
            (GLIDE, glide_ms),
            (VOICES, voices.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_go_down_to_nothing() {
        assert_eq!((linear(0.0), linear(SILENT_DB)), (1.0, 0.0));
        assert!((linear(20.0) - 10.0).abs() < 1e-5);
    }
}
