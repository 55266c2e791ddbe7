//! Sweeps: settings to try, and when a trial falls behind the others.

use anyhow::{Context, ensure};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use toml::{Table, Value};

/// Trials whose validations a trial is compared with, at least.
const MIN_OTHERS: usize = 3;

/// Values of a field of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Path of the field, such as `training.learning_rate`.
    pub field: String,
    /// Values to choose from.
    pub values: Values,
}

/// Values to choose from.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Each of these.
    List(Vec<Value>),
    /// Any between these, on a logarithmic scale if both are above 0; whole if both are.
    Range(f64, f64, bool),
}

impl Variation {
    /// Parses `FIELD=VALUE,VALUE` or `FIELD=LOW..HIGH`. Values are those of TOML; texts need no
    /// quotes.
    ///
    /// # Errors
    /// Returns what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} must be FIELD=VALUE,VALUE or FIELD=LOW..HIGH");
        let (field, values) = text.split_once('=').ok_or_else(wrong)?;
        let field = field.trim().to_owned();
        if field.is_empty() || values.trim().is_empty() {
            return Err(wrong());
        }
        if let Some((low, high)) = values.split_once("..") {
            let number = |text: &str| {
                text.trim()
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
            };
            let (Some(first), Some(last)) = (number(low), number(high)) else {
                return Err(wrong());
            };
            if first >= last {
                return Err(format!("{text:?}: {low} must be below {high}"));
            }
            let whole = [low, high]
                .iter()
                .all(|text| text.trim().parse::<i64>().is_ok());
            return Ok(Self {
                field,
                values: Values::Range(first, last, whole),
            });
        }
        let values = values
            .split(',')
            .map(|value| parse_value(value.trim()))
            .collect();
        Ok(Self {
            field,
            values: Values::List(values),
        })
    }
}

/// Parses a TOML value; anything else is a string.
fn parse_value(text: &str) -> Value {
    let table = toml::from_str::<Table>(&format!("value = {text}")).ok();
    table
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::from(text))
}

/// Settings of a trial: fields with their values.
pub type Settings = Vec<(String, Value)>;

/// Returns all combinations of listed values.
///
/// # Errors
/// Returns an error if a variation is a range.
pub fn grid(variations: &[Variation]) -> anyhow::Result<Vec<Settings>> {
    let mut all: Vec<Settings> = vec![Vec::new()];
    for variation in variations {
        let Values::List(values) = &variation.values else {
            anyhow::bail!(
                "{} is a range; use --random, or list its values",
                variation.field
            );
        };
        let with = |settings: &Settings| {
            let settings = settings.clone();
            values.iter().map(move |value| {
                [
                    settings.clone(),
                    vec![(variation.field.clone(), value.clone())],
                ]
                .concat()
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// Returns random settings for `trials` trials; equal seeds give equal settings.
#[must_use]
pub fn random(variations: &[Variation], trials: usize, seed: u64) -> Vec<Settings> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut value = |values: &Values| match values {
        Values::List(values) => values[random.random_range(0..values.len())].clone(),
        Values::Range(low, high, whole) => {
            let share: f64 = random.random();
            let number = if *low > 0.0 {
                low * (high / low).powf(share)
            } else {
                low + share * (high - low)
            };
            if *whole {
                Value::from(number.round() as i64)
            } else {
                Value::from(number)
            }
        }
    };
    let mut settings = || {
        variations
            .iter()
            .map(|own| (own.field.clone(), value(&own.values)))
            .collect()
    };
    (0..trials).map(|_| settings()).collect()
}

/// Changes a field of a configuration, such as `training.learning_rate`.
///
/// # Errors
/// Returns an error if the path leads through something that is no table.
pub fn set(config: &mut Table, field: &str, value: &Value) -> anyhow::Result<()> {
    let mut table = config;
    let mut names: Vec<&str> = field.split('.').collect();
    let last = names.pop().context("a field has a name")?;
    for name in names {
        let next = table
            .entry(name)
            .or_insert_with(|| Value::Table(Table::new()));
        table = next
            .as_table_mut()
            .with_context(|| format!("{field}: {name:?} is no table"))?;
    }
    ensure!(
        !last.is_empty(),
        "{field}: the name of the field is missing"
    );
    table.insert(last.to_owned(), value.clone());
    Ok(())
}

/// Validation losses of a trial: steps and losses.
pub type Curve = Vec<(u64, f64)>;

/// Tells whether a trial falls behind: its best loss so far is worse than the median of the others'
/// bests up to the same step (Golovin et al., "Google Vizier: a service for black-box
/// optimization", KDD 2017).
#[must_use]
pub fn falls_behind(own: &Curve, others: &[Curve]) -> bool {
    let best = |curve: &Curve, until: u64| {
        curve
            .iter()
            .filter(|(step, _)| *step <= until)
            .map(|(_, loss)| *loss)
            .min_by(f64::total_cmp)
    };
    let Some(&(step, _)) = own.last() else {
        return false;
    };
    // Only those that have come as far.
    let reached = others
        .iter()
        .filter(|curve| curve.last().is_some_and(|(last, _)| *last >= step));
    let mut bests: Vec<f64> = reached.filter_map(|curve| best(curve, step)).collect();
    if bests.len() < MIN_OTHERS {
        return false;
    }
    bests.sort_by(f64::total_cmp);
    let median = f64::midpoint(bests[(bests.len() - 1) / 2], bests[bests.len() / 2]);
    best(own, step).is_some_and(|best| best > median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variations(texts: &[&str]) -> Vec<Variation> {
        texts
            .iter()
            .map(|text| Variation::parse(text).expect("a variation"))
            .collect()
    }

    #[test]
    fn a_grid_has_all_combinations_and_random_values_lie_in_their_ranges() {
        let both = grid(&variations(&[
            "training.learning_rate=1e-3,2e-3",
            "optimizer.name=adamw,lamb,sgd",
        ]));
        let both = both.expect("a grid");
        assert_eq!(both.len(), 6);
        assert_eq!(
            both[1][0],
            ("training.learning_rate".to_owned(), Value::from(1e-3))
        );
        assert_eq!(
            both[1][1],
            ("optimizer.name".to_owned(), Value::from("lamb"))
        );
        let ranges = variations(&[
            "training.learning_rate=1e-4..1e-2",
            "training.batch=4..32",
            "training.ema=0,0.999",
        ]);
        assert!(
            grid(&ranges)
                .expect_err("a range")
                .to_string()
                .contains("--random")
        );
        let trials = random(&ranges, 200, 3);
        assert_eq!(trials, random(&ranges, 200, 3));
        let rates: Vec<f64> = trials
            .iter()
            .filter_map(|trial| trial[0].1.as_float())
            .collect();
        assert!(rates.len() == 200 && rates.iter().all(|rate| (1e-4..=1e-2).contains(rate)));
        let low = rates.iter().filter(|rate| **rate < 1e-3).count();
        assert!(
            (70..130).contains(&low),
            "on a logarithmic scale half of them: {low}"
        );
        assert!(trials.iter().all(|trial| {
            trial[1]
                .1
                .as_integer()
                .is_some_and(|batch| (4..=32).contains(&batch))
        }));
        for wrong in ["training.batch", "=3", "a=", "a=3..2", "a=x..2"] {
            assert!(Variation::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fields_are_set_where_they_are() {
        let mut config: Table =
            toml::from_str("name = \"A\"\n[training]\nsteps = 3\n").expect("TOML");
        set(&mut config, "training.steps", &Value::from(5)).expect("a field");
        set(&mut config, "optimizer.name", &Value::from("sgd")).expect("a field");
        assert_eq!(config["training"]["steps"].as_integer(), Some(5));
        assert_eq!(config["optimizer"]["name"].as_str(), Some("sgd"));
        assert!(
            set(&mut config, "name.first", &Value::from(1))
                .expect_err("no table")
                .to_string()
                .contains("no table")
        );
    }

    #[test]
    fn a_trial_behind_the_median_stops() {
        let curve = |losses: &[f64]| -> Curve {
            losses
                .iter()
                .enumerate()
                .map(|(index, loss)| (10 * (index as u64 + 1), *loss))
                .collect()
        };
        let others = [
            curve(&[1.0, 0.5, 0.2]),
            curve(&[0.9, 0.6, 0.3]),
            curve(&[0.8, 0.7, 0.4]),
        ];
        assert!(falls_behind(&curve(&[1.0, 0.65]), &others));
        assert!(!falls_behind(&curve(&[1.0, 0.55]), &others));
        assert!(
            !falls_behind(&curve(&[0.1, 0.9]), &others),
            "its best counts"
        );
        assert!(
            !falls_behind(&curve(&[1.0, 0.9]), &others[..2]),
            "there are too few others"
        );
        assert!(
            !falls_behind(&curve(&[9.0, 9.0, 9.0, 9.0]), &others),
            "none has come as far"
        );
        assert!(!falls_behind(&Vec::new(), &others));
    }
}
