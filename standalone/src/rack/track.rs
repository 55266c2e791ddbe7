//! A track, as everybody but the audio thread sees it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ondes_engine::instrument::EventKind;
use ondes_engine::realtime::Status;
use ondes_processor::panel::Panel;
use ondes_processor::preset::Product;
use ondes_processor::shared::Shared;

use super::clip::Clip;
use super::mix::Mix;
use super::plan::Made;
use super::saved::{Input, SavedTrack};

/// All sixteen MIDI channels.
pub const ALL_CHANNELS: u16 = u16::MAX;

/// One track.
pub struct Track {
    /// Its name; its model's where nobody has given it one.
    pub name: String,
    /// Its instance.
    pub shared: Arc<Shared>,
    /// Its parameters.
    pub panel: Arc<Panel>,
    /// Its fader.
    pub mix: Arc<Mix>,
    /// What it listens to.
    pub(super) input: Input,
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) midi_channels: u16,
    /// All of it, also what is played already.
    pub(super) score: Vec<(u64, EventKind)>,
    /// Number of the latest plan for its strip.
    pub(super) latest: Arc<AtomicU64>,
    /// Strips of one track are made one after the other: an instance plays for the last one only.
    pub(super) turn: Arc<Mutex<()>>,
    /// How its strip was joined to the rest, and when; none where it has none.
    pub(super) made: Option<(Made, Instant)>,
    /// Why its recording is not played.
    pub(super) fault: Option<String>,
    /// The model that was asked for last by its name, for those who wait for it.
    pub(super) coming: String,
}

impl Track {
    pub(super) fn new(product: Product, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let wake = wake.clone();
        let shared = Shared::new(product, move || wake());
        let panel = Arc::new(Panel::new(product));
        panel.offer(&shared.controllers);
        shared.listen_to(&panel);
        let input = match product {
            Product::Effect => Input::Channels { first: 0, count: 1 },
            Product::Instrument => Input::Nothing,
        };
        Self {
            name: String::new(),
            shared,
            panel,
            mix: Arc::default(),
            input,
            clip: None,
            midi_channels: ALL_CHANNELS,
            score: Vec::new(),
            latest: Arc::default(),
            turn: Arc::default(),
            made: None,
            fault: None,
            coming: String::new(),
        }
    }

    /// The track that was saved so. Its model is looked for at once, which may take its time.
    pub(super) fn restored(saved: &SavedTrack, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let mut track = Self::new(saved.product, wake);
        track.name.clone_from(&saved.name);
        track.panel.restore(&saved.parameters);
        track.shared.restore(saved.selection.clone());
        track.mix.set(saved.mix);
        (track.input, track.midi_channels) = (saved.input.clone(), saved.midi_channels);
        track
    }

    /// What it listens to.
    #[must_use]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The recording that it listens to.
    #[must_use]
    pub fn clip(&self) -> Option<&Arc<Clip>> {
        self.clip.as_ref()
    }

    /// MIDI channels that it hears, one bit each.
    #[must_use]
    pub fn midi_channels(&self) -> u16 {
        self.midi_channels
    }

    /// Why its recording is not played, if that is so, in one line.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Name of the model that was asked for last by its name; empty where it is not known.
    #[must_use]
    pub fn coming(&self) -> &str {
        &self.coming
    }

    /// The name to show.
    #[must_use]
    pub fn title(&self) -> String {
        let model = || self.shared.model().map(|model| model.header().card.name.clone());
        if self.name.is_empty() { model().unwrap_or_default() } else { self.name.clone() }
    }

    pub(super) fn saved(&self) -> SavedTrack {
        SavedTrack {
            name: self.name.clone(),
            product: self.shared.product,
            parameters: self.panel.saved(),
            selection: self.shared.saved(),
            mix: self.mix.get(),
            input: self.input.clone(),
            midi_channels: self.midi_channels,
        }
    }
}

/// Samples by which the model that is heard is late; none while another one is being made ready.
pub(super) fn latency_samples(shared: &Shared) -> Option<usize> {
    let ready = shared.remote.status() == Status::Ready;
    shared.remote.health().filter(|_| ready).map(|health| health.latency_samples)
}
