//! Builds model instances, off the audio thread: the model, its place, and its state up to the
//! present.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ondes_kernels::FlushToZero;
use ringbuf::HeapRb;
use ringbuf::traits::Split;

use super::driver::{Driver, ResolvedDriver};
use super::driver_choice::{resolve, resolve_without_trial};
use super::guard::{Failed, guard, guard_with_reason};
use super::health::{Driven, InstanceMetrics};
use super::inline_model::InlineModel;
use super::model_factory::{LoadError, ModelFactory};
use super::model_instance::{InstanceParts, ModelInstance, Placement};
use super::session_link::SessionLink;
use super::snapshot::SessionSnapshot;
use super::worker::{MAX_SESSIONS, Message, WorkerSlot, workers};
use super::worker_link::{SharedProgress, WorkerLink};
use crate::executor;
use crate::pipeline::{
    Action, ControlId, InputChannels, Playable, SessionStart, TimedCommand, Transport,
};

/// Past input that an instance processes before it takes over, in seconds: enough to fill its
/// memory and its room.
const WARM_UP_S: f64 = 0.7;
/// Time for an audio thread to answer; one that does not is not running.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);
/// Interval at which the answer is looked for.
const ANSWER_POLL: Duration = Duration::from_micros(200);
/// Number of times that a warm-up asks how far the session has advanced.
const MAX_WARM_UP_ROUNDS: usize = 4;
/// Commands on their way to the worker.
const WORKER_COMMANDS: usize = 2048;

/// Facts about an instance for the controller.
pub(super) struct InstanceInfo {
    pub metrics: Arc<InstanceMetrics>,
    pub driven: Driven,
    pub latency_samples: usize,
    /// Driver that leads to the same place and latency again.
    pub driver: Driver,
    /// Name of the model's variant; `None` for the base model.
    pub variant: Option<String>,
}

/// Instance to build.
pub(super) struct InstanceRequest<'a> {
    pub factory: &'a dyn ModelFactory,
    pub driver: Driver,
    pub model: u64,
    /// Controls to set first.
    pub controls: &'a [(ControlId, f32)],
}

/// An instance and facts about it.
pub(super) type NewInstance = (Box<ModelInstance>, InstanceInfo);

/// Builds an instance that is ready to take over from the one that plays.
///
/// # Errors
/// Returns [`LoadError`] if the model cannot be played.
pub(super) fn build_successor(
    request: &InstanceRequest<'_>,
    link: &SessionLink,
) -> Result<NewInstance, LoadError> {
    let snapshot = request_snapshot(link);
    link.is_building.store(true, Ordering::Release);
    build_instance(request, link, snapshot)
}

/// Builds the first instance of a session that does not play yet.
///
/// # Errors
/// Returns [`LoadError`] if the model cannot be played.
pub(super) fn build_first(
    request: &InstanceRequest<'_>,
    link: &SessionLink,
) -> Result<NewInstance, LoadError> {
    build_instance(request, link, None)
}

/// Builds an instance. A panic is an error, also on the thread of a host that activates a session.
fn build_instance(
    request: &InstanceRequest<'_>,
    link: &SessionLink,
    snapshot: Option<Box<SessionSnapshot>>,
) -> Result<NewInstance, LoadError> {
    guard_with_reason(|| try_build_instance(request, link, snapshot))
        .unwrap_or_else(|reason| Err(LoadError::Panicked(reason)))
}

fn try_build_instance(
    request: &InstanceRequest<'_>,
    link: &SessionLink,
    snapshot: Option<Box<SessionSnapshot>>,
) -> Result<NewInstance, LoadError> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    // As on the threads where it will run, for its cost and its state.
    let _flush = FlushToZero::on();
    // Discards warnings about other models.
    drop(executor::take_warning());
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let setup = link.setup;
    let factory = request.factory;
    let (playable, resolved) = build_playable(request, link)?;
    let model_latency = playable.latency_samples();
    let metrics = Arc::new(InstanceMetrics::new(playable.latents(0).len()));
    let now = snapshot
        .as_ref()
        .map_or_else(|| link.now.load(Ordering::Acquire), |snapshot| snapshot.now);
    let warm_up = if snapshot.is_some() {
        (WARM_UP_S * f64::from(setup.sample_rate)) as u64
    } else {
        0
    };
    let start = SessionStart {
        at: now.saturating_sub(warm_up),
        ..factory.start()
    };
    let past = past_commands(request, snapshot.as_deref(), start.at, setup.sample_rate);
    let next_command = snapshot.as_ref().map_or_else(
        || link.commands.load(Ordering::Relaxed),
        |snapshot| snapshot.commands,
    );
    let has_session_state = snapshot.is_some();
    let channels = match factory.channels() {
        _ if playable.input_channels() == 2 => InputChannels::Stereo,
        InputChannels::Left => InputChannels::Left,
        InputChannels::Mono | InputChannels::Stereo => InputChannels::Mono,
    };
    let is_stereo = playable.channels() == 2;
    let (placement, next_command, driven, latency_samples) = match resolved {
        ResolvedDriver::Inline | ResolvedDriver::Offline => {
            let offline = resolved == ResolvedDriver::Offline;
            let mut inline = InlineModel::new(playable, start, channels, offline);
            let failed =
                |Failed| LoadError::Panicked(metrics.failure().unwrap_or_default().to_owned());
            guard(&metrics, || open_with(&mut *inline.playable, &start, past)).map_err(failed)?;
            let next_command = match snapshot {
                Some(_) => warm_up_inline(&mut inline, link, now, next_command, &metrics)
                    .map_err(failed)?,
                None => next_command,
            };
            let driven = if offline {
                Driven::Offline
            } else {
                Driven::Inline
            };
            (
                Placement::Inline(inline),
                next_command,
                driven,
                model_latency,
            )
        }
        ResolvedDriver::Worker(delay) => {
            let joining = JoiningSession {
                factory,
                link,
                start,
                now,
                channels,
                delay,
                past,
                number,
            };
            let worker_link = joining.join_worker(playable, &metrics);
            (
                Placement::Worker(worker_link),
                next_command,
                Driven::Worker,
                model_latency + delay,
            )
        }
    };
    if let Some(warning) = executor::take_warning() {
        metrics.set_warning(&warning);
    }
    let info = InstanceInfo {
        metrics: metrics.clone(),
        driven,
        latency_samples,
        driver: resolved.to_driver(),
        variant: factory.variant(),
    };
    let parts = InstanceParts {
        number,
        model: request.model,
        levels: factory.levels(),
        metrics,
        has_session_state,
        next_command,
        sample_rate: setup.sample_rate,
        is_stereo,
    };
    Ok((Box::new(ModelInstance::new(placement, parts)), info))
}

/// Builds the playable with as many slots as its place needs, and resolves the driver. Builds it
/// once, unless a trial shows that a model which should fit into the callback needs the worker.
fn build_playable(
    request: &InstanceRequest<'_>,
    link: &SessionLink,
) -> Result<(Box<dyn Playable>, ResolvedDriver), LoadError> {
    let InstanceRequest {
        factory, driver, ..
    } = *request;
    let setup = link.setup;
    let spread = factory.spread(driver, setup);
    let factory = spread.as_deref().unwrap_or(factory);
    let expects_worker = match (resolve_without_trial(driver, false, setup)?, driver) {
        (Some(ResolvedDriver::Worker(_)), _) | (None, Driver::Worker { .. }) => true,
        (Some(ResolvedDriver::Offline), _) => false,
        (Some(ResolvedDriver::Inline), _) | (None, _) => factory.expects_worker(),
    };
    let sessions = if expects_worker { MAX_SESSIONS } else { 1 };
    let mut playable = factory.build(setup.sample_rate, sessions)?;
    let resolved = resolve(driver, &mut *playable, factory, setup)?;
    if matches!(resolved, ResolvedDriver::Worker(_)) && sessions < MAX_SESSIONS {
        playable = factory.build(setup.sample_rate, MAX_SESSIONS)?;
    }
    Ok((playable, resolved))
}

/// Resets the first slot and sends it past commands.
fn open_with(playable: &mut dyn Playable, start: &SessionStart, past: Vec<TimedCommand>) {
    playable.open(0, start);
    for command in past {
        // Commands beyond the queue's capacity are dropped.
        let _ = playable.handle(0, command);
    }
}

/// Asks a session for a snapshot; `None` if its audio thread does not run.
fn request_snapshot(link: &SessionLink) -> Option<Box<SessionSnapshot>> {
    drop(link.snapshot_reply.take());
    drop(
        link.snapshot_request
            .swap(Some(Box::new(SessionSnapshot::new()))),
    );
    let start = Instant::now();
    while start.elapsed() < ANSWER_TIMEOUT {
        if let Some(snapshot) = link.snapshot_reply.take() {
            return Some(snapshot);
        }
        std::thread::sleep(ANSWER_POLL);
    }
    drop(link.snapshot_request.take());
    // It may have come at the last moment.
    link.snapshot_reply.take()
}

/// Lists the commands that bring an instance into the session's state: controls and transport, then
/// held notes and controller positions with their own times.
fn past_commands(
    request: &InstanceRequest<'_>,
    snapshot: Option<&SessionSnapshot>,
    at: u64,
    sample_rate: u32,
) -> Vec<TimedCommand> {
    let mut past = Vec::new();
    let mut set = |&(id, value): &(ControlId, f32)| {
        past.push(TimedCommand {
            at,
            action: Action::Control { id, value },
        });
    };
    request.controls.iter().for_each(&mut set);
    if let Some(snapshot) = snapshot {
        if snapshot.model == Some(request.model) {
            snapshot.changed_controls.iter().for_each(&mut set);
        }
        past.extend(
            snapshot
                .transport
                .map(|transport| transport_at(transport, at, sample_rate)),
        );
        let events = snapshot.performance.events().into_iter();
        past.extend(events.map(|event| TimedCommand {
            at: event.at,
            action: Action::Play(event.kind),
        }));
    }
    past
}

/// Returns the transport command for time `at`, or for the transport's own time if that is later.
fn transport_at((since, transport): (u64, Transport), at: u64, sample_rate: u32) -> TimedCommand {
    let seconds = at.saturating_sub(since) as f64 / f64::from(sample_rate);
    let beats = if transport.playing {
        seconds * f64::from(transport.tempo) / 60.0
    } else {
        0.0
    };
    let transport = Transport {
        position: transport.position + beats,
        ..transport
    };
    TimedCommand {
        at: at.max(since),
        action: Action::Transport(transport),
    }
}

/// Processes the input up to the present, in rounds, as the present advances meanwhile. Returns the
/// number of the next command that the instance has not received.
fn warm_up_inline(
    inline: &mut InlineModel,
    link: &SessionLink,
    now: u64,
    next_command: u64,
    metrics: &InstanceMetrics,
) -> Result<u64, Failed> {
    let (mut until, mut next_command) = (now, next_command);
    for _ in 0..MAX_WARM_UP_ROUNDS {
        inline.catch_up(
            until.saturating_sub(inline.position),
            &link.history,
            metrics,
        )?;
        // The audio thread catches up with the rest within a few blocks.
        if link.now.load(Ordering::Acquire) <= until + 2 * link.setup.max_block as u64 {
            break;
        }
        let Some(snapshot) = request_snapshot(link) else {
            break;
        };
        for command in snapshot.commands_from(next_command) {
            // Commands beyond the queue's capacity are dropped.
            inline.handle(*command, metrics)?;
        }
        (until, next_command) = (snapshot.now, snapshot.commands);
    }
    Ok(next_command)
}

/// A session on its way to the worker.
struct JoiningSession<'a> {
    factory: &'a dyn ModelFactory,
    link: &'a SessionLink,
    start: SessionStart,
    now: u64,
    channels: InputChannels,
    delay: usize,
    past: Vec<TimedCommand>,
    number: u32,
}

impl JoiningSession<'_> {
    /// Sends the session and its playable to the worker, and returns the audio thread's end.
    fn join_worker(
        self,
        playable: Box<dyn Playable>,
        metrics: &Arc<InstanceMetrics>,
    ) -> WorkerLink {
        let Self {
            factory,
            link,
            start,
            now,
            channels,
            delay,
            past,
            number,
        } = self;
        let setup = link.setup;
        let (model_latency, tail) = (playable.latency_samples(), playable.tail_samples());
        let (command_end, commands) = HeapRb::new(WORKER_COMMANDS).split();
        // All output that can be pending.
        let capacity = delay + 2 * setup.max_block + setup.history_samples();
        let (output, output_end) = (0..playable.channels())
            .map(|_| HeapRb::new(capacity).split())
            .unzip();
        let progress = Arc::new(SharedProgress::default());
        progress.input_end.store(now, Ordering::Release);
        progress.output_end.store(start.at, Ordering::Release);
        progress.played_end.store(start.at, Ordering::Release);
        let max_step = setup.sample_rate as usize / 100 + 1;
        let slot = WorkerSlot {
            progress: progress.clone(),
            commands,
            output,
            history: link.history.clone(),
            channels,
            uses_audio_input: factory.uses_audio_input(),
            position: start.at,
            start,
            metrics: metrics.clone(),
            deferred_command: None,
            past,
            instance: number,
            input_buffers: [(); 2].map(|()| vec![0.0; max_step]),
            output_buffers: [(); 2].map(|()| vec![0.0; max_step]),
        };
        let workers = workers();
        let key = factory.sharing_key();
        workers[0].send(Message::Join {
            key,
            sample_rate: setup.sample_rate,
            playable,
            slot: Box::new(slot),
        });
        WorkerLink {
            progress,
            commands: command_end,
            output: output_end,
            next: start.at,
            start: start.at,
            delay,
            model_latency,
            tail,
            workers: [workers[0].thread.clone(), workers[1].thread.clone()],
        }
    }
}
