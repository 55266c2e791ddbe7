//! Warnings when a run waits for data, or becomes slower.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::metrics::Line;

/// Share of a new duration in the mean that later ones are compared with.
const MEAN_SHARE: f64 = 0.05;
/// Lines of the log before the first comparison: the first steps allocate memory.
const FIRST_LINES: u32 = 5;

/// Thresholds; without one there is no warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlertsConfig {
    /// Share of a step spent waiting for data, such as "5%".
    #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    pub data_wait: Option<f64>,
    /// Drop of the steps per second below their mean so far, such as "20%".
    #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    pub throughput_drop: Option<f64>,
}

/// Share as a number from 0 to 1, or as a text in percent.
#[derive(Deserialize)]
#[serde(untagged)]
enum Share {
    Number(f64),
    Text(String),
}

fn share<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<f64>, D::Error> {
    let expected = || serde::de::Error::custom("an alert must be a percentage such as \"5%\", or a share from 0 to 1");
    let share = match Share::deserialize(source).map_err(|_| expected())? {
        Share::Number(share) => Some(share),
        Share::Text(text) => {
            text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok()).map(|percent| percent / 100.0)
        }
    };
    share.filter(|share| (0.0..=1.0).contains(share)).map(Some).ok_or_else(expected)
}

impl AlertsConfig {
    /// Checks the thresholds.
    ///
    /// # Errors
    /// Returns an error that names the one out of range.
    pub fn check(&self) -> anyhow::Result<()> {
        let shares = [("data_wait", self.data_wait), ("throughput_drop", self.throughput_drop)];
        for (name, share) in shares {
            ensure!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "alerts.{name} must be 0 to 100 %");
        }
        Ok(())
    }
}

/// Compares each line of the log with the thresholds.
pub struct Alerts {
    config: AlertsConfig,
    /// Mean duration of a step, seconds.
    mean: f64,
    lines: u32,
    /// Exceeded at the last line: data wait, duration of a step. A warning is not repeated until all was well again.
    exceeded: [bool; 2],
}

impl Alerts {
    /// Starts to compare.
    #[must_use]
    pub fn new(config: AlertsConfig) -> Self {
        Self { config, mean: 0.0, lines: 0, exceeded: [false; 2] }
    }

    /// Returns a warning in one line for each threshold that a line exceeds and the one before did not.
    pub fn check(&mut self, line: &Line) -> Vec<String> {
        let (Some(seconds), Some(wait)) = (line.seconds, line.data_wait) else { return Vec::new() };
        self.lines += 1;
        if self.lines <= FIRST_LINES {
            self.mean = if self.lines == 1 { seconds } else { self.mean.min(seconds) };
            return Vec::new();
        }
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let drop = 1.0 - self.mean / seconds.max(1e-12);
        let step = line.step;
        let alerts = [
            self.config.data_wait.filter(|bound| wait > *bound).map(|bound| {
                format!(
                    "step {step}: {} of the time is spent waiting for data, more than {}",
                    percent(wait),
                    percent(bound)
                )
            }),
            self.config.throughput_drop.filter(|bound| drop > *bound).map(|bound| {
                format!("step {step}: steps per second fell by {}, more than {}", percent(drop), percent(bound))
            }),
        ];
        if alerts[1].is_none() {
            self.mean += MEAN_SHARE * (seconds - self.mean);
        }
        let before = std::mem::replace(&mut self.exceeded, [alerts[0].is_some(), alerts[1].is_some()]);
        alerts.into_iter().zip(before).filter_map(|(alert, before)| alert.filter(|_| !before)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_told_once_until_all_is_well_again() {
        let config: AlertsConfig = toml::from_str("data_wait = \"5%\"\nthroughput_drop = 0.2").expect("thresholds");
        assert_eq!(config, AlertsConfig { data_wait: Some(0.05), throughput_drop: Some(0.2) });
        let mut alerts = Alerts::new(config);
        let mut told = |seconds: f64, wait: f64| {
            alerts.check(&Line { seconds: Some(seconds), data_wait: Some(wait), step: 7, ..Line::default() })
        };
        for _ in 0..10 {
            assert!(told(0.1, 0.01).is_empty());
        }
        assert_eq!(told(0.11, 0.3), ["step 7: 30.0 % of the time is spent waiting for data, more than 5.0 %"]);
        assert!(told(0.11, 0.3).is_empty());
        assert!(told(0.11, 0.01).is_empty());
        assert_eq!(told(0.11, 0.06).len(), 1);
        assert!(told(0.2, 0.06)[0].starts_with("step 7: steps per second fell by 49"));
        assert!(told(0.2, 0.06).is_empty(), "slow steps do not become the measure");
        for wrong in ["data_wait = \"5\"", "data_wait = \"500%\"", "throughput_drop = -1.0", "data_wait = true"] {
            let error = toml::from_str::<AlertsConfig>(wrong).expect_err(wrong).to_string();
            assert!(error.contains("an alert must be a percentage"), "{error}");
        }
    }
}
