//! What came of the files of a batch, and of the whole.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::super::report::Report;
use super::list::Entry;

/// What came of a file; with `--json` a line each, told apart by `status`.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// There is a new WAV.
    Rendered {
        /// The file that was played.
        source: String,
        /// The figures.
        #[serde(flatten)]
        report: Box<Report>,
    },
    /// The WAV was there already.
    Skipped {
        /// The file that was not played.
        source: String,
        /// The WAV.
        out: String,
    },
    /// There is no WAV, or only the one that was there before.
    Failed(Failure),
}

/// Why there is no WAV.
#[derive(Serialize)]
pub struct Failure {
    /// The file that was to be played.
    pub source: String,
    /// The WAV that it was to become.
    pub out: String,
    /// One line that names a file and what is wrong with it.
    pub reason: String,
}

impl Outcome {
    /// A new WAV.
    pub fn rendered(entry: &Entry, report: Report) -> Self {
        Self::Rendered { source: entry.source.display().to_string(), report: Box::new(report) }
    }

    /// One that was there.
    pub fn skipped(entry: &Entry) -> Self {
        Self::Skipped { source: entry.source.display().to_string(), out: entry.out.display().to_string() }
    }

    /// One line for a person, about what is new.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Rendered { report, .. } => Some(report.line()),
            // Skipped ones are counted, failures are told at the end.
            Self::Skipped { .. } | Self::Failed(_) => None,
        }
    }
}

impl Failure {
    /// After an error, which names the source if it names no other file.
    pub fn new(entry: &Entry, error: &anyhow::Error) -> Self {
        let (source, out) = (entry.source.display().to_string(), entry.out.display().to_string());
        let reason = error.to_string();
        let named = reason.starts_with(&source) || reason.starts_with(&out);
        let reason = if named { reason } else { format!("{source}: {reason}") };
        Self { source, out, reason }
    }
}

/// Counts outcomes.
pub struct Tally {
    begun: Instant,
    out: String,
    jobs: usize,
    files: usize,
    rendered: usize,
    skipped: usize,
    failures: Vec<Failure>,
    seconds: f64,
}

/// The figures of a batch; the last line with `--json`.
#[derive(Serialize)]
#[serde(tag = "status", rename = "summary")]
pub struct Summary {
    /// The folder.
    pub out: String,
    /// Files of this batch, or of its shard.
    pub files: usize,
    /// Those that were rendered now.
    pub rendered: usize,
    /// Those that were there already.
    pub skipped: usize,
    /// Those that failed.
    pub failed: usize,
    /// Whether it was stopped, and other files were not looked at.
    pub interrupted: bool,
    /// Files rendered at the same time, at most.
    pub jobs: usize,
    /// Sound that was rendered, s.
    pub seconds: f64,
    /// Time that it took, s.
    pub elapsed_seconds: f64,
    /// Seconds of sound made in a second.
    pub realtime_factor: f64,
}

impl Tally {
    /// Begins a count for so many files that go to a folder, `jobs` at a time.
    pub fn new(out: &Path, jobs: usize, files: usize) -> Self {
        Self {
            begun: Instant::now(),
            out: out.display().to_string(),
            jobs,
            files,
            rendered: 0,
            skipped: 0,
            failures: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Counts one.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Rendered { report, .. } => {
                self.rendered += 1;
                self.seconds += report.seconds;
            }
            Outcome::Skipped { .. } => self.skipped += 1,
            Outcome::Failed(failure) => self.failures.push(failure),
        }
    }

    /// The files that failed, in the order of the list.
    pub fn failures(&self) -> Vec<&Failure> {
        let mut failures: Vec<&Failure> = self.failures.iter().collect();
        failures.sort_by_key(|failure| &failure.out);
        failures
    }

    /// All in figures, up to now.
    pub fn summary(&self, interrupted: bool) -> Summary {
        let elapsed_seconds = self.begun.elapsed().as_secs_f64();
        Summary {
            out: self.out.clone(),
            files: self.files,
            rendered: self.rendered,
            skipped: self.skipped,
            failed: self.failures.len(),
            interrupted,
            jobs: self.jobs,
            seconds: self.seconds,
            elapsed_seconds,
            realtime_factor: self.seconds / elapsed_seconds,
        }
    }
}

impl Summary {
    /// One line for a person.
    pub fn line(&self) -> String {
        let Self { out, files, rendered, skipped, failed, seconds, elapsed_seconds, realtime_factor, .. } = self;
        format!(
            "{out}: {rendered} of {files} files rendered, {skipped} skipped, {failed} failed, {seconds:.1} s of sound in \
             {elapsed_seconds:.1} s, {realtime_factor:.0}× real time"
        )
    }
}
