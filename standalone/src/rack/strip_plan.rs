//! Plans for strips: made by the mixer, built on any thread, installed by the mixer. The first plan
//! of a track builds a strip; later ones only change the routing of the strip that plays, so that
//! held notes continue.
//!
//! Building may take seconds, since models are loaded and recordings decoded. A [`StripPlan`]
//! therefore holds everything that is needed without the mixer's lock. If a track is planned
//! several times, the last plan wins.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail};
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::{Driver, LoadStatus, Setup};
use ondes_engine::sync::lock;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_store::ParameterStore;
use ondes_player::player::{DryDelay, Player};

use super::clip::Clip;
use super::fader::Fader;
use super::meter::MasterMeter;
use super::remaining_events::remaining_events;
use super::session_file::TrackInput;
use super::strip::{Strip, StripInput, StripParts, StripRouting};

/// Longest wait for a model that is being loaded.
const MODEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Configuration of a strip; a change requires new routing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StripConfig {
    pub driver: Driver,
    pub source: ControlSource,
    pub latency: usize,
}

impl StripConfig {
    /// Returns the configuration that the parameters ask for, with a latency in samples.
    pub fn requested(parameters: &ParameterStore, offline: bool, latency: usize) -> Self {
        let driver = if offline {
            Driver::Offline
        } else {
            parameters.driver()
        };
        Self {
            driver,
            source: parameters.control_source(),
            latency,
        }
    }
}

/// Everything that is needed to build a strip or its routing.
#[must_use = "a track without its strip is silent"]
pub struct StripPlan {
    pub(super) slot: usize,
    pub(super) number: u64,
    pub(super) latest_plan: Arc<AtomicU64>,
    pub(super) build_lock: Arc<Mutex<()>>,
    pub(super) setup: Setup,
    /// Renders offline.
    pub(super) offline: bool,
    /// Latency of the strip that plays already, in samples, when it was routed last; `None` for a
    /// new strip.
    pub(super) playing_latency: Option<usize>,
    pub(super) instance: Arc<InstanceHandle>,
    pub(super) parameters: Arc<ParameterStore>,
    pub(super) fader: Arc<Fader>,
    pub(super) input: TrackInput,
    /// Recording that is in memory already.
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) midi_channels: u16,
    pub(super) score: Vec<(u64, EventKind)>,
    pub(super) meter: Arc<MasterMeter>,
}

/// Built part, to be installed by the mixer.
pub struct BuiltPlan {
    pub(super) slot: usize,
    pub(super) number: u64,
    pub(super) config: StripConfig,
    pub(super) clip: Option<Arc<Clip>>,
    pub(super) input_error: Option<String>,
    pub(super) part: BuiltPart,
}

/// Kind of a built part.
pub(super) enum BuiltPart {
    /// New strip.
    Strip(Box<Strip>),
    /// New routing for the strip that plays.
    StripRouting(Box<StripRouting>),
}

impl StripPlan {
    /// Returns the slot of the track.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Builds what is missing; `None` if the track was planned again in the meantime. A recording
    /// that cannot be read is silent, and the track reports the error.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn build(self) -> anyhow::Result<Option<BuiltPlan>> {
        let (clip, input_error) = match self.clip() {
            Ok(clip) => (clip, None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        // Serialises the builds of a track.
        let _turn = lock(&self.build_lock);
        if self.latest_plan.load(Relaxed) != self.number {
            return Ok(None);
        }
        let requested = StripConfig::requested(
            &self.parameters,
            self.offline,
            self.playing_latency.unwrap_or_default(),
        );
        let has_stereo_input = match (&self.input, &clip) {
            (_, Some(clip)) => clip.is_stereo(),
            (TrackInput::Channels { count, .. }, _) => *count > 1,
            _ => false,
        };
        self.instance.set_source(requested.source);
        self.instance.set_stereo_input(has_stereo_input);
        self.instance.session.set_driver(requested.driver);
        self.instance.rig_handover.set_driver(requested.driver);
        let player = if self.playing_latency.is_none() {
            Some(self.player()?)
        } else {
            None
        };
        let latency = player
            .as_ref()
            .map(Player::latency_samples)
            .or_else(|| latency_samples(&self.instance));
        let config = StripConfig {
            latency: latency.unwrap_or(requested.latency),
            ..requested
        };
        let input = match (&self.input, &clip) {
            (_, Some(clip)) => StripInput::Clip(clip.clone()),
            (TrackInput::Channels { first, count }, _) => StripInput::Channels(*first, *count),
            _ => StripInput::Nothing,
        };
        let dry = DryDelay::new(config.latency);
        let routing = StripRouting {
            input,
            source: config.source,
            midi_channels: self.midi_channels,
            dry,
        };
        let part = match player {
            None => BuiltPart::StripRouting(Box::new(routing)),
            Some(player) => {
                let parts = StripParts {
                    player,
                    instance: self.instance.clone(),
                    parameters: self.parameters.clone(),
                    fader: self.fader.clone(),
                    routing,
                    // A strip that comes late resumes active notes and skips what was played
                    // before.
                    score: remaining_events(self.score.iter().copied(), self.meter.frames()),
                };
                BuiltPart::Strip(Box::new(Strip::new(
                    parts,
                    self.setup.sample_rate,
                    self.setup.max_block,
                )))
            }
        };
        Ok(Some(BuiltPlan {
            slot: self.slot,
            number: self.number,
            config,
            clip,
            input_error,
            part,
        }))
    }

    /// Waits for the model and creates a player.
    fn player(&self) -> anyhow::Result<Player> {
        self.instance.wait_until_loaded(if self.offline {
            Duration::MAX
        } else {
            MODEL_TIMEOUT
        });
        let session = self
            .instance
            .session
            .activate(self.setup)
            .with_context(|| format!("track {}", self.slot + 1))?;
        if let LoadStatus::Failed(reason) = self.instance.session.status()
            && self.offline
        {
            bail!("track {}: {reason}", self.slot + 1);
        }
        Ok(Player::new(
            session,
            self.instance.clone(),
            self.setup,
            &self.parameters.player_parameters(),
        ))
    }

    /// Returns the recording at the device's sample rate. If it has to be read again for another
    /// rate, its position is kept.
    fn clip(&self) -> anyhow::Result<Option<Arc<Clip>>> {
        let old = self
            .clip
            .as_ref()
            .filter(|old| self.input.is_file(old.path()));
        if let Some(old) = old.filter(|old| old.sample_rate() == self.setup.sample_rate) {
            return Ok(Some(old.clone()));
        }
        let new = read(&self.input, self.setup.sample_rate)?;
        if let (Some(new), Some(old)) = (&new, old) {
            new.resume_from(old);
        }
        Ok(new)
    }
}

/// Reads the recording of an input, if it is one, at `sample_rate` Hz.
pub(crate) fn read(input: &TrackInput, sample_rate: u32) -> anyhow::Result<Option<Arc<Clip>>> {
    let TrackInput::File { path, looped } = input else {
        return Ok(None);
    };
    let clip = Clip::read(Path::new(path), sample_rate)?;
    clip.set_looped(*looped);
    Ok(Some(Arc::new(clip)))
}

/// Returns the latency of the active model and the effects in samples; `None` while another one is being prepared.
pub(super) fn latency_samples(instance: &InstanceHandle) -> Option<usize> {
    let ready = instance.session.status() == LoadStatus::Ready;
    instance
        .session
        .health()
        .filter(|_| ready)
        .map(|health| health.latency_samples + instance.rig_handover.latency_samples())
}
