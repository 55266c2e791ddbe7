//! Selects the variant of a model: fixed, or the largest that the load allows.

use std::time::{Duration, Instant};

/// Selection among the variants of a model, from the base model down to the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// The base model.
    #[default]
    Full,
    /// The variant in the middle; of an even number the smaller one.
    Balanced,
    /// The smallest variant.
    Light,
    /// The base model; under load smaller variants, as long as necessary. Without a deadline
    /// ([`SessionController::set_non_realtime`](super::SessionController::set_non_realtime)) always
    /// the base model.
    Auto,
}

impl Quality {
    /// Returns the index of the selected variant among `variants`, the base model first; `None` if
    /// the load decides.
    pub(super) fn variant(self, variants: usize) -> Option<usize> {
        match self {
            Self::Full => Some(0),
            Self::Balanced => Some(variants / 2),
            Self::Light => Some(variants.saturating_sub(1)),
            Self::Auto => None,
        }
    }
}

/// Load above which a smaller variant is selected: the rest of the machine needs the remaining
/// time.
const MAX_LOAD: f32 = 0.8;
/// Expected load up to which a larger variant is selected.
const MAX_EXPECTED_LOAD: f64 = 0.5;
/// Time after a change in which the load, an average, settles.
const SETTLING_TIME: Duration = Duration::from_millis(400);
/// Time with a low load before a larger variant is tried; it doubles each time that the larger one
/// proves too heavy.
const PATIENCE: Duration = Duration::from_secs(4);
const MAX_PATIENCE: Duration = Duration::from_secs(128);
/// Time after which a larger variant has proved light enough.
const PROVEN_TIME: Duration = Duration::from_secs(20);

/// Selects smaller variants under load, and larger ones when the load is low.
#[derive(Debug)]
pub(super) struct QualityGovernor {
    /// Index of the selected variant; 0 is the base model.
    variant: usize,
    /// Time of the selection.
    since: Option<Instant>,
    /// Dropouts until the load had settled.
    dropouts: Option<u64>,
    /// Time since when the load would allow a larger variant.
    low_since: Option<Instant>,
    patience: Duration,
    /// True if the last change was to a larger variant.
    has_risen: bool,
}

/// Load at one moment.
pub(super) struct LoadSample {
    pub now: Instant,
    /// Share of the time that all processing on the thread takes.
    pub load: f32,
    /// Share of the time that the model takes.
    pub own_load: f32,
    /// Late blocks since the variant began.
    pub dropouts: u64,
    /// Cost of the next larger variant relative to the current one.
    pub growth: f64,
    /// Number of variants.
    pub variants: usize,
}

impl Default for QualityGovernor {
    /// Starts with the base model.
    fn default() -> Self {
        Self {
            variant: 0,
            since: None,
            dropouts: None,
            low_since: None,
            patience: PATIENCE,
            has_risen: false,
        }
    }
}

impl QualityGovernor {
    /// Returns the index of the selected variant.
    pub fn variant(&self) -> usize {
        self.variant
    }

    /// Processes the load of the selected variant. Returns true if the selection has changed.
    pub fn update(&mut self, sample: &LoadSample) -> bool {
        let since = *self.since.get_or_insert(sample.now);
        let age = sample.now.saturating_duration_since(since);
        if age < SETTLING_TIME {
            return false;
        }
        let is_late = sample.dropouts > *self.dropouts.get_or_insert(sample.dropouts);
        if is_late || sample.load > MAX_LOAD {
            let has_smaller = self.variant + 1 < sample.variants;
            if has_smaller {
                if self.has_risen && age < PROVEN_TIME {
                    self.patience = (2 * self.patience).min(MAX_PATIENCE);
                }
                self.select(self.variant + 1, false);
            }
            // The smallest variant counts its dropouts from here.
            (self.dropouts, self.low_since) = (
                if has_smaller {
                    None
                } else {
                    Some(sample.dropouts)
                },
                None,
            );
            return has_smaller;
        }
        if self.has_risen && age >= PROVEN_TIME {
            (self.has_risen, self.patience) = (false, PATIENCE);
        }
        let expected = f64::from(sample.load) + f64::from(sample.own_load) * (sample.growth - 1.0);
        if self.variant == 0 || expected > MAX_EXPECTED_LOAD {
            self.low_since = None;
            return false;
        }
        let low_since = *self.low_since.get_or_insert(sample.now);
        let rises = sample.now.saturating_duration_since(low_since) >= self.patience;
        if rises {
            self.select(self.variant - 1, true);
        }
        rises
    }

    fn select(&mut self, variant: usize, has_risen: bool) {
        *self = Self {
            variant,
            since: None,
            dropouts: None,
            low_since: None,
            patience: self.patience,
            has_risen,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Updates every 20 ms for `seconds` on a machine on which the base model causes a load of
    /// `base`, and each variant half of the one before. Returns the variant at the end of each
    /// second.
    fn watch(
        governor: &mut QualityGovernor,
        at: &mut Instant,
        seconds: u64,
        base: f32,
    ) -> Vec<usize> {
        let mut ends = Vec::new();
        for _ in 0..seconds {
            for _ in 0..50 {
                *at += Duration::from_millis(20);
                let load = base / (1 << governor.variant()) as f32;
                let dropouts = if load > 1.0 { u64::MAX } else { 0 };
                governor.update(&LoadSample {
                    now: *at,
                    load,
                    own_load: load,
                    dropouts,
                    growth: 2.0,
                    variants: 3,
                });
            }
            ends.push(governor.variant());
        }
        ends
    }

    #[test]
    fn each_quality_selects_its_variant() {
        let selected = |quality: Quality| [1, 2, 3, 4].map(|variants| quality.variant(variants));
        assert_eq!(selected(Quality::Full), [Some(0); 4]);
        assert_eq!(
            selected(Quality::Balanced),
            [Some(0), Some(1), Some(1), Some(2)]
        );
        assert_eq!(
            selected(Quality::Light),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!(selected(Quality::Auto), [None; 4]);
    }

    #[test]
    fn load_selects_smaller_variants_and_then_larger_ones() {
        let (mut governor, mut at) = (QualityGovernor::default(), Instant::now());
        assert_eq!(
            watch(&mut governor, &mut at, 5, 0.5),
            [0; 5],
            "the base model fits"
        );
        let ends = watch(&mut governor, &mut at, 3, 1.9);
        assert_eq!(ends[2], 2, "two steps down: {ends:?}");
        assert_eq!(
            watch(&mut governor, &mut at, 20, 1.9),
            [2; 20],
            "the next larger one would be too heavy"
        );
        let ends = watch(&mut governor, &mut at, 15, 0.4);
        assert_eq!(
            (ends[2], ends[14]),
            (2, 0),
            "up again, but not at once: {ends:?}"
        );
    }

    #[test]
    fn a_variant_that_proves_too_heavy_is_tried_less_often() {
        let (mut governor, mut at) = (QualityGovernor::default(), Instant::now());
        let (mut tries, mut waits) = (Vec::new(), 0);
        // The light variant promises a low load; the base model then takes most of the time.
        for step in 0..50 * 120 {
            at += Duration::from_millis(20);
            let load = if governor.variant() == 0 { 0.9 } else { 0.2 };
            let before = governor.variant();
            let sample = LoadSample {
                now: at,
                load,
                own_load: load,
                dropouts: 0,
                growth: 2.0,
                variants: 2,
            };
            if governor.update(&sample) && governor.variant() < before {
                tries.push((step - waits) / 50);
                waits = step;
            }
        }
        assert!(tries.len() >= 4, "{tries:?}");
        assert!(
            tries.windows(2).all(|pair| pair[1] > pair[0]),
            "each wait is longer: {tries:?}"
        );
    }

    #[test]
    fn a_dropout_counts_as_load() {
        let (mut governor, start) = (QualityGovernor::default(), Instant::now());
        let mut update = |ms: u64, dropouts| {
            let now = start + Duration::from_millis(ms);
            governor.update(&LoadSample {
                now,
                load: 0.1,
                own_load: 0.1,
                dropouts,
                growth: 4.0,
                variants: 2,
            })
        };
        assert!(
            ![update(0, 0), update(100, 7), update(500, 7), update(600, 7)].contains(&true),
            "dropouts while the load settles"
        );
        assert!(update(620, 8));
        assert!(!update(640, 0));
        assert!(
            !update(1_200, 3) && !update(1_300, 4),
            "there is no smaller variant"
        );
    }
}
