//! An instance as all its parts share it: loaded model, macro bindings, cabinet, problems.

mod cabinet;
pub mod consent;
mod control_mapping;
pub mod host_view;
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

use self::host_view::ModelVoices;
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
use crate::sleep_state::SleepState;
use crate::snapshot::SelectionSnapshot;
use crate::state::{InstanceState, WindowSettings};
use crate::tuner::TunerInput;
use crate::tuning::TuningHandover;

/// Handle of one instance, shared by the window, the host's main thread and the audio thread.
/// Methods for the audio thread say so; all others may block.
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
    /// Hands tunings to the audio thread.
    pub tuning_handover: TuningHandover,
    inner: Mutex<Inner>,
    /// A control mapping for the audio thread, and one that the audio thread has replaced.
    arrival: AtomicCell<Option<Box<ControlMapping>>>,
    retired: AtomicCell<Option<Box<ControlMapping>>>,
    /// Default release time of the model's notes, ms.
    release_ms: AtomicCell<f32>,
    /// Voices of the model.
    model_voices: AtomicCell<ModelVoices>,
    /// True if the model processes audio input, whatever the control source.
    uses_audio_input: AtomicBool,
    /// Largest variant that may be used, 0 … 1, and the quality.
    size: AtomicCell<f32>,
    quality: AtomicCell<Quality>,
    /// Channels of a stereo input to process.
    channels: AtomicCell<InputChannels>,
    /// The input has two channels.
    has_stereo_input: AtomicBool,
    /// Reason of a panic in the audio thread, until `Inner` has it.
    #[expect(
        clippy::box_collection,
        reason = "one word, so that the cell takes no lock"
    )]
    playback_failure: AtomicCell<Option<Box<String>>>,
    /// The audio thread has seen a new size, quality or choice of channels, which the main thread
    /// has to apply.
    variant_requested: AtomicBool,
    /// The parameters.
    parameter_source: OnceLock<Weak<dyn ParameterSource>>,
}

struct Inner {
    state: InstanceState,
    source: ControlSource,
    /// Oversampling factor of an effect's network.
    oversampling: usize,
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
            tuning_handover: TuningHandover::default(),
            inner: Mutex::new(Inner {
                state,
                source: product.source(),
                oversampling: 1,
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
            }),
            arrival: AtomicCell::new(None),
            retired: AtomicCell::new(None),
            release_ms: AtomicCell::default(),
            model_voices: AtomicCell::default(),
            uses_audio_input: AtomicBool::default(),
            size: AtomicCell::new(1.0),
            quality: AtomicCell::default(),
            channels: AtomicCell::new(InputChannels::Stereo),
            has_stereo_input: AtomicBool::new(true),
            playback_failure: AtomicCell::new(None),
            variant_requested: AtomicBool::default(),
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

    /// Sets the oversampling factor of an effect's network: 1, 2 or 4.
    pub fn set_oversampling(&self, factor: usize) {
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

    /// Returns the requested executor.
    #[must_use]
    pub fn executor(&self) -> ExecutorSelection {
        self.inner().state.executor
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

    /// Returns the method of rate conversion.
    #[must_use]
    pub fn resampling(&self) -> Resampling {
        self.inner().state.resampling
    }

    /// Sets the largest variant that may be used, 0 … 1; the model changes with a cross-fade.
    pub fn set_size(&self, size: f32) {
        let mut inner = self.inner();
        let before = self.size.swap(size);
        let header = inner.model.as_ref().map(|model| model.header());
        let variant = |size| header.and_then(|header| header.variant(size));
        if variant(before) != variant(size) {
            self.load(&mut inner);
        }
    }

    /// Sets the quality of a model with variants; the model changes with a cross-fade.
    pub fn set_quality(&self, quality: Quality) {
        self.quality.store(quality);
        self.session.set_quality(quality);
    }

    /// Sets the channels of a stereo input that the model processes; the model changes with a
    /// cross-fade.
    pub fn set_channels(&self, channels: InputChannels) {
        let mut inner = self.inner();
        let before = self.processed_channels(&inner);
        self.channels.store(channels);
        if self.processed_channels(&inner) != before {
            self.load(&mut inner);
        }
    }

    /// Sets whether the input has two channels, initially true; a mono input costs half as much.
    pub fn set_stereo_input(&self, has_stereo_input: bool) {
        let mut inner = self.inner();
        let before = self.processed_channels(&inner);
        self.has_stereo_input.store(has_stereo_input, Relaxed);
        if self.processed_channels(&inner) != before {
            self.load(&mut inner);
        }
    }

    /// Returns the channels that the model processes.
    fn processed_channels(&self, inner: &Inner) -> InputChannels {
        match self.channels.load() {
            _ if !self.has_stereo_input.load(Relaxed) => InputChannels::Mono,
            // An instrument follows one sound.
            InputChannels::Stereo if !inner.uses_audio_input() => InputChannels::Mono,
            channels => channels,
        }
    }

    /// For the audio thread, which cannot load models: notes the requested size, quality and
    /// channels. If any has changed, the main thread must call
    /// [`InstanceHandle::apply_requested_variant`].
    pub fn request_variant(&self, size: f32, quality: Quality, channels: InputChannels) {
        let is_other_model =
            size.to_bits() != self.size.load().to_bits() || quality != self.quality.load();
        let is_other = is_other_model || channels != self.channels.load();
        self.variant_requested.store(is_other, Relaxed);
    }

    /// For the audio thread: returns whether the main thread has to be called.
    #[must_use]
    pub fn needs_main_thread(&self) -> bool {
        self.variant_requested.load(Relaxed)
    }

    /// Applies the requested size, quality and channels. For the main thread.
    pub fn apply_requested_variant(&self) {
        if let Some(source) = self.parameter_source.get().and_then(Weak::upgrade) {
            self.set_size(source.size());
            self.set_quality(source.quality());
            self.set_channels(source.input_channels());
        }
    }

    /// Sets whether the model is embedded in the project, unless it is too large.
    pub fn set_embed_model(&self, embed: bool) {
        self.inner().state.embed = embed;
        self.host_notifier.mark_state_changed();
    }

    /// Returns whether the model is embedded in the project.
    #[must_use]
    pub fn embeds_model(&self) -> bool {
        self.inner().state.embed
    }

    /// Returns the ids of the parameters or latent controls that the window's pad turns, if they
    /// were chosen.
    #[must_use]
    pub fn pad(&self) -> Option<[String; 2]> {
        self.inner().state.pad.clone()
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
        self.uses_audio_input
            .store(inner.uses_audio_input(), Relaxed);
        let Some(model) = inner.model.clone() else {
            self.send_mapping(ControlMapping::default());
            return self.session.unload();
        };
        self.release_ms.store(release_ms(&model));
        self.model_voices.store(ModelVoices::new(
            &model.header().performance.unwrap_or_default(),
        ));
        let mut mapping = inner.control_mapping();
        let mut controls = mapping.latents.clone();
        if let Some(source) = self.parameter_source.get().and_then(Weak::upgrade) {
            inner.oversampling = source.oversampling();
            self.size.store(source.size());
            self.set_quality(source.quality());
            self.channels.store(source.input_channels());
            let parameters = source.player_parameters();
            controls.extend(parameters.notes.controls());
            let turned = mapping
                .macros
                .iter()
                .zip(parameters.macros)
                .filter(|(_, position)| *position != MACRO_CENTRE);
            controls.extend(turned.filter_map(|(range, position)| {
                Some((range.as_ref()?.id, range.as_ref()?.value(position)))
            }));
        }
        let (source, oversampling, size) = (inner.source, inner.oversampling, self.size.load());
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

    /// Waits until the model has loaded, up to `timeout`.
    pub fn wait_until_loaded(&self, timeout: Duration) {
        let since = Instant::now();
        while self.session.status() == LoadStatus::Loading && since.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the state of the last request, files that are being read included.
    #[must_use]
    pub fn status(&self) -> LoadStatus {
        let mut inner = self.inner();
        if let Some(reason) = self.playback_failure.take() {
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

    /// Reports the reason of a panic, after which nothing is played. For any thread.
    pub fn report_playback_failure(&self, reason: String) {
        self.playback_failure.store(Some(Box::new(reason)));
    }

    /// For a player that starts anew: forgets the failure of the one before.
    pub(crate) fn clear_playback_failure(&self) {
        drop(self.playback_failure.take());
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

    /// Returns the settings of the window.
    #[must_use]
    pub fn window_settings(&self) -> WindowSettings {
        self.inner().state.window
    }

    /// Sets the settings of the window.
    pub fn set_window_settings(&self, settings: WindowSettings) {
        self.inner().state.window = settings;
    }

    /// Returns the preset that was loaded or saved last.
    #[must_use]
    pub fn preset(&self) -> Option<PresetLocation> {
        self.inner().state.preset.clone()
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

    /// For the audio thread: returns the time in which the model's notes fall by 60 dB after their
    /// release, ms, unless a control changes it.
    #[must_use]
    pub fn release_ms(&self) -> f32 {
        self.release_ms.load()
    }

    /// Returns whether the model processes audio input, as effects and codecs do. Wait-free.
    #[must_use]
    pub fn uses_audio_input(&self) -> bool {
        self.uses_audio_input.load(Relaxed)
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
        drop(self.retired.take());
        drop(self.arrival.swap(Some(mapping.into())));
        self.host_notifier.mark_names_changed();
    }

    /// For the audio thread: takes the newest control mapping, and returns whether there is one.
    pub fn receive_mapping(&self, mapping: &mut Box<ControlMapping>) -> bool {
        let Some(new) = self.arrival.take() else {
            return false;
        };
        // If the previous mapping has not been fetched yet it leaks, a few bytes, as the audio
        // thread must not free memory.
        if let Some(unfetched) = self.retired.swap(Some(std::mem::replace(mapping, new))) {
            std::mem::forget(unfetched);
        }
        true
    }

    /// Returns the present control mapping, for an audio thread that starts.
    #[must_use]
    pub fn control_mapping(&self) -> ControlMapping {
        let inner = self.inner();
        drop(self.arrival.take());
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
