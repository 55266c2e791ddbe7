//! Time of the parts of a step, memory and CPU use: `--profile`.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

use tch::Device;

use super::kineto::Trace;
use super::memory;
use super::operators::{self, Operator};
use super::resource_usage::ResourceUsage;
use crate::data::LoaderStats;

/// Steps that are remembered; of longer runs, the last.
const MAX_STEPS: usize = 10_000;
/// Number of parts.
const PARTS: usize = 7;

/// What a run spends time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Waiting for the batch.
    Data,
    /// Forward passes and losses.
    Forward,
    /// Backward passes.
    Backward,
    /// Optimiser, without further gradients that it asks for.
    Optimizer,
    /// Logs and display.
    Callbacks,
    /// Rest of a step: clipping, and collecting gradients.
    Rest,
    /// Validations and checkpoints, between steps.
    Between,
}

impl Part {
    const ALL: [(Self, &'static CStr); PARTS] = [
        (Self::Data, c"data"),
        (Self::Forward, c"forward"),
        (Self::Backward, c"backward"),
        (Self::Optimizer, c"optimizer"),
        (Self::Callbacks, c"callbacks"),
        (Self::Rest, c"rest"),
        (Self::Between, c"validation and checkpoints"),
    ];

    fn name(self) -> &'static CStr {
        Self::ALL[self as usize].1
    }
}

/// Settings of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Chrome trace of a few steps to write.
    pub trace: Option<PathBuf>,
    /// Times the operators of a few steps.
    pub operators: bool,
}

/// Stopwatch of a run. Without options it measures nothing and costs nothing.
#[derive(Default)]
pub struct Profile(Option<Recorder>);

struct Recorder {
    device: Device,
    current: Cell<Part>,
    /// Time since which the current part runs.
    since: Cell<Instant>,
    /// Seconds of each part in the current step; [`Part::Between`] is the sum over the run.
    seconds: Cell<[f64; PARTS]>,
    /// Seconds of each part of the last steps, except [`Part::Between`].
    steps: RefCell<Vec<[f32; PARTS - 1]>>,
    count: Cell<usize>,
    started: (Instant, ResourceUsage),
    trace: Option<RefCell<Trace>>,
}

impl Profile {
    /// Starts to measure.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be written.
    pub fn new(options: &ProfileOptions, device: Device) -> anyhow::Result<Self> {
        let traces = options.operators || options.trace.is_some();
        let trace = traces
            .then(|| Trace::new(options.trace.as_deref(), device))
            .transpose()?
            .map(RefCell::new);
        let _ = memory::peak_bytes();
        let now = Instant::now();
        Ok(Self(Some(Recorder {
            device,
            current: Cell::new(Part::Rest),
            since: Cell::new(now),
            seconds: Cell::default(),
            steps: RefCell::default(),
            count: Cell::new(0),
            started: (now, ResourceUsage::now()),
            trace,
        })))
    }

    /// Runs something as a part of the step. Parts may be nested: time counts for the innermost.
    pub fn measure<R>(&self, part: Part, run: impl FnOnce() -> R) -> R {
        let Some(recorder) = &self.0 else {
            return run();
        };
        let outer = recorder.switch(part);
        let result = run();
        recorder.switch(outer);
        result
    }

    /// Ends a step.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be written.
    pub fn step_done(&self) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), Recorder::step_done)
    }

    /// Ends the run and returns the report, with the counts of the loader; `None` if nothing was
    /// measured.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be written.
    pub fn finish(&self, loader: Option<LoaderStats>) -> anyhow::Result<Option<ProfileReport>> {
        self.0
            .as_ref()
            .map(|recorder| recorder.finish(loader))
            .transpose()
    }
}

impl Recorder {
    /// Begins a part and returns the one before.
    fn switch(&self, part: Part) -> Part {
        synchronize(self.device);
        let now = Instant::now();
        let before = self.current.replace(part);
        let mut seconds = self.seconds.get();
        seconds[before as usize] += (now - self.since.replace(now)).as_secs_f64();
        self.seconds.set(seconds);
        if let Some(trace) = &self.trace {
            trace.borrow().range(part.name());
        }
        before
    }

    fn step_done(&self) -> anyhow::Result<()> {
        self.switch(Part::Rest);
        let mut seconds = self.seconds.get();
        let step = &mut seconds[..PARTS - 1];
        // Steps that are traced take longer.
        if !self
            .trace
            .as_ref()
            .is_some_and(|trace| trace.borrow().is_recording())
        {
            let index = self.count.replace(self.count.get() + 1) % MAX_STEPS;
            let mut steps = self.steps.borrow_mut();
            let row = std::array::from_fn(|part| step[part] as f32);
            match steps.get_mut(index) {
                Some(oldest) => *oldest = row,
                None => steps.push(row),
            }
        }
        step.fill(0.0);
        self.seconds.set(seconds);
        if let Some(trace) = &self.trace {
            trace.borrow_mut().step_done()?;
            // Writing the trace is no part of the next step.
            self.since.set(Instant::now());
        }
        Ok(())
    }

    fn finish(&self, loader: Option<LoaderStats>) -> anyhow::Result<ProfileReport> {
        self.switch(Part::Rest);
        let tensor_peak_bytes = memory::peak_bytes();
        let mut operators = (Vec::new(), 0);
        if let Some(trace) = &self.trace {
            trace.borrow_mut().finish()?;
            let trace = trace.borrow();
            let (own, steps) = trace.operators();
            operators = (own.to_vec(), steps);
            let summary = serde_json::json!({
                "steps": steps, "operators": own, "loader": loader, "tensor_peak_bytes": tensor_peak_bytes,
            });
            trace.append("ondes", &summary)?;
        }
        let used = ResourceUsage::now();
        let wall = self.started.0.elapsed().as_secs_f64();
        let mut steps = self.steps.borrow().clone();
        // The first step allocates memory and chooses algorithms.
        if self.count.get() == steps.len() && steps.len() > 1 {
            steps.remove(0);
        }
        let rows = (0..PARTS - 1).map(|part| steps.iter().map(|step| step[part]).collect());
        let sums = std::iter::once(steps.iter().map(|step| step.iter().sum()).collect());
        Ok(ProfileReport {
            steps: steps.len(),
            rows: rows.chain(sums).map(Distribution::new).collect(),
            between_share: self.seconds.get()[Part::Between as usize] / wall.max(1e-9),
            peak_bytes: used.peak_bytes,
            tensor_peak_bytes,
            operators,
            loader,
            cores: (used.cpu_seconds - self.started.1.cpu_seconds) / wall.max(1e-9),
            threads: tch::get_num_threads(),
            device: self.device,
        })
    }
}

/// Waits for all work of a device.
pub(super) fn synchronize(device: Device) {
    if let Device::Cuda(index) = device {
        tch::Cuda::synchronize(index as i64);
    }
}

/// Durations of a part, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Mean.
    pub mean: f64,
    /// Percentiles 50, 95 and 99.
    pub percentiles: [f64; 3],
}

impl Distribution {
    fn new(mut values: Vec<f32>) -> Self {
        values.sort_by(f32::total_cmp);
        let Some(last) = values.len().checked_sub(1) else {
            return Self::default();
        };
        let at = |share: f64| f64::from(values[(share * last as f64).round() as usize]);
        let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
        Self {
            mean: sum / values.len() as f64,
            percentiles: [at(0.5), at(0.95), at(0.99)],
        }
    }
}

/// Result of a profile.
#[derive(Clone, Debug)]
pub struct ProfileReport {
    /// Measured steps.
    pub steps: usize,
    /// Durations of the parts in the order of [`Part`], up to [`Part::Rest`], then of the whole
    /// step.
    pub rows: Vec<Distribution>,
    /// Share of the run's time in validations and checkpoints.
    pub between_share: f64,
    /// Largest memory of the process, bytes.
    pub peak_bytes: u64,
    /// Largest memory of the CPU's tensors, bytes; 0 where they are not counted.
    pub tensor_peak_bytes: u64,
    /// Operators of some steps, and the number of these.
    pub operators: (Vec<Operator>, u64),
    /// Counts of the loader.
    pub loader: Option<LoaderStats>,
    /// Cores that the process kept busy, mean.
    pub cores: f64,
    /// Threads of libtorch.
    pub threads: i32,
    /// Device.
    pub device: Device,
}

impl ProfileReport {
    /// Returns the share of a step that a part takes.
    #[must_use]
    pub fn share(&self, part: Part) -> f64 {
        self.rows[part as usize].mean / self.rows[PARTS - 1].mean.max(1e-12)
    }

    /// Returns a table, and a sentence of advice.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "profile of {} steps, ms\n{:12} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
            self.steps, "", "mean", "p50", "p95", "p99", "share"
        );
        let names = Part::ALL
            .iter()
            .take(PARTS - 1)
            .map(|(_, name)| name.to_str().unwrap_or_default());
        let whole = self.rows[PARTS - 1].mean.max(1e-12);
        for (name, Distribution { mean, percentiles }) in names.chain(["step"]).zip(&self.rows) {
            let [median, p95, p99] = percentiles.map(|seconds| 1e3 * seconds);
            let (mean, share) = (1e3 * mean, 100.0 * mean / whole);
            let _ = writeln!(
                text,
                "{name:12} {mean:9.3} {median:9.3} {p95:9.3} {p99:9.3} {share:5.1} %"
            );
        }
        text += &operators::table(&self.operators.0, self.operators.1);
        if let Some(loader) = &self.loader {
            let [mean, p95, p99] = loader.latency.map(|seconds| 1e3 * seconds);
            let _ = writeln!(
                text,
                "loader: {} rows by {} threads in {:.2} s, waited for {:.2} s; a batch takes {mean:.2} ms, p95 {p95:.2}, \
                 p99 {p99:.2}",
                loader.crops, loader.workers, loader.busy_seconds, loader.wait_seconds
            );
        }
        let tensors = match self.tensor_peak_bytes {
            0 => String::new(),
            bytes => format!(", of tensors {:.2} GB", bytes as f64 / 1e9),
        };
        let _ = write!(
            text,
            "validation and checkpoints: {:.1} % of the run; memory peak {:.2} GB{tensors}; {:.1} cores busy, {} threads\n{}",
            100.0 * self.between_share,
            self.peak_bytes as f64 / 1e9,
            self.cores,
            self.threads,
            self.advice()
        );
        text
    }

    /// Returns what to change first to train faster, in a sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let share = |part| self.share(part);
        if self.between_share > 0.3 {
            return format!(
                "Validations and checkpoints take {} of the time: raise validate_every and checkpoint_every.",
                percent(self.between_share)
            );
        }
        if share(Part::Data) > 0.2 {
            return format!(
                "Steps wait for data {} of the time: cut shorter crops, leave a core to the loader (--threads), or put \
                 recordings that do not fit into memory on a faster disk.",
                percent(share(Part::Data))
            );
        }
        if share(Part::Callbacks) > 0.02 {
            return format!(
                "Logs take {} of a step: raise log_every, or leave out --tensorboard.",
                percent(share(Part::Callbacks))
            );
        }
        if share(Part::Optimizer) > 0.3 {
            return format!(
                "The optimizer takes {} of a step: a larger batch, or a simpler optimizer such as adamw, uses the time \
                 better.",
                percent(share(Part::Optimizer))
            );
        }
        if self.device == Device::Cpu
            && self.threads > 1
            && self.cores < 0.7 * f64::from(self.threads)
        {
            return format!(
                "Of {} threads {:.1} are busy: try --threads 1, or stop other programs.",
                self.threads, self.cores
            );
        }
        "Nearly all of the time is arithmetic: for convolutions try --precision bf16, otherwise a smaller network."
            .into()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_counts_for_the_innermost_part() {
        let profile = Profile::new(&ProfileOptions::default(), Device::Cpu).expect("it measures");
        let pause = || sleep(Duration::from_millis(20));
        for _ in 0..4 {
            profile.measure(Part::Optimizer, || {
                pause();
                profile.measure(Part::Forward, || {
                    pause();
                    pause();
                });
            });
            pause();
            profile.step_done().expect("there is no trace");
            profile.measure(Part::Between, pause);
        }
        let report = profile
            .finish(None)
            .expect("there is no trace")
            .expect("it measured");
        assert_eq!(report.steps, 3, "the first is left out");
        let seconds = |part: Part| report.rows[part as usize].percentiles[0];
        assert!(
            seconds(Part::Forward) >= 0.04
                && seconds(Part::Optimizer) >= 0.02
                && seconds(Part::Rest) >= 0.02
        );
        assert_eq!(
            seconds(Part::Data) + seconds(Part::Backward) + seconds(Part::Callbacks),
            0.0
        );
        let whole: f64 = report.rows[..PARTS - 1].iter().map(|row| row.mean).sum();
        assert!(
            (whole - report.rows[PARTS - 1].mean).abs() < 1e-6 * whole,
            "the parts are the whole"
        );
        assert!(report.between_share > 0.0 && report.peak_bytes > 1_000_000);
        assert!(
            Profile::default()
                .finish(None)
                .expect("nothing is written")
                .is_none()
        );
    }

    #[test]
    fn the_advice_names_what_takes_longest() {
        let row = |mean| Distribution {
            mean,
            ..Distribution::default()
        };
        let report = |means: [f64; PARTS - 1], between_share, cores, threads| {
            let rows = means
                .iter()
                .copied()
                .chain([means.iter().sum()])
                .map(row)
                .collect();
            let device = Device::Cpu;
            ProfileReport {
                steps: 9,
                rows,
                between_share,
                peak_bytes: 1,
                tensor_peak_bytes: 0,
                operators: (Vec::new(), 0),
                loader: None,
                cores,
                threads,
                device,
            }
            .advice()
        };
        let arithmetic = [0.0, 0.5, 0.5, 0.0, 0.0, 0.0];
        assert!(report(arithmetic, 0.0, 2.0, 2).contains("bf16"));
        assert!(report(arithmetic, 0.0, 1.0, 2).contains("--threads 1"));
        assert!(report(arithmetic, 0.5, 2.0, 2).contains("validate_every"));
        assert!(report([0.4, 0.3, 0.3, 0.0, 0.0, 0.0], 0.0, 2.0, 2).contains("data 40 %"));
        assert!(report([0.0, 0.3, 0.3, 0.4, 0.0, 0.0], 0.0, 2.0, 2).contains("adamw"));
        assert!(report([0.0, 0.5, 0.4, 0.0, 0.1, 0.0], 0.0, 2.0, 2).contains("log_every"));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let values = (0..=100).rev().map(|value| value as f32).collect();
        assert_eq!(
            Distribution::new(values),
            Distribution {
                mean: 50.0,
                percentiles: [50.0, 95.0, 99.0]
            }
        );
        assert_eq!(Distribution::new(Vec::new()), Distribution::default());
    }
}
