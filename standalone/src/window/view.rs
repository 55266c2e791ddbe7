//! Interface between window and app: data to draw, and commands of the user.

use std::path::PathBuf;
use std::sync::Arc;

use ondes_player::product::Product;

use super::device_scan::AvailableDevices;
use super::file_dialog::DialogPurpose;
use super::recording_settings::RecordingSettings;
use crate::devices::{AudioStatus, MidiStatus};
use crate::io::{AudioChoice, MidiChoice};
use crate::rack::fader::FaderSettings;
use crate::rack::session_file::TrackInput;
use crate::record;

/// Everything to draw, except the panels of the selected track.
#[derive(Clone)]
pub struct AppView {
    /// Name of the session.
    pub session: String,
    /// File of the session, if it has one.
    pub path: Option<PathBuf>,
    /// The session has unsaved changes.
    pub changed: bool,
    /// Recent sessions, the latest first.
    pub recent: Vec<PathBuf>,
    /// Tracks, in order.
    pub tracks: Vec<TrackView>,
    /// Slot of the selected track.
    pub selected: Option<usize>,
    /// Models of the set list, in order.
    pub set_list: Vec<SetListEntry>,
    /// The system has a file dialog.
    pub can_browse: bool,
    /// Fader of the master.
    pub master: FaderSettings,
    /// `[channel]`: peaks of the master since the last frame, dB; −∞ for silence.
    pub peaks_db: [f32; 2],
    /// Gain reduction of the limiter, dB, 0 or less.
    pub limiter_db: f32,
    /// Status of the audio devices.
    pub sound: AudioStatus,
    /// Load of all models, 1 is the whole time of a block.
    pub load: f32,
    /// Number of dropouts.
    pub dropouts: u64,
    /// Status of the recorder.
    pub recording: record::RecordingStatus,
    /// Settings of recordings.
    pub recording_settings: RecordingSettings,
    /// Name of the session that is being loaded.
    pub loading: Option<String>,
    /// Devices and ports to choose from.
    pub available: AvailableDevices,
    /// Chosen audio devices.
    pub audio: AudioChoice,
    /// Chosen MIDI ports and channels.
    pub midi: MidiChoice,
    /// Status of the MIDI ports.
    pub ports: MidiStatus,
    /// Errors that were not dismissed yet, one line each.
    pub problems: Vec<String>,
    /// Notice, such as the path of a finished recording.
    pub notice: Option<String>,
    /// Question that has to be answered first.
    pub prompt: Option<Prompt>,
}

impl AppView {
    /// Returns the length of the running recording, in minutes and seconds.
    pub(super) fn recorded_time(&self) -> Option<String> {
        let rate = if let AudioStatus::Playing(opened) = &self.sound {
            opened.sample_rate
        } else {
            48_000
        };
        let seconds = self.recording.recording? / u64::from(rate.max(1));
        Some(format!("{}:{:02}", seconds / 60, seconds % 60))
    }
}

/// Track to draw.
#[derive(Clone)]
pub struct TrackView {
    /// Slot of the track.
    pub slot: usize,
    /// Name to show.
    pub title: String,
    /// File of its model; `None` for a bundled one.
    pub file: Option<PathBuf>,
    /// Instrument or effect.
    pub product: Product,
    /// Fader of the track.
    pub fader: FaderSettings,
    /// Peak before the fader since the last frame, dB; −∞ for silence.
    pub peak_db: f32,
    /// Name of what is being loaded; empty if unknown.
    pub loading: Option<String>,
    /// Error of the track.
    pub error: Option<String>,
    /// Audio input.
    pub input: TrackInput,
    /// Recording, if it is the input.
    pub clip: Option<ClipView>,
    /// MIDI channels, one bit each.
    pub midi_channels: u16,
}

/// Model of the set list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetListEntry {
    /// Name to show.
    pub name: String,
    /// File; `None` for a bundled model.
    pub file: Option<PathBuf>,
}

/// Recording that plays as an input.
#[derive(Clone)]
pub struct ClipView {
    /// Peaks of equal sections of the recording, 0 … 1.
    pub waveform: Arc<[f32]>,
    /// Play position, 0 … 1.
    pub position: f32,
    /// Length, seconds.
    pub length_s: f32,
    /// Playing or paused.
    pub playing: bool,
}

/// Question that has to be answered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Another session is to be opened, but this one has unsaved changes.
    UnsavedChanges,
    /// The app is to be closed during a recording, or with unsaved changes.
    Quit {
        /// The session has unsaved changes.
        unsaved: bool,
    },
    /// There is an autosave of the last run.
    RecoverAutosave,
}

/// Command of the user.
#[derive(Clone, Debug, PartialEq)]
pub enum AppCommand {
    /// Create an empty session.
    New,
    /// Open a session.
    Open(PathBuf),
    /// Save the session to its file.
    Save,
    /// Save the session to another file.
    SaveAs(PathBuf),
    /// Close the app; asks first if work would be lost or a recording is running.
    Quit,
    /// Answer to a prompt: continue and lose unsaved changes.
    Discard,
    /// Answer to a prompt: recover the autosave.
    Recover,
    /// Close the prompt.
    Cancel,
    /// Dismiss errors and notice.
    Dismiss,

    /// Add a track.
    AddTrack(Product),
    /// Remove the track in the slot.
    RemoveTrack(usize),
    /// Select the track in the slot.
    SelectTrack(usize),
    /// Rename the track in the slot.
    RenameTrack(usize, String),
    /// Set the fader of the track in the slot.
    SetFader(usize, FaderSettings),
    /// Set the input of the track in the slot.
    SetInput(usize, TrackInput),
    /// Set the MIDI channels of the track in the slot, one bit each.
    SetMidiChannels(usize, u16),
    /// Move the track's recording to a position, 0 … 1.
    Seek(usize, f32),
    /// Play or pause the track's recording.
    SetPlaying(usize, bool),

    /// Add the model of the selected track to the set list.
    AddToSetList,
    /// Load a model of the set list on the selected track.
    PlayFromSetList(usize),
    /// Move an entry of the set list up.
    MoveUp(usize),
    /// Move an entry of the set list down.
    MoveDown(usize),
    /// Remove an entry of the set list.
    RemoveFromSetList(usize),

    /// Set the fader of the master.
    SetMaster(FaderSettings),
    /// Start or stop recording.
    Record(bool),
    /// Save the last 30 s.
    SavePreroll,
    /// Change the settings of recordings.
    SetRecording(RecordingSettings),
    /// Silence all tracks.
    Panic,
    /// Open a file dialog.
    OpenDialog(DialogPurpose),
    /// Open a file dropped on the window: a session, or a model, recording or preset for the
    /// selected track.
    OpenDropped(PathBuf),

    /// Switch to other audio devices.
    SetAudio(AudioChoice),
    /// Switch to other MIDI ports.
    SetMidi(MidiChoice),
    /// Scan for devices and ports again.
    Rescan,
}
