//! Warnings when a run waits for data, becomes slower, worse or too large, and a command that each
//! of them runs.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::log_line::LogLine;
use crate::byte_size;

/// Share of a new value in the means that later ones are compared with.
const MEAN_SHARE: f64 = 0.05;
/// Lines of the log before the first comparison: the first steps allocate memory.
const FIRST_LINES: u32 = 5;
/// Gradients before the first comparison.
const FIRST_GRADIENTS: u32 = 20;

/// Thresholds; without one there is no warning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlertsConfig {
    /// Share of a step spent waiting for data, such as "5%".
    #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    pub data_wait: Option<f64>,
    /// Drop of the steps per second below their mean so far, such as "20%".
    #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    pub throughput_drop: Option<f64>,
    /// Rise of the validation loss above its least so far, such as "10%".
    #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    pub validation_rise: Option<f64>,
    /// Norm of the gradient before clipping, such as 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Norm of the gradient relative to its mean so far, such as 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_rise: Option<f64>,
    /// Memory of the process, such as "8G".
    #[serde(
        deserialize_with = "byte_size::some_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub memory: Option<u64>,
    /// Command that each warning runs, by the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Share as a number from 0 to 1, or as a text in percent.
#[derive(Deserialize)]
#[serde(untagged)]
enum Share {
    Number(f64),
    Text(String),
}

fn share<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<f64>, D::Error> {
    let expected = || {
        serde::de::Error::custom(
            "an alert must be a percentage such as \"5%\", or a share from 0 to 1",
        )
    };
    let share = match Share::deserialize(source).map_err(|_| expected())? {
        Share::Number(share) => Some(share),
        Share::Text(text) => text
            .strip_suffix('%')
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .map(|percent| percent / 100.0),
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .map(Some)
        .ok_or_else(expected)
}

impl AlertsConfig {
    /// Checks the thresholds.
    ///
    /// # Errors
    /// Returns an error that names the one out of range.
    pub fn check(&self) -> anyhow::Result<()> {
        let shares = [
            ("data_wait", self.data_wait),
            ("throughput_drop", self.throughput_drop),
            ("validation_rise", self.validation_rise),
        ];
        for (name, share) in shares {
            ensure!(
                share.is_none_or(|share| (0.0..=1.0).contains(&share)),
                "alerts.{name} must be 0 to 100 %"
            );
        }
        let norm = self
            .gradient_norm
            .is_none_or(|norm| norm > 0.0 && norm.is_finite());
        ensure!(norm, "alerts.gradient_norm must be above 0");
        let rise = self
            .gradient_rise
            .is_none_or(|rise| rise > 1.0 && rise.is_finite());
        ensure!(rise, "alerts.gradient_rise must be above 1");
        Ok(())
    }

    /// Sets a threshold from a text such as `validation_rise=10%`.
    ///
    /// # Errors
    /// Returns an error if there is no such threshold, or its value is wrong.
    pub fn set(&mut self, text: &str) -> anyhow::Result<()> {
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("--alert {text:?} must be NAME=VALUE"))?;
        let mut table = toml::Table::try_from(&*self)?;
        let number = value.trim().parse::<f64>().ok();
        table.insert(
            name.trim().to_owned(),
            number.map_or_else(|| toml::Value::from(value.trim()), toml::Value::from),
        );
        if name.trim() == "memory" {
            let bytes = byte_size::parse_bytes(value.trim()).map_err(anyhow::Error::msg)?;
            table.insert("memory".to_owned(), toml::Value::try_from(bytes)?);
        }
        let set: Self = table.try_into().map_err(|error: toml::de::Error| {
            anyhow::anyhow!("--alert {text:?}: {}", error.message().replace('\n', " "))
        })?;
        set.check()?;
        *self = set;
        Ok(())
    }

    /// Sets the command, and thresholds if there are none: 10 % more validation loss, ten times the
    /// mean gradient, nine tenths of the bound on memory or of the machine's free memory.
    pub fn set_command(&mut self, command: &str, bound: Option<u64>) {
        if (Self {
            command: None,
            ..self.clone()
        }) == Self::default()
        {
            let memory = bound
                .or_else(super::memory::available)
                .map(|bytes| bytes / 10 * 9);
            *self = Self {
                validation_rise: Some(0.1),
                gradient_rise: Some(10.0),
                memory,
                ..Self::default()
            };
        }
        self.command = Some(command.to_owned());
    }
}

/// Warning.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// Name of the threshold.
    pub name: &'static str,
    /// Steps that are done.
    pub step: u64,
    /// Value that exceeds the threshold.
    pub value: f64,
    /// Threshold.
    pub bound: f64,
    /// Sentence for people.
    pub text: String,
}

impl Alert {
    /// Runs a command by the shell, with the warning in its environment, and does not wait for it.
    ///
    /// # Errors
    /// Returns an error if there is no shell.
    pub fn run(&self, command: &str, log: &std::path::Path) -> anyhow::Result<()> {
        let mut shell = if cfg!(windows) {
            Command::new("cmd")
        } else {
            Command::new("sh")
        };
        shell
            .arg(if cfg!(windows) { "/C" } else { "-c" })
            .arg(command)
            .stdin(Stdio::null());
        shell
            .env("ONDES_ALERT", self.name)
            .env("ONDES_ALERT_TEXT", &self.text)
            .env("ONDES_STEP", self.step.to_string());
        shell
            .env("ONDES_ALERT_VALUE", self.value.to_string())
            .env("ONDES_ALERT_BOUND", self.bound.to_string());
        shell.env("ONDES_METRICS", std::path::absolute(log)?);
        let mut child = shell
            .spawn()
            .context("the command of the alerts cannot be run")?;
        let command = command.to_owned();
        std::thread::spawn(move || match child.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                eprintln!("warning: the command of the alerts ends with {status}: {command}")
            }
            Err(error) => eprintln!("warning: the command of the alerts: {error}"),
        });
        Ok(())
    }
}

/// Compares what happens with the thresholds. A warning is not repeated until all was well again.
pub struct Alerts {
    config: AlertsConfig,
    /// Mean duration of a step, seconds, and lines so far.
    duration: (f64, u32),
    /// Mean norm of the gradient, and gradients so far.
    gradient: (f64, u32),
    /// Least validation loss.
    best: f64,
    /// Names of the thresholds that are exceeded now.
    exceeded: Vec<&'static str>,
}

impl Alerts {
    /// Starts to compare.
    #[must_use]
    pub fn new(config: AlertsConfig) -> Self {
        Self {
            config,
            duration: (0.0, 0),
            gradient: (0.0, 0),
            best: f64::INFINITY,
            exceeded: Vec::new(),
        }
    }

    /// Returns the command that each warning runs.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.config.command.as_deref()
    }

    /// Returns a warning if a value exceeds its threshold and did not before.
    fn compare(
        &mut self,
        name: &'static str,
        step: u64,
        value: f64,
        bound: Option<f64>,
        text: impl FnOnce(f64) -> String,
    ) -> Option<Alert> {
        let bound = bound?;
        let before = self.exceeded.iter().position(|known| *known == name);
        match (before, value.is_nan() || value > bound) {
            (None, true) => {
                self.exceeded.push(name);
                Some(Alert {
                    name,
                    step,
                    value,
                    bound,
                    text: format!("step {step}: {}", text(bound)),
                })
            }
            (Some(index), false) => {
                self.exceeded.swap_remove(index);
                None
            }
            _ => None,
        }
    }

    /// Compares a line of the log, and the memory of the process, bytes.
    pub fn check(&mut self, line: &LogLine, memory: u64) -> Vec<Alert> {
        let step = line.step;
        let gigabytes = |bytes: f64| bytes / 1e9;
        let bound = self.config.memory.map(|bytes| bytes as f64);
        let memory = self.compare("memory", step, memory as f64, bound, |bound| {
            format!(
                "the process takes {:.2} GB, more than {:.2} GB",
                gigabytes(memory as f64),
                gigabytes(bound)
            )
        });
        memory.into_iter().chain(self.check_speed(line)).collect()
    }

    fn check_speed(&mut self, line: &LogLine) -> Vec<Alert> {
        let (Some(seconds), Some(wait)) = (line.seconds, line.data_wait) else {
            return Vec::new();
        };
        let (mean, lines) = &mut self.duration;
        *lines += 1;
        if *lines <= FIRST_LINES {
            *mean = if *lines == 1 {
                seconds
            } else {
                mean.min(seconds)
            };
            return Vec::new();
        }
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let drop = 1.0 - *mean / seconds.max(1e-12);
        if self
            .config
            .throughput_drop
            .is_none_or(|bound| drop <= bound)
        {
            *mean += MEAN_SHARE * (seconds - *mean);
        }
        let waits = self.compare(
            "data_wait",
            line.step,
            wait,
            self.config.data_wait,
            |bound| {
                format!(
                    "{} of the time is spent waiting for data, more than {}",
                    percent(wait),
                    percent(bound)
                )
            },
        );
        let drops = self.compare(
            "throughput_drop",
            line.step,
            drop,
            self.config.throughput_drop,
            |bound| {
                format!(
                    "steps per second fell by {}, more than {}",
                    percent(drop),
                    percent(bound)
                )
            },
        );
        waits.into_iter().chain(drops).collect()
    }

    /// Compares the norm of a step's gradient; 0 for a step without one.
    pub fn check_gradient(&mut self, step: u64, norm: f64) -> Vec<Alert> {
        if norm == 0.0 {
            return Vec::new();
        }
        let (mean, count) = self.gradient;
        let is_first = count < FIRST_GRADIENTS;
        let rise = if is_first {
            1.0
        } else {
            norm / mean.max(1e-300)
        };
        let norms = self.compare(
            "gradient_norm",
            step,
            norm,
            self.config.gradient_norm,
            |bound| format!("the norm of the gradient is {norm:.3}, above {bound}"),
        );
        let rises = self.compare("gradient_rise", step, rise, self.config.gradient_rise, |bound| {
            format!("the norm of the gradient is {norm:.3}, {rise:.1} times its mean, more than {bound} times")
        });
        if norm.is_finite() && self.config.gradient_rise.is_none_or(|bound| rise <= bound) {
            let share = MEAN_SHARE.max(1.0 / f64::from(count + 1));
            self.gradient = (mean + share * (norm - mean), count.saturating_add(1));
        }
        norms.into_iter().chain(rises).collect()
    }

    /// Compares a validation loss.
    pub fn check_validation(&mut self, step: u64, loss: f64) -> Vec<Alert> {
        let best = self.best;
        self.best = best.min(loss);
        if !best.is_finite() {
            return Vec::new();
        }
        let rise = (loss - best) / best.abs().max(1e-300);
        let alert = self.compare("validation_rise", step, rise, self.config.validation_rise, |bound| {
            let [rise, bound] = [rise, bound].map(|share| 100.0 * share);
            format!("the validation loss is {loss:.5}, {rise:.1} % above its least, {best:.5}: more than {bound:.1} %")
        });
        alert.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_told_once_until_all_is_well_again() {
        let config: AlertsConfig =
            toml::from_str("data_wait = \"5%\"\nthroughput_drop = 0.2").expect("thresholds");
        let expected = AlertsConfig {
            data_wait: Some(0.05),
            throughput_drop: Some(0.2),
            ..AlertsConfig::default()
        };
        assert_eq!(config, expected);
        let mut alerts = Alerts::new(config);
        let mut told = |seconds: f64, wait: f64| -> Vec<String> {
            let line = LogLine {
                seconds: Some(seconds),
                data_wait: Some(wait),
                step: 7,
                ..LogLine::default()
            };
            alerts
                .check(&line, 0)
                .into_iter()
                .map(|alert| alert.text)
                .collect()
        };
        for _ in 0..10 {
            assert!(told(0.1, 0.01).is_empty());
        }
        assert_eq!(
            told(0.11, 0.3),
            ["step 7: 30.0 % of the time is spent waiting for data, more than 5.0 %"]
        );
        assert!(told(0.11, 0.3).is_empty());
        assert!(told(0.11, 0.01).is_empty());
        assert_eq!(told(0.11, 0.06).len(), 1);
        assert!(told(0.2, 0.06)[0].starts_with("step 7: steps per second fell by 49"));
        assert!(
            told(0.2, 0.06).is_empty(),
            "slow steps do not become the measure"
        );
        for wrong in [
            "data_wait = \"5\"",
            "data_wait = \"500%\"",
            "throughput_drop = -1.0",
            "data_wait = true",
        ] {
            let error = toml::from_str::<AlertsConfig>(wrong)
                .expect_err(wrong)
                .to_string();
            assert!(error.contains("an alert must be a percentage"), "{error}");
        }
    }

    #[test]
    fn losses_gradients_and_memory_are_compared() {
        let mut config = AlertsConfig::default();
        for text in [
            "validation_rise=10%",
            "gradient_norm = 50",
            "gradient_rise=4",
            "memory=2G",
        ] {
            config.set(text).expect(text);
        }
        for wrong in [
            "validation_rise=ten",
            "gradient_rise=0.5",
            "memory=much",
            "colour=1",
            "memory",
        ] {
            assert!(config.clone().set(wrong).is_err(), "{wrong}");
        }
        let mut alerts = Alerts::new(config);
        let names = |alerts: Vec<Alert>| {
            alerts
                .into_iter()
                .map(|alert| alert.name)
                .collect::<Vec<_>>()
        };
        for (loss, told) in [
            (1.0, false),
            (0.5, false),
            (0.54, false),
            (0.6, true),
            (0.7, false),
            (0.4, false),
            (0.45, true),
        ] {
            assert_eq!(
                names(alerts.check_validation(3, loss)).len(),
                usize::from(told),
                "{loss}"
            );
        }
        assert_eq!(
            names(alerts.check_validation(3, f64::NAN)).len(),
            0,
            "it is told already"
        );
        for _ in 0..30 {
            assert!(
                alerts.check_gradient(4, 10.0).is_empty()
                    && alerts.check_gradient(4, 0.0).is_empty()
            );
        }
        assert_eq!(names(alerts.check_gradient(5, 45.0)), ["gradient_rise"]);
        assert_eq!(names(alerts.check_gradient(6, 60.0)), ["gradient_norm"]);
        assert!(alerts.check_gradient(7, 10.0).is_empty());
        assert_eq!(
            names(alerts.check_gradient(8, f64::INFINITY)),
            ["gradient_norm", "gradient_rise"]
        );
        let told = alerts.check(
            &LogLine {
                step: 9,
                ..LogLine::default()
            },
            3_000_000_000,
        );
        assert_eq!(
            told[0].text,
            "step 9: the process takes 3.00 GB, more than 2.00 GB"
        );
    }

    #[test]
    fn a_command_without_thresholds_sets_some() {
        let mut config = AlertsConfig::default();
        config.set_command("true", Some(1_000));
        assert_eq!(
            (
                config.validation_rise,
                config.memory,
                config.command.as_deref()
            ),
            (Some(0.1), Some(900), Some("true"))
        );
        let mut own = AlertsConfig {
            data_wait: Some(0.5),
            ..AlertsConfig::default()
        };
        own.set_command("true", None);
        assert_eq!(
            own,
            AlertsConfig {
                data_wait: Some(0.5),
                command: Some("true".into()),
                ..AlertsConfig::default()
            }
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_command_has_the_warning_in_its_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let alert = Alert {
            name: "memory",
            step: 12,
            value: 3.5,
            bound: 2.0,
            text: "too \"much\"".into(),
        };
        let command = format!(
            "echo $ONDES_ALERT $ONDES_STEP $ONDES_ALERT_VALUE $ONDES_ALERT_BOUND \"$ONDES_ALERT_TEXT\" > {0}.new; mv {0}.new {0}",
            out.display()
        );
        alert
            .run(&command, std::path::Path::new("metrics.jsonl"))
            .expect("a shell");
        for _ in 0..200 {
            if out.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(
            std::fs::read_to_string(out).expect("it ran"),
            "memory 12 3.5 2 too \"much\"\n"
        );
    }
}
