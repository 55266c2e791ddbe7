//! A track, as all threads but the audio thread see it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ondes_engine::instrument::EventKind;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::product::Product;

use super::clip::Clip;
use super::fader::Fader;
use super::session_file::{SavedTrack, TrackInput};
use super::strip_plan::StripConfig;

/// Largest number of tracks.
pub const TRACKS: usize = 16;
/// All sixteen MIDI channels.
pub const ALL_CHANNELS: u16 = u16::MAX;

/// A track of the mixer.
pub struct Track {
    /// Name; empty for the model's name.
    pub name: String,
    /// Instrument or effect of the track.
    pub instance: Arc<InstanceHandle>,
    /// Parameters of the instance.
    pub parameters: Arc<ParameterStore>,
    /// Fader of the track.
    pub fader: Arc<Fader>,
    /// Audio input.
    pub(super) input: TrackInput,
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) midi_channels: u16,
    /// All scheduled events, played ones included.
    pub(super) score: Vec<(u64, EventKind)>,
    /// Number of the latest plan for its strip.
    pub(super) latest_plan: Arc<AtomicU64>,
    /// Serialises builds: an instance plays for one strip only.
    pub(super) build_lock: Arc<Mutex<()>>,
    /// Configuration of the installed strip and when it was installed; `None` without a strip.
    pub(super) installed: Option<(StripConfig, Instant)>,
    /// Reason why it is silent: its recording cannot be played, or its strip cannot be built.
    pub(super) error: Option<String>,
}

impl Track {
    pub(super) fn new(product: Product, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let wake = wake.clone();
        let instance = InstanceHandle::new(product, move || wake());
        let parameters = Arc::new(ParameterStore::new(product));
        parameters.register_midi(&instance.midi_bindings);
        instance.set_parameter_source(&parameters);
        let input = match product {
            Product::Effect => TrackInput::Channels { first: 0, count: 1 },
            Product::Instrument => TrackInput::Nothing,
        };
        Self {
            name: String::new(),
            instance,
            parameters,
            fader: Arc::default(),
            input,
            clip: None,
            midi_channels: ALL_CHANNELS,
            score: Vec::new(),
            latest_plan: Arc::default(),
            build_lock: Arc::default(),
            installed: None,
            error: None,
        }
    }

    /// Restores a saved track and starts to load its model.
    pub(super) fn restored(saved: &SavedTrack, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let mut track = Self::new(saved.product, wake);
        track.name.clone_from(&saved.name);
        track.parameters.restore(&saved.parameters);
        track.instance.restore_state(saved.selection.clone());
        track.fader.set(saved.fader);
        (track.input, track.midi_channels) = (saved.input.clone(), saved.midi_channels);
        track
    }

    /// Returns the audio input.
    #[must_use]
    pub fn input(&self) -> &TrackInput {
        &self.input
    }

    /// Returns the recording, if the input is one.
    #[must_use]
    pub fn clip(&self) -> Option<&Arc<Clip>> {
        self.clip.as_ref()
    }

    /// Returns the MIDI channels, one bit each.
    #[must_use]
    pub fn midi_channels(&self) -> u16 {
        self.midi_channels
    }

    /// Returns the reason why it is silent, in one line: its recording or its model cannot be
    /// played.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the name to show.
    #[must_use]
    pub fn title(&self) -> String {
        let model = || {
            self.instance
                .model()
                .map(|model| model.header().card.name.clone())
        };
        if self.name.is_empty() {
            model().unwrap_or_default()
        } else {
            self.name.clone()
        }
    }

    pub(super) fn saved(&self) -> SavedTrack {
        SavedTrack {
            name: self.name.clone(),
            product: self.instance.product,
            parameters: self.parameters.values(),
            selection: self.instance.state(),
            fader: self.fader.get(),
            input: self.input.clone(),
            midi_channels: self.midi_channels,
        }
    }
}
