//! What passes between a window and its owner: data to draw goes in, what the user did comes out.

use std::path::{Path, PathBuf};

use egui::ThemePreference;
use ondes_engine::executor::Device;
use ondes_engine::model::{Card, Control, Kind};
use ondes_engine::realtime::{Driver, Health, Status};
use ondes_engine::wish::Wish;

/// Who a window belongs to: the plugin's editor, or the app.
///
/// All three are asked while a frame is drawn, on the window's thread; none may wait.
pub trait Owner {
    /// Everything that is drawn, as it is now.
    fn view(&self) -> View<'_>;

    /// What a knob says when it stands at `value` (0 … 1), with its unit: `-6.0 dB`.
    fn text(&self, knob: KnobId, value: f32) -> String;

    /// Where a knob stands (0 … 1) when it says what a person has typed, with or without the unit; none for what it cannot say.
    fn parse(&self, knob: KnobId, text: &str) -> Option<f32>;
}

/// Everything that is drawn. Any number may be anything, NaN too: what cannot be drawn is left out.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// What the session is up to.
    pub status: &'a Status,
    /// The file that the project wants and nobody can find; it is said in place of the status.
    pub missing: Option<Missing<'a>>,
    /// What the user should know of the model that plays; it plays all the same.
    pub notice: Option<&'a str>,
    /// What is played.
    pub model: Option<Model<'a>>,
    /// The models that can be chosen, in the order to show them.
    pub entries: &'a [Entry],
    /// The entry that is being listened to before it is loaded.
    pub auditioned: Option<EntryId>,
    /// Whether the model is kept in the project; none where that is not offered.
    pub embed: Option<bool>,
    /// Why it cannot be.
    pub embed_problem: Option<&'a str>,

    /// The presets that can be chosen, in the order to show them.
    pub presets: &'a [Preset],
    /// What was loaded or saved last.
    pub preset: Option<PresetId>,
    /// Something has been turned since.
    pub changed: bool,
    /// Whether the owner can save presets; where not, and where there are none, nothing is shown of them.
    pub can_save_presets: bool,

    /// The knobs for the model's own controls; usually eight.
    pub macros: &'a [Macro],
    /// Knobs for how notes are played: glide, transpose, vibrato … . May be empty.
    pub voice: &'a [Knob],
    /// What the model thinks in, where that can be bent; may be empty.
    pub latents: &'a [Latent],
    /// What stands before and after the model; none where nothing can.
    pub chain: Option<Chain<'a>>,
    /// What the pad turns across and upwards; none where no pad is offered.
    pub pad: Option<(KnobId, KnobId)>,
    /// Gain before the model.
    pub input_gain: &'a Knob,
    /// Gain after all.
    pub output_gain: &'a Knob,
    /// Dry to wet.
    pub mix: &'a Knob,
    /// The input passes unchanged.
    pub bypass: bool,
    /// The slot that is heard.
    pub slot: Slot,

    /// The host's rate, Hz.
    pub sample_rate_hz: f32,
    /// The driver that was asked for.
    pub driver: Driver,
    /// What runs the network, where that can be chosen.
    pub running: Option<Running<'a>>,
    /// How the session is doing, while it plays.
    pub health: Option<Health>,
    /// Names of the forms that the model can be played in, such as `f32` and `int8`; may be empty.
    pub qualities: &'a [String],
    /// Which of them is played.
    pub quality: usize,

    /// What comes in.
    pub input: Sound<'a>,
    /// What goes out.
    pub output: Sound<'a>,
    /// Pitch that is followed, Hz; none where there is no pitch.
    pub pitch_hz: Option<f32>,
    /// Loudness that is followed, dB.
    pub loudness_db: Option<f32>,
    /// Notes that sound.
    pub notes: &'a [Note],
    /// What plays the model; none where there is no choice.
    pub played_by: Option<PlayedBy>,
    /// Whether the window's keyboard can be played.
    pub can_play: bool,
    /// Whether the computer's keys play it as soon as the window opens.
    pub keys_on_start: bool,
    /// Whether any of the sound's figures will be others in the next frame.
    pub moving: bool,

    /// Whether the owner can let MIDI controllers turn knobs; where not, that is not offered.
    pub can_learn: bool,
    /// Whether the owner can ask for a file; where not, that is not offered.
    pub can_browse: bool,
    /// Whether the owner can give the worker a time of the user's choice; where not, none is offered.
    pub can_time: bool,

    /// Size of the window's contents, 1 is 100 %; [`SCALES`](crate::SCALES) are offered.
    pub scale: f32,
    /// Dark, light, or as the system is.
    pub theme: ThemePreference,
}

/// What is played.
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// Its entry, where it has one.
    pub entry: Option<EntryId>,
    /// Who made it and how good it is.
    pub card: &'a Card,
    /// What it is to a player.
    pub kind: Kind,
    /// What macros can be bound to.
    pub controls: &'a [Control],
}

/// What runs the network of a model.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// What was chosen.
    pub wish: Wish,
    /// Whether our own code can run it: programs are for libtorch.
    pub natively: bool,
    /// Where libtorch can compute.
    pub devices: Devices<'a>,
}

/// Where libtorch can compute. To look for that it has to be opened, which is done when somebody wants to choose.
#[derive(Clone, Copy)]
pub enum Devices<'a> {
    /// Nobody has looked yet.
    Unknown,
    /// There.
    These(&'a [Device]),
    /// Nowhere, or not this model, for that reason.
    None(&'a str),
}

/// A model's file that is not where it was.
#[derive(Clone, Copy)]
pub struct Missing<'a> {
    /// The model's name.
    pub name: &'a str,
    /// Where it was looked for, and what was wrong there.
    pub looked: &'a [String],
}

/// Names an entry for as long as the owner lives, also when the list is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId(pub u64);

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It came with Ondes.
    Bundled,
    /// From the user's folders.
    User,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name for commands.
    pub id: EntryId,
    /// Name to show.
    pub name: String,
    /// Who made it; may be empty.
    pub author: String,
    /// What it is to a player.
    pub kind: Kind,
    /// Where it comes from.
    pub source: Source,
    /// Marked by the user.
    pub favourite: bool,
    /// Was loaded lately.
    pub recent: bool,
    /// How good it is, in a few words, such as [`quality_line`](crate::quality_line) makes; may be empty.
    pub quality: String,
}

/// Names a knob for as long as the owner lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KnobId(pub u32);

/// Something to turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Its name for commands.
    pub id: KnobId,
    /// Name to show.
    pub name: String,
    /// Where it stands, 0 … 1.
    pub value: f32,
    /// Where it goes back to, 0 … 1.
    pub default: f32,
    /// How many places it can stand at, evenly spread; below 2 for anywhere.
    pub steps: u32,
    /// The names of those places from 0 to 1, for a knob that is shown as a drop-down; empty for all others.
    pub choices: Vec<String>,
    /// What else turns it.
    pub midi: Midi,
}

/// Which MIDI controller turns a knob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Midi {
    /// None.
    #[default]
    None,
    /// None, and none can.
    Never,
    /// The next one that is moved.
    Learning,
    /// That one, 0 … 127.
    Controller(u8),
}

/// A knob for one of the model's controls.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// The knob; named after its control.
    pub knob: Knob,
    /// Index into [`Model::controls`]; none while it turns nothing.
    pub control: Option<usize>,
}

/// One of the numbers that a model thinks in, and how it is bent.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Name to show.
    pub name: String,
    /// What it is multiplied with. Named in full, `Latent 1 scale`, as the other two are.
    pub scale: Knob,
    /// What is added.
    pub offset: Knob,
    /// At 1 it stays as it is.
    pub hold: Knob,
    /// Where it is after all that, -1 … 1.
    pub value: f32,
}

/// What stands around a model: gate, tone, cabinet.
#[derive(Clone, Copy)]
pub struct Chain<'a> {
    /// Its knobs.
    pub knobs: &'a [Knob],
    /// What the user should know of how they stand.
    pub remark: Option<&'a str>,
    /// Name of the cabinet's impulse response; none where there is no cabinet.
    pub cabinet: Option<&'a str>,
    /// Its file, where that is known.
    pub path: Option<&'a Path>,
    /// What was asked for and nobody can find or read.
    pub missing: Option<Missing<'a>>,
    /// Files of impulse responses that can be chosen, in the order to show them.
    pub cabinets: &'a [PathBuf],
    /// The folder that they are looked for in.
    pub folder: Option<&'a Path>,
    /// Whether a sound that is dropped on the window becomes the cabinet.
    pub takes_sounds: bool,
}

/// Names a preset for as long as the owner lives, also when the list is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PresetId(pub u64);

/// Everything as it was set once.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name for commands.
    pub id: PresetId,
    /// Name to show.
    pub name: String,
    /// Who made it and what it is like, in a few words that are also searched; may be empty.
    pub about: String,
    /// Where it comes from; only the user's own can be deleted.
    pub source: Source,
    /// Why it cannot be loaded.
    pub problem: Option<String>,
}

/// What plays a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayedBy {
    /// MIDI.
    Notes,
    /// Pitch and loudness of what comes in.
    Input,
}

/// One of two settings to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slot {
    /// The first.
    #[default]
    A,
    /// The second.
    B,
}

impl Slot {
    /// The one that is not this one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Its letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// What a sound looks like.
#[derive(Clone, Copy, Default)]
pub struct Sound<'a> {
    /// `[channel]`.
    pub levels: &'a [Level],
    /// The latest samples of one channel or of all together, -1 … 1; half of them are shown, from where the output rises
    /// through zero. Input and output are equally many, of the same time.
    pub wave: &'a [f32],
    /// `[bin]`, dB: from 0 Hz to half the rate, both included, evenly spread.
    pub spectrum_db: &'a [f32],
}

/// How loud a channel is, since the frame before; -∞ for silence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Of the largest sample, dB re full scale.
    pub peak_db: f32,
    /// Of the mean power, dB re full scale.
    pub rms_db: f32,
}

/// A note that sounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    /// MIDI key, 60 is C4.
    pub key: u8,
    /// How hard it was struck, 0 … 1.
    pub velocity: f32,
}
