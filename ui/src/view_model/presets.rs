//! Loading, saving and deleting presets. Files are read and written on threads of their own.

use ondes_player::history::knob_edits;
use ondes_player::library::LoadError;
use ondes_player::parameter_source::ParameterSetter;
use ondes_player::parameter_values::complete_values;
use ondes_player::preset::Preset;
use ondes_player::preset::file::{self, PresetError};
use ondes_player::preset::list::PresetId;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::store::{self, file_name};
use ondes_player::snapshot::SoundSnapshot;
use ondes_player::state::{InstanceState, SoundState};

use super::InstanceViewModel;
use super::preset_list::PendingPreset;
use crate::command::PresetCommand;

impl InstanceViewModel {
    pub(super) fn handle_preset(&mut self, command: PresetCommand) {
        match command {
            PresetCommand::Load(id) => self.load_preset(id),
            PresetCommand::Next => self.step_preset(1),
            PresetCommand::Previous => self.step_preset(-1),
            PresetCommand::Save(name) => {
                let overwrite = self.presets.is_taken(&name);
                self.save_preset(&name, overwrite);
            }
            PresetCommand::Delete(id) => self.delete_preset(id),
        }
    }

    /// Starts to read a preset of the list; [`InstanceViewModel::apply_loaded_presets`] applies it.
    /// If several presets or models are requested in short order, the last one counts. Errors are
    /// shown in the status.
    fn load_preset(&mut self, id: PresetId) {
        if let Some(location) = self.presets.location(id) {
            self.read_preset(location);
        }
    }

    /// Starts to read a preset that need not be in the list.
    pub(super) fn read_preset(&mut self, location: PresetLocation) {
        (self.auditioned, self.loading) = (None, None);
        let (instance, request) = (self.instance.clone(), self.instance.begin_request());
        let (place, expected) = (location.clone(), self.presets.product);
        let reader = std::thread::spawn(move || place.find_sound(expected));
        self.presets.pending.push(PendingPreset {
            instance,
            request,
            location,
            reader,
        });
    }

    /// Starts to load the preset `steps` after the last one requested, wrapping around.
    fn step_preset(&mut self, steps: isize) {
        let current = self
            .presets
            .pending
            .last()
            .map(|pending| pending.location.id())
            .or(self.presets.current);
        if let Some(id) = self.presets.beside(current, steps) {
            self.load_preset(id);
        }
    }

    /// Starts to save the sound under a name, in the user's first folder. An existing preset is
    /// replaced only with `overwrite`; its author, description and tags are kept.
    fn save_preset(&mut self, name: &str, overwrite: bool) {
        let Some(folder) = self.presets.folders.first().cloned() else {
            self.presets.problem = Some("there is no folder for presets; set ONDES_PRESETS".into());
            return;
        };
        let (name, product) = (name.trim().to_owned(), self.presets.product);
        let SoundSnapshot { values, selection } = self.sound_snapshot();
        self.presets.start_job(move || {
            let previous = overwrite
                .then(|| file::read(&folder.join(file_name(&name))).ok())
                .flatten();
            let (author, comment, tags) = previous
                .map(|previous| (previous.author, previous.comment, previous.tags))
                .unwrap_or_default();
            let parameters =
                complete_values(&values).map_err(|id| format!("parameter {id} has no value"))?;
            let selection = InstanceState {
                preset: None,
                ..selection.to_state()
            };
            let sound = SoundState {
                parameters,
                selection: selection.into(),
            };
            let preset = Preset {
                name,
                product,
                author,
                comment,
                tags,
                sound,
            };
            let path =
                store::save(&folder, &preset, overwrite).map_err(|error| error.to_string())?;
            Ok(Some(PresetLocation::File(path)))
        });
    }

    /// Starts to delete one of the user's presets, readable or not.
    fn delete_preset(&mut self, id: PresetId) {
        match self.presets.location(id) {
            Some(PresetLocation::File(path)) => {
                if self.presets.current == Some(id) {
                    self.instance.set_preset(None);
                }
                let folders = self.presets.folders.clone();
                self.presets.start_job(move || {
                    store::delete(&folders, &path).map_err(|error| error.to_string())?;
                    Ok(None)
                });
            }
            Some(PresetLocation::Factory(_)) => {
                self.presets.problem = Some(PresetError::NotUserPreset.to_string())
            }
            None => {}
        }
    }

    /// Applies presets that have been read. To be called before each frame, and regularly while
    /// there are none.
    pub fn apply_loaded_presets(&mut self, setter: &impl ParameterSetter) {
        let read: Vec<PendingPreset> = self
            .presets
            .pending
            .extract_if(.., |pending| pending.reader.is_finished())
            .collect();
        for PendingPreset {
            instance,
            request,
            location,
            reader,
        } in read
        {
            let unread = || LoadError::Failed("the preset could not be read".into());
            let sound = reader.join().unwrap_or_else(|_| Err(unread()));
            match sound {
                Ok((name, SoundSnapshot { values, selection })) if instance.is_current(request) => {
                    let (before, knobs) = (self.capture(), knob_edits(&*self.source, &values));
                    let selection = selection.keeping_choices(&instance.selection_snapshot());
                    self.apply_sound(setter, SoundSnapshot { values, selection });
                    self.instance.set_preset(Some(location));
                    self.record_since(before, knobs, format!("Preset {name}"));
                    self.await_sound();
                }
                Ok(_) => {}
                Err(reason) => {
                    let asks =
                        matches!(reason, LoadError::Untrusted(_)) && instance.is_current(request);
                    instance.fail_request(request, Some(reason));
                    if asks {
                        self.ask_for_consent_of_preset(location);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use ondes_engine::realtime::LoadStatus;
    use ondes_player::compare_slots::{CompareSlot, CompareSlots};
    use ondes_player::instance::InstanceHandle;
    use ondes_player::library::{BUNDLED, BundledModel, FileReference};
    use ondes_player::parameter::{OUTPUT_GAIN, Parameter, ParameterId};
    use ondes_player::parameter_store::ParameterStore;
    use ondes_player::parameter_values::ParameterValue;
    use ondes_player::product::Product;

    use super::super::model_list::ModelList;
    use super::super::preset_list::PresetList;
    use super::*;
    use crate::command::{HistoryCommand, ModelCommand};
    use crate::view::ViewModel;

    /// Records what is set, as text.
    #[derive(Default)]
    struct Fake(RefCell<Vec<String>>);

    impl ParameterSetter for Fake {
        fn begin_gesture(&self, _: ParameterId) {}
        fn set_normalized(&self, id: ParameterId, value: f32) {
            let parameter = Parameter::get(id).unwrap();
            let text = parameter.format(parameter.denormalize(value));
            self.0
                .borrow_mut()
                .push(format!("{} {text}{}", parameter.label, parameter.unit));
        }
        fn end_gesture(&self, _: ParameterId) {}
    }

    fn open(folders: &[PathBuf]) -> (InstanceViewModel, Fake) {
        let instance = InstanceHandle::new(Product::Instrument, || ());
        instance.wait_until_loaded(Duration::from_secs(10));
        let mut view_model = InstanceViewModel::new(
            instance,
            Arc::new(ParameterStore::new(Product::Instrument)),
            ModelList::new(Product::Instrument, None),
        );
        view_model.presets = PresetList::new(Product::Instrument, folders.to_vec());
        let fake = Fake::default();
        settle(&mut view_model, &fake);
        (view_model, fake)
    }

    fn play(view_model: &InstanceViewModel, bundled: &'static BundledModel) {
        view_model
            .instance
            .load_model(false, || Ok((bundled.model(), None)))
            .join()
            .unwrap();
    }

    /// Waits until no work is in progress.
    fn settle(view_model: &mut InstanceViewModel, setter: &impl ParameterSetter) {
        loop {
            view_model.refresh();
            view_model.apply_loaded_presets(setter);
            view_model
                .instance
                .wait_until_loaded(Duration::from_secs(10));
            if !view_model.presets.poll()
                && view_model
                    .background_jobs
                    .iter()
                    .all(JoinHandle::is_finished)
                && !view_model.models.poll()
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        view_model.refresh();
    }

    fn id(view_model: &InstanceViewModel, name: &str) -> PresetId {
        view_model
            .presets
            .listing
            .presets
            .iter()
            .find(|preset| preset.name == name)
            .expect(name)
            .id
    }

    fn bundled(name: &str) -> &'static BundledModel {
        BUNDLED
            .iter()
            .find(|bundled| bundled.name == name)
            .expect(name)
    }

    fn hash(view_model: &InstanceViewModel) -> String {
        view_model
            .instance
            .model()
            .unwrap()
            .content_hash()
            .to_owned()
    }

    #[test]
    fn a_preset_is_loaded_through_the_host() {
        let (mut view_model, host) = open(&[]);
        let glass = id(&view_model, "Glass Pluck");
        view_model.load_preset(glass);
        settle(&mut view_model, &host);
        assert_eq!(
            (hash(&view_model), view_model.presets.current),
            (
                bundled("Plucked").model().content_hash().to_owned(),
                Some(glass)
            )
        );
        let changes = host.0.take();
        assert!(
            changes.contains(&"Transpose 12 st".to_owned()),
            "{changes:?}"
        );
        assert!(
            !changes.iter().any(|line| ["Mix", "Bypass", "Processing"]
                .iter()
                .any(|label| line.starts_with(label))),
            "{changes:?}"
        );
        view_model.load_preset(PresetId(1));
        assert_eq!(
            view_model.view().messages.status,
            &LoadStatus::Ready,
            "what is not in the list is nothing"
        );
    }

    #[test]
    fn a_preset_is_unchanged_until_something_is_turned() {
        let (mut view_model, _) = open(&[]);
        let store = Arc::new(ParameterStore::new(Product::Instrument));
        view_model.source = store.clone();
        for preset in view_model.presets.listing.presets.clone() {
            view_model.load_preset(preset.id);
            settle(&mut view_model, &*store);
            assert_eq!(
                (
                    view_model.presets.current,
                    view_model.view().presets.changed
                ),
                (Some(preset.id), false),
                "{}",
                preset.name
            );
            store.set_normalized(ParameterId(3), 0.4);
            assert!(view_model.view().presets.changed, "{}", preset.name);
        }
    }

    #[test]
    fn no_value_is_changed_by_setting_it() {
        let (mut view_model, _) = open(&[]);
        let store = ParameterStore::new(Product::Instrument);
        for gain_db in (-600..=240).map(|tenths| tenths as f32 / 10.0) {
            let preset = view_model.presets.listing.presets.first_mut().unwrap();
            preset.parameters =
                [("output_gain".to_owned(), ParameterValue::Number(gain_db))].into();
            view_model.presets.current = Some(preset.id);
            let parameter = Parameter::get(OUTPUT_GAIN).unwrap();
            store.set_normalized(OUTPUT_GAIN, parameter.normalize(gain_db));
            assert!(
                !view_model.presets.is_changed(&store, &view_model.instance),
                "{gain_db} dB"
            );
            store.set_value(
                OUTPUT_GAIN,
                if gain_db < 0.0 {
                    gain_db + 0.1
                } else {
                    gain_db - 0.1
                },
            );
            assert!(
                view_model.presets.is_changed(&store, &view_model.instance),
                "{gain_db} dB"
            );
        }
    }

    #[test]
    fn the_last_request_of_presets_and_models_counts() {
        let (mut view_model, host) = open(&[]);
        let (glass, breathy) = (
            id(&view_model, "Glass Pluck"),
            id(&view_model, "Breathy Solo"),
        );
        view_model.load_preset(glass);
        view_model.load_preset(breathy);
        settle(&mut view_model, &host);
        assert_eq!(
            (hash(&view_model), view_model.presets.current),
            (
                bundled("Wind").model().content_hash().to_owned(),
                Some(breathy)
            )
        );
        host.0.take();
        view_model.load_preset(glass);
        let model = view_model.view().models.list[0].id;
        view_model.handle_command(&host, ModelCommand::Load(model));
        settle(&mut view_model, &host);
        assert_eq!(
            (hash(&view_model), host.0.take().len()),
            (BUNDLED[0].model().content_hash().to_owned(), 0)
        );
    }

    #[test]
    fn the_list_is_walked_around_its_end() {
        let (mut view_model, host) = open(&[]);
        let ids: Vec<PresetId> = view_model
            .presets
            .listing
            .presets
            .iter()
            .map(|preset| preset.id)
            .collect();
        // From the initial preset back beyond the first, and on again.
        let start = ids
            .iter()
            .position(|id| Some(*id) == view_model.presets.current)
            .expect("an initial preset");
        let back = -(start as isize) - 1;
        for (steps, expected) in [
            (1, ids[start + 1]),
            (-1, ids[start]),
            (back, ids[ids.len() - 1]),
            (1, ids[0]),
        ] {
            view_model.step_preset(steps);
            settle(&mut view_model, &host);
            assert_eq!(view_model.presets.current, Some(expected));
        }
        // Faster than the files are read.
        view_model.step_preset(1);
        view_model.step_preset(1);
        settle(&mut view_model, &host);
        assert_eq!(view_model.presets.current, Some(ids[2]));
    }

    #[test]
    fn presets_are_saved_listed_loaded_replaced_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut view_model, host) = open(&[folder.path().join("presets")]);
        play(&view_model, bundled("Wind"));
        view_model.instance.bind_macro(0, Some("room"));
        view_model.save_preset(" My Wind ", false);
        settle(&mut view_model, &host);
        assert_eq!(view_model.presets.problem, None);
        let mine = id(&view_model, "My Wind");
        assert_eq!(view_model.presets.current, Some(mine));

        play(&view_model, &BUNDLED[0]);
        view_model.instance.bind_macro(0, None);
        view_model.save_preset("My Wind", false);
        settle(&mut view_model, &host);
        assert!(
            view_model
                .presets
                .problem
                .take()
                .unwrap()
                .contains("already")
        );
        view_model.load_preset(mine);
        settle(&mut view_model, &host);
        assert_eq!(hash(&view_model), bundled("Wind").model().content_hash());
        assert_eq!(
            view_model.instance.macro_control(0).as_deref(),
            Some("room")
        );

        let Some(PresetLocation::File(path)) = view_model.presets.location(mine) else {
            panic!("it is a file")
        };
        let changes = Preset {
            comment: "For the sea.".into(),
            ..file::read(&path).unwrap()
        };
        store::save(path.parent().unwrap(), &changes, true).unwrap();
        play(&view_model, bundled("Plucked"));
        view_model.save_preset("My Wind", true);
        settle(&mut view_model, &host);
        let preset = file::read(&path).unwrap();
        assert_eq!(
            (
                preset.comment.as_str(),
                preset.sound.selection.model.name.as_str()
            ),
            ("For the sea.", "Plucked")
        );

        let harp = id(&view_model, "Harp");
        view_model.delete_preset(harp);
        assert!(view_model.presets.problem.take().is_some(), "it is no file");
        view_model.delete_preset(mine);
        settle(&mut view_model, &host);
        assert!(
            !path.exists()
                && view_model.presets.location(mine).is_none()
                && view_model.presets.problem.is_none()
        );
        view_model.save_preset(" ", false);
        settle(&mut view_model, &host);
        assert!(view_model.presets.problem.take().is_some());
    }

    #[test]
    fn failed_loads_say_why_and_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut lost = PresetLocation::Factory("harp".into()).read().unwrap();
        lost.name = "Lost".into();
        lost.sound.selection.model = FileReference {
            hash: "0".repeat(64),
            name: "Old Bell".into(),
            ..FileReference::default()
        };
        store::save(folder.path(), &lost, false).unwrap();
        let gone = Preset {
            name: "Gone".into(),
            ..lost.clone()
        };
        let path = store::save(folder.path(), &gone, false).unwrap();
        let (mut view_model, host) = open(&[folder.path().to_owned()]);
        std::fs::remove_file(&path).unwrap();
        let before = view_model.presets.current;
        // An audition ends with the failed request.
        let model = view_model.view().models.list[1].id;
        view_model.handle_command(&host, ModelCommand::Audition(Some(model)));
        settle(&mut view_model, &host);
        for (name, reason) in [("Lost", "is missing"), ("Gone", "Gone.ondes-preset: ")] {
            let preset = id(&view_model, name);
            view_model.load_preset(preset);
            settle(&mut view_model, &host);
            let LoadStatus::Failed(message) = view_model.view().messages.status.clone() else {
                panic!("{:?}", view_model.view().messages.status)
            };
            assert!(message.contains(reason), "{message}");
            assert_eq!(
                (hash(&view_model), view_model.presets.current),
                (BUNDLED[0].model().content_hash().to_owned(), before)
            );
        }
        assert!(host.0.take().is_empty());
    }

    #[test]
    fn a_window_that_closes_leaves_nothing_under_way() {
        let (mut view_model, _) = open(&[]);
        let glass = id(&view_model, "Glass Pluck");
        view_model.load_preset(glass);
        let shared = view_model.instance.clone();
        assert_eq!(shared.status(), LoadStatus::Loading);
        drop(view_model);
        assert_eq!(shared.status(), LoadStatus::Ready);
    }

    #[test]
    fn a_project_whose_models_travel_with_it_stays_one() {
        let (mut view_model, host) = open(&[]);
        view_model.instance.set_embed_model(true);
        let glass = id(&view_model, "Glass Pluck");
        view_model.load_preset(glass);
        settle(&mut view_model, &host);
        assert!(view_model.instance.state().model.embedded.is_some());
    }

    #[test]
    fn both_slots_are_saved_with_the_project() {
        let (mut view_model, host) = open(&[]);
        let project = |view_model: &InstanceViewModel| view_model.instance.state();
        assert_eq!(project(&view_model).compare, None);
        view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::B));
        let wind = id(&view_model, "Breathy Solo");
        view_model.load_preset(wind);
        settle(&mut view_model, &host);
        let saved = project(&view_model);
        let slots = saved.compare.clone().unwrap();
        let other = slots.other.unwrap();
        assert!(slots.b_is_active);
        assert_eq!(
            (
                saved.model.name.as_str(),
                other.selection.model.name.as_str()
            ),
            ("Wind", BUNDLED[0].name)
        );
        assert_eq!(
            other.parameters["driver"],
            ParameterValue::Choice("auto".into())
        );

        // Another instance restores it.
        let (mut again, host) = self::open(&[]);
        let mut text = serde_json::to_value(&saved).unwrap();
        text["compare"]["other"]["parameters"]["mix"] = 0.25.into();
        again
            .instance
            .restore_state(serde_json::from_value(text).unwrap());
        settle(&mut again, &host);
        assert_eq!(
            (again.view().history.slot, hash(&again)),
            (
                CompareSlot::B,
                bundled("Wind").model().content_hash().to_owned()
            )
        );
        again.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::A));
        settle(&mut again, &host);
        assert_eq!(
            (again.view().history.slot, hash(&again)),
            (CompareSlot::A, BUNDLED[0].model().content_hash().to_owned())
        );
        assert_eq!(host.0.take(), ["Mix 25.0 %"]);

        // A state of a version without slots.
        again.instance.restore_state(InstanceState {
            compare: None,
            ..saved
        });
        assert_eq!(
            (
                again.instance.compare_slots.active(),
                again.instance.compare_slots.state()
            ),
            (CompareSlot::A, None)
        );
    }

    #[test]
    fn a_model_that_both_slots_play_travels_once() {
        let (mut view_model, host) = open(&[]);
        view_model.instance.set_embed_model(true);
        view_model.handle_command(&host, HistoryCommand::RecallSlot(CompareSlot::B));
        let saved = view_model.instance.state();
        assert!(saved.model.embedded.is_some());
        let other = saved.compare.unwrap().other.unwrap();
        assert_eq!(
            (other.selection.model.hash, other.selection.model.embedded),
            (saved.model.hash, None)
        );
        let missing = CompareSlots::default();
        assert_eq!(missing.state(), None);
    }
}
