//! How a strip comes to be: it is planned on the console, made wherever there is time, and put in by the console again.
//!
//! Making one may take seconds: models are made ready, recordings are decoded. So a [`Plan`] holds all that is needed, and nobody
//! has to wait who uses the console meanwhile. Of several plans for one track the last one counts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driver, Setup};
use ondes_instance::board::Board;
use ondes_instance::panel::Panel;
use ondes_instance::player::Player;
use ondes_instance::shared::Shared;

use super::Meter;
use super::clip::Clip;
use super::mix::Mix;
use super::saved::Input;
use super::strip::{Feed, Parts, Strip};

/// How long a model that is being read may hold up a strip.
const PATIENCE: Duration = Duration::from_secs(5);

/// What makes another strip necessary when it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Made {
    pub driver: Driver,
    pub source: Source,
    pub latency: usize,
}

/// All that a track's strip is made of.
#[must_use = "a track without its strip is silent"]
pub struct Plan {
    pub(super) place: usize,
    pub(super) number: u64,
    pub(super) latest: Arc<AtomicU64>,
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) setup: Setup,
    pub(super) shared: Arc<Shared>,
    pub(super) panel: Arc<Panel>,
    pub(super) mix: Arc<Mix>,
    pub(super) input: Input,
    /// The recording as it was read before.
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) midi_channels: u16,
    pub(super) score: Vec<(u64, EventKind)>,
    pub(super) meter: Arc<Meter>,
}

/// A strip that waits to be put in.
pub struct Finished {
    pub(super) place: usize,
    pub(super) number: u64,
    pub(super) made: Made,
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) fault: Option<String>,
    pub(super) strip: Box<Strip>,
}

impl Plan {
    /// The track's place.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }

    /// Makes the strip; none where another one was planned meanwhile. A recording that cannot be read is silent, and the track
    /// says why.
    ///
    /// # Errors
    /// When the model cannot be played for that host.
    pub fn make(self) -> anyhow::Result<Option<Finished>> {
        let (clip, fault) = match self.clip() {
            Ok(clip) => (clip, None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        // Nothing is half done when somebody has panicked here.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.latest.load(Relaxed) != self.number {
            return Ok(None);
        }
        let (driver, source) = (self.panel.driver(), self.panel.source());
        self.shared.set_source(source);
        self.shared.remote.set_driver(driver);
        self.shared.wait(PATIENCE);
        let session = self.shared.remote.activate(self.setup).with_context(|| format!("track {}", self.place + 1))?;
        let player = Player::new(session, self.shared.clone(), self.setup, &self.panel.knobs());
        let made = Made { driver, source, latency: player.latency_samples() };
        // A strip that takes over from another one does not play again what was played; wheels and pedals stand where they stood.
        let now = self.meter.frames();
        let to_come = |(at, kind): &&(u64, EventKind)| {
            *at >= now || !matches!(kind, EventKind::NoteOn { .. } | EventKind::NoteOff { .. })
        };
        let feed = match (&self.input, &clip) {
            (_, Some(clip)) => Feed::Clip(clip.clone()),
            (Input::Channels { first, count }, _) => Feed::Channels(*first, *count),
            _ => Feed::Nothing,
        };
        let parts = Parts {
            player,
            shared: self.shared.clone(),
            panel: self.panel.clone(),
            mix: self.mix.clone(),
            feed,
            source,
            midi_channels: self.midi_channels,
            score: self.score.iter().filter(to_come).copied().collect(),
        };
        let strip = Box::new(Strip::new(parts, self.setup.max_block));
        Ok(Some(Finished { place: self.place, number: self.number, made, clip, fault, strip }))
    }

    /// The recording at the host's rate. One that was read at another rate is read again; where it stands it goes on.
    fn clip(&self) -> anyhow::Result<Option<Arc<Clip>>> {
        let old = self.clip.as_ref().filter(|old| self.input.is_file(old.path()));
        if let Some(old) = old.filter(|old| old.sample_rate() == self.setup.sample_rate) {
            return Ok(Some(old.clone()));
        }
        let new = read(&self.input, self.setup.sample_rate)?;
        if let (Some(new), Some(old)) = (&new, old) {
            new.go_on_from(old);
        }
        Ok(new)
    }
}

/// The recording of an input that has one, at that rate in Hz.
pub(crate) fn read(input: &Input, sample_rate: u32) -> anyhow::Result<Option<Arc<Clip>>> {
    let Input::File { path, looped } = input else { return Ok(None) };
    let clip = Clip::read(Path::new(path), sample_rate)?;
    clip.set_looped(*looped);
    Ok(Some(Arc::new(clip)))
}
