//! The controlling half of a session, for windows, commands and a host's main thread.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use ringbuf::HeapRb;
use ringbuf::traits::Split;

use super::background_jobs::run_in_background;
use super::controller_state::{
    ActiveHost, ControllerInner, ControllerState, LoadStatus, PendingChange,
};
use super::driver::Driver;
use super::health::{Driven, Health};
use super::model_factory::{LoadError, ModelFactory, Silence};
use super::quality::{Quality, QualityGovernor};
use super::session::Session;
use super::session_link::{RETIRED, SessionLink};
use super::setup::{Setup, SetupError};
use crate::pipeline::{ControlId, InputAnalysis};

/// Warning about non-finite output.
const INVALID_OUTPUT: &str =
    "the model computes invalid numbers (NaN or infinity), which are replaced by silence";
/// Maximum number of variants of one model.
const MAX_VARIANTS: usize = 16;

/// Obtains a model to load; runs on the background thread and may take its time.
pub type Load = Box<dyn FnOnce() -> Result<Arc<dyn ModelFactory>, LoadError> + Send>;

/// Controls a session from outside the audio thread: loads models, chooses the driver, and reports
/// health. Clones control the same session.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use ondes_engine::instrument::EventKind;
/// use ondes_engine::model::file;
/// use ondes_engine::pipeline::{Action, PipelineOptions};
/// use ondes_engine::realtime::{BlockCommand, Driver, LoadStatus, PlayableModel, SessionController, Setup};
///
/// let controller = SessionController::new();
/// controller.set_driver(Driver::Inline);
/// // Reading happens on the background thread.
/// let load = || {
///     let model = file::read("../assets/models/plucked.ondes".as_ref()).map_err(|error| error.to_string())?;
///     Ok(Arc::new(PlayableModel::new(Arc::new(model), PipelineOptions::default())?) as _)
/// };
/// controller.load(Box::new(load), &[]);
/// while controller.status() == LoadStatus::Loading {
///     std::thread::sleep(Duration::from_millis(1));
/// }
///
/// // The session moves to the audio thread, which calls it for every block.
/// let mut session = controller.activate(Setup { sample_rate: 48_000, max_block: 256 })?;
/// let note = Action::Play(EventKind::NoteOn { channel: 0, key: 57, velocity: 0.8 });
/// let (mut left, mut right) = (vec![0.0; 256], vec![0.0; 256]);
/// session.process(&[BlockCommand { offset: 0, action: note }], &[], &mut [&mut left, &mut right]);
/// for _ in 0..20 {
///     session.process(&[], &[], &mut [&mut left, &mut right]);
/// }
/// assert!(left.iter().any(|sample| sample.abs() > 0.01));
/// assert_eq!(controller.health().map(|health| health.invalid_blocks), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct SessionController(Arc<ControllerInner>);

impl SessionController {
    /// Creates a session without a model and without a host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts playing in a host with the model that was loaded last, and returns the audio thread's
    /// half. An earlier half is disconnected. Blocks until the model is built;
    /// [`SessionController::status`] tells whether that failed.
    ///
    /// # Errors
    /// Returns [`SetupError`], also as the status, for an unsupported sample rate or an empty
    /// block.
    pub fn activate(&self, setup: Setup) -> Result<Session, SetupError> {
        let refuse =
            |error: &SetupError| self.0.state().status = LoadStatus::Failed(error.to_string());
        let link = Arc::new(SessionLink::new(setup.validated().inspect_err(refuse)?));
        let (retired_in, retired) = HeapRb::new(RETIRED).split();
        let (mut state, built) = self.0.build_first(&link);
        link.non_realtime
            .store(state.non_realtime, Ordering::Relaxed);
        let (first, status) = match built {
            Some(Ok(first)) => (Some(first), Some(LoadStatus::Ready)),
            Some(Err(error)) => (None, Some(LoadStatus::Failed(error.to_string()))),
            None => (None, None),
        };
        // A model that is still loading keeps its status.
        if let Some(status) = status.filter(|_| state.status != LoadStatus::Loading) {
            state.status = status;
        }
        let (instance, info) = first.unzip();
        let first = instance.as_ref().map(|instance| instance.number).zip(info);
        state.host = Some(ActiveHost::new(&link, retired, state.driver, first));
        drop(state);
        self.0.start_watches();
        Ok(Session::new(link, retired_in, instance).expect("the link is new"))
    }

    /// Loads a model, which takes over without a gap as soon as it is ready, with these controls
    /// set. The last of several quick requests wins. Returns a number by which
    /// [`Session::active_model`] identifies the model.
    pub fn load(&self, load: Load, controls: &[(ControlId, f32)]) -> u64 {
        let request = self.0.begin_request(&mut self.0.state());
        let (inner, controls) = (self.0.clone(), controls.to_vec());
        let mut load = Some(load);
        run_in_background(Box::new(move || {
            // Skipped if a newer request was made.
            let Some(load) = load.take().filter(|_| inner.is_newest(request)) else {
                return inner.free_retired();
            };
            inner.try_request(request, || match load() {
                Ok(factory) => inner.change(
                    request,
                    PendingChange::Model(variants(factory), controls.clone()),
                ),
                Err(error) => inner.fail(request, error.to_string()),
            });
            inner.start_watches();
            inner.free_retired()
        }));
        request
    }

    /// Replaces the model by silence.
    pub fn unload(&self) {
        self.load(Box::new(|| Ok(Arc::new(Silence))), &[]);
    }

    /// Sets the driver; the model continues with it without a gap.
    pub fn set_driver(&self, driver: Driver) {
        let mut state = self.0.state();
        if state.driver == driver {
            return;
        }
        state.driver = driver;
        self.rebuild(state);
    }

    /// Selects among the model's variants; another one takes over without a gap.
    pub fn set_quality(&self, quality: Quality) {
        let mut state = self.0.state();
        if state.quality == quality {
            return;
        }
        let before = state.variant_index();
        (state.quality, state.governor) = (quality, QualityGovernor::default());
        self.rebuild_if_variant_changed(state, before);
    }

    /// Declares that the host does not play in real time, as in a bounce: the session waits for the
    /// worker and never drops out.
    pub fn set_non_realtime(&self, non_realtime: bool) {
        let mut state = self.0.state();
        let before = state.variant_index();
        state.non_realtime = non_realtime;
        if let Some(host) = &state.host {
            host.link
                .non_realtime
                .store(non_realtime, Ordering::Relaxed);
        }
        self.rebuild_if_variant_changed(state, before);
    }

    fn rebuild_if_variant_changed(&self, state: MutexGuard<'_, ControllerState>, before: usize) {
        if state.variant_index() != before {
            self.rebuild(state);
        } else {
            drop(state);
            self.0.start_watches();
        }
    }

    /// Builds the model again, with the current driver and quality.
    fn rebuild(&self, mut state: MutexGuard<'_, ControllerState>) {
        // A model that is loading will be built like this anyway.
        if state.factories.is_empty() || state.status == LoadStatus::Loading {
            return;
        }
        // Under the same lock, so that a concurrent load comes entirely before or after.
        let request = self.0.begin_request(&mut state);
        drop(state);
        let inner = self.0.clone();
        let mut is_first_run = true;
        run_in_background(Box::new(move || {
            if std::mem::take(&mut is_first_run) && inner.is_newest(request) {
                inner.try_request(request, || inner.change(request, PendingChange::Rebuild));
                inner.start_watches();
            }
            inner.free_retired()
        }));
    }

    /// Returns the state of the requested model.
    #[must_use]
    pub fn status(&self) -> LoadStatus {
        self.0.state().current_status()
    }

    /// Returns a warning about the model that was loaded last, one line, such as a device that
    /// failed and was replaced, or invalid output.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let state = self.0.state();
        let metrics = state.host.as_ref()?.newest_metrics()?;
        metrics
            .warning()
            .or_else(|| metrics.invalid_output().map(|_| INVALID_OUTPUT.to_owned()))
    }

    /// Returns counters of the model that is heard; `None` without one.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        let state = self.0.state();
        let host = state.host.as_ref()?;
        let (info, link) = (host.active()?, &host.link);
        let metrics = &info.metrics;
        Some(Health {
            driven: if metrics.is_on_slow_worker() {
                Driven::SlowWorker
            } else {
                info.driven
            },
            latency_samples: info.latency_samples,
            latency_ms: 1e3 * info.latency_samples as f64 / f64::from(link.setup.sample_rate),
            load: metrics.load(),
            dropouts: metrics.dropouts(),
            invalid_blocks: metrics.invalid_blocks(),
            invalid_output: metrics.invalid_output(),
            commands_lost: link.commands_lost.load(Ordering::Relaxed),
            queued_samples: metrics.queued(),
            inference_time: metrics.inference_time.percentiles(),
        })
    }

    /// Returns the name of the variant that is heard; `None` for the base model.
    #[must_use]
    pub fn variant(&self) -> Option<String> {
        self.0.state().host.as_ref()?.active()?.variant.clone()
    }

    /// Returns the pitch and loudness that the model tracks in the input; `None` if notes play it,
    /// or before the first frame.
    #[must_use]
    pub fn input_analysis(&self) -> Option<InputAnalysis> {
        self.0
            .state()
            .host
            .as_ref()?
            .active()?
            .metrics
            .input_analysis()
    }

    /// Fills `values` with the latents that the model decoded last, after scale, offset and hold;
    /// clears it for other models. Each value is the latest, so they need not belong to the same
    /// frame.
    pub fn latents(&self, values: &mut Vec<f32>) {
        values.clear();
        if let Some(info) = self.0.state().host.as_ref().and_then(ActiveHost::active) {
            values.extend(info.metrics.latents());
        }
    }
}

/// Lists a model and its smaller variants.
fn variants(factory: Arc<dyn ModelFactory>) -> Vec<Arc<dyn ModelFactory>> {
    std::iter::successors(Some(factory), |factory| factory.smaller())
        .take(MAX_VARIANTS)
        .collect()
}
