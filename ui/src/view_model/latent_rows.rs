//! The latents of a codec, a row for each.

use std::sync::Arc;

use ondes_engine::model::Control;
use ondes_engine::realtime::SessionController;
use ondes_player::instance::InstanceHandle;
use ondes_player::model_controls::{LATENT_KNOBS, ModelControls, normalize};
use ondes_player::parameter::ParameterId;

use crate::view::{Knob, LatentRow};

/// Rows, and the data that they are made from.
#[derive(Default)]
pub struct LatentRows {
    /// Rows at the last refresh; empty if the model is not a codec.
    pub rows: Vec<LatentRow>,
    controls: Arc<ModelControls>,
    positions: Vec<f32>,
    values: Vec<f32>,
}

impl LatentRows {
    /// Returns the controls of the model.
    #[must_use]
    pub fn controls(&self) -> &ModelControls {
        &self.controls
    }

    /// Reads the state of the instance.
    pub fn refresh(&mut self, instance: &InstanceHandle) {
        let controls = instance.controls();
        if !Arc::ptr_eq(&controls, &self.controls) {
            self.rows = rows(&controls);
            self.controls = controls;
        }
        instance.latent_positions(&mut self.positions);
        self.refresh_values(&instance.session);
        for (row, positions) in self
            .rows
            .iter_mut()
            .zip(self.positions.chunks_exact(LATENT_KNOBS.len()))
        {
            for (knob, position) in [&mut row.scale, &mut row.offset, &mut row.hold]
                .into_iter()
                .zip(positions)
            {
                knob.value = *position;
            }
        }
    }

    fn refresh_values(&mut self, session: &SessionController) {
        if self.rows.is_empty() {
            return;
        }
        session.latents(&mut self.values);
        // The previous model may still be output; its latents do not belong to these rows.
        let is_heard = self.values.len() == self.rows.len();
        let values = self
            .values
            .iter()
            .copied()
            .filter(|_| is_heard)
            .chain(std::iter::repeat(0.0));
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.value = value;
        }
    }
}

fn rows(controls: &ModelControls) -> Vec<LatentRow> {
    let knobs: Vec<_> = controls.latent_knobs().collect();
    let row = |(place, row): (usize, &[(ParameterId, &Control)])| {
        let name = format!("Latent {}", place + 1);
        let knob = |what: usize, steps: u32| {
            let (id, control) = row[what];
            let default = normalize(control, control.default);
            let name = format!("{name} {}", LATENT_KNOBS[what]);
            Knob {
                id,
                name,
                value: default,
                default,
                steps,
                choices: Vec::new(),
                tooltip: String::new(),
                midi: None,
            }
        };
        LatentRow {
            scale: knob(0, 0),
            offset: knob(1, 0),
            hold: knob(2, 2),
            name: name.clone(),
            value: 0.0,
        }
    };
    knobs
        .chunks_exact(LATENT_KNOBS.len())
        .enumerate()
        .map(row)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use ondes_engine::model::Model;
    use ondes_engine::realtime::{Driver, LoadError, LoadStatus, Setup};
    use ondes_player::compare_slots::CompareSlot;
    use ondes_player::library::BUNDLED;
    use ondes_player::macros::MACRO_CENTRE;
    use ondes_player::model_controls::FIRST_LATENT_ID;
    use ondes_player::parameter::MIX;
    use ondes_player::parameter_source::{ParameterSetter, ParameterSource};
    use ondes_player::parameter_store::ParameterStore;
    use ondes_player::parameter_values::ParameterValue;
    use ondes_player::player::Player;
    use ondes_player::product::Product;
    use ondes_player::state::InstanceState;

    use super::super::model_list::ModelList;
    use super::*;
    use crate::command::{HistoryCommand, KnobCommand};
    use crate::test_model::codec;
    use crate::view::ViewModel;
    use crate::view_model::InstanceViewModel;

    const SETUP: Setup = Setup {
        sample_rate: 48_000,
        max_block: 480,
    };
    const PATIENCE: Duration = Duration::from_secs(20);
    /// Constant input; 0.5 of it reaches the output as latent 1 and −0.25 as latent 2.
    const INPUT: f32 = 0.4;
    const SCALE_1: ParameterId = ParameterId(FIRST_LATENT_ID);
    const OFFSET_1: ParameterId = ParameterId(FIRST_LATENT_ID + 1);
    const HOLD_1: ParameterId = ParameterId(FIRST_LATENT_ID + 2);
    const SCALE_2: ParameterId = ParameterId(FIRST_LATENT_ID + 3);
    const OFFSET_2: ParameterId = ParameterId(FIRST_LATENT_ID + 4);

    /// An instrument by its product, which plays a codec.
    struct Track {
        instance: Arc<InstanceHandle>,
        store: Arc<ParameterStore>,
        view_model: InstanceViewModel,
        player: Player,
    }

    impl Track {
        fn new() -> Self {
            let instance = InstanceHandle::new(Product::Instrument, || ());
            let store = Arc::new(ParameterStore::new(Product::Instrument));
            instance.set_parameter_source(&store);
            instance.session.set_driver(Driver::Inline);
            instance.wait_until_loaded(PATIENCE);
            let view_model = InstanceViewModel::new(
                instance.clone(),
                store.clone(),
                ModelList::new(Product::Instrument, None),
            );
            let session = instance.session.activate(SETUP).unwrap();
            let player = Player::new(session, instance.clone(), SETUP, &store.player_parameters());
            Self {
                instance,
                store,
                view_model,
                player,
            }
        }

        fn with_codec() -> Self {
            let mut track = Self::new();
            track.load(codec());
            track
        }

        fn load(&mut self, model: Arc<Model>) {
            self.instance
                .load_model(false, move || Ok((model, None)))
                .join()
                .unwrap();
            self.settle();
        }

        /// Plays until the model is output; models change only while the session plays.
        fn settle(&mut self) {
            while self.instance.session.status() == LoadStatus::Loading {
                self.block();
                // Paced like a host, since a new model has to catch up.
                std::thread::sleep(Duration::from_millis(10));
            }
            self.view_model.refresh();
        }

        fn block(&mut self) -> f32 {
            let mut input = [[INPUT; SETUP.max_block]; 2];
            let [left, right] = &mut input;
            let mut output = [[0.0; SETUP.max_block]; 2];
            let [out_left, out_right] = &mut output;
            self.player.begin_block(&self.store.player_parameters());
            self.player.set_input(&[left, right]);
            self.player.process(&mut [out_left, out_right]);
            output[0][SETUP.max_block - 1]
        }

        /// Returns the output after all changes have arrived.
        fn output(&mut self) -> f32 {
            let last = (0..60).map(|_| self.block()).last().unwrap();
            (1e4 * last).round() / 1e4
        }

        fn turn(&mut self, knob: ParameterId, says: &str) {
            let position = self.view_model.parse_value(knob, says).unwrap();
            for command in [
                KnobCommand::BeginGesture(knob),
                KnobCommand::Set(knob, position),
                KnobCommand::EndGesture(knob),
            ] {
                self.view_model.handle_command(&*self.store, command);
            }
        }

        fn bind(&mut self, index: usize, name: &str) {
            let place = self
                .view_model
                .view()
                .model
                .unwrap()
                .controls
                .iter()
                .position(|control| control.name == name);
            self.view_model
                .handle_command(&*self.store, KnobCommand::BindMacro(index, place));
            self.view_model.refresh();
        }
    }

    fn number(saved: &InstanceState, name: &str) -> Option<f32> {
        match saved.latents.get(name)? {
            ParameterValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[test]
    fn only_a_codec_has_latents() {
        let mut track = Track::new();
        assert!(
            track.view_model.view().knobs.latents.is_empty()
                && track.view_model.view().play.can_play
        );
        track.load(codec());
        track.output();
        track.view_model.refresh();
        let view = track.view_model.view();
        let names: Vec<&str> = view
            .knobs
            .latents
            .iter()
            .map(|latent| latent.name.as_str())
            .collect();
        assert_eq!(names, ["Latent 1", "Latent 2"]);
        let [one, two] = view.knobs.latents else {
            panic!()
        };
        assert!(
            (one.value - INPUT).abs() < 1e-5 && (two.value + INPUT).abs() < 1e-5,
            "{} {}",
            one.value,
            two.value
        );
        assert_eq!(
            (one.hold.name.as_str(), one.hold.id, two.offset.id),
            ("Latent 1 hold", HOLD_1, OFFSET_2)
        );
        let stand = |knob: &Knob| {
            (
                knob.value,
                knob.default,
                track.view_model.format_value(knob.id, knob.value),
            )
        };
        assert_eq!(stand(&one.scale), (0.625, 0.625, "1.00".to_owned()));
        assert_eq!(stand(&one.offset), (0.5, 0.5, "0.00".to_owned()));
        assert_eq!(
            (stand(&one.hold), one.hold.steps),
            ((0.0, 0.0, "0.00".to_owned()), 2)
        );
        assert_eq!(
            (view.play.control_source, view.play.can_play),
            (None, false),
            "it plays what comes in"
        );
        track.load(BUNDLED[1].model());
        assert!(
            track.view_model.view().knobs.latents.is_empty()
                && track.view_model.view().play.control_source.is_some()
        );
        track
            .view_model
            .handle_command(&*track.store, KnobCommand::Set(SCALE_1, 0.1));
        assert!(track.instance.state().latents.is_empty());
    }

    #[test]
    fn a_codec_processes_the_input_whatever_the_control_source() {
        let mut track = Track::new();
        assert!(!track.instance.audio.uses_audio_input());
        track.load(codec());
        assert!(track.instance.audio.uses_audio_input());
        assert_eq!(
            (track.store.control_source(), track.output()),
            (ondes_engine::pipeline::ControlSource::Notes, 0.1)
        );
        track.load(BUNDLED[0].model());
        assert!(!track.instance.audio.uses_audio_input());
        assert_eq!(track.output(), 0.0, "an instrument waits for notes");
    }

    #[test]
    fn latent_knobs_are_heard_shown_and_saved_at_once() {
        let mut track = Track::with_codec();
        assert_eq!(track.output(), 0.1);
        track.turn(SCALE_2, "0");
        assert_eq!(number(&track.instance.state(), "latent2.scale"), Some(0.0));
        assert_eq!(track.output(), 0.2);
        track.turn(OFFSET_1, "-1.5");
        assert_eq!(track.output(), -0.55);
        track.view_model.refresh();
        let row = &track.view_model.view().knobs.latents[0];
        assert_eq!(
            (
                track
                    .view_model
                    .format_value(OFFSET_1, row.offset.value)
                    .as_str(),
                row.scale.value
            ),
            ("-1.50", 0.625)
        );
        assert!((row.value + 1.1).abs() < 1e-4, "{}", row.value);
        // Another driver, and a host that restarts.
        track
            .instance
            .session
            .set_driver(Driver::Worker { latency: None });
        track.settle();
        let session = track.instance.session.activate(SETUP).unwrap();
        track.player = Player::new(
            session,
            track.instance.clone(),
            SETUP,
            &track.store.player_parameters(),
        );
        track.instance.session.set_driver(Driver::Inline);
        track.settle();
        assert_eq!(track.output(), -0.55);
        // A held latent stays where it was, whatever the input.
        track.turn(HOLD_1, "1");
        track.output();
        let nothing = |track: &mut Track| {
            let (mut left, mut right) = ([0.0; SETUP.max_block], [0.0; SETUP.max_block]);
            track.player.begin_block(&track.store.player_parameters());
            track.player.process(&mut [&mut left, &mut right]);
            left[SETUP.max_block - 1]
        };
        let held = (0..60).map(|_| nothing(&mut track)).last().unwrap();
        assert!((held + 0.55).abs() < 1e-4, "{held}");
        // Defaults are not saved.
        for (knob, default) in [(SCALE_2, "1"), (OFFSET_1, "0"), (HOLD_1, "0")] {
            track.turn(knob, default);
        }
        assert!(
            !serde_json::to_string(&track.instance.state())
                .unwrap()
                .contains("latents")
        );
        assert_eq!(track.output(), 0.1);
    }

    #[test]
    fn latents_are_restored_and_cleared_for_another_model() {
        let mut track = Track::with_codec();
        track.instance.set_embed_model(true);
        track.turn(SCALE_1, "3");
        track.turn(OFFSET_2, "-2");
        let output = track.output();
        assert_eq!(output, 0.0);
        let text = serde_json::to_string(&track.instance.state()).unwrap();

        let mut again = Track::new();
        again
            .instance
            .restore_state(serde_json::from_str(&text).unwrap());
        again.settle();
        assert_eq!(
            (again.output(), again.instance.state().latents),
            (output, track.instance.state().latents)
        );
        assert_eq!(again.view_model.view().knobs.latents[0].scale.value, 0.875);
        // Loading the same model again changes nothing.
        again.load(codec());
        assert_eq!(again.output(), output);
        // An audition does not change the saved values.
        again
            .instance
            .load_model(true, || Ok((BUNDLED[0].model(), None)))
            .join()
            .unwrap();
        again.settle();
        assert_eq!(number(&again.instance.state(), "latent1.scale"), Some(3.0));
        again.instance.end_audition();
        again.settle();
        assert_eq!(again.output(), output);
        again.load(BUNDLED[0].model());
        assert!(again.instance.state().latents.is_empty());

        // An invalid value becomes the default and leaves the others alone.
        let nonsense = text.replace("3.0", "null").replace("-2.0", "99");
        assert_ne!(nonsense, text);
        let mut odd: InstanceState = serde_json::from_str(&nonsense).unwrap();
        odd.latents
            .insert("latent9.scale".into(), ParameterValue::Number(2.0));
        track.instance.restore_state(odd);
        track.settle();
        assert_eq!(track.output(), 1.1, "0.2 and 0.25 (4 - 0.4)");
        // A state of a version without latents.
        let mut older: serde_json::Value = serde_json::from_str(&text).unwrap();
        older.as_object_mut().unwrap().remove("latents");
        track
            .instance
            .restore_state(serde_json::from_value(older).unwrap());
        track.settle();
        assert_eq!(track.output(), 0.1);
    }

    #[test]
    fn a_macro_turns_a_latent_from_where_its_own_knob_stands() {
        let mut track = Track::with_codec();
        track.bind(0, "latent1.offset");
        assert_eq!(
            track.view_model.view().knobs.macros[0].knob.name,
            "Latent 1 offset"
        );
        track.turn(OFFSET_1, "-1");
        assert_eq!(
            (
                track.output(),
                track.view_model.format_value(ParameterId(0), MACRO_CENTRE)
            ),
            (-0.4, "-1.00".to_owned())
        );
        // Half of the way from −1 to 4.
        track.store.set_normalized(ParameterId(0), 0.75);
        assert_eq!(
            (
                track.output(),
                track.view_model.format_value(ParameterId(0), 0.75)
            ),
            (0.85, "1.50".to_owned())
        );
        assert_eq!(
            track
                .view_model
                .parse_value(ParameterId(0), "latent1.offset 1.5"),
            Some(0.75)
        );
        track.store.set_normalized(ParameterId(0), 1.0);
        assert_eq!(track.output(), 2.1);
        track.turn(OFFSET_1, "2");
        assert_eq!(track.output(), 2.1, "the macro counts more");
        // A model starts with the macro's position.
        let other = codec();
        track.load(other);
        assert_eq!(track.output(), 2.1);
        // When the macro is unbound, the latent returns to the value of its own knob.
        track.bind(0, "latent2.hold");
        assert_eq!(track.output(), 1.1);
        track.bind(0, "latent2.scale");
        track.store.set_normalized(ParameterId(0), 0.0);
        assert_eq!(track.output(), 1.6, "1.2 and 0.25 (-4 (-0.4))");
        track.bind(0, "latent2.hold");
        assert_eq!(track.output(), 1.1, "also where that was never turned");
    }

    #[test]
    fn slots_and_pad_have_latents_too() {
        let mut track = Track::with_codec();
        track.turn(SCALE_2, "0");
        track
            .view_model
            .handle_command(&*track.store, HistoryCommand::RecallSlot(CompareSlot::B));
        track.turn(SCALE_1, "2");
        assert_eq!(track.output(), 0.4);
        track
            .view_model
            .handle_command(&*track.store, HistoryCommand::RecallSlot(CompareSlot::A));
        assert_eq!(track.output(), 0.2);
        let saved = track.instance.state();
        let other = saved.compare.as_ref().unwrap().other.as_ref().unwrap();
        let scales = |saved: &InstanceState| {
            ["latent1.scale", "latent2.scale"].map(|name| number(saved, name))
        };
        assert_eq!(
            (scales(&saved), scales(&other.selection)),
            ([None, Some(0.0)], [Some(2.0), Some(0.0)])
        );
        track
            .view_model
            .handle_command(&*track.store, HistoryCommand::RecallSlot(CompareSlot::B));
        assert_eq!(track.output(), 0.4);

        track
            .view_model
            .handle_command(&*track.store, KnobCommand::SetPad(OFFSET_2, MIX));
        assert_eq!(
            track.instance.state().pad.unwrap(),
            ["latent2.offset", "mix"]
        );
        assert_eq!(track.view_model.view().knobs.pad, (OFFSET_2, MIX));
        track.view_model.handle_command(
            &*track.store,
            KnobCommand::SetPad(ParameterId(FIRST_LATENT_ID + 6), MIX),
        );
        assert_eq!(
            track.view_model.view().knobs.pad,
            (OFFSET_2, MIX),
            "there is no third latent"
        );
        track.load(BUNDLED[0].model());
        assert_eq!(
            track.view_model.view().knobs.pad,
            (ParameterId(0), ParameterId(1))
        );
    }

    #[test]
    fn changes_made_while_a_model_is_built_are_not_lost() {
        let mut track = Track::new();
        let (go, wait) = mpsc::channel::<()>();
        let slow = move || {
            let _ = wait.recv();
            Err(LoadError::Panicked("only slow".to_owned()))
        };
        track.instance.session.load(Box::new(slow), &[]);
        track
            .instance
            .load_model(false, || Ok((codec(), None)))
            .join()
            .unwrap();
        track.view_model.refresh();
        track.turn(SCALE_2, "0");
        track.store.set_normalized(ParameterId(0), 1.0);
        // The audio thread sends the change to the previous model, which does not know the control.
        track.block();
        track.block();
        drop(go);
        track.settle();
        assert_eq!(track.output(), 0.8, "4 times as much of latent 1 alone");
    }
}
