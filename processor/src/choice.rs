//! What some parameters choose between, and what the engine calls that.

use ondes_engine::chain::{OutputLevel, Placement};
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driver, Quality};

use crate::parameter::Choices;

/// Where the model runs: in the callback where it is cheap enough, else by the worker; in the callback, with no latency
/// added; by the worker thread, a block and 10 ms late.
pub const DRIVERS: Choices = Choices { ids: &["auto", "inline", "worker"], names: &["Auto", "Inline", "Worker"] };

/// How notes that overlap are played: as the model says; each has a voice of its own; one voice, which each note
/// strikes anew; one voice, which slurs.
pub const MODES: Choices =
    Choices { ids: &["model", "poly", "mono", "legato"], names: &["As made", "Poly", "Mono", "Legato"] };

/// What plays the model: notes, or a sound by its pitch and loudness.
pub const SOURCES: Choices = Choices { ids: &["notes", "input"], names: &["Notes", "Side-chain"] };

/// Where bass, middle and treble are turned.
pub const TONES: Choices = Choices { ids: &["after", "before"], names: &["After", "Before"] };

/// At how many times its rate an effect's network runs.
pub const OVERSAMPLINGS: Choices = Choices { ids: &["1x", "2x", "4x"], names: &["1×", "2×", "4×"] };

/// How much of a model plays that holds smaller sizes of itself: the whole, the middle, the smallest, or as much as there is time
/// for.
pub const QUALITIES: Choices =
    Choices { ids: &["full", "balanced", "light", "auto"], names: &["Full", "Balanced", "Light", "Auto"] };

/// What one of [`QUALITIES`] means.
#[must_use]
pub fn quality(value: f32) -> Quality {
    match value as usize {
        1 => Quality::Balanced,
        2 => Quality::Light,
        3 => Quality::Auto,
        _ => Quality::Full,
    }
}

/// How many times one of [`OVERSAMPLINGS`] means.
#[must_use]
pub fn oversampling(value: f32) -> usize {
    1 << (value as usize).min(OVERSAMPLINGS.ids.len() - 1)
}

/// How loud the output of a model is made.
pub const OUTPUT_LEVELS: Choices =
    Choices { ids: &["raw", "normalised", "calibrated"], names: &["Raw", "Normalised", "Calibrated"] };

/// What one of [`OUTPUT_LEVELS`] means.
#[must_use]
pub fn output_level(value: f32) -> OutputLevel {
    match value as usize {
        1 => OutputLevel::Normalised,
        2 => OutputLevel::Calibrated,
        _ => OutputLevel::Raw,
    }
}

/// Where one of [`TONES`] is.
#[must_use]
pub fn placement(value: f32) -> Placement {
    if value == 0.0 { Placement::After } else { Placement::Before }
}

/// The driver that one of [`DRIVERS`] means.
#[must_use]
pub fn driver(value: f32) -> Driver {
    match value as usize {
        1 => Driver::Inline,
        2 => Driver::Worker { latency: None },
        _ => Driver::Auto,
    }
}

/// The one of [`DRIVERS`] that comes nearest; none for what is never chosen.
#[must_use]
pub fn of_driver(driver: Driver) -> Option<f32> {
    match driver {
        Driver::Auto => Some(0.0),
        Driver::Inline => Some(1.0),
        Driver::Worker { .. } => Some(2.0),
        Driver::Offline => None,
    }
}

/// What one of [`SOURCES`] means.
#[must_use]
pub fn source(value: f32) -> Source {
    if value == 0.0 { Source::Notes } else { Source::Sound }
}

/// The one of [`SOURCES`] that means that.
#[must_use]
pub fn of_source(source: Source) -> f32 {
    match source {
        Source::Notes => 0.0,
        Source::Sound => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_lead_to_the_engine_and_back() {
        for place in 0..DRIVERS.ids.len() {
            assert_eq!(of_driver(driver(place as f32)), Some(place as f32), "{}", DRIVERS.ids[place]);
        }
        assert_eq!((of_driver(Driver::Offline), DRIVERS.ids[2]), (None, "worker"));
        assert_eq!(driver(2.0), Driver::Worker { latency: None });
        for place in 0..SOURCES.ids.len() {
            assert_eq!(of_source(source(place as f32)), place as f32, "{}", SOURCES.ids[place]);
        }
        assert_eq!([0.0, 1.0, 2.0, 9.0].map(oversampling), [1, 2, 4, 4]);
        let qualities = [Quality::Full, Quality::Balanced, Quality::Light, Quality::Auto];
        assert_eq!(([0.0, 1.0, 2.0, 3.0].map(quality), QUALITIES.ids[3]), (qualities, "auto"));
        let levels = [OutputLevel::Raw, OutputLevel::Normalised, OutputLevel::Calibrated];
        assert_eq!(([0.0, 1.0, 2.0].map(output_level), OUTPUT_LEVELS.ids[2]), (levels, "calibrated"));
        assert_eq!([placement(0.0), placement(1.0)], [Placement::After, Placement::Before]);
        assert_eq!((source(0.0), SOURCES.ids[0]), (Source::Notes, "notes"));
    }
}
