//! Undo and redo of what the user changes in the mixer: faders, inputs, MIDI channels, names, the
//! set list. The steps are part of the selected track's history, which its panels show.

use std::sync::{Arc, Weak};

use ondes_player::instance::InstanceHandle;
use ondes_player::library::FileReference;

use super::view::AppCommand;
use crate::rack::fader::FaderSettings;
use crate::rack::session_file::TrackInput;
use crate::rack::{Mixer, Track};

/// A setting of the mixer with its value.
#[derive(Clone, PartialEq)]
pub(super) enum MixerSetting {
    Master(FaderSettings),
    Fader(TrackId, FaderSettings),
    Input(TrackId, TrackInput),
    MidiChannels(TrackId, u16),
    Name(TrackId, String),
    SetList(Vec<FileReference>),
}

/// Identifies a track; another one may get its slot once it is removed.
#[derive(Clone)]
pub(super) struct TrackId(Weak<InstanceHandle>);

impl PartialEq for TrackId {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl TrackId {
    fn new(track: &Track) -> Self {
        Self(Arc::downgrade(&track.instance))
    }

    /// Returns the slot of the track; `None` if it was removed.
    pub fn slot(&self, mixer: &Mixer) -> Option<usize> {
        mixer
            .tracks()
            .find(|(_, track)| Self::new(track) == *self)
            .map(|(slot, _)| slot)
    }
}

/// A change of a setting that a command makes.
pub(super) struct MixerChange {
    /// Name to show.
    pub label: String,
    /// Value that undo restores.
    pub before: MixerSetting,
    /// Value that redo restores, if it is known in advance: recordings are read in the background.
    after: Option<MixerSetting>,
}

impl MixerChange {
    /// Returns the change that a command is about to make; `None` if undo does not restore it.
    pub fn begin(command: &AppCommand, mixer: &Mixer) -> Option<Self> {
        use AppCommand::{
            AddToSetList, MoveDown, MoveUp, RemoveFromSetList, RenameTrack, SetFader, SetInput,
            SetMaster, SetMidiChannels,
        };
        let slot = match command {
            SetMaster(_) => {
                let before = MixerSetting::Master(mixer.master.get());
                return Some(Self {
                    label: "Master level".into(),
                    before,
                    after: None,
                });
            }
            AddToSetList | MoveUp(_) | MoveDown(_) | RemoveFromSetList(_) => {
                let before = MixerSetting::SetList(mixer.set_list.clone());
                return Some(Self {
                    label: "Set list".into(),
                    before,
                    after: None,
                });
            }
            SetFader(slot, _)
            | SetInput(slot, _)
            | SetMidiChannels(slot, _)
            | RenameTrack(slot, _) => *slot,
            _ => return None,
        };
        let track = mixer.track(slot)?;
        let (id, name) = (
            TrackId::new(track),
            format!("track {} ({})", slot + 1, track.title()),
        );
        let (what, before) = match command {
            SetInput(..) => (
                "Input",
                MixerSetting::Input(id.clone(), track.input().clone()),
            ),
            SetMidiChannels(..) => (
                "MIDI channels",
                MixerSetting::MidiChannels(id.clone(), track.midi_channels()),
            ),
            RenameTrack(..) => ("Name", MixerSetting::Name(id.clone(), track.name.clone())),
            _ => ("Fader", MixerSetting::Fader(id.clone(), track.fader.get())),
        };
        let after = match command {
            SetInput(_, input) => Some(MixerSetting::Input(id, input.clone())),
            _ => None,
        };
        Some(Self {
            label: format!("{what} of {name}"),
            before,
            after,
        })
    }

    /// Returns the value after the change; `None` if there is no such track any more, or nothing
    /// has changed.
    pub fn after(&self, mixer: &Mixer) -> Option<MixerSetting> {
        let after = self.after.clone().or_else(|| self.before.current(mixer));
        after.filter(|after| *after != self.before)
    }
}

impl MixerSetting {
    /// Returns the same setting with its present value.
    fn current(&self, mixer: &Mixer) -> Option<Self> {
        let track = |id: &TrackId| mixer.track(id.slot(mixer)?);
        Some(match self {
            Self::Master(_) => Self::Master(mixer.master.get()),
            Self::SetList(_) => Self::SetList(mixer.set_list.clone()),
            Self::Fader(id, _) => Self::Fader(id.clone(), track(id)?.fader.get()),
            Self::Input(id, _) => Self::Input(id.clone(), track(id)?.input().clone()),
            Self::MidiChannels(id, _) => Self::MidiChannels(id.clone(), track(id)?.midi_channels()),
            Self::Name(id, _) => Self::Name(id.clone(), track(id)?.name.clone()),
        })
    }

    /// Returns the command that restores the value, or restores it at once if there is no such
    /// command; `None` then, and if the track was removed.
    pub fn restore(&self, mixer: &mut Mixer) -> Option<AppCommand> {
        Some(match self {
            Self::Master(settings) => AppCommand::SetMaster(*settings),
            Self::Fader(id, settings) => AppCommand::SetFader(id.slot(mixer)?, *settings),
            Self::Input(id, input) => AppCommand::SetInput(id.slot(mixer)?, input.clone()),
            Self::MidiChannels(id, channels) => {
                AppCommand::SetMidiChannels(id.slot(mixer)?, *channels)
            }
            Self::Name(id, name) => AppCommand::RenameTrack(id.slot(mixer)?, name.clone()),
            Self::SetList(list) => {
                mixer.set_list.clone_from(list);
                return None;
            }
        })
    }
}
