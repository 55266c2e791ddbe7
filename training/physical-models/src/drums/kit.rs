//! Hits of a drum kit: a folder for each part, with a recording of each hit.

use std::path::Path;

use anyhow::{Context, ensure};
use ondes_engine::dsp::level::peak;
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::read_mono;
use rand::RngExt;

use crate::instrument::OUTPUT_RATE_HZ;

/// Level at which a hit begins, relative to its peak, and what is kept before, seconds.
const ONSET: f32 = 0.02;
const BEFORE_S: f64 = 0.001;
/// Longest hit, seconds, and its fade at the end.
const LONGEST_S: f64 = 4.0;
const FADE_S: f64 = 0.5;
/// Hits of about the wanted strength from which one is chosen.
const CHOICE: usize = 4;

/// Part of a kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Bass drum.
    Kick,
    /// Snare, struck on its head.
    Snare,
    /// Snare, struck on its rim.
    SideStick,
    /// Hi-hat, closed.
    ClosedHat,
    /// Hi-hat whose cymbals touch loosely.
    HalfOpenHat,
    /// Hi-hat, open.
    OpenHat,
    /// Hi-hat that the foot closes.
    FootHat,
    /// Highest tom.
    HighTom,
    /// Tom between the others.
    MidTom,
    /// Lowest tom.
    LowTom,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 10] = [
        Self::Kick,
        Self::Snare,
        Self::SideStick,
        Self::ClosedHat,
        Self::HalfOpenHat,
        Self::OpenHat,
        Self::FootHat,
        Self::HighTom,
        Self::MidTom,
        Self::LowTom,
    ];

    /// Returns the name of the folder with its hits.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Kick => "kick",
            Self::Snare => "snare",
            Self::SideStick => "side-stick",
            Self::ClosedHat => "closed-hat",
            Self::HalfOpenHat => "half-open-hat",
            Self::OpenHat => "open-hat",
            Self::FootHat => "foot-hat",
            Self::HighTom => "high-tom",
            Self::MidTom => "mid-tom",
            Self::LowTom => "low-tom",
        }
    }

    /// Tells whether no groove can do without it.
    #[must_use]
    pub fn is_needed(self) -> bool {
        matches!(self, Self::Kick | Self::Snare | Self::ClosedHat)
    }

    /// Tells whether it is a sound of the hi-hat, which makes one sound at a time.
    #[must_use]
    pub fn is_hat(self) -> bool {
        matches!(
            self,
            Self::ClosedHat | Self::HalfOpenHat | Self::OpenHat | Self::FootHat
        )
    }
}

/// Drum kit.
pub struct Kit {
    /// Hits of each part in the order of [`Part::ALL`], the softest first, at [`OUTPUT_RATE_HZ`].
    hits: Vec<Vec<Vec<f32>>>,
}

impl Kit {
    /// Reads the hits of a kit: `kick/*.wav`, `snare/*.flac` and so on.
    ///
    /// # Errors
    /// Returns an error if a needed part has no hits, or a file cannot be read or is silent.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let hits = Part::ALL
            .into_iter()
            .map(|part| read_part(&folder.join(part.folder()), part))
            .collect::<Result<_, _>>()?;
        Ok(Self { hits })
    }

    /// Tells whether there are hits of a part.
    #[must_use]
    pub fn has(&self, part: Part) -> bool {
        !self.hits[part as usize].is_empty()
    }

    /// Returns a hit of about this strength, from 0 (the softest) to 1 (the hardest).
    ///
    /// # Panics
    /// Panics if the part has no hits.
    pub fn hit(&self, part: Part, strength: f64, random: &mut impl RngExt) -> &[f32] {
        let hits = &self.hits[part as usize];
        let around = (strength.clamp(0.0, 1.0) * (hits.len() - 1) as f64).round() as usize;
        let first = around
            .saturating_sub(CHOICE / 2)
            .min(hits.len().saturating_sub(CHOICE));
        &hits[random.random_range(first..(first + CHOICE).min(hits.len()))]
    }
}

fn read_part(folder: &Path, part: Part) -> anyhow::Result<Vec<Vec<f32>>> {
    let named = || folder.display().to_string();
    if !folder.is_dir() {
        ensure!(
            !part.is_needed(),
            "{}: a kit needs this folder, with a recording of each hit",
            named()
        );
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(named)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<Vec<_>>>()
        .with_context(named)?;
    paths.sort();
    let is_sound = |path: &Path| {
        let ending = path
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default()
            .to_lowercase();
        ["wav", "flac", "mp3"].contains(&ending.as_str())
    };
    paths.retain(|path| is_sound(path));
    ensure!(
        !paths.is_empty() || !part.is_needed(),
        "{}: there are no WAV, FLAC or MP3 files",
        named()
    );
    let mut hits = paths
        .iter()
        .map(|path| read_hit(path))
        .collect::<anyhow::Result<Vec<_>>>()?;
    hits.sort_by(|a, b| energy(a).total_cmp(&energy(b)));
    Ok(hits)
}

/// Reads a hit from its onset on.
fn read_hit(path: &Path) -> anyhow::Result<Vec<f32>> {
    let named = || path.display().to_string();
    let (sound, rate) = read_mono(path)?;
    let sound = resample(&sound, rate, OUTPUT_RATE_HZ as u32).with_context(named)?;
    let loudest = peak(&sound);
    ensure!(loudest > 0.0, "{}: it is silent", named());
    let onset = sound
        .iter()
        .position(|sample| sample.abs() > ONSET * loudest)
        .unwrap_or_default();
    let before = (BEFORE_S * OUTPUT_RATE_HZ) as usize;
    let mut hit = sound[onset.saturating_sub(before)..].to_vec();
    hit.truncate((LONGEST_S * OUTPUT_RATE_HZ) as usize);
    let fade = ((FADE_S * OUTPUT_RATE_HZ) as usize).min(hit.len() / 4);
    let start = hit.len() - fade;
    for (n, sample) in hit[start..].iter_mut().enumerate() {
        *sample *= 1.0 - n as f32 / fade as f32;
    }
    Ok(hit)
}

fn energy(hit: &[f32]) -> f32 {
    hit.iter().map(|sample| sample * sample).sum()
}
