//! Shards: Arrow IPC files with one row per second of a recording, each row a record batch of its
//! own.
//!
//! The footer lists the rows with their checksums, so that opening a shard reads nothing else. Rows
//! are read with positioned reads, not by a memory map: compressed rows are copied once in any
//! case, and a shard that is truncated during training is an error instead of a signal.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Int16Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
    UInt64Array, cast::AsArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{Block, CompressionType, MetadataVersion, root_as_footer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use half::f16;
use ondes_engine::files::{self, AtomicFile};
use serde::{Deserialize, Serialize};

use super::features::{FeatureRate, Row};

/// Extension of shards.
pub const EXTENSION: &str = "arrow";
/// Key of the index in the footer.
const INDEX_KEY: &str = "ondes";
/// Version of the index and of the analysis; changes whenever the result for the same recording
/// changes.
const VERSION: u32 = 4;
/// Bytes after the footer: its length and the magic number.
const TRAILER: usize = 10;
/// Compression of audio gains little from higher levels.
const ZSTD_LEVEL: i32 = 1;
/// Rates that a dataset may have, those of recipes.
const SAMPLE_RATES: RangeInclusive<u32> = 8_000..=192_000;
const HOPS: RangeInclusive<usize> = 16..=4_096;
/// Scale of 16-bit samples.
const I16_SCALE: f32 = 32_768.0;

/// Sample format of the column `sound`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SoundFormat {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats.
    F16,
    /// 16-bit integers; samples beyond ±1 are clipped.
    I16,
}

impl SoundFormat {
    fn data_type(self) -> DataType {
        match self {
            Self::F32 => DataType::Float32,
            Self::F16 => DataType::Float16,
            Self::I16 => DataType::Int16,
        }
    }

    fn encode(self, sound: &[f32]) -> ArrayRef {
        match self {
            Self::F32 => primitive::<Float32Type>(sound.iter().copied()),
            Self::F16 => primitive::<Float16Type>(sound.iter().map(|&x| f16::from_f32(x))),
            // The conversion saturates.
            Self::I16 => {
                primitive::<Int16Type>(sound.iter().map(|&x| (x * I16_SCALE).round() as i16))
            }
        }
    }

    fn decode(self, sound: &dyn Array) -> Option<Vec<f32>> {
        Some(match self {
            Self::F32 => sound.as_primitive_opt::<Float32Type>()?.values().to_vec(),
            Self::F16 => sound
                .as_primitive_opt::<Float16Type>()?
                .values()
                .iter()
                .map(|x| x.to_f32())
                .collect(),
            Self::I16 => {
                let values = sound.as_primitive_opt::<Int16Type>()?.values();
                values.iter().map(|&x| f32::from(x) / I16_SCALE).collect()
            }
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

/// Rates and sample format of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataFormat {
    /// Rates of the analysis.
    #[serde(flatten)]
    pub rate: FeatureRate,
    /// Sample format.
    pub sound: SoundFormat,
    /// Frequency below which the sound is attenuated, by 12 dB per octave, Hz; 0 for none.
    pub high_pass: u16,
}

impl DataFormat {
    /// Returns the number of frames of a row: a second's, if the recording does not end within.
    #[must_use]
    pub fn row_frames(self) -> usize {
        (self.rate.sample_rate as usize / self.rate.hop).max(1)
    }

    /// Returns the format in words.
    #[must_use]
    pub fn describe(self) -> String {
        let Self {
            rate: FeatureRate { sample_rate, hop },
            sound,
            high_pass,
        } = self;
        let filter = if high_pass == 0 {
            "no filter".to_owned()
        } else {
            format!("a high-pass at {high_pass} Hz")
        };
        format!("{sound:?} at {sample_rate} Hz with a hop of {hop} and {filter}")
    }

    fn schema(self) -> SchemaRef {
        let list = |name: &str, item: DataType| {
            Field::new_list(name, Field::new_list_field(item, false), false)
        };
        Arc::new(Schema::new(vec![
            Field::new("source", DataType::Utf8, false),
            Field::new("hash", DataType::Utf8, false),
            Field::new("offset", DataType::UInt64, false),
            list("sound", self.sound.data_type()),
            list("pitch", DataType::Float32),
            list("loudness", DataType::Float32),
            list("voicing", DataType::Boolean),
        ]))
    }
}

/// Recording, as named in the columns `source` and `hash`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Path below the folder of the recordings, with `/` between its parts.
    pub name: String,
    /// BLAKE3 hash of the file's content.
    pub hash: String,
}

/// Entry of the index for a row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RowEntry {
    /// Index of the recording in the shard.
    pub recording: usize,
    /// First frame.
    pub first_frame: usize,
    /// Number of frames.
    pub frames: usize,
    /// True for the last row of a recording.
    pub last: bool,
    /// Number of frames with a pitch.
    pub voiced: usize,
    /// Median pitch of these, semitones; 0 if there is none.
    pub pitch: f32,
    /// 90th percentile of the A-weighted level, dB.
    pub loudness: f32,
    /// CRC-32C of the record batch in the file.
    crc32c: u32,
}

/// Index in the footer.
#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    format: DataFormat,
    recordings: Vec<Source>,
    rows: Vec<RowEntry>,
}

/// Writer that computes the checksum of what passes.
struct Checksummed {
    file: BufWriter<File>,
    crc32c: u32,
    bytes: u64,
}

impl Write for Checksummed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Shard that is being written; it takes its name when it is complete.
pub struct ShardWriter {
    path: PathBuf,
    file: AtomicFile,
    writer: FileWriter<Checksummed>,
    index: Index,
}

impl ShardWriter {
    /// Creates a shard.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn create(path: &Path, format: DataFormat) -> anyhow::Result<Self> {
        let create = || -> anyhow::Result<Self> {
            let file = AtomicFile::create(path)?;
            let opened = File::options().write(true).open(file.temporary_path())?;
            let options = IpcWriteOptions::default()
                .try_with_compression(Some(CompressionType::ZSTD))?
                .try_with_compression_level(Some(ZSTD_LEVEL))?;
            let checksummed = Checksummed {
                file: BufWriter::new(opened),
                crc32c: 0,
                bytes: 0,
            };
            let writer = FileWriter::try_new_with_options(checksummed, &format.schema(), options)?;
            let index = Index {
                version: VERSION,
                format,
                recordings: Vec::new(),
                rows: Vec::new(),
            };
            Ok(Self {
                path: path.to_owned(),
                file,
                writer,
                index,
            })
        };
        create().with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.get_ref().bytes
    }

    /// Appends a row of a recording.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(
        &mut self,
        source: &Source,
        first_frame: usize,
        last: bool,
        row: &Row,
    ) -> anyhow::Result<()> {
        let format = self.index.format;
        let schema = self.writer.schema().clone();
        let list = |column: usize, values: ArrayRef| -> anyhow::Result<ArrayRef> {
            let DataType::List(item) = schema.field(column).data_type() else {
                bail!("column {column} is no list")
            };
            let offsets = OffsetBuffer::from_lengths([values.len()]);
            Ok(Arc::new(ListArray::try_new(
                item.clone(),
                offsets,
                values,
                None,
            )?))
        };
        let voicing = BooleanArray::from_iter(row.voiced.iter().map(|&voiced| Some(voiced > 0.5)));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values([&source.name])),
            Arc::new(StringArray::from_iter_values([&source.hash])),
            Arc::new(UInt64Array::from_iter_values([
                (first_frame * format.rate.hop) as u64,
            ])),
            list(3, format.sound.encode(&row.sound))?,
            list(4, primitive::<Float32Type>(row.pitch.iter().copied()))?,
            list(5, primitive::<Float32Type>(row.loudness.iter().copied()))?,
            list(6, Arc::new(voicing))?,
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns)?;
        self.writer.get_mut().crc32c = 0;
        self.writer
            .write(&batch)
            .map_err(|error| self.failed(error))?;
        let recordings = &mut self.index.recordings;
        if recordings.last() != Some(source) {
            recordings.push(source.clone());
        }
        let crc32c = self.writer.get_ref().crc32c;
        let recording = recordings.len() - 1;
        let pitches = row
            .pitch
            .iter()
            .zip(&row.voiced)
            .filter(|(_, voiced)| **voiced > 0.5)
            .map(|(pitch, _)| *pitch);
        let pitches: Vec<f32> = pitches.collect();
        self.index.rows.push(RowEntry {
            recording,
            first_frame,
            frames: row.pitch.len(),
            last,
            voiced: pitches.len(),
            pitch: quantile(pitches, 0.5),
            loudness: quantile(row.loudness.clone(), 0.9),
            crc32c,
        });
        Ok(())
    }

    /// Completes the shard.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let index = serde_json::to_string(&self.index)?;
        self.writer.write_metadata(
            INDEX_KEY,
            format!("{:08x}{index}", crc32c::crc32c(index.as_bytes())),
        );
        self.writer.finish().map_err(|error| self.failed(error))?;
        self.file
            .finish()
            .with_context(|| format!("{}: cannot be written", self.path.display()))
    }

    fn failed(&self, error: ArrowError) -> anyhow::Error {
        let error = match error {
            // Its text is that of its cause with more around it.
            ArrowError::IoError(_, cause) => cause.into(),
            other => anyhow::Error::new(other),
        };
        error.context(format!("{}: cannot be written", self.path.display()))
    }
}

/// Returns the value below which a share of the values lies; 0 if there are none.
pub(crate) fn quantile(mut values: Vec<f32>, share: f32) -> f32 {
    values.sort_by(f32::total_cmp);
    let last = values.len().saturating_sub(1) as f32;
    values
        .get((share * last).round() as usize)
        .copied()
        .unwrap_or_default()
}

/// Shard that is open for reading, from any number of threads.
pub struct Shard {
    path: PathBuf,
    file: File,
    blocks: Vec<Block>,
    decoder: FileDecoder,
    index: Index,
}

impl Shard {
    /// Opens a shard and reads its index.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Self::read_index(path).with_context(|| path.display().to_string())
    }

    fn read_index(path: &Path) -> anyhow::Result<Self> {
        let file = files::open(path)?;
        let size = file.metadata()?.len();
        let damaged = || anyhow!("is damaged: it has no index");
        let trailer_at = size.checked_sub(TRAILER as u64).ok_or_else(damaged)?;
        let mut trailer = [0; TRAILER];
        read_at(&file, &mut trailer, trailer_at)?;
        let length = read_footer_length(trailer).map_err(|_| damaged())?;
        let footer_at = trailer_at.checked_sub(length as u64).ok_or_else(damaged)?;
        let mut bytes = vec![0; length];
        read_at(&file, &mut bytes, footer_at)?;
        let footer = root_as_footer(&bytes).map_err(|_| damaged())?;
        let pairs = footer.custom_metadata().into_iter().flatten();
        let mut values = pairs
            .filter(|pair| pair.key() == Some(INDEX_KEY))
            .filter_map(|pair| pair.value());
        let (crc32c, text) = values
            .next()
            .and_then(|value| value.split_at_checked(8))
            .ok_or_else(damaged)?;
        ensure!(
            u32::from_str_radix(crc32c, 16).ok() == Some(crc32c::crc32c(text.as_bytes())),
            "is damaged: the checksum of its index is wrong"
        );
        let version = serde_json::from_str::<serde_json::Value>(text)?["version"].as_u64();
        ensure!(
            version == Some(u64::from(VERSION)),
            "is from another version of Ondes; delete the dataset and prepare it again"
        );
        let index: Index = serde_json::from_str(text).context("is damaged")?;
        let FeatureRate { sample_rate, hop } = index.format.rate;
        ensure!(
            SAMPLE_RATES.contains(&sample_rate) && HOPS.contains(&hop),
            "is damaged: its rates are out of range"
        );
        let blocks: Vec<Block> = footer
            .recordBatches()
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let is_inside = |block: &Block| {
            let parts = [
                block.offset(),
                i64::from(block.metaDataLength()),
                block.bodyLength(),
            ];
            let end = parts.iter().try_fold(0_u64, |sum, &part| {
                sum.checked_add(u64::try_from(part).ok()?)
            });
            end.is_some_and(|end| end <= footer_at)
        };
        let named = index
            .rows
            .iter()
            .all(|row| row.recording < index.recordings.len());
        ensure!(
            blocks.len() == index.rows.len() && named && blocks.iter().all(is_inside),
            "is damaged"
        );
        // The footer holds a schema too; ours is the one that the index stands for.
        let decoder = FileDecoder::new(index.format.schema(), MetadataVersion::V5);
        Ok(Self {
            path: path.to_owned(),
            file,
            blocks,
            decoder,
            index,
        })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns rates and sample format.
    #[must_use]
    pub fn format(&self) -> DataFormat {
        self.index.format
    }

    /// Returns the entries of the rows, in the order of the file, each with its recording.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&Source, &RowEntry)> {
        self.index
            .rows
            .iter()
            .map(|row| (&self.index.recordings[row.recording], row))
    }

    /// Returns the entry of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &RowEntry {
        &self.index.rows[row]
    }

    /// Returns the size of a row in the file, bytes.
    #[must_use]
    pub fn row_bytes(&self, row: usize) -> u64 {
        let block = &self.blocks[row];
        block.metaDataLength() as u64 + block.bodyLength() as u64
    }

    /// Reads a row.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the row is damaged.
    pub fn read(&self, row: usize) -> anyhow::Result<Row> {
        self.decode(row)
            .with_context(|| self.path.display().to_string())
    }

    fn decode(&self, row: usize) -> anyhow::Result<Row> {
        let (entry, block) = (&self.index.rows[row], &self.blocks[row]);
        let mut bytes = vec![0; block.metaDataLength() as usize + block.bodyLength() as usize];
        read_at(&self.file, &mut bytes, block.offset() as u64)?;
        ensure!(
            crc32c::crc32c(&bytes) == entry.crc32c,
            "is damaged: the checksum of row {row} is wrong"
        );
        let batch = self
            .decoder
            .read_record_batch(block, &Buffer::from_vec(bytes))?;
        let decoded = batch.and_then(|batch| {
            let list = |column: usize| {
                batch
                    .column(column)
                    .as_list_opt::<i32>()
                    .map(ListArray::values)
            };
            let floats = |column| {
                Some(
                    list(column)?
                        .as_primitive_opt::<Float32Type>()?
                        .values()
                        .to_vec(),
                )
            };
            let voicing = list(6)?.as_boolean_opt()?.values().iter();
            Some(Row {
                sound: self.index.format.sound.decode(list(3)?)?,
                pitch: floats(4)?,
                loudness: floats(5)?,
                voiced: voicing.map(|voiced| f32::from(u8::from(voiced))).collect(),
            })
        });
        let decoded = decoded.with_context(|| format!("row {row} lacks a column"))?;
        let lengths = [
            decoded.pitch.len(),
            decoded.loudness.len(),
            decoded.voiced.len(),
        ];
        let samples = entry.frames.checked_mul(self.index.format.rate.hop);
        ensure!(
            lengths == [entry.frames; 3] && Some(decoded.sound.len()) == samples,
            "the lengths of the columns of row {row} do not match"
        );
        Ok(decoded)
    }
}

/// Reads bytes at a position; the position of the file does not matter and may change.
fn read_at(file: &File, bytes: &mut [u8], position: u64) -> anyhow::Result<()> {
    #[cfg(unix)]
    let read = std::os::unix::fs::FileExt::read_exact_at(file, bytes, position);
    #[cfg(windows)]
    let read = {
        let (mut done, mut read) = (0, Ok(()));
        while done < bytes.len() && read.is_ok() {
            match std::os::windows::fs::FileExt::seek_read(
                file,
                &mut bytes[done..],
                position + done as u64,
            ) {
                Ok(0) => read = Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) => read = Err(error),
            }
        }
        read
    };
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow!("is damaged: it ends early"),
        _ => anyhow::Error::new(error).context("cannot be read"),
    })
}
