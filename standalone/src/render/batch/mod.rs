//! Many files, several at a time.
//!
//! [`list`] is what is to be rendered and where to, in an order that does not depend on how it was asked for; [`shard`] is a
//! part of it; [`freshness`] knows what need not be done again; [`outcome`] is what is said.
//!
//! A WAV takes its name only when it is whole. So a batch that was killed goes on where it was when it is run again, and what
//! it makes is in every byte what it would have been.

mod freshness;
mod list;
mod outcome;
mod shard;

use std::fs;
use std::iter;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Instant, SystemTime};

use anyhow::{anyhow, bail};

pub use shard::Shard;

use super::destination::Place;
use super::player::{Player, Spare};
use super::report::Report;
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;
use crate::terminal;
use freshness::Freshness;
use list::{Entry, List};
use outcome::{Failure, Outcome, Tally};

/// Renders all that the command line names, or its part of it; `begun` is when the first file, the model, was read.
///
/// # Errors
/// Before anything is rendered, when the command line makes no sense; at the end, when there are files that failed, each of
/// which was named on standard error by then.
pub fn run(player: &Player<'_>, begun: SystemTime) -> anyhow::Result<()> {
    let arguments = player.arguments;
    let list = List::gather(arguments)?;
    let checked = player.check()?;
    let out = list.out();
    fs::create_dir_all(out).map_err(|error| anyhow!("{}: cannot be made: {error}", out.display()))?;

    // Only in our own part: where machines do not see each other's locks, what another is writing looks abandoned.
    let part = || arguments.shard.unwrap_or_default().of(list.entries());
    list::tidy(part())?;

    let freshness = Freshness::of(begun, &arguments.model);
    let (done, due): (Vec<&Entry>, Vec<&Entry>) = part().partition(|entry| !arguments.force && freshness.has(entry));
    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let batch = Batch { player, freshness, progress: Progress::of_files(due.len()), jobs: jobs.min(due.len()) };
    let mut tally = Tally::new(out, jobs, done.len() + due.len());
    for entry in done {
        batch.settle(Outcome::skipped(entry), &mut tally)?;
    }
    let told = batch.render(&due, checked, &mut tally);
    drop(batch);
    told?;
    let failures = tally.failures();
    let interrupted = interrupt::requested();
    let summary = tally.summary(interrupted);
    terminal::print(&if arguments.json { serde_json::to_string(&summary)? } else { summary.line() })?;
    for failure in &failures {
        terminal::complain(&anyhow!("{}", failure.reason));
    }
    if interrupted {
        return Err(Interrupted.into());
    }
    match failures.len() {
        0 => Ok(()),
        failed => bail!("{failed} of {} files could not be rendered", summary.files),
    }
}

/// What is left to do of a file that was played: to wait for the disk, and to say what came of it, if anything.
type Finish<'a> = Box<dyn FnOnce() -> Option<Outcome> + Send + 'a>;

/// Files on their way.
struct Batch<'a> {
    player: &'a Player<'a>,
    freshness: Freshness,
    progress: Progress,
    jobs: usize,
}

impl Batch<'_> {
    /// Renders files, in their order but for those that go on at the same time; `first` is a pipeline that is there already.
    ///
    /// Of several jobs none waits for the disk: twice as many threads do that. A single one does, and so keeps to the order in
    /// what is said, too.
    ///
    /// # Errors
    /// When what is said about them is not taken. Nothing is rendered any more then.
    fn render(&self, due: &[&Entry], first: Spare, tally: &mut Tally) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let finishers = if self.jobs == 1 { 0 } else { 2 * self.jobs };
        let (sender, outcomes) = mpsc::channel();
        let (waiting, played) = mpsc::sync_channel::<Finish<'_>>(finishers);
        let played = Arc::new(Mutex::new(played));
        let spares = iter::once(first).chain(iter::repeat_with(|| None));
        thread::scope(|scope| {
            for mut spare in spares.take(self.jobs) {
                let (sender, waiting, next) = (sender.clone(), waiting.clone(), &next);
                scope.spawn(move || {
                    while let Some(entry) = due.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(finish) = self.play(entry, &mut spare) else { break };
                        if finishers == 0 {
                            tell(&sender, finish);
                        } else if waiting.send(finish).is_err() {
                            break;
                        }
                    }
                });
            }
            for _ in 0..finishers {
                let (sender, played) = (sender.clone(), played.clone());
                scope.spawn(move || {
                    let next = || played.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    while let Ok(finish) = next() {
                        tell(&sender, finish);
                    }
                });
            }
            drop((sender, waiting, played));
            let told = outcomes.iter().try_for_each(|outcome| {
                self.progress.file_done();
                self.settle(outcome, tally)
            });
            if told.is_err() {
                interrupt::request();
            }
            told
        })
    }

    /// Plays a file and gives what is left to do; nothing comes of it when somebody interrupts.
    fn play<'b>(&'b self, entry: &'b Entry, spare: &mut Spare) -> Option<Finish<'b>> {
        interrupt::check().ok()?;
        let place = Place::File(entry.out.clone());
        let played = make_folder(&entry.out)
            .and_then(|()| self.player.play(&entry.source, place, &self.progress, Instant::now(), spare));
        match played {
            Ok(finish) => Some(Box::new(move || self.outcome(entry, finish()))),
            Err(error) => self.outcome(entry, Err(error)).map(|failed| Box::new(move || Some(failed)) as Finish<'b>),
        }
    }

    fn outcome(&self, entry: &Entry, report: anyhow::Result<Report>) -> Option<Outcome> {
        match report {
            Ok(report) => {
                // Where times cannot be set it keeps the one it has, which is good enough while nobody writes what we read.
                drop(self.freshness.date(&entry.out));
                Some(Outcome::rendered(entry, report))
            }
            Err(error) if error.is::<Interrupted>() => None,
            Err(error) => Some(Outcome::Failed(Failure::new(entry, &error))),
        }
    }

    /// Says what came of a file, and counts it.
    fn settle(&self, outcome: Outcome, tally: &mut Tally) -> anyhow::Result<()> {
        let text = if self.player.arguments.json { Some(serde_json::to_string(&outcome)?) } else { outcome.line() };
        tally.add(outcome);
        text.map_or(Ok(()), |text| self.progress.aside(|| terminal::print(&text)))
    }
}

/// Finishes a file and tells what came of it. Who listens goes away only when there is nobody to tell; then all who play and
/// finish are asked to stop.
fn tell(sender: &mpsc::Sender<Outcome>, finish: Finish<'_>) {
    if let Some(outcome) = finish() {
        drop(sender.send(outcome));
    }
}

fn make_folder(out: &Path) -> anyhow::Result<()> {
    let Some(folder) = out.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| anyhow!("{}: cannot be made: {error}", folder.display()))
}
