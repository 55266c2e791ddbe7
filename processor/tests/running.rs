//! What runs the network of an instance: chosen in the window, heard, saved and found again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::executor::{Backend, Device, Precision};
use ondes_engine::model::{Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Weights};
use ondes_engine::realtime::{Driver, Setup, Status};
use ondes_engine::torch::Library;
use ondes_engine::wish::Wish;
use ondes_processor::board::Board;
use ondes_processor::desk::Desk;
use ondes_processor::desk::commands::obey;
use ondes_processor::desk::entries::Entries;
use ondes_processor::library::BUNDLED;
use ondes_processor::panel::Panel;
use ondes_processor::player::Player;
use ondes_processor::preset::Product;
use ondes_processor::shared::Shared;
use ondes_processor::state::Saved;
use ondes_ui::{Command, Devices, Owner, Slot};

const PATIENCE: Duration = Duration::from_secs(60);
const SETUP: Setup = Setup { sample_rate: 48_000, max_block: 256 };
/// Of the tone, samples: two and a half blocks.
const PERIOD: usize = 640;
/// Of the cross-fade to what takes over.
const FADE: f32 = 960.0;
const TORCH: Wish = Wish { executor: Backend::Torch, device: Device::Cpu, precision: Precision::F32 };
/// No machine has so many GPUs.
const NOWHERE: Wish = Wish { device: Device::Cuda(255), ..TORCH };

fn bundled(name: &str) -> Arc<Model> {
    BUNDLED.iter().find(|bundled| bundled.name == name).expect("a bundled model").model()
}

/// Gives twice what comes in, bent a little, and remembers nothing.
fn amplifier() -> Arc<Model> {
    let port = |name: &str| Port { name: name.into(), channels: 1, ratio: 1 };
    let node = |name: &str, input: &str, op| Node { name: name.into(), inputs: vec![input.into(); 2], op };
    let bent = Node { inputs: vec!["two".into()], ..node("audio", "", Op::Tanh) };
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
        performance: None,
        card: Card { name: "Amplifier".into(), ..Card::default() },
    };
    Model::new(header, Weights::default()).unwrap().into()
}

struct Track {
    shared: Arc<Shared>,
    panel: Arc<Panel>,
    desk: Desk,
    /// Samples that were played.
    played: usize,
}

impl Track {
    fn of(model: Arc<Model>) -> Self {
        let shared = Shared::new(Product::Effect, || {});
        let panel = Arc::new(Panel::new(Product::Effect));
        shared.listen_to(&panel);
        // However busy this machine is.
        shared.remote.set_patient(true);
        shared.fetch(false, || Ok((model, None))).join().unwrap();
        shared.wait(PATIENCE);
        let desk = Desk::new(shared.clone(), panel.clone(), Entries::new(None));
        Self { shared, panel, desk, played: 0 }
    }

    fn player(&self) -> Player {
        self.shared.wait(PATIENCE);
        let session = self.shared.remote.activate(SETUP).unwrap();
        Player::new(session, self.shared.clone(), SETUP, &self.panel.knobs())
    }

    fn tell(&mut self, command: Command) {
        obey(&mut self.desk, &*self.panel, command);
        self.desk.refresh();
    }

    fn notice(&mut self) -> Option<String> {
        self.desk.refresh();
        self.desk.view().notice.map(str::to_owned)
    }

    /// A slow tone through it for so many blocks, as it comes out on the left.
    fn play(&mut self, player: &mut Player, blocks: usize) -> Vec<f32> {
        let mut heard = Vec::new();
        for _ in 0..blocks {
            let tone =
                |n: usize| 0.1 * (std::f32::consts::TAU * ((self.played + n) % PERIOD) as f32 / PERIOD as f32).sin();
            let mut input = [std::array::from_fn::<_, 256, _>(tone); 2];
            let mut output = [[0.0; 256]; 2];
            player.begin(&self.panel.knobs());
            player.listen(&input.each_mut().map(|channel| &mut channel[..]));
            player.finish(&mut output.each_mut().map(|channel| &mut channel[..]));
            heard.extend(output[0]);
            self.played += 256;
        }
        heard
    }

    /// Plays about as fast as a host until what was asked for is heard, and a while longer. Gives what was heard.
    fn settle(&mut self, player: &mut Player) -> Vec<f32> {
        let (mut heard, since) = (Vec::new(), Instant::now());
        let mut left = 100;
        while left > 0 {
            assert!(since.elapsed() < PATIENCE, "it is never ready");
            heard.extend(self.play(player, 1));
            std::thread::sleep(Duration::from_millis(4));
            left -= usize::from(self.shared.remote.status() != Status::Loading);
        }
        assert_eq!(self.shared.remote.status(), Status::Ready);
        heard
    }

    /// Two periods of the tone as they come out when it has sounded for a second.
    fn sample(&mut self, player: &mut Player) -> Vec<f32> {
        self.played = PERIOD * self.played.div_ceil(PERIOD);
        self.play(player, 200);
        self.play(player, 5)
    }
}

fn steepest(sound: &[f32]) -> f32 {
    sound.windows(2).fold(0.0, |most, pair| most.max((pair[1] - pair[0]).abs()))
}

fn difference(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).fold(0.0, |most, (one, other)| most.max((one - other).abs()))
}

fn largest(sound: &[f32]) -> f32 {
    sound.iter().fold(0.0, |most, sample| most.max(sample.abs()))
}

/// What one sound may be steeper for fading into another, which may come at another time.
fn bound(before: &[f32]) -> f32 {
    1.05 * steepest(before) + 2.0 * largest(before) * std::f32::consts::FRAC_PI_2 / FADE
}

#[test]
fn what_this_machine_cannot_do_is_said_and_the_sound_goes_on() {
    let mut track = Track::of(bundled("Fuzz"));
    track.shared.remote.set_driver(Driver::Inline);
    let mut player = track.player();
    let plain = track.sample(&mut player);
    assert_eq!(track.notice(), None);
    track.tell(Command::Run(NOWHERE));
    assert_eq!(track.desk.view().running.expect("there is a choice").wish, NOWHERE);
    let heard = track.settle(&mut player);
    assert!(steepest(&heard) < bound(&plain), "a click of {}", steepest(&heard));
    let silent = heard.chunks(PERIOD).filter(|period| largest(period) < 0.5 * largest(&plain)).count();
    assert!(silent <= 1, "it goes on: {silent}");
    let notice = track.notice().expect("it is said");
    assert!(
        notice.starts_with("native ") && notice.contains("not torch cuda:255") && !notice.contains('\n'),
        "{notice}"
    );
    track.tell(Command::Dismiss);
    assert_eq!(track.notice(), None);

    // Another machine may be able to: the wish is kept, and said again where it is opened.
    let saved = track.shared.saved();
    assert_eq!(saved.running, NOWHERE);
    let text = serde_json::to_string(&saved).unwrap();
    let mut again = Track::of(bundled("Triode"));
    again.shared.restore(serde_json::from_str(&text).unwrap());
    let mut player = again.player();
    assert!(largest(&again.play(&mut player, 200)) > 0.5 * largest(&plain));
    assert!(again.notice().is_some_and(|notice| notice.contains("cuda:255")));
    assert_eq!(again.shared.saved().running, NOWHERE);
    again.tell(Command::Run(Wish::default()));
    again.settle(&mut player);
    assert_eq!((again.notice(), again.shared.saved().running), (None, Wish::default()));
    // A project from before there was a choice.
    again.shared.set_running(NOWHERE);
    again.shared.restore(Saved { running: Wish::default(), ..saved });
    assert_eq!(again.shared.running(), Wish::default());
}

#[test]
fn libtorch_takes_over_without_a_click_and_sounds_the_same() {
    if let Err(reason) = Library::get() {
        return println!("nothing plays here: {reason}");
    }
    let mut track = Track::of(amplifier());
    track.tell(Command::Devices);
    while matches!(track.desk.view().running.unwrap().devices, Devices::Unknown) {
        std::thread::sleep(Duration::from_millis(1));
        track.desk.refresh();
    }
    let Devices::These(devices) = track.desk.view().running.unwrap().devices else { panic!("it is there") };
    assert_eq!(devices[..2], [Device::Auto, Device::Cpu]);

    track.shared.remote.set_driver(Driver::Worker { latency: Some(1_024) });
    let mut player = track.player();
    let plain = track.sample(&mut player);
    track.tell(Command::Run(TORCH));
    let heard = track.settle(&mut player);
    assert!(steepest(&heard) < bound(&plain), "a click of {}", steepest(&heard));
    assert_eq!(track.notice(), None);
    // Both are as late.
    let same = difference(&track.sample(&mut player), &plain);
    assert!(same < 1e-5, "{same}");

    // Half as exact it is heard that it is libtorch.
    track.tell(Command::Run(Wish { precision: Precision::Bf16, ..TORCH }));
    track.settle(&mut player);
    let rough = track.sample(&mut player);
    assert!((1e-5..0.01).contains(&difference(&rough, &plain)), "{}", difference(&rough, &plain));
    track.tell(Command::Run(Wish::default()));
    let heard = track.settle(&mut player);
    assert!(steepest(&heard) < bound(&rough), "a click of {}", steepest(&heard));
}

#[test]
fn what_a_model_cannot_do_is_said_and_kept() {
    let mut track = Track::of(bundled("Bowed"));
    assert!(matches!(track.desk.view().running.unwrap().devices, Devices::None(why) if why.contains("instrument")));
    track.tell(Command::Run(TORCH));
    assert_eq!(track.notice().as_deref(), Some("an instrument is run by our own code, and not by libtorch"));
    track.tell(Command::Dismiss);
    assert_eq!((track.notice(), track.shared.running()), (None, TORCH));
    // Our own code knows no precisions.
    let precise = Wish { precision: Precision::F16, ..Wish::default() };
    track.shared.fetch(false, || Ok((bundled("Fuzz"), None))).join().unwrap();
    track.tell(Command::Run(precise));
    assert!(track.notice().is_some_and(|notice| notice.contains("not in f16")));
    track.tell(Command::Run(Wish::default()));
    assert_eq!(track.notice(), None);
}

#[test]
fn it_is_the_projects_and_no_sounds() {
    let mut track = Track::of(bundled("Fuzz"));
    track.tell(Command::Recall(Slot::B));
    track.tell(Command::Run(NOWHERE));
    track.tell(Command::Recall(Slot::A));
    assert_eq!(track.shared.running(), NOWHERE);
    let saved = track.shared.saved();
    let other = saved.compare.expect("both are used").other.expect("there is one");
    assert_eq!((saved.running, other.selection.running), (NOWHERE, Wish::default()));
    // Nor does an audition forget it.
    assert_eq!(track.shared.keep().saved().running, Wish::default());
    track.shared.fetch(true, || Ok((bundled("Triode"), None))).join().unwrap();
    assert_eq!((track.shared.running(), track.shared.saved().running), (NOWHERE, NOWHERE));
    track.shared.come_back();
    assert_eq!((track.shared.running(), track.shared.saved().running), (NOWHERE, NOWHERE));
}
