//! `ondes-train sweep`: trains with several settings.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use ondes_engine::files;
use ondes_training::sweep::{Curve, Settings, Variation, falls_behind, grid, random, set};
use ondes_training::trainer::{interrupt, metrics};
use ondes_training::training_config::read_toml;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Interval at which a trial's log is read.
const POLL: Duration = Duration::from_millis(200);

/// Options of `sweep`.
#[derive(Args)]
pub struct SweepArguments {
    /// TOML file of an instrument or a capture.
    config: PathBuf,
    /// Field with its values, such as `training.learning_rate=1e-3,2e-3`, or, with `--random`, `training.batch=4..32`.
    #[arg(long, required = true, value_parser = Variation::parse)]
    vary: Vec<Variation>,
    /// Tries so many random settings instead of all combinations.
    #[arg(long, value_name = "TRIALS", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    random: Option<u16>,
    /// Seed of random settings.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lets trials that fall behind the median of the others go on.
    #[arg(long)]
    no_stopping: bool,
    /// Folder of the trials [default: the TOML file with the ending .sweep].
    #[arg(long)]
    work: Option<PathBuf>,
}

/// End of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Finished,
    Stopped,
    Failed,
}

/// Result of a trial, a file in its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrialResult {
    settings: Settings,
    status: Status,
}

struct Trial {
    folder: PathBuf,
    settings: Settings,
    /// `fit` or `capture`.
    command: &'static str,
}

impl Trial {
    fn log(&self) -> PathBuf {
        self.folder.join(if self.command == "fit" { "metrics.jsonl" } else { "model.metrics.jsonl" })
    }

    fn checkpoint(&self) -> PathBuf {
        self.folder.join(if self.command == "fit" { "checkpoint.safetensors" } else { "model.checkpoint" })
    }

    /// Returns the validation losses so far. A line that is being written is left out.
    fn curve(&self) -> Curve {
        let lines = metrics::read(&self.log()).unwrap_or_default();
        lines.iter().filter_map(|line| Some((line.step, line.validation?))).collect()
    }

    fn result(&self) -> Option<TrialResult> {
        let text = std::fs::read_to_string(self.folder.join("result.json")).ok()?;
        serde_json::from_str::<TrialResult>(&text).ok().filter(|result| result.settings == self.settings)
    }

    /// Writes the configuration with the trial's settings.
    fn write_config(&self, base: &Table, base_folder: &Path) -> anyhow::Result<PathBuf> {
        let mut config = base.clone();
        absolute_paths(&mut config, base_folder)?;
        for (field, value) in &self.settings {
            set(&mut config, field, value)?;
        }
        let model = self.folder.join("model.ondes").display().to_string();
        config.insert("out".into(), Value::from(model));
        config.remove("nam");
        if self.command == "fit" {
            config.insert("work".into(), Value::from(self.folder.display().to_string()));
        }
        let path = self.folder.join("trial.toml");
        files::write(&path, toml::to_string(&config)?.as_bytes()).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Trains; `None` after an interruption.
    fn run(&self, config: &Path, others: &[Curve], stopping: bool) -> anyhow::Result<Option<Status>> {
        let log = std::fs::File::create(self.folder.join("output.txt"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(self.command).arg(config).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if self.checkpoint().exists() {
            command.arg("--resume");
        }
        // Ctrl-C reaches this process only, which asks the child to end.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (mut stopped, mut interrupted) = (false, false);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(self.status(status, stopped));
            }
            std::thread::sleep(POLL);
            if stopped || interrupted {
                continue;
            }
            interrupted = interrupt::requested();
            stopped = !interrupted && stopping && falls_behind(&self.curve(), others);
            if stopped || interrupted {
                stop(&mut child)?;
            }
        }
    }

    fn status(&self, status: ExitStatus, stopped: bool) -> Option<Status> {
        match status.code() {
            Some(0) => Some(Status::Finished),
            _ if stopped => Some(Status::Stopped),
            _ if interrupt::requested() => None,
            _ => {
                let output = std::fs::read_to_string(self.folder.join("output.txt")).unwrap_or_default();
                eprintln!("{}", output.lines().last().unwrap_or("the trial failed"));
                Some(Status::Failed)
            }
        }
    }
}

/// Asks a trial to end.
fn stop(child: &mut Child) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        // SAFETY: the process has not been waited for, so that its number is still its own.
        #[expect(unsafe_code)]
        unsafe {
            libc::kill(libc::pid_t::try_from(child.id()).unwrap_or(0), libc::SIGTERM);
        }
        Ok(())
    }
    #[cfg(not(unix))]
    child.kill()
}

/// Makes the paths of a configuration independent of its folder.
fn absolute_paths(config: &mut Table, folder: &Path) -> anyhow::Result<()> {
    let absolute = |value: &mut Value| -> anyhow::Result<()> {
        if let Some(path) = value.as_str() {
            *value = Value::from(std::path::absolute(folder.join(path))?.display().to_string());
        }
        Ok(())
    };
    for name in ["data", "held_out", "from"] {
        config.get_mut(name).map_or(Ok(()), absolute)?;
    }
    let pairs = config.get_mut("pair").and_then(Value::as_array_mut).into_iter().flatten();
    for pair in pairs.filter_map(Value::as_table_mut) {
        for name in ["dry", "wet"] {
            pair.get_mut(name).map_or(Ok(()), absolute)?;
        }
    }
    Ok(())
}

/// Trains all trials, one after the other, and prints a table.
pub fn run(options: &SweepArguments) -> anyhow::Result<()> {
    let base: Table = read_toml(&options.config)?;
    let command = if base.contains_key("pair") { "capture" } else { "fit" };
    let settings = match options.random {
        Some(trials) => random(&options.vary, usize::from(trials), options.seed),
        None => grid(&options.vary)?,
    };
    let work = options.work.clone().unwrap_or_else(|| options.config.with_extension("sweep"));
    let work = std::path::absolute(work)?;
    let trial = |(index, settings): (usize, Settings)| Trial {
        folder: work.join(format!("trial{:03}", index + 1)),
        settings,
        command,
    };
    let trials: Vec<Trial> = settings.into_iter().enumerate().map(trial).collect();
    interrupt::install()?;
    let base_folder = options.config.parent().unwrap_or(Path::new(""));
    let mut curves: Vec<Curve> = Vec::new();
    let mut statuses = Vec::new();
    for (index, trial) in trials.iter().enumerate() {
        std::fs::create_dir_all(&trial.folder).with_context(|| trial.folder.display().to_string())?;
        let known = trial.result();
        let status = match known {
            Some(result) => Some(result.status),
            None => {
                eprintln!("trial {} of {}: {}", index + 1, trials.len(), described(&trial.settings));
                let config = trial.write_config(&base, base_folder)?;
                trial.run(&config, &curves, !options.no_stopping)?
            }
        };
        let Some(status) = status else {
            eprintln!("the same command goes on");
            break;
        };
        let result = TrialResult { settings: trial.settings.clone(), status: status.clone() };
        let path = trial.folder.join("result.json");
        files::write(&path, serde_json::to_string(&result)?.as_bytes()).with_context(|| path.display().to_string())?;
        curves.push(trial.curve());
        statuses.push(status);
    }
    print!("{}", table(&trials, &statuses, &curves));
    ensure!(statuses.is_empty() || statuses.iter().any(|status| *status != Status::Failed), "all trials failed");
    Ok(())
}

fn described(settings: &Settings) -> String {
    settings.iter().map(|(field, value)| format!("{field} {value}")).collect::<Vec<_>>().join(", ")
}

/// Returns the trials in a table, the best first.
fn table(trials: &[Trial], statuses: &[Status], curves: &[Curve]) -> String {
    let best = |curve: &Curve| curve.iter().map(|(_, loss)| *loss).min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    let mut rows: Vec<_> = trials.iter().zip(statuses).zip(curves).collect();
    rows.sort_by(|a, b| best(a.1).total_cmp(&best(b.1)));
    let mut text = format!("{:>10} {:>8} {:9} settings\n", "validation", "step", "");
    for ((trial, status), curve) in &rows {
        let status = format!("{status:?}").to_lowercase();
        let step = curve.last().map_or(0, |(step, _)| *step);
        let _ = writeln!(text, "{:>10.5} {step:>8} {status:9} {}", best(curve), described(&trial.settings));
    }
    if let Some(((trial, _), _)) = rows.first() {
        let _ = writeln!(text, "best: {}", trial.folder.join("model.ondes").display());
    }
    text
}
