//! How a track comes to play as it is wanted: that is planned on the console, made wherever there is time, and put in by the
//! console again. Where nothing plays yet a strip is made; a strip that plays is only joined to the rest in another way, so that
//! notes that are held go on.
//!
//! Making it may take seconds: models are made ready, recordings are decoded. So a [`Plan`] holds all that is needed, and nobody
//! has to wait who uses the console meanwhile. Of several plans for one track the last one counts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driver, Setup, Status};
use ondes_processor::board::Board;
use ondes_processor::panel::Panel;
use ondes_processor::player::{Dry, Player};
use ondes_processor::shared::Shared;

use super::clip::Clip;
use super::mix::Mix;
use super::saved::Input;
use super::strip::{Feed, Parts, Strip, Wiring};
use super::track::latency_samples;
use super::{Meter, score};

/// How long a model that is being read may hold up a strip.
const PATIENCE: Duration = Duration::from_secs(5);

/// What makes another wiring necessary when it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Made {
    pub driver: Driver,
    pub source: Source,
    pub latency: usize,
}

impl Made {
    /// What a panel asks for now, so many samples late.
    pub fn wanted(panel: &Panel, offline: bool, latency: usize) -> Self {
        let driver = if offline { Driver::Offline } else { panel.driver() };
        Self { driver, source: panel.source(), latency }
    }
}

/// All that is needed for a track to play.
#[must_use = "a track without its strip is silent"]
pub struct Plan {
    pub(super) place: usize,
    pub(super) number: u64,
    pub(super) latest: Arc<AtomicU64>,
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) setup: Setup,
    /// Nobody hears it while it is made.
    pub(super) offline: bool,
    /// Samples by which the strip that plays already was late when it was joined to the rest, if there is one.
    pub(super) plays: Option<usize>,
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

/// What was made and waits to be put in.
pub struct Finished {
    pub(super) place: usize,
    pub(super) number: u64,
    pub(super) made: Made,
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) fault: Option<String>,
    pub(super) part: Part,
}

/// What of a track was made.
pub(super) enum Part {
    /// All of it.
    Strip(Box<Strip>),
    /// How the strip that plays is joined to the rest.
    Wiring(Box<Wiring>),
}

impl Plan {
    /// The track's place.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }

    /// Makes what is missing; nothing where something else was planned meanwhile. A recording that cannot be read is silent, and
    /// the track says why.
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
        let wanted = Made::wanted(&self.panel, self.offline, self.plays.unwrap_or_default());
        self.shared.set_source(wanted.source);
        self.shared.remote.set_driver(wanted.driver);
        let player = if self.plays.is_none() { Some(self.player()?) } else { None };
        let latency = player.as_ref().map(Player::latency_samples).or_else(|| latency_samples(&self.shared));
        let made = Made { latency: latency.unwrap_or(wanted.latency), ..wanted };
        let feed = match (&self.input, &clip) {
            (_, Some(clip)) => Feed::Clip(clip.clone()),
            (Input::Channels { first, count }, _) => Feed::Channels(*first, *count),
            _ => Feed::Nothing,
        };
        let dry = Dry::new(made.latency);
        let wiring = Wiring { feed, source: made.source, midi_channels: self.midi_channels, dry };
        let part = match player {
            None => Part::Wiring(Box::new(wiring)),
            Some(player) => {
                let parts = Parts {
                    player,
                    shared: self.shared.clone(),
                    panel: self.panel.clone(),
                    mix: self.mix.clone(),
                    wiring,
                    // Where it comes later than the sound, what sounds goes on, and what was played is not played again.
                    score: score::rest(self.score.iter().copied(), self.meter.frames()),
                };
                Part::Strip(Box::new(Strip::new(parts, self.setup.sample_rate, self.setup.max_block)))
            }
        };
        Ok(Some(Finished { place: self.place, number: self.number, made, clip, fault, part }))
    }

    /// Makes the model ready, and a player for it.
    fn player(&self) -> anyhow::Result<Player> {
        self.shared.wait(if self.offline { Duration::MAX } else { PATIENCE });
        let session = self.shared.remote.activate(self.setup).with_context(|| format!("track {}", self.place + 1))?;
        if let Status::Failed(reason) = self.shared.remote.status()
            && self.offline
        {
            bail!("track {}: {reason}", self.place + 1);
        }
        Ok(Player::new(session, self.shared.clone(), self.setup, &self.panel.knobs()))
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
