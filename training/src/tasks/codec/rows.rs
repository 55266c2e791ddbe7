//! Rows of a codec's batches: a crop, and a tone of known pitch.

use std::sync::Arc;

use tch::Tensor;

use super::tones::{Tone, ToneSource, Tones};
use crate::data::store::Reads;
use crate::data::{Crop, CropBatch, Dataset, RowSource, TensorGroup};

/// Source of crops and, for codecs that learn the pitch from them, tones.
pub struct CodecRows {
    /// Recordings.
    pub dataset: Arc<Dataset>,
    /// Tones; `None` for codecs without.
    pub tones: Option<ToneSource>,
}

/// Crops and tones of a step.
pub struct CropsAndTones {
    /// Crops.
    pub crops: CropBatch,
    /// Tones, as many as crops.
    pub tones: Option<Tones>,
}

impl TensorGroup for CropsAndTones {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self {
            crops: self.crops.map(change),
            tones: self.tones.map(|tones| tones.map(change)),
        }
    }
}

impl RowSource for CodecRows {
    type Row = (Crop, Option<Tone>);
    type Batch = CropsAndTones;

    fn row(&self, step: u64, row: usize) -> anyhow::Result<Self::Row> {
        Ok((
            self.dataset.row(step, row)?,
            self.tones.as_ref().map(|tones| tones.tone(step, row)),
        ))
    }

    fn joined(&self, rows: &[Arc<Self::Row>]) -> CropsAndTones {
        let tones: Option<Vec<&Tone>> = rows.iter().map(|row| row.1.as_ref()).collect();
        CropsAndTones {
            crops: CropBatch::new(rows.iter().map(|row| &row.0)),
            tones: tones.map(|tones| Tones::new(tones.into_iter())),
        }
    }

    fn row_bytes(&self) -> usize {
        self.dataset.row_bytes() + self.tones.as_ref().map_or(0, ToneSource::tone_bytes)
    }

    fn reads(&self) -> Reads {
        self.dataset.reads()
    }
}
