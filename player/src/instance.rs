//! An instance as all its parts share it: loaded model, macro bindings, cabinet, problems.

pub mod audio_link;
mod blocks;
mod cabinet;
pub mod consent;
mod control_mapping;
pub mod host_view;
mod programs;
mod scenes;
mod selection;
mod sound;
mod tuning;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::model::program::ProgramOptions;
use ondes_engine::model::{Kind, Model, ModelError};
use ondes_engine::pipeline::{ControlId, ControlSource, InputChannels, PipelineOptions};
use ondes_engine::realtime::{LoadStatus, PlayableModel, Quality, SessionController};
use ondes_engine::sync::lock;
use ondes_engine::torch;

use self::audio_link::AudioLink;
use self::host_view::ModelVoices;
use self::programs::PendingPreset;
use crate::cabinet::CabinetHandover;
use crate::compare_slots::CompareSlots;
use crate::history::History;
use crate::host_notifier::HostNotifier;
use crate::library::{BundledModel, FileReference, LoadError, MissingFile};
use crate::macros::{ControlMapping, MACRO_CENTRE, RELEASE_CONTROL};
use crate::midi_bindings::MidiBindings;
use crate::model_controls::ModelControls;
use crate::monitor::Monitor;
use crate::parameter_source::ParameterSource;
use crate::preset::location::PresetLocation;
use crate::product::Product;
use crate::rig::handover::RigHandover;
use crate::sleep_state::SleepState;
use crate::snapshot::SelectionSnapshot;
use crate::state::{InstanceState, WindowSettings};
use crate::tuner::TunerInput;
use crate::tuning::TuningHandover;

/// Handle of one instance, shared by the window, the host's main thread and the audio thread. All
/// methods may block, unless they say that they are wait-free.
pub struct InstanceHandle {
    /// Loads models and reports on the session.
    pub session: SessionController,
    /// Meters and samples for the window.
    pub monitor: Monitor,
    /// MIDI controllers by parameter.
    pub midi_bindings: MidiBindings,
    /// Silence and tail, as the host sees them.
    pub sleep_state: SleepState,
    /// Changes that a plugin's host has to hear of.
    pub host_notifier: HostNotifier,
    /// True if the effect has a side-chain, as in a plugin, so that it can be chosen as control
    /// input.
    pub has_side_chain: AtomicBool,
    /// The product that this is an instance of.
    pub product: Product,
    /// Slots A and B.
    pub compare_slots: CompareSlots,
    /// Steps of the window's undo and redo.
    pub history: History,
    /// The input as a tuner hears it.
    pub tuner: TunerInput,
    /// Hands cabinets to the audio thread.
    pub cabinet_handover: CabinetHandover,
    /// Hands blocks to the audio thread.
    pub rig_handover: RigHandover,
    /// Hands tunings to the audio thread.
    pub tuning_handover: TuningHandover,
    /// Values that the audio thread reads and reports.
    pub audio: AudioLink,
    inner: Mutex<Inner>,
    /// Voices of the model.
    model_voices: AtomicCell<ModelVoices>,
    /// The parameters.
    parameter_source: OnceLock<Weak<dyn ParameterSource>>,
}

struct Inner {
    state: InstanceState,
    source: ControlSource,
    /// True if the input has two channels.
    has_stereo_input: bool,
    /// Oversampling factor of an effect's network; `None` for that of the model.
    oversampling: Option<usize>,
    model: Option<Arc<Model>>,
    /// Number by which the session identifies the model.
    model_number: u64,
    /// Controls of the model.
    controls: Arc<ModelControls>,
    /// Latent controls that were changed since the model was loaded, so that they may differ from
    /// their defaults in the session.
    turned_latents: BTreeSet<String>,
    /// Set if the model was not found.
    missing_model: Option<MissingFile>,
    /// Set if the cabinet's file was not found or is invalid.
    missing_cabinet: Option<MissingFile>,
    /// Set if the tuning of a saved state cannot be read.
    tuning_problem: Option<String>,
    /// Number of the last request for a cabinet.
    cabinet_requests: u64,
    /// True once a notice has told that a cabinet was selected with a model.
    cabinet_announced: bool,
    /// Number of the last request for a model; results of earlier ones are dropped.
    requests: u64,
    /// True if the last request is still being read.
    reading: bool,
    /// Error of the last request; the previous model goes on playing.
    load_error: Option<LoadError>,
    /// Reason of a panic in the audio thread, which is silent since.
    playback_failure: Option<String>,
    /// Notice about the loaded model.
    notice: Option<String>,
    /// The executor notice that the user has dismissed.
    dismissed_notice: Option<String>,
    /// Reason why the requested executor cannot run this model.
    executor_problem: Option<String>,
    /// Selection to return to after an audition; a project saves it in place of the auditioned one.
    before_audition: Option<SelectionSnapshot>,
    /// The preset that a program change has chosen, while it is read.
    pending_preset: Option<PendingPreset>,
}

impl InstanceHandle {
    /// Creates an instance with its product's initial model and preset. For `wake` see
    /// [`Monitor::new`].
    #[must_use]
    pub fn new(product: Product, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let model = BundledModel::initial(product).model();
        let state = InstanceState {
            model: FileReference::to(&model, None),
            preset: Some(PresetLocation::Factory(product.initial_preset().into())),
            automatic_cabinet: true,
            ..InstanceState::default()
        };
        let instance = Self {
            session: SessionController::new(),
            monitor: Monitor::new(wake),
            midi_bindings: MidiBindings::default(),
            sleep_state: SleepState::default(),
            host_notifier: HostNotifier::default(),
            has_side_chain: AtomicBool::default(),
            product,
            compare_slots: CompareSlots::default(),
            history: History::default(),
            tuner: TunerInput::default(),
            cabinet_handover: CabinetHandover::default(),
            rig_handover: RigHandover::default(),
            tuning_handover: TuningHandover::default(),
            audio: AudioLink::default(),
            inner: Mutex::new(Inner {
                state,
                source: product.source(),
                has_stereo_input: true,
                oversampling: None,
                controls: ModelControls::new(&model).into(),
                turned_latents: BTreeSet::new(),
                model: Some(model),
                model_number: 0,
                missing_model: None,
                missing_cabinet: None,
                tuning_problem: None,
                cabinet_requests: 0,
                cabinet_announced: false,
                requests: 0,
                reading: false,
                load_error: None,
                playback_failure: None,
                notice: None,
                dismissed_notice: None,
                executor_problem: None,
                before_audition: None,
                pending_preset: None,
            }),
            model_voices: AtomicCell::default(),
            parameter_source: OnceLock::new(),
        };
        instance.load(&mut instance.inner());
        let instance = instance.into();
        consent::register(&instance);
        instance
    }

    /// Sets where parameters are read from; only the first call has an effect.
    pub fn set_parameter_source(&self, source: &Arc<impl ParameterSource + 'static>) {
        let source = Arc::downgrade(source);
        let _ = self.parameter_source.set(source);
    }

    /// Sets the control source of an instrument.
    pub fn set_source(&self, source: ControlSource) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.source, source) != source {
            self.load(&mut inner);
        }
    }

    /// Sets the oversampling factor of an effect's network: 1, 2, 4 or 8; `None` for that of the
    /// model.
    pub fn set_oversampling(&self, factor: Option<usize>) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.oversampling, factor) != factor {
            self.load(&mut inner);
        }
    }

    /// Requests an executor and saves the choice with the project. If the model or the machine does
    /// not support it, another one runs the model and a [notice](Self::notice) says why.
    pub fn set_executor(&self, executor: ExecutorSelection) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.state.executor, executor) != executor {
            self.load(&mut inner);
            self.host_notifier.mark_state_changed();
        }
    }

    /// Chooses the method and the settings of a TorchScript program and saves them with the sound.
    /// Reads sound files.
    ///
    /// # Errors
    /// Returns the reason, which becomes a [notice](Self::notice), if they do not fit the program.
    /// It plays on as before.
    pub fn set_program_options(&self, options: ProgramOptions) -> Result<(), ModelError> {
        let Some(model) = self.model() else {
            return Ok(());
        };
        let chosen = torch::with_options(&model, &options);
        let mut inner = self.inner();
        // Another model may have been loaded meanwhile.
        if !inner
            .model
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(now, &model))
        {
            return Ok(());
        }
        let chosen = chosen.inspect_err(|reason| inner.notice = Some(reason.to_string()))?;
        inner.state.program = options;
        inner.notice = None;
        inner.set_model(Some(chosen.into()));
        self.load(&mut inner);
        self.host_notifier.mark_state_changed();
        Ok(())
    }

    /// Sets the method of rate conversion and saves it with the project.
    pub fn set_resampling(&self, resampling: Resampling) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.state.resampling, resampling) != resampling {
            self.load(&mut inner);
            self.host_notifier.mark_state_changed();
        }
    }

    /// Sets whether the input has two channels, initially true; a mono input costs half as much.
    pub fn set_stereo_input(&self, has_stereo_input: bool) {
        let mut inner = self.inner();
        let before = self.processed_channels(&inner);
        inner.has_stereo_input = has_stereo_input;
        if self.processed_channels(&inner) != before {
            self.load(&mut inner);
        }
    }

    /// Applies the parameters for size, quality and channels; a model that changes is cross-faded.
    pub fn apply_requested_variant(&self) {
        let Some(source) = self.parameter_source.get().and_then(Weak::upgrade) else {
            return;
        };
        self.set_quality(source.quality());
        let mut inner = self.inner();
        let before = (self.audio.size.load(), self.processed_channels(&inner));
        self.audio.size.store(source.size());
        self.audio.channels.store(source.input_channels());
        let header = inner.model.as_ref().map(|model| model.header());
        let variant = |size| header.and_then(|header| header.variant(size));
        if variant(before.0) != variant(source.size())
            || before.1 != self.processed_channels(&inner)
        {
            self.load(&mut inner);
        }
    }

    fn set_quality(&self, quality: Quality) {
        self.audio.quality.store(quality);
        self.session.set_quality(quality);
    }

    /// Returns the channels that the model processes.
    fn processed_channels(&self, inner: &Inner) -> InputChannels {
        match self.audio.channels.load() {
            _ if !inner.has_stereo_input => InputChannels::Mono,
            // An instrument follows one sound.
            InputChannels::Stereo if !inner.uses_audio_input() => InputChannels::Mono,
            channels => channels,
        }
    }

    /// Sets whether the model is embedded in the project, unless it is too large.
    pub fn set_embed_model(&self, embed: bool) {
        self.inner().state.embed = embed;
        self.host_notifier.mark_state_changed();
    }

    /// Sets the parameters or latent controls that the pad turns, horizontally and vertically.
    pub fn set_pad(&self, ids: [String; 2]) {
        self.inner().state.pad = Some(ids);
        self.host_notifier.mark_state_changed();
    }

    /// Loads the selected model into the session, with the present values of latent knobs and
    /// macros.
    fn load(&self, inner: &mut Inner) {
        inner.turned_latents.clear();
        inner.executor_problem = None;
        let uses_audio_input = inner.uses_audio_input();
        self.audio.uses_audio_input.store(uses_audio_input, Relaxed);
        let Some(model) = inner.model.clone() else {
            self.send_mapping(ControlMapping::default());
            return self.session.unload();
        };
        self.audio.release_ms.store(release_ms(&model));
        self.model_voices.store(ModelVoices::new(
            &model.header().performance.unwrap_or_default(),
        ));
        let mut mapping = inner.control_mapping();
        let mut controls = mapping.latents.clone();
        if let Some(source) = self.parameter_source.get().and_then(Weak::upgrade) {
            inner.oversampling = source.oversampling();
            self.audio.size.store(source.size());
            self.set_quality(source.quality());
            self.audio.channels.store(source.input_channels());
            let parameters = source.player_parameters();
            controls.extend(parameters.notes.controls());
            let turned = mapping
                .macros
                .iter()
                .zip(parameters.macros)
                .filter(|(_, position)| *position != MACRO_CENTRE);
            controls.extend(turned.filter_map(|(control, position)| {
                control.map(|(id, range)| (id, range.value(position)))
            }));
        }
        let (source, oversampling, size) =
            (inner.source, inner.oversampling, self.audio.size.load());
        let channels = self.processed_channels(inner);
        let executor = inner.state.executor.for_model(&model);
        inner.executor_problem = executor.err().map(|unsupported| unsupported.to_string());
        let executor = executor.unwrap_or_default();
        let options = PipelineOptions {
            source,
            channels,
            oversampling,
            resampling: inner.state.resampling,
            size,
            executor,
            allow_fallback: true,
            ..PipelineOptions::default()
        };
        let create = move || Ok(Arc::new(PlayableModel::new(model, options)?) as Arc<_>);
        inner.model_number = self.session.load(Box::new(create), &controls);
        mapping.model = inner.model_number;
        self.send_mapping(mapping);
        self.sleep_state.wake_host();
    }

    /// Returns a part of the present state, in which an audition is included. `part` must not call
    /// the instance.
    pub fn read_state<T>(&self, part: impl FnOnce(&InstanceState) -> T) -> T {
        part(&self.inner().state)
    }

    /// Waits until the models have loaded, those of blocks included, up to `timeout`.
    pub fn wait_until_loaded(&self, timeout: Duration) {
        let since = Instant::now();
        let is_loading =
            || self.session.status() == LoadStatus::Loading || self.rig_handover.is_loading();
        while is_loading() && since.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Declares that the host does not play in real time, as in a bounce: late models are waited
    /// for.
    pub fn set_non_realtime(&self, non_realtime: bool) {
        self.session.set_non_realtime(non_realtime);
        self.rig_handover.set_non_realtime(non_realtime);
    }

    /// Returns the state of the last request, files that are being read included.
    #[must_use]
    pub fn status(&self) -> LoadStatus {
        let mut inner = self.inner();
        if let Some(reason) = self.audio.failure.take() {
            inner.playback_failure = Some(format!(
                "internal error: {reason}; silent until Ondes is loaded again"
            ));
        }
        if let Some(reason) = &inner.playback_failure {
            return LoadStatus::Failed(reason.clone());
        }
        match &inner.load_error {
            Some(reason) => LoadStatus::Failed(reason.to_string()),
            None if inner.reading => LoadStatus::Loading,
            None => self.session.status(),
        }
    }

    /// For a player that starts anew: forgets the failure of the one before.
    pub(crate) fn clear_playback_failure(&self) {
        drop(self.audio.failure.take());
        self.inner().playback_failure = None;
    }

    /// Returns the notice about the loaded model, until it is dismissed.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let inner = self.inner();
        let executor = inner.executor_notice(&self.session);
        inner
            .notice
            .clone()
            .or(executor.filter(|notice| inner.dismissed_notice.as_ref() != Some(notice)))
    }

    /// Dismisses the notice.
    pub fn dismiss_notice(&self) {
        let mut inner = self.inner();
        if inner.notice.take().is_none() {
            inner.dismissed_notice = inner.executor_notice(&self.session);
        }
    }

    /// Loads the selected model once more.
    pub fn reload(&self) {
        let mut inner = self.inner();
        inner.load_error = None;
        self.load(&mut inner);
    }

    /// Sets the settings of the window.
    pub fn set_window_settings(&self, settings: WindowSettings) {
        self.inner().state.window = settings;
    }

    /// Sets the preset that was loaded or saved last.
    pub fn set_preset(&self, preset: Option<PresetLocation>) {
        self.inner().state.preset = preset;
    }

    /// Returns the loaded model; `None` if it is missing.
    #[must_use]
    pub fn model(&self) -> Option<Arc<Model>> {
        self.inner().model.clone()
    }

    /// Returns the path of the loaded model's file, if it has one.
    #[must_use]
    pub fn model_path(&self) -> Option<PathBuf> {
        let inner = self.inner();
        inner.model.as_ref().and(inner.state.model.path.clone())
    }

    /// Returns the model's controls; none if the model is missing.
    #[must_use]
    pub fn controls(&self) -> Arc<ModelControls> {
        self.inner().controls.clone()
    }

    fn send_mapping(&self, mapping: ControlMapping) {
        self.audio.send_mapping(Some(mapping));
        self.host_notifier.mark_names_changed();
    }

    /// Returns the present control mapping, for an audio thread that starts.
    #[must_use]
    pub fn control_mapping(&self) -> ControlMapping {
        let inner = self.inner();
        self.audio.send_mapping(None);
        inner.control_mapping()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    fn set_model(&mut self, model: Option<Arc<Model>>) {
        self.controls = model
            .as_deref()
            .map(ModelControls::new)
            .unwrap_or_default()
            .into();
        self.model = model;
    }

    fn uses_audio_input(&self) -> bool {
        self.model
            .as_ref()
            .is_some_and(|model| model.header().kind != Kind::Instrument)
    }

    /// Returns the notice about the executor: the requested one is not supported, or another one
    /// has taken over.
    fn executor_notice(&self, session: &SessionController) -> Option<String> {
        self.executor_problem.clone().or_else(|| session.warning())
    }
}

/// Returns the default of the model's release control, or the release time that the model was made
/// with.
fn release_ms(model: &Model) -> f32 {
    let header = model.header();
    let control = header
        .controls
        .iter()
        .find(|control| ControlId::new(&control.name) == RELEASE_CONTROL);
    control.map_or_else(
        || header.performance.unwrap_or_default().release_ms,
        |control| control.default,
    )
}
