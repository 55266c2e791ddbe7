//! What a teacher of instruments has to say: its inside, and how it plays what nobody has recorded.

use ondes_engine::model::Model;
use ondes_torch::{TorchGraph, TorchWeights};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tch::Device;

use super::Guide;
use crate::dataset::Batch;

/// How far a batch is transposed, semitones, and how much louder or softer it is made, dB, either way.
const TRANSPOSED: f64 = 4.0;
const LOUDER_DB: f64 = 6.0;

/// A teacher and what is compared with it.
pub struct Lesson {
    synth: TorchGraph,
    room: TorchGraph,
    weights: TorchWeights,
    /// What goes on inside of it, where that can be compared.
    pub guide: Option<Guide>,
    /// Lowest and highest pitch that it has learnt, semitones.
    range: (f64, f64),
}

impl Lesson {
    /// Of a teacher, whose features count by `share`.
    ///
    /// # Errors
    /// When one of the two is no instrument.
    pub fn new(teacher: &Model, student: &Model, share: f64, device: Device) -> anyhow::Result<Self> {
        let header = teacher.header();
        let graph = |name: &str| {
            let graph = TorchGraph::new(teacher.method(name)?, header.sample_rate);
            graph.map(|graph| graph.with_rest(&header.controls))
        };
        let performance = header.performance.unwrap_or_default();
        Ok(Self {
            synth: graph("synth")?,
            room: graph("room")?,
            weights: TorchWeights::new(teacher.weights(), device),
            guide: Guide::new(teacher, student, "synth", share, device)?,
            range: (f64::from(performance.pitch_low), f64::from(performance.pitch_high)),
        })
    }

    /// A batch higher or lower, louder or softer, as the teacher plays it.
    #[must_use]
    pub fn own_batch(&self, batch: Batch, step: u64) -> Batch {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(step);
        let semitones = random.random_range(-TRANSPOSED..TRANSPOSED);
        let louder_db = random.random_range(-LOUDER_DB..LOUDER_DB);
        let mut own = Batch {
            pitch: (batch.pitch + semitones).clamp(self.range.0, self.range.1),
            loudness: batch.loudness + louder_db,
            audio: batch.audio,
        };
        own.audio = tch::no_grad(|| {
            let dry = self.synth.run(&self.weights, &own.controls(), step).remove(0);
            let room = self.room.run(&self.weights, &[dry.shallow_clone()], step).remove(0);
            (dry + room).squeeze_dim(1)
        });
        own
    }
}
