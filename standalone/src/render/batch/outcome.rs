//! Outcomes of a batch.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::list::BatchEntry;
use crate::render::report::{RenderReport, speed};

/// Outcome of a file; with `--json` one line each, told apart by `status`.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum BatchOutcome {
    /// A new WAV was written.
    Rendered {
        /// Source file.
        source: String,
        /// Results of the render.
        #[serde(flatten)]
        report: Box<RenderReport>,
    },
    /// The WAV was up to date.
    Skipped {
        /// Source file.
        source: String,
        /// Output file.
        out: String,
    },
    /// No WAV was written; an older one may exist.
    Failed(BatchFailure),
}

/// Failed file.
#[derive(Serialize)]
pub struct BatchFailure {
    /// Source file.
    pub source: String,
    /// Output file.
    pub out: String,
    /// Reason, in one line that names a file.
    pub reason: String,
}

impl BatchOutcome {
    /// Creates the outcome of a rendered file.
    pub fn rendered(entry: &BatchEntry, report: RenderReport) -> Self {
        Self::Rendered {
            source: entry.source.display().to_string(),
            report: Box::new(report),
        }
    }

    /// Creates the outcome of a skipped file.
    pub fn skipped(entry: &BatchEntry) -> Self {
        Self::Skipped {
            source: entry.source.display().to_string(),
            out: entry.out.display().to_string(),
        }
    }

    /// Formats a rendered file for the terminal, in one line.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Rendered { report, .. } => Some(report.line()),
            // Skipped files are counted, failures are printed at the end.
            Self::Skipped { .. } | Self::Failed(_) => None,
        }
    }
}

impl BatchFailure {
    /// Creates a failure; the reason gets the source's name unless it names a file already.
    pub fn new(entry: &BatchEntry, error: &anyhow::Error) -> Self {
        let (source, out) = (
            entry.source.display().to_string(),
            entry.out.display().to_string(),
        );
        let reason = error.to_string();
        let named = reason.starts_with(&source) || reason.starts_with(&out);
        let reason = if named {
            reason
        } else {
            format!("{source}: {reason}")
        };
        Self {
            source,
            out,
            reason,
        }
    }
}

/// Counts outcomes.
pub struct OutcomeCounter {
    started_at: Instant,
    out: String,
    jobs: usize,
    files: usize,
    rendered: usize,
    skipped: usize,
    failures: Vec<BatchFailure>,
    seconds: f64,
}

/// Results of a batch; the last line with `--json`.
#[derive(Serialize)]
#[serde(tag = "status", rename = "summary")]
pub struct BatchSummary {
    /// Output folder.
    pub out: String,
    /// Number of files of the batch or shard.
    pub files: usize,
    /// Files rendered now.
    pub rendered: usize,
    /// Files that were up to date.
    pub skipped: usize,
    /// Failed files.
    pub failed: usize,
    /// The batch was interrupted; the remaining files were not handled.
    pub interrupted: bool,
    /// Files rendered in parallel, at most.
    pub jobs: usize,
    /// Length of all rendered sound, s.
    pub seconds: f64,
    /// Time taken, s.
    pub elapsed_seconds: f64,
    /// Seconds of sound per second.
    pub realtime_factor: f64,
}

impl OutcomeCounter {
    /// Starts to count outcomes of `files` files, rendered by `jobs` threads to a folder.
    pub fn new(out: &Path, jobs: usize, files: usize) -> Self {
        Self {
            started_at: Instant::now(),
            out: out.display().to_string(),
            jobs,
            files,
            rendered: 0,
            skipped: 0,
            failures: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Counts an outcome.
    pub fn add(&mut self, outcome: BatchOutcome) {
        match outcome {
            BatchOutcome::Rendered { report, .. } => {
                self.rendered += 1;
                self.seconds += report.seconds;
            }
            BatchOutcome::Skipped { .. } => self.skipped += 1,
            BatchOutcome::Failed(failure) => self.failures.push(failure),
        }
    }

    /// Returns the failed files, in the order of the list.
    pub fn failures(&self) -> Vec<&BatchFailure> {
        let mut failures: Vec<&BatchFailure> = self.failures.iter().collect();
        failures.sort_by_key(|failure| &failure.out);
        failures
    }

    /// Returns the results so far.
    pub fn summary(&self, interrupted: bool) -> BatchSummary {
        let elapsed_seconds = self.started_at.elapsed().as_secs_f64();
        BatchSummary {
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

impl BatchSummary {
    /// Formats the results for the terminal, in one line.
    pub fn line(&self) -> String {
        let Self {
            out,
            files,
            rendered,
            skipped,
            failed,
            seconds,
            elapsed_seconds,
            realtime_factor,
            ..
        } = self;
        let speed = if *rendered == 0 {
            String::new()
        } else {
            format!(", {}× real time", speed(*realtime_factor))
        };
        format!(
            "{out}: {rendered} of {files} files rendered, {skipped} skipped, {failed} failed, {seconds:.1} s of sound in \
             {elapsed_seconds:.1} s{speed}"
        )
    }
}
