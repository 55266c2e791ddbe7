//! The other half of a session: what a window, a command or a host's main thread holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_utils::atomic::AtomicCell;
use ringbuf::traits::{Consumer, Observer, Split};
use ringbuf::{HeapCons, HeapRb};

use super::driver::Driver;
use super::health::{Driven, Health, Meter};
use super::history::History;
use super::lane::{Failure, Lane, guard_told};
use super::loader::{self, LaneFacts, Order};
use super::maker::{Maker, Silence};
use super::quality::{Governor, Quality, Sight};
use super::session::{HISTORY_S, Link, RETIRED, Session, Setup};
use crate::pipeline::{ControlId, Followed};

/// Rates that a host may have, Hz.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=384_000;
/// The longest block that is played in one piece.
const LONGEST_BLOCK: usize = 8192;

/// What a session is up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Status {
    /// No model was asked for.
    #[default]
    Empty,
    /// A model is being made ready; the one before it plays on.
    Loading,
    /// The model that was asked for plays, or will with the next block.
    Ready,
    /// The model that was asked for cannot be played, for that reason; the one before it plays on.
    Failed(String),
}

/// Why a host's setup cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The rate.
    #[error("the host's rate is {0} Hz; rates go from 8000 to 384000 Hz")]
    Rate(u32),
    /// The block.
    #[error("the host's longest block is {0} samples; it must be at least 1")]
    Block(usize),
}

/// The most sizes of one model that are known apart.
const MOST_SIZES: usize = 16;
/// A model that has not caught up with the present after so many seconds of sound never will.
const CATCH_UP_S: u64 = 3;

/// A session from outside the audio thread: loads models, chooses drivers, and sees how it is doing. Clones are the same one.
#[derive(Clone, Default)]
pub struct Remote(Arc<Control>);

#[derive(Default)]
struct Control {
    state: Mutex<State>,
    /// Counts what was asked for: what is older is not needed any more.
    asked: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The model in all of its sizes, the whole first; empty where there is none.
    makers: Vec<Arc<dyn Maker>>,
    controls: Vec<(ControlId, f32)>,
    tag: u64,
    driver: Driver,
    quality: Quality,
    governor: Governor,
    /// Somebody looks at the load.
    governed: bool,
    status: Status,
    patient: bool,
    host: Option<Host>,
}

/// The host as it plays now.
struct Host {
    link: Arc<Link>,
    retired: HeapCons<Box<Lane>>,
    /// By the number of the lane: those that may still be heard.
    lanes: HashMap<u32, LaneFacts>,
    /// The lane that was made last, and the number of the sample at which it was ready.
    newest: (u32, u64),
    /// What that one was made for.
    driver: Driver,
}

/// What is to be loaded: made on the loader's thread, where it may take its time.
pub type Load = Box<dyn FnOnce() -> Result<Arc<dyn Maker>, String> + Send>;

/// What is to take over.
enum Wish {
    /// Another model in all of its sizes, with the knobs that are to be turned on it.
    Model(Vec<Arc<dyn Maker>>, Vec<(ControlId, f32)>),
    /// The present one as it is wanted now.
    Anew,
    /// The present one in the size that the load allows, where that driver brings it.
    Size(Driver),
}

/// A lane, or why the model cannot be played.
type Made = Result<(Box<Lane>, LaneFacts), String>;

impl Remote {
    /// A session without a model and without a host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to play for a host, with the model that was loaded last. The session that was given before, if any, hears of
    /// nothing any more. Takes as long as it takes to make the model ready.
    ///
    /// # Errors
    /// When there is no such rate or block. A model that cannot be played is seen in [`Remote::status`].
    pub fn activate(&self, setup: Setup) -> Result<Session, SetupError> {
        if !RATES.contains(&setup.sample_rate) {
            return Err(SetupError::Rate(setup.sample_rate));
        }
        if setup.max_block == 0 {
            return Err(SetupError::Block(0));
        }
        let setup = Setup { max_block: setup.max_block.min(LONGEST_BLOCK), ..setup };
        let samples = (HISTORY_S * f64::from(setup.sample_rate)) as usize + LONGEST_BLOCK;
        let link = Arc::new(Link {
            setup,
            arrival: AtomicCell::new(None),
            ask: AtomicCell::new(None),
            answer: AtomicCell::new(None),
            history: Arc::new(History::new(samples)),
            now: AtomicU64::new(0),
            heard: AtomicU32::new(0),
            latency: AtomicUsize::new(0),
            patient: AtomicBool::new(false),
            cues: AtomicU64::new(0),
            cues_lost: AtomicU64::new(0),
            strain: AtomicU32::new(0),
            failed: AtomicU32::new(0),
        });
        let (retiring, retired) = HeapRb::new(RETIRED).split();
        let (mut state, made) = self.0.first(&link);
        link.patient.store(state.patient, Ordering::Relaxed);
        let mut host =
            Host { link: link.clone(), retired, lanes: HashMap::new(), newest: (0, 0), driver: state.driver };
        let mut first = None;
        let status = match made {
            Some(Ok((lane, facts))) => {
                host.newest = (lane.number, 0);
                host.lanes.insert(lane.number, facts);
                first = Some(lane);
                Some(Status::Ready)
            }
            Some(Err(reason)) => Some(Status::Failed(reason)),
            None => None,
        };
        // What is being loaded comes by and by.
        if let Some(status) = status.filter(|_| state.status != Status::Loading) {
            state.status = status;
        }
        state.host = Some(host);
        drop(state);
        self.0.govern();
        Ok(Session::new(link, retiring, first).expect("the link is new"))
    }

    /// Loads a model that takes over without a break as soon as it is ready. Of several that are asked for in short order
    /// the last one counts. `controls` are turned before it is heard. Gives a number that [`Session::heard`] knows it by.
    pub fn load(&self, load: Load, controls: &[(ControlId, f32)]) -> u64 {
        let asked = self.0.ask(&mut self.0.state(), Status::Loading);
        let (control, controls) = (self.0.clone(), controls.to_vec());
        let mut load = Some(load);
        loader::ask(Box::new(move || {
            // Left alone when something else was asked for meanwhile.
            let Some(load) = load.take().filter(|_| control.wants(asked)) else { return control.take_back() };
            control.try_to(asked, || match load() {
                Ok(maker) => control.change(asked, Wish::Model(sizes(maker), controls.clone())),
                Err(reason) => control.fail(asked, reason),
            });
            control.govern();
            control.take_back()
        }));
        asked
    }

    /// Plays nothing any more.
    pub fn unload(&self) {
        self.load(Box::new(|| Ok(Arc::new(Silence))), &[]);
    }

    /// Chooses how the model is driven; the other way takes over without a break.
    pub fn set_driver(&self, driver: Driver) {
        let mut state = self.0.state();
        if state.driver == driver {
            return;
        }
        state.driver = driver;
        self.make_anew(state);
    }

    /// Chooses how much of a model plays that holds smaller sizes of itself; another size takes over without a break.
    pub fn set_quality(&self, quality: Quality) {
        let mut state = self.0.state();
        if state.quality == quality {
            return;
        }
        let before = state.place();
        (state.quality, state.governor) = (quality, Governor::default());
        if state.place() != before {
            self.make_anew(state);
        } else {
            drop(state);
            self.0.govern();
        }
    }

    /// The host is in no hurry, as in a bounce: from now on the session waits for the worker, and nothing is ever late.
    pub fn set_patient(&self, patient: bool) {
        let mut state = self.0.state();
        let before = state.place();
        state.patient = patient;
        if let Some(host) = &state.host {
            host.link.patient.store(patient, Ordering::Relaxed);
        }
        if state.place() != before {
            self.make_anew(state);
        } else {
            drop(state);
            self.0.govern();
        }
    }

    /// Makes the model once more, as it is wanted now.
    fn make_anew(&self, mut state: MutexGuard<'_, State>) {
        // What is being loaded will be made as it is wanted.
        if state.makers.is_empty() || state.status == Status::Loading {
            return;
        }
        // Under the same lock: a load that another thread asks for now comes before or after.
        let asked = self.0.ask(&mut state, Status::Loading);
        drop(state);
        let control = self.0.clone();
        let mut fresh = true;
        loader::ask(Box::new(move || {
            if std::mem::take(&mut fresh) && control.wants(asked) {
                control.try_to(asked, || control.change(asked, Wish::Anew));
                control.govern();
            }
            control.take_back()
        }));
    }

    /// What became of what was asked for.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.0.state();
        match (&state.status, &state.host) {
            (Status::Ready, Some(host)) if host.has_failed() => Status::Failed(host.why_failed()),
            (Status::Ready, Some(host)) if host.waits_in_vain() => {
                Status::Failed("the model is too slow here: it does not catch up with the present".into())
            }
            (status, _) => status.clone(),
        }
    }

    /// What the user should know of the model that was loaded last, in one line: that its device failed and another plays it,
    /// for one.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let state = self.0.state();
        let host = state.host.as_ref()?;
        host.lanes.get(&host.newest.0)?.meter.notice()
    }

    /// How the model that is heard is doing; none while there is none.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        let state = self.0.state();
        let Host { link, lanes, .. } = state.host.as_ref()?;
        let facts = lanes.get(&link.heard.load(Ordering::Relaxed))?;
        let meter = &facts.meter;
        Some(Health {
            driven: if meter.is_aside() { Driven::Aside } else { facts.driven },
            latency_samples: facts.latency_samples,
            latency_ms: 1e3 * facts.latency_samples as f64 / f64::from(link.setup.sample_rate),
            load: meter.load(),
            misses: meter.misses(),
            faults: meter.faults(),
            cues_lost: link.cues_lost.load(Ordering::Relaxed),
            queued_samples: meter.queued(),
            steps: meter.steps.percentiles(),
            latency_measured: facts.latency_measured,
        })
    }

    /// The size of the model that is heard, by the name of the variant; none where it is the whole.
    #[must_use]
    pub fn variant(&self) -> Option<String> {
        let state = self.0.state();
        let host = state.host.as_ref()?;
        host.lanes.get(&host.link.heard.load(Ordering::Relaxed))?.variant.clone()
    }

    /// What the model that is heard follows in the input now, as late as its driver plays it; none where it is played by notes,
    /// or has heard nothing yet.
    #[must_use]
    pub fn followed(&self) -> Option<Followed> {
        self.0.state().host.as_ref()?.heard()?.followed()
    }

    /// Fills `values` with the latents that the model that is heard decoded last, scaled, offset and held as its knobs stand; with
    /// none where it is no codec. Each is the latest, and they need not all be of one instant.
    pub fn latents(&self, values: &mut Vec<f32>) {
        values.clear();
        if let Some(meter) = self.0.state().host.as_ref().and_then(Host::heard) {
            values.extend(meter.latents());
        }
    }
}

/// A model in all of its sizes from that one down.
fn sizes(maker: Arc<dyn Maker>) -> Vec<Arc<dyn Maker>> {
    std::iter::successors(Some(maker), |maker| maker.smaller()).take(MOST_SIZES).collect()
}

impl State {
    /// The place of the size that is wanted, among the maker's.
    fn place(&self) -> usize {
        let governed = if self.has_time() { 0 } else { self.governor.place() };
        self.quality.place(self.makers.len()).unwrap_or(governed)
    }

    /// The same for a model that comes, which has so many.
    fn first_place(&self, sizes: usize) -> usize {
        self.quality.place(sizes).unwrap_or(0)
    }

    /// Whether the load decides which size plays.
    fn is_to_be_governed(&self) -> bool {
        let played = self.host.as_ref().is_some_and(|host| host.retired.write_is_held());
        self.quality == Quality::Auto && self.makers.len() > 1 && !self.has_time() && played
    }

    /// Whether nothing is late, however long it takes.
    fn has_time(&self) -> bool {
        self.patient || self.driver == Driver::Offline
    }
}

impl Host {
    /// What the model that is heard counts; none while there is none.
    fn heard(&self) -> Option<&Meter> {
        self.lanes.get(&self.link.heard.load(Ordering::Relaxed)).map(|facts| &*facts.meter)
    }

    /// Whether the newest model's code broke down. Those before it do not matter any more, even where they are still heard.
    fn has_failed(&self) -> bool {
        let (number, _) = self.newest;
        number > 0 && self.link.failed.load(Ordering::Relaxed) == number
    }

    /// Why it did.
    fn why_failed(&self) -> String {
        let reason = self.lanes.get(&self.newest.0).and_then(|facts| facts.meter.reason().map(str::to_owned));
        reason.unwrap_or_else(|| Failure::Panicked.to_string())
    }

    /// Whether the newest model has had time enough to be heard, and is not.
    fn waits_in_vain(&self) -> bool {
        let (number, since) = self.newest;
        let waited = self.link.now.load(Ordering::Acquire).saturating_sub(since);
        number > self.link.heard.load(Ordering::Relaxed) && waited > CATCH_UP_S * u64::from(self.link.setup.sample_rate)
    }
}

impl Control {
    /// Nothing that is kept here is half done when a thread panics.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with the first lane for a host, of the model that was loaded last, if there is one. Nobody has to wait for the
    /// state while the lane is made; where something else is wanted by then it is made again.
    fn first(&self, link: &Link) -> (MutexGuard<'_, State>, Option<Made>) {
        loop {
            let state = self.state();
            let (driver, tag, controls) = (state.driver, state.tag, state.controls.clone());
            let place = state.place();
            let Some(maker) = state.makers.get(place).cloned() else { return (state, None) };
            drop(state);
            let order = Order { maker: &*maker, driver, tag, controls: &controls };
            let made = loader::make_first(&order, link);
            let state = self.state();
            if (state.driver, state.tag, state.place()) == (driver, tag, place) {
                return (state, Some(made));
            }
        }
    }

    fn ask(&self, state: &mut State, status: Status) -> u64 {
        state.status = status;
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn wants(&self, asked: u64) -> bool {
        self.asked.load(Ordering::Relaxed) == asked
    }

    fn fail(&self, asked: u64, reason: String) {
        if !self.wants(asked) {
            return;
        }
        // The model that plays on may have been wanted in another way meanwhile.
        let state = self.state();
        let otherwise = state.host.as_ref().is_some_and(|host| host.driver != state.driver);
        drop(state);
        if otherwise {
            self.change(asked, Wish::Anew);
        }
        let mut state = self.state();
        if self.wants(asked) {
            state.status = Status::Failed(reason);
        }
    }

    /// Does what was asked for; where a model's code breaks down over it, says so.
    fn try_to(&self, asked: u64, work: impl FnOnce()) {
        if let Err(reason) = guard_told(work) {
            self.fail(asked, format!("while it was made ready: {reason}"));
        }
    }

    /// Makes another model, or the present one in another way, take over.
    fn change(&self, asked: u64, wish: Wish) {
        let (mut held, mut another) = (None, false);
        let (makers, controls, tag) = match wish {
            Wish::Model(makers, controls) => {
                another = true;
                (makers, controls, asked)
            }
            Wish::Anew | Wish::Size(_) => {
                let state = self.state();
                if let Wish::Size(place) = wish {
                    held = Some(place);
                }
                (state.makers.clone(), state.controls.clone(), state.tag)
            }
        };
        loop {
            let state = self.state();
            let driver = state.driver;
            let link = state.host.as_ref().map(|host| host.link.clone());
            let place = if another { state.first_place(makers.len()) } else { state.place() };
            drop(state);
            let Some(maker) = makers.get(place) else { return };
            let order = Order { maker: &**maker, driver: held.unwrap_or(driver), tag, controls: &controls };
            // Without a host there is nobody to play for yet: it is made when one comes.
            let made = link.as_ref().map(|link| loader::make(&order, link));
            let mut state = self.state();
            if !self.wants(asked) {
                return;
            }
            let here = state.host.as_ref().map(|host| &host.link);
            let place_now = if another { state.first_place(makers.len()) } else { state.place() };
            if (state.driver, place_now) != (driver, place) || here.map(Arc::as_ptr) != link.as_ref().map(Arc::as_ptr) {
                // Meanwhile it was wanted in another way, or by another host.
                held = None;
                continue;
            }
            match (made, &mut state.host) {
                (Some(Err(reason)), _) => {
                    state.status = Status::Failed(reason);
                    return;
                }
                (Some(Ok((lane, facts))), Some(host)) => {
                    host.driver = driver;
                    host.newest = (lane.number, host.link.now.load(Ordering::Acquire));
                    host.lanes.insert(lane.number, facts);
                    if let Some(unheard) = host.link.arrival.swap(Some(lane)) {
                        host.lanes.remove(&unheard.number);
                    }
                }
                _ => {}
            }
            if another {
                state.governor = Governor::default();
            }
            (state.makers, state.controls, state.tag, state.status) = (makers, controls, tag, Status::Ready);
            return;
        }
    }

    /// Has somebody look at the load, where it decides which size plays.
    fn govern(self: &Arc<Self>) {
        let mut state = self.state();
        if state.is_to_be_governed() && !std::mem::replace(&mut state.governed, true) {
            let control = Arc::downgrade(self);
            loader::ask(Box::new(move || control.upgrade().is_some_and(|control| control.look())));
        }
    }

    /// Looks at the load, and has another size take over where that is better. Gives whether to look again.
    fn look(&self) -> bool {
        let mut state = self.state();
        state.governed = state.is_to_be_governed();
        let Some(host) = state.host.as_ref().filter(|_| state.governed) else { return false };
        let heard = host.link.heard.load(Ordering::Relaxed);
        let is_settled = state.status == Status::Ready && heard == host.newest.0;
        let Some(facts) = host.lanes.get(&heard).filter(|_| is_settled) else { return true };
        let (sizes, place, driver) = (state.makers.len(), state.governor.place(), facts.place);
        let work = |place: usize| state.makers.get(place).map_or(1.0, |maker| maker.work());
        let own = facts.meter.load();
        // On the worker's thread others have their own share.
        let strain = f32::from_bits(host.link.strain.load(Ordering::Relaxed));
        let sight = Sight {
            now: Instant::now(),
            load: if facts.driven == Driven::Inline { own.max(strain) } else { own },
            own,
            misses: facts.meter.misses(),
            growth: work(place.saturating_sub(1)) / work(place).max(1.0),
            sizes,
        };
        if state.governor.look(&sight) {
            let asked = self.asked.load(Ordering::Relaxed);
            drop(state);
            self.try_to(asked, || self.change(asked, Wish::Size(driver)));
        }
        true
    }

    /// Drops what the audio thread has given back. Gives whether there is more to come.
    fn take_back(&self) -> bool {
        let mut state = self.state();
        let loading = state.status == Status::Loading;
        let Some(host) = &mut state.host else { return false };
        let (mut dropped, mut untold) = (Vec::new(), false);
        while let Some(lane) = host.retired.try_pop() {
            host.lanes.remove(&lane.number);
            untold |= !lane.told && !loading && lane.number == host.newest.0;
            dropped.push(lane);
        }
        // What arrives for a session that is gone will never be played.
        let played = host.retired.write_is_held();
        let unheard = if played { None } else { host.link.arrival.take() };
        let more = played && host.lanes.len() > 1;
        drop(state);
        drop((dropped, unheard));
        if untold {
            // The session plays again, and can tell.
            let asked = self.asked.load(Ordering::Relaxed);
            self.try_to(asked, || self.change(asked, Wish::Anew));
        }
        more || untold
    }
}
