//! Trainings in processes of their own, several at once: the trials of a sweep, and folds.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use ondes_engine::files;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::sweep::{Curve, Settings, falls_behind, set};
use ondes_training::trainer::{interrupt, log_line, memory};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Interval of polling processes and logs.
const POLL: Duration = Duration::from_millis(100);
/// Free memory that another trial needs, relative to the largest so far.
const ROOM: f64 = 1.25;

/// End of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// At its last step, or because it was good enough.
    Finished,
    /// Early, since it fell behind the others.
    Stopped,
    /// By an error.
    Failed,
}

/// Result of a trial, a file in its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialResult {
    /// Fields and their values.
    pub settings: Settings,
    /// End.
    pub status: Status,
    /// Error of a failed trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Training with some fields of a recipe changed.
pub struct Trial {
    /// Folder for everything that it writes.
    pub folder: PathBuf,
    /// Fields and their values.
    pub settings: Settings,
    /// Kind of the recipe.
    pub kind: RecipeKind,
    /// Further options of the command.
    pub options: Vec<OsString>,
}

/// Recipe that all trials start from.
pub struct Base<'a> {
    /// Content.
    pub recipe: &'a Table,
    /// Folder that its paths are relative to.
    pub folder: &'a Path,
}

impl Trial {
    fn file(&self, of_capture: &str, of_others: &str) -> PathBuf {
        self.folder.join(if self.kind == RecipeKind::Capture {
            of_capture
        } else {
            of_others
        })
    }

    /// Returns the model that the trial writes.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model.ondes")
    }

    /// Returns the validation losses so far. A line that is being written is left out.
    pub fn curve(&self) -> Curve {
        let lines =
            log_line::read(&self.file("model.metrics.jsonl", "metrics.jsonl")).unwrap_or_default();
        lines
            .iter()
            .filter_map(|line| Some((line.step, line.validation?)))
            .collect()
    }

    /// Returns the settings in words.
    pub fn described(&self) -> String {
        self.settings
            .iter()
            .map(|(field, value)| format!("{field} {value}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the result of an earlier run of the same trial; a failed one is tried again.
    fn result(&self) -> Option<TrialResult> {
        let text = std::fs::read_to_string(self.folder.join("result.json")).ok()?;
        let result = serde_json::from_str::<TrialResult>(&text).ok()?;
        (result.settings == self.settings && result.status != Status::Failed).then_some(result)
    }

    /// Returns true if the folder holds the checkpoint of a run with the same settings.
    fn has_checkpoint(&self) -> bool {
        let text = std::fs::read_to_string(self.folder.join("settings.json")).unwrap_or_default();
        let same =
            serde_json::from_str::<Settings>(&text).is_ok_and(|settings| settings == self.settings);
        same && self
            .file("model.checkpoint", "checkpoint.safetensors")
            .exists()
    }

    /// Writes the recipe with the trial's settings and checks it.
    fn write_recipe(&self, base: &Base<'_>) -> anyhow::Result<PathBuf> {
        let mut recipe = base.recipe.clone();
        absolute_paths(&mut recipe, base.folder)?;
        for (field, value) in &self.settings {
            set(&mut recipe, field, value)?;
        }
        recipe.insert(
            "out".into(),
            Value::from(self.model().display().to_string()),
        );
        recipe.remove("nam");
        if self.kind != RecipeKind::Capture {
            // All trials share what is analysed once, with the recipe itself.
            let work = recipe
                .get("work")
                .and_then(Value::as_str)
                .map(|work| Path::new(work).join("features"));
            if let (Some(cache), false) = (work, recipe.contains_key("cache")) {
                recipe.insert("cache".into(), Value::from(cache.display().to_string()));
            }
            recipe.insert(
                "work".into(),
                Value::from(self.folder.display().to_string()),
            );
        }
        let path = self.folder.join("trial.toml");
        let write = |path: &Path, bytes: &[u8]| {
            files::write(path, bytes).with_context(|| path.display().to_string())
        };
        write(&path, toml::to_string(&recipe)?.as_bytes())?;
        write(
            &self.folder.join("settings.json"),
            &serde_json::to_vec(&self.settings)?,
        )?;
        self.kind.check(&path)?;
        Ok(path)
    }

    fn start(
        &self,
        index: usize,
        base: &Base<'_>,
        threads: Option<usize>,
    ) -> anyhow::Result<Running> {
        std::fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let resumes = self.has_checkpoint();
        let recipe = self.write_recipe(base)?;
        let log = std::fs::File::create(self.folder.join("output.txt"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(self.kind.command())
            .arg(recipe)
            .args(&self.options);
        if resumes {
            command.arg("--resume");
        }
        if let Some(threads) = threads {
            command.args(["--threads", &threads.to_string()]);
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // Ctrl-C reaches this process only, which asks the others to end.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(Running {
            index,
            child: command.spawn()?,
            asked: false,
            behind: false,
            has_logged: false,
        })
    }

    /// Returns the result of a process that has ended; `None` if it was interrupted.
    fn ended(&self, status: ExitStatus, behind: bool) -> Option<TrialResult> {
        let (status, reason) = match status.code() {
            Some(0) => (Status::Finished, None),
            _ if behind => (Status::Stopped, None),
            _ if interrupt::requested() => return None,
            _ => (Status::Failed, Some(self.reason(status))),
        };
        Some(TrialResult {
            settings: self.settings.clone(),
            status,
            reason,
        })
    }

    /// Returns the last line that a failed trial printed.
    fn reason(&self, status: ExitStatus) -> String {
        let output = std::fs::read_to_string(self.folder.join("output.txt")).unwrap_or_default();
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        match last.and_then(|line| line.strip_prefix("ondes-train: ")) {
            Some(reason) => reason.to_owned(),
            None => format!("{status}; {}", last.unwrap_or("it printed nothing")),
        }
    }
}

/// Trial whose process runs.
struct Running {
    index: usize,
    child: Child,
    /// The process has been asked to end.
    asked: bool,
    /// It was asked since it fell behind.
    behind: bool,
    /// It has written to its log, so that its memory is known.
    has_logged: bool,
}

impl Running {
    /// Asks the process to end.
    fn stop(&mut self) -> std::io::Result<()> {
        self.asked = true;
        #[cfg(unix)]
        {
            // SAFETY: the process has not been waited for, so that its number is still its own.
            #[expect(unsafe_code)]
            unsafe {
                libc::kill(
                    libc::pid_t::try_from(self.child.id()).unwrap_or(0),
                    libc::SIGTERM,
                );
            }
            Ok(())
        }
        #[cfg(not(unix))]
        self.child.kill()
    }
}

impl Drop for Running {
    /// After an error no process stays behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill().and_then(|()| self.child.wait());
        }
    }
}

/// Options of running trials.
pub struct RunOptions {
    /// Trials at once, at most.
    pub jobs: usize,
    /// Stops those that fall behind the median of the others.
    pub stops_behind: bool,
    /// The trials choose their number of threads themselves.
    pub has_threads: bool,
}

/// Runs all trials; returns their results, `None` for those that were interrupted or not begun.
///
/// # Errors
/// Returns an error if a process cannot be started or a file cannot be written.
pub fn run(
    trials: &[Trial],
    base: &Base<'_>,
    options: &RunOptions,
) -> anyhow::Result<Vec<Option<TrialResult>>> {
    let mut results: Vec<Option<TrialResult>> = trials.iter().map(Trial::result).collect();
    let mut waiting: VecDeque<usize> = (0..trials.len())
        .filter(|&index| results[index].is_none())
        .collect();
    let mut running: Vec<Running> = Vec::new();
    let mut largest = 0;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.min(trials.len()).max(1);
    // Networks share the cores, in the same way when the command goes on; a single trial uses them
    // as by itself.
    let threads = (jobs > 1 && !options.has_threads).then(|| (cores / jobs).max(1));
    loop {
        if interrupt::requested() {
            waiting.clear();
            running
                .iter_mut()
                .filter(|run| !run.asked)
                .try_for_each(Running::stop)?;
        }
        let mut index = 0;
        while index < running.len() {
            let own = &mut running[index];
            largest = largest.max(memory::peak_of_process(own.child.id()).unwrap_or(0));
            match own.child.try_wait()? {
                Some(status) => {
                    let own = running.remove(index);
                    let trial = &trials[own.index];
                    let result = trial.ended(status, own.behind);
                    if let Some(result) = &result {
                        say(trial, result, own.index, trials.len());
                        write_result(trial, result)?;
                    }
                    results[own.index] = result;
                }
                None => index += 1,
            }
        }
        if options.stops_behind {
            stop_those_behind(trials, &results, &mut running)?;
        }
        while running.len() < jobs && has_room(trials, &mut running, largest) {
            let Some(index) = waiting.pop_front() else {
                break;
            };
            let trial = &trials[index];
            eprintln!(
                "trial {} of {}: {}",
                index + 1,
                trials.len(),
                trial.described()
            );
            match trial.start(index, base, threads) {
                Ok(started) => running.push(started),
                Err(error) => {
                    let reason = Some(format!("{error:#}"));
                    let result = TrialResult {
                        settings: trial.settings.clone(),
                        status: Status::Failed,
                        reason,
                    };
                    say(trial, &result, index, trials.len());
                    write_result(trial, &result)?;
                    results[index] = Some(result);
                }
            }
        }
        if running.is_empty() && waiting.is_empty() {
            return Ok(results);
        }
        std::thread::sleep(POLL);
    }
}

/// Asks trials to end whose best validation is behind the median of the others, running or ended.
fn stop_those_behind(
    trials: &[Trial],
    results: &[Option<TrialResult>],
    running: &mut [Running],
) -> anyhow::Result<()> {
    let ended = |index: &usize| {
        results[*index]
            .as_ref()
            .is_some_and(|result| result.status != Status::Failed)
    };
    let compared: Vec<usize> = (0..trials.len())
        .filter(ended)
        .chain(running.iter().map(|running| running.index))
        .collect();
    let curves: Vec<Curve> = compared
        .iter()
        .map(|&index| trials[index].curve())
        .collect();
    for run in running.iter_mut().filter(|run| !run.asked) {
        let others = compared
            .iter()
            .zip(&curves)
            .filter(|(index, _)| **index != run.index);
        let others: Vec<Curve> = others.map(|(_, curve)| curve.clone()).collect();
        if falls_behind(&trials[run.index].curve(), &others) {
            run.behind = true;
            run.stop()?;
        }
    }
    Ok(())
}

/// Tells whether memory is free for another trial; what the running ones need is known once they
/// have written a line.
fn has_room(trials: &[Trial], running: &mut [Running], largest: u64) -> bool {
    for run in running.iter_mut().filter(|run| !run.has_logged) {
        let log = trials[run.index].file("model.metrics.jsonl", "metrics.jsonl");
        run.has_logged = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    }
    let Some(available) = memory::available() else {
        return true;
    };
    running.is_empty()
        || running.iter().all(|run| run.has_logged) && available as f64 > ROOM * largest as f64
}

fn say(trial: &Trial, result: &TrialResult, index: usize, count: usize) {
    let best = trial.curve().into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let status = format!("{:?}", result.status).to_lowercase();
    match (&result.reason, best) {
        (Some(reason), _) => eprintln!("trial {} of {count} {status}: {reason}", index + 1),
        (None, Some((step, loss))) => eprintln!(
            "trial {} of {count} {status}: {loss:.5} at step {step}",
            index + 1
        ),
        (None, None) => eprintln!("trial {} of {count} {status}", index + 1),
    }
}

fn write_result(trial: &Trial, result: &TrialResult) -> anyhow::Result<()> {
    let path = trial.folder.join("result.json");
    std::fs::create_dir_all(&trial.folder).with_context(|| trial.folder.display().to_string())?;
    files::write(&path, serde_json::to_string(result)?.as_bytes())
        .with_context(|| path.display().to_string())
}

/// Returns the different reasons of failed trials, with the numbers of the trials.
pub fn reasons(results: &[Option<TrialResult>]) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let Some(reason) = result.as_ref().and_then(|result| result.reason.as_deref()) else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, numbers)) => numbers.push((index + 1).to_string()),
            None => reasons.push((reason, vec![(index + 1).to_string()])),
        }
    }
    let texts = reasons
        .into_iter()
        .map(|(reason, numbers)| format!("{reason} (trial {})", numbers.join(", ")));
    texts.collect::<Vec<_>>().join("; ")
}

/// Makes the paths of a recipe independent of its folder.
fn absolute_paths(recipe: &mut Table, folder: &Path) -> anyhow::Result<()> {
    let absolute = |value: &mut Value| -> anyhow::Result<()> {
        if let Some(path) = value.as_str() {
            *value = Value::from(
                std::path::absolute(folder.join(path))?
                    .display()
                    .to_string(),
            );
        }
        Ok(())
    };
    for name in ["data", "held_out", "from", "codec", "work", "cache"] {
        recipe.get_mut(name).map_or(Ok(()), absolute)?;
    }
    let pairs = recipe
        .get_mut("pair")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for pair in pairs.filter_map(Value::as_table_mut) {
        for name in ["dry", "wet"] {
            pair.get_mut(name).map_or(Ok(()), absolute)?;
        }
    }
    Ok(())
}

/// Returns the number of trials at once unless told otherwise: one a core, or one on a GPU.
pub fn default_jobs() -> usize {
    if tch::Cuda::is_available() {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}
