//! FLAC files (RFC 9639): recordings that are complete at every moment, and files that appear when
//! they are.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flac_codec::encode::{FlacStreamWriter, Options};
use ondes_engine::files::AtomicFile;
use ondes_engine::media::{MediaError, Quantizer, display_name};
use ondes_engine::sync::lock;

/// Bits per sample of a recording.
const RECORDED_BITS: u8 = 24;
/// Frames per FLAC block, a tenth of a second or less: the most that a killed process loses.
const BLOCK: usize = 4_096;
/// Channels that the format allows.
const CHANNELS: RangeInclusive<u64> = 1..=8;
/// Sample rates that a block header can hold, exactly below 65,535 Hz and in steps of 10 Hz above.
const RATES_HZ: RangeInclusive<u64> = 1_000..=655_340;

/// FLAC file that grows block by block under its own name; the header's length and checksum are
/// updated with each block.
///
/// Samples are rounded and clamped to −1 … 1. At 24 bits there is no dither, which would be
/// inaudible and would not compress; at 16 bits there is, as in a WAV.
pub(crate) struct GrowingFlac {
    name: String,
    file: File,
    sample_rate: u32,
    channels: usize,
    bits: u8,
    encoder: FlacStreamWriter<EncodedBlocks>,
    blocks: EncodedBlocks,
    quantiser: Quantizer,
    /// Interleaved samples of the unfinished block.
    pending: Vec<i32>,
    /// Frames in the file.
    frames: u64,
    /// Length of the file, bytes.
    length: u64,
    digest: md5::Context,
}

/// Buffer that the encoder writes its blocks to.
#[derive(Clone, Default)]
struct EncodedBlocks(Arc<Mutex<Vec<u8>>>);

impl EncodedBlocks {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Write for EncodedBlocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl GrowingFlac {
    /// Creates a new file of 24 bits; an existing one is an error.
    pub fn create(path: &Path, sample_rate: u32, channels: usize) -> Result<Self, MediaError> {
        let create = || OpenOptions::new().write(true).create_new(true).open(path);
        let mut flac = Self::new(
            display_name(path),
            create,
            sample_rate,
            channels,
            RECORDED_BITS,
        )?;
        if let Err(source) = flac.write_header() {
            // A file without its header is useless.
            drop(std::fs::remove_file(path));
            return Err(flac.unwritable(source));
        }
        Ok(flac)
    }

    /// Checks that the format holds the sound, then opens the file.
    fn new(
        name: String,
        open: impl FnOnce() -> io::Result<File>,
        sample_rate: u32,
        channels: usize,
        bits: u8,
    ) -> Result<Self, MediaError> {
        let check = |quantity, found: u64, range: RangeInclusive<u64>| {
            if range.contains(&found) {
                return Ok(());
            }
            let supported = format!("{} to {} in a FLAC file", range.start(), range.end());
            Err(MediaError::Limit {
                file: name.clone(),
                quantity,
                found,
                supported,
            })
        };
        check("the sample rate in Hz", u64::from(sample_rate), RATES_HZ)?;
        check("the number of channels", channels as u64, CHANNELS)?;
        let unwritable = |source| MediaError::Unwritable {
            file: name.clone(),
            source,
        };
        // Checks the rate before there is a file: some rates do not fit in a block header.
        let mut trial = FlacStreamWriter::new(io::sink(), Options::default());
        trial
            .write(
                sample_rate,
                channels as u8,
                u32::from(bits),
                &vec![0; channels * 16],
            )
            .map_err(|error| unwritable(invalid_input(error)))?;
        let file = open().map_err(unwritable)?;
        let blocks = EncodedBlocks::default();
        Ok(Self {
            file,
            sample_rate,
            channels,
            bits,
            // Nearly twice as fast as trying all stereo codings; there may be many tracks while
            // somebody plays.
            encoder: FlacStreamWriter::new(
                blocks.clone(),
                Options::default().fast_channel_correlation(true),
            ),
            blocks,
            quantiser: Quantizer::new(u32::from(bits), bits == 16),
            pending: Vec::with_capacity(BLOCK * channels),
            frames: 0,
            length: HEADER_BYTES as u64,
            digest: md5::Context::new(),
            name,
        })
    }

    /// Returns the file, for a sync.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends interleaved samples and writes all full blocks.
    ///
    /// On an error the file is complete up to the last block.
    pub fn append(&mut self, interleaved: &[f32]) -> Result<(), MediaError> {
        for &sample in interleaved {
            self.pending.push(self.quantiser.quantize(sample));
            if self.pending.len() == BLOCK * self.channels {
                self.write_block()?;
            }
        }
        Ok(())
    }

    /// Writes the unfinished block; the last call.
    pub fn finish(&mut self) -> Result<(), MediaError> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.write_block()
        }
    }

    /// Writes the pending samples as a block, then the header that counts it.
    fn write_block(&mut self) -> Result<(), MediaError> {
        let result = self.encoder.write(
            self.sample_rate,
            self.channels as u8,
            u32::from(self.bits),
            &self.pending,
        );
        result.map_err(|error| self.unwritable(invalid_input(error)))?;
        for sample in &self.pending {
            self.digest
                .consume(&sample.to_le_bytes()[..usize::from(self.bits / 8)]);
        }
        self.frames += (self.pending.len() / self.channels) as u64;
        self.pending.clear();
        let block = self.blocks.take();
        let write = |flac: &mut Self| {
            flac.file.seek(SeekFrom::Start(flac.length))?;
            flac.file.write_all(&block)?;
            flac.write_header()
        };
        if let Err(source) = write(self) {
            // The header still counts the frames up to here.
            drop(self.file.set_len(self.length));
            return Err(self.unwritable(source));
        }
        self.length += block.len() as u64;
        Ok(())
    }

    fn write_header(&mut self) -> io::Result<()> {
        let digest = self.digest.clone().finalize().0;
        let header = header(
            self.sample_rate,
            self.channels,
            self.bits,
            self.frames,
            digest,
        );
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)
    }

    fn unwritable(&self, source: io::Error) -> MediaError {
        MediaError::Unwritable {
            file: self.name.clone(),
            source,
        }
    }
}

/// FLAC file that replaces its target once it is complete, as
/// [`WavWriter`](ondes_engine::media::WavWriter) does.
pub(crate) struct FlacWriter {
    flac: GrowingFlac,
    file: AtomicFile,
    interleaved: Vec<f32>,
}

impl FlacWriter {
    /// Creates a file of 16 or 24 bits that replaces `path` when it is finished.
    ///
    /// # Errors
    /// Returns [`MediaError`] if the format does not hold the sample rate in Hz or the channels, or
    /// the file cannot be created.
    pub fn create(
        path: &Path,
        sample_rate: u32,
        channels: usize,
        bits: u8,
    ) -> Result<Self, MediaError> {
        let name = display_name(path);
        let unwritable = |source| MediaError::Unwritable {
            file: name.clone(),
            source,
        };
        let file = AtomicFile::create(path).map_err(unwritable)?;
        let open = || OpenOptions::new().write(true).open(file.temporary_path());
        let mut flac = GrowingFlac::new(name.clone(), open, sample_rate, channels, bits)?;
        flac.write_header().map_err(unwritable)?;
        Ok(Self {
            flac,
            file,
            interleaved: Vec::new(),
        })
    }

    /// Writes a block, `[channel][frame]`.
    ///
    /// # Errors
    /// Returns [`MediaError`] if it cannot be written.
    pub fn write<C: AsRef<[f32]>>(&mut self, block: &[C]) -> Result<(), MediaError> {
        let frames = block.first().map_or(0, |channel| channel.as_ref().len());
        self.interleaved.clear();
        self.interleaved.extend(
            (0..frames).flat_map(|frame| block.iter().map(move |channel| channel.as_ref()[frame])),
        );
        self.flac.append(&self.interleaved)
    }

    /// Completes the file and renames it to its target.
    ///
    /// # Errors
    /// Returns [`MediaError`] if it cannot be written; no file is left then.
    pub fn finish(mut self) -> Result<(), MediaError> {
        self.flac.finish()?;
        self.file.finish().map_err(|source| MediaError::Unwritable {
            file: self.flac.name,
            source,
        })
    }
}

fn invalid_input(error: flac_codec::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Length of the marker, one metadata block header and STREAMINFO.
const HEADER_BYTES: usize = 4 + 4 + 34;

/// Builds the header, RFC 9639, 8.1 and 8.2.
fn header(
    sample_rate: u32,
    channels: usize,
    bits: u8,
    frames: u64,
    digest: [u8; 16],
) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(b"fLaC");
    // Last metadata block, type 0, 34 bytes.
    header[4..8].copy_from_slice(&[0x80, 0, 0, 34]);
    let block = (BLOCK as u16).to_be_bytes();
    // Shortest and longest block, the last one of the file excepted. Their sizes in bytes stay 0:
    // unknown.
    header[8..10].copy_from_slice(&block);
    header[10..12].copy_from_slice(&block);
    let format =
        u64::from(sample_rate) << 44 | (channels as u64 - 1) << 41 | u64::from(bits - 1) << 36;
    // More than 36 bits of frames (16 days at 48 kHz) are written as 0: unknown.
    let counted = if frames < 1 << 36 { frames } else { 0 };
    header[18..26].copy_from_slice(&(format | counted).to_be_bytes());
    header[26..].copy_from_slice(&digest);
    header
}
