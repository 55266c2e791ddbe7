//! Commands that a player sends to the engine, recorded by a model.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{scope, sleep};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::{
    Action, CommandQueueFull, Playable, ProcessRequest, SessionStart, TimedCommand, Transport,
};
use ondes_engine::realtime::{
    Driven, Driver, LoadError, LoadStatus, ModelFactory, SessionController, Setup,
};
use ondes_player::cabinet::bundled;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::BUNDLED;
use ondes_player::parameter::Parameter;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::{DryDelay, Player};
use ondes_player::player_parameters::PlayerParameters;
use ondes_player::product::Product;

const RATE: u32 = 48_000;
const BLOCK: usize = 480;

/// A model that records the commands it receives.
struct RecordingModel(Arc<ArrayQueue<TimedCommand>>);

impl Playable for RecordingModel {
    fn capacity(&self) -> usize {
        1
    }
    fn latency_samples(&self) -> usize {
        0
    }
    fn tail_samples(&self) -> usize {
        0
    }
    fn open(&mut self, _: usize, _: &SessionStart) {}
    fn handle(&mut self, _: usize, command: TimedCommand) -> Result<(), CommandQueueFull> {
        self.0.push(command).map_err(CommandQueueFull)
    }
    fn process(&mut self, turns: &mut [ProcessRequest<'_>]) {
        turns.iter_mut().for_each(|turn| turn.output[0].fill(0.0));
    }
}

/// Factory of recording models.
struct RecordingFactory {
    told: Arc<ArrayQueue<TimedCommand>>,
    /// Number of models requested.
    asked: Arc<AtomicUsize>,
    /// No model is built while this is locked.
    wait: Arc<Mutex<()>>,
}

impl RecordingFactory {
    fn new(told: Arc<ArrayQueue<TimedCommand>>) -> Self {
        Self {
            told,
            asked: Arc::default(),
            wait: Arc::default(),
        }
    }
}

impl ModelFactory for RecordingFactory {
    fn build(&self, _: u32, _: usize) -> Result<Box<dyn Playable>, LoadError> {
        self.asked.fetch_add(1, Relaxed);
        drop(self.wait.lock().unwrap());
        Ok(Box::new(RecordingModel(self.told.clone())))
    }
    fn sharing_key(&self) -> Option<String> {
        None
    }
    fn uses_audio_input(&self) -> bool {
        false
    }
    fn start(&self) -> SessionStart {
        SessionStart::default()
    }
    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }
}

/// A player and everything it needs.
struct PlayerStage {
    shared: Arc<InstanceHandle>,
    player: Player,
    knobs: PlayerParameters,
}

impl PlayerStage {
    fn new(model: Option<RecordingFactory>) -> Self {
        let shared = InstanceHandle::new(Product::Instrument, || {});
        shared.session.set_driver(Driver::Inline);
        if let Some(model) = model {
            shared
                .session
                .load(Box::new(move || Ok(Arc::new(model))), &[]);
        }
        shared.wait_until_loaded(Duration::from_secs(20));
        let store = ParameterStore::new(Product::Instrument);
        let setup = Setup {
            sample_rate: RATE,
            max_block: BLOCK,
        };
        let session = shared.session.activate(setup).unwrap();
        let knobs = store.player_parameters();
        let player = Player::new(session, shared.clone(), setup, &knobs);
        Self {
            shared,
            player,
            knobs,
        }
    }

    /// Plays a block with the host's transport.
    fn block(&mut self, song: Option<Transport>) -> Vec<f32> {
        self.player.begin_block(&self.knobs);
        if let Some(song) = song {
            self.player.set_transport(song);
        }
        let mut output = [vec![0.0; BLOCK], vec![0.0; BLOCK]];
        let [left, right] = &mut output;
        self.player.process(&mut [left, right]);
        output[0].clone()
    }
}

/// Creates a stage with a recording model, and discards the initial commands.
fn recorded() -> (PlayerStage, Arc<ArrayQueue<TimedCommand>>) {
    let told = Arc::new(ArrayQueue::new(1024));
    let mut stage = PlayerStage::new(Some(RecordingFactory::new(told.clone())));
    stage.block(None);
    while told.pop().is_some() {}
    (stage, told)
}

fn songs(told: &ArrayQueue<TimedCommand>) -> Vec<(u64, Transport)> {
    let all = std::iter::from_fn(|| told.pop());
    let song = |command: TimedCommand| {
        if let Action::Transport(song) = command.action {
            Some((command.at, song))
        } else {
            None
        }
    };
    all.filter_map(song).collect()
}

#[test]
fn transport_is_sent_on_changes_and_jumps() {
    let (mut stage, told) = recorded();
    let mut at = BLOCK as u64;
    let beats = |blocks: f64, tempo: f64| blocks * BLOCK as f64 / f64::from(RATE) * tempo / 60.0;
    let mut play = |stage: &mut PlayerStage, song: Transport| {
        stage.block(Some(song));
        let heard = songs(&told);
        assert!(
            heard
                .iter()
                .all(|(time, told)| (*time, *told) == (at, song)),
            "{heard:?}"
        );
        at += BLOCK as u64;
        heard.len()
    };
    let song = |position: f64| Transport {
        tempo: 120.0,
        position,
        playing: true,
    };
    assert_eq!(play(&mut stage, song(-4.0)), 1);
    for block in 1..1000 {
        // Hosts round positions.
        let rounded =
            (-4.0 + beats(f64::from(block), 120.0)) + if block % 2 == 0 { 4e-4 } else { -4e-4 };
        assert_eq!(play(&mut stage, song(rounded)), 0, "{block}");
    }
    let here = -4.0 + beats(1000.0, 120.0);
    // A loop jumps back.
    assert_eq!(play(&mut stage, song(here - 2.0)), 1);
    assert_eq!(play(&mut stage, song(here - 2.0 + beats(1.0, 120.0))), 0);
    // Tempo changed, stopped, moved while stopped, started again.
    let (place, tempo) = (here - 2.0 + beats(2.0, 120.0), 90.0);
    let faster = Transport {
        tempo,
        position: place,
        playing: true,
    };
    assert_eq!(play(&mut stage, faster), 1);
    let stopped = Transport {
        position: place + beats(1.0, 90.0),
        playing: false,
        ..faster
    };
    assert_eq!(
        [
            play(&mut stage, stopped),
            play(&mut stage, stopped),
            play(&mut stage, stopped)
        ],
        [1, 0, 0]
    );
    let moved = Transport {
        position: 64.0,
        ..stopped
    };
    assert_eq!([play(&mut stage, moved), play(&mut stage, moved)], [1, 0]);
    assert_eq!(
        play(
            &mut stage,
            Transport {
                playing: true,
                ..moved
            }
        ),
        1
    );
}

#[test]
fn no_song_is_no_news() {
    let (mut stage, told) = recorded();
    for _ in 0..10 {
        stage.block(None);
    }
    assert!(told.pop().is_none());
}

#[test]
fn the_windows_keys_reach_the_model_at_the_next_block() {
    let (mut stage, told) = recorded();
    let (channel, velocity) = (0, 0.6);
    let on = EventKind::NoteOn {
        channel,
        key: 60,
        velocity,
    };
    let off = EventKind::NoteOff {
        channel,
        key: 60,
        velocity,
    };
    stage.shared.monitor.push_key(on);
    stage.block(None);
    assert_eq!(
        told.pop(),
        Some(TimedCommand {
            at: BLOCK as u64,
            action: Action::Play(on)
        })
    );
    assert_eq!(
        stage.shared.monitor.notes().collect::<Vec<_>>(),
        [(60, 0.6)],
        "the window shows it"
    );
    stage.shared.monitor.push_key(off);
    stage.block(None);
    assert_eq!(
        told.pop(),
        Some(TimedCommand {
            at: 2 * BLOCK as u64,
            action: Action::Play(off)
        })
    );
    assert_eq!(
        (told.pop(), stage.shared.monitor.notes().count()),
        (None, 0)
    );
}

#[test]
fn the_windows_keys_sound() {
    let mut stage = PlayerStage::new(None);
    let energy = |stage: &mut PlayerStage| -> f32 {
        (0..50)
            .flat_map(|_| stage.block(None))
            .map(|sample| sample * sample)
            .sum::<f32>()
            / (50 * BLOCK) as f32
    };
    assert_eq!(energy(&mut stage), 0.0);
    stage.shared.monitor.push_key(EventKind::NoteOn {
        channel: 0,
        key: 60,
        velocity: 0.8,
    });
    assert!(energy(&mut stage) > 1e-6);
    stage.shared.monitor.request_panic();
    energy(&mut stage);
    energy(&mut stage);
    assert!(energy(&mut stage) < 1e-9, "and end with the window's panic");
}

#[test]
fn the_dry_delay_changes_while_the_session_plays() {
    let (mut stage, told) = recorded();
    stage.knobs.bypass = true;
    let click = |stage: &mut PlayerStage| {
        // The ramp of bypass has ended by then.
        for _ in 0..4 {
            stage.block(None);
        }
        stage.player.begin_block(&stage.knobs);
        let mut sound = [vec![0.0; BLOCK], vec![0.0; BLOCK]];
        (sound[0][7], sound[1][7]) = (0.5, 0.25);
        let [left, right] = &mut sound;
        stage.player.set_input(&[left, right]);
        stage.player.process(&mut [left, right]);
        [left, right].map(|channel| channel.iter().position(|sample| *sample != 0.0))
    };
    assert_eq!(
        (click(&mut stage), stage.player.latency_samples()),
        ([Some(7); 2], 0)
    );
    let mut other = DryDelay::new(100);
    stage.player.swap_dry_delay(&mut other);
    assert_eq!(
        (click(&mut stage), stage.player.latency_samples()),
        ([Some(107); 2], 100)
    );
    assert!(
        stage.player.latency_changed(),
        "the session itself is as early as it was"
    );
    // The previous delay is swapped out; an equal latency changes nothing.
    stage.player.swap_dry_delay(&mut DryDelay::new(100));
    stage.player.swap_dry_delay(&mut other);
    assert_eq!(
        (click(&mut stage), stage.player.latency_samples()),
        ([Some(7); 2], 0)
    );
    assert!(told.pop().is_none(), "the model hears nothing of it");
}

#[test]
fn nobody_waits_for_a_model_that_is_made_ready_for_a_host() {
    let view_model = RecordingFactory::new(Arc::new(ArrayQueue::new(1024)));
    let (asked, wait) = (view_model.asked.clone(), view_model.wait.clone());
    let controller = SessionController::new();
    controller.set_driver(Driver::Inline);
    controller.load(Box::new(move || Ok(Arc::new(view_model))), &[]);
    while controller.status() == LoadStatus::Loading {
        sleep(Duration::from_millis(1));
    }
    let held = wait.lock().unwrap();
    scope(|scope| {
        let session = scope.spawn(|| {
            controller
                .activate(Setup {
                    sample_rate: RATE,
                    max_block: BLOCK,
                })
                .unwrap()
        });
        while asked.load(Relaxed) == 0 {
            sleep(Duration::from_millis(1));
        }
        let (tell, told) = mpsc::channel();
        let controller = &controller;
        scope.spawn(move || {
            let before = (controller.status(), controller.health().is_none());
            // Parameters that change in the meantime are applied.
            controller.set_driver(Driver::Offline);
            tell.send(before)
        });
        let before = told.recv_timeout(Duration::from_secs(20));
        drop(held);
        assert_eq!(before, Ok((LoadStatus::Ready, true)));
        let _session = session.join().unwrap();
        assert_eq!(
            controller.health().map(|health| health.driven),
            Some(Driven::Offline)
        );
    });
}

#[test]
fn a_player_falls_silent_when_its_input_is_disconnected() {
    let (mut stage, _told) = recorded();
    stage.player.begin_block(&stage.knobs);
    let mut sound = [[0.5; BLOCK], [0.5; BLOCK]];
    let [left, right] = &mut sound;
    stage.player.set_input(&[left, right]);
    stage.player.process(&mut [left, right]);
    assert!(!stage.player.is_silent());
    let silent = (0..3_000).any(|_| {
        stage.block(None);
        stage.player.is_silent()
    });
    assert!(silent, "the last input must not count again");
}

#[test]
fn hostile_input_is_limited_and_does_not_persist() {
    let shared = InstanceHandle::new(Product::Effect, || {});
    shared.session.set_driver(Driver::Inline);
    shared.choose_bundled_cabinet(&bundled::BUNDLED[0]);
    shared.wait_until_loaded(Duration::from_secs(20));
    let store = ParameterStore::new(Product::Effect);
    for (id, value) in [
        ("gate", -60.0),
        ("bass", 12.0),
        ("middle", -12.0),
        ("treble", 12.0),
        ("mix", 0.5),
    ] {
        store.set_value(Parameter::find(id).unwrap(), value);
    }
    let setup = Setup {
        sample_rate: RATE,
        max_block: BLOCK,
    };
    let session = shared.session.activate(setup).unwrap();
    let knobs = store.player_parameters();
    let mut player = Player::new(session, shared.clone(), setup, &knobs);
    let mut play = |sample: &dyn Fn(usize) -> f32| {
        player.begin_block(&knobs);
        let mut sound = [0, 1].map(|_| (0..BLOCK).map(sample).collect::<Vec<f32>>());
        let [left, right] = &mut sound;
        player.set_input(&[left, right]);
        player.process(&mut [left, right]);
        let largest = sound
            .iter()
            .flatten()
            .fold(0.0_f32, |largest, sample| largest.max(sample.abs()));
        assert!(sound.iter().flatten().all(|sample| sample.is_finite()));
        largest
    };
    let hostile = [1e38, f32::MAX, f32::MIN, f32::INFINITY, f32::NAN, -3e37];
    for _ in 0..20 {
        let largest = play(&|n| hostile[n % 29 % hostile.len()]);
        assert!(largest < 1e7, "{largest}");
    }
    let tone = |n: usize| 0.2 * (n as f32 * 0.13).sin();
    let settled = (0..500).map(|_| play(&tone)).skip(499).fold(0.0, f32::max);
    assert!((0.01..10.0).contains(&settled), "{settled}");
    assert_eq!(shared.status(), LoadStatus::Ready);
}

#[test]
fn a_player_that_panics_is_reported_and_not_used_again() {
    let (mut stage, _told) = recorded();
    assert!(!stage.player.has_failed());
    stage.player.contain(|_| panic!("a bug of {}", "ours"));
    assert!(stage.player.has_failed());
    stage
        .player
        .contain(|_| unreachable!("it is not used again"));
    let LoadStatus::Failed(reason) = stage.shared.status() else {
        panic!("{:?}", stage.shared.status())
    };
    assert!(
        reason.starts_with("internal error: a bug of ours") && reason.lines().count() == 1,
        "{reason}"
    );
    // It stays known until a new player starts.
    assert!(matches!(stage.shared.status(), LoadStatus::Failed(_)));
    let setup = Setup {
        sample_rate: RATE,
        max_block: BLOCK,
    };
    let session = stage.shared.session.activate(setup).unwrap();
    stage.player = Player::new(session, stage.shared.clone(), setup, &stage.knobs);
    assert_eq!(stage.shared.status(), LoadStatus::Ready);
    assert!(!stage.player.has_failed());
}

#[test]
fn a_panic_of_a_loading_thread_is_reported() {
    let instance = InstanceHandle::new(Product::Instrument, || {});
    instance
        .load_model(false, || panic!("an importer's bug"))
        .join()
        .unwrap();
    let LoadStatus::Failed(reason) = instance.status() else {
        panic!("{:?}", instance.status())
    };
    assert!(reason.contains("an importer's bug"), "{reason}");
    // The next model loads as usual.
    instance
        .load_model(false, || Ok((BUNDLED[1].model(), None)))
        .join()
        .unwrap();
    instance.wait_until_loaded(Duration::from_secs(20));
    assert_eq!(instance.status(), LoadStatus::Ready);
}
