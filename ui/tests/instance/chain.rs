//! The signal chain around a model: changed, heard, saved and restored.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ondes_engine::dsp::level::{db_to_amplitude, max_step};
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::card::Levels;
use ondes_engine::model::{
    Activation, Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Variant, Weights,
};
use ondes_engine::pipeline::InputChannels;
use ondes_engine::realtime::{Driver, LoadStatus, Quality, Setup};
use ondes_player::instance::InstanceHandle;
use ondes_player::library::FileReference;
use ondes_player::parameter::{
    CABINET, GATE, INTERFACE_LEVEL, OUTPUT_LEVEL, OVERSAMPLING, ParameterId, QUALITY, SIZE, TONE,
    TONE_GAINS,
};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::Player;
use ondes_player::product::Product;
use ondes_player::state::SoundState;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::view_model::{self, InstanceViewModel};
use ondes_ui::{CabinetCommand, FileCommand, KnobCommand, ViewModel, Window, WindowCommand};

const PATIENCE: Duration = Duration::from_secs(20);
const SETUP: Setup = Setup {
    sample_rate: 48_000,
    max_block: 256,
};

/// An effect that doubles its input, with slight distortion.
pub(super) fn amplifier() -> Arc<Model> {
    amplifier_with(None, false)
}

/// The same with levels on its card, and with a small variant that distorts slightly without gain.
fn amplifier_with(levels: Option<Levels>, lite: bool) -> Arc<Model> {
    let port = |name: &str| Port {
        name: name.into(),
        channels: 1,
        ratio: 1,
    };
    let node = |name: &str, inputs: &[&str], op| {
        let inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        Node {
            name: name.into(),
            inputs,
            op,
        }
    };
    let nodes = vec![
        node("two", &["in", "in"], Op::Add),
        node("audio", &["two"], Op::Activation(Activation::Tanh)),
    ];
    let method = |name: &str, nodes| {
        let (inputs, outputs) = (vec![port("in")], vec![port("audio")]);
        Method {
            name: name.into(),
            block: 1,
            warm_up: 0,
            inputs,
            outputs,
            nodes,
        }
    };
    let small = method(
        "forward.lite",
        vec![node("audio", &["in"], Op::Activation(Activation::Tanh))],
    );
    let variant = Variant {
        name: "lite".into(),
        method: small.name.clone(),
        room: None,
        up_to: 0.5,
        levels: None,
    };
    let header = Header {
        format: FORMAT,
        kind: Kind::Effect,
        sample_rate: SETUP.sample_rate,
        methods: [method("forward", nodes)]
            .into_iter()
            .chain(lite.then_some(small))
            .collect(),
        controls: Vec::new(),
        variants: lite.then_some(variant).into_iter().collect(),
        oversampling: 1,
        performance: None,
        card: Card {
            name: "Amplifier".into(),
            levels,
            ..Card::default()
        },
    };
    Model::new(header, Weights::default()).unwrap().into()
}

/// An effect instance with an amplifier.
pub(super) struct Track {
    pub(super) shared: Arc<InstanceHandle>,
    pub(super) store: Arc<ParameterStore>,
    pub(super) view_model: InstanceViewModel,
    pub(super) window: Window,
}

impl Track {
    pub(super) fn new() -> Self {
        Self::with_model(amplifier())
    }

    fn with_model(model: Arc<Model>) -> Self {
        let shared = InstanceHandle::new(Product::Effect, || {});
        let store = Arc::new(ParameterStore::new(Product::Effect));
        shared.set_parameter_source(&store);
        shared.session.set_driver(Driver::Inline);
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
            window: Window::new(),
        }
    }

    pub(super) fn player(&self) -> Player {
        self.shared.wait_until_loaded(PATIENCE);
        let session = self.shared.session.activate(SETUP).unwrap();
        Player::new(
            session,
            self.shared.clone(),
            SETUP,
            &self.store.player_parameters(),
        )
    }

    pub(super) fn turn(&self, knob: ParameterId, value: f32) {
        self.store.set_value(knob, value);
    }

    /// Draws a frame of the window.
    fn frame(&mut self) {
        let context = egui::Context::default();
        let mut drawn = context.run_ui(egui::RawInput::default(), |ui| {
            view_model::show(&mut self.view_model, &mut self.window, ui, &*self.store);
        });
        drawn.textures_delta.clear();
    }

    fn cabinet(&self) -> Option<FileReference> {
        self.shared.read_state(|state| state.cabinet.clone())
    }

    pub(super) fn handle(&mut self, command: impl Into<WindowCommand>) {
        self.view_model.handle_command(&*self.store, command);
    }

    /// Waits until the cabinet has been loaded or reported missing.
    pub(super) fn settle(&mut self) {
        while self.view_model.refresh().is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn save(&self) -> String {
        let sound = SoundState {
            parameters: self.store.values(),
            selection: self.shared.state().into(),
        };
        serde_json::to_string(&sound).unwrap()
    }

    pub(super) fn restore(&self, text: &str) {
        let sound: SoundState = serde_json::from_str(text).unwrap();
        self.store.restore(&sound.parameters);
        self.shared.restore_state(*sound.selection);
    }
}

/// Plays half a second and returns both channels.
pub(super) fn play(
    track: &Track,
    player: &mut Player,
    sound: impl Fn(usize) -> f32,
) -> [Vec<f32>; 2] {
    let mut heard = [Vec::new(), Vec::new()];
    for block in 0..94 {
        let mut input = [[0.0; 256]; 2];
        input
            .iter_mut()
            .flat_map(|side| side.iter_mut().enumerate())
            .for_each(|(n, slot)| *slot = sound(256 * block + n));
        let [in_left, in_right] = &mut input;
        let mut output = [[0.0; 256]; 2];
        let [left, right] = &mut output;
        player.begin_block(&track.store.player_parameters());
        player.set_input(&[in_left, in_right]);
        player.process(&mut [left, right]);
        heard
            .iter_mut()
            .zip(output)
            .for_each(|(heard, output)| heard.extend(output));
    }
    heard
}

pub(super) fn tone(n: usize) -> f32 {
    0.1 * (n as f32 * 0.6).sin()
}

/// A tone so slow that clicks stand out; it has the same phase after each call of [`play`].
fn slow_tone(n: usize) -> f32 {
    0.1 * (std::f32::consts::TAU * 75.0 * n as f32 / (94.0 * 256.0)).sin()
}

/// Returns the level of the second half, after all changes have settled.
pub(super) fn level(sound: &[f32]) -> f32 {
    let half = &sound[sound.len() / 2..];
    (half.iter().map(|sample| sample * sample).sum::<f32>() / half.len() as f32).sqrt()
}

fn write(path: &Path, channels: &[&[f32]]) {
    let mut wav =
        WavWriter::create(path, SETUP.sample_rate, channels.len(), WavBits::Float32).unwrap();
    wav.write(channels).unwrap();
    wav.finish().unwrap();
}

#[test]
fn gate_and_tone_are_turned() {
    let track = Track::new();
    let mut player = track.player();
    let plain = play(&track, &mut player, tone);
    let expected = (2.0 * tone(20_000)).tanh();
    assert!(
        (plain[0][20_000] - expected).abs() < 1e-4,
        "{} for {expected}",
        plain[0][20_000]
    );
    assert_eq!(plain[0], plain[1]);
    track.turn(TONE_GAINS[2], 6.0);
    let bright = level(&play(&track, &mut player, tone)[0]) / level(&plain[0]);
    assert!((1.8..2.0).contains(&bright), "{bright}");
    // Before the amplifier, the tone control drives it harder, which distorts more.
    track.turn(TONE, 1.0);
    let driven = level(&play(&track, &mut player, tone)[0]) / level(&plain[0]);
    assert!((1.5..bright - 0.01).contains(&driven), "{driven}");
    track.turn(GATE, -30.0);
    assert_eq!(level(&play(&track, &mut player, |n| 0.1 * tone(n))[0]), 0.0);
    let open = level(&play(&track, &mut player, tone)[0]) / level(&plain[0]);
    assert!((open - driven).abs() < 1e-3, "{open}");
}

#[test]
fn a_dropped_cabinet_is_heard_saved_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Two sides.wav");
    // Sharp on the left, later and softer on the right.
    write(&path, &[&[1.0, 0.5, 0.0, 0.0], &[0.0, 0.0, 0.5, 0.0]]);
    let mut track = Track::new();
    let mut player = track.player();
    let plain = play(&track, &mut player, tone);
    track.handle(FileCommand::Open(path.clone()));
    track.settle();
    let chain = track.view_model.view().chain;
    assert_eq!(
        (chain.cabinet, chain.path),
        (Some("Two sides"), Some(path.as_path()))
    );
    let wide = play(&track, &mut player, tone);
    let ratio = level(&wide[0]) / level(&wide[1]);
    assert!(ratio > 2.0 && wide[0] != wide[1], "{ratio}");
    // Changes do not click, and with the cabinet off the sound is as before.
    assert!(
        wide[0]
            .windows(2)
            .all(|pair| (pair[0] - pair[1]).abs() < 0.4)
    );
    track.turn(CABINET, 0.0);
    let off = level(&play(&track, &mut player, tone)[0]);
    assert!((off - level(&plain[0])).abs() < 1e-4, "{off}");
    track.turn(CABINET, 1.0);
    play(&track, &mut player, tone);
    player.reset(&track.store.player_parameters());

    // A cabinet that is chosen during an audition stays when the audition ends.
    let reference = track.cabinet();
    track.shared.remove_cabinet();
    track
        .shared
        .load_model(true, || Ok((amplifier_with(None, true), None)))
        .join()
        .unwrap();
    assert!(track.shared.is_auditioning());
    track.shared.load_cabinet(path.clone()).join().unwrap();
    track.shared.end_audition();
    assert!(!track.shared.is_auditioning() && track.cabinet() == reference);
    let back = loop {
        // The other model, which is quieter, takes over gradually.
        track.shared.wait_until_loaded(PATIENCE);
        let heard = play(&track, &mut player, tone);
        if (level(&heard[0]) - level(&wide[0])).abs() < 1e-4 {
            break heard;
        }
    };
    assert!(level(&back[0]) > 2.0 * level(&back[1]));
    player.reset(&track.store.player_parameters());

    // Another instance restores it, also without the file if that is embedded.
    let heard = |track: &Track| play(track, &mut track.player(), tone);
    let known = heard(&track);
    let again = Track::new();
    let text = track.save();
    again.restore(&text);
    again
        .shared
        .load_model(false, || Ok((amplifier(), None)))
        .join()
        .unwrap();
    assert_eq!(again.cabinet(), track.cabinet());
    assert!(heard(&again) == known, "it sounds another way");
    track.shared.set_embed_model(true);
    let carried = track.save();
    std::fs::remove_file(&path).unwrap();
    let third = Track::new();
    third.restore(&carried);
    third
        .shared
        .load_model(false, || Ok((amplifier(), None)))
        .join()
        .unwrap();
    assert!(heard(&third) == known && third.shared.missing_cabinet().is_none());

    // Without the file it is reported missing, and the saved reference is kept.
    let mut fourth = Track::new();
    fourth.restore(&text);
    fourth.settle();
    let chain = fourth.view_model.view().chain;
    let missing = chain.missing.expect("it is said");
    assert!(
        missing.name == "Two sides" && missing.searched[0].contains("no such file"),
        "{:?}",
        missing.searched
    );
    assert_eq!(fourth.shared.state().cabinet, track.cabinet());
    write(&path, &[&[1.0, 0.5, 0.0, 0.0], &[0.0, 0.0, 0.5, 0.0]]);
    fourth.handle(FileCommand::Retry);
    fourth.settle();
    assert!(fourth.view_model.view().chain.missing.is_none());
    fourth.handle(CabinetCommand::Remove);
    assert_eq!(
        (fourth.cabinet(), fourth.shared.state().cabinet),
        (None, None)
    );
}

#[test]
fn an_invalid_impulse_response_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (
        folder.path().join("good.wav"),
        folder.path().join("song.wav"),
    );
    write(&good, &[&[1.0, 0.5]]);
    write(&bad, &[&[0.0; 100]]);
    let mut track = Track::new();
    for path in [&good, &bad] {
        track.handle(CabinetCommand::Load(path.clone()));
        track.settle();
    }
    let chain = track.view_model.view().chain;
    let missing = chain.missing.expect("it is said");
    assert!(
        missing.name == "song.wav" && missing.searched[0].contains("silent"),
        "{:?}",
        missing.searched
    );
    assert_eq!(chain.cabinet, Some("good"));
    track.handle(FileCommand::Retry);
    track.settle();
    assert!(track.view_model.view().chain.missing.is_none());
}

#[test]
fn oversampling_restarts_the_session_with_more_latency() {
    let mut track = Track::new();
    let mut player = track.player();
    assert_eq!(player.latency_samples(), 0);
    track.turn(OVERSAMPLING, 3.0);
    track.frame();
    let mut blocks = 0;
    while !player.latency_changed() {
        play(&track, &mut player, tone);
        std::thread::sleep(Duration::from_millis(5));
        blocks += 1;
        assert!(blocks < 1_000, "the holder is not asked to begin anew");
    }
    let mut player = track.player();
    assert_eq!(
        (player.latency_samples(), track.shared.session.status()),
        (45, LoadStatus::Ready)
    );
    let heard = play(&track, &mut player, tone);
    let expected = (2.0 * tone(20_000 - 45)).tanh();
    assert!(
        (heard[0][20_000] - expected).abs() < 1e-3,
        "{} for {expected}",
        heard[0][20_000]
    );
    // A restored project starts with these settings.
    let again = Track::new();
    again.restore(&track.save());
    again
        .shared
        .load_model(false, || Ok((amplifier(), None)))
        .join()
        .unwrap();
    assert_eq!(again.player().latency_samples(), 45);
}

#[test]
fn another_size_takes_over_without_a_click() {
    let mut track = Track::with_model(amplifier_with(None, true));
    let mut player = track.player();
    let whole = play(&track, &mut player, slow_tone);
    assert!(
        whole[0]
            .iter()
            .enumerate()
            .all(|(n, heard)| (heard - (2.0 * slow_tone(n)).tanh()).abs() < 1e-5)
    );
    let size = |view_model: &InstanceViewModel| {
        view_model
            .view()
            .chain
            .knobs
            .iter()
            .find(|knob| knob.id == SIZE)
            .unwrap()
            .name
            .clone()
    };
    assert_eq!(size(&track.view_model), "Size: full");

    track.turn(SIZE, 0.3);
    track.frame();
    assert_eq!(size(&track.view_model), "Size: lite");
    let mut heard = Vec::new();
    let is_lite = |heard: &[f32]| {
        let last = heard.len().saturating_sub(24_064)..heard.len();
        heard[last]
            .iter()
            .enumerate()
            .all(|(n, heard)| (heard - slow_tone(n).tanh()).abs() < 1e-5)
    };
    while heard.is_empty() || !is_lite(&heard) {
        heard.extend_from_slice(&play(&track, &mut player, slow_tone)[0]);
        std::thread::sleep(Duration::from_millis(1));
        assert!(
            heard.len() < 1_000 * 24_064,
            "the other size is never heard"
        );
    }
    let bound = 1.05 * max_step(&whole[0]) + 0.1 * std::f32::consts::FRAC_PI_2 / 960.0;
    assert!(max_step(&heard) < bound, "a click of {}", max_step(&heard));
    assert!(!player.latency_changed(), "nobody has to begin anew");
    // Nothing is loaded while the variant stays the same.
    track.turn(SIZE, 0.4);
    track.frame();
    assert_eq!(track.shared.session.status(), LoadStatus::Ready);

    // A restored project starts with these settings, even without a window.
    let again = Track::with_model(amplifier_with(None, true));
    again.restore(&track.save());
    again
        .shared
        .load_model(false, || Ok((amplifier_with(None, true), None)))
        .join()
        .unwrap();
    assert!(is_lite(&play(&again, &mut again.player(), slow_tone)[0]));
    again.turn(SIZE, 1.0);
    again
        .shared
        .audio
        .request_variant(1.0, Quality::Full, InputChannels::Stereo);
    assert!(
        again.shared.audio.needs_main_thread(),
        "the audio thread asks for it"
    );
    again.shared.apply_requested_variant();
    again
        .shared
        .audio
        .request_variant(1.0, Quality::Full, InputChannels::Stereo);
    assert!(!again.shared.audio.needs_main_thread());
    assert_eq!(play(&again, &mut again.player(), slow_tone), whole);
}

#[test]
fn how_much_of_a_model_plays_is_chosen_where_there_is_a_choice() {
    let plain = Track::new();
    assert!(
        plain.view_model.view().engine.qualities.is_empty(),
        "it has one size"
    );

    let mut track = Track::with_model(amplifier_with(None, true));
    let mut player = track.player();
    let whole = play(&track, &mut player, slow_tone);
    track.frame();
    let qualities = |view_model: &InstanceViewModel| {
        (
            view_model.view().engine.qualities.join(" "),
            view_model.view().engine.quality,
        )
    };
    assert_eq!(
        qualities(&track.view_model),
        ("Full Balanced Light Automatic".to_owned(), 0)
    );
    track.handle(KnobCommand::SetParameter(QUALITY, 2.0));
    track.frame();
    let is_lite = |heard: &[f32]| {
        heard
            .iter()
            .enumerate()
            .all(|(n, heard)| (heard - slow_tone(n).tanh()).abs() < 1e-5)
    };
    while !is_lite(&play(&track, &mut player, slow_tone)[0]) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        (
            track.store.value(QUALITY),
            track.shared.session.variant().as_deref()
        ),
        (Some(2.0), Some("lite"))
    );
    track.turn(QUALITY, 3.0);
    track.frame();
    while play(&track, &mut player, slow_tone) != whole {
        std::thread::sleep(Duration::from_millis(1));
    }
    track.frame();
    assert_eq!(
        qualities(&track.view_model),
        ("Full Balanced Light Automatic".to_owned(), 3)
    );

    // A restored project starts with these settings.
    track.turn(QUALITY, 2.0);
    let again = Track::with_model(amplifier_with(None, true));
    again.restore(&track.save());
    again
        .shared
        .load_model(false, || Ok((amplifier_with(None, true), None)))
        .join()
        .unwrap();
    assert!(is_lite(&play(&again, &mut again.player(), slow_tone)[0]));
}

#[test]
fn levels_are_those_of_the_model_that_is_heard() {
    let told = Levels {
        input_dbu: Some(6.0),
        output_dbu: Some(4.0),
        loudness_db: Some(-24.0),
    };
    let mut track = Track::with_model(amplifier_with(Some(told), false));
    let mut player = track.player();
    let wanted = |input_db: f32, output_db: f32| {
        db_to_amplitude(output_db) * (2.0 * db_to_amplitude(input_db) * slow_tone(20_000)).tanh()
    };
    let check = |track: &Track, player: &mut Player, input_db, output_db| {
        let heard = play(track, player, slow_tone)[0][20_000];
        assert!(
            (heard - wanted(input_db, output_db)).abs() < 1e-5,
            "{heard} at {input_db} dB, {output_db} dB"
        );
    };
    check(&track, &mut player, 0.0, 0.0);
    track.turn(INTERFACE_LEVEL, 12.0);
    check(&track, &mut player, 6.0, 0.0);
    track.turn(OUTPUT_LEVEL, 1.0);
    check(&track, &mut player, 6.0, 6.0);
    track.turn(OUTPUT_LEVEL, 2.0);
    check(&track, &mut player, 6.0, -8.0);
    track.frame();
    assert_eq!(track.view_model.view().chain.remark, None);
    // Offline, the settings hold from the first sample on.
    let first = play(&track, &mut track.player(), |_| 0.1)[0][0];
    let driven = db_to_amplitude(-8.0) * (0.2 * db_to_amplitude(6.0)).tanh();
    assert!((first - driven).abs() < 1e-5, "{first} for {driven}");

    // A model that states no levels is unchanged, which a remark explains.
    let mut player = track.player();
    track
        .shared
        .load_model(false, || Ok((amplifier(), None)))
        .join()
        .unwrap();
    for _ in 0..1_000 {
        if (play(&track, &mut player, slow_tone)[0][20_000] - wanted(0.0, 0.0)).abs() < 1e-6 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    check(&track, &mut player, 0.0, 0.0);
    track.frame();
    let remark =
        "Levels are unchanged: the model states no input level, the model states no output level.";
    assert_eq!(track.view_model.view().chain.remark, Some(remark));
}

#[test]
fn only_what_suits_the_model_is_offered() {
    let names = |view_model: &InstanceViewModel| {
        view_model
            .view()
            .chain
            .knobs
            .iter()
            .map(|knob| knob.name.clone())
            .collect::<Vec<_>>()
    };
    let track = Track::new();
    let tone = [
        "Gate",
        "Bass",
        "Middle",
        "Treble",
        "Tone position",
        "Cabinet",
        "Block DC",
        "Reverb",
        "Reverb time",
    ];
    let all = [
        &tone[..],
        &[
            "Channels",
            "Oversampling",
            "Interface level",
            "Output level",
        ],
    ]
    .concat();
    assert_eq!(names(&track.view_model), all);
    let shared = InstanceHandle::new(Product::Instrument, || {});
    let view_model = InstanceViewModel::new(
        shared,
        Arc::new(ParameterStore::new(Product::Instrument)),
        ModelList::new(Product::Instrument, None),
    );
    assert_eq!(
        names(&view_model),
        [
            "Bass",
            "Middle",
            "Treble",
            "Cabinet",
            "Block DC",
            "Reverb",
            "Reverb time",
            "Size: full"
        ]
    );
    assert!(!view_model.view().chain.accepts_audio_files);
}
