//! Presets in a window: which there are, and what becomes of loading, saving and deleting one. Files are read and
//! written on threads of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_ui::{Preset as Shown, PresetId, Source};

use super::Desk;
use super::setting::{Setting, recall, setting};
use crate::board::{Board, Setter};
use crate::parameter::Parameter;
use crate::preset::list::{Listing, Origin, look};
use crate::preset::store::{self, file_name};
use crate::preset::values::{Value, Values, complete};
use crate::preset::{Preset, Product, file};
use crate::shared::{Kept, Shared};
use crate::state::Sound;

/// A knob that is no further than this, 0 … 1, from where it was has not been turned: a value that goes to a knob's
/// position and back is not always the same to the last digit.
const UNTURNED: f32 = 1e-5;

/// The presets for a product, and what is being done with them.
pub struct Presets {
    /// As they are shown; empty until the first search is done.
    pub listing: Listing,
    /// The same for the window.
    pub shown: Vec<Shown>,
    /// The one that was loaded or saved last in this window, whatever was turned since.
    pub current: Option<PresetId>,
    /// Where parameters stood then.
    values: Values,
    /// How latents were bent then; none before there was a preset.
    bent: Option<Values>,
    /// Why the last one could not be saved or deleted. What could not be loaded is said in the instance's status.
    pub problem: Option<String>,
    product: Product,
    folders: Vec<PathBuf>,
    search: Option<JoinHandle<Listing>>,
    /// Files have changed since the search began.
    stale: bool,
    arrivals: Vec<Arrival>,
    deeds: Vec<JoinHandle<Done>>,
}

/// What became of saving, which gives where, or deleting.
type Done = Result<Option<Origin>, String>;

/// A preset that is being read.
struct Arrival {
    shared: Arc<Shared>,
    ticket: u64,
    id: PresetId,
    reader: JoinHandle<Result<Setting, String>>,
}

impl Presets {
    /// Those that are built in and in these folders, of which the first one is saved to. They are being searched.
    #[must_use]
    pub fn new(product: Product, folders: Vec<PathBuf>) -> Self {
        let mut presets = Self {
            listing: Listing::default(),
            shown: Vec::new(),
            current: None,
            values: Values::new(),
            bent: None,
            problem: None,
            product,
            folders,
            search: None,
            stale: false,
            arrivals: Vec::new(),
            deeds: Vec::new(),
        };
        presets.rescan();
        presets
    }

    /// Looks for presets again.
    pub fn rescan(&mut self) {
        self.stale = self.search.is_some();
        if !self.stale {
            let (product, folders) = (self.product, self.folders.clone());
            self.search = Some(std::thread::spawn(move || look(product, &folders)));
        }
    }

    /// Takes what was found, saved or deleted since. Gives whether anything is under way.
    pub fn poll(&mut self) -> bool {
        if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
            if let Some(Ok(listing)) = self.search.take().map(JoinHandle::join) {
                self.shown = shown(&listing);
                self.listing = listing;
            }
            if self.stale {
                self.rescan();
            }
        }
        for deed in self.deeds.extract_if(.., |deed| deed.is_finished()).collect::<Vec<_>>() {
            match deed.join() {
                Ok(Ok(origin)) => self.current = origin.map(|origin| origin.id()).or(self.current),
                Ok(Err(problem)) => self.problem = Some(problem),
                Err(_) => {}
            }
            self.rescan();
        }
        self.search.is_some() || !self.deeds.is_empty() || !self.arrivals.is_empty()
    }

    /// Whether something was turned since a preset was loaded or saved.
    #[must_use]
    pub fn changed(&self, board: &dyn Board, shared: &Shared) -> bool {
        let way = |id: &str, then: &Value| {
            let knob = Parameter::named(id)?;
            let parameter = Parameter::of(knob)?;
            Some((board.normalized(knob)? - parameter.position(then.read(parameter)?)).abs())
        };
        let turned = self.values.iter().any(|(id, then)| way(id, then).is_some_and(|way| way > UNTURNED));
        turned || self.bent.as_ref().is_some_and(|bent| *bent != shared.bent())
    }

    /// Whether there is a folder to save to.
    #[must_use]
    pub fn can_save(&self) -> bool {
        !self.folders.is_empty()
    }

    /// Whether the user has a preset of that name.
    #[must_use]
    pub fn is_taken(&self, name: &str) -> bool {
        let mut own = self.listing.presets.iter().filter(|listed| !listed.is_factory());
        own.any(|listed| listed.name.eq_ignore_ascii_case(name.trim()))
    }

    fn origin(&self, id: PresetId) -> Option<Origin> {
        self.listing.origin(id).cloned()
    }

    /// The preset so many places after that one, around the end; the first where there is none.
    fn beside(&self, id: Option<PresetId>, steps: isize) -> Option<PresetId> {
        let list = &self.listing.presets;
        let at = id.and_then(|id| list.iter().position(|listed| listed.id == id));
        let count = isize::try_from(list.len()).ok().filter(|count| *count > 0)?;
        let next = at.map_or(0, |at| (at as isize + steps).rem_euclid(count));
        list.get(next as usize).map(|listed| listed.id)
    }

    fn begin(&mut self, deed: impl FnOnce() -> Done + Send + 'static) {
        self.problem = None;
        self.deeds.push(std::thread::spawn(deed));
    }
}

/// The list as a window shows it: what cannot be loaded comes last.
fn shown(listing: &Listing) -> Vec<Shown> {
    let whole = listing.presets.iter().map(|listed| {
        let about = [listed.model.as_str(), &listed.tags.join(", "), &listed.comment, &listed.author];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        let source = if listed.is_factory() { Source::Bundled } else { Source::User };
        Shown { id: listed.id, name: listed.name.clone(), about: about.join(" · "), source, problem: None }
    });
    let broken = listing.broken.iter().map(|broken| {
        let (name, source) = match &broken.origin {
            Origin::Factory(key) => (key.clone(), Source::Bundled),
            Origin::File(path) => (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), Source::User),
        };
        Shown { id: broken.id, name, about: String::new(), source, problem: Some(broken.reason.clone()) }
    });
    whole.chain(broken).collect()
}

impl Drop for Presets {
    fn drop(&mut self) {
        // This code may be unloaded after this.
        let _ = self.search.take().map(JoinHandle::join);
        self.deeds.drain(..).for_each(|deed| drop(deed.join()));
        for Arrival { shared, ticket, reader, .. } in self.arrivals.drain(..) {
            let _ = reader.join();
            shared.refuse(ticket, None);
        }
    }
}

/// Begins to read a preset of the list, for [`super::show`] to play it when it is there. Of presets and models that are
/// asked for in short order the last one counts. What cannot be read, or has no model, is said in the status; what
/// played plays on.
pub fn load(desk: &mut Desk, id: PresetId) {
    if let Some(origin) = desk.presets.origin(id) {
        read(desk, origin);
    }
}

/// The same with a file that need not be in the list.
pub fn open(desk: &mut Desk, path: PathBuf) {
    read(desk, Origin::File(path));
}

fn read(desk: &mut Desk, origin: Origin) {
    // What is only auditioned ends when this is read.
    (desk.auditioned, desk.loading) = (None, None);
    let (shared, ticket) = (desk.shared.clone(), desk.shared.ask());
    let (id, own) = (origin.id(), desk.presets.product);
    let reader = std::thread::spawn(move || {
        let Preset { sound, name, product, .. } = origin.read().map_err(|refused| refused.to_string())?;
        if product != own {
            return Err(format!("{name}: {}", file::Fault::Elsewhere(product)));
        }
        let kept = Kept::find(*sound.selection).map_err(|missing| missing.to_string())?;
        Ok(Setting { values: sound.parameters, kept })
    });
    desk.presets.arrivals.push(Arrival { shared, ticket, id, reader });
}

/// Begins to load the preset so many places after the last one that was asked for, around the list's end.
pub fn step(desk: &mut Desk, steps: isize) {
    let here = desk.presets.arrivals.last().map(|arrival| arrival.id).or(desk.presets.current);
    if let Some(id) = desk.presets.beside(here, steps) {
        load(desk, id);
    }
}

/// Begins to save what is heard under a name, in the user's first folder. A preset of that name is only replaced with
/// `overwrite`; what is told of it stays.
pub fn save(desk: &mut Desk, name: &str, overwrite: bool) {
    let Some(folder) = desk.presets.folders.first().cloned() else {
        desk.presets.problem = Some("there is no folder for presets".into());
        return;
    };
    let (name, product) = (name.trim().to_owned(), desk.presets.product);
    let Setting { values, kept } = setting(desk);
    desk.presets.values.clone_from(&values);
    desk.presets.bent = Some(desk.shared.bent());
    desk.presets.begin(move || {
        let before = overwrite.then(|| file::read(&folder.join(file_name(&name))).ok()).flatten();
        let (author, comment, tags) =
            before.map(|before| (before.author, before.comment, before.tags)).unwrap_or_default();
        // Only what a preset turns.
        let parameters = complete(&values).map_err(|id| format!("{id} has no value"))?;
        let sound = Sound { parameters, selection: kept.saved().into() };
        let preset = Preset { name, product, author, comment, tags, sound };
        let path = store::save(&folder, &preset, overwrite).map_err(|refused| refused.to_string())?;
        Ok(Some(Origin::File(path)))
    });
}

/// Begins to delete a preset of the user, also a broken one.
pub fn delete(desk: &mut Desk, id: PresetId) {
    match desk.presets.origin(id) {
        Some(Origin::File(path)) => {
            let folders = desk.presets.folders.clone();
            desk.presets.begin(move || {
                store::delete(&folders, &path).map_err(|refused| refused.to_string())?;
                Ok(None)
            });
        }
        Some(Origin::Factory(_)) => desk.presets.problem = Some(file::Fault::NotTheUsers.to_string()),
        None => {}
    }
}

/// Plays what was read since. Before each picture.
pub(super) fn tick(desk: &mut Desk, setter: &impl Setter) {
    let arrived: Vec<Arrival> = desk.presets.arrivals.extract_if(.., |arrival| arrival.reader.is_finished()).collect();
    for Arrival { shared, ticket, id, reader } in arrived {
        let read = reader.join().unwrap_or_else(|_| Err("the preset could not be read".into()));
        match read {
            Ok(Setting { values, kept }) if shared.is_awaited(ticket) => {
                let kept = kept.in_place_of(&shared.keep());
                desk.presets.values.clone_from(&values);
                recall(desk, setter, Setting { values, kept });
                desk.presets.bent = Some(desk.shared.bent());
                desk.presets.current = Some(id);
            }
            Ok(_) => {}
            Err(reason) => shared.refuse(ticket, Some(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use ondes_engine::realtime::Status;
    use ondes_ui::{Command, KnobId, Owner, Slot};

    use super::super::commands::obey;
    use super::super::compare::Compare;
    use super::super::entries::Entries;
    use super::*;
    use crate::library::{BUNDLED, Bundled, Reference};
    use crate::panel::Panel;
    use crate::parameter::OUTPUT_GAIN;
    use crate::state::Saved;

    /// Remembers what is set, by name and text.
    #[derive(Default)]
    struct Fake(RefCell<Vec<String>>);

    impl Setter for Fake {
        fn begin(&self, _: KnobId) {}
        fn set(&self, knob: KnobId, position: f32) {
            let parameter = Parameter::of(knob).unwrap();
            let said = parameter.say(parameter.value(position));
            self.0.borrow_mut().push(format!("{} {said}{}", parameter.name, parameter.unit));
        }
        fn end(&self, _: KnobId) {}
    }

    fn desk(folders: &[PathBuf]) -> (Desk, Fake) {
        let shared = Shared::new(Product::Instrument, || ());
        shared.wait(Duration::from_secs(10));
        let mut desk = Desk::new(shared, Arc::new(Panel::new(Product::Instrument)), Entries::new(None));
        desk.presets = Presets::new(Product::Instrument, folders.to_vec());
        let fake = Fake::default();
        settle(&mut desk, &fake);
        (desk, fake)
    }

    fn play(desk: &Desk, bundled: &'static Bundled) {
        desk.shared.fetch(false, || Ok((bundled.model(), None))).join().unwrap();
    }

    /// Until nothing is under way.
    fn settle(desk: &mut Desk, setter: &impl Setter) {
        loop {
            desk.refresh();
            tick(desk, setter);
            desk.shared.wait(Duration::from_secs(10));
            if !desk.presets.poll() && desk.errands.iter().all(JoinHandle::is_finished) && !desk.entries.poll() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        desk.refresh();
    }

    fn id(desk: &Desk, name: &str) -> PresetId {
        desk.presets.listing.presets.iter().find(|listed| listed.name == name).expect(name).id
    }

    fn hash(desk: &Desk) -> String {
        desk.shared.model().unwrap().content_hash().to_owned()
    }

    #[test]
    fn a_preset_is_loaded_through_the_host() {
        let (mut desk, host) = desk(&[]);
        let glass = id(&desk, "Glass Pluck");
        load(&mut desk, glass);
        settle(&mut desk, &host);
        assert_eq!((hash(&desk), desk.presets.current), (BUNDLED[1].model().content_hash().to_owned(), Some(glass)));
        let told = host.0.take();
        assert!(told.contains(&"Transpose 12 st".to_owned()), "{told:?}");
        assert!(
            !told.iter().any(|line| ["Mix", "Bypass", "Driver"].iter().any(|kept| line.starts_with(kept))),
            "{told:?}"
        );
        load(&mut desk, PresetId(1));
        assert_eq!(desk.view().status, &Status::Ready, "what is not in the list is nothing");
    }

    #[test]
    fn a_preset_is_unchanged_until_something_is_turned() {
        let (mut desk, _) = desk(&[]);
        let panel = Arc::new(Panel::new(Product::Instrument));
        desk.board = panel.clone();
        for listed in desk.presets.listing.presets.clone() {
            load(&mut desk, listed.id);
            settle(&mut desk, &*panel);
            assert_eq!((desk.presets.current, desk.view().changed), (Some(listed.id), false), "{}", listed.name);
            panel.set(KnobId(3), 0.4);
            assert!(desk.view().changed, "{}", listed.name);
        }
    }

    #[test]
    fn no_value_is_changed_by_setting_it() {
        let (mut desk, _) = desk(&[]);
        let panel = Panel::new(Product::Instrument);
        for gain_db in (-600..=240).map(|tenths| tenths as f32 / 10.0) {
            desk.presets.values = [("output_gain".to_owned(), Value::Number(gain_db))].into();
            let parameter = Parameter::of(OUTPUT_GAIN).unwrap();
            panel.set(OUTPUT_GAIN, parameter.position(gain_db));
            assert!(!desk.presets.changed(&panel, &desk.shared), "{gain_db} dB");
            panel.put(OUTPUT_GAIN, if gain_db < 0.0 { gain_db + 0.1 } else { gain_db - 0.1 });
            assert!(desk.presets.changed(&panel, &desk.shared), "{gain_db} dB");
        }
    }

    #[test]
    fn of_presets_and_models_the_last_one_counts() {
        let (mut desk, host) = desk(&[]);
        let (glass, breathy) = (id(&desk, "Glass Pluck"), id(&desk, "Breathy Solo"));
        load(&mut desk, glass);
        load(&mut desk, breathy);
        settle(&mut desk, &host);
        assert_eq!((hash(&desk), desk.presets.current), (BUNDLED[2].model().content_hash().to_owned(), Some(breathy)));
        host.0.take();
        load(&mut desk, glass);
        let model = desk.view().entries[0].id;
        obey(&mut desk, &host, Command::Load(model));
        settle(&mut desk, &host);
        assert_eq!((hash(&desk), host.0.take().len()), (BUNDLED[0].model().content_hash().to_owned(), 0));
    }

    #[test]
    fn the_list_is_walked_around_its_end() {
        let (mut desk, host) = desk(&[]);
        let ids: Vec<PresetId> = desk.presets.listing.presets.iter().map(|listed| listed.id).collect();
        for (steps, wanted) in [(1, ids[0]), (-1, ids[ids.len() - 1]), (1, ids[0])] {
            step(&mut desk, steps);
            settle(&mut desk, &host);
            assert_eq!(desk.presets.current, Some(wanted));
        }
        // Faster than they are read.
        step(&mut desk, 1);
        step(&mut desk, 1);
        settle(&mut desk, &host);
        assert_eq!(desk.presets.current, Some(ids[2]));
    }

    #[test]
    fn what_is_saved_is_listed_loaded_replaced_only_on_request_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut desk, host) = desk(&[folder.path().join("presets")]);
        play(&desk, &BUNDLED[2]);
        desk.shared.bind(0, Some("room"));
        save(&mut desk, " My Wind ", false);
        settle(&mut desk, &host);
        assert_eq!(desk.presets.problem, None);
        let mine = id(&desk, "My Wind");
        assert_eq!(desk.presets.current, Some(mine));

        play(&desk, &BUNDLED[0]);
        desk.shared.bind(0, None);
        save(&mut desk, "My Wind", false);
        settle(&mut desk, &host);
        assert!(desk.presets.problem.take().unwrap().contains("already"));
        load(&mut desk, mine);
        settle(&mut desk, &host);
        assert_eq!(hash(&desk), BUNDLED[2].model().content_hash());
        assert_eq!(desk.shared.bound(0).as_deref(), Some("room"));

        let Some(Origin::File(path)) = desk.presets.origin(mine) else { panic!("it is a file") };
        let told = Preset { comment: "For the sea.".into(), ..file::read(&path).unwrap() };
        store::save(path.parent().unwrap(), &told, true).unwrap();
        play(&desk, &BUNDLED[1]);
        save(&mut desk, "My Wind", true);
        settle(&mut desk, &host);
        let preset = file::read(&path).unwrap();
        assert_eq!((preset.comment.as_str(), preset.sound.selection.model.name.as_str()), ("For the sea.", "Plucked"));

        let harp = id(&desk, "Harp");
        delete(&mut desk, harp);
        assert!(desk.presets.problem.take().is_some(), "it is no file");
        delete(&mut desk, mine);
        settle(&mut desk, &host);
        assert!(!path.exists() && desk.presets.origin(mine).is_none() && desk.presets.problem.is_none());
        save(&mut desk, " ", false);
        settle(&mut desk, &host);
        assert!(desk.presets.problem.take().is_some());
    }

    #[test]
    fn what_cannot_be_loaded_says_why_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut lost = Origin::Factory("harp".into()).read().unwrap();
        lost.name = "Lost".into();
        lost.sound.selection.model =
            Reference { hash: "0".repeat(64), name: "Old Bell".into(), ..Reference::default() };
        store::save(folder.path(), &lost, false).unwrap();
        let gone = Preset { name: "Gone".into(), ..lost.clone() };
        let path = store::save(folder.path(), &gone, false).unwrap();
        let (mut desk, host) = desk(&[folder.path().to_owned()]);
        std::fs::remove_file(&path).unwrap();
        // What is auditioned meanwhile ends with it.
        let model = desk.view().entries[1].id;
        obey(&mut desk, &host, Command::Audition(Some(model)));
        settle(&mut desk, &host);
        for (name, reason) in [("Lost", "is missing"), ("Gone", "Gone.ondes-preset: ")] {
            let preset = id(&desk, name);
            load(&mut desk, preset);
            settle(&mut desk, &host);
            let Status::Failed(said) = desk.view().status.clone() else { panic!("{:?}", desk.view().status) };
            assert!(said.contains(reason), "{said}");
            assert_eq!((hash(&desk), desk.presets.current), (BUNDLED[0].model().content_hash().to_owned(), None));
        }
        assert!(host.0.take().is_empty());
    }

    #[test]
    fn a_window_that_closes_leaves_nothing_under_way() {
        let (mut desk, _) = desk(&[]);
        let glass = id(&desk, "Glass Pluck");
        load(&mut desk, glass);
        let shared = desk.shared.clone();
        assert_eq!(shared.progress(), Status::Loading);
        drop(desk);
        assert_eq!(shared.progress(), Status::Ready);
    }

    #[test]
    fn a_project_whose_models_travel_with_it_stays_one() {
        let (mut desk, host) = desk(&[]);
        desk.shared.set_embedding(true);
        let glass = id(&desk, "Glass Pluck");
        load(&mut desk, glass);
        settle(&mut desk, &host);
        assert!(desk.shared.saved().model.embedded.is_some());
    }

    #[test]
    fn both_slots_are_saved_with_the_project() {
        let (mut desk, host) = desk(&[]);
        let project = |desk: &Desk| desk.shared.saved();
        assert_eq!(project(&desk).compare, None);
        obey(&mut desk, &host, Command::Recall(Slot::B));
        let wind = id(&desk, "Breathy Solo");
        load(&mut desk, wind);
        settle(&mut desk, &host);
        let saved = project(&desk);
        let slots = saved.compare.clone().unwrap();
        let other = slots.other.unwrap();
        assert!(slots.b_is_heard);
        assert_eq!((saved.model.name.as_str(), other.selection.model.name.as_str()), ("Wind", "Bowed"));
        assert_eq!(other.parameters["driver"], Value::Choice("auto".into()));

        // Another instance opens it.
        let (mut again, host) = self::desk(&[]);
        let mut text = serde_json::to_value(&saved).unwrap();
        text["compare"]["other"]["parameters"]["mix"] = 0.25.into();
        again.shared.restore(serde_json::from_value(text).unwrap());
        settle(&mut again, &host);
        assert_eq!((again.view().slot, hash(&again)), (Slot::B, BUNDLED[2].model().content_hash().to_owned()));
        obey(&mut again, &host, Command::Recall(Slot::A));
        settle(&mut again, &host);
        assert_eq!((again.view().slot, hash(&again)), (Slot::A, BUNDLED[0].model().content_hash().to_owned()));
        assert_eq!(host.0.take(), ["Mix 25.0 %"]);

        // A state from before there were slots in it.
        again.shared.restore(Saved { compare: None, ..saved });
        assert_eq!((again.shared.compare.slot(), again.shared.compare.saved()), (Slot::A, None));
    }

    #[test]
    fn a_model_that_both_slots_play_travels_once() {
        let (mut desk, host) = desk(&[]);
        desk.shared.set_embedding(true);
        obey(&mut desk, &host, Command::Recall(Slot::B));
        let saved = desk.shared.saved();
        assert!(saved.model.embedded.is_some());
        let other = saved.compare.unwrap().other.unwrap();
        assert_eq!((other.selection.model.hash, other.selection.model.embedded), (saved.model.hash, None));
        let missing = Compare::default();
        assert_eq!(missing.saved(), None);
    }
}
