//! State behind a [`SessionController`](super::SessionController): the requested model, the active
//! host, and what the loader does with both.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use ringbuf::HeapCons;
use ringbuf::traits::{Consumer, Observer};

use super::background_jobs::run_in_background;
use super::driver::Driver;
use super::guard::guard_with_reason;
use super::health::{Driven, InstanceMetrics};
use super::loader::{InstanceInfo, InstanceRequest, NewInstance, build_first, build_successor};
use super::model_factory::{LoadError, ModelFactory};
use super::model_instance::ModelInstance;
use super::program_restarts::ProgramRestarts;
use super::quality::{LoadSample, Quality, QualityGovernor};
use super::session_link::SessionLink;
use crate::pipeline::ControlId;
use crate::sync::lock;

/// Time in which a new model must catch up with the present, in seconds of sound.
const CATCH_UP_S: u64 = 3;

/// State of the requested model.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LoadStatus {
    /// No model was requested.
    #[default]
    Empty,
    /// The model is loading; the one before it plays on.
    Loading,
    /// The model plays, or will with the next block.
    Ready,
    /// The model cannot be played, for this reason; the one before it plays on.
    Failed(String),
}

/// State of a controller, shared with the background thread.
#[derive(Default)]
pub(super) struct ControllerInner {
    state: Mutex<ControllerState>,
    /// Number of the newest request; older ones are obsolete.
    newest_request: AtomicU64,
}

#[derive(Default)]
pub(super) struct ControllerState {
    /// The model in all of its variants, the base model first; empty without a model.
    pub factories: Vec<Arc<dyn ModelFactory>>,
    pub controls: Vec<(ControlId, f32)>,
    /// Number of the request that loaded the model.
    pub model: u64,
    pub driver: Driver,
    pub quality: Quality,
    pub governor: QualityGovernor,
    /// A background job watches the load.
    pub is_governed: bool,
    pub program_watch: ProgramRestarts,
    pub status: LoadStatus,
    pub non_realtime: bool,
    pub host: Option<ActiveHost>,
}

/// The host that plays now.
pub(super) struct ActiveHost {
    pub link: Arc<SessionLink>,
    retired: HeapCons<Box<ModelInstance>>,
    /// By number: the instances that may still be heard.
    instances: HashMap<u32, InstanceInfo>,
    /// Number of the instance that was built last, and the sample at which it was ready.
    newest: (u32, u64),
    /// Requested driver of that instance.
    driver: Driver,
}

/// Model that is to take over.
pub(super) enum PendingChange {
    /// Another model in all of its variants, with the controls to set on it.
    Model(Vec<Arc<dyn ModelFactory>>, Vec<(ControlId, f32)>),
    /// The current model with the current driver and quality.
    Rebuild,
    /// The current model in the variant that the load allows, with that driver.
    Variant(Driver),
}

/// Model, controls and driver of a [`PendingChange`].
struct ChangePlan {
    factories: Vec<Arc<dyn ModelFactory>>,
    controls: Vec<(ControlId, f32)>,
    model: u64,
    is_other_model: bool,
    /// Replaces the requested driver.
    driver: Option<Driver>,
}

/// Builds the first instance for a host: the locked state, and the instance if there is a model.
type FirstInstance<'a> = (
    MutexGuard<'a, ControllerState>,
    Option<Result<NewInstance, LoadError>>,
);

impl ControllerState {
    /// Returns the index of the requested variant.
    pub fn variant_index(&self) -> usize {
        let governed = if self.has_time() {
            0
        } else {
            self.governor.variant()
        };
        self.quality
            .variant(self.factories.len())
            .unwrap_or(governed)
    }

    /// Returns the index of the first variant of a model that is being loaded and has `variants`
    /// variants.
    fn first_variant_index(&self, variants: usize) -> usize {
        self.quality.variant(variants).unwrap_or(0)
    }

    /// Returns true if the load selects the variant.
    fn needs_governor(&self) -> bool {
        self.quality == Quality::Auto
            && self.factories.len() > 1
            && !self.has_time()
            && self.is_played()
    }

    /// Returns true while an audio thread has the session.
    pub fn is_played(&self) -> bool {
        self.host
            .as_ref()
            .is_some_and(|host| host.retired.write_is_held())
    }

    /// Returns true if no block can be late.
    pub fn has_time(&self) -> bool {
        self.non_realtime || self.driver == Driver::Offline
    }

    /// Returns the status of the requested model, or of the instance that plays it.
    pub fn current_status(&self) -> LoadStatus {
        match (&self.status, &self.host) {
            (LoadStatus::Ready, Some(host)) if host.has_failed() => {
                LoadStatus::Failed(host.failure_reason())
            }
            (LoadStatus::Ready, Some(host)) if host.is_too_slow() => LoadStatus::Failed(
                "the model is too slow for this computer: it does not catch up with the present"
                    .into(),
            ),
            (status, _) => status.clone(),
        }
    }
}

impl ActiveHost {
    pub fn new(
        link: &Arc<SessionLink>,
        retired: HeapCons<Box<ModelInstance>>,
        driver: Driver,
        first: Option<(u32, InstanceInfo)>,
    ) -> Self {
        let number = first.as_ref().map_or(0, |(number, _)| *number);
        Self {
            link: link.clone(),
            retired,
            instances: first.into_iter().collect(),
            newest: (number, 0),
            driver,
        }
    }

    /// Returns the instance that is heard.
    pub fn active(&self) -> Option<&InstanceInfo> {
        self.instances
            .get(&self.link.active_instance.load(Ordering::Relaxed))
    }

    /// Returns the counters of the instance that was built last.
    pub fn newest_metrics(&self) -> Option<&InstanceMetrics> {
        self.instances
            .get(&self.newest.0)
            .map(|info| &*info.metrics)
    }

    /// Returns true if the newest instance's model has panicked. Older instances do not count, even
    /// if they are still heard.
    pub fn has_failed(&self) -> bool {
        let (number, _) = self.newest;
        number > 0 && self.link.failed_instance.load(Ordering::Relaxed) == number
    }

    pub fn failure_reason(&self) -> String {
        self.newest_metrics()
            .and_then(InstanceMetrics::failure)
            .unwrap_or("the model failed")
            .to_owned()
    }

    /// Returns true if the newest instance has had enough time to be heard, and is not.
    fn is_too_slow(&self) -> bool {
        let (number, since) = self.newest;
        let waited = self.link.now.load(Ordering::Acquire).saturating_sub(since);
        let max = CATCH_UP_S * u64::from(self.link.setup.sample_rate);
        number > self.link.active_instance.load(Ordering::Relaxed) && waited > max
    }

    /// Hands a new instance to the audio thread.
    fn send(&mut self, (instance, info): NewInstance, driver: Driver) {
        self.driver = driver;
        self.newest = (instance.number, self.link.now.load(Ordering::Acquire));
        self.instances.insert(instance.number, info);
        if let Some(unheard) = self.link.arrival.swap(Some(instance)) {
            self.instances.remove(&unheard.number);
        }
    }
}

impl ControllerInner {
    /// Locks the state.
    pub fn state(&self) -> MutexGuard<'_, ControllerState> {
        lock(&self.state)
    }

    /// Builds the first instance for a host, if there is a model, without holding the lock; again
    /// if the request has changed meanwhile.
    pub fn build_first(&self, link: &SessionLink) -> FirstInstance<'_> {
        loop {
            let state = self.state();
            let (driver, model, controls) = (state.driver, state.model, state.controls.clone());
            let variant = state.variant_index();
            let Some(factory) = state.factories.get(variant).cloned() else {
                return (state, None);
            };
            drop(state);
            let request = InstanceRequest {
                factory: &*factory,
                driver,
                model,
                controls: &controls,
            };
            let built = build_first(&request, link);
            let state = self.state();
            if (state.driver, state.model, state.variant_index()) == (driver, model, variant) {
                return (state, Some(built));
            }
        }
    }

    /// Numbers a new request, which makes older ones obsolete.
    pub fn begin_request(&self, state: &mut ControllerState) -> u64 {
        state.status = LoadStatus::Loading;
        self.newest_request.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns true if no newer request was made.
    pub fn is_newest(&self, request: u64) -> bool {
        self.newest_request.load(Ordering::Relaxed) == request
    }

    /// Sets the status of a request that failed, and updates the model that plays on to a driver
    /// chosen meanwhile.
    pub fn fail(&self, request: u64, reason: String) {
        if !self.is_newest(request) {
            return;
        }
        let state = self.state();
        let is_outdated = state
            .host
            .as_ref()
            .is_some_and(|host| host.driver != state.driver);
        drop(state);
        if is_outdated {
            self.change(request, PendingChange::Rebuild);
        }
        let mut state = self.state();
        if self.is_newest(request) {
            state.status = LoadStatus::Failed(reason);
        }
    }

    /// Runs a request; a panic of the model's code becomes its status.
    pub fn try_request(&self, request: u64, work: impl FnOnce()) {
        if let Err(reason) = guard_with_reason(work) {
            self.fail(request, format!("while loading: {reason}"));
        }
    }

    fn plan(&self, request: u64, change: PendingChange) -> ChangePlan {
        let current = |driver| {
            let state = self.state();
            ChangePlan {
                factories: state.factories.clone(),
                controls: state.controls.clone(),
                model: state.model,
                is_other_model: false,
                driver,
            }
        };
        match change {
            PendingChange::Model(factories, controls) => ChangePlan {
                factories,
                controls,
                model: request,
                is_other_model: true,
                driver: None,
            },
            PendingChange::Rebuild => current(None),
            PendingChange::Variant(driver) => current(Some(driver)),
        }
    }

    /// Builds an instance of another model, or another one of the current model, and sends it to
    /// the audio thread.
    pub fn change(&self, request: u64, change: PendingChange) {
        let mut plan = self.plan(request, change);
        loop {
            let variant_index = |state: &ControllerState| match plan.is_other_model {
                true => state.first_variant_index(plan.factories.len()),
                false => state.variant_index(),
            };
            let state = self.state();
            let driver = state.driver;
            let link = state.host.as_ref().map(|host| host.link.clone());
            let variant = variant_index(&state);
            drop(state);
            let Some(factory) = plan.factories.get(variant) else {
                return;
            };
            let instance_request = InstanceRequest {
                factory: &**factory,
                driver: plan.driver.unwrap_or(driver),
                model: plan.model,
                controls: &plan.controls,
            };
            // Without a host the instance is built when one comes.
            let built = link
                .as_ref()
                .map(|link| build_successor(&instance_request, link));
            let mut state = self.state();
            if !self.is_newest(request) {
                return;
            }
            let current_link = state.host.as_ref().map(|host| &host.link);
            let is_same_host = current_link.map(Arc::as_ptr) == link.as_ref().map(Arc::as_ptr);
            if (state.driver, variant_index(&state)) != (driver, variant) || !is_same_host {
                // The driver, the variant or the host has changed meanwhile.
                plan.driver = None;
                continue;
            }
            match (built, &mut state.host) {
                (Some(Err(error)), _) => {
                    state.status = LoadStatus::Failed(error.to_string());
                    return;
                }
                (Some(Ok(instance)), Some(host)) => host.send(instance, driver),
                _ => {}
            }
            if plan.is_other_model {
                state.governor = QualityGovernor::default();
                state.program_watch.forget();
            }
            let ChangePlan {
                factories,
                controls,
                model,
                ..
            } = plan;
            (state.factories, state.controls, state.model, state.status) =
                (factories, controls, model, LoadStatus::Ready);
            return;
        }
    }

    /// Starts watching the load, if it selects the variant, and the process of a program.
    pub fn start_watches(self: &Arc<Self>) {
        self.start_governor();
        self.start_program_watch();
    }

    fn start_governor(self: &Arc<Self>) {
        let mut state = self.state();
        if state.needs_governor() && !std::mem::replace(&mut state.is_governed, true) {
            let inner = Arc::downgrade(self);
            run_in_background(Box::new(move || {
                inner.upgrade().is_some_and(|inner| inner.check_load())
            }));
        }
    }

    /// Checks the load, and changes the variant if another one is better. Returns true to be called
    /// again.
    fn check_load(&self) -> bool {
        let mut state = self.state();
        state.is_governed = state.needs_governor();
        let Some(host) = state.host.as_ref().filter(|_| state.is_governed) else {
            return false;
        };
        let active = host.link.active_instance.load(Ordering::Relaxed);
        let is_settled = state.status == LoadStatus::Ready && active == host.newest.0;
        let Some(info) = host.instances.get(&active).filter(|_| is_settled) else {
            return true;
        };
        let (variants, variant, driver) =
            (state.factories.len(), state.governor.variant(), info.driver);
        let work = |variant: usize| {
            state
                .factories
                .get(variant)
                .map_or(1.0, |factory| factory.work())
        };
        let own_load = info.metrics.load();
        // On the worker's thread, the callback's load does not matter.
        let callback_load = f32::from_bits(host.link.callback_load.load(Ordering::Relaxed));
        let sample = LoadSample {
            now: Instant::now(),
            load: if info.driven == Driven::Inline {
                own_load.max(callback_load)
            } else {
                own_load
            },
            own_load,
            dropouts: info.metrics.dropouts(),
            growth: work(variant.saturating_sub(1)) / work(variant).max(1.0),
            variants,
        };
        if state.governor.update(&sample) {
            let request = self.newest_request.load(Ordering::Relaxed);
            drop(state);
            self.try_request(request, || {
                self.change(request, PendingChange::Variant(driver))
            });
        }
        true
    }

    /// Frees the instances that the audio thread has returned. Returns true if more are expected.
    pub fn free_retired(&self) -> bool {
        let mut state = self.state();
        let is_loading = state.status == LoadStatus::Loading;
        let Some(host) = &mut state.host else {
            return false;
        };
        let (mut retired, mut needs_rebuild) = (Vec::new(), false);
        while let Some(instance) = host.retired.try_pop() {
            host.instances.remove(&instance.number);
            needs_rebuild |=
                !instance.has_session_state && !is_loading && instance.number == host.newest.0;
            retired.push(instance);
        }
        // An instance that arrives for a session that is gone will never be played.
        let is_played = host.retired.write_is_held();
        let unheard = if is_played {
            None
        } else {
            host.link.arrival.take()
        };
        let expects_more = is_played && host.instances.len() > 1;
        drop(state);
        drop((retired, unheard));
        if needs_rebuild {
            // The session plays again, so it can answer a request for its state.
            let request = self.newest_request.load(Ordering::Relaxed);
            self.try_request(request, || self.change(request, PendingChange::Rebuild));
        }
        expects_more || needs_rebuild
    }
}
