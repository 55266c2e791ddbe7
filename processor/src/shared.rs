//! What all parts of one instance share: the model, what the macros turn, what is wrong.

mod cabinet;
mod kept;
mod selection;
mod turning;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlId, PipelineOptions, Source};
use ondes_engine::realtime::{Patch, Quality, Remote, Status};
use ondes_engine::wish::Wish;

use crate::board::Board;
use crate::cabinet::Courier;
use crate::controllers::Controllers;
use crate::controls::Controls;
use crate::desk::compare::Compare;
use crate::desk::monitor::Monitor;
use crate::library::{BUNDLED, Missing, Reference};
use crate::macros::{RELEASE, REST, Table};
use crate::preset::Product;
use crate::rest::Rest;
use crate::retold::Retold;
use crate::state::{Look, Saved};

pub use kept::Kept;

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
        let mut table = inner.table();
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
        inner.table()
    }

    /// Nothing that is kept here is half done when a thread panics.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn set_model(&mut self, model: Option<Arc<Model>>) {
        self.controls = model.as_deref().map(Controls::of).unwrap_or_default().into();
        self.model = model;
    }

    fn hears_input(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.header().kind != Kind::Instrument)
    }

    /// What there is to say of how the model is run: that it cannot be as was chosen, or that it is another way by now.
    fn running_notice(&self, remote: &Remote) -> Option<String> {
        self.unfit.clone().or_else(|| remote.notice())
    }
}

/// What the control begins with counts; a model without one has the release that it was made with.
fn release_ms(model: &Model) -> f32 {
    let header = model.header();
    let control = header.controls.iter().find(|control| ControlId::of(&control.name) == RELEASE);
    control.map_or_else(|| header.performance.unwrap_or_default().release_ms, |control| control.default)
}
