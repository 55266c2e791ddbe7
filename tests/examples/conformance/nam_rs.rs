//! The crate nam-rs, another player of `.nam` files.

use std::panic::catch_unwind;
use std::path::Path;

use nam_rs::{Model, NamModel};

/// Silence before the signal, samples: longer than what any of the files remembers.
const SILENCE: usize = 24_000;

/// Plays a signal after silence.
///
/// # Errors
/// Returns the error, or that it panics.
pub fn play(path: &Path, input: &[f32]) -> Result<Vec<f32>, String> {
    let play = || -> Result<Vec<f32>, nam_rs::Error> {
        let mut model = Model::from_nam(&NamModel::from_file(path)?)?;
        let mut sound = vec![0.0; SILENCE];
        sound.extend_from_slice(input);
        model.process_buffer(&mut sound);
        Ok(sound.split_off(SILENCE))
    };
    catch_unwind(play)
        .map_err(|_| "panics".to_owned())?
        .map_err(|error| error.to_string())
}
