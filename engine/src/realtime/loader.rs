//! The loader: one thread for the whole process that makes models ready and takes back those that are not played any more.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use ondes_kernels::FlushToZero;
use ringbuf::HeapRb;
use ringbuf::traits::Split;

use super::driver::{Driver, Place, place};
use super::health::{Driven, Meter};
use super::lane::{Engine, Inline, Lane, guard};
use super::maker::Maker;
use super::queue::{Queue, Wire};
use super::session::{HISTORY_S, Link};
use super::snapshot::Snapshot;
use super::worker::{Message, SEATS, Seat, workers};
use crate::executor;
use crate::pipeline::{Action, ControlId, Cue, Start, Transport};

/// How much of the past a model hears before it takes over, seconds: its memory and its room are full then.
const WARM_S: f64 = 0.7;
/// How long an audio thread may take to answer; one that does not is not running.
const ANSWER: Duration = Duration::from_millis(100);
/// How often a model that warms up is told how far the present has gone on.
const ROUNDS: usize = 4;
/// Cues on their way to a worker.
const CUES: usize = 2048;
/// Samples that a model warms up by at a time.
const PIECE: usize = 512;

/// Something for the loader to do. Gives whether it wants to be asked again soon.
pub(super) type Job = Box<dyn FnMut() -> bool + Send>;

/// Gives the loader something to do.
pub(super) fn ask(job: Job) {
    static LOADER: OnceLock<Sender<Job>> = OnceLock::new();
    let loader = LOADER.get_or_init(|| {
        let (sender, jobs) = unbounded::<Job>();
        let work = move || {
            let mut waiting: Vec<Job> = Vec::new();
            loop {
                let patience = if waiting.is_empty() { Duration::from_secs(3600) } else { Duration::from_millis(20) };
                match jobs.recv_timeout(patience) {
                    Ok(job) => waiting.push(job),
                    Err(error) if error.is_disconnected() => return,
                    Err(_) => {}
                }
                waiting.retain_mut(|job| {
                    let mut again = false;
                    // A job that breaks down takes nobody with it.
                    let done = guard(|| again = job());
                    done.is_ok() && again
                });
            }
        };
        std::thread::Builder::new().name("ondes-loader".into()).spawn(work).expect("the system lets us have a thread");
        sender
    });
    // It hangs up only when the process ends.
    let _ = loader.send(job);
}

/// What is known of a lane besides what it counts.
pub(super) struct LaneFacts {
    pub meter: Arc<Meter>,
    pub driven: Driven,
    pub latency_samples: usize,
    pub latency_measured: Option<usize>,
    /// What brings another lane to the same place, as late as this one.
    pub place: Driver,
    /// The size of the model that it plays; none for the whole.
    pub variant: Option<String>,
}

/// What to make.
pub(super) struct Order<'a> {
    pub maker: &'a dyn Maker,
    pub driver: Driver,
    pub tag: u64,
    /// Knobs to be turned at once.
    pub controls: &'a [(ControlId, f32)],
}

/// Makes a lane that is ready to take over: built, measured, and warmed up with what is being played.
///
/// # Errors
/// One line that says why the model cannot be played.
pub(super) fn make(order: &Order<'_>, link: &Link) -> Result<(Box<Lane>, LaneFacts), String> {
    make_with(order, link, ask_session(link))
}

/// Makes the first lane of a session that does not play yet.
///
/// # Errors
/// As [`make`].
pub(super) fn make_first(order: &Order<'_>, link: &Link) -> Result<(Box<Lane>, LaneFacts), String> {
    make_with(order, link, None)
}

fn make_with(
    order: &Order<'_>,
    link: &Link,
    snapshot: Option<Box<Snapshot>>,
) -> Result<(Box<Lane>, LaneFacts), String> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    // As where it will be played: what it costs, and what it remembers.
    let _flush = FlushToZero::on();
    // What was said on this thread before was said of another model.
    drop(executor::noticed());
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let setup = link.setup;
    let Order { maker, tag, .. } = *order;
    let mut playable = maker.make(setup.sample_rate, 1)?;
    let place = place(order.driver, &mut *playable, maker, setup)?;
    let latency_measured = maker.measured_latency(setup.sample_rate);
    let model_latency = playable.latency_samples();
    if let Some(measured) = latency_measured.filter(|measured| measured.abs_diff(model_latency) > 1) {
        return Err(format!("the latency is {measured} samples, but {model_latency} are stated"));
    }
    let meter = Arc::new(Meter::new(playable.latents(0).len()));
    let now = snapshot.as_ref().map_or_else(|| link.now.load(Ordering::Acquire), |snapshot| snapshot.now);
    let warm = if snapshot.is_some() { (WARM_S * f64::from(setup.sample_rate)) as u64 } else { 0 };
    let start = Start { at: now.saturating_sub(warm), ..maker.start() };
    let past = past(order, snapshot.as_deref(), start.at, setup.sample_rate);
    let next_cue = snapshot.as_ref().map_or_else(|| link.cues.load(Ordering::Relaxed), |snapshot| snapshot.cues);
    let told = snapshot.is_some();
    let tail = playable.tail_samples();
    let held = match place {
        Place::Inline => Driver::Inline,
        Place::Offline => Driver::Offline,
        Place::Worker(delay) => Driver::Worker { latency: Some(delay) },
    };
    let (engine, next_cue, driven, latency_samples) = match place {
        Place::Inline | Place::Offline => {
            let offline = place == Place::Offline;
            let mut inline = Inline::new(playable, start, offline);
            let opened = guard(|| {
                inline.playable.open(0, &start);
                for cue in past {
                    // What is too much is not remembered.
                    let _ = inline.playable.handle(0, cue);
                }
            });
            opened.map_err(|failure| failure.to_string())?;
            let next_cue = match snapshot {
                Some(_) => warm_up(&mut inline, link, now, next_cue)?,
                None => next_cue,
            };
            let driven = if offline { Driven::Offline } else { Driven::Inline };
            (Engine::Inline(inline), next_cue, driven, model_latency)
        }
        Place::Worker(delay) => {
            let join = Join { order, link, start, now, delay, past, number, model_latency, tail };
            (Engine::Queued(join.queue(&meter)?), next_cue, Driven::Worker, model_latency + delay)
        }
    };
    if let Some(notice) = executor::noticed() {
        meter.set_notice(&notice);
    }
    let variant = maker.variant();
    let facts = LaneFacts { meter: meter.clone(), driven, latency_samples, latency_measured, place: held, variant };
    Ok((Box::new(Lane::new(engine, number, tag, meter, told, next_cue, setup.sample_rate)), facts))
}

/// Asks a session for a snapshot; none when its audio thread does not run.
fn ask_session(link: &Link) -> Option<Box<Snapshot>> {
    drop(link.answer.take());
    drop(link.ask.swap(Some(Box::new(Snapshot::new()))));
    let asked = Instant::now();
    while asked.elapsed() < ANSWER {
        if let Some(answer) = link.answer.take() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    drop(link.ask.take());
    // It may have come in the very last moment.
    link.answer.take()
}

/// What has to be told to a model that takes over: the knobs and the song, then notes and wheels with their own times.
fn past(order: &Order<'_>, snapshot: Option<&Snapshot>, at: u64, sample_rate: u32) -> Vec<Cue> {
    let mut past = Vec::new();
    let mut turn = |&(id, value): &(ControlId, f32)| past.push(Cue { at, action: Action::Control { id, value } });
    order.controls.iter().for_each(&mut turn);
    if let Some(snapshot) = snapshot {
        if snapshot.tag == Some(order.tag) {
            snapshot.turned.iter().for_each(&mut turn);
        }
        past.extend(snapshot.transport.map(|song| begun(song, at, sample_rate)));
        let events = snapshot.memory.events().into_iter();
        past.extend(events.map(|event| Cue { at: event.at, action: Action::Play(event.kind) }));
    }
    past
}

/// A song that a host has begun, as it is at `at` where that was earlier.
fn begun((since, song): (u64, Transport), at: u64, sample_rate: u32) -> Cue {
    let seconds = at.saturating_sub(since) as f64 / f64::from(sample_rate);
    let beats = if song.playing { seconds * f64::from(song.tempo) / 60.0 } else { 0.0 };
    let song = Transport { position: song.position + beats, ..song };
    Cue { at: at.max(since), action: Action::Transport(song) }
}

/// Plays a model up to the present, round after round while the present goes on. Gives the next cue that it has not heard.
fn warm_up(inline: &mut Inline, link: &Link, now: u64, next_cue: u64) -> Result<u64, String> {
    let (mut until, mut next_cue) = (now, next_cue);
    let mut scratch = [vec![0.0; PIECE], vec![0.0; PIECE]];
    for _ in 0..ROUNDS {
        while inline.position < until {
            let count = (until - inline.position).min(PIECE as u64) as usize;
            let [input, output] = &mut scratch;
            link.history.read(inline.position, &mut input[..count]);
            super::lane::run(&mut *inline.playable, &input[..count], &mut output[..count])
                .map_err(|failure| failure.to_string())?;
            inline.position += count as u64;
        }
        // What is left the audio thread can catch up with in a few blocks.
        if link.now.load(Ordering::Acquire) <= until + 2 * link.setup.max_block as u64 {
            break;
        }
        let Some(snapshot) = ask_session(link) else { break };
        for cue in snapshot.cues_from(next_cue) {
            let told = guard(|| {
                // What is too much is not remembered.
                let _ = inline.playable.handle(0, *cue);
            });
            told.map_err(|failure| failure.to_string())?;
        }
        (until, next_cue) = (snapshot.now, snapshot.cues);
    }
    Ok(next_cue)
}

/// A lane on its way to the worker.
struct Join<'a> {
    order: &'a Order<'a>,
    link: &'a Link,
    start: Start,
    now: u64,
    delay: usize,
    past: Vec<Cue>,
    number: u32,
    model_latency: usize,
    tail: usize,
}

impl Join<'_> {
    /// Joins, and gives the audio thread's end.
    fn queue(self, meter: &Arc<Meter>) -> Result<Queue, String> {
        let Self { order, link, start, now, delay, past, number, model_latency, tail } = self;
        let setup = link.setup;
        let playable = order.maker.make(setup.sample_rate, SEATS)?;
        let (cue_end, cues) = HeapRb::new(CUES).split();
        // All that can have been given and not been taken.
        let waiting = delay + 2 * setup.max_block + (HISTORY_S * f64::from(setup.sample_rate)) as usize;
        let (sound, sound_end) = HeapRb::new(waiting).split();
        let wire = Arc::new(Wire::default());
        wire.given.store(now, Ordering::Release);
        wire.done.store(start.at, Ordering::Release);
        wire.taken.store(start.at, Ordering::Release);
        let longest = setup.sample_rate as usize / 100 + 1;
        let seat = Seat {
            wire: wire.clone(),
            cues,
            sound,
            history: link.history.clone(),
            hears: order.maker.hears(),
            position: start.at,
            start,
            meter: meter.clone(),
            held: None,
            past,
            lane: number,
            input: vec![0.0; longest],
            output: vec![0.0; longest],
        };
        let workers = workers();
        let name = order.maker.name();
        workers[0].tell(Message::Join { name, sample_rate: setup.sample_rate, playable, seat: Box::new(seat) });
        Ok(Queue {
            wire,
            cues: cue_end,
            sound: sound_end,
            next: start.at,
            start: start.at,
            delay,
            model_latency,
            tail,
            workers: [workers[0].thread.clone(), workers[1].thread.clone()],
        })
    }
}
