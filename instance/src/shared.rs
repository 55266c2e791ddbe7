//! What all parts of one instance share: the model, what the macros turn, what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::chain::ImpulseFile;
use ondes_engine::model::{Control, Kind, Model};
use ondes_engine::pipeline::{ControlId, PipelineOptions, Source};
use ondes_engine::realtime::{Patch, Quality, Remote, Status};
use ondes_engine::wish::Wish;
use ondes_ui::{KnobId, Slot};

use crate::board::Board;
use crate::cabinet::{self, Courier};
use crate::controllers::Controllers;
use crate::controls::{self, Controls};
use crate::desk::compare::Compare;
use crate::desk::monitor::Monitor;
use crate::desk::setting::Setting;
use crate::library::{self, BUNDLED, Found, Missing, Reference};
use crate::macros::{MACROS, RELEASE, REST, Table, Travel};
use crate::parameter::Parameter;
use crate::preset::Product;
use crate::preset::values::{Value, Values};
use crate::rest::Rest;
use crate::retold::Retold;
use crate::state::{Look, Saved, Slots};

/// One instance as everybody but its audio thread sees it. Nothing here is for the audio thread, except where it says so.
pub struct Shared {
    /// Loads models, and knows how the one that is heard is doing.
    pub remote: Remote,
    /// What the audio thread shows to a window.
    pub monitor: Monitor,
    /// Which MIDI controllers turn which parameters.
    pub controllers: Controllers,
    /// Whether there is anything to play, and how the host is woken.
    pub rest: Rest,
    /// What this is an instance of.
    pub product: Product,
    /// The slots A and B.
    pub compare: Compare,
    /// Brings cabinets to the audio thread.
    pub cabinet: Courier,
    inner: Mutex<Inner>,
    /// A table on its way to the audio thread, and the one that it has done with.
    arrival: AtomicCell<Option<Box<Table>>>,
    retired: AtomicCell<Option<Box<Table>>>,
    /// The audio thread is to tell everything again.
    retell: Arc<AtomicBool>,
    /// Release of the model's notes where nobody turns it, ms.
    release_ms: AtomicCell<f32>,
    /// Whether the model plays what comes in, whatever the source.
    hears_input: AtomicBool,
    /// In which of its sizes a model with variants plays at most, 0 … 1, and how much of that.
    size: AtomicCell<f32>,
    quality: AtomicCell<Quality>,
    /// Another size is wanted, and the main thread shall see to it.
    is_due: AtomicBool,
    /// Where everything stands.
    board: OnceLock<Weak<dyn Board>>,
}

struct Inner {
    saved: Saved,
    source: Source,
    /// At how many times its rate an effect's network runs.
    oversampling: usize,
    model: Option<Arc<Model>>,
    /// The number by which the session knows it.
    number: u64,
    /// What can be turned on it.
    controls: Arc<Controls>,
    /// Names of those that bend latents and were turned since it was loaded, so that they may not stand at their defaults.
    bent: BTreeSet<String>,
    /// Why there is none.
    problem: Option<Missing>,
    /// Why there is no cabinet, where one was asked for.
    cabinet_problem: Option<Missing>,
    /// Counts the cabinets that were asked for.
    cabinets: u64,
    /// Counts what was asked for: what is found for an older question is not needed any more.
    asked: u64,
    /// Whether the last thing that was asked for is still being read.
    reading: bool,
    /// Why the file that was asked for last cannot be played; what played plays on.
    refused: Option<String>,
    /// What the user should know of the model that plays.
    notice: Option<String>,
    /// What there was to say of how the model is run, and the user knows.
    dismissed: Option<String>,
    /// Why what was chosen does not run the network of this model.
    unfit: Option<String>,
    /// What is played again after a model that is only auditioned, and what a project saves meanwhile.
    before: Option<Kept>,
}

/// A selection with its model, to come back to.
#[derive(Clone)]
pub struct Kept {
    saved: Saved,
    model: Option<Arc<Model>>,
    problem: Option<Missing>,
    notice: Option<String>,
    /// The cabinet's file, where it is there.
    cabinet: Option<Arc<ImpulseFile>>,
}

impl Shared {
    /// A new instance; it plays the first of the bundled models. What `wake` does is as for [`Monitor::new`].
    #[must_use]
    pub fn new(product: Product, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let model = BUNDLED[0].model();
        let saved = Saved { model: Reference::to(&model, None), ..Saved::default() };
        let shared = Self {
            remote: Remote::new(),
            monitor: Monitor::new(wake),
            controllers: Controllers::default(),
            rest: Rest::default(),
            product,
            compare: Compare::default(),
            cabinet: Courier::default(),
            inner: Mutex::new(Inner {
                saved,
                source: product.source(),
                oversampling: 1,
                controls: Controls::of(&model).into(),
                bent: BTreeSet::new(),
                model: Some(model),
                number: 0,
                problem: None,
                cabinet_problem: None,
                cabinets: 0,
                asked: 0,
                reading: false,
                refused: None,
                notice: None,
                dismissed: None,
                unfit: None,
                before: None,
            }),
            arrival: AtomicCell::new(None),
            retired: AtomicCell::new(None),
            retell: Arc::default(),
            release_ms: AtomicCell::default(),
            hears_input: AtomicBool::default(),
            size: AtomicCell::new(1.0),
            quality: AtomicCell::default(),
            is_due: AtomicBool::default(),
            board: OnceLock::new(),
        };
        shared.load(&mut shared.inner());
        shared.into()
    }

    /// Where everything stands is to be read there, from now on; there is one board for as long as this lives.
    pub fn listen_to(&self, board: &Arc<impl Board + 'static>) {
        let board = Arc::downgrade(board);
        let _ = self.board.set(board);
    }

    /// Begins to look for a model, and plays it when it is there: on a thread of its own, since files may be slow. Of several
    /// that are asked for in short order the last one counts. With `brief` [`Shared::come_back`] leads back to what played.
    /// The thread is the caller's, who must not let this code be unloaded before it ends.
    pub fn fetch(
        self: &Arc<Self>,
        brief: bool,
        find: impl FnOnce() -> Result<Found, String> + Send + 'static,
    ) -> JoinHandle<()> {
        let ticket = self.ask();
        let shared = self.clone();
        std::thread::spawn(move || {
            let found = find();
            let mut inner = shared.inner();
            if inner.asked != ticket {
                return;
            }
            inner.reading = false;
            match found {
                Ok(found) => {
                    let now = inner.keep(shared.cabinet.file());
                    let before = inner.before.take().or(Some(now)).filter(|_| brief);
                    shared.put(&mut inner, Ok(found));
                    inner.before = before;
                }
                Err(reason) => inner.refused = Some(reason),
            }
        })
    }

    /// Says that something is being read that shall be played. Gives its number, for [`Shared::is_awaited`].
    pub fn ask(&self) -> u64 {
        let mut inner = self.inner();
        inner.asked += 1;
        (inner.reading, inner.refused) = (true, None);
        inner.asked
    }

    /// Whether nothing else was asked for since.
    #[must_use]
    pub fn is_awaited(&self, ticket: u64) -> bool {
        self.inner().asked == ticket
    }

    /// Says that what is awaited will not be played, and why if somebody is to know; what played plays on, and what played
    /// briefly ends.
    pub fn refuse(&self, ticket: u64, reason: Option<String>) {
        let mut inner = self.inner();
        if inner.asked != ticket {
            return;
        }
        inner.reading = false;
        if let Some(before) = inner.before.take() {
            self.put_back(&mut inner, before);
        }
        inner.refused = reason;
    }

    /// Ends what was begun briefly: what played before plays again.
    pub fn come_back(&self) {
        let mut inner = self.inner();
        (inner.asked, inner.reading) = (inner.asked + 1, false);
        if let Some(before) = inner.before.take() {
            self.put_back(&mut inner, before);
        }
    }

    /// Whether a model is only played briefly.
    #[must_use]
    pub fn is_brief(&self) -> bool {
        self.inner().before.is_some()
    }

    /// The selection as it is, to come back to.
    #[must_use]
    pub fn keep(&self) -> Kept {
        self.inner().keep(self.cabinet.file())
    }

    /// Plays a selection that was kept; how the window looks stays.
    pub fn recall(&self, kept: Kept) {
        let mut inner = self.inner();
        (inner.asked, inner.reading, inner.before) = (inner.asked + 1, false, None);
        self.put_back(&mut inner, kept);
    }

    fn put_back(&self, inner: &mut Inner, kept: Kept) {
        let same = match (&inner.model, &kept.model) {
            (Some(now), Some(then)) => now.content_hash() == then.content_hash(),
            _ => false,
        };
        if same {
            let turned: Vec<String> = (0..MACROS).filter_map(|index| Some(bound(inner, index)?.name.clone())).collect();
            inner.bent.extend(turned);
            inner.bent.extend(inner.saved.latents.keys().cloned());
        }
        let Saved { look, pad, running, .. } = std::mem::take(&mut inner.saved);
        (inner.saved, inner.problem, inner.refused) = (Saved { look, pad, running, ..kept.saved }, kept.problem, None);
        inner.notice = kept.notice;
        self.adopt_cabinet(inner, kept.cabinet);
        if same {
            self.send(table(inner));
        } else {
            inner.set_model(kept.model);
            self.load(inner);
        }
    }

    fn adopt(&self, found: Result<Found, Missing>) {
        let mut inner = self.inner();
        let notice = found.as_ref().ok().and_then(|(model, _)| inner.saved.model.replaced(model));
        self.put(&mut inner, found);
        inner.notice = notice;
    }

    fn put(&self, inner: &mut Inner, found: Result<Found, Missing>) {
        inner.asked += 1;
        (inner.reading, inner.refused, inner.notice, inner.before) = (false, None, None, None);
        match found {
            Ok((model, path)) => {
                let embedded = inner.saved.model.embedded.take();
                let embedded = embedded.filter(|_| inner.saved.model.is_to(&model));
                // They are another model's, unless a bundled one was known by its name alone.
                if !inner.saved.model.hash.is_empty() && !inner.saved.model.is_to(&model) {
                    inner.saved.latents.clear();
                }
                inner.saved.model = Reference { embedded, ..Reference::to(&model, path) };
                inner.problem = None;
                inner.set_model(Some(model));
            }
            Err(problem) => {
                inner.problem = Some(problem);
                inner.set_model(None);
            }
        }
        self.load(inner);
    }

    /// Looks again for a model that was missing. Gives whether it is there.
    pub fn retry(&self) -> bool {
        let reference = {
            let inner = self.inner();
            if inner.problem.is_none() {
                return true;
            }
            inner.saved.model.clone()
        };
        let found = reference.find();
        let there = found.is_ok();
        if there {
            self.adopt(found);
        }
        there
    }

    /// Takes a model that was missing from that file, if it is the one that was meant.
    pub fn locate(&self, path: PathBuf) {
        let reference = {
            let inner = self.inner();
            if inner.problem.is_none() {
                return;
            }
            Reference { path: Some(path), ..inner.saved.model.clone() }
        };
        self.adopt(reference.find());
    }

    /// Plays from notes or from a sound. Only an instrument has the choice.
    pub fn set_source(&self, source: Source) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.source, source) != source {
            self.load(&mut inner);
        }
    }

    /// Runs an effect's network at 1, 2 or 4 times its rate.
    pub fn set_oversampling(&self, factor: usize) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.oversampling, factor) != factor {
            self.load(&mut inner);
        }
    }

    /// Runs the network by that, there, in that precision, and keeps it with the project. Where the model or the machine cannot,
    /// what can play it does, and a [notice](Self::notice) says why.
    pub fn set_running(&self, wish: Wish) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.saved.running, wish) != wish {
            self.load(&mut inner);
        }
    }

    /// What is to run the network.
    #[must_use]
    pub fn running(&self) -> Wish {
        self.inner().saved.running
    }

    /// Plays a model with variants in another size, 0 … 1; it takes over without a break.
    pub fn set_size(&self, size: f32) {
        let mut inner = self.inner();
        let before = self.size.swap(size);
        let header = inner.model.as_ref().map(|model| model.header());
        let variant = |size| header.and_then(|header| header.variant(size));
        if variant(before) != variant(size) {
            self.load(&mut inner);
        }
    }

    /// Plays more or less of a model with variants; that takes over without a break.
    pub fn set_quality(&self, quality: Quality) {
        self.quality.store(quality);
        self.remote.set_quality(quality);
    }

    /// For the audio thread, which cannot load: says in which size the model is to play, and how much of that. Where either is
    /// another one the main thread is to [`Shared::settle`].
    pub fn want(&self, size: f32, quality: Quality) {
        let is_other = size.to_bits() != self.size.load().to_bits() || quality != self.quality.load();
        self.is_due.store(is_other, Relaxed);
    }

    /// For the audio thread: whether the main thread is to be called.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.is_due.load(Relaxed)
    }

    /// For the main thread: plays in the size that is wanted, and as much of it.
    pub fn settle(&self) {
        if let Some(board) = self.board.get().and_then(Weak::upgrade) {
            self.set_size(board.size());
            self.set_quality(board.quality());
        }
    }

    /// Begins to read the file of a cabinet, and plays through it when it is there: on a thread of its own, as with
    /// [`Shared::fetch`]. What cannot be read is [missing](Shared::missing_cabinet), and the one before plays on.
    pub fn fetch_cabinet(self: &Arc<Self>, path: PathBuf) -> JoinHandle<()> {
        let ticket = {
            let mut inner = self.inner();
            inner.cabinets += 1;
            inner.cabinets
        };
        let shared = self.clone();
        std::thread::spawn(move || {
            let found = ImpulseFile::read(&path);
            let mut inner = shared.inner();
            if inner.cabinets != ticket {
                return;
            }
            match found {
                Ok(file) => {
                    let (reference, file) = (cabinet::reference(&file, Some(path)), Arc::new(file));
                    inner.choose_cabinet(Some((reference, file.clone())));
                    inner.cabinet_problem = None;
                    shared.cabinet.send(Some(file));
                }
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    inner.cabinet_problem = Some(Missing { name, looked: vec![error.to_string()] });
                }
            }
            shared.rest.wake();
        })
    }

    /// Looks again for a cabinet that was missing.
    pub fn retry_cabinet(&self) {
        let mut inner = self.inner();
        if inner.cabinet_problem.is_some() {
            self.adopt_cabinet(&mut inner, None);
        }
    }

    /// Plays through no cabinet.
    pub fn remove_cabinet(&self) {
        let mut inner = self.inner();
        inner.cabinets += 1;
        inner.choose_cabinet(None);
        inner.cabinet_problem = None;
        self.cabinet.send(None);
    }

    /// What a project knows of the cabinet.
    #[must_use]
    pub fn cabinet_reference(&self) -> Option<Reference> {
        self.inner().saved.cabinet.clone()
    }

    /// The file of a cabinet that was asked for and is not there, or is no cabinet.
    #[must_use]
    pub fn missing_cabinet(&self) -> Option<Missing> {
        self.inner().cabinet_problem.clone()
    }

    /// Goes to the cabinet that the selection says. `known` need not be looked for again.
    fn adopt_cabinet(&self, inner: &mut Inner, known: Option<Arc<ImpulseFile>>) {
        inner.cabinets += 1;
        let known = known.or_else(|| self.cabinet.file());
        let found = inner.saved.cabinet.as_ref().map(|reference| match known {
            Some(file) if file.hash == reference.hash => Ok((file, reference.path.clone())),
            _ => cabinet::find(reference),
        });
        let (file, problem) = match found.transpose() {
            Ok(found) => {
                let file = found.map(|(file, path)| {
                    inner.saved.cabinet = inner.saved.cabinet.take().map(|saved| Reference { path, ..saved });
                    file
                });
                (file, None)
            }
            Err(problem) => (None, Some(problem)),
        };
        inner.cabinet_problem = problem;
        self.cabinet.send(file);
    }

    /// Whether the model is to travel with the project, where it is not too large.
    pub fn set_embedding(&self, embed: bool) {
        self.inner().saved.embed = embed;
    }

    /// Whether the model travels with the project.
    #[must_use]
    pub fn embedding(&self) -> bool {
        self.inner().saved.embed
    }

    /// Ids of the parameters, or names of the latents' controls, that the window's pad turns, if somebody chose them.
    #[must_use]
    pub fn pad(&self) -> Option<[String; 2]> {
        self.inner().saved.pad.clone()
    }

    /// Lets the window's pad turn those, across and up.
    pub fn set_pad(&self, ids: [String; 2]) {
        self.inner().saved.pad = Some(ids);
    }

    /// Hands the model to the engine's loader, turned as latents' knobs and macros stand.
    fn load(&self, inner: &mut Inner) {
        inner.bent.clear();
        inner.unfit = None;
        self.hears_input.store(inner.hears_input(), Relaxed);
        let Some(model) = inner.model.clone() else {
            self.send(Table::default());
            return self.remote.unload();
        };
        self.release_ms.store(release_ms(&model));
        let mut table = table(inner);
        let mut controls = table.latents.clone();
        if let Some(board) = self.board.get().and_then(Weak::upgrade) {
            inner.oversampling = board.oversampling();
            self.size.store(board.size());
            self.set_quality(board.quality());
            let knobs = board.knobs();
            controls.extend(knobs.playing.controls());
            let turned = table.macros.iter().zip(knobs.macros).filter(|(_, position)| *position != REST);
            controls.extend(
                turned.filter_map(|(travel, position)| Some((travel.as_ref()?.id, travel.as_ref()?.value(position)))),
            );
        }
        let (source, oversampling, size) = (inner.source, inner.oversampling, self.size.load());
        let running = inner.saved.running.of(&model);
        inner.unfit = running.err().map(|unfit| unfit.to_string());
        let wish = running.unwrap_or_default();
        let options = PipelineOptions { source, oversampling, size, wish, lenient: true, ..PipelineOptions::default() };
        let due = self.retell.clone();
        let make = move || match Patch::new(model, options) {
            Ok(patch) => Ok(Arc::new(Retold { patch: Arc::new(patch), due }) as Arc<_>),
            Err(error) => Err(error.to_string()),
        };
        inner.number = self.remote.load(Box::new(make), &controls);
        table.model = inner.number;
        self.send(table);
        self.rest.wake();
    }

    /// Waits until the model is ready, or that long.
    pub fn wait(&self, patience: Duration) {
        let since = Instant::now();
        while self.remote.status() == Status::Loading && since.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What became of what was asked for, files that were asked for included.
    #[must_use]
    pub fn progress(&self) -> Status {
        let inner = self.inner();
        match &inner.refused {
            Some(reason) => Status::Failed(reason.clone()),
            None if inner.reading => Status::Loading,
            None => self.remote.status(),
        }
    }

    /// The model that is not where it was, if that is so.
    #[must_use]
    pub fn missing(&self) -> Option<Missing> {
        self.inner().problem.clone()
    }

    /// What the user should know of the model that plays, until it is dismissed.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let inner = self.inner();
        let playing = inner.running_notice(&self.remote);
        inner.notice.clone().or(playing.filter(|notice| inner.dismissed.as_ref() != Some(notice)))
    }

    /// The user knows.
    pub fn dismiss(&self) {
        let mut inner = self.inner();
        if inner.notice.take().is_none() {
            inner.dismissed = inner.running_notice(&self.remote);
        }
    }

    /// Hands the model that plays to the engine once more.
    pub fn reload(&self) {
        let mut inner = self.inner();
        inner.refused = None;
        self.load(&mut inner);
    }

    /// How the window looks.
    #[must_use]
    pub fn look(&self) -> Look {
        self.inner().saved.look
    }

    /// Lets the window look otherwise.
    pub fn set_look(&self, look: Look) {
        self.inner().saved.look = look;
    }

    /// The model that plays; none when it is missing.
    #[must_use]
    pub fn model(&self) -> Option<Arc<Model>> {
        self.inner().model.clone()
    }

    /// For the audio thread: time in which notes of this model fall by 60 dB when their keys are up, ms, where nobody turns it.
    #[must_use]
    pub fn release_ms(&self) -> f32 {
        self.release_ms.load()
    }

    /// Whether the model plays what comes in, whatever is to play it: an effect or a codec does. Wait-free.
    #[must_use]
    pub fn hears_input(&self) -> bool {
        self.hears_input.load(Relaxed)
    }

    /// What can be turned on the model; nothing when it is missing.
    #[must_use]
    pub fn controls(&self) -> Arc<Controls> {
        self.inner().controls.clone()
    }

    /// Turns the knob of that number, one that bends a latent, to a position, 0 … 1. What it says is saved at once, and heard
    /// with the next block. A macro that turns the same control rests, in its middle, where this knob stands; moved from there
    /// it counts more than this.
    pub fn bend(&self, knob: KnobId, position: f32) {
        let mut inner = self.inner();
        let controls = inner.controls.clone();
        let Some(control) = controls.bend(knob) else { return };
        let value = controls::value(control, position);
        if value == control.default {
            inner.saved.latents.remove(&control.name);
        } else {
            inner.saved.latents.insert(control.name.clone(), Value::Number(value));
        }
        inner.bent.insert(control.name.clone());
        self.send(table(&inner));
    }

    /// Fills `positions` with where the knobs stand that bend latents, 0 … 1, in their order.
    pub fn bends(&self, positions: &mut Vec<f32>) {
        let inner = self.inner();
        let position = |(_, control)| controls::position(control, stands(&inner, control));
        positions.clear();
        positions.extend(inner.controls.bends().map(position));
    }

    /// Where those stand that are not at their defaults, as it is saved.
    #[must_use]
    pub fn bent(&self) -> Values {
        self.inner().saved.latents.clone()
    }

    /// The control that a macro turns, by its name.
    #[must_use]
    pub fn bound(&self, index: usize) -> Option<String> {
        bound(&self.inner(), index).map(|control| control.name.clone())
    }

    /// Lets a macro turn another control of this name, or none.
    pub fn bind(&self, index: usize, name: Option<&str>) {
        let mut inner = self.inner();
        let mut names: Vec<Option<String>> =
            (0..MACROS).map(|index| bound(&inner, index).map(|control| control.name.clone())).collect();
        if let Some(place) = names.get_mut(index) {
            // What it turned before goes back to where its own knob stands, if it has one.
            let before = std::mem::replace(place, name.map(str::to_owned));
            inner.bent.extend(before);
            inner.saved.macros = Some(names);
            self.send(table(&inner));
        }
    }

    /// What the knob of that number says at a position, 0 … 1, with the unit; a macro says what it turns, such as
    /// `attack 90.0 ms`. None where there is no such knob.
    #[must_use]
    pub fn text(&self, knob: KnobId, position: f32) -> Option<String> {
        let inner = self.inner();
        if let Some(control) = inner.controls.bend(knob) {
            return Some(controls::say(control, controls::value(control, position)));
        }
        let parameter = Parameter::of(knob)?;
        let Some(control) = turned(&inner, knob) else {
            return Some(format!("{}{}", parameter.say(parameter.value(position)), parameter.unit));
        };
        Some(format!("{} {}", control.name, controls::say(control, travel(&inner, control).value(position))))
    }

    /// The position of that knob that such a text means, 0 … 1; units and what a macro turns may be left out.
    #[must_use]
    pub fn parse(&self, knob: KnobId, text: &str) -> Option<f32> {
        let inner = self.inner();
        if let Some(control) = inner.controls.bend(knob) {
            return controls::read(control, text).map(|value| controls::position(control, value));
        }
        let parameter = Parameter::of(knob)?;
        let Some(control) = turned(&inner, knob) else {
            return parameter.read(text).map(|value| parameter.position(value));
        };
        Some(travel(&inner, control).position(controls::read(control, text)?))
    }

    /// What a project saves of an instance besides its parameters.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let (kept, look, pad, running) = {
            let inner = self.inner();
            // A model that is only auditioned is none of the project's.
            let before = inner.before.clone();
            let Saved { look, pad, running, .. } = &inner.saved;
            let kept = before.unwrap_or_else(|| inner.keep(self.cabinet.file()));
            (kept, *look, pad.clone(), *running)
        };
        let (compare, controllers) = (self.compare.saved(), self.controllers.all());
        let mut saved = Saved { look, pad, running, compare, controllers, ..kept.saved() };
        if let Some(Slots { other: Some(other), .. }) = &mut saved.compare
            && other.selection.model.hash == saved.model.hash
        {
            // Once is enough.
            other.selection.model.embedded = None;
        }
        saved
    }

    /// Goes to what a project has saved; the model is looked for at once, which may take its time.
    pub fn restore(&self, mut saved: Saved) {
        self.controllers.set_all(&std::mem::take(&mut saved.controllers));
        let slots = saved.compare.take().unwrap_or_default();
        let found = saved.model.find();
        let other = slots.other.map(|sound| {
            let kept = Kept::of(*sound.selection, found.as_ref().ok());
            Setting { values: sound.parameters, kept }
        });
        self.compare.restore(if slots.b_is_heard { Slot::B } else { Slot::A }, other);
        {
            let mut inner = self.inner();
            inner.saved = saved;
            self.adopt_cabinet(&mut inner, None);
        }
        self.adopt(found);
    }

    fn send(&self, table: Table) {
        drop(self.retired.take());
        drop(self.arrival.swap(Some(table.into())));
    }

    /// For the audio thread: puts the newest table in the place of its own, if there is one. Gives whether everything is to be
    /// told to the model again.
    pub fn receive(&self, table: &mut Box<Table>) -> bool {
        // Reading first: most blocks need not write.
        let retell = self.retell.load(Relaxed) && self.retell.swap(false, Relaxed);
        let Some(new) = self.arrival.take() else { return retell };
        // Nothing is dropped here: in the rare case that the last one was not fetched yet, its few bytes stay.
        if let Some(unfetched) = self.retired.swap(Some(std::mem::replace(table, new))) {
            std::mem::forget(unfetched);
        }
        true
    }

    /// The table as it is, for an audio thread that begins.
    #[must_use]
    pub fn table(&self) -> Table {
        let inner = self.inner();
        drop(self.arrival.take());
        self.retell.store(false, Relaxed);
        table(&inner)
    }

    /// Nothing that is kept here is half done when a thread panics.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// A selection with its model.
    ///
    /// # Errors
    /// When the model is missing.
    pub fn find(saved: Saved) -> Result<Self, Missing> {
        let kept = Self::of(saved, None);
        kept.problem.clone().map_or(Ok(kept), Err)
    }

    /// A selection with its model, if that is there; it need not be looked for where it is the one that was found already.
    fn of(saved: Saved, known: Option<&Found>) -> Self {
        // These are the project's, not a sound's.
        let mut saved = Saved {
            look: Look::default(),
            pad: None,
            running: Wish::default(),
            compare: None,
            controllers: BTreeMap::new(),
            ..saved
        };
        let known = known.filter(|(model, _)| saved.model.is_to(model));
        match known.map_or_else(|| saved.model.find(), |known| Ok(known.clone())) {
            Ok((model, path)) => {
                let notice = saved.model.replaced(&model);
                let embedded = saved.model.embedded.take().filter(|_| notice.is_none());
                if notice.is_some() {
                    saved.latents.clear();
                }
                saved.model = Reference { embedded, ..Reference::to(&model, path) };
                Self { saved, model: Some(model), problem: None, notice, cabinet: None }
            }
            Err(problem) => Self { saved, model: None, problem: Some(problem), notice: None, cabinet: None },
        }
    }

    /// The same for a project whose models travel with it, if they did with the other one.
    #[must_use]
    pub fn in_place_of(mut self, other: &Self) -> Self {
        self.saved.embed |= other.saved.embed;
        self
    }

    /// What is written of it: with the model in it where that is wanted, without how a window looks.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let (version, running) = (crate::state::VERSION, Wish::default());
        let mut saved = Saved { version, look: Look::default(), pad: None, running, ..self.saved.clone() };
        match (&self.model, saved.embed) {
            (Some(model), true) => saved.model.embedded = library::pack(model),
            // What is missing here may be all that is left of it.
            (None, true) => {}
            (_, false) => saved.model.embedded = None,
        }
        if let Some(reference) = &mut saved.cabinet {
            match (self.cabinet.as_ref().filter(|file| file.hash == reference.hash), saved.embed) {
                (Some(file), true) => reference.embedded = cabinet::pack(file),
                (None, true) => {}
                (_, false) => reference.embedded = None,
            }
        }
        saved
    }
}

impl Inner {
    fn set_model(&mut self, model: Option<Arc<Model>>) {
        self.controls = model.as_deref().map(Controls::of).unwrap_or_default().into();
        self.model = model;
    }

    /// Plays through another cabinet, or none; what comes back after an audition does, too.
    fn choose_cabinet(&mut self, chosen: Option<(Reference, Arc<ImpulseFile>)>) {
        let (reference, file) = chosen.unzip();
        if let Some(before) = &mut self.before {
            (before.saved.cabinet, before.cabinet) = (reference.clone(), file);
        }
        self.saved.cabinet = reference;
    }

    fn hears_input(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.header().kind != Kind::Instrument)
    }

    /// What there is to say of how the model is run: that it cannot be as was chosen, or that it is another way by now.
    fn running_notice(&self, remote: &Remote) -> Option<String> {
        self.unfit.clone().or_else(|| remote.notice())
    }

    fn keep(&self, cabinet: Option<Arc<ImpulseFile>>) -> Kept {
        let Self { saved, model, problem, notice, .. } = self;
        Kept { saved: saved.clone(), model: model.clone(), problem: problem.clone(), notice: notice.clone(), cabinet }
    }
}

/// The control that a macro turns: by default the one in its place in the model's list.
fn bound(inner: &Inner, index: usize) -> Option<&Control> {
    let controls = inner.controls.all();
    match &inner.saved.macros {
        Some(names) => {
            let name = names.get(index)?.as_ref()?;
            controls.iter().find(|control| control.name == *name)
        }
        None => controls.get(index),
    }
}

/// What the control begins with counts; a model without one has the release that it was made with.
fn release_ms(model: &Model) -> f32 {
    let header = model.header();
    let control = header.controls.iter().find(|control| ControlId::of(&control.name) == RELEASE);
    control.map_or_else(|| header.performance.unwrap_or_default().release_ms, |control| control.default)
}

/// The control that the knob of that number turns, where it is a macro.
fn turned(inner: &Inner, knob: KnobId) -> Option<&Control> {
    let index = knob.0 as usize;
    (index < MACROS).then(|| bound(inner, index)).flatten()
}

/// Where a control's own knob stands, in the control's unit; those without one stand at their defaults.
fn stands(inner: &Inner, control: &Control) -> f32 {
    match inner.saved.latents.get(&control.name) {
        Some(Value::Number(value)) if inner.controls.knob(&control.name).is_some() => control.clamp(*value),
        _ => control.default,
    }
}

/// The way of a macro through a control's range.
fn travel(inner: &Inner, control: &Control) -> Travel {
    Travel::through(control).resting_at(stands(inner, control))
}

fn table(inner: &Inner) -> Table {
    let macros = std::array::from_fn(|index| bound(inner, index).map(|control| travel(inner, control)));
    let names = inner.saved.latents.keys().chain(&inner.bent);
    let turned: BTreeSet<u32> = names.filter_map(|name| Some(inner.controls.knob(name)?.0)).collect();
    let turned = turned.into_iter().filter_map(|knob| inner.controls.bend(KnobId(knob)));
    let latents = turned.map(|control| (ControlId::of(&control.name), stands(inner, control))).collect();
    let levels = inner.model.as_ref().and_then(|model| model.header().card.levels).unwrap_or_default();
    Table { macros, latents, levels, model: inner.number }
}
