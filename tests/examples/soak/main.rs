//! Plays the bundled instruments in real time, as a host does, and reports dropouts and times
//! without judging them.

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
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadStatus, PlayableModel, Session, SessionController, Setup, priority,
};
use ondes_tests::{bundled_models, seeded_rng};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Plays the bundled instruments in real time and measures dropouts
#[derive(Parser)]
struct Args {
    /// Minutes to play
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Samples per block
    #[arg(long, default_value_t = 128)]
    block: usize,
    /// Sample rate, Hz
    #[arg(long, default_value_t = 48_000)]
    sample_rate: u32,
    /// Threads of ordinary priority that compute all the time
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// Thread that runs the models: audio thread (inline), background (worker), or as measured
    /// (auto)
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    driver: Choice,
    /// Latency of the worker in samples [default: as short as is safe]
    #[arg(long)]
    latency: Option<usize>,
    /// Number of sessions; they play the bundled models in turn
    #[arg(long, default_value_t = 3)]
    sessions: usize,
    /// Writes a trace of the worker's last seconds, for ui.perfetto.dev
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
    let setup = Setup {
        sample_rate: args.sample_rate,
        max_block: args.block,
    };
    let models = bundled_models();
    let (mut titles, mut remotes, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for (number, path) in (0..args.sessions).zip(models.iter().cycle()) {
        let controller = loaded(path, args.driver.driver(args.latency));
        let session = match controller.activate(setup) {
            Ok(session) => session,
            Err(error) => return eprintln!("{error}"),
        };
        titles.push(format!(
            "{number} {}",
            path.file_stem().unwrap_or_default().display()
        ));
        sessions.push(session);
        remotes.push(controller);
    }
    let over = AtomicBool::new(false);
    let cores = available_parallelism().map_or(1, usize::from);
    let (host, at_start, dropouts, stalls) = scope(|scope| {
        for _ in 0..args.busy {
            scope.spawn(|| compute(&over));
        }
        let over = &over;
        let watches: Vec<_> = (0..cores)
            .map(|core| scope.spawn(move || machine::watch(core, over)))
            .collect();
        let audio = scope.spawn(|| {
            play(
                sessions,
                setup,
                Duration::from_secs_f64(60.0 * args.minutes.max(0.0)),
            )
        });
        sleep(Duration::from_secs_f64(
            (30.0 * args.minutes).clamp(0.0, 2.0),
        ));
        let at_start = memory_kib();
        let dropouts = count_dropouts(&remotes, || audio.is_finished());
        let host = audio.join().expect("the models play");
        over.store(true, Ordering::Relaxed);
        let stalls: Option<Vec<_>> = watches
            .into_iter()
            .map(|watch| watch.join().expect("it only sleeps"))
            .collect();
        (
            host,
            at_start,
            dropouts,
            stalls.map(|stalls| stalls.concat()),
        )
    });
    report(&args, &host, &titles, &remotes, [at_start, memory_kib()]);
    report_dropouts(
        &titles,
        &remotes,
        &dropouts,
        stalls.as_deref(),
        args.sample_rate,
    );
    if let Some(path) = args.trace {
        let written = std::fs::File::create(&path).and_then(|file| {
            ondes_engine::realtime::worker_trace().write_chrome(&mut std::io::BufWriter::new(file))
        });
        match written {
            Ok(spans) => println!("{}: {spans} steps", path.display()),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
}

/// Creates a controller and loads a model.
fn loaded(path: &Path, driver: Driver) -> SessionController {
    let controller = SessionController::new();
    controller.set_driver(driver);
    let path = path.to_owned();
    let load = move || {
        let model = file::read(&path).map_err(|error| error.to_string())?;
        let playable_model = PlayableModel::new(Arc::new(model), PipelineOptions::default())
            .map_err(|error| error.to_string())?;
        Ok(Arc::new(playable_model) as _)
    };
    controller.load(Box::new(load), &[]);
    while controller.status() == LoadStatus::Loading {
        sleep(Duration::from_millis(5));
    }
    controller
}

/// Interval at which dropouts are counted.
const COUNT_EVERY: Duration = Duration::from_millis(20);

/// Counts dropouts of each session, with their time, from the first block on.
fn count_dropouts(
    remotes: &[SessionController],
    is_over: impl Fn() -> bool,
) -> Vec<Vec<machine::Missed>> {
    let mut dropouts = vec![Vec::new(); remotes.len()];
    let mut counts = vec![0; remotes.len()];
    let mut from = Instant::now();
    loop {
        let last = is_over();
        sleep(COUNT_EVERY);
        let until = Instant::now();
        for ((controller, seen), dropouts) in remotes.iter().zip(&mut counts).zip(&mut dropouts) {
            let now = controller.health().map_or(*seen, |health| health.dropouts);
            if now > *seen {
                dropouts.push(machine::Missed {
                    from,
                    until,
                    count: now - *seen,
                });
            }
            *seen = now;
        }
        from = until;
        if last {
            return dropouts;
        }
    }
}

/// Statistics of a host's audio thread.
struct Host {
    real_time: bool,
    blocks: u64,
    /// Blocks that were not done when the next one was due.
    late: u64,
    /// Delays from a block's due time to the start of its callback.
    woken: Percentiles,
    /// Durations of callbacks, all sessions together.
    callbacks: Percentiles,
}

/// Runs the audio thread of a host. A block is late if it is not done when the next one is due;
/// after a longer delay it continues with the block due then.
fn play(sessions: Vec<Session>, setup: Setup, length: Duration) -> Host {
    let real_time = raise(HOST_PRIORITY);
    let mut players: Vec<Player> = (0..)
        .zip(sessions)
        .map(|(seed, session)| Player::new(session, seed, setup))
        .collect();
    let due = |block: u64| {
        Duration::from_secs_f64(
            block as f64 * setup.max_block as f64 / f64::from(setup.sample_rate),
        )
    };
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
    Host {
        real_time,
        blocks,
        late,
        woken: woken.percentiles(),
        callbacks: callbacks.percentiles(),
    }
}

/// Real-time priority of a sound server's clients, 1 to 99.
const HOST_PRIORITY: u8 = 70;

/// Requests real-time priority.
fn raise(priority: u8) -> bool {
    #[cfg(unix)]
    {
        use thread_priority::{
            RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
            ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        };
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let value = ThreadPriorityValue::try_from(priority).expect("priorities go from 1 to 99");
        set_thread_priority_and_policy(
            thread_native_id(),
            ThreadPriority::Crossplatform(value),
            fifo,
        )
        .is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = priority;
        thread_priority::ThreadPriority::Max
            .set_for_current()
            .is_ok()
    }
}

/// Maximum number of held notes.
const CHORD: usize = 4;

/// Plays a session with random notes and controls.
struct Player {
    session: Session,
    random: Xoshiro256PlusPlus,
    held: Vec<u8>,
    commands: Vec<BlockCommand>,
    output: [Vec<f32>; 2],
    rate: f64,
}

impl Player {
    fn new(session: Session, seed: u64, setup: Setup) -> Self {
        Self {
            session,
            random: seeded_rng(seed),
            held: Vec::with_capacity(CHORD),
            commands: Vec::with_capacity(4),
            output: [vec![0.0; setup.max_block], vec![0.0; setup.max_block]],
            rate: setup.max_block as f64 / f64::from(setup.sample_rate),
        }
    }

    fn block(&mut self) {
        self.commands.clear();
        // So many times per second each.
        if self.random.random_bool((5.0 * self.rate).min(1.0)) {
            let action = self.note();
            self.push(action);
        }
        if self.random.random_bool((20.0 * self.rate).min(1.0)) {
            let action = self.turn();
            self.push(action);
        }
        self.commands.sort_unstable_by_key(|command| command.offset);
        let [left, right] = &mut self.output;
        self.session
            .process(&self.commands, &[], &mut [left, right]);
    }

    fn push(&mut self, action: Action) {
        self.commands.push(BlockCommand {
            offset: self.random.random_range(0..self.output[0].len()),
            action,
        });
    }

    fn note(&mut self) -> Action {
        let channel = 0;
        Action::Play(
            if self.held.len() == CHORD || (!self.held.is_empty() && self.random.random_bool(0.4)) {
                let key = self
                    .held
                    .swap_remove(self.random.random_range(0..self.held.len()));
                EventKind::NoteOff {
                    channel,
                    key,
                    velocity: 0.5,
                }
            } else {
                let key = self.random.random_range(48..84);
                if !self.held.contains(&key) {
                    self.held.push(key);
                }
                EventKind::NoteOn {
                    channel,
                    key,
                    velocity: self.random.random_range(0.2..1.0),
                }
            },
        )
    }

    fn turn(&mut self) -> Action {
        let (channel, value) = (0, self.random.random_range(0.0..1.0));
        match self.random.random_range(0..5) {
            0 => Action::Play(EventKind::Bend {
                channel,
                semitones: 2.0 * value - 1.0,
            }),
            1 => Action::Play(EventKind::Controller {
                channel,
                number: controller::MOD_WHEEL,
                value,
            }),
            2 => Action::Control {
                id: ControlId::of("room"),
                value: 2.0 * value,
            },
            3 => Action::Control {
                id: ControlId::of("brightness"),
                value: 12.0 * value - 6.0,
            },
            _ => Action::Control {
                id: ControlId::of("vibrato_depth"),
                value: 60.0 * value,
            },
        }
    }
}

/// Computes until `over` is set.
fn compute(over: &AtomicBool) {
    let mut random = seeded_rng(0);
    while !over.load(Ordering::Relaxed) {
        std::hint::black_box((0..10_000).fold(0.0_f32, |sum, _| {
            sum + random.random_range(0.0..1.0_f32).sqrt()
        }));
    }
}

/// Returns the resident memory of the process in KiB, if the system reports it.
fn memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn report(
    args: &Args,
    host: &Host,
    titles: &[String],
    remotes: &[SessionController],
    memory: [Option<u64>; 2],
) {
    let period = 1e3 * args.block as f64 / f64::from(args.sample_rate);
    let cores = available_parallelism().map_or(0, usize::from);
    println!(
        "{} min, {} Hz, blocks of {} ({period:.3} ms), {} busy threads, {cores} cores",
        args.minutes, args.sample_rate, args.block, args.busy
    );
    let granted = |granted| if granted { "granted" } else { "refused" };
    let worker = priority::granted().map_or("not asked for", granted);
    println!(
        "real-time priority: audio thread {}, worker {worker}",
        granted(host.real_time)
    );
    let memory =
        memory.map(|kib| kib.map_or("?".into(), |kib| format!("{:.1}", kib as f64 / 1024.0)));
    println!(
        "memory: {} MiB at the start, {} MiB at the end",
        memory[0], memory[1]
    );
    let share = 100.0 * host.late as f64 / host.blocks.max(1) as f64;
    println!(
        "host: {} blocks played, {} late ({share:.4} %)",
        host.blocks, host.late
    );
    println!("host: wake-up delay {}", Times(host.woken));
    println!("host: callbacks took {}", Times(host.callbacks));
    for (title, controller) in titles.iter().zip(remotes) {
        let Some(health) = controller.health() else {
            println!("{title}: {:?}", controller.status());
            continue;
        };
        println!(
            "{title}: {:?}, latency {} ({:.1} ms), load {:.1} %, {} dropouts, {} invalid blocks, {} commands lost; {} steps {}",
            health.driven,
            health.latency_samples,
            health.latency_ms,
            100.0 * health.load,
            health.dropouts,
            health.invalid_blocks,
            health.commands_lost,
            health.inference_time.count,
            Times(health.inference_time)
        );
    }
}

/// Prints the dropouts caused by the machine: those during a stall of a core, or within the
/// session's latency after it.
fn report_dropouts(
    titles: &[String],
    remotes: &[SessionController],
    dropouts: &[Vec<machine::Missed>],
    stalls: Option<&[machine::Stall]>,
    sample_rate: u32,
) {
    let Some(stalls) = stalls else {
        return println!(
            "machine: not watched: no permission for a priority above the audio thread"
        );
    };
    let lengths: Vec<Duration> = stalls
        .iter()
        .map(|stall| stall.until - stall.from)
        .collect();
    let (total, worst) = (
        lengths.iter().sum::<Duration>(),
        lengths.iter().max().copied().unwrap_or_default(),
    );
    println!(
        "machine: a core stood still {} times for over 1 ms, {total:.1?} in all, worst {worst:.1?}",
        stalls.len()
    );
    for ((title, controller), dropouts) in titles.iter().zip(remotes).zip(dropouts) {
        let latency = controller
            .health()
            .map_or(0, |health| health.latency_samples);
        let reach = Duration::from_secs_f64(latency as f64 / f64::from(sample_rate));
        let all: u64 = dropouts.iter().map(|dropouts| dropouts.count).sum();
        let excused = machine::during_stalls(dropouts, stalls, reach);
        println!(
            "{title}: {all} dropouts, {excused} of them while a core stood still, {} otherwise",
            all - excused
        );
    }
}

struct Times(Percentiles);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles {
            p50,
            p99,
            p999,
            worst,
            ..
        } = self.0;
        write!(
            f,
            "p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}, worst {worst:.1?}"
        )
    }
}
