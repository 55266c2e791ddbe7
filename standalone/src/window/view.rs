//! What passes between the window and the app: data to draw goes in, what the user did comes out.

use std::path::PathBuf;
use std::sync::Arc;

use ondes_processor::preset::Product;

use super::browse::Browse;
use super::inventory::Inventory;
use super::takes::Takes;
use crate::devices::{AudioChoice, MidiChoice, MidiStatus, Status};
use crate::rack::mix::Settings;
use crate::rack::saved::Input;
use crate::record;

/// Everything that is drawn, but for the instrument of the track that is chosen.
#[derive(Clone)]
pub struct View {
    /// Name to show of the session.
    pub session: String,
    /// Its file, once it has one.
    pub path: Option<PathBuf>,
    /// It is not as its file is.
    pub changed: bool,
    /// Sessions of late, the latest first.
    pub recent: Vec<PathBuf>,
    /// The tracks, in order.
    pub tracks: Vec<TrackView>,
    /// Place of the track that is chosen.
    pub selected: Option<usize>,
    /// Names of the models that MIDI programs choose, in order.
    pub set_list: Vec<String>,
    /// Whether the system has a dialog for files; where not, that is not offered.
    pub can_browse: bool,
    /// The fader after all.
    pub master: Settings,
    /// `[channel]`: largest samples of the master since the last frame, dB; -∞ for silence.
    pub peaks_db: [f32; 2],
    /// How far the limiter turns down, dB, 0 or less.
    pub limiter_db: f32,
    /// How the sound stands.
    pub sound: Status,
    /// Share of the time for a block that all models take, 1 is all of it.
    pub load: f32,
    /// Blocks that came too late.
    pub misses: u64,
    /// How the recording is going.
    pub recording: record::Status,
    /// How recordings are made.
    pub takes: Takes,
    /// The session that is being loaded, by its name.
    pub loading: Option<String>,
    /// What can be chosen to play on.
    pub inventory: Inventory,
    /// What is chosen.
    pub audio: AudioChoice,
    /// Ports and channels that are chosen.
    pub midi: MidiChoice,
    /// How MIDI ports stand.
    pub ports: MidiStatus,
    /// What went wrong, one line each, until it is dismissed.
    pub problems: Vec<String>,
    /// What went well and is worth a line, such as where a recording is.
    pub news: Option<String>,
    /// What has to be decided first.
    pub question: Option<Question>,
}

/// A track, as it is drawn.
#[derive(Clone)]
pub struct TrackView {
    /// Its place in the rack.
    pub place: usize,
    /// The name to show.
    pub title: String,
    /// Instrument or effect.
    pub product: Product,
    /// Its fader.
    pub mix: Settings,
    /// Its largest sample before the fader since the last frame, dB; -∞ for silence.
    pub peak_db: f32,
    /// What it is about to play, by its name; empty where that is not known.
    pub loading: Option<String>,
    /// Why it does not play.
    pub fault: Option<String>,
    /// What it listens to.
    pub input: Input,
    /// The recording that it listens to.
    pub clip: Option<ClipView>,
    /// MIDI channels that it hears, one bit each.
    pub midi_channels: u16,
}

/// A recording that plays as an input.
#[derive(Clone)]
pub struct ClipView {
    /// The largest samples along the recording, evenly spread, 0 … 1.
    pub outline: Arc<[f32]>,
    /// Where it plays, 0 … 1.
    pub place: f32,
    /// How long it is, seconds.
    pub length_s: f32,
    /// Whether it plays.
    pub playing: bool,
}

/// What has to be decided before anything else is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The session has changes that would be lost.
    Unsaved,
    /// There is work that was not saved when the app ended last.
    Recover,
}

/// What the user did.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Begins an empty session.
    New,
    /// Opens a session.
    Open(PathBuf),
    /// Saves the session where it is kept.
    Save,
    /// Saves it there from now on.
    SaveAs(PathBuf),
    /// The question is answered: go on, and what is not saved is lost.
    Discard,
    /// The question is answered: what was not saved comes back.
    Recover,
    /// The question is withdrawn.
    Cancel,
    /// Problems and news were read.
    Dismiss,

    /// Adds a track.
    Add(Product),
    /// Removes the track in that place.
    Remove(usize),
    /// Chooses a track.
    Select(usize),
    /// Gives it another name.
    Rename(usize, String),
    /// Moves its fader.
    Mix(usize, Settings),
    /// Lets it listen to something else.
    Listen(usize, Input),
    /// Lets it hear those MIDI channels, one bit each.
    Channels(usize, u16),
    /// Its recording goes on from there, 0 … 1.
    Seek(usize, f32),
    /// Its recording plays, or pauses.
    Roll(usize, bool),

    /// The model of the track that is chosen comes last in the set list.
    Keep,
    /// Plays that of the set list on the track that is chosen.
    Call(usize),
    /// That of the set list comes earlier by one.
    Raise(usize),
    /// That of the set list comes later by one.
    Lower(usize),
    /// Takes that out of the set list.
    Forget(usize),

    /// Moves the fader after all.
    Master(Settings),
    /// Records from now on, or ends the recording.
    Record(bool),
    /// Writes what was heard in the last 30 s.
    SavePast,
    /// Makes recordings so from now on.
    Takes(Takes),
    /// Silences everything.
    Panic,
    /// Opens the system's dialog for files.
    Browse(Browse),
    /// Opens a file that was dropped on the window: a session, or a model, a recording or a preset for the track that is chosen.
    Drop(PathBuf),

    /// Plays on other devices.
    Audio(AudioChoice),
    /// Hears other ports.
    Midi(MidiChoice),
    /// Looks for devices and ports again.
    Rescan,
}
