//! Latents and conditions of recordings, and crops of them.

use std::sync::Arc;

use anyhow::{Context, ensure};
use ondes_engine::Kernels;
use ondes_engine::dsp::noise::{fill_normal, stream_seed};
use ondes_engine::executor::Execute;
use ondes_engine::model::Model;
use ondes_engine::native::Executor;
use ondes_engine::pipeline::BarPositions;
use ondes_engine::random::SplitMix64;
use ondes_kernels::FlushToZero;
use rayon::prelude::*;
use tch::{Kind, Tensor};

use super::conditions::{Condition, MeasuredCondition, PathInfo, Spread, styles};
use super::config::RegularizationConfig;
use crate::data::rows::stack;
use crate::data::{Features, Recordings, RowSource, TensorGroup, shard::quantile};
use crate::tasks::control::control;

/// Seconds of sound that are encoded at once.
const STEP_S: f64 = 1.0;
/// Least deviation of a latent, relative to the largest one.
const MIN_DEVIATION: f32 = 1e-3;
/// Least deviation and range of a condition, in its unit, to become a control.
const MIN_CONDITION: f32 = 0.05;
/// Quantile of the values at the lower end of a knob's range; that of the upper end is 1 minus it.
const BEYOND_RANGE: f32 = 0.02;
/// Range of the tempo control beyond that of the recordings, as a factor.
const BEYOND_TEMPO: f32 = 1.1;

/// Latents and conditions of recordings, concatenated.
pub struct LatentStream {
    /// `[latent, frame]`
    pub latents: Tensor,
    /// `[condition, frame]`
    pub conditions: Tensor,
    /// First frame of each recording.
    pub starts: Vec<i64>,
    /// Tempo of each recording, beats a minute; empty if one is unknown.
    pub tempos: Vec<f32>,
    /// Styles of the whole dataset.
    pub styles: Vec<String>,
}

/// Batch of crops, `[row, channel, group]`.
pub struct Crops {
    /// Standardised latents: all of the group's first frame, then of the next.
    pub target: Tensor,
    /// Inputs of the training graph, in the order of its ports.
    pub inputs: Vec<Tensor>,
}

/// Encodes a sound as the player does; returns latents `[frame][latent]` of whole frames.
fn encode(codec: &Model, sound: &[f32]) -> anyhow::Result<Vec<f32>> {
    let method = codec.method("encode")?;
    let main = method
        .inputs
        .iter()
        .position(|port| port.ratio == 1)
        .context("its encoder takes no sound")?;
    let blocks = ((STEP_S * f64::from(codec.header().sample_rate)) as usize).div_ceil(method.block);
    let mut executor = Executor::new(codec, "encode", Kernels::detect(), 1, blocks)?;
    let _flush = FlushToZero::on();
    let port = &method.outputs[0];
    let mut latents = Vec::with_capacity(sound.len() / port.ratio * port.channels);
    for step in sound.chunks(blocks * method.block) {
        executor.begin(&[0], step.len().div_ceil(method.block));
        for (index, input) in method.inputs.iter().enumerate() {
            let control = control(codec, &input.name);
            let default = control.map_or(0.0, |control| control.default);
            executor.input(index).fill(default);
        }
        let channels = method.inputs[main].channels;
        for (frame, sample) in executor.input(main).chunks_exact_mut(channels).zip(step) {
            frame.fill(*sample);
        }
        executor.run();
        latents.extend_from_slice(&executor.output(0)[..step.len() / port.ratio * port.channels]);
    }
    Ok(latents)
}

impl LatentStream {
    /// Encodes recordings at the [rates of the encoder](crate::data::FeatureRate::from_encoder) and
    /// measures conditions in them, on all cores.
    ///
    /// # Errors
    /// Returns an error if the codec cannot encode them, a recording cannot be read, or the latents
    /// are not finite.
    pub fn new(
        codec: &Model,
        recordings: &Recordings,
        conditions: &[Condition],
    ) -> anyhow::Result<Self> {
        let method = codec.method("encode")?;
        // Latents describe the sound earlier by the latency of the encoder.
        let late = codec.latency_samples(method);
        let name = |index: usize| recordings.store.recordings()[index].source.name.as_str();
        let styles = styles((0..recordings.store.recordings().len()).map(name));
        let named = |index: usize| PathInfo::new(name(index), &styles);
        let tempos: Option<Vec<f32>> = recordings
            .indices
            .iter()
            .map(|index| named(*index).tempo)
            .collect();
        let encoded = recordings.indices.par_iter().map(|&index| {
            let one = recordings.subset(vec![index]);
            let recording: Features = one.features().next().context("there is a recording")??;
            let latents = encode(codec, recording.audio())?;
            let measured = conditions
                .iter()
                .map(|condition| condition.measure(&recording, named(index), late));
            anyhow::Ok((recording.frames(), latents, measured.collect::<Vec<_>>()))
        });
        let encoded = encoded.collect::<anyhow::Result<Vec<_>>>()?;
        let mut frames = 0;
        let mut starts = Vec::with_capacity(encoded.len());
        for (length, ..) in &encoded {
            starts.push(frames);
            frames += *length as i64;
        }
        let latents: Vec<f32> = encoded
            .iter()
            .flat_map(|(_, latents, _)| latents.iter().copied())
            .collect();
        ensure!(
            latents.iter().all(|latent| latent.is_finite()),
            "the codec makes latents that are not finite"
        );
        let values = |condition: usize| {
            encoded
                .iter()
                .flat_map(move |(.., measured)| measured[condition].iter().copied())
        };
        let measured: Vec<f32> = (0..conditions.len()).flat_map(values).collect();
        Ok(Self {
            latents: Tensor::from_slice(&latents)
                .view([frames, -1])
                .transpose(0, 1)
                .contiguous(),
            conditions: Tensor::from_slice(&measured).view([conditions.len() as i64, frames]),
            starts,
            tempos: tempos.unwrap_or_default(),
            styles,
        })
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn frames(&self) -> i64 {
        self.latents.size()[1]
    }

    /// Splits off the last `share` of the stream.
    #[must_use]
    pub fn split(&self, share: f64) -> [Self; 2] {
        let first = ((1.0 - share) * self.frames() as f64) as i64;
        [(0, first), (first, self.frames() - first)].map(|(start, length)| Self {
            latents: self.latents.narrow(1, start, length),
            conditions: self.conditions.narrow(1, start, length),
            starts: self
                .starts
                .iter()
                .map(|first| first - start)
                .filter(|first| (0..length).contains(first))
                .collect(),
            tempos: self.tempos.clone(),
            styles: self.styles.clone(),
        })
    }

    /// Returns mean and deviation of each latent. The deviation is at least a thousandth of the
    /// largest one.
    ///
    /// # Errors
    /// Returns an error if all latents are constant.
    pub fn spreads(&self) -> anyhow::Result<Vec<Spread>> {
        let means = Vec::<f32>::try_from(self.latents.mean_dim(1, false, Kind::Float))?;
        let deviations = Vec::<f32>::try_from(self.latents.std_dim(1, false, false))?;
        let largest = deviations.iter().copied().fold(0.0, f32::max);
        ensure!(
            largest > 0.0,
            "the codec makes the same latents of all sounds"
        );
        let spread = |(mean, deviation): (&f32, &f32)| Spread {
            mean: *mean,
            deviation: deviation.max(MIN_DEVIATION * largest),
        };
        Ok(means.iter().zip(&deviations).map(spread).collect())
    }

    /// Returns the conditions that vary, with their spreads and ranges.
    ///
    /// # Errors
    /// Returns libtorch's error.
    pub fn measured(&self, conditions: &[Condition]) -> anyhow::Result<Vec<MeasuredCondition>> {
        let mut measured = Vec::new();
        for (&condition, values) in conditions.iter().zip(self.conditions.unbind(0)) {
            let known = match condition {
                Condition::Style => self.measured_styles(),
                Condition::Bars => self.measured_tempos(),
                Condition::Density | Condition::Loudness => measured_values(condition, &values)?,
            };
            measured.extend(known);
        }
        Ok(measured)
    }

    /// Returns the condition of the style, if there are several.
    fn measured_styles(&self) -> Option<MeasuredCondition> {
        let last = self.styles.len().checked_sub(1)?;
        Some(MeasuredCondition {
            condition: Condition::Style,
            spread: Spread::UNIT,
            range: (0.0, last as f32),
            names: self.styles.clone(),
        })
    }

    /// Returns the condition of the bars, if all tempos are known.
    fn measured_tempos(&self) -> Option<MeasuredCondition> {
        let at = |share: f32| quantile(self.tempos.clone(), share);
        (!self.tempos.is_empty()).then(|| MeasuredCondition {
            condition: Condition::Bars,
            spread: Spread {
                mean: at(0.5),
                ..Spread::UNIT
            },
            range: (at(0.0) / BEYOND_TEMPO, BEYOND_TEMPO * at(1.0)),
            names: Vec::new(),
        })
    }

    /// Returns the stream with some of the conditions, by index.
    #[must_use]
    pub fn select_conditions(&self, indices: &[i64]) -> Self {
        Self {
            latents: self.latents.shallow_clone(),
            conditions: self
                .conditions
                .index_select(0, &Tensor::from_slice(indices)),
            starts: self.starts.clone(),
            tempos: self.tempos.clone(),
            styles: self.styles.clone(),
        }
    }
}

/// Returns a condition that is measured in the sound, if its values vary.
fn measured_values(
    condition: Condition,
    values: &Tensor,
) -> anyhow::Result<Option<MeasuredCondition>> {
    let spread = Spread {
        mean: values.mean(Kind::Float).double_value(&[]) as f32,
        deviation: values.std(false).double_value(&[]) as f32,
    };
    let values = Vec::<f32>::try_from(values)?;
    let range = (
        quantile(values.clone(), BEYOND_RANGE),
        quantile(values, 1.0 - BEYOND_RANGE),
    );
    let varies = spread.deviation > MIN_CONDITION && range.1 - range.0 > MIN_CONDITION;
    Ok(varies.then_some(MeasuredCondition {
        condition,
        spread,
        range,
        names: Vec::new(),
    }))
}

/// Standardises latents `[latent, frame]`.
pub fn standardized(latents: &Tensor, spreads: &[Spread]) -> Tensor {
    let column = |value: fn(&Spread) -> f32| {
        Tensor::from_slice(&spreads.iter().map(value).collect::<Vec<f32>>()).view([-1, 1])
    };
    (latents - column(|spread| spread.mean)) / column(|spread| spread.deviation)
}

/// Values of channels over time.
struct Series {
    /// `[channel][frame]`
    values: Vec<f32>,
    frames: usize,
}

impl Series {
    /// Copies values `[channel, frame]`.
    fn new(values: &Tensor) -> anyhow::Result<Self> {
        Ok(Self {
            values: Vec::try_from(values.contiguous().view(-1))?,
            frames: values.size()[1] as usize,
        })
    }

    /// Groups frames: returns `[frame in the group · channel][group]`.
    fn grouped(&self, start: usize, group: usize, length: usize) -> Vec<f32> {
        let frame = |offset: usize| {
            let channels = self.values.chunks_exact(self.frames);
            channels.flat_map(move |values| {
                (0..length).map(move |index| values[start + index * group + offset])
            })
        };
        (0..group).flat_map(frame).collect()
    }
}

/// Standardised latents from which crops are cut.
pub struct CropSource {
    standardized: Series,
    /// `[condition]`: one channel.
    conditions: Vec<Series>,
    /// First frame of each recording.
    starts: Vec<i64>,
    memory: BarMemory,
    /// Frames of the codec in a group.
    group: usize,
    /// Groups in a crop.
    length: usize,
    seed: u64,
}

/// Memory of bars of a prior: its inputs for the latents of previous bars.
#[derive(Clone, Debug, Default)]
pub struct BarMemory {
    /// Distance of each remembered bar, in bars; empty without a memory.
    pub bars: Vec<usize>,
    /// Index of the condition with the position in the bars.
    pub condition: i64,
}

impl CropSource {
    /// Prepares crops of `length` groups of `group` frames, or of the whole stream if it is
    /// shorter.
    ///
    /// # Errors
    /// Returns an error if the stream is shorter than two groups.
    pub fn new(
        stream: &LatentStream,
        spreads: &[Spread],
        memory: &BarMemory,
        [group, length]: [usize; 2],
        seed: u64,
    ) -> anyhow::Result<Self> {
        let length = length.min(stream.frames() as usize / group);
        ensure!(
            length >= 2,
            "the recordings are too short: {} frames of the codec",
            stream.frames()
        );
        let count = stream.conditions.size()[0];
        let conditions =
            (0..count).map(|condition| Series::new(&stream.conditions.narrow(0, condition, 1)));
        let conditions = conditions.collect::<anyhow::Result<_>>()?;
        let standardized = Series::new(&standardized(&stream.latents, spreads))?;
        Ok(Self {
            standardized,
            conditions,
            starts: stream.starts.clone(),
            memory: memory.clone(),
            group,
            length,
            seed,
        })
    }

    /// Returns the whole stream, `[channel, group]`.
    pub fn all(&self) -> Tensor {
        let length = self.standardized.frames / self.group;
        Tensor::from_slice(&self.standardized.grouped(0, self.group, length))
            .view([-1, length as i64])
    }

    /// Returns the number of crops that do not overlap.
    #[must_use]
    pub fn disjoint_crops(&self) -> u64 {
        (self.standardized.frames / (self.group * self.length)) as u64
    }

    /// Returns a random crop with noise on the previous frames and dropout of the conditions
    /// (classifier-free). It depends on seed, step and row only.
    fn training(&self, step: u64, row: usize, config: RegularizationConfig) -> Crop {
        let seed = stream_seed(stream_seed(self.seed, step), row as u64);
        let mut random = SplitMix64::new(seed);
        let mut share = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let places = self.standardized.frames - self.length * self.group + 1;
        let start = (share() * places as f64) as usize;
        let mut shown = || f32::from(u8::from(share() >= config.hidden));
        let dropout = Dropout {
            conditioning: shown(),
            memory: shown(),
        };
        let deviation = (2.0 * config.noise * share()) as f32;
        let mut noise = vec![0.0; self.channels() * self.length];
        fill_normal(Kernels::detect(), seed, 0, &mut noise);
        noise.iter_mut().for_each(|value| *value *= deviation);
        self.crop(start, dropout, Some(&noise))
    }

    /// Returns crops that do not overlap, by index, with all conditions and without noise.
    #[must_use]
    pub fn validation(&self, crops: impl Iterator<Item = u64>) -> Crops {
        let crop = |crop: u64| {
            self.crop(
                crop as usize * self.length * self.group,
                Dropout {
                    conditioning: 1.0,
                    memory: 1.0,
                },
                None,
            )
        };
        let crops: Vec<Crop> = crops.map(crop).collect();
        Crops::new(crops.iter(), self.length)
    }

    /// Returns the channels of a group.
    fn channels(&self) -> usize {
        self.standardized.values.len() / self.standardized.frames * self.group
    }

    fn crop(&self, start: usize, dropout: Dropout, noise: Option<&[f32]>) -> Crop {
        let length = self.length;
        let target = self.standardized.grouped(start, self.group, length);
        // A prior starts from zeros.
        let mut previous = vec![0.0; target.len()];
        for (before, values) in previous
            .chunks_exact_mut(length)
            .zip(target.chunks_exact(length))
        {
            before[1..].copy_from_slice(&values[..length - 1]);
        }
        if let Some(noise) = noise {
            for (values, noise) in previous
                .chunks_exact_mut(length)
                .zip(noise.chunks_exact(length))
            {
                values[1..]
                    .iter_mut()
                    .zip(&noise[1..])
                    .for_each(|(value, noise)| *value += noise);
            }
        }
        let constant = |value: f32| vec![value; length];
        let recalled = self.recalled(&previous, start);
        let mut inputs = vec![previous, constant(1.0)];
        if !recalled.is_empty() {
            inputs.extend(recalled);
            inputs.push(constant(dropout.memory));
        }
        if !self.conditions.is_empty() {
            inputs.push(constant(dropout.conditioning));
        }
        inputs.extend((0..self.conditions.len()).map(|condition| self.condition(condition, start)));
        Crop { target, inputs }
    }

    /// Returns a condition at the first frame of each group of a crop.
    fn condition(&self, condition: usize, start: usize) -> Vec<f32> {
        let values = &self.conditions[condition].values[start..];
        (0..self.length)
            .map(|index| values[index * self.group])
            .collect()
    }

    /// Returns the inputs of the memory of bars after these groups, as the player fills them,
    /// `[channel][group]` for each remembered bar. Frames of the previous recording are zeros.
    fn recalled(&self, previous: &[f32], start: usize) -> Vec<Vec<f32>> {
        let BarMemory { bars, condition } = &self.memory;
        if bars.is_empty() {
            return Vec::new();
        }
        let (length, group_frames) = (self.length, self.group as i64);
        let places = self.condition(*condition as usize, start);
        let recalled = |bars: &usize| {
            let mut positions = BarPositions::new(places.len());
            // The index behind the last group stands for zeros: not known.
            let (mut groups, mut told) = (
                [vec![length; length], vec![length; length]],
                [vec![0.0; length], vec![0.0; length]],
            );
            for (group, place) in places.iter().enumerate() {
                let end = start as i64 + group as i64 * group_frames;
                if self
                    .starts
                    .iter()
                    .any(|first| (end - group_frames + 1..=end).contains(first))
                {
                    positions.clear();
                }
                positions.push(*place);
                if let Some(moment) = positions.before(*bars as f64) {
                    let block = group - moment.blocks_ago;
                    [groups[0][group], groups[1][group]] = [block + 1, block + 2];
                    [told[0][group], told[1][group]] = [moment.share, 1.0];
                }
            }
            let at = |groups: &[usize]| -> Vec<f32> {
                let channels = previous.chunks_exact(length);
                channels
                    .flat_map(|values| {
                        groups
                            .iter()
                            .map(|group| values.get(*group).copied().unwrap_or(0.0))
                    })
                    .collect()
            };
            [at(&groups[0]), at(&groups[1]), told.concat()].concat()
        };
        bars.iter().map(recalled).collect()
    }
}

/// Strength of the conditioning and of the memory of bars: 0 where dropout hides them, otherwise 1.
#[derive(Clone, Copy)]
struct Dropout {
    conditioning: f32,
    memory: f32,
}

/// A crop, each part `[channel][group]`.
pub struct Crop {
    target: Vec<f32>,
    inputs: Vec<Vec<f32>>,
}

/// Source of random crops with noise and dropout of the conditions.
pub struct TrainingCrops {
    /// Latents.
    pub source: CropSource,
    /// Noise and rate of the dropout.
    pub regularization: RegularizationConfig,
}

impl RowSource for TrainingCrops {
    type Row = Crop;
    type Batch = Crops;

    fn row(&self, step: u64, row: usize) -> anyhow::Result<Crop> {
        Ok(self.source.training(step, row, self.regularization))
    }

    fn joined(&self, rows: &[Arc<Crop>]) -> Crops {
        Crops::new(rows.iter().map(Arc::as_ref), self.source.length)
    }

    fn row_bytes(&self) -> usize {
        let CropSource {
            memory,
            conditions,
            length,
            ..
        } = &self.source;
        let channels = self.source.channels();
        let recalled = memory.bars.len() * (2 * channels + 2);
        // The target, the same before, and three ports of one channel.
        (2 * channels + recalled + conditions.len() + 3) * length * size_of::<f32>()
    }
}

impl Crops {
    /// Stacks crops of `length` groups.
    fn new<'a>(crops: impl ExactSizeIterator<Item = &'a Crop> + Clone, length: usize) -> Self {
        let rows = crops.len() as i64;
        let stacked = |part: &dyn Fn(&'a Crop) -> &'a [f32]| {
            stack(crops.clone().map(part)).view([rows, -1, length as i64])
        };
        let ports = crops.clone().next().map_or(0, |crop| crop.inputs.len());
        Self {
            target: stacked(&|crop| &crop.target),
            inputs: (0..ports)
                .map(|port| stacked(&|crop| &crop.inputs[port]))
                .collect(),
        }
    }
}

impl TensorGroup for Crops {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self {
            target: change(self.target),
            inputs: self.inputs.into_iter().map(change).collect(),
        }
    }
}
