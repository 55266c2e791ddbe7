//! Teacher of an instrument: its hidden features, and its sound at pitches and levels that no
//! recording has.

use ondes_engine::model::{Header, Model};
use ondes_torch::{TorchGraph, TorchWeights};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::Device;

use crate::data::CropBatch;
use crate::loss::feature_matching::FeatureMatching;

/// Largest transposition of a batch, semitones, and largest change of its loudness, dB, either way.
const MAX_TRANSPOSE: f64 = 4.0;
const MAX_GAIN_DB: f64 = 6.0;

/// Teacher of an instrument.
pub struct InstrumentTeacher {
    header: Header,
    synth: TorchGraph,
    room: TorchGraph,
    weights: TorchWeights,
    /// Feature-matching loss; `None` if there are no shared features.
    pub features: Option<FeatureMatching>,
    /// Lowest and highest pitch of the teacher, semitones.
    range: (f64, f64),
}

impl InstrumentTeacher {
    /// Creates a teacher whose feature-matching loss has the weight `share`.
    ///
    /// # Errors
    /// Returns an error if one of the models is no instrument.
    pub fn new(
        teacher: &Model,
        student: &Model,
        share: f64,
        device: Device,
    ) -> anyhow::Result<Self> {
        let header = teacher.header();
        let graph = |name: &str| {
            let graph = TorchGraph::new(teacher.method(name)?, header.sample_rate);
            graph.map(|graph| graph.with_defaults(&header.controls))
        };
        let performance = header.performance.unwrap_or_default();
        Ok(Self {
            header: header.clone(),
            synth: graph("synth")?,
            room: graph("room")?,
            weights: TorchWeights::new(teacher.weights(), device),
            features: FeatureMatching::new(teacher, student, "synth", share, device)?,
            range: (
                f64::from(performance.pitch_low),
                f64::from(performance.pitch_high),
            ),
        })
    }

    /// Transposes a batch and changes its loudness, both randomly by `step`, and lets the teacher
    /// render it.
    #[must_use]
    pub fn augmented_batch(&self, batch: CropBatch, step: u64) -> CropBatch {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(step);
        let semitones = random.random_range(-MAX_TRANSPOSE..MAX_TRANSPOSE);
        let gain_db = random.random_range(-MAX_GAIN_DB..MAX_GAIN_DB);
        let mut augmented = CropBatch {
            pitch: (&batch.pitch + semitones).clamp(self.range.0, self.range.1),
            loudness: &batch.loudness + gain_db,
            ..batch
        };
        augmented.audio = tch::no_grad(|| {
            let dry = self
                .synth
                .run(&self.weights, &augmented.inputs(&self.header), step)
                .remove(0);
            let room = self
                .room
                .run(&self.weights, &[dry.shallow_clone()], step)
                .remove(0);
            (dry + room).squeeze_dim(1)
        });
        augmented
    }
}
