//! Cuts the rows of the next steps in the background, and copies the next batch to a GPU while it
//! computes the present one.
//!
//! A row depends on its source, the step and its number only (see [`RowSource::row`]), so the
//! number of threads and the length of the queue change nothing but the time that the trainer
//! waits. Both grow while it does.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::rows::{RowSource, StepRows, TensorGroup};
use super::store::Reads;
use super::upload::Upload;
use crate::trainer::kineto::in_range;

/// Steps in the queue, at first and at most.
const DEPTH: (u64, u64) = (2, 32);
/// Share of the time that the trainer may wait before the loader grows.
const PATIENCE: f64 = 0.005;
/// Steps between two decisions whether to grow.
const DECISION_STEPS: u32 = 20;
/// Latest batches whose latency is kept.
const LATENCIES: usize = 1_000;

/// Position of a row: step and number.
type RowPosition = (u64, usize);

/// Counts and times of a loader since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoaderStats {
    /// Batches taken.
    pub batches: u64,
    /// Rows cut: crops, or windows.
    pub crops: u64,
    /// Time that the trainer waited, seconds.
    pub wait_seconds: f64,
    /// Time of all threads together, seconds.
    pub busy_seconds: f64,
    /// Time from a batch's first row being started to its last being cut, seconds: mean, 95th and
    /// 99th percentile of the latest batches.
    pub latency: [f64; 3],
    /// Steps in the queue that are ready.
    pub ready: u64,
    /// Steps that the queue holds at most.
    pub depth: u64,
    /// Threads.
    pub workers: usize,
    /// Rows of the dataset read.
    #[serde(flatten)]
    pub reads: Reads,
}

/// Queue of rows, cut by threads of its own. They start with the first step, and end with the
/// loader.
pub struct Loader<S: RowSource> {
    shared: Arc<Shared<S>>,
    threads: Vec<JoinHandle<()>>,
    /// Threads at first and at most.
    workers: [usize; 2],
    /// Most memory for rows in the queue, bytes.
    queue_bytes: u64,
    decided: (Instant, f64, u32),
    /// Batches of the next step that are on their way to a GPU, each with its step and rows.
    uploads: VecDeque<(u64, Range<usize>, Upload<S::Batch>)>,
    /// Parts of the current step that were taken.
    parts: Vec<Range<usize>>,
    /// Prepares the next step for any device, as for a GPU.
    uploads_ahead: bool,
}

struct Shared<S: RowSource> {
    source: Arc<S>,
    queue: Mutex<Queue<S::Row>>,
    /// Notified when workers may cut rows again.
    room: Condvar,
    /// Notified when a row of the trainer's step is cut.
    cut: Condvar,
}

struct Queue<R> {
    /// Step that the trainer takes.
    current: u64,
    /// Rows of each step.
    rows: StepRows,
    depth: u64,
    /// Next row to cut.
    next: RowPosition,
    cut: BTreeMap<RowPosition, anyhow::Result<Arc<R>>>,
    /// Start of each step's first row, and the number of its rows that were cut.
    started: BTreeMap<u64, (Instant, usize)>,
    latencies: VecDeque<f64>,
    stats: LoaderStats,
    closed: bool,
}

impl<S: RowSource> Loader<S> {
    /// Creates a loader, whose queue takes up to `queue_bytes`. With 0 workers, their number
    /// follows from the trainer's wait.
    #[must_use]
    pub fn new(source: Arc<S>, rows: StepRows, workers: usize, queue_bytes: u64) -> Self {
        let queue = Queue {
            current: 0,
            rows,
            depth: DEPTH.0,
            next: (0, 0),
            cut: BTreeMap::new(),
            started: BTreeMap::new(),
            latencies: VecDeque::new(),
            stats: LoaderStats::default(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            source,
            queue: Mutex::new(queue),
            room: Condvar::new(),
            cut: Condvar::new(),
        });
        let cores = available_parallelism().map_or(1, usize::from);
        let mut loader = Self {
            shared,
            threads: Vec::new(),
            workers: [workers.max(1), if workers == 0 { cores } else { workers }],
            queue_bytes,
            decided: (Instant::now(), 0.0, 0),
            uploads: VecDeque::new(),
            parts: Vec::new(),
            uploads_ahead: false,
        };
        loader.set_rows(rows);
        loader
    }

    /// Prepares the next step on any device, as on a GPU.
    #[cfg(test)]
    pub(super) fn upload_ahead(&mut self) {
        self.uploads_ahead = true;
    }

    /// Returns the rows of each step.
    #[must_use]
    pub fn rows(&self) -> StepRows {
        lock(&self.shared.queue).rows
    }

    /// Changes the rows of each step.
    pub fn set_rows(&mut self, rows: StepRows) {
        let mut queue = lock(&self.shared.queue);
        queue.rows = rows;
        queue.depth = queue.depth.min(self.deepest(rows));
        let current = queue.current;
        queue.restart(current);
        drop(queue);
        self.uploads.clear();
        self.parts.clear();
        self.shared.room.notify_all();
    }

    /// Sets which process of how many takes the rows.
    pub fn set_process(&mut self, rank: usize, size: usize) {
        self.set_rows(StepRows {
            process: (rank, size),
            ..self.rows()
        });
    }

    /// Changes the number of rows of a step.
    pub fn set_batch(&mut self, batch: usize) {
        self.set_rows(StepRows {
            batch,
            ..self.rows()
        });
    }

    fn add_worker(&mut self) {
        let shared = self.shared.clone();
        self.threads.push(std::thread::spawn(move || shared.work()));
    }

    /// Takes some of the rows of a step that are this process's own; waits until they are cut.
    /// Steps may be taken in any order, but only the next ones are cut in advance. Rows of the
    /// current step may be taken again.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read, or a thread has panicked.
    ///
    /// # Panics
    /// Panics with libtorch's error, such as that there is not enough memory on a GPU.
    pub fn take(
        &mut self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<S::Batch> {
        let cut = self.wait_for(step, &rows)?;
        let source = self.shared.source.clone();
        if !matches!(device, Device::Cuda(_)) && !self.uploads_ahead {
            return Ok(source.joined(&cut).to_device(device));
        }
        let own = self.rows().own(step);
        if rows.start == own.start {
            self.parts.clear();
        }
        let known = self
            .uploads
            .pop_front()
            .filter(|(of, part, _)| (*of, part) == (step, &rows));
        let batch = match known {
            Some((.., upload)) => upload.finish(),
            // A step that is not the next one, or begins again in other parts since memory was
            // missing.
            None => {
                self.uploads.clear();
                Upload::start(source.joined(&cut), device).finish()
            }
        };
        self.parts.push(rows.clone());
        if rows.end == own.end && self.rows().own(step + 1) == own {
            for part in std::mem::take(&mut self.parts) {
                let Some(cut) = lock(&self.shared.queue).ready(step + 1, &part) else {
                    break;
                };
                self.uploads.push_back((
                    step + 1,
                    part,
                    Upload::start(source.joined(&cut), device),
                ));
            }
        }
        Ok(batch)
    }

    /// Waits until rows of a step are cut.
    fn wait_for(&mut self, step: u64, rows: &Range<usize>) -> anyhow::Result<Vec<Arc<S::Row>>> {
        let started = Instant::now();
        let mut queue = lock(&self.shared.queue);
        if self.threads.is_empty() {
            queue.restart(step);
            queue.stats.batches += 1;
            drop(queue);
            (0..self.workers[0]).for_each(|_| self.add_worker());
            queue = lock(&self.shared.queue);
        } else if queue.current != step {
            queue.stats.batches += 1;
            if step < queue.current || step > queue.next.0 {
                queue.restart(step);
            } else {
                queue.advance(step);
            }
            self.shared.room.notify_all();
        }
        let own = queue.rows.own(step);
        ensure!(
            own.start <= rows.start && rows.end <= own.end,
            "rows {rows:?} of a step that has the rows {own:?}"
        );
        let cut = loop {
            if let Some((&position, _)) = queue
                .cut
                .range((step, rows.start)..(step, rows.end))
                .find(|(_, row)| row.is_err())
            {
                let failed = queue.cut.remove(&position);
                queue.restart(step);
                self.shared.room.notify_all();
                return Err(failed
                    .and_then(Result::err)
                    .unwrap_or_else(|| anyhow!("the row has gone")));
            }
            match queue.ready(step, rows) {
                Some(cut) => break cut,
                None => queue = wait(&self.shared.cut, queue),
            }
        };
        let waited = started.elapsed().as_secs_f64();
        queue.stats.wait_seconds += waited;
        drop(queue);
        self.grow(waited);
        Ok(cut)
    }

    /// Adds a thread, or lengthens the queue, if the trainer waits for long.
    fn grow(&mut self, waited: f64) {
        let (since, wait, steps) = &mut self.decided;
        *wait += waited;
        *steps += 1;
        if *steps < DECISION_STEPS {
            return;
        }
        let share = *wait / since.elapsed().as_secs_f64().max(1e-9);
        self.decided = (Instant::now(), 0.0, 0);
        if share < PATIENCE {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        queue.depth = (2 * queue.depth).min(DEPTH.1).min(self.deepest(queue.rows));
        drop(queue);
        self.shared.room.notify_all();
        if self.threads.len() < self.workers[1] {
            self.add_worker();
        }
    }

    /// Returns the most steps after the current one that the memory of the queue holds, one at
    /// least.
    fn deepest(&self, rows: StepRows) -> u64 {
        let step = rows.own(0).len() * self.shared.source.row_bytes();
        (self.queue_bytes / (step as u64).max(1))
            .saturating_sub(1)
            .max(1)
    }

    /// Returns what has been done so far.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let queue = lock(&self.shared.queue);
        let mut latencies: Vec<f64> = queue.latencies.iter().copied().collect();
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| {
            latencies
                .get((share * latencies.len() as f64) as usize)
                .copied()
                .unwrap_or_default()
        };
        let mean = latencies.iter().sum::<f64>() / latencies.len().max(1) as f64;
        let is_ready = |step: &u64| {
            queue
                .started
                .get(step)
                .is_some_and(|(_, cut)| *cut == queue.rows.own(*step).len())
        };
        LoaderStats {
            latency: [mean, at(0.95), at(0.99)],
            ready: (queue.current + 1..=queue.current + queue.depth)
                .filter(is_ready)
                .count() as u64,
            depth: queue.depth,
            workers: self.threads.len(),
            reads: self.shared.source.reads(),
            ..queue.stats
        }
    }
}

impl<S: RowSource> Drop for Loader<S> {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.room.notify_all();
        self.threads
            .drain(..)
            .for_each(|thread| drop(thread.join()));
    }
}

impl<R> Queue<R> {
    /// Forgets all rows and begins at a step.
    fn restart(&mut self, step: u64) {
        self.cut.clear();
        self.started.clear();
        self.next = (step, 0);
        self.current = step;
    }

    /// Forgets the rows of the steps before.
    fn advance(&mut self, step: u64) {
        self.cut = self.cut.split_off(&(step, 0));
        self.started = self.started.split_off(&step);
        self.next = self.next.max((step, 0));
        self.current = step;
    }

    /// Returns rows of a step if all of them are cut.
    fn ready(&self, step: u64, rows: &Range<usize>) -> Option<Vec<Arc<R>>> {
        let cut = |row: usize| self.cut.get(&(step, row))?.as_ref().ok().cloned();
        rows.clone().map(cut).collect()
    }

    /// Returns the next row to cut, if the queue has room for it.
    fn claim(&mut self) -> Option<RowPosition> {
        while self.next.0 <= self.current + self.depth {
            let own = self.rows.own(self.next.0);
            let position = (self.next.0, self.next.1.max(own.start));
            if position.1 < own.end {
                self.next = (position.0, position.1 + 1);
                self.started
                    .entry(position.0)
                    .or_insert_with(|| (Instant::now(), 0));
                return Some(position);
            }
            self.next = (position.0 + 1, 0);
        }
        None
    }

    fn put(&mut self, position: RowPosition, row: anyhow::Result<R>, busy: Duration) {
        self.stats.crops += 1;
        self.stats.busy_seconds += busy.as_secs_f64();
        let (step, number) = position;
        // The trainer may have gone elsewhere meanwhile.
        let own = self.rows.own(step);
        if step < self.current || step > self.current + self.depth || !own.contains(&number) {
            return;
        }
        if self.cut.insert(position, row.map(Arc::new)).is_some() {
            return;
        }
        let Some((started, cut)) = self.started.get_mut(&step) else {
            return;
        };
        *cut += 1;
        if *cut == own.len() {
            self.latencies.push_back(started.elapsed().as_secs_f64());
            if self.latencies.len() > LATENCIES {
                self.latencies.pop_front();
            }
        }
    }
}

fn wait<'a, R>(changed: &Condvar, queue: MutexGuard<'a, Queue<R>>) -> MutexGuard<'a, Queue<R>> {
    changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
}

impl<S: RowSource> Shared<S> {
    /// Cuts rows until the loader is dropped.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        while !queue.closed {
            let Some((step, row)) = queue.claim() else {
                queue = wait(&self.room, queue);
                continue;
            };
            drop(queue);
            let started = Instant::now();
            let cut = catch_unwind(AssertUnwindSafe(|| {
                in_range(c"loader", || self.source.row(step, row))
            }));
            let cut = cut.unwrap_or_else(|_| {
                Err(anyhow!(
                    "a thread that cuts the data has crashed at step {step}"
                ))
            });
            queue = lock(&self.queue);
            queue.put((step, row), cut, started.elapsed());
            if step == queue.current {
                self.cut.notify_one();
            }
        }
    }
}
