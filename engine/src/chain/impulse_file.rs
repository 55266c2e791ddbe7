//! Files of impulse responses.

use std::io;
use std::path::Path;

use crate::dsp::cabinet::{INAUDIBLE, MAX_RESPONSE_S, Response, ResponseError};
use crate::files;
use crate::media::{Decoder, MediaError, display_name};

/// Largest file, bytes; more than a minute of stereo at 192 kHz.
const MAX_BYTES: u64 = 128 << 20;
/// Largest file whose content is kept, to be embedded in projects, bytes.
pub const MAX_KEPT_BYTES: usize = 4 << 20;
/// Longest file that is decoded, s: of a longer one most is silence.
const MAX_DECODED_S: u64 = 3_600;

/// Error of an impulse response file, displayed as one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum ImpulseError {
    /// The file cannot be decoded.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The audio is not a valid impulse response.
    #[error("{file}: {reason}")]
    Response {
        /// File name, as given by the caller.
        file: String,
        /// Reason.
        reason: ResponseError,
    },
}

/// Impulse response with the file it came from.
#[derive(Debug)]
pub struct ImpulseFile {
    /// The response.
    pub response: Response,
    /// BLAKE3 hash of the file in hexadecimal, its identity independent of its path.
    pub hash: String,
    /// Content of the file; empty beyond [`MAX_KEPT_BYTES`].
    pub bytes: Vec<u8>,
}

impl ImpulseFile {
    /// Reads an audio file of any format that [`Decoder`] supports.
    ///
    /// # Errors
    /// Returns [`ImpulseError`] if the file cannot be decoded, or is not a [`Response`].
    pub fn read(path: &Path) -> Result<Self, ImpulseError> {
        let name = display_name(path);
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MediaError::Missing { file: name.clone() },
            _ => MediaError::Unreadable {
                file: name.clone(),
                source,
            },
        };
        Self::parse(&name, files::read(path, MAX_BYTES).map_err(unreadable)?)
    }

    /// Decodes a file in memory; `name` is its name in errors.
    ///
    /// # Errors
    /// Returns [`ImpulseError`] if it cannot be decoded, or is not a [`Response`].
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, ImpulseError> {
        let file = || name.to_owned();
        if bytes.len() as u64 > MAX_BYTES {
            let (quantity, found) = ("the size in bytes", bytes.len() as u64);
            return Err(MediaError::Limit {
                file: file(),
                quantity,
                found,
                supported: format!("0 to {MAX_BYTES}"),
            }
            .into());
        }
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let kept = if bytes.len() <= MAX_KEPT_BYTES {
            bytes.clone()
        } else {
            Vec::new()
        };
        let mut decoder = Decoder::from_bytes(name, bytes)?;
        let response = decode(&mut decoder)?.map_err(|reason| ImpulseError::Response {
            file: file(),
            reason,
        })?;
        Ok(Self {
            response,
            hash,
            bytes: kept,
        })
    }
}

/// Decodes a response. Silence at its end does not count; of what is too long, only the length is
/// found out.
fn decode(decoder: &mut Decoder) -> Result<Result<Response, ResponseError>, MediaError> {
    let rate = decoder.sample_rate();
    let most = MAX_RESPONSE_S as usize * rate as usize;
    let mut channels = vec![Vec::new(); decoder.channels()];
    let (mut frames, mut sounding, mut peak) = (0, 0, 0.0_f32);
    let mut block = Vec::new();
    while frames as u64 <= MAX_DECODED_S * u64::from(rate) && decoder.next(&mut block)? {
        for (channel, block) in channels.iter_mut().zip(&block) {
            channel.extend_from_slice(&block[..block.len().min(most - channel.len())]);
            peak = block
                .iter()
                .fold(peak, |peak, sample| peak.max(sample.abs()));
            let last = block
                .iter()
                .rposition(|sample| sample.abs() > INAUDIBLE * peak);
            sounding = sounding.max(last.map_or(0, |last| frames + last + 1));
        }
        frames += block.first().map_or(0, Vec::len);
    }
    if decoder.replaced() > 0 {
        return Ok(Err(ResponseError::Damaged));
    }
    if sounding > most {
        return Ok(Err(ResponseError::Length(
            sounding as f64 / f64::from(rate),
        )));
    }
    Ok(Response::new(channels, rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{WavBits, WavWriter};

    fn write(path: &Path, rate: u32, channels: &[&[f32]]) {
        let mut wav = WavWriter::create(path, rate, channels.len(), WavBits::Float32).unwrap();
        wav.write(channels).unwrap();
        wav.finish().unwrap();
    }

    #[test]
    fn files_have_a_content_hash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.wav");
        write(&path, 44_100, &[&[0.0, 1.0, 0.5], &[0.0, 0.25, 0.0]]);
        let file = ImpulseFile::read(&path).unwrap();
        let expected =
            Response::new(vec![vec![0.0, 1.0, 0.5], vec![0.0, 0.25, 0.0]], 44_100).unwrap();
        assert_eq!(
            (&file.response, file.response.sample_rate()),
            (&expected, 44_100)
        );
        let again = ImpulseFile::parse("the project", file.bytes.clone()).unwrap();
        assert_eq!((again.hash, again.response), (file.hash, expected));
    }

    #[test]
    fn silence_at_the_end_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hall.wav");
        let mut taps = vec![0.0; 8_000 * 90];
        (taps[0], taps[8_000 * 59]) = (1.0, 1e-4);
        write(&path, 8_000, &[&taps]);
        assert_eq!(
            ImpulseFile::read(&path).unwrap().response.seconds(),
            f64::from(MAX_RESPONSE_S)
        );
        taps[8_000 * 70] = 1e-4;
        write(&path, 8_000, &[&taps]);
        assert!(
            ImpulseFile::read(&path)
                .unwrap_err()
                .to_string()
                .ends_with("sounds for 70.0 s")
        );
    }

    #[test]
    fn errors_are_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| ImpulseFile::read(path).unwrap_err().to_string();
        let path = folder.path().join("long.wav");
        write(&path, 8_000, &[&[0.5; 488_000]]);
        assert!(refused(&path).ends_with(
            "long.wav: an impulse response sounds for at most 60 s; this one sounds for 61.0 s"
        ));
        let path = folder.path().join("wide.wav");
        write(&path, 8_000, &[&[0.5; 9][..]; 3]);
        assert!(refused(&path).contains(
            "wide.wav: an impulse response has one, two or four channels; this one has 3"
        ));
        let path = folder.path().join("text.wav");
        std::fs::write(&path, "no sound").unwrap();
        assert!(refused(&path).contains("text.wav: is not audio"));
        assert!(refused(&folder.path().join("none.wav")).ends_with("none.wav: no such file"));
        assert!(refused(folder.path()).contains("cannot be read"));
    }
}
