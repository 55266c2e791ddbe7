//! The last touch: the level of a trained instrument.
//!
//! A distance between magnitudes is smallest at their median, and an uncertain magnitude's median lies below its mean: what was
//! trained plays a little too softly, all over. One gain mends that.

use anyhow::Context;
use ondes_engine::dsp::analysis::analyse;
use ondes_engine::model::{Model, Op};

use crate::dataset::Features;
use crate::evaluate::{AUDIBLE_DB, replay};
use crate::network::LEVEL_NODE;

/// The model with a gain that makes its mean loudness that of the files, by its own replay of them.
///
/// # Errors
/// When the model is not of this trainer's making.
pub fn calibrate(model: &Model, files: &[Features]) -> anyhow::Result<Model> {
    let gain = 10.0_f64.powf(level_error_db(model, files)? / 20.0) as f32;
    let mut header = model.header().clone();
    let nodes = header.methods.iter_mut().flat_map(|method| &mut method.nodes);
    let level = nodes.filter(|node| node.name == LEVEL_NODE).find_map(|node| match &mut node.op {
        Op::Affine { scale, offset } => Some((scale, offset)),
        _ => None,
    });
    let (scale, offset) = level.with_context(|| format!("the model has no node {LEVEL_NODE:?}"))?;
    *scale *= gain;
    *offset *= gain;
    Ok(Model::new(header, model.weights().clone())?)
}

/// Mean difference in loudness between the files and their replay over audible frames, dB; above 0 where the replay is softer.
fn level_error_db(model: &Model, files: &[Features]) -> anyhow::Result<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for file in files {
        let frames = analyse(&replay(model, file)?, f64::from(file.rate.sample_rate), file.rate.hop);
        for (frame, &loudness) in frames.iter().zip(file.loudness()).filter(|(_, loudness)| **loudness >= AUDIBLE_DB) {
            // A frame that is missing altogether says nothing about the level of the others.
            sum += f64::from((loudness - frame.loudness).clamp(-12.0, 12.0));
            count += 1;
        }
    }
    Ok(sum / count.max(1) as f64)
}
