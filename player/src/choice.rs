//! Options of the choice parameters, and their counterparts in the engine.

use ondes_engine::chain::{OutputLevel, TonePosition};
use ondes_engine::instrument::MpeZone;
use ondes_engine::pipeline::{ControlSource, InputChannels};
use ondes_engine::realtime::{Driver, Quality};

/// Options of a choice parameter. Both lists are in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choices {
    /// Identifiers in projects and presets; they never change.
    pub ids: &'static [&'static str],
    /// Labels.
    pub names: &'static [&'static str],
}

/// Thread that runs the model: chosen by the model's cost; the audio callback, without added
/// latency; a background thread, one block and 10 ms late.
pub const DRIVERS: Choices = Choices {
    ids: &["auto", "inline", "worker"],
    names: &["Automatic", "Audio thread", "Background"],
};

/// Voice mode: as the model says; polyphonic; monophonic, each note retriggers; monophonic, legato.
pub const MODES: Choices = Choices {
    ids: &["model", "poly", "mono", "legato"],
    names: &["Model default", "Poly", "Mono", "Legato"],
};

/// Control source of the model: MIDI, or pitch and loudness of an audio signal.
pub const SOURCES: Choices = Choices {
    ids: &["notes", "input"],
    names: &["MIDI", "Side-chain"],
};

/// MPE zone of the MIDI that plays an instrument: as it says itself, or one of all channels.
pub const MPE_ZONES: Choices = Choices {
    ids: &["sent", "lower", "upper"],
    names: &["As sent", "Lower zone", "Upper zone"],
};

/// Returns the zone for a value of [`MPE_ZONES`].
#[must_use]
pub fn mpe_zone(value: f32) -> Option<MpeZone> {
    match value as usize {
        1 => Some(MpeZone::Lower),
        2 => Some(MpeZone::Upper),
        _ => None,
    }
}

/// Input of an effect that controls an instrument.
pub const CONTROL_INPUTS: Choices = Choices {
    ids: &["track", "side_chain"],
    names: &["Track", "Side-chain"],
};

/// Position of the tone control, relative to the model.
pub const TONES: Choices = Choices {
    ids: &["after", "before"],
    names: &["After", "Before"],
};

/// Oversampling factor of an effect's network; the first is that of the model.
pub const OVERSAMPLINGS: Choices = Choices {
    ids: &["auto", "1x", "2x", "4x", "8x"],
    names: &["Automatic", "1×", "2×", "4×", "8×"],
};

/// Part of a stereo input that an effect or a codec processes: both channels, their mean, or the
/// left one.
pub const CHANNELS: Choices = Choices {
    ids: &["stereo", "mono", "left"],
    names: &["Stereo", "Mono", "Left"],
};

/// Returns the channels for a value of [`CHANNELS`].
#[must_use]
pub fn channels(value: f32) -> InputChannels {
    match value as usize {
        1 => InputChannels::Mono,
        2 => InputChannels::Left,
        _ => InputChannels::Stereo,
    }
}

/// Variant of a model that holds smaller ones: the full network, a balanced one, the smallest, or
/// the largest that the machine can run.
pub const QUALITIES: Choices = Choices {
    ids: &["full", "balanced", "light", "auto"],
    names: &["Full", "Balanced", "Light", "Automatic"],
};

/// Returns the quality for a value of [`QUALITIES`].
#[must_use]
pub fn quality(value: f32) -> Quality {
    match value as usize {
        1 => Quality::Balanced,
        2 => Quality::Light,
        3 => Quality::Auto,
        _ => Quality::Full,
    }
}

/// Returns the factor for a value of [`OVERSAMPLINGS`]; `None` for that of the model.
#[must_use]
pub fn oversampling(value: f32) -> Option<usize> {
    let place = (value as usize).min(OVERSAMPLINGS.ids.len() - 1);
    Some(1 << place.checked_sub(1)?)
}

/// Output level of an effect.
pub const OUTPUT_LEVELS: Choices = Choices {
    ids: &["raw", "normalised", "calibrated"],
    names: &["Raw", "Normalised", "Calibrated"],
};

/// Returns the output level for a value of [`OUTPUT_LEVELS`].
#[must_use]
pub fn output_level(value: f32) -> OutputLevel {
    match value as usize {
        1 => OutputLevel::Normalised,
        2 => OutputLevel::Calibrated,
        _ => OutputLevel::Raw,
    }
}

/// Returns the position for a value of [`TONES`].
#[must_use]
pub fn tone_position(value: f32) -> TonePosition {
    if value == 0.0 {
        TonePosition::After
    } else {
        TonePosition::Before
    }
}

/// Returns the driver for a value of [`DRIVERS`].
#[must_use]
pub fn driver(value: f32) -> Driver {
    match value as usize {
        1 => Driver::Inline,
        2 => Driver::Worker { latency: None },
        _ => Driver::Auto,
    }
}

/// Returns the value of [`DRIVERS`] for a driver; `None` for [`Driver::Offline`], which is not
/// offered.
#[must_use]
pub fn driver_value(driver: Driver) -> Option<f32> {
    match driver {
        Driver::Auto => Some(0.0),
        Driver::Inline => Some(1.0),
        Driver::Worker { .. } => Some(2.0),
        Driver::Offline => None,
    }
}

/// Returns the control source for a value of [`SOURCES`].
#[must_use]
pub fn source(value: f32) -> ControlSource {
    if value == 0.0 {
        ControlSource::Notes
    } else {
        ControlSource::AudioInput
    }
}

/// Returns the value of [`SOURCES`] for a control source.
#[must_use]
pub fn source_value(source: ControlSource) -> f32 {
    match source {
        ControlSource::Notes => 0.0,
        ControlSource::AudioInput => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_lead_to_the_engine_and_back() {
        for place in 0..DRIVERS.ids.len() {
            assert_eq!(
                driver_value(driver(place as f32)),
                Some(place as f32),
                "{}",
                DRIVERS.ids[place]
            );
        }
        assert_eq!(
            (driver_value(Driver::Offline), DRIVERS.ids[2]),
            (None, "worker")
        );
        assert_eq!(driver(2.0), Driver::Worker { latency: None });
        for place in 0..SOURCES.ids.len() {
            assert_eq!(
                source_value(source(place as f32)),
                place as f32,
                "{}",
                SOURCES.ids[place]
            );
        }
        assert_eq!(
            [0.0, 1.0, 2.0, 9.0].map(oversampling),
            [None, Some(1), Some(2), Some(8)]
        );
        let qualities = [
            Quality::Full,
            Quality::Balanced,
            Quality::Light,
            Quality::Auto,
        ];
        assert_eq!(
            ([0.0, 1.0, 2.0, 3.0].map(quality), QUALITIES.ids[3]),
            (qualities, "auto")
        );
        let sides = [
            InputChannels::Stereo,
            InputChannels::Mono,
            InputChannels::Left,
        ];
        assert_eq!(
            ([0.0, 1.0, 2.0].map(channels), CHANNELS.ids[1]),
            (sides, "mono")
        );
        let levels = [
            OutputLevel::Raw,
            OutputLevel::Normalised,
            OutputLevel::Calibrated,
        ];
        assert_eq!(
            ([0.0, 1.0, 2.0].map(output_level), OUTPUT_LEVELS.ids[2]),
            (levels, "calibrated")
        );
        assert_eq!(
            [tone_position(0.0), tone_position(1.0)],
            [TonePosition::After, TonePosition::Before]
        );
        assert_eq!(
            (source(0.0), SOURCES.ids[0]),
            (ControlSource::Notes, "notes")
        );
    }
}
