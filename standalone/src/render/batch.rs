//! Batches: many files, several at a time.
//!
//! [`list`] finds the files, in an order that does not depend on the command line; [`freshness`]
//! finds outputs that are up to date; [`outcome`] has the results.
//!
//! A WAV gets its name only when it is complete. So a batch that was killed can be run again to
//! continue, and its output is the same in every byte.

mod freshness;
mod list;
mod outcome;

use std::fs;
use std::iter;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Instant, SystemTime};

use anyhow::anyhow;
use ondes_engine::sync::lock;

use super::model_renderer::{IdlePipeline, ModelRenderer};
use super::output_target::OutputTarget;
use super::report::RenderReport;
use crate::interrupt::{self, Interrupted};
use crate::progress::RenderProgress;
use crate::terminal;
use freshness::FreshnessCheck;
use list::{BatchEntry, BatchList};
use outcome::{BatchFailure, BatchOutcome, OutcomeCounter};

/// Renders all files that the command line names, or its shard of them. `started_at` is the time at
/// which the model was read.
///
/// # Errors
/// Returns an error before rendering if the command line is wrong, and at the end if files have
/// failed; each of these is printed on standard error.
pub fn run(player: &ModelRenderer<'_>, started_at: SystemTime) -> anyhow::Result<()> {
    let arguments = player.arguments;
    let list = BatchList::gather(arguments)?;
    let checked = player.check()?;
    let out = list.out();
    fs::create_dir_all(out)
        .map_err(|error| anyhow!("{}: cannot be created: {error}", out.display()))?;

    // Only in this shard: on machines without common file locks, a file that another one is writing
    // looks abandoned.
    let part = || arguments.shard.unwrap_or_default().select(list.entries());
    list::remove_abandoned_files(part())?;

    let freshness = FreshnessCheck::new(started_at, arguments);
    let (done, due): (Vec<&BatchEntry>, Vec<&BatchEntry>) =
        part().partition(|entry| !arguments.force && freshness.is_fresh(entry));
    let jobs = arguments
        .jobs
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get);
    let batch = Batch {
        player,
        freshness,
        progress: RenderProgress::of_files(due.len(), arguments.quiet),
        jobs: jobs.min(due.len()),
    };
    let mut counter = OutcomeCounter::new(out, jobs, done.len() + due.len());
    for entry in done {
        batch.report(BatchOutcome::skipped(entry), &mut counter)?;
    }
    let sent = batch.render(&due, checked, &mut counter);
    drop(batch);
    sent?;
    let failures = counter.failures();
    let interrupted = interrupt::requested();
    let summary = counter.summary(interrupted);
    if !arguments.quiet {
        terminal::print(&if arguments.json {
            serde_json::to_string(&summary)?
        } else {
            summary.line()
        })?;
    }
    for failure in &failures {
        terminal::print_error(&anyhow!("{}", failure.reason));
    }
    if interrupted {
        return Err(Interrupted.into());
    }
    match failures.len() {
        0 => Ok(()),
        failed => Err(FailedFiles {
            failed,
            files: summary.files,
        }
        .into()),
    }
}

/// Error of a batch in which files have failed.
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {files} files could not be rendered")]
pub struct FailedFiles {
    failed: usize,
    files: usize,
}

/// Remaining work for a rendered file: waiting for the disk, and the outcome, `None` after an
/// interrupt.
type FinishFile<'a> = Box<dyn FnOnce() -> Option<BatchOutcome> + Send + 'a>;

/// State of a running batch.
struct Batch<'a> {
    player: &'a ModelRenderer<'a>,
    freshness: FreshnessCheck,
    progress: RenderProgress,
    jobs: usize,
}

impl Batch<'_> {
    /// Renders files, in order except for parallel ones; `first` is an idle pipeline.
    ///
    /// With several jobs, twice as many threads wait for the disk. A single job waits itself, which
    /// keeps the reports in order.
    ///
    /// # Errors
    /// Returns an error if an outcome cannot be printed; nothing more is rendered then.
    fn render(
        &self,
        due: &[&BatchEntry],
        first: IdlePipeline,
        counter: &mut OutcomeCounter,
    ) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let finishers = if self.jobs == 1 { 0 } else { 2 * self.jobs };
        let (sender, outcomes) = mpsc::channel();
        let (waiting, played) = mpsc::sync_channel::<FinishFile<'_>>(finishers);
        let played = Arc::new(Mutex::new(played));
        let spares = iter::once(first).chain(iter::repeat_with(|| None));
        thread::scope(|scope| {
            for mut idle in spares.take(self.jobs) {
                let (sender, waiting, next) = (sender.clone(), waiting.clone(), &next);
                scope.spawn(move || {
                    while let Some(entry) = due.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(finish) = self.play(entry, &mut idle) else {
                            break;
                        };
                        if finishers == 0 {
                            send_outcome(&sender, finish);
                        } else if waiting.send(finish).is_err() {
                            break;
                        }
                    }
                });
            }
            for _ in 0..finishers {
                let (sender, played) = (sender.clone(), played.clone());
                scope.spawn(move || {
                    let next = || lock(&played).recv();
                    while let Ok(finish) = next() {
                        send_outcome(&sender, finish);
                    }
                });
            }
            drop((sender, waiting, played));
            let sent = outcomes.iter().try_for_each(|outcome| {
                self.progress.file_done();
                self.report(outcome, counter)
            });
            if sent.is_err() {
                interrupt::request();
            }
            sent
        })
    }

    /// Renders a file and returns the remaining work; `None` after an interrupt.
    fn play<'b>(
        &'b self,
        entry: &'b BatchEntry,
        idle: &mut IdlePipeline,
    ) -> Option<FinishFile<'b>> {
        interrupt::check().ok()?;
        let time = self.freshness.time_for(&entry.source);
        let target = OutputTarget::File(entry.out.clone());
        let play = || {
            create_parent(&entry.out)?;
            self.player
                .play(&entry.source, target, &self.progress, Instant::now(), idle)
        };
        match terminal::contain_panic(play) {
            Ok(finish) => Some(Box::new(move || {
                self.outcome(entry, time, terminal::contain_panic(finish))
            })),
            Err(error) => self
                .outcome(entry, time, Err(error))
                .map(|failed| Box::new(move || Some(failed)) as FinishFile<'b>),
        }
    }

    /// Returns the outcome of a file, whose output gets `time`; `None` after an interrupt.
    fn outcome(
        &self,
        entry: &BatchEntry,
        time: SystemTime,
        report: anyhow::Result<RenderReport>,
    ) -> Option<BatchOutcome> {
        match report {
            Ok(report) => {
                // If its time cannot be set the file keeps its own, which is sufficient unless
                // sources change meanwhile.
                drop(FreshnessCheck::set_time(&entry.out, time));
                Some(BatchOutcome::rendered(entry, report))
            }
            Err(error) if error.is::<Interrupted>() => None,
            Err(error) => Some(BatchOutcome::Failed(BatchFailure::new(entry, &error))),
        }
    }

    /// Prints an outcome and counts it.
    fn report(&self, outcome: BatchOutcome, counter: &mut OutcomeCounter) -> anyhow::Result<()> {
        let text = if self.player.arguments.json {
            Some(serde_json::to_string(&outcome)?)
        } else {
            outcome.line()
        };
        let text = text.filter(|_| !self.player.arguments.quiet);
        counter.add(outcome);
        text.map_or(Ok(()), |text| {
            self.progress.suspend(|| terminal::print(&text))
        })
    }
}

/// Finishes a file and sends its outcome. The receiver is gone only after an output error, when all
/// threads are being stopped.
fn send_outcome(sender: &mpsc::Sender<BatchOutcome>, finish: FinishFile<'_>) {
    if let Some(outcome) = finish() {
        drop(sender.send(outcome));
    }
}

fn create_parent(out: &Path) -> anyhow::Result<()> {
    let Some(folder) = out.parent() else {
        return Ok(());
    };
    fs::create_dir_all(folder)
        .map_err(|error| anyhow!("{}: cannot be created: {error}", folder.display()))
}
