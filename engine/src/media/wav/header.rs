//! Headers of WAV files.

use super::WavBits;

/// Format of a WAV file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub sample_rate: u32,
    pub channels: u16,
    pub bits: WavBits,
}

/// Longest RIFF chunk, bytes; the largest 32-bit number means "unknown".
pub(super) const LARGEST_RIFF: u64 = u32::MAX as u64 - 1;

/// Size of a `ds64` chunk (EBU Tech 3306): the lengths of the RIFF and data chunks in bytes, the
/// number of frames, and the size of a table, which is empty.
const LENGTHS_BYTES: usize = 28;

/// Sub-format GUID of WAVE_FORMAT_EXTENSIBLE after its leading format tag.
const SUB_FORMAT: [u8; 14] = [0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113];

impl Header {
    fn frame_bytes(self) -> u16 {
        self.channels * self.bits.bytes()
    }

    pub fn data_bytes(self, frames: u64) -> u64 {
        frames * u64::from(self.frame_bytes())
    }

    /// Returns the most frames that 32-bit lengths allow; the largest number means "unknown".
    pub fn max_frames(self) -> u64 {
        let overhead = self.with_frames(0).len() as u64 + 1;
        (u64::from(u32::MAX) - 1 - overhead) / u64::from(self.frame_bytes())
    }

    pub fn unknown_length(self) -> Vec<u8> {
        self.bytes(b"RIFF", u32::MAX, None, None, u32::MAX)
    }

    /// Encodes the header for at most [`max_frames`](Self::max_frames) frames.
    pub fn with_frames(self, frames: u64) -> Vec<u8> {
        let short = |value: u64| u32::try_from(value).expect("the length was checked");
        let data = self.data_bytes(frames);
        let empty = self.bytes(b"RIFF", 0, None, Some(0), 0).len() as u64 - 8;
        self.bytes(
            b"RIFF",
            short(empty + data + data % 2),
            None,
            Some(short(frames)),
            short(data),
        )
    }

    /// Encodes the header for any length. It reserves space for 64-bit lengths, which are used if
    /// the RIFF chunk exceeds `largest_riff` bytes.
    pub fn growing(self, frames: u64, largest_riff: u64) -> Vec<u8> {
        let data = self.data_bytes(frames);
        let no_lengths = [0; LENGTHS_BYTES];
        let empty = self
            .bytes(b"RIFF", 0, Some((b"JUNK", no_lengths)), Some(0), 0)
            .len() as u64
            - 8;
        let riff = empty + data + data % 2;
        if riff <= largest_riff.min(LARGEST_RIFF) {
            let (riff, frames, data) = (riff as u32, frames as u32, data as u32);
            return self.bytes(
                b"RIFF",
                riff,
                Some((b"JUNK", no_lengths)),
                Some(frames),
                data,
            );
        }
        let mut lengths = no_lengths;
        for (place, length) in lengths.chunks_exact_mut(8).zip([riff, data, frames]) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        self.bytes(
            b"RF64",
            u32::MAX,
            Some((b"ds64", lengths)),
            Some(u32::MAX),
            u32::MAX,
        )
    }

    fn bytes(
        self,
        form: &[u8; 4],
        riff: u32,
        lengths: Option<(&[u8; 4], [u8; LENGTHS_BYTES])>,
        frames: Option<u32>,
        data: u32,
    ) -> Vec<u8> {
        let bits = 8 * self.bits.bytes();
        let tag: u16 = if self.bits == WavBits::Float32 { 3 } else { 1 };
        let extensible = self.channels > 2;
        let mut format = Vec::new();
        format.extend_from_slice(&(if extensible { 0xfffe } else { tag }).to_le_bytes());
        format.extend_from_slice(&self.channels.to_le_bytes());
        format.extend_from_slice(&self.sample_rate.to_le_bytes());
        format.extend_from_slice(&(self.sample_rate * u32::from(self.frame_bytes())).to_le_bytes());
        format.extend_from_slice(&self.frame_bytes().to_le_bytes());
        format.extend_from_slice(&bits.to_le_bytes());
        if extensible {
            format.extend_from_slice(&22_u16.to_le_bytes());
            format.extend_from_slice(&bits.to_le_bytes());
            // Loudspeaker of each channel in the order of the standard, which names 18. None at all
            // is valid, but not every reader accepts it.
            let loudspeakers = if self.channels <= 18 {
                (1_u32 << self.channels) - 1
            } else {
                0
            };
            format.extend_from_slice(&loudspeakers.to_le_bytes());
            format.extend_from_slice(&tag.to_le_bytes());
            format.extend_from_slice(&SUB_FORMAT);
        }
        let mut bytes = Vec::new();
        let mut chunk = |name: &[u8; 4], length: u32, contents: &[u8]| {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(contents);
        };
        chunk(form, riff, b"WAVE");
        if let Some((name, lengths)) = lengths {
            chunk(name, LENGTHS_BYTES as u32, &lengths);
        }
        chunk(b"fmt ", format.len() as u32, &format);
        // Formats other than PCM also declare the number of frames.
        if let (WavBits::Float32, Some(frames)) = (self.bits, frames) {
            chunk(b"fact", 4, &frames.to_le_bytes());
        }
        chunk(b"data", data, &[]);
        bytes
    }
}
