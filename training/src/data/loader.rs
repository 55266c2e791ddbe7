//! Cuts the crops of the next steps in the background.
//!
//! The crops of a step depend on the seed and the step only (see [`Dataset::batch`]), so the number of threads and the
//! length of the queue change nothing but the time that the trainer waits. Both grow while it does.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};
use tch::Device;

use super::crops::{Crop, CropBatch, Dataset, Subset};
use super::store::Reads;
use crate::trainer::kineto::in_range;

/// Steps in the queue, at first and at most.
const DEPTH: (u64, u64) = (2, 32);
/// Share of the time that the trainer may wait before the loader grows.
const PATIENCE: f64 = 0.005;
/// Steps between two decisions whether to grow.
const DECISION_STEPS: u32 = 20;
/// Latest batches whose latency is kept.
const LATENCIES: usize = 1_000;

/// Position of a crop: step and row.
type CropPosition = (u64, usize);

/// Counts and times of a loader since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoaderStats {
    /// Batches taken.
    pub batches: u64,
    /// Crops cut.
    pub crops: u64,
    /// Time that the trainer waited, seconds.
    pub wait_seconds: f64,
    /// Time of all threads together, seconds.
    pub busy_seconds: f64,
    /// Time from a batch's first crop being started to its last being cut, seconds: mean, 95th and 99th percentile of
    /// the latest batches.
    pub latency: [f64; 3],
    /// Steps in the queue that are ready.
    pub ready: u64,
    /// Steps that the queue holds at most.
    pub depth: u64,
    /// Threads.
    pub workers: usize,
    /// Rows read.
    #[serde(flatten)]
    pub reads: Reads,
}

/// Queue of crops, cut by threads of its own.
pub struct Loader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    max_workers: usize,
    /// Most memory for crops in the queue, bytes.
    queue_bytes: u64,
    decided: (Instant, f64, u32),
}

struct Shared {
    dataset: Arc<Dataset>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Step that the trainer takes.
    current: u64,
    /// Rows of a step that are taken.
    rows: Range<usize>,
    depth: u64,
    /// Next crop to cut.
    next: CropPosition,
    crops: BTreeMap<CropPosition, anyhow::Result<Arc<Crop>>>,
    /// Start of each step's first crop.
    started: BTreeMap<u64, Instant>,
    latencies: VecDeque<f64>,
    stats: LoaderStats,
    closed: bool,
}

impl Loader {
    /// Creates a loader of the training crops, whose queue takes up to `queue_bytes`. With 0 workers, their number follows
    /// from the trainer's wait.
    #[must_use]
    pub fn new(dataset: Arc<Dataset>, workers: usize, queue_bytes: u64) -> Self {
        let queue = Queue { depth: DEPTH.0, ..Queue::default() };
        let shared = Arc::new(Shared { dataset, queue: Mutex::new(queue), changed: Condvar::new() });
        let cores = available_parallelism().map_or(1, usize::from);
        let max_workers = if workers == 0 { cores } else { workers };
        let mut loader =
            Self { shared, threads: Vec::new(), max_workers, queue_bytes, decided: (Instant::now(), 0.0, 0) };
        (0..workers.max(1)).for_each(|_| loader.add_worker());
        loader
    }

    fn add_worker(&mut self) {
        let shared = self.shared.clone();
        self.threads.push(std::thread::spawn(move || shared.work()));
    }

    /// Takes some of the crops of a step, of which the rows `own` are taken in all; waits until they are cut. Steps may be taken in any
    /// order, but only the next ones are cut in advance. Crops of the current step may be taken again.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn take(
        &mut self,
        step: u64,
        rows: Range<usize>,
        own: Range<usize>,
        device: Device,
    ) -> anyhow::Result<CropBatch> {
        let started = Instant::now();
        let mut queue = lock(&self.shared.queue);
        if own != queue.rows {
            queue.rows = own;
            queue.depth = queue.depth.min(self.deepest(&queue));
            queue.restart(step);
            self.shared.changed.notify_all();
        }
        if queue.current != step {
            queue.stats.batches += 1;
            if step < queue.current || step > queue.next.0 {
                queue.restart(step);
            } else {
                queue.advance(step);
            }
            self.shared.changed.notify_all();
        }
        let mut crops = Vec::with_capacity(rows.len());
        for row in rows {
            loop {
                match queue.crops.get(&(step, row)) {
                    Some(Ok(crop)) => break crops.push(crop.clone()),
                    Some(Err(_)) => {
                        let failed = queue.crops.remove(&(step, row));
                        queue.restart(step);
                        return Err(failed.and_then(Result::err).unwrap_or_else(|| anyhow!("the crop has gone")));
                    }
                    None => queue = self.shared.wait(queue),
                }
            }
        }
        let waited = started.elapsed().as_secs_f64();
        queue.stats.wait_seconds += waited;
        drop(queue);
        self.grow(waited);
        Ok(CropBatch::new(crops.iter().map(Arc::as_ref), device))
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
        queue.depth = (2 * queue.depth).min(DEPTH.1).min(self.deepest(&queue));
        drop(queue);
        self.shared.changed.notify_all();
        if self.threads.len() < self.max_workers {
            self.add_worker();
        }
    }

    /// Returns the most steps that the memory of the queue holds, one at least.
    fn deepest(&self, queue: &Queue) -> u64 {
        let step = queue.rows.len() * self.shared.dataset.crop_bytes();
        (self.queue_bytes / (step as u64).max(1)).max(1)
    }

    /// Returns what has been done so far.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let queue = lock(&self.shared.queue);
        let mut latencies: Vec<f64> = queue.latencies.iter().copied().collect();
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| latencies.get((share * latencies.len() as f64) as usize).copied().unwrap_or_default();
        let mean = latencies.iter().sum::<f64>() / latencies.len().max(1) as f64;
        let (reads, rows) = (self.shared.dataset.reads(), queue.rows.len().max(1));
        LoaderStats {
            latency: [mean, at(0.95), at(0.99)],
            ready: (queue.crops.range((queue.current + 1, 0)..).count() / rows) as u64,
            depth: queue.depth,
            workers: self.threads.len(),
            reads,
            ..queue.stats
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.changed.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Queue {
    /// Forgets all crops and begins at a step.
    fn restart(&mut self, step: u64) {
        self.crops.clear();
        self.started.clear();
        self.next = (step, self.rows.start);
        self.current = step;
    }

    /// Forgets the crops of the steps before.
    fn advance(&mut self, step: u64) {
        self.crops = self.crops.split_off(&(step, 0));
        self.started = self.started.split_off(&step);
        self.next = self.next.max((step, self.rows.start));
        self.current = step;
    }

    /// Returns the next crop to cut, if the queue has room for it.
    fn claim(&mut self) -> Option<CropPosition> {
        let position = self.next;
        if position.0 > self.current + self.depth || self.rows.is_empty() {
            return None;
        }
        let (step, row) = position;
        self.next = if row + 1 < self.rows.end { (step, row + 1) } else { (step + 1, self.rows.start) };
        self.started.entry(step).or_insert_with(Instant::now);
        Some(position)
    }

    fn put(&mut self, position: CropPosition, crop: anyhow::Result<Crop>, busy: Duration) {
        self.stats.crops += 1;
        self.stats.busy_seconds += busy.as_secs_f64();
        let step = position.0;
        // The trainer may have gone elsewhere meanwhile.
        if step < self.current || step > self.current + self.depth {
            return;
        }
        self.crops.insert(position, crop.map(Arc::new));
        if self.crops.range((step, 0)..=(step, usize::MAX)).count() == self.rows.len()
            && let Some(started) = self.started.get(&step)
        {
            self.latencies.push_back(started.elapsed().as_secs_f64());
            if self.latencies.len() > LATENCIES {
                self.latencies.pop_front();
            }
        }
    }
}

impl Shared {
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts crops until the loader is dropped.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        while !queue.closed {
            let Some((step, row)) = queue.claim() else {
                queue = self.wait(queue);
                continue;
            };
            drop(queue);
            let started = Instant::now();
            let cut = catch_unwind(AssertUnwindSafe(|| {
                in_range(c"loader", || self.dataset.crop(Subset::Training, step, row))
            }));
            let crop = cut.unwrap_or_else(|_| Err(anyhow!("a thread that reads the data has crashed")));
            queue = lock(&self.queue);
            queue.put((step, row), crop, started.elapsed());
            self.changed.notify_all();
        }
    }
}
