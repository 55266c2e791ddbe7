//! Schedules of the learning rate, each a file of its own: the share of the highest rate at a step.

mod cosine;
mod decay;
mod one_cycle;
mod plateau;

use anyhow::Context;
use serde::{Deserialize, Serialize};

pub use cosine::Cosine;
pub use decay::{Exponential, Polynomial, Step};
pub use one_cycle::OneCycle;
pub use plateau::{Plateau, PlateauState};

/// The highest rate throughout, which has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {}

/// Schedule and its settings, the table `[schedule]` of a configuration. All but one-cycle begin
/// with a linear warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ScheduleConfig {
    /// The highest rate throughout.
    Constant(Constant),
    /// A factor every so many steps.
    Step(Step),
    /// A constant factor from step to step.
    Exponential(Exponential),
    /// Half a cosine, once or with restarts.
    Cosine(Cosine),
    /// A power of the remaining share of the run.
    Polynomial(Polynomial),
    /// Up and down along cosines.
    OneCycle(OneCycle),
    /// A factor whenever the validation loss no longer falls.
    Plateau(Plateau),
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Cosine(Cosine::default())
    }
}

impl ScheduleConfig {
    /// Names of the schedules.
    pub const NAMES: [&str; 7] = [
        "constant",
        "step",
        "exponential",
        "cosine",
        "polynomial",
        "one-cycle",
        "plateau",
    ];

    /// Returns a schedule with default settings.
    ///
    /// # Errors
    /// Returns an error that lists the names if there is none of this name.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let table = toml::Table::from_iter([("name".to_owned(), toml::Value::from(name))]);
        table
            .try_into()
            .with_context(|| format!("schedule {name:?}"))
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error that names the field and its range.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Constant(_) => Ok(()),
            Self::Step(step) => step.check(),
            Self::Exponential(exponential) => exponential.check(),
            Self::Cosine(cosine) => cosine.check(),
            Self::Polynomial(polynomial) => polynomial.check(),
            Self::OneCycle(cycle) => cycle.check(),
            Self::Plateau(plateau) => plateau.check(),
        }
    }

    /// Returns the share of the highest learning rate at `step`, from 0, of a run of `steps`, of
    /// which `warm_up` are its beginning.
    #[must_use]
    pub fn share(&self, step: u64, steps: u64, warm_up: u64, plateau: &PlateauState) -> f64 {
        let rising = step < warm_up && !matches!(self, Self::OneCycle(_));
        if rising {
            return (step + 1) as f64 / warm_up as f64;
        }
        let (since, length) = (
            step - warm_up.min(step),
            steps.saturating_sub(warm_up).max(1),
        );
        let progress = (since as f64 / length as f64).min(1.0);
        match self {
            Self::Constant(_) => 1.0,
            Self::Step(decay) => decay.share(since),
            Self::Exponential(decay) => decay.share(since),
            Self::Cosine(cosine) => cosine.share(progress),
            Self::Polynomial(polynomial) => polynomial.share(progress),
            Self::OneCycle(cycle) => cycle.share(step as f64 / steps.max(1) as f64),
            Self::Plateau(_) => plateau.share(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(schedule: &ScheduleConfig, steps: u64, warm_up: u64) -> Vec<f64> {
        (0..=steps)
            .map(|step| schedule.share(step, steps, warm_up, &PlateauState::default()))
            .collect()
    }

    #[test]
    fn schedules_go_where_they_say() {
        let named = |name| ScheduleConfig::named(name).expect("a schedule");
        for name in ScheduleConfig::NAMES {
            let schedule = named(name);
            schedule.check().expect("defaults are allowed");
            let all = shares(&schedule, 100, 10);
            assert!(
                all.iter().all(|share| (0.0..=1.0 + 1e-12).contains(share)),
                "{name}: {all:?}"
            );
            assert!(
                (all[10..].iter().copied().fold(0.0, f64::max) - 1.0).abs() < 1e-9,
                "{name}: {all:?}"
            );
            if name != "one-cycle" {
                assert!(
                    (all[0] - 0.1).abs() < 1e-12 && (all[4] - 0.5).abs() < 1e-12,
                    "{name}: {all:?}"
                );
            }
        }
        let near = |value: f64, expected: f64| {
            assert!((value - expected).abs() < 1e-9, "{value}, not {expected}")
        };
        let cosine = shares(&named("cosine"), 110, 10);
        near(cosine[60], 0.01 + 0.99 * 0.5);
        near(cosine[110], 0.01);
        let restarts = ScheduleConfig::Cosine(Cosine {
            cycles: 2,
            cycle_factor: 3.0,
            ..Cosine::default()
        });
        let restarts = shares(&restarts, 80, 0);
        near(restarts[10], 0.01 + 0.99 * 0.5);
        near(restarts[20], 1.0);
        near(restarts[50], 0.01 + 0.99 * 0.5);
        let step = ScheduleConfig::Step(Step {
            every: 10,
            factor: 0.5,
        });
        assert_eq!(
            [9, 10, 20, 35].map(|at| shares(&step, 40, 0)[at]),
            [1.0, 0.5, 0.25, 0.125]
        );
        let exponential = ScheduleConfig::Exponential(Exponential { half_life: 10 });
        near(shares(&exponential, 40, 0)[30], 0.125);
        let polynomial = ScheduleConfig::Polynomial(Polynomial {
            power: 2.0,
            last: 0.0,
        });
        near(shares(&polynomial, 40, 0)[20], 0.25);
        let cycle = shares(&named("one-cycle"), 100, 10);
        near(cycle[0], 0.04);
        near(cycle[30], 1.0);
        near(cycle[100], 4e-6);
    }

    #[test]
    fn a_plateau_lowers_the_rate_after_its_patience() {
        let plateau = Plateau {
            factor: 0.5,
            patience: 2,
            threshold: 1e-3,
            last: 0.2,
        };
        let mut state = PlateauState::default();
        let mut shares = Vec::new();
        for loss in [1.0, 0.9, 0.8999, 0.9, 0.8, 0.8, 0.9, 0.8, 0.8, 0.8, 0.8] {
            state.validated(&plateau, loss);
            shares.push(state.share());
        }
        assert_eq!(
            shares,
            [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2]
        );
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let error = |text: &str| {
            let config: Result<ScheduleConfig, _> = toml::from_str(text);
            match config {
                Ok(config) => config.check().expect_err("a mistake").to_string(),
                Err(error) => error.message().to_owned(),
            }
        };
        assert!(error("name = \"steep\"").contains("one-cycle"));
        assert!(error("name = \"cosine\"\ncolour = 1").contains("colour"));
        for (text, field) in [
            ("name = \"step\"\nevery = 0", "schedule.every"),
            ("name = \"step\"\nfactor = 2.0", "schedule.factor"),
            (
                "name = \"exponential\"\nhalf_life = 0",
                "schedule.half_life",
            ),
            ("name = \"cosine\"\nlast = -1.0", "schedule.last"),
            ("name = \"cosine\"\ncycles = 0", "schedule.cycles"),
            ("name = \"polynomial\"\npower = 0.0", "schedule.power"),
            ("name = \"one-cycle\"\npeak = 1.5", "schedule.peak"),
            ("name = \"plateau\"\npatience = 0", "schedule.patience"),
        ] {
            assert!(error(text).contains(field), "{text}: {}", error(text));
        }
    }
}
