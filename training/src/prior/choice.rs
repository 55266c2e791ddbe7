//! The choice between the Gaussians of a prior: how unlikely one may be to be drawn.
//!
//! A mixture is trained to leave no chance out, so it gives a little to what never happens, and draws that, too, once in a while;
//! after a few such frames a prior plays on from what it has never heard. So it draws only from Gaussians with some share of the
//! likeliest one's probability: the share with which it comes nearest to recordings.

use ondes_engine::model::{Model, Op};
use rayon::prelude::*;

use super::conditions::{Named, styles};
use super::network::{DRAWN, PRIOR};
use super::player::Player;
use crate::data::{Features, Recordings};
use crate::evaluate::timbre::Timbres;

/// Shares that are tried.
const SHARES: [f32; 5] = [0.0, 0.05, 0.1, 0.2, 0.4];
/// Length of the recordings that are compared with, and of the longest piece, seconds.
const COMPARED_S: f64 = 240.0;
const LONGEST_S: f64 = 30.0;

/// Returns a generator that draws from those of its Gaussians with which it comes nearest to recordings, by the [distance of
/// timbres](crate::evaluate::timbre); the generator itself if there is less than a second of them.
///
/// # Errors
/// Returns an error if the model is no generator, or a recording cannot be read.
pub fn chosen(model: &Model, recordings: &Recordings) -> anyhow::Result<Model> {
    let recordings = recordings.thinned(COMPARED_S);
    let names = || recordings.iter().map(|recording| recording.source.name.as_str());
    let styles = styles(names());
    let files = recordings.features().collect::<anyhow::Result<Vec<_>>>()?;
    let sample_rate = f64::from(model.header().sample_rate);
    let timbres = |sounds: &mut dyn Iterator<Item = &[f32]>| {
        let mut timbres = Timbres::new(sample_rate);
        sounds.for_each(|sound| timbres.add(sound));
        timbres
    };
    let recorded = timbres(&mut files.iter().map(Features::audio));
    let mut nearest: Option<(f64, Model)> = None;
    for share in SHARES {
        let tried = with_share(model, share)?;
        let player = Player::new(&tried)?;
        let named: Vec<_> = files.iter().zip(names()).zip(0..).collect();
        let pieces = named.into_par_iter().map(|((file, name), seed)| {
            let settings = player.settings_of(file, Named::new(name, &styles));
            player.play(file.seconds().min(LONGEST_S), &settings, seed)
        });
        let pieces = pieces.collect::<anyhow::Result<Vec<_>>>()?;
        let Some(distance) = timbres(&mut pieces.iter().map(Vec::as_slice)).distance(&recorded) else { break };
        println!("drawn from Gaussians above {share:4} of the likeliest: distance of timbres {distance:.2}");
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, tried));
        }
    }
    Ok(nearest.map_or_else(|| model.clone(), |(_, model)| model))
}

/// Returns a generator that draws from Gaussians above a share of the likeliest one's probability.
///
/// # Errors
/// Returns an error if the model is not valid.
pub fn with_share(model: &Model, share: f32) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let methods = header.methods.iter_mut().filter(|method| method.name == PRIOR);
    for node in methods.flat_map(|method| &mut method.nodes).filter(|node| node.name == DRAWN) {
        if let Op::DrawMixture { least, .. } = &mut node.op {
            *least = share;
        }
    }
    Ok(Model::new(header, model.weights().clone())?)
}
