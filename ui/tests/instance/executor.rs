//! The executor of an instance: chosen in the window, heard, saved and restored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::dsp::level::{max_difference, max_step, peak};
use ondes_engine::executor::{Backend, Device, ExecutorSelection, Precision};
use ondes_engine::model::program::{Call, Convention, ProgramOptions, Setting, SettingKind};
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Program, Weights,
};
use ondes_engine::realtime::{Driver, LoadStatus, Setup};
use ondes_engine::torch::Library;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::BUNDLED;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::Player;
use ondes_player::product::Product;
use ondes_player::state::InstanceState;
use ondes_ui::view_model::InstanceViewModel;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::{
    DisplayCommand, EngineCommand, ExecutorDevices, HistoryCommand, ViewModel, WindowCommand,
};

const PATIENCE: Duration = Duration::from_secs(60);
const SETUP: Setup = Setup {
    sample_rate: 48_000,
    max_block: 256,
};
/// Period of the tone, samples: two and a half blocks.
const PERIOD: usize = 640;
/// Length of the cross-fade between models, samples.
const FADE: f32 = 960.0;
const TORCH: ExecutorSelection = ExecutorSelection {
    backend: Backend::Torch,
    device: Device::Cpu,
    precision: Precision::F32,
};
/// A device that no machine has.
const NOWHERE: ExecutorSelection = ExecutorSelection {
    device: Device::Cuda(255),
    ..TORCH
};

fn bundled(name: &str) -> Arc<Model> {
    BUNDLED
        .iter()
        .find(|bundled| bundled.name == name)
        .expect("a bundled model")
        .model()
}

/// A memoryless effect that doubles its input, with slight distortion.
fn amplifier() -> Arc<Model> {
    let port = |name: &str| Port {
        name: name.into(),
        channels: 1,
        ratio: 1,
    };
    let node = |name: &str, input: &str, op| Node {
        name: name.into(),
        inputs: vec![input.into(); 2],
        op,
    };
    let bent = Node {
        inputs: vec!["two".into()],
        ..node("audio", "", Op::Activation(Activation::Tanh))
    };
    let method = Method {
        name: "forward".into(),
        block: 1,
        warm_up: 0,
        inputs: vec![port("in")],
        outputs: vec![port("audio")],
        nodes: vec![node("two", "in", Op::Add), bent],
    };
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: SETUP.sample_rate,
        methods: vec![method],
        controls: Vec::new(),
        variants: Vec::new(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: "Amplifier".into(),
            ..Card::default()
        },
    };
    Model::new(header, Weights::default()).unwrap().into()
}

struct Track {
    shared: Arc<InstanceHandle>,
    store: Arc<ParameterStore>,
    view_model: InstanceViewModel,
    /// Samples played so far.
    played: usize,
}

impl Track {
    fn with_model(model: Arc<Model>) -> Self {
        let shared = InstanceHandle::new(Product::Effect, || {});
        let store = Arc::new(ParameterStore::new(Product::Effect));
        shared.set_parameter_source(&store);
        // Independent of the load of this machine.
        shared.session.set_non_realtime(true);
        shared
            .load_model(false, || Ok((model, None)))
            .join()
            .unwrap();
        shared.wait_until_loaded(PATIENCE);
        let view_model = InstanceViewModel::new(
            shared.clone(),
            store.clone(),
            ModelList::new(Product::Effect, None),
        );
        Self {
            shared,
            store,
            view_model,
            played: 0,
        }
    }

    fn player(&self) -> Player {
        self.shared.wait_until_loaded(PATIENCE);
        let session = self.shared.session.activate(SETUP).unwrap();
        Player::new(
            session,
            self.shared.clone(),
            SETUP,
            &self.store.player_parameters(),
        )
    }

    fn handle(&mut self, command: impl Into<WindowCommand>) {
        self.view_model.handle_command(&*self.store, command);
        self.view_model.refresh();
    }

    fn executor(&self) -> ExecutorSelection {
        self.shared.read_state(|state| state.executor)
    }

    fn notice(&mut self) -> Option<String> {
        self.view_model.refresh();
        self.view_model.view().messages.notice.map(str::to_owned)
    }

    /// Plays a slow tone for some blocks; returns the left channel.
    fn play(&mut self, player: &mut Player, blocks: usize) -> Vec<f32> {
        let mut heard = Vec::new();
        for _ in 0..blocks {
            let tone = |n: usize| {
                0.1 * (std::f32::consts::TAU * ((self.played + n) % PERIOD) as f32 / PERIOD as f32)
                    .sin()
            };
            let mut input = [std::array::from_fn::<_, 256, _>(tone); 2];
            let mut output = [[0.0; 256]; 2];
            player.begin_block(&self.store.player_parameters());
            player.set_input(&input.each_mut().map(|channel| &mut channel[..]));
            player.process(&mut output.each_mut().map(|channel| &mut channel[..]));
            heard.extend(output[0]);
            self.played += 256;
        }
        heard
    }

    /// Plays at about the pace of a host until the requested model is heard, and a while longer.
    /// Returns the output.
    fn settle(&mut self, player: &mut Player) -> Vec<f32> {
        let (mut heard, since) = (Vec::new(), Instant::now());
        let mut left = 100;
        while left > 0 {
            assert!(since.elapsed() < PATIENCE, "it is never ready");
            heard.extend(self.play(player, 1));
            std::thread::sleep(Duration::from_millis(4));
            left -= usize::from(self.shared.session.status() != LoadStatus::Loading);
        }
        assert_eq!(self.shared.session.status(), LoadStatus::Ready);
        heard
    }

    /// Returns two periods of the tone after it has sounded for a second.
    fn sample(&mut self, player: &mut Player) -> Vec<f32> {
        self.played = PERIOD * self.played.div_ceil(PERIOD);
        self.play(player, 200);
        self.play(player, 5)
    }
}

/// Bound on the slope of the cross-fade to a sound that may be delayed differently.
fn bound(before: &[f32]) -> f32 {
    1.05 * max_step(before) + 2.0 * peak(before) * std::f32::consts::FRAC_PI_2 / FADE
}

#[test]
fn an_unavailable_device_is_reported_and_the_sound_goes_on() {
    let mut track = Track::with_model(bundled("Fuzz"));
    track.shared.session.set_driver(Driver::Inline);
    let mut player = track.player();
    let plain = track.sample(&mut player);
    assert_eq!(track.notice(), None);
    track.handle(EngineCommand::SetExecutor(NOWHERE));
    assert_eq!(
        track
            .view_model
            .view()
            .engine
            .executor
            .expect("there is a choice")
            .selection,
        NOWHERE
    );
    let heard = track.settle(&mut player);
    assert!(
        max_step(&heard) < bound(&plain),
        "a click of {}",
        max_step(&heard)
    );
    let silent = heard
        .chunks(PERIOD)
        .filter(|period| peak(period) < 0.5 * peak(&plain))
        .count();
    assert!(silent <= 1, "it goes on: {silent}");
    let notice = track.notice().expect("it is said");
    assert!(
        notice.starts_with("running on native ")
            && notice.contains("instead of torch cuda:255")
            && !notice.contains('\n'),
        "{notice}"
    );
    track.handle(DisplayCommand::Dismiss);
    assert_eq!(track.notice(), None);

    // The request is kept, since another machine may support it.
    let saved = track.shared.state();
    assert_eq!(saved.executor, NOWHERE);
    let text = serde_json::to_string(&saved).unwrap();
    let mut again = Track::with_model(bundled("Triode"));
    again
        .shared
        .restore_state(serde_json::from_str(&text).unwrap());
    let mut player = again.player();
    assert!(peak(&again.play(&mut player, 200)) > 0.5 * peak(&plain));
    assert!(
        again
            .notice()
            .is_some_and(|notice| notice.contains("cuda:255"))
    );
    assert_eq!(again.shared.state().executor, NOWHERE);
    again.handle(EngineCommand::SetExecutor(ExecutorSelection::default()));
    again.settle(&mut player);
    assert_eq!(
        (again.notice(), again.shared.state().executor),
        (None, ExecutorSelection::default())
    );
    // A project of a version without this choice.
    again.shared.set_executor(NOWHERE);
    again.shared.restore_state(InstanceState {
        executor: ExecutorSelection::default(),
        ..saved
    });
    assert_eq!(again.executor(), ExecutorSelection::default());
}

#[test]
fn libtorch_takes_over_without_a_click_and_sounds_the_same() {
    if let Err(reason) = Library::get() {
        return println!("nothing plays here: {reason}");
    }
    let mut track = Track::with_model(amplifier());
    track.handle(EngineCommand::FindDevices);
    while matches!(
        track.view_model.view().engine.executor.unwrap().devices,
        ExecutorDevices::Unknown
    ) {
        std::thread::sleep(Duration::from_millis(1));
        track.view_model.refresh();
    }
    let ExecutorDevices::Available(devices) =
        track.view_model.view().engine.executor.unwrap().devices
    else {
        panic!("it is there")
    };
    assert_eq!(devices[..2], [Device::Auto, Device::Cpu]);

    track.shared.session.set_driver(Driver::Worker {
        latency: Some(1_024),
    });
    let mut player = track.player();
    let plain = track.sample(&mut player);
    track.handle(EngineCommand::SetExecutor(TORCH));
    let heard = track.settle(&mut player);
    assert!(
        max_step(&heard) < bound(&plain),
        "a click of {}",
        max_step(&heard)
    );
    assert_eq!(track.notice(), None);
    // Both have the same latency.
    let same = max_difference(&track.sample(&mut player), &plain);
    assert!(same < 1e-5, "{same}");

    // The lower precision shows that libtorch computes it.
    track.handle(EngineCommand::SetExecutor(ExecutorSelection {
        precision: Precision::Bf16,
        ..TORCH
    }));
    track.settle(&mut player);
    let rough = track.sample(&mut player);
    assert!(
        (1e-5..0.01).contains(&max_difference(&rough, &plain)),
        "{}",
        max_difference(&rough, &plain)
    );
    track.handle(EngineCommand::SetExecutor(ExecutorSelection::default()));
    let heard = track.settle(&mut player);
    assert!(
        max_step(&heard) < bound(&rough),
        "a click of {}",
        max_step(&heard)
    );
}

#[test]
fn an_unsupported_executor_is_reported_and_kept() {
    let mut track = Track::with_model(bundled("Bowed"));
    assert!(
        matches!(track.view_model.view().engine.executor.unwrap().devices, ExecutorDevices::Unavailable(why) if why.contains("native"))
    );
    track.handle(EngineCommand::SetExecutor(TORCH));
    assert_eq!(
        track.notice().as_deref(),
        Some("instruments run on the native executor only; choose executor native")
    );
    track.handle(DisplayCommand::Dismiss);
    assert_eq!((track.notice(), track.executor()), (None, TORCH));
    // The native executor has no precisions.
    let precise = ExecutorSelection {
        precision: Precision::F16,
        ..ExecutorSelection::default()
    };
    track
        .shared
        .load_model(false, || Ok((bundled("Fuzz"), None)))
        .join()
        .unwrap();
    track.handle(EngineCommand::SetExecutor(precise));
    assert!(
        track
            .notice()
            .is_some_and(|notice| notice.contains("f16 needs executor torch"))
    );
    track.handle(EngineCommand::SetExecutor(ExecutorSelection::default()));
    assert_eq!(track.notice(), None);
}

#[test]
fn it_is_the_projects_and_no_sounds() {
    let mut track = Track::with_model(bundled("Fuzz"));
    track.handle(HistoryCommand::RecallSlot(CompareSlot::B));
    track.handle(EngineCommand::SetExecutor(NOWHERE));
    track.handle(HistoryCommand::RecallSlot(CompareSlot::A));
    assert_eq!(track.executor(), NOWHERE);
    let saved = track.shared.state();
    let other = saved
        .compare
        .expect("both are used")
        .other
        .expect("there is one");
    assert_eq!(
        (saved.executor, other.selection.executor),
        (NOWHERE, ExecutorSelection::default())
    );
    // An audition keeps the executor.
    assert_eq!(
        track.shared.selection_snapshot().to_state().executor,
        ExecutorSelection::default()
    );
    track
        .shared
        .load_model(true, || Ok((bundled("Triode"), None)))
        .join()
        .unwrap();
    assert_eq!(
        (track.executor(), track.shared.state().executor),
        (NOWHERE, NOWHERE)
    );
    track.shared.end_audition();
    assert_eq!(
        (track.executor(), track.shared.state().executor),
        (NOWHERE, NOWHERE)
    );
}

/// A program of a codec's methods. Nothing runs it here.
fn program() -> Arc<Model> {
    let port = |name: &str, channels, ratio| Port {
        name: name.into(),
        channels,
        ratio,
    };
    let (audio, latents) = (|name| port(name, 1, 1), |name| port(name, 4, 64));
    let method = |name: &str, input, output| Method {
        name: name.into(),
        block: 256,
        warm_up: 0,
        inputs: vec![input],
        outputs: vec![output],
        nodes: Vec::new(),
    };
    let methods = vec![
        method("encode", audio("in"), latents("latents")),
        method("decode", latents("latents"), audio("out")),
    ];
    let call = |method: &Method| Call {
        method: method.name.clone(),
        convention: Convention::NnTilde,
        main: 0,
        ratio_in: method.inputs[0].ratio,
        ratio_out: method.outputs[0].ratio,
        attributes: Vec::new(),
        delay: 0,
        input_labels: Vec::new(),
        output_labels: Vec::new(),
        settings: Vec::new(),
    };
    let program = Program {
        bytes: b"PK".as_slice().into(),
        parameters: 0,
        calls: methods
            .iter()
            .map(|method| (method.name.clone(), call(method)))
            .collect(),
        notes: Vec::new(),
        settings: vec![Setting {
            name: "name".into(),
            kind: SettingKind::Text(1),
            value: "soft".into(),
        }],
        options: ProgramOptions::default(),
        original: None,
    };
    let header = Header {
        kind: Kind::Codec,
        methods,
        ..amplifier().header().clone()
    };
    Model::from_program(header, program).unwrap().into()
}

#[test]
fn a_programs_method_is_part_of_the_sound() {
    let mut track = Track::with_model(program());
    let view = track.view_model.view();
    let names: Vec<&str> = view
        .engine
        .program
        .unwrap()
        .methods
        .iter()
        .map(|choice| choice.name.as_str())
        .collect();
    assert_eq!(names, ["encode and decode", "encode", "decode"]);
    let whole = track.shared.selection_snapshot();
    let decode = ProgramOptions {
        method: Some("decode".into()),
        texts: [("name".to_owned(), "hard".to_owned())].into(),
        ..ProgramOptions::default()
    };
    track.handle(EngineCommand::SetProgram(decode.clone()));
    let playing = |track: &Track| track.shared.model().unwrap().header().kind;
    assert_eq!(
        (
            playing(&track),
            track.view_model.view().engine.program.unwrap().options
        ),
        (Kind::Effect, &decode)
    );
    // Saved with the project, in the other slot, and for undo.
    let saved = serde_json::to_value(track.shared.state()).unwrap();
    assert_eq!(
        saved["program"],
        serde_json::json!({ "method": "decode", "texts": { "name": "hard" } })
    );
    let chosen = track.shared.selection_snapshot();
    track.handle(HistoryCommand::Undo);
    assert_eq!(
        (playing(&track), track.shared.state().program),
        (Kind::Codec, ProgramOptions::default())
    );
    track.handle(HistoryCommand::Redo);
    assert_eq!(
        (playing(&track), track.shared.state().program),
        (Kind::Effect, decode)
    );
    track.shared.restore_selection(whole);
    assert_eq!(playing(&track), Kind::Codec);
    track.shared.restore_selection(chosen);
    assert_eq!(playing(&track), Kind::Effect);
    // What the program lacks changes nothing and is told.
    let wrong = ProgramOptions {
        method: Some("prior".into()),
        ..ProgramOptions::default()
    };
    track.handle(EngineCommand::SetProgram(wrong));
    assert_eq!(
        track.notice().as_deref(),
        Some("unknown method \"prior\"; available: encode, decode")
    );
    assert_eq!(playing(&track), Kind::Effect);
    // Another model has no use for it.
    track
        .shared
        .load_model(false, || Ok((amplifier(), None)))
        .join()
        .unwrap();
    assert_eq!(track.shared.state().program, ProgramOptions::default());
}
