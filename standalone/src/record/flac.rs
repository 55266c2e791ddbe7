//! A FLAC file that is whole at every moment (RFC 9639).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flac_codec::encode::{FlacStreamWriter, Options};
use ondes_engine::media::{MediaError, Quantiser, display_name};

/// Bits of a sample.
const BITS: u8 = 24;
/// Frames of a block: a tenth of a second or less, which is what a process that is killed loses.
const BLOCK: usize = 4_096;
/// Channels that the format has.
const CHANNELS: RangeInclusive<u64> = 1..=8;
/// Sample rates whose every value of Hz (below 65,535) or of 10 Hz can stand in a block's header.
const RATES_HZ: RangeInclusive<u64> = 1_000..=655_340;

/// Writes a 24-bit FLAC file under its own name, block by block, and keeps length and checksum at its head up to date.
///
/// Samples are rounded and clamped to -1 to 1, without dither: at 24 bits nobody hears it, and it does not compress.
pub(super) struct GrowingFlac {
    name: String,
    file: File,
    sample_rate: u32,
    channels: usize,
    encoder: FlacStreamWriter<Blocks>,
    blocks: Blocks,
    quantiser: Quantiser,
    /// Interleaved samples of the block that is not full yet.
    pending: Vec<i32>,
    /// Frames in the file.
    frames: u64,
    /// Length of the file in bytes.
    length: u64,
    digest: md5::Context,
}

/// Where the encoder, which keeps what it writes to, leaves its blocks.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Vec<u8>>>);

impl Blocks {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl GrowingFlac {
    /// Starts a file where there is none.
    pub fn create(path: &Path, sample_rate: u32, channels: usize) -> Result<Self, MediaError> {
        let name = display_name(path);
        let check = |what, found: u64, range: RangeInclusive<u64>| {
            if range.contains(&found) {
                return Ok(());
            }
            let supported = format!("{} to {} in a FLAC file", range.start(), range.end());
            Err(MediaError::Limit { file: name.clone(), what, found, supported })
        };
        check("the sample rate in Hz", u64::from(sample_rate), RATES_HZ)?;
        check("the number of channels", channels as u64, CHANNELS)?;
        let unwritable = |source| MediaError::Unwritable { file: name.clone(), source };
        // Some rates have no place in a block's header; better to know before there is a file.
        let mut trial = FlacStreamWriter::new(io::sink(), Options::default());
        trial
            .write(sample_rate, channels as u8, u32::from(BITS), &vec![0; channels * 16])
            .map_err(|error| unwritable(refused(error)))?;
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(unwritable)?;
        let blocks = Blocks::default();
        let mut flac = Self {
            file,
            sample_rate,
            channels,
            // Nearly twice as fast as trying every stereo coding: there may be many tracks, and somebody is playing.
            encoder: FlacStreamWriter::new(blocks.clone(), Options::default().fast_channel_correlation(true)),
            blocks,
            quantiser: Quantiser::new(u32::from(BITS), false),
            pending: Vec::with_capacity(BLOCK * channels),
            frames: 0,
            length: HEAD_BYTES as u64,
            digest: md5::Context::new(),
            name: name.clone(),
        };
        if let Err(source) = flac.write_head() {
            // A file without its head is of no use to anybody.
            drop(std::fs::remove_file(path));
            return Err(unwritable(source));
        }
        Ok(flac)
    }

    /// The file, to be synchronised with the disk.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes interleaved samples and writes the blocks that are full.
    ///
    /// On an error the file is whole up to the block before.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        for &sample in interleaved {
            self.pending.push(self.quantiser.quantise(sample));
            if self.pending.len() == BLOCK * self.channels {
                self.write_block()?;
            }
        }
        Ok(())
    }

    /// Writes the block that is not full. Nothing can follow.
    pub fn finish(&mut self) -> Result<(), MediaError> {
        if self.pending.is_empty() { Ok(()) } else { self.write_block() }
    }

    /// Writes what is pending as a block, and the head that counts it.
    fn write_block(&mut self) -> Result<(), MediaError> {
        let result = self.encoder.write(self.sample_rate, self.channels as u8, u32::from(BITS), &self.pending);
        result.map_err(|error| self.unwritable(refused(error)))?;
        for sample in &self.pending {
            self.digest.consume(&sample.to_le_bytes()[..usize::from(BITS / 8)]);
        }
        self.frames += (self.pending.len() / self.channels) as u64;
        self.pending.clear();
        let block = self.blocks.take();
        let write = |flac: &mut Self| {
            flac.file.seek(SeekFrom::Start(flac.length))?;
            flac.file.write_all(&block)?;
            flac.write_head()
        };
        if let Err(source) = write(self) {
            // The head still counts the frames up to here.
            drop(self.file.set_len(self.length));
            return Err(self.unwritable(source));
        }
        self.length += block.len() as u64;
        Ok(())
    }

    fn write_head(&mut self) -> io::Result<()> {
        let head = head(self.sample_rate, self.channels, self.frames, self.digest.clone().finalize().0);
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)
    }

    fn unwritable(&self, source: io::Error) -> MediaError {
        MediaError::Unwritable { file: self.name.clone(), source }
    }
}

fn refused(error: flac_codec::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Marker, header of the only metadata block, and that block: STREAMINFO.
const HEAD_BYTES: usize = 4 + 4 + 34;

/// RFC 9639, 8.1 and 8.2.
fn head(sample_rate: u32, channels: usize, frames: u64, digest: [u8; 16]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(b"fLaC");
    // The last block of metadata, of type 0, 34 bytes long.
    head[4..8].copy_from_slice(&[0x80, 0, 0, 34]);
    let block = (BLOCK as u16).to_be_bytes();
    // The shortest and the longest block, of which the last one of the file does not count. Their bytes stay unknown.
    head[8..10].copy_from_slice(&block);
    head[10..12].copy_from_slice(&block);
    let format = u64::from(sample_rate) << 44 | (channels as u64 - 1) << 41 | u64::from(BITS - 1) << 36;
    // More frames than 36 bits count, 16 days at 48 kHz, are an unknown number.
    let counted = if frames < 1 << 36 { frames } else { 0 };
    head[18..26].copy_from_slice(&(format | counted).to_be_bytes());
    head[26..].copy_from_slice(&digest);
    head
}
