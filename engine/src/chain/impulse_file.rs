//! Files of impulse responses.

use std::io;
use std::path::Path;

use crate::dsp::cabinet::{MAX_RESPONSE_S, Response, ResponseError};
use crate::files;
use crate::media::{Decoder, MediaError, display_name};

/// Largest file, bytes; more than 10 s of stereo at any common rate.
const MAX_BYTES: u64 = 64 << 20;

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
    /// Content of the file.
    pub bytes: Vec<u8>,
}

impl ImpulseFile {
    /// Reads an audio file of any format that [`Decoder`] supports.
    ///
    /// # Errors
    /// Returns [`ImpulseError`] if the file cannot be decoded, or is not an impulse response of one or two channels and
    /// at most 10 s.
    pub fn read(path: &Path) -> Result<Self, ImpulseError> {
        let name = display_name(path);
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MediaError::Missing { file: name.clone() },
            _ => MediaError::Unreadable { file: name.clone(), source },
        };
        Self::parse(&name, files::read(path, MAX_BYTES).map_err(unreadable)?)
    }

    /// Decodes a file in memory; `name` is its name in errors.
    ///
    /// # Errors
    /// Returns [`ImpulseError`] if it cannot be decoded, or is not an impulse response of one or two channels and at
    /// most 10 s.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, ImpulseError> {
        let file = || name.to_owned();
        if bytes.len() as u64 > MAX_BYTES {
            let (quantity, found) = ("the size in bytes", bytes.len() as u64);
            return Err(
                MediaError::Limit { file: file(), quantity, found, supported: format!("0 to {MAX_BYTES}") }.into()
            );
        }
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let mut decoder = Decoder::from_bytes(name, bytes.clone())?;
        let rate = decoder.sample_rate();
        let max_frames = MAX_RESPONSE_S as usize * rate as usize;
        let mut channels = vec![Vec::new(); decoder.channels()];
        let mut block = Vec::new();
        // A response that is too long is refused below.
        while channels[0].len() <= max_frames && decoder.next(&mut block)? {
            for (channel, block) in channels.iter_mut().zip(&block) {
                channel.extend_from_slice(block);
            }
        }
        let response =
            Response::new(channels, rate).map_err(|reason| ImpulseError::Response { file: file(), reason })?;
        Ok(Self { response, hash, bytes })
    }
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
        let expected = Response::new(vec![vec![0.0, 1.0, 0.5], vec![0.0, 0.25, 0.0]], 44_100).unwrap();
        assert_eq!((&file.response, file.response.sample_rate()), (&expected, 44_100));
        let again = ImpulseFile::parse("the project", file.bytes.clone()).unwrap();
        assert_eq!((again.hash, again.response), (file.hash, expected));
    }

    #[test]
    fn errors_are_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| ImpulseFile::read(path).unwrap_err().to_string();
        let path = folder.path().join("long.wav");
        write(&path, 8_000, &[&[0.5; 80_001]]);
        assert!(refused(&path).ends_with("long.wav: an impulse response lasts at most 10 s; this one lasts 10.0 s"));
        let path = folder.path().join("wide.wav");
        write(&path, 8_000, &[&[0.5; 9][..]; 4]);
        assert!(refused(&path).contains("wide.wav: an impulse response has one channel or two"));
        let path = folder.path().join("text.wav");
        std::fs::write(&path, "no sound").unwrap();
        assert!(refused(&path).contains("text.wav: is not audio"));
        assert!(refused(&folder.path().join("none.wav")).ends_with("none.wav: no such file"));
        assert!(refused(folder.path()).contains("cannot be read"));
    }
}
