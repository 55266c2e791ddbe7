//! The figures of an audition in words, and for the card.

use std::fmt::Write;

use ondes_engine::model::card::Measure;

use super::{Audition, Compared, Distances};
use crate::evaluate::round;

impl Audition {
    /// Returns the figures in words, a line each, and what to do where an instrument is worse than
    /// simpler ones.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} notes played by MIDI, against the recordings:",
            self.notes
        );
        let mut line = |words: String| {
            let _ = write!(text, "\n  {words}");
        };
        line(match self.level_db {
            level if level.abs() < 2.0 => "as loud as your recordings".into(),
            level if level > 0.0 => format!("{level:.0} dB louder than your recordings"),
            level => format!("{:.0} dB softer than your recordings", -level),
        });
        line(times("attacks", self.attack_ms, "faster", "slower"));
        let Compared { recorded, played } = self.attack_treble_db;
        line(format!(
            "treble of the first 80 ms {played:.1} dB against the sustained sound, recorded {recorded:.1} dB"
        ));
        let (recorded, played) = self.colour_per_10_db;
        let how = match played {
            factor if factor < 1.05 => "soft notes as bright as loud ones".to_owned(),
            factor => format!("10 dB more are {:.0} % brighter", 100.0 * (factor - 1.0)),
        };
        line(match recorded {
            Some(factor) => format!("{how}, recorded {:.0} %", 100.0 * (factor - 1.0)),
            None => how,
        });
        if let Some(Compared { recorded, played }) = self.range_db {
            line(format!(
                "the level of a held note moves by {played:.1} dB, recorded {recorded:.1} dB"
            ));
        }
        if let Some(Compared { recorded, played }) = self.vibrato_cents {
            line(format!(
                "vibrato of {played:.0} cents, recorded {recorded:.0} cents"
            ));
        }
        let Compared { recorded, played } = self.noise_db;
        line(format!(
            "noise between partials {played:.0} dB, recorded {recorded:.0} dB"
        ));
        if let Some(release) = self.release_ms {
            line(times("releases", release, "shorter", "longer"));
        }
        for (what, unit, distances) in [
            ("first 80 ms", " dB", self.attack_distance_db),
            ("whole notes", "", self.distance),
        ] {
            let Distances {
                played,
                nearest,
                sawtooth,
            } = distances;
            let nearest = nearest.map_or_else(String::new, |nearest| {
                format!(", the nearest recording {nearest:.2}{unit}")
            });
            line(format!(
                "{what} are {played:.2}{unit} from the recordings{nearest}, a sawtooth {sawtooth:.2}{unit}"
            ));
        }
        text + &self.advice()
    }

    /// Returns what to do where an instrument is worse than simpler ones, a line each.
    fn advice(&self) -> String {
        let Distances {
            played,
            nearest,
            sawtooth,
        } = self.distance;
        let mut advice = String::new();
        if played > sawtooth {
            advice += "\nworse than a sawtooth: train for more steps, or look whether the pitches \
                       that `ondes-train data report` tells are right";
        } else if nearest.is_some_and(|nearest| played > 1.1 * nearest) {
            advice += "\nworse than the nearest recording: train for more steps, or with more notes \
                       between the recorded pitches";
        }
        advice
    }

    /// Returns the figures as measures for the card; the baseline is that of the recordings, or of
    /// the nearest one.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let measure = |name: &str, unit: &str, value: f64, baseline: Option<f64>| Measure {
            name: name.into(),
            unit: unit.into(),
            value: round(value),
            baseline: baseline.map(round),
        };
        let both =
            |name, unit, Compared { recorded, played }| measure(name, unit, played, Some(recorded));
        let attack = self.attack_distance_db;
        let mut measures = vec![
            measure("level above the recordings", "dB", self.level_db, None),
            both("time to 1 dB below the sustain", "ms", self.attack_ms),
            measure(
                "difference of the first 80 ms",
                "dB",
                attack.played,
                attack.nearest,
            ),
        ];
        measures.extend(
            self.range_db
                .map(|range| both("range of level within a note", "dB", range)),
        );
        measures.push(measure(
            "brightness for 10 dB",
            "×",
            self.colour_per_10_db.1,
            self.colour_per_10_db.0,
        ));
        measures.retain(|measure| measure.value.is_finite());
        measures
    }
}

/// Returns how two times compare, in words.
fn times(what: &str, Compared { recorded, played }: Compared, less: &str, more: &str) -> String {
    let how = match played / recorded {
        ratio if (0.77..1.3).contains(&ratio) => "as recorded".to_owned(),
        ratio if ratio < 1.0 => format!("{:.0} ms {less} than recorded", recorded - played),
        _ => format!("{:.0} ms {more} than recorded", played - recorded),
    };
    format!("{what} {how} ({played:.0} ms, recorded {recorded:.0} ms)")
}
