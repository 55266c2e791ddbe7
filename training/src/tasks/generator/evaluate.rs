//! Quality of a generator on held-out recordings.
//!
//! For every second recording the generator plays a piece of the same length and tempo, with the
//! knobs at the values measured in it. These pieces are compared with the other recordings, beside
//! references: the recordings themselves (the best possible), their resynthesis by the codec, their
//! shuffled sound, and noise.

use std::ops;

use anyhow::ensure;
use ondes_engine::dsp::loudness::{Loudness, mean_db};
use ondes_engine::model::{Kind as ModelKind, Model};
use ondes_engine::random::SplitMix64;
use rayon::prelude::*;
use serde::Serialize;
use tch::{Device, Kind, Tensor};

use super::calibration::{Response, responses};
use super::conditions::{Condition, PathInfo, styles};
use super::inspect;
use super::player::{Player, onset_times, play};
use crate::data::{Features, Recordings};
use crate::evaluate::timbre::{embeddings, frechet};
use crate::loss::MelSpectrum;
use crate::tasks::codec::evaluate::band_noise;

/// Length of the recordings that are used, seconds; of longer datasets every n-th recording is
/// used.
const MEASURED_S: f64 = 1200.0;
/// Length of the training recordings that are searched for copies, seconds.
const LEARNT_S: f64 = 1800.0;
/// Length of the pieces that are compared in the search for copies, seconds.
const NEAREST_S: f64 = 1.0;
/// Time before a piece in which repetitions are searched, and length of the parts of a long piece
/// whose novelty is measured, seconds.
const PAST_S: f64 = 10.0;
const NOVELTY_S: f64 = 60.0;
/// Length of a shuffled piece, seconds.
const SHUFFLED_S: f64 = 0.02;
/// Level below which the centroid is not compared, dB.
const AUDIBLE_DB: f32 = -60.0;
/// Quantiles at which distributions are compared.
const QUANTILES: usize = 1_000;
/// Length of the pieces in which drift is measured, and of their parts, seconds.
const LONG_S: f64 = 600.0;
const PART_S: f64 = 10.0;
/// Seeds of the pieces for the responses to the knobs.
const KNOB_SEEDS: ops::Range<u64> = 0..4;
/// Largest error of the tempo that is searched, and the step, as shares of the tempo.
const TEMPO_RANGE: f64 = 0.03;
const TEMPO_STEP: f64 = 0.000_1;
/// Sixteenths of a beat.
const STEPS_OF_BEAT: f64 = 4.0;

/// Distances of one kind of sound from the recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name in the table.
    pub name: &'static str,
    /// Fréchet distance of their [timbres](crate::evaluate::timbre).
    pub frechet: f64,
    /// Wasserstein distance of the intervals between onsets, ms.
    pub intervals_ms: f64,
    /// Wasserstein distance of loudness, dB.
    pub loudness_db: f64,
    /// Wasserstein distance of the spectral centroid, semitones.
    pub centroid_semitones: f64,
    /// Onsets a second.
    pub onsets: f64,
    /// Distance of a second from the nearest one of the training recordings, mean over seconds,
    /// nepers; small values are copies.
    pub nearest: f64,
    /// Distance of a second from the nearest one in the ten seconds before it, mean over seconds,
    /// nepers; 0 in a loop. `None` for sounds of less than eleven seconds.
    pub novelty: Option<f64>,
}

/// Timing of onsets against the grid of sixteenths at a known tempo.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timing {
    /// Mean error of the tempo over the pieces, percent.
    pub tempo_error_percent: f64,
    /// Largest of these errors, percent.
    pub largest_tempo_error_percent: f64,
    /// Deviation of onsets from their sixteenths, root of the mean square, ms.
    pub deviation_ms: f64,
}

/// Smallest and largest value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Smallest value.
    pub least: f32,
    /// Largest value.
    pub most: f32,
}

/// Pieces of ten minutes, in parts of ten seconds, and of a minute for the novelty.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Endurance {
    /// Number of pieces.
    pub pieces: u32,
    /// Level of the parts, dB.
    pub levels_db: Range,
    /// Onsets a second in the parts.
    pub onsets: Range,
    /// [Novelty](Comparison::novelty) of the parts, nepers.
    pub novelty: Range,
    /// Largest error of the tempo over a whole piece, percent; `None` without bars.
    pub tempo_error_percent: Option<f64>,
}

/// Quality of a generator.
#[derive(Clone, Debug, Serialize)]
pub struct GeneratorEvaluation {
    /// Length of all generated pieces that are compared, seconds.
    pub seconds: f64,
    /// The generator and others, compared with the recordings.
    pub comparisons: Vec<Comparison>,
    /// Timing of the recordings and of the generator; `None` without bars.
    pub timing: Option<[Timing; 2]>,
    /// Responses to the knobs.
    pub responses: Vec<Response>,
    /// Long pieces.
    pub endurance: Endurance,
}

/// Evaluates a generator on held-out recordings, against its training recordings if they are given,
/// and on `long_pieces` of ten minutes, at least one.
///
/// # Errors
/// Returns an error if the model is no generator with a codec, there are fewer than two recordings,
/// they are in another number of folders than the styles that it knows, or one cannot be read.
pub fn evaluate(
    model: &Model,
    recordings: &Recordings,
    learnt: Option<&Recordings>,
    long_pieces: u32,
) -> anyhow::Result<GeneratorEvaluation> {
    ensure!(
        model.header().kind == ModelKind::Generator,
        "only generators can be evaluated by what they play"
    );
    let styles = styles(
        recordings
            .store
            .recordings()
            .iter()
            .map(|recording| recording.source.name.as_str()),
    );
    inspect::ensure_styles(model, styles.len())?;
    let recordings = recordings.thinned(MEASURED_S);
    ensure!(
        recordings.indices.len() >= 2,
        "at least two recordings are needed"
    );
    let player = Player::new(model)?;
    let named: Vec<PathInfo> = recordings
        .iter()
        .map(|recording| PathInfo::new(&recording.source.name, &styles))
        .collect();
    let files = recordings.features().collect::<anyhow::Result<Vec<_>>>()?;
    let [compared, reference] = [1, 0].map(|first| files.iter().zip(&named).skip(first).step_by(2));
    let sounds = |files: &mut dyn Iterator<Item = (&Features, &PathInfo)>| -> Vec<Vec<f32>> {
        files.map(|(file, _)| file.audio().to_vec()).collect()
    };
    let reference = sounds(&mut reference.clone());
    let recorded = sounds(&mut compared.clone());
    let mut generated = Vec::new();
    for (seed, (file, named)) in compared.clone().enumerate() {
        generated.push(player.play(
            file.seconds(),
            &player.measured_settings(file, *named),
            seed as u64,
        )?);
    }
    let codec = inspect::codec_of(model)?;
    let coded = recorded
        .iter()
        .map(|sound| play(&codec, sound, &[], 0))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let noise = recorded
        .iter()
        .map(|sound| band_noise(sound))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let shuffled: Vec<Vec<f32>> = recorded
        .iter()
        .map(|sound| shuffled(sound, player.sample_rate))
        .collect();

    let traits = |sounds: &[Vec<f32>]| Traits::measure(sounds, player.sample_rate);
    let known = match learnt {
        Some(learnt) => {
            let files = learnt
                .thinned(LEARNT_S)
                .features()
                .collect::<anyhow::Result<Vec<_>>>()?;
            traits(
                &files
                    .iter()
                    .map(|file| file.audio().to_vec())
                    .collect::<Vec<_>>(),
            )
            .mel
        }
        None => traits(&reference).mel,
    };
    let reference = traits(&reference);
    let rows = [
        ("recordings", &recorded),
        ("codec alone", &coded),
        ("generator", &generated),
        ("shuffled recordings", &shuffled),
        ("noise", &noise),
    ];
    let comparisons = rows.map(|(name, sounds)| traits(sounds).compare(name, &reference, &known));
    let follows_bars = player.conditions.contains(&Condition::Bars);
    let timing = |sounds: &[Vec<f32>]| {
        let timed = sounds
            .iter()
            .zip(compared.clone())
            .filter_map(|(sound, (_, named))| Some((sound, named.tempo?)));
        Timing::measure(
            timed.map(|(sound, tempo)| (onset_times(sound, player.sample_rate), f64::from(tempo))),
        )
    };
    let pieces = (0..long_pieces.max(1))
        .into_par_iter()
        .map(|seed| endurance(&player, seed.into()));
    let pieces = pieces.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(GeneratorEvaluation {
        seconds: generated.iter().map(Vec::len).sum::<usize>() as f64 / player.sample_rate,
        comparisons: comparisons.into(),
        timing: follows_bars.then(|| [&recorded, &generated].map(|sounds| timing(sounds))),
        responses: responses(&player, &KNOB_SEEDS)?,
        endurance: pieces
            .into_iter()
            .reduce(Endurance::and)
            .expect("there is one"),
    })
}

/// Plays a long piece with all knobs at their defaults.
fn endurance(player: &Player, seed: u64) -> anyhow::Result<Endurance> {
    let sound = player.play(LONG_S, &[], seed)?;
    let parts = || sound.chunks_exact((PART_S * player.sample_rate) as usize);
    let times = onset_times(&sound, player.sample_rate);
    let onsets = |part: usize| {
        let (start, end) = (part as f64 * PART_S, (part + 1) as f64 * PART_S);
        (times
            .iter()
            .filter(|time| (start..end).contains(*time))
            .count() as f64
            / PART_S) as f32
    };
    let tempo = player
        .model
        .header()
        .controls
        .iter()
        .find(|known| known.name == Condition::Bars.control());
    let tempo = tempo.filter(|_| player.conditions.contains(&Condition::Bars));
    let minutes = sound.chunks_exact((NOVELTY_S * player.sample_rate) as usize);
    let novelty = |minute| {
        Traits::measure(std::slice::from_ref(&minute), player.sample_rate)
            .novelty
            .map(|novelty| novelty as f32)
    };
    Ok(Endurance {
        pieces: 1,
        levels_db: Range::new(parts().map(|part| mean_db(part, player.sample_rate))),
        onsets: Range::new((0..parts().len()).map(onsets)),
        novelty: Range::new(minutes.filter_map(novelty)),
        tempo_error_percent: tempo
            .map(|tempo| 100.0 * tempo_error(&times, f64::from(tempo.default))),
    })
}

impl Range {
    fn new(values: impl Iterator<Item = f32>) -> Self {
        let start = Self {
            least: f32::INFINITY,
            most: f32::NEG_INFINITY,
        };
        values.fold(start, |range, value| Self {
            least: range.least.min(value),
            most: range.most.max(value),
        })
    }
}

impl Endurance {
    /// Returns the extremes of both.
    fn and(self, other: Self) -> Self {
        let range = |one: Range, other: Range| {
            Range::new([one.least, one.most, other.least, other.most].into_iter())
        };
        Self {
            pieces: self.pieces + other.pieces,
            levels_db: range(self.levels_db, other.levels_db),
            onsets: range(self.onsets, other.onsets),
            novelty: range(self.novelty, other.novelty),
            tempo_error_percent: self
                .tempo_error_percent
                .zip(other.tempo_error_percent)
                .map(|(one, other)| one.max(other)),
        }
    }
}

/// Returns the A-weighted level every hundredth of a second, dB.
fn loudness(sound: &[f32], sample_rate: f64) -> Vec<f32> {
    let mut levels = Vec::new();
    Loudness::new(sample_rate, (sample_rate / 100.0) as usize)
        .push(sound, |level| levels.push(level));
    levels
}

/// Returns a sound whose pieces are in random order.
fn shuffled(sound: &[f32], sample_rate: f64) -> Vec<f32> {
    let mut pieces: Vec<&[f32]> = sound
        .chunks_exact((SHUFFLED_S * sample_rate) as usize)
        .collect();
    let mut random = SplitMix64::new(1);
    for last in (1..pieces.len()).rev() {
        pieces.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    pieces.concat()
}

/// Properties of sounds that are compared.
struct Traits {
    /// Logarithmic mel spectra of all sounds, concatenated, `[band, frame]`.
    mel: Tensor,
    /// Frames a second of these.
    frame_rate: f64,
    intervals_ms: Vec<f32>,
    loudness_db: Vec<f32>,
    centroid_semitones: Vec<f32>,
    onsets: f64,
    novelty: Option<f64>,
}

impl Traits {
    fn measure(sounds: &[impl AsRef<[f32]>], sample_rate: f64) -> Self {
        let spectrum = MelSpectrum::new(sample_rate, Device::Cpu);
        let (mut mels, mut onsets, mut seconds) = (Vec::new(), 0, 0.0);
        let (mut intervals_ms, mut loudness_db, mut centroid_semitones) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut new = Vec::new();
        let frame_rate = spectrum.frame_rate();
        let frames = |seconds: f64| (seconds * frame_rate).round() as i64;
        for sound in sounds {
            let sound = sound.as_ref();
            let mel = spectrum
                .logarithm(&Tensor::from_slice(sound).view([1, -1]))
                .squeeze_dim(0);
            let times = onset_times(sound, sample_rate);
            intervals_ms.extend(
                times
                    .windows(2)
                    .map(|pair| (1e3 * (pair[1] - pair[0])) as f32),
            );
            onsets += times.len();
            seconds += sound.len() as f64 / sample_rate;
            loudness_db.extend(loudness(sound, sample_rate));
            centroid_semitones.extend(spectrum.centroids(&mel, AUDIBLE_DB));
            new.extend(novelties(&mel, frames(NEAREST_S), frames(PAST_S)));
            mels.push(mel);
        }
        let mel = Tensor::cat(&mels, 1);
        let onsets = onsets as f64 / seconds;
        let novelty = (!new.is_empty()).then(|| new.iter().sum::<f64>() / new.len() as f64);
        Self {
            mel,
            frame_rate,
            intervals_ms,
            loudness_db,
            centroid_semitones,
            onsets,
            novelty,
        }
    }

    /// Compares these sounds with recordings, and with the spectra of the training recordings.
    fn compare(&self, name: &'static str, reference: &Self, learnt: &Tensor) -> Comparison {
        Comparison {
            name,
            frechet: frechet(
                &embeddings(&self.mel, self.frame_rate),
                &embeddings(&reference.mel, self.frame_rate),
            ),
            intervals_ms: wasserstein(&self.intervals_ms, &reference.intervals_ms),
            loudness_db: wasserstein(&self.loudness_db, &reference.loudness_db),
            centroid_semitones: wasserstein(
                &self.centroid_semitones,
                &reference.centroid_semitones,
            ),
            onsets: self.onsets,
            nearest: nearest(
                &self.mel,
                learnt,
                (NEAREST_S * self.frame_rate).round() as i64,
            )
            .mean(Kind::Float)
            .double_value(&[]),
            novelty: self.novelty,
        }
    }
}

/// Returns the Wasserstein distance of two samples: the mean distance of their quantiles.
fn wasserstein(one: &[f32], other: &[f32]) -> f64 {
    if one.is_empty() || other.is_empty() {
        return f64::INFINITY;
    }
    let quantiles = |values: &[f32]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f32::total_cmp);
        (0..QUANTILES)
            .map(move |index| f64::from(sorted[index * sorted.len() / QUANTILES]))
            .collect::<Vec<_>>()
    };
    let (one, other) = (quantiles(one), quantiles(other));
    one.iter()
        .zip(&other)
        .map(|(one, other)| (one - other).abs())
        .sum::<f64>()
        / QUANTILES as f64
}

/// Returns the distance of each piece of `frames` from the nearest one in the `past` frames before
/// it, `[band, frame]`.
fn novelties(mel: &Tensor, frames: i64, past: i64) -> impl Iterator<Item = f64> {
    let pieces = (past..=mel.size()[1] - frames).step_by(frames as usize);
    pieces.map(move |start| {
        let piece = mel.narrow(1, start, frames);
        nearest(&piece, &mel.narrow(1, start - past, past), frames).double_value(&[0])
    })
}

/// Returns the distance of each piece of `frames` from the nearest in `learnt`, both
/// `[band, frame]`: the root of the mean square over bands and frames, `[piece]`.
fn nearest(mel: &Tensor, learnt: &Tensor, frames: i64) -> Tensor {
    let (bands, count) = (mel.size()[0], mel.size()[1] / frames);
    let pieces = mel
        .narrow(1, 0, count * frames)
        .reshape([bands, count, frames])
        .transpose(0, 1)
        .contiguous();
    let learnt = learnt.unsqueeze(0);
    let sum = |of: &Tensor| {
        of.square()
            .sum_dim_intlist([1_i64].as_slice(), true, Kind::Float)
    };
    let energies = sum(&learnt).avg_pool1d([frames], [1], [0], false, true) * frames as f64;
    let products = learnt.conv1d(&pieces, None::<Tensor>, [1], [0], [1], 1);
    let own = pieces
        .square()
        .sum_dim_intlist([1_i64, 2].as_slice(), false, Kind::Float)
        .view([1, -1, 1]);
    let squares = (energies - products * 2.0 + own).clamp_min(0.0) / (bands * frames) as f64;
    squares.amin([2_i64].as_slice(), false).sqrt().view([-1])
}

impl Timing {
    /// Measures onsets, seconds, at tempos, beats a minute.
    fn measure(pieces: impl Iterator<Item = (Vec<f64>, f64)>) -> Self {
        let (mut errors, mut squares) = (Vec::new(), Vec::new());
        for (times, tempo) in pieces {
            errors.push(100.0 * tempo_error(&times, tempo));
            let step_s = 60.0 / tempo / STEPS_OF_BEAT;
            squares.extend(
                times
                    .iter()
                    .map(|time| (1e3 * (time - (time / step_s).round() * step_s)).powi(2)),
            );
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self {
            tempo_error_percent: mean(&errors),
            largest_tempo_error_percent: errors.iter().copied().fold(0.0, f64::max),
            deviation_ms: mean(&squares).sqrt(),
        }
    }
}

/// Returns the error of the tempo of onsets, as a share: that of the tempo near `tempo` whose grid
/// of sixteenths fits best.
fn tempo_error(times: &[f64], tempo: f64) -> f64 {
    let steps = (TEMPO_RANGE / TEMPO_STEP).round() as i32;
    let fit = |step: &i32| {
        let cycles = tempo * (1.0 + f64::from(*step) * TEMPO_STEP) / 60.0 * STEPS_OF_BEAT;
        let (sines, cosines) = times.iter().fold((0.0, 0.0), |(sines, cosines), time| {
            let (sine, cosine) = (std::f64::consts::TAU * cycles * time).sin_cos();
            (sines + sine, cosines + cosine)
        });
        sines.hypot(cosines)
    };
    let best = (-steps..=steps).max_by(|one, other| fit(one).total_cmp(&fit(other)));
    f64::from(best.unwrap_or(0)).abs() * TEMPO_STEP
}

impl GeneratorEvaluation {
    /// Returns the figures as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{:.0} s of generated sound\n", self.seconds);
        let heads = [
            "Fréchet",
            "intervals",
            "loudness",
            "centroid",
            "onsets",
            "nearest",
            "novelty",
        ];
        text += &format!(
            "{:20} {}\n",
            "",
            heads.map(|head| format!("{head:>10}")).join(" ")
        );
        for row in &self.comparisons {
            let Comparison {
                frechet,
                intervals_ms,
                loudness_db,
                centroid_semitones,
                onsets,
                nearest,
                novelty,
                ..
            } = row;
            let values = [
                frechet,
                intervals_ms,
                loudness_db,
                centroid_semitones,
                onsets,
                nearest,
            ]
            .map(|value| Some(*value));
            let values = values
                .into_iter()
                .chain([*novelty])
                .map(|value| match value {
                    Some(value) => format!("{value:>10.3}"),
                    None => format!("{:>10}", "-"),
                });
            text += &format!("{:20} {}\n", row.name, values.collect::<Vec<_>>().join(" "));
        }
        text += &format!(
            "{:20} {}\n",
            "",
            ["", "ms", "dB", "semitones", "/s", "Np", "Np"]
                .map(|unit| format!("{unit:>10}"))
                .join(" ")
        );
        if let Some(timing) = self.timing {
            for (name, timing) in ["recordings", "generator"].into_iter().zip(timing) {
                let Timing {
                    tempo_error_percent: error,
                    largest_tempo_error_percent: largest,
                    deviation_ms,
                } = timing;
                text += &format!(
                    "{name}: tempo error {error:.2} %, at most {largest:.2} %; onsets {deviation_ms:.1} ms off their sixteenths\n"
                );
            }
        }
        for Response {
            control,
            unit,
            measured,
        } in &self.responses
        {
            let pairs = measured
                .iter()
                .map(|(knob, measured)| format!("{knob:.1} gives {measured:.1}"));
            text += &format!(
                "{control}, {unit}: {}\n",
                pairs.collect::<Vec<_>>().join(", ")
            );
        }
        let Endurance {
            pieces,
            levels_db,
            onsets,
            novelty,
            tempo_error_percent,
        } = self.endurance;
        text += &format!(
            "pieces of {LONG_S:.0} s: {pieces}, in parts of {PART_S:.0} s: {:.1} to {:.1} dB, {:.1} to {:.1} onsets a second; in \
             parts of {NOVELTY_S:.0} s: novelty {:.2} to {:.2} Np",
            levels_db.least, levels_db.most, onsets.least, onsets.most, novelty.least, novelty.most
        );
        if let Some(error) = tempo_error_percent {
            text += &format!("; tempo error at most {error:.2} %");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::dsp::noise::fill_normal;

    use super::*;

    #[test]
    fn distances_are_those_of_their_definitions() {
        let ramp: Vec<f32> = (0..500).map(|n| n as f32 / 500.0).collect();
        let shifted: Vec<f32> = ramp.iter().rev().map(|value| value + 3.0).collect();
        assert!((wasserstein(&ramp, &shifted) - 3.0).abs() < 1e-5);
        assert_eq!(wasserstein(&ramp, &ramp), 0.0);
        assert_eq!(wasserstein(&[], &ramp), f64::INFINITY);

        let mut noise = vec![0.0; 400];
        fill_normal(ondes_engine::Kernels::detect(), 3, 0, &mut noise);
        let learnt = Tensor::from_slice(&noise).view([4, 100]);
        let copy = learnt.narrow(1, 37, 20);
        let mean = |distances: Tensor| distances.mean(Kind::Float).double_value(&[]);
        assert!(mean(nearest(&copy, &learnt, 10)) < 1e-2);
        assert!((mean(nearest(&(copy + 2.0), &learnt, 10)) - 2.0).abs() < 0.6);

        let looped = Tensor::cat(&[&learnt.narrow(1, 0, 37); 4], 1);
        assert!(novelties(&looped, 10, 40).all(|distance| distance < 1e-2));
        let new: Vec<f64> = novelties(&learnt, 10, 40).collect();
        // Independent values of variance 1 are √2 apart, the nearest of 31 places somewhat less.
        assert!(
            new.len() == 6 && new.iter().all(|distance| (1.0..1.5).contains(distance)),
            "{new:?}"
        );
    }

    #[test]
    fn timing_is_measured_against_the_grid() {
        // Eighths at 121 beats a minute, every second one half a millisecond late.
        let times: Vec<f64> = (0..400)
            .map(|n| f64::from(n) * 30.0 / 121.0 + if n % 2 == 0 { 0.0 } else { 5e-4 })
            .collect();
        assert!((tempo_error(&times, 120.0) - 1.0 / 120.0).abs() < 1.5e-4);
        let timing = Timing::measure([(times, 121.0)].into_iter());
        assert!(
            timing.tempo_error_percent < 0.02 && timing.largest_tempo_error_percent < 0.02,
            "{timing:?}"
        );
        assert!(
            (timing.deviation_ms - 0.5 / 2.0_f64.sqrt()).abs() < 0.01,
            "{timing:?}"
        );
    }

    #[test]
    fn shuffled_sound_has_the_same_pieces() {
        let sound: Vec<f32> = (0..8_000).map(|n| (n / 160) as f32).collect();
        let mut mixed = shuffled(&sound, 8_000.0);
        assert!(
            mixed != sound
                && mixed
                    .chunks(160)
                    .all(|piece| piece.iter().all(|sample| *sample == piece[0]))
        );
        mixed.sort_by(f32::total_cmp);
        assert_eq!(mixed, sound);
    }
}
