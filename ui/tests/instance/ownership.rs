//! An instance without a plugin framework: played, drawn, saved and restored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ondes_engine::instrument::EventKind;
use ondes_engine::realtime::{Driver, LoadStatus, Setup};
use ondes_player::instance::InstanceHandle;
use ondes_player::library::BUNDLED;
use ondes_player::parameter::{DRIVER, OUTPUT_GAIN, PANIC, TRANSPOSE};
use ondes_player::parameter_source::{ParameterSetter, ParameterSource};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::Player;
use ondes_player::product::Product;
use ondes_player::state::SoundState;
use ondes_ui::view_model::model_list::ModelList;
use ondes_ui::view_model::{self, InstanceViewModel};
use ondes_ui::{KnobCommand, SIZE, ViewModel, Window};

const PATIENCE: Duration = Duration::from_secs(20);
const SETUP: Setup = Setup {
    sample_rate: 48_000,
    max_block: 256,
};

/// An instance and its parameters.
struct Track {
    shared: Arc<InstanceHandle>,
    store: Arc<ParameterStore>,
    /// Number of times that the window was woken.
    woken: Arc<AtomicUsize>,
}

impl Track {
    fn new(product: Product) -> Self {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = woken.clone();
        let wake = move || {
            count.fetch_add(1, Relaxed);
        };
        let shared = InstanceHandle::new(product, wake);
        let store = Arc::new(ParameterStore::new(product));
        store.register_midi(&shared.midi_bindings);
        shared.set_parameter_source(&store);
        Self {
            shared,
            store,
            woken,
        }
    }

    fn player(&self) -> Player {
        self.shared.session.set_driver(Driver::Inline);
        self.shared.set_source(self.store.control_source());
        self.shared.wait_until_loaded(PATIENCE);
        let session = self.shared.session.activate(SETUP).unwrap();
        Player::new(
            session,
            self.shared.clone(),
            SETUP,
            &self.store.player_parameters(),
        )
    }

    /// Plays a note for half a second.
    fn note(&self, player: &mut Player) -> Vec<f32> {
        let mut sound = Vec::new();
        for block in 0..94 {
            let mut channels = [[0.0; 256]; 2];
            let [left, right] = &mut channels;
            player.begin_block(&self.store.player_parameters());
            if block == 0 {
                player.handle_event(
                    3,
                    EventKind::NoteOn {
                        channel: 0,
                        key: 60,
                        velocity: 0.8,
                    },
                );
            }
            player.process(&mut [left, right]);
            sound.extend(channels[0]);
        }
        sound
    }

    fn save(&self) -> String {
        let sound = SoundState {
            parameters: self.store.values(),
            selection: self.shared.state().into(),
        };
        serde_json::to_string(&sound).unwrap()
    }

    /// Restores parameters first, since the model starts with them.
    fn restore(&self, text: &str) {
        let sound: SoundState = serde_json::from_str(text).unwrap();
        self.store.restore(&sound.parameters);
        self.shared.restore_state(*sound.selection);
    }

    fn view_model(&self) -> InstanceViewModel {
        InstanceViewModel::new(
            self.shared.clone(),
            self.store.clone(),
            ModelList::new(Product::Instrument, None),
        )
    }
}

fn energy(sound: &[f32]) -> f32 {
    sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32
}

#[test]
fn what_is_turned_is_heard_saved_and_heard_again() {
    let track = Track::new(Product::Instrument);
    track
        .shared
        .load_model(false, || Ok((BUNDLED[1].model(), None)))
        .join()
        .unwrap();
    track.store.set_normalized(OUTPUT_GAIN, 0.6);
    track.store.set_value(TRANSPOSE, -12.0);
    track
        .shared
        .midi_bindings
        .restore(&[("mix".to_owned(), 20)].into());
    let mut player = track.player();
    let sound = track.note(&mut player);
    assert!(energy(&sound) > 1e-6 && sound[..3].iter().all(|sample| *sample == 0.0));
    assert!(track.woken.load(Relaxed) > 0, "a note wakes the window");

    let again = Track::new(Product::Instrument);
    again.restore(&track.save());
    assert_eq!(again.save(), track.save());
    assert_eq!(
        again.shared.midi_bindings.bindings(),
        track.shared.midi_bindings.bindings()
    );
    assert!(
        again.note(&mut again.player()) == sound,
        "it sounds another way"
    );

    // The key is still held.
    assert_eq!(track.shared.monitor.notes().count(), 1);
    track.store.set_normalized(PANIC, 1.0);
    player.begin_block(&track.store.player_parameters());
    assert_eq!(track.shared.monitor.notes().count(), 0);
}

#[test]
fn its_window_shows_and_turns_it() {
    let track = Track::new(Product::Instrument);
    track.shared.wait_until_loaded(PATIENCE);
    track.shared.monitor.set_open(true);
    let (mut view_model, mut window) = (track.view_model(), Window::new());
    let context = egui::Context::default();
    let mut frame = |view_model: &mut InstanceViewModel| {
        let screen_rect = Some(egui::Rect::from_min_size(egui::Pos2::ZERO, SIZE.into()));
        let input = egui::RawInput {
            screen_rect,
            ..egui::RawInput::default()
        };
        let mut drawn = context.run_ui(input, |ui| {
            view_model::show(view_model, &mut window, ui, &*track.store)
        });
        drawn.textures_delta.clear();
        drawn.shapes.len()
    };
    assert!(frame(&mut view_model) > 100);
    assert_eq!(view_model.view().messages.status, &LoadStatus::Ready);
    view_model.handle_command(&*track.store, KnobCommand::Set(TRANSPOSE, 1.0));
    view_model.handle_command(&*track.store, KnobCommand::SetParameter(DRIVER, 2.0));
    frame(&mut view_model);
    assert_eq!(
        (track.store.value(TRANSPOSE), track.store.driver()),
        (Some(24.0), Driver::Worker { latency: None })
    );
    let shown = view_model.view();
    assert_eq!(
        (
            shown.knobs.voice[0].value,
            shown.engine.driver,
            shown.knobs.voice.len()
        ),
        (1.0, 2, 7)
    );
    assert_eq!(view_model.format_value(TRANSPOSE, 1.0), "24 st");
    view_model::close(&mut view_model, &mut window, &*track.store);

    let effect = Track::new(Product::Effect);
    let view_model = effect.view_model();
    assert_eq!(
        (
            view_model.view().knobs.voice.len(),
            view_model.view().play.control_source,
            view_model.view().play.can_play
        ),
        (2, None, false)
    );
}
