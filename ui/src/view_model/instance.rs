//! The view model of an instance.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use egui::ThemePreference;
use ondes_engine::effects::Activity;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlSource, InputAnalysis};
use ondes_engine::realtime::{Health, LoadStatus, Quality};
use ondes_player::choice;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::{self, FileReference, MissingFile};
use ondes_player::macros::MACRO_COUNT;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::parameter::{
    BEND_RANGE, BLOCK_DC, BYPASS, CABINET, CHANNELS, DRIVER, GATE, GLIDE, INPUT_GAIN,
    INTERFACE_LEVEL, MIX, MODE, MPE, OUTPUT_GAIN, OUTPUT_LEVEL, OVERSAMPLING, PARAMETERS,
    Parameter, ParameterId, ParameterKind, QUALITY, REVERB, REVERB_TIME, SIZE, TONE, TONE_GAINS,
    TRANSPOSE, TUNE, VOICES,
};
use ondes_player::parameter_source::{ParameterSetter, ParameterSource};
use ondes_player::preset::store;
use ondes_player::product::Product;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::branch_state::BranchState;
use ondes_player::rig::scene::Scenes;
use ondes_player::snapshot::SoundSnapshot;
use ondes_player::state::WindowTheme;

use super::cabinet_list::CabinetList;
use super::consent::ConsentQuestion;
use super::device_search::DeviceSearch;
use super::hint::{Hint, INPUT_HINT, KEYBOARD_HINT};
use super::idle_host::IdleHost;
use super::latent_rows::LatentRows;
use super::model_list::{ModelList, ModelLocation};
use super::preset_list::PresetList;
use super::program;
use super::rig::NewBlock;
use super::signal_data::SignalData;
use super::spectrum::Spectrum;
use super::tuner::Tuner;
use super::undo::Recorder;
use crate::command::FilePurpose;
use crate::file_dialog::{self, FileDialog};
use crate::view::{
    ChainView, EngineView, ExecutorDevices, ExecutorView, HistoryView, Knob, KnobsView, MacroKnob,
    MessagesView, MethodChoice, MixerView, ModelEntryId, ModelView, ModelsView, PlayView,
    PresetsView, ProgramView, RigView, SCENE_PARAMETERS, SoundingNote, Surroundings, TuningView,
    ViewModel, WindowView,
};

/// Reason why a model cannot be embedded in a project.
const TOO_LARGE: &str = "The model is larger than 16 MB or is a TorchScript program.";
/// Reason why an instrument has no choice of devices.
const NATIVE_ONLY: &str = "Instruments run on the native executor.";
/// Peak below which a block never wakes the window, −100 dBFS.
const SOFTEST: f32 = 1e-5;
/// Time without a block after which a host counts as stopped.
const STOPPED: Duration = Duration::from_millis(500);

/// State of an instance at the last refresh, and everything that only its window needs.
pub struct InstanceViewModel {
    pub(super) instance: Arc<InstanceHandle>,
    surroundings: Surroundings,
    pub(super) source: Arc<dyn ParameterSource>,
    pub(super) models: ModelList,
    pub(super) presets: PresetList,
    pub(super) cabinets: CabinetList,
    devices: DeviceSearch,
    /// The model that is being auditioned, and the start of the audition.
    pub(super) auditioned: Option<(ModelEntryId, Instant)>,
    /// Threads that read files.
    pub(super) background_jobs: Vec<JoinHandle<()>>,
    /// The open dialog and its purpose.
    pub(super) dialog: Option<(FilePurpose, FileDialog)>,
    can_browse: bool,
    /// A notice of the window itself.
    pub(super) own_notice: Option<&'static str>,
    pub(super) idle_host: IdleHost,
    pub(super) recorder: Recorder,
    /// Names of the changes that undo and redo would make.
    undoable: [Option<String>; 2],
    /// The model being loaded, which counts as recent once it has been read.
    pub(super) loading: Option<ModelLocation>,
    status: LoadStatus,
    pub(super) missing: Option<MissingFile>,
    pub(super) question: ConsentQuestion,
    notice: Option<String>,
    pub(super) model: Option<Arc<Model>>,
    model_path: Option<PathBuf>,
    macros: Vec<MacroKnob>,
    latents: LatentRows,
    voice: Vec<Knob>,
    /// Name of the tuning, and why it cannot be read, if so.
    tuning: Option<(String, Option<String>)>,
    chain: Vec<Knob>,
    blocks: Vec<BlockState>,
    /// `[block]`: why it is not heard as it should be, if so.
    block_problems: Vec<Option<String>>,
    /// `[block]`: peak of its output.
    block_peaks: Vec<f32>,
    block_activities: Vec<Option<Activity>>,
    branches: [BranchState; 2],
    scenes: Scenes,
    scene_midi: [MidiBinding; 3],
    programs: Vec<(ProgramNumber, String)>,
    /// Threads that read files of new blocks.
    pub(super) new_blocks: Vec<NewBlock>,
    /// Remark about the knobs of the chain.
    remark: Option<String>,
    cabinet: Option<FileReference>,
    pub(super) missing_cabinet: Option<MissingFile>,
    mixer: [Knob; 3],
    health: Option<Health>,
    qualities: Vec<String>,
    methods: Vec<MethodChoice>,
    input_analysis: Option<InputAnalysis>,
    input: SignalData,
    output: SignalData,
    spectrum: Spectrum,
    pub(super) tuner: Tuner,
    notes: Vec<SoundingNote>,
    /// Samples recorded by the monitor, and the time of the last change.
    recorded: (usize, Instant),
    moving: bool,
}

impl InstanceViewModel {
    /// Creates the view model of an instance with its parameters.
    #[must_use]
    pub fn new(
        instance: Arc<InstanceHandle>,
        source: Arc<dyn ParameterSource>,
        models: ModelList,
    ) -> Self {
        let knob = |id| {
            Parameter::get(id).map(|parameter| parameter_knob(parameter, id, parameter.default()))
        };
        let voice = [TRANSPOSE, TUNE, MODE, GLIDE, VOICES, BEND_RANGE, MPE];
        let voice = voice
            .into_iter()
            .filter(|id| {
                Parameter::get(*id).is_some_and(|voice| voice.applies_to(instance.product))
            })
            .filter_map(knob)
            .collect();
        let mixer = [INPUT_GAIN, OUTPUT_GAIN, MIX]
            .map(|id| parameter_knob(&PARAMETERS[id.0 as usize], id, 0.0));
        let recorded = (instance.monitor.recorded_samples(), Instant::now());
        let presets = PresetList::new(instance.product, store::folders());
        let mut model = Self {
            instance,
            surroundings: Surroundings::default(),
            source,
            models,
            presets,
            cabinets: CabinetList::of_user(),
            devices: DeviceSearch::default(),
            auditioned: None,
            background_jobs: Vec::new(),
            dialog: None,
            can_browse: file_dialog::is_available(),
            own_notice: None,
            idle_host: IdleHost::default(),
            recorder: Recorder::default(),
            undoable: [None, None],
            loading: None,
            status: LoadStatus::Empty,
            missing: None,
            question: ConsentQuestion::default(),
            notice: None,
            model: None,
            model_path: None,
            macros: Vec::new(),
            latents: LatentRows::default(),
            voice,
            tuning: None,
            chain: Vec::new(),
            blocks: Vec::new(),
            block_problems: Vec::new(),
            block_peaks: Vec::new(),
            block_activities: Vec::new(),
            branches: Default::default(),
            scenes: Scenes::default(),
            scene_midi: [MidiBinding::None; 3],
            programs: Vec::new(),
            new_blocks: Vec::new(),
            remark: None,
            cabinet: None,
            missing_cabinet: None,
            mixer,
            health: None,
            qualities: Vec::new(),
            methods: Vec::new(),
            input_analysis: None,
            input: SignalData::new(),
            output: SignalData::new(),
            spectrum: Spectrum::new(),
            tuner: Tuner::default(),
            notes: Vec::new(),
            recorded,
            moving: false,
        };
        model.refresh();
        model
    }

    /// Sets the program that the window belongs to: a plugin's host, unless this is called.
    pub fn set_surroundings(&mut self, surroundings: Surroundings) {
        self.surroundings = surroundings;
        self.idle_host.is_app = surroundings != Surroundings::Host;
    }

    /// Reads the state of the instance. Returns the time after which to refresh again even if there
    /// is no sound.
    pub fn refresh(&mut self) -> Option<Duration> {
        self.poll_dialog();
        self.add_new_blocks();
        let scanning =
            self.models.poll() | self.presets.poll() | self.cabinets.poll() | self.devices.poll();
        self.background_jobs.retain(|job| !job.is_finished());
        let instance = &self.instance;
        self.status = match &self.presets.problem {
            Some(problem) => LoadStatus::Failed(problem.clone()),
            None => instance.status(),
        };
        (self.missing, self.model) = (instance.missing_model(), instance.model());
        self.model_path = instance.model_path();
        self.cabinet = instance.read_state(|state| state.cabinet.clone());
        self.blocks = instance.blocks();
        let peaks = self.blocks.iter();
        self.block_peaks = peaks
            .map(|block| instance.rig_handover.peak(block))
            .collect();
        let activities = self.blocks.iter();
        self.block_activities = activities
            .map(|block| instance.rig_handover.activity(block))
            .collect();
        self.branches = instance.branches();
        self.scenes = instance.scenes();
        let programs = instance.programs().into_iter();
        self.programs = programs
            .map(|program| (program.number, self.program_name(&program.choice)))
            .collect();
        let problems = self.blocks.iter();
        self.block_problems = problems
            .map(|block| instance.block_problem(block))
            .collect();
        (self.notice, self.missing_cabinet) = (instance.notice(), instance.missing_cabinet());
        // What is heard is as late as the model and its blocks are.
        self.health = instance.session.health().map(|health| {
            let blocks = instance.rig_handover.latency_samples();
            let rate = f64::from(instance.monitor.rate_hz().max(1.0));
            Health {
                latency_samples: health.latency_samples + blocks,
                latency_ms: health.latency_ms + 1e3 * blocks as f64 / rate,
                ..health
            }
        });
        self.input_analysis = instance.session.input_analysis();
        self.tuning = instance
            .read_state(|state| state.tuning.clone())
            .map(|files| (files.name(), instance.tuning_problem()));
        self.qualities = self.quality_options();
        self.methods = self
            .model
            .as_deref()
            .map(program::method_choices)
            .unwrap_or_default();
        if !instance.is_auditioning() && self.background_jobs.is_empty() {
            self.auditioned = None;
        }
        if self.background_jobs.is_empty()
            && let Some(location) = self.loading.take()
        {
            if matches!(self.status, LoadStatus::Failed(_)) {
                self.ask_for_consent();
            } else {
                self.models.set_recent(&location);
                self.await_sound();
            }
        }
        self.refresh_question();
        if let Some(location) = self.presets.saved.take() {
            self.instance.set_preset(Some(location));
        }
        let preset = self.instance.read_state(|state| state.preset.clone());
        self.presets.set_current(preset.as_ref());
        self.refresh_knobs();
        self.record_finished();
        self.undoable = self.instance.history.labels();
        self.refresh_signals();
        self.idle_host.update(self.recorded.0, &mut self.own_notice);
        let busy = scanning
            || !self.background_jobs.is_empty()
            || !self.new_blocks.is_empty()
            || self.status == LoadStatus::Loading;
        let waiting = self.dialog.is_some() || self.instance.midi_bindings.is_learning();
        match (busy, waiting) {
            (true, _) => Some(Duration::from_millis(50)),
            (false, true) => Some(Duration::from_millis(100)),
            (false, false)
                if self.tuner.is_open()
                    && (self.tuner.has_reading() || self.input.peak() > SOFTEST) =>
            {
                Some(Duration::from_millis(33))
            }
            (false, false) if self.auditioned.is_some() => Some(Duration::from_millis(200)),
            (false, false) => self.idle_host.next_update(),
        }
    }

    /// Begins to wait for the host to process what was loaded.
    pub(super) fn await_sound(&mut self) {
        self.idle_host.begin(self.recorded.0);
    }

    fn refresh_knobs(&mut self) {
        (self.chain, self.remark) = (self.chain_knobs(), self.level_remark());
        let bindings = &self.instance.midi_bindings;
        let midi = |id| {
            Parameter::get(id)
                .map(|parameter| bindings.binding(parameter.id))
                .unwrap_or_default()
        };
        for knob in self
            .voice
            .iter_mut()
            .chain(&mut self.chain)
            .chain(&mut self.mixer)
        {
            knob.value = self.source.normalized(knob.id).unwrap_or(knob.default);
            knob.midi = Some(midi(knob.id));
        }
        self.scene_midi = SCENE_PARAMETERS.map(midi);
        self.latents.refresh(&self.instance);
        let controls = self.latents.controls().all();
        self.macros.clear();
        for index in 0..MACRO_COUNT {
            let id = ParameterId(index as u32);
            let Some((parameter, value)) = Parameter::get(id).zip(self.source.value(id)) else {
                continue;
            };
            let mut knob = Knob {
                midi: Some(midi(id)),
                ..parameter_knob(parameter, id, value)
            };
            let name = self.instance.macro_control(index);
            let control = name
                .as_ref()
                .and_then(|name| controls.iter().position(|control| control.name == *name));
            let label = self.instance.macro_label(index);
            let turns = label.is_some();
            if let Some(label) = label {
                knob.name = label;
            }
            if let Some(control) = control {
                knob.tooltip.clone_from(&controls[control].description);
            }
            self.macros.push(MacroKnob {
                knob,
                control,
                turns,
            });
        }
    }

    fn refresh_signals(&mut self) {
        let monitor = &self.instance.monitor;
        let recorded = monitor.recorded_samples();
        if recorded != self.recorded.0 {
            self.recorded = (recorded, Instant::now());
        }
        let Self { input, output, .. } = self;
        monitor.levels([&mut input.levels, &mut output.levels]);
        monitor.waves([&mut input.samples, &mut output.samples]);
        for signal in [&mut *input, &mut *output] {
            self.spectrum
                .compute(&signal.samples, &mut signal.spectrum_db);
        }
        self.moving =
            self.recorded.1.elapsed() < STOPPED && (input.is_visible() || output.is_visible());
        if !self.moving {
            // A steady noise that is too soft to be seen does not wake the window again and again.
            let noise = if self.tuner.is_open() {
                0.0
            } else {
                2.0 * input.peak().max(output.peak())
            };
            monitor.wake_on_sound(noise.max(SOFTEST));
        }
        self.tuner.refresh(
            &self.instance.tuner,
            monitor.rate_hz().into(),
            Instant::now(),
        );
        self.notes.clear();
        self.notes.extend(
            monitor
                .notes()
                .map(|(key, velocity)| SoundingNote { key, velocity }),
        );
    }

    /// Returns the entry of the loaded model.
    #[must_use]
    pub fn playing(&self) -> Option<ModelEntryId> {
        self.models.with_hash(self.model.as_ref()?.content_hash())
    }

    /// Takes a snapshot of everything that is heard.
    #[must_use]
    pub fn sound_snapshot(&self) -> SoundSnapshot {
        self.instance.sound_snapshot(&*self.source)
    }

    /// Applies a snapshot; an audition ends.
    pub fn apply_sound(&mut self, setter: &impl ParameterSetter, sound: SoundSnapshot) {
        (self.auditioned, self.loading) = (None, None);
        self.instance.apply_sound(&*self.source, setter, sound);
    }

    pub(super) fn wake_host(&self) {
        self.instance.sleep_state.wake_host();
    }

    /// Returns the options for the quality of a model with variants, with the name of the variant
    /// that is chosen automatically; empty for other models.
    fn quality_options(&self) -> Vec<String> {
        if self
            .model
            .as_ref()
            .is_none_or(|model| model.header().variants.is_empty())
        {
            return Vec::new();
        }
        let variant = self.instance.session.variant();
        let name = |(index, name): (usize, &&str)| match &variant {
            Some(variant) if choice::quality(index as f32) == Quality::Auto => {
                format!("{name}: {variant}")
            }
            _ => (*name).to_owned(),
        };
        choice::QUALITIES
            .names
            .iter()
            .enumerate()
            .map(name)
            .collect()
    }

    fn executor_view(&self) -> Option<ExecutorView<'_>> {
        let model = self.model.as_ref()?;
        let is_instrument = self.is(Kind::Instrument);
        let devices = if is_instrument {
            ExecutorDevices::Unavailable(NATIVE_ONLY)
        } else {
            self.devices.view()
        };
        Some(ExecutorView {
            selection: self.instance.read_state(|state| state.executor),
            native_supported: model.program().is_none(),
            devices,
        })
    }

    pub(super) fn find_devices(&mut self) {
        if !self.is(Kind::Instrument) {
            self.devices.search();
        }
    }

    /// Returns the knobs of the signal chain that apply to the model.
    fn chain_knobs(&self) -> Vec<Knob> {
        let header = self.model.as_ref().map(|model| model.header());
        let [bass, middle, treble] = TONE_GAINS;
        let all = [
            GATE,
            bass,
            middle,
            treble,
            TONE,
            CABINET,
            BLOCK_DC,
            REVERB,
            REVERB_TIME,
            CHANNELS,
            OVERSAMPLING,
            SIZE,
            INTERFACE_LEVEL,
            OUTPUT_LEVEL,
        ];
        let applies = |id: &ParameterId| match *id {
            // An instrument played by notes has no audio input.
            GATE | TONE | CHANNELS => self.accepts_audio_files(),
            OVERSAMPLING | INTERFACE_LEVEL | OUTPUT_LEVEL => self.is(Kind::Effect),
            SIZE => header.is_some_and(|header| !header.variants.is_empty()),
            _ => true,
        };
        let knob = |id| {
            let parameter = Parameter::get(id)?;
            let mut knob = parameter_knob(parameter, id, parameter.default());
            if id == BLOCK_DC {
                knob.choices = parameter
                    .options()
                    .iter()
                    .map(|&option| option.to_owned())
                    .collect();
            }
            if id == SIZE {
                let variant = header.and_then(|header| header.variant(self.source.size()));
                knob.name = format!(
                    "Size: {}",
                    variant.map_or("full", |variant| variant.name.as_str())
                );
            }
            Some(knob)
        };
        all.into_iter().filter(applies).filter_map(knob).collect()
    }

    /// Returns why requested levels have no effect on the model.
    fn level_remark(&self) -> Option<String> {
        let model = self.model.as_ref().filter(|_| self.is(Kind::Effect))?;
        let levels = model.header().card.levels.unwrap_or_default();
        let missing: Vec<&str> = self
            .source
            .player_parameters()
            .calibration
            .missing_levels(levels)
            .collect();
        (!missing.is_empty()).then(|| format!("Levels are unchanged: {}.", missing.join(", ")))
    }

    fn is(&self, kind: Kind) -> bool {
        self.model
            .as_ref()
            .is_some_and(|model| model.header().kind == kind)
    }

    /// Returns whether there is an audio input: then a dropped audio file becomes the cabinet.
    pub(super) fn accepts_audio_files(&self) -> bool {
        self.instance.product == Product::Effect || self.instance.audio.uses_audio_input()
    }

    /// Returns what to do first.
    fn hint(&self) -> Hint {
        if self.can_play() {
            KEYBOARD_HINT
        } else {
            INPUT_HINT
        }
    }

    /// Remembers that the user has seen the hint.
    pub(super) fn dismiss_hint(&mut self) {
        let key = self.hint().key;
        self.models.dismiss_hint(key);
    }

    /// Returns whether the window's keyboard plays the model.
    fn can_play(&self) -> bool {
        match self.model.as_ref().map(|model| model.header().kind) {
            None | Some(Kind::Instrument) => self.source.control_source() == ControlSource::Notes,
            Some(Kind::Generator) => true,
            Some(Kind::Effect | Kind::Codec) => false,
        }
    }

    /// Returns the position of a parameter or a latent knob, 0 … 1.
    pub(super) fn knob_position(&self, id: ParameterId) -> Option<f32> {
        self.source
            .normalized(id)
            .or_else(|| Some(self.shown_knob(id)?.value))
    }

    /// Returns the label of a knob.
    pub(super) fn knob_label(&self, id: ParameterId) -> String {
        let shown = self.shown_knob(id).map(|knob| knob.name.clone());
        shown
            .or_else(|| Some(Parameter::get(id)?.label.to_owned()))
            .unwrap_or_default()
    }

    fn shown_knob(&self, id: ParameterId) -> Option<&Knob> {
        let latents = self
            .latents
            .rows
            .iter()
            .flat_map(|row| [&row.scale, &row.offset, &row.hold]);
        let mut knobs = self
            .macros
            .iter()
            .map(|one| &one.knob)
            .chain(latents)
            .chain(&self.chain);
        knobs.find(|knob| knob.id == id)
    }

    /// Returns the knobs that the pad turns.
    pub(super) fn pad(&self) -> (ParameterId, ParameterId) {
        let knob = |id: &str| Parameter::find(id).or_else(|| self.latents.controls().latent_id(id));
        let chosen = self
            .instance
            .read_state(|state| state.pad.clone())
            .and_then(|[horizontal, vertical]| Some((knob(&horizontal)?, knob(&vertical)?)));
        chosen.unwrap_or((ParameterId(0), ParameterId(1)))
    }

    /// Returns the name under which a project saves a knob: a parameter's id, or the name of a
    /// latent control.
    pub(super) fn saved_id(&self, knob: ParameterId) -> Option<String> {
        let latent = || Some(self.latents.controls().latent_control(knob)?.name.clone());
        Parameter::get(knob)
            .map(|parameter| parameter.id.to_owned())
            .or_else(latent)
    }
}

impl ViewModel for InstanceViewModel {
    fn view(&self) -> WindowView<'_> {
        let [input_gain, output_gain, mix] = &self.mixer;
        let source = self.source.control_source();
        let settings = self.instance.read_state(|state| state.window);
        let model = self.model.as_deref().map(|model| {
            let header = model.header();
            let controls = self.latents.controls().all();
            let (entry, path) = (self.playing(), self.model_path.as_deref());
            ModelView {
                entry,
                path,
                card: &header.card,
                kind: header.kind,
                controls,
                embed: self.instance.read_state(|state| state.embed),
                embed_problem: (!library::is_embeddable(model)).then_some(TOO_LARGE),
            }
        });
        // Other kinds process the audio input.
        let is_instrument = self
            .model
            .as_ref()
            .is_none_or(|model| model.header().kind == Kind::Instrument);
        let program = self.model.as_ref().and_then(|model| model.program());
        WindowView {
            product: self.instance.product,
            surroundings: self.surroundings,
            messages: MessagesView {
                status: &self.status,
                missing: self.missing.as_ref(),
                untrusted: self.question.program(),
                asks_for_consent: self.question.is_asked(),
                notice: self.own_notice.or(self.notice.as_deref()),
                hint: Some(self.hint())
                    .filter(|hint| !self.models.is_dismissed(hint.key))
                    .map(|hint| hint.text(self.surroundings)),
            },
            history: HistoryView {
                undo: self.undoable[0].as_deref(),
                redo: self.undoable[1].as_deref(),
                slot: self.instance.compare_slots.active(),
            },
            model,
            models: ModelsView {
                list: &self.models.list,
                auditioned: self.auditioned.map(|(id, _)| id),
            },
            presets: PresetsView {
                list: &self.presets.entries,
                current: self.presets.current,
                name: self.presets.current_name.as_deref(),
                changed: self.presets.is_changed(&*self.source, &self.instance),
                can_save: self.presets.can_save(),
            },
            knobs: KnobsView {
                macros: &self.macros,
                voice: &self.voice,
                tuning: self.tuning.as_ref().map(|(name, problem)| TuningView {
                    name,
                    problem: problem.as_deref(),
                }),
                latents: &self.latents.rows,
                pad: self.pad(),
            },
            chain: ChainView {
                knobs: &self.chain,
                remark: self.remark.as_deref(),
                cabinet: self.cabinet.as_ref().map(|cabinet| cabinet.name.as_str()),
                path: self
                    .cabinet
                    .as_ref()
                    .and_then(|cabinet| cabinet.path.as_deref()),
                automatic: self.instance.read_state(|state| state.automatic_cabinet),
                missing: self.missing_cabinet.as_ref(),
                cabinets: &self.cabinets.list,
                folder: self.cabinets.folder(),
                accepts_audio_files: self.accepts_audio_files(),
            },
            rig: RigView {
                blocks: &self.blocks,
                problems: &self.block_problems,
                peaks: &self.block_peaks,
                activities: &self.block_activities,
                branches: self.branches,
                scenes: &self.scenes,
                scene_midi: self.scene_midi,
                programs: &self.programs,
            },
            mixer: MixerView {
                input_gain,
                output_gain,
                mix,
                bypass: self.source.value(BYPASS).is_some_and(|value| value > 0.5),
                input: self.input.view(),
                output: self.output.view(),
                sample_rate_hz: self.instance.monitor.rate_hz(),
            },
            play: PlayView {
                pitch_hz: self
                    .input_analysis
                    .and_then(|analysis| analysis.pitch)
                    .map(|pitch| 440.0 * ((pitch - 69.0) / 12.0).exp2()),
                loudness_db: self.input_analysis.map(|analysis| analysis.loudness_db),
                notes: &self.notes,
                control_source: (is_instrument && self.instance.product == Product::Instrument)
                    .then_some(source),
                follows_side_chain: (is_instrument && self.instance.has_side_chain.load(Relaxed))
                    .then(|| self.source.follows_side_chain()),
                can_play: self.can_play(),
            },
            tuner: self.tuner.view(self.accepts_audio_files(), settings.tuner),
            engine: EngineView {
                driver: self.source.value(DRIVER).unwrap_or_default() as usize,
                resampling: self.instance.read_state(|state| state.resampling),
                executor: self.executor_view(),
                program: program.map(|program| ProgramView {
                    methods: &self.methods,
                    settings: &program.settings,
                    options: &program.options,
                }),
                health: self.health,
                qualities: &self.qualities,
                quality: self.source.value(QUALITY).unwrap_or_default() as usize,
            },
            moving: self.moving,
            can_browse: self.can_browse,
            scale: settings.scale,
            theme: match settings.theme {
                WindowTheme::Dark => ThemePreference::Dark,
                WindowTheme::Light => ThemePreference::Light,
                WindowTheme::System => ThemePreference::System,
            },
        }
    }

    fn format_value(&self, knob: ParameterId, position: f32) -> String {
        let Some(text) = self.instance.format_value(knob, position) else {
            return String::new();
        };
        // The label of a bound macro shows the control's name already.
        let control = self
            .macros
            .get(knob.0 as usize)
            .filter(|one| one.knob.id == knob)
            .and_then(|one| one.control);
        control
            .and_then(|index| text.strip_prefix(self.latents.controls().all()[index].name.as_str()))
            .map_or(text.clone(), |value| value.trim().to_owned())
    }

    fn parse_value(&self, knob: ParameterId, text: &str) -> Option<f32> {
        self.instance.parse_value(knob, text)
    }
}

/// Returns the knob of a parameter with this value, in the parameter's unit.
fn parameter_knob(parameter: &Parameter, id: ParameterId, value: f32) -> Knob {
    let choices = match parameter.kind {
        ParameterKind::Choice(choices) => {
            choices.names.iter().map(|&name| name.to_owned()).collect()
        }
        _ => Vec::new(),
    };
    Knob {
        id,
        name: parameter.label.to_owned(),
        tooltip: parameter.tooltip.to_owned(),
        value: parameter.normalize(value),
        default: parameter.normalize(parameter.default()),
        steps: parameter.steps(),
        choices,
        midi: Some(MidiBinding::None),
    }
}

impl Drop for InstanceViewModel {
    fn drop(&mut self) {
        if self.instance.is_auditioning() || self.auditioned.is_some() {
            self.instance.end_audition();
        }
        // Joined, since a plugin's code may be unloaded after this.
        for job in self.background_jobs.drain(..) {
            let _ = job.join();
        }
    }
}
