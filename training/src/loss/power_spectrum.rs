//! Power spectra over time.

use tch::{Kind, Tensor};

/// Returns the power of `[batch, samples]` by bin and frame, `[batch, bin, frame]`. Frames start at
/// multiples of the hop; sounds shorter than a transform are padded with silence.
pub fn power_spectrum(sound: &Tensor, length: i64, hop: i64, window: &Tensor) -> Tensor {
    let missing = (length - sound.size()[1]).max(0);
    let sound = if missing > 0 {
        sound.constant_pad_nd([0, missing])
    } else {
        sound.shallow_clone()
    };
    let spectrum = sound.stft(
        length,
        hop,
        window.size()[0],
        Some(window),
        false,
        true,
        true,
        false,
    );
    spectrum
        .view_as_real()
        .square()
        .sum_dim_intlist([-1_i64].as_slice(), false, Kind::Float)
}
