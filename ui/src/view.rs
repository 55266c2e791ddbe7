//! The data that a window draws.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use egui::ThemePreference;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::effects::Activity;
use ondes_engine::executor::{Device, ExecutorSelection};
use ondes_engine::model::program::{ProgramOptions, Setting};
use ondes_engine::model::{Card, Control, Kind};
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::{Health, LoadStatus};
use ondes_player::compare_slots::CompareSlot;
use ondes_player::library::MissingFile;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::monitor::MeterLevel;
use ondes_player::parameter::{NEXT_SCENE, PREVIOUS_SCENE, ParameterId, SCENE};
use ondes_player::preset::list::PresetId;
use ondes_player::product::Product;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::branch_state::BranchState;
use ondes_player::rig::scene::Scenes;
use ondes_player::trust::UntrustedProgram;

/// Supplies the data of a window.
///
/// All methods are called on the window's thread while a frame is drawn and must not block.
pub trait ViewModel {
    /// Returns the data to draw.
    fn view(&self) -> WindowView<'_>;

    /// Formats the value of a knob at a position, 0 … 1, with its unit, such as `-6.0 dB`.
    fn format_value(&self, knob: ParameterId, position: f32) -> String;

    /// Returns the position, 0 … 1, for a typed value, with or without its unit; `None` if it is
    /// not valid.
    fn parse_value(&self, knob: ParameterId, text: &str) -> Option<f32>;
}

/// Everything that is drawn. Numbers may have any value, NaN included; what cannot be drawn is left
/// out.
#[derive(Clone, Copy)]
pub struct WindowView<'a> {
    /// The product, whose name is shown and whose kinds of models come first.
    pub product: Product,
    /// Program that the window belongs to.
    pub surroundings: Surroundings,
    /// Messages and questions.
    pub messages: MessagesView<'a>,
    /// Undo, redo and the slots.
    pub history: HistoryView<'a>,
    /// The loaded model.
    pub model: Option<ModelView<'a>>,
    /// Models to choose from.
    pub models: ModelsView<'a>,
    /// Presets.
    pub presets: PresetsView<'a>,
    /// Knobs of the model.
    pub knobs: KnobsView<'a>,
    /// Signal chain around the model.
    pub chain: ChainView<'a>,
    /// Blocks before and after the model.
    pub rig: RigView<'a>,
    /// Gains and signals.
    pub mixer: MixerView<'a>,
    /// Notes, and what the model follows.
    pub play: PlayView<'a>,
    /// Tuner.
    pub tuner: TunerView,
    /// Execution of the model.
    pub engine: EngineView<'a>,
    /// True if meters, samples or notes will have changed in the next frame.
    pub moving: bool,
    /// True if the system's file dialog is available.
    pub can_browse: bool,
    /// Scale of the contents; 1 is 100 %. [`SCALES`](crate::SCALES) are offered.
    pub scale: f32,
    /// Colour theme.
    pub theme: ThemePreference,
}

impl WindowView<'_> {
    /// Returns whether the knobs for notes and pitch apply: effects and codecs process the sound as
    /// it is.
    pub(crate) fn has_voice(&self) -> bool {
        let has_pitch = |model: ModelView<'_>| !matches!(model.kind, Kind::Effect | Kind::Codec);
        !self.knobs.voice.is_empty() && self.model.is_none_or(has_pitch)
    }
}

/// Messages and questions to the user.
#[derive(Clone, Copy)]
pub struct MessagesView<'a> {
    /// State of the session.
    pub status: &'a LoadStatus,
    /// The project's model file, if it was not found; shown in place of the status.
    pub missing: Option<&'a MissingFile>,
    /// A TorchScript program that was to be loaded but may not run; shown in place of the status.
    pub untrusted: Option<&'a UntrustedProgram>,
    /// True if the user is being asked whether it may run.
    pub asks_for_consent: bool,
    /// Notice about the model, which plays nevertheless.
    pub notice: Option<&'a str>,
    /// Hint for a new user, until it is dismissed.
    pub hint: Option<&'a str>,
}

/// Undo, redo and the slots.
#[derive(Clone, Copy)]
pub struct HistoryView<'a> {
    /// Name of the change that undo takes back.
    pub undo: Option<&'a str>,
    /// Name of the change that redo makes again.
    pub redo: Option<&'a str>,
    /// The active slot.
    pub slot: CompareSlot,
}

/// Models to choose from.
#[derive(Clone, Copy)]
pub struct ModelsView<'a> {
    /// The list, in the order to show.
    pub list: &'a [ModelEntry],
    /// The model that is being auditioned.
    pub auditioned: Option<ModelEntryId>,
}

/// Parameters that choose a scene, for which MIDI controllers are learnt on the page of the rig.
pub const SCENE_PARAMETERS: [ParameterId; 3] = [SCENE, PREVIOUS_SCENE, NEXT_SCENE];

/// Blocks before and after the model.
#[derive(Clone, Copy)]
pub struct RigView<'a> {
    /// The blocks, in their order.
    pub blocks: &'a [BlockState],
    /// `[block]`: why it is not heard as it should be, if so.
    pub problems: &'a [Option<String>],
    /// `[block]`: peak of its output, linear.
    pub peaks: &'a [f32],
    /// `[block]`: what its effect is doing, if it tells.
    pub activities: &'a [Option<Activity>],
    /// Settings of the two branches.
    pub branches: [BranchState; 2],
    /// Scenes of their settings.
    pub scenes: &'a Scenes,
    /// Program changes and the names of what they choose.
    pub programs: &'a [(ProgramNumber, String)],
    /// MIDI controllers of [`SCENE_PARAMETERS`].
    pub scene_midi: [MidiBinding; 3],
}

/// Presets.
#[derive(Clone, Copy)]
pub struct PresetsView<'a> {
    /// Presets to choose from, in the order to show.
    pub list: &'a [PresetEntry],
    /// The preset that was loaded or saved last, if it is in the list.
    pub current: Option<PresetId>,
    /// Its name.
    pub name: Option<&'a str>,
    /// True if the sound has changed since.
    pub changed: bool,
    /// True if presets can be saved. Nothing is shown of presets if not, and if there are none.
    pub can_save: bool,
}

/// Knobs of the model and how its notes are played.
#[derive(Clone, Copy)]
pub struct KnobsView<'a> {
    /// Knobs that are bound to controls of the model; usually eight.
    pub macros: &'a [MacroKnob],
    /// Knobs for how notes are played: transpose, glide, …. May be empty.
    pub voice: &'a [Knob],
    /// Tuning of the keys; `None` for equal temperament.
    pub tuning: Option<TuningView<'a>>,
    /// Latents of a codec; may be empty.
    pub latents: &'a [LatentRow],
    /// Knobs that the pad turns, horizontally and vertically.
    pub pad: (ParameterId, ParameterId),
}

/// Gains, and the signals before and after the model.
#[derive(Clone, Copy)]
pub struct MixerView<'a> {
    /// Gain before the model.
    pub input_gain: &'a Knob,
    /// Gain of the output.
    pub output_gain: &'a Knob,
    /// Dry to wet.
    pub mix: &'a Knob,
    /// True if bypass is on.
    pub bypass: bool,
    /// Input signal.
    pub input: SignalView<'a>,
    /// Output signal.
    pub output: SignalView<'a>,
    /// Sample rate of both, the host's, Hz.
    pub sample_rate_hz: f32,
}

/// Notes, and what the model follows.
#[derive(Clone, Copy)]
pub struct PlayView<'a> {
    /// Detected pitch of the input, Hz; `None` if there is no pitch.
    pub pitch_hz: Option<f32>,
    /// Detected loudness of the input, dB.
    pub loudness_db: Option<f32>,
    /// Sounding notes.
    pub notes: &'a [SoundingNote],
    /// Control source; `None` if the model leaves no choice.
    pub control_source: Option<ControlSource>,
    /// True if an effect's side-chain controls its instrument, false if the track does; `None` if
    /// there is no choice.
    pub follows_side_chain: Option<bool>,
    /// True if the window's keyboard can be played.
    pub can_play: bool,
}

/// Execution of the model.
#[derive(Clone, Copy)]
pub struct EngineView<'a> {
    /// Index of the requested driver in [`DRIVERS`](ondes_player::choice::DRIVERS).
    pub driver: usize,
    /// Method of rate conversion, where the model's sample rate is not the host's.
    pub resampling: Resampling,
    /// Requested executor; `None` without a model.
    pub executor: Option<ExecutorView<'a>>,
    /// Methods and settings of a TorchScript program; `None` for other models.
    pub program: Option<ProgramView<'a>>,
    /// Load, latency and errors of the session, while it plays.
    pub health: Option<Health>,
    /// Options for the quality of a model with variants; may be empty.
    pub qualities: &'a [String],
    /// Index of the requested quality.
    pub quality: usize,
}

/// Tuning of the keys by files of Scala.
#[derive(Clone, Copy, Debug)]
pub struct TuningView<'a> {
    /// Names of the files.
    pub name: &'a str,
    /// Reason why they cannot be read; the keys are in equal temperament then.
    pub problem: Option<&'a str>,
}

/// Program that a window belongs to, in whose words the user is told what to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surroundings {
    /// A plugin in a host, which has projects, tracks and a transport.
    #[default]
    Host,
    /// The app, which has sessions and devices.
    App {
        /// True while a sound device is open.
        has_sound: bool,
    },
}

impl Surroundings {
    /// Returns the name of the file that everything is saved in.
    pub(crate) fn document(self) -> &'static str {
        if self == Self::Host {
            "project"
        } else {
            "session"
        }
    }
}

/// Returns the name of a file, unless `name` says the same.
pub(crate) fn other_name<'a>(path: Option<&'a Path>, name: &str) -> Option<Cow<'a, str>> {
    let path = path?;
    let says_more = path.file_stem()?.to_string_lossy().trim() != name.trim();
    says_more.then(|| path.file_name().unwrap_or_default().to_string_lossy())
}

/// The loaded model.
#[derive(Clone, Copy)]
pub struct ModelView<'a> {
    /// Its entry in the list, if any.
    pub entry: Option<ModelEntryId>,
    /// Its file, if it has one.
    pub path: Option<&'a Path>,
    /// Name, author, description and quality.
    pub card: &'a Card,
    /// Kind.
    pub kind: Kind,
    /// Controls that macros can be bound to.
    pub controls: &'a [Control],
    /// True if it is embedded in the project.
    pub embed: bool,
    /// Reason why it cannot be embedded.
    pub embed_problem: Option<&'a str>,
}

/// Executor of the model's network.
#[derive(Clone, Copy)]
pub struct ExecutorView<'a> {
    /// Requested executor.
    pub selection: ExecutorSelection,
    /// True if the native executor supports the model; TorchScript programs need libtorch.
    pub native_supported: bool,
    /// Devices of libtorch.
    pub devices: ExecutorDevices<'a>,
}

/// Methods and settings of a TorchScript program.
#[derive(Clone, Copy)]
pub struct ProgramView<'a> {
    /// Methods to choose from.
    pub methods: &'a [MethodChoice],
    /// Settings that are no numbers.
    pub settings: &'a [Setting],
    /// What is chosen of both.
    pub options: &'a ProgramOptions,
}

/// Method of a TorchScript program to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodChoice {
    /// Name to show.
    pub name: String,
    /// Name for [`ProgramOptions::method`].
    pub method: Option<String>,
}

/// Devices of libtorch. The library is loaded when the menu opens for the first time.
#[derive(Clone, Copy)]
pub enum ExecutorDevices<'a> {
    /// Not searched for yet.
    Unknown,
    /// Available devices.
    Available(&'a [Device]),
    /// No devices, or none for this model, for this reason.
    Unavailable(&'a str),
}

/// Id of a model in the list; stays the same when the list is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelEntryId(pub u64);

/// Origin of a model or a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOrigin {
    /// Bundled with Ondes.
    Bundled,
    /// From the user's folders.
    User,
}

/// A model in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// Id for commands.
    pub id: ModelEntryId,
    /// Name.
    pub name: String,
    /// Author; may be empty.
    pub author: String,
    /// Kind.
    pub kind: Kind,
    /// Origin.
    pub origin: EntryOrigin,
    /// True if the user marked it.
    pub favourite: bool,
    /// Place among the models loaded recently, 0 for the last one.
    pub recent: Option<usize>,
    /// Description in a sentence; may be empty.
    pub about: String,
    /// Summary of its quality, such as that of [`quality_line`](crate::quality_line); may be empty.
    pub quality: String,
    /// Its file, whose name is shown and searched too; `None` if it is bundled.
    pub path: Option<PathBuf>,
}

/// A knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Id for commands.
    pub id: ParameterId,
    /// Label.
    pub name: String,
    /// Tooltip; may be empty.
    pub tooltip: String,
    /// Position, 0 … 1.
    pub value: f32,
    /// Default position, 0 … 1.
    pub default: f32,
    /// Number of positions, evenly spaced; continuous below 2.
    pub steps: u32,
    /// Labels of the positions, for a knob that is drawn as a drop-down; otherwise empty.
    pub choices: Vec<String>,
    /// MIDI binding; `None` if the knob cannot be bound.
    pub midi: Option<MidiBinding>,
}

/// A knob that can be bound to a control of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct MacroKnob {
    /// The knob, labelled with the name of what it turns.
    pub knob: Knob,
    /// Index into [`ModelView::controls`]; `None` if it is not bound.
    pub control: Option<usize>,
    /// It turns that, or settings of blocks.
    pub turns: bool,
}

/// A latent of a codec and its knobs.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentRow {
    /// Label.
    pub name: String,
    /// Factor. Labelled in full, `Latent 1 scale`, as are the other two.
    pub scale: Knob,
    /// Offset.
    pub offset: Knob,
    /// At 1 the value is held.
    pub hold: Knob,
    /// Resulting value, -1 … 1.
    pub value: f32,
}

/// Signal chain around the model: gate, tone, cabinet.
#[derive(Clone, Copy)]
pub struct ChainView<'a> {
    /// Knobs.
    pub knobs: &'a [Knob],
    /// Remark about their settings.
    pub remark: Option<&'a str>,
    /// Name of the cabinet's impulse response; `None` without a cabinet.
    pub cabinet: Option<&'a str>,
    /// Path of its file, if known; `None` for a bundled cabinet.
    pub path: Option<&'a Path>,
    /// True if the cabinet is the one that suits the model.
    pub automatic: bool,
    /// The requested file, if it was not found or could not be read.
    pub missing: Option<&'a MissingFile>,
    /// Impulse responses to choose from, in the order to show.
    pub cabinets: &'a [PathBuf],
    /// Folder of impulse responses.
    pub folder: Option<&'a Path>,
    /// True if an audio file that is dropped on the window becomes the cabinet.
    pub accepts_audio_files: bool,
}

/// A preset in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct PresetEntry {
    /// Id for commands.
    pub id: PresetId,
    /// Name.
    pub name: String,
    /// Model, tags, description and author, which are searched too; may be empty.
    pub about: String,
    /// Origin; only the user's presets can be deleted.
    pub origin: EntryOrigin,
    /// Its file, whose name is shown and searched too; `None` if it is bundled.
    pub path: Option<PathBuf>,
    /// Reason why it cannot be loaded.
    pub problem: Option<String>,
}

/// Meters, waveform and spectrum of a signal.
#[derive(Clone, Copy, Default)]
pub struct SignalView<'a> {
    /// `[channel]`.
    pub levels: &'a [MeterLevel],
    /// Latest samples, -1 … 1, averaged over the channels. Half of them are drawn, from where the
    /// output rises through zero. Input and output have the same length and end at the same time.
    pub wave: &'a [f32],
    /// `[bin]`, dB: evenly spaced from 0 Hz to half the sample rate, both included.
    pub spectrum_db: &'a [f32],
}

/// Range of the frequency of A4, Hz.
pub const REFERENCE_HZ: (f32, f32) = (430.0, 450.0);

/// The tuner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunerView {
    /// True if there is an audio input.
    pub available: bool,
    /// True if it is shown.
    pub open: bool,
    /// True if the output is muted while it is open.
    pub mute: bool,
    /// Frequency of A4, Hz, in [`REFERENCE_HZ`].
    pub reference_hz: f32,
    /// Pitch of the input, Hz; `None` if there is no note.
    pub pitch_hz: Option<f32>,
}

/// A sounding note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoundingNote {
    /// MIDI key; 60 is C4.
    pub key: u8,
    /// Velocity, 0 … 1.
    pub velocity: f32,
}
