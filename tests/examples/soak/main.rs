//! Plays the bundled instruments against the clock, as a host does, and says how that went. It measures and judges nothing.

mod machine;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, scope, sleep};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use ondes_engine::instrument::{EventKind, controller};
use ondes_engine::model::file;
use ondes_engine::pipeline::{Action, ControlId, PipelineOptions};
use ondes_engine::realtime::histogram::{Histogram, Percentiles};
use ondes_engine::realtime::{BlockCue, Driver, Patch, Remote, Session, Setup, Status, priority};
use ondes_tests::{bundled_models, random};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Plays the bundled instruments in real time and measures what is late
#[derive(Parser)]
struct Args {
    /// How long to play
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Samples of a block
    #[arg(long, default_value_t = 128)]
    block: usize,
    /// Sample rate, Hz
    #[arg(long, default_value_t = 48_000)]
    rate: u32,
    /// Threads that compute all the time beside it, with ordinary priority
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// Where the models run
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    driver: Choice,
    /// Latency of the worker's queue, samples; as short as is safe where not given
    #[arg(long)]
    latency: Option<usize>,
    /// Sessions; each plays the next of the bundled models
    #[arg(long, default_value_t = 3)]
    sessions: usize,
    /// Writes what the worker did in the last seconds to this file, for a look at it in ui.perfetto.dev
    #[arg(long)]
    trace: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Auto,
    Inline,
    Worker,
}

impl Choice {
    fn driver(self, latency: Option<usize>) -> Driver {
        match self {
            Self::Auto => Driver::Auto,
            Self::Inline => Driver::Inline,
            Self::Worker => Driver::Worker { latency },
        }
    }
}

fn main() {
    let args = Args::parse();
    let setup = Setup { sample_rate: args.rate, max_block: args.block };
    let models = bundled_models();
    let (mut titles, mut remotes, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for (number, path) in (0..args.sessions).zip(models.iter().cycle()) {
        let remote = loaded(path, args.driver.driver(args.latency));
        let session = match remote.activate(setup) {
            Ok(session) => session,
            Err(error) => return eprintln!("{error}"),
        };
        titles.push(format!("{number} {}", path.file_stem().unwrap_or_default().display()));
        sessions.push(session);
        remotes.push(remote);
    }
    let over = AtomicBool::new(false);
    let cores = available_parallelism().map_or(1, usize::from);
    let (host, at_start, missed, stalls) = scope(|scope| {
        for _ in 0..args.busy {
            scope.spawn(|| compute(&over));
        }
        let over = &over;
        let watches: Vec<_> = (0..cores).map(|core| scope.spawn(move || machine::watch(core, over))).collect();
        let audio = scope.spawn(|| play(sessions, setup, Duration::from_secs_f64(60.0 * args.minutes.max(0.0))));
        sleep(Duration::from_secs_f64((30.0 * args.minutes).clamp(0.0, 2.0)));
        let at_start = memory_kib();
        let missed = count_misses(&remotes, || audio.is_finished());
        let host = audio.join().expect("the models play");
        over.store(true, Ordering::Relaxed);
        let stalls: Option<Vec<_>> = watches.into_iter().map(|watch| watch.join().expect("it only sleeps")).collect();
        (host, at_start, missed, stalls.map(|stalls| stalls.concat()))
    });
    report(&args, &host, &titles, &remotes, [at_start, memory_kib()]);
    report_misses(&titles, &remotes, &missed, stalls.as_deref(), args.rate);
    if let Some(path) = args.trace {
        let written = std::fs::File::create(&path)
            .and_then(|file| ondes_engine::realtime::worker_trace().write_chrome(&mut std::io::BufWriter::new(file)));
        match written {
            Ok(spans) => println!("{}: {spans} steps", path.display()),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
}

/// A session's other half that has its model.
fn loaded(path: &Path, driver: Driver) -> Remote {
    let remote = Remote::new();
    remote.set_driver(driver);
    let path = path.to_owned();
    let load = move || {
        let model = file::read(&path).map_err(|error| error.to_string())?;
        let patch = Patch::new(Arc::new(model), PipelineOptions::default()).map_err(|error| error.to_string())?;
        Ok(Arc::new(patch) as _)
    };
    remote.load(Box::new(load), &[]);
    while remote.status() == Status::Loading {
        sleep(Duration::from_millis(5));
    }
    remote
}

/// How often misses are counted.
const COUNT_EVERY: Duration = Duration::from_millis(20);

/// Misses of each session, and when they were seen, from the first block on.
fn count_misses(remotes: &[Remote], is_over: impl Fn() -> bool) -> Vec<Vec<machine::Missed>> {
    let mut missed = vec![Vec::new(); remotes.len()];
    let mut counts = vec![0; remotes.len()];
    let mut from = Instant::now();
    loop {
        let last = is_over();
        sleep(COUNT_EVERY);
        let until = Instant::now();
        for ((remote, seen), missed) in remotes.iter().zip(&mut counts).zip(&mut missed) {
            let now = remote.health().map_or(*seen, |health| health.misses);
            if now > *seen {
                missed.push(machine::Missed { from, until, count: now - *seen });
            }
            *seen = now;
        }
        from = until;
        if last {
            return missed;
        }
    }
}

/// How a host's audio thread did.
struct Host {
    real_time: bool,
    blocks: u64,
    /// Blocks that were not ready when the next one was due.
    late: u64,
    /// Time from when a block was due to when its callback began: what the system and the machine make late.
    woken: Percentiles,
    /// Time of whole callbacks, all sessions.
    callbacks: Percentiles,
}

/// The audio thread of a host. A block is due when the clock says so, and late when it is not done before the next one is due;
/// after a delay of several blocks it goes on with the one that is due then.
fn play(sessions: Vec<Session>, setup: Setup, length: Duration) -> Host {
    let real_time = raise(HOST_PRIORITY);
    let mut players: Vec<Player> =
        (0..).zip(sessions).map(|(seed, session)| Player::new(session, seed, setup)).collect();
    let due =
        |block: u64| Duration::from_secs_f64(block as f64 * setup.max_block as f64 / f64::from(setup.sample_rate));
    let (woken, callbacks) = (Histogram::new(), Histogram::new());
    let (mut block, mut blocks, mut late) = (0, 0, 0);
    let begun = Instant::now();
    while due(block) < length {
        sleep(due(block).saturating_sub(begun.elapsed()));
        let called = Instant::now();
        woken.record((called - begun).saturating_sub(due(block)));
        players.iter_mut().for_each(Player::block);
        callbacks.record(called.elapsed());
        (block, blocks) = (block + 1, blocks + 1);
        let elapsed = begun.elapsed();
        late += u64::from(due(block) < elapsed);
        while due(block + 1) <= elapsed {
            (block, late) = (block + 1, late + 1);
        }
    }
    Host { real_time, blocks, late, woken: woken.percentiles(), callbacks: callbacks.percentiles() }
}

/// What a sound server gives its clients, 1 to 99.
const HOST_PRIORITY: u8 = 70;

/// Asks for a real-time priority.
fn raise(priority: u8) -> bool {
    #[cfg(unix)]
    {
        use thread_priority::{
            RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
            set_thread_priority_and_policy, thread_native_id,
        };
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let value = ThreadPriorityValue::try_from(priority).expect("priorities go from 1 to 99");
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), fifo).is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = priority;
        thread_priority::ThreadPriority::Max.set_for_current().is_ok()
    }
}

/// Most notes that are held at once.
const CHORD: usize = 4;

/// Plays a session without end and never the same.
struct Player {
    session: Session,
    random: Xoshiro256PlusPlus,
    held: Vec<u8>,
    cues: Vec<BlockCue>,
    output: [Vec<f32>; 2],
    rate: f64,
}

impl Player {
    fn new(session: Session, seed: u64, setup: Setup) -> Self {
        Self {
            session,
            random: random(seed),
            held: Vec::with_capacity(CHORD),
            cues: Vec::with_capacity(4),
            output: [vec![0.0; setup.max_block], vec![0.0; setup.max_block]],
            rate: setup.max_block as f64 / f64::from(setup.sample_rate),
        }
    }

    fn block(&mut self) {
        self.cues.clear();
        // So many times per second each.
        if self.random.random_bool((5.0 * self.rate).min(1.0)) {
            let action = self.note();
            self.cue(action);
        }
        if self.random.random_bool((20.0 * self.rate).min(1.0)) {
            let action = self.turn();
            self.cue(action);
        }
        self.cues.sort_unstable_by_key(|cue| cue.offset);
        let [left, right] = &mut self.output;
        self.session.process(&self.cues, &[], &mut [left, right]);
    }

    fn cue(&mut self, action: Action) {
        self.cues.push(BlockCue { offset: self.random.random_range(0..self.output[0].len()), action });
    }

    fn note(&mut self) -> Action {
        let channel = 0;
        Action::Play(if self.held.len() == CHORD || (!self.held.is_empty() && self.random.random_bool(0.4)) {
            let key = self.held.swap_remove(self.random.random_range(0..self.held.len()));
            EventKind::NoteOff { channel, key, velocity: 0.5 }
        } else {
            let key = self.random.random_range(48..84);
            if !self.held.contains(&key) {
                self.held.push(key);
            }
            EventKind::NoteOn { channel, key, velocity: self.random.random_range(0.2..1.0) }
        })
    }

    fn turn(&mut self) -> Action {
        let (channel, value) = (0, self.random.random_range(0.0..1.0));
        match self.random.random_range(0..5) {
            0 => Action::Play(EventKind::Bend { channel, semitones: 2.0 * value - 1.0 }),
            1 => Action::Play(EventKind::Controller { channel, number: controller::MOD_WHEEL, value }),
            2 => Action::Control { id: ControlId::of("room"), value: 2.0 * value },
            3 => Action::Control { id: ControlId::of("brightness"), value: 12.0 * value - 6.0 },
            _ => Action::Control { id: ControlId::of("vibrato_depth"), value: 60.0 * value },
        }
    }
}

/// Takes a core's time.
fn compute(over: &AtomicBool) {
    let mut random = random(0);
    while !over.load(Ordering::Relaxed) {
        std::hint::black_box((0..10_000).fold(0.0_f32, |sum, _| sum + random.random_range(0.0..1.0_f32).sqrt()));
    }
}

/// What of the process lies in memory, KiB, where the system says.
fn memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

fn report(args: &Args, host: &Host, titles: &[String], remotes: &[Remote], memory: [Option<u64>; 2]) {
    let period = 1e3 * args.block as f64 / f64::from(args.rate);
    let cores = available_parallelism().map_or(0, usize::from);
    println!(
        "{} min, {} Hz, blocks of {} ({period:.3} ms), {} busy threads, {cores} cores",
        args.minutes, args.rate, args.block, args.busy
    );
    let granted = |granted| if granted { "granted" } else { "refused" };
    let worker = priority::granted().map_or("not asked for", granted);
    println!("real-time priority: audio thread {}, worker {worker}", granted(host.real_time));
    let memory = memory.map(|kib| kib.map_or("?".into(), |kib| format!("{:.1}", kib as f64 / 1024.0)));
    println!("memory: {} MiB at the start, {} MiB at the end", memory[0], memory[1]);
    let share = 100.0 * host.late as f64 / host.blocks.max(1) as f64;
    println!("host: {} blocks played, {} late ({share:.4} %)", host.blocks, host.late);
    println!("host: woken after {}", Times(host.woken));
    println!("host: callbacks took {}", Times(host.callbacks));
    for (title, remote) in titles.iter().zip(remotes) {
        let Some(health) = remote.health() else {
            println!("{title}: {:?}", remote.status());
            continue;
        };
        println!(
            "{title}: {:?}, latency {} ({:.1} ms), load {:.1} %, {} misses, {} faults, {} cues lost; {} steps {}",
            health.driven,
            health.latency_samples,
            health.latency_ms,
            100.0 * health.load,
            health.misses,
            health.faults,
            health.cues_lost,
            health.steps.count,
            Times(health.steps)
        );
    }
}

/// Which misses the machine is to blame for: those during a stall of a core, or within the session's latency after.
fn report_misses(
    titles: &[String],
    remotes: &[Remote],
    missed: &[Vec<machine::Missed>],
    stalls: Option<&[machine::Stall]>,
    rate: u32,
) {
    let Some(stalls) = stalls else {
        return println!("machine: not watched, since no thread may outrank the audio thread here");
    };
    let lengths: Vec<Duration> = stalls.iter().map(|stall| stall.until - stall.from).collect();
    let (total, worst) = (lengths.iter().sum::<Duration>(), lengths.iter().max().copied().unwrap_or_default());
    println!("machine: a core stood still {} times for over 1 ms, {total:.1?} in all, worst {worst:.1?}", stalls.len());
    for ((title, remote), missed) in titles.iter().zip(remotes).zip(missed) {
        let latency = remote.health().map_or(0, |health| health.latency_samples);
        let reach = Duration::from_secs_f64(latency as f64 / f64::from(rate));
        let all: u64 = missed.iter().map(|missed| missed.count).sum();
        let excused = machine::during_stalls(missed, stalls, reach);
        println!("{title}: {all} misses, {excused} of them while a core stood still, {} otherwise", all - excused);
    }
}

struct Times(Percentiles);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles { p50, p99, p999, worst, .. } = self.0;
        write!(f, "p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}, worst {worst:.1?}")
    }
}
