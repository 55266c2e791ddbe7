//! A prepared dataset that is open for reading: its shards, the recordings in them, and a cache of
//! decoded rows.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, bail, ensure};
use lru::LruCache;
use ondes_engine::dsp::loudness::FLOOR_DB;
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};

use super::features::{Features, Row};
use super::knobs::{self, RecordedKnob};
use super::pieces::SoundStream;
use super::shard::{self, DataFormat, Shard, Source, quantile};

/// Largest gain that brings recordings to one level, dB: less than what makes a silent one loud.
const MATCHED_DB: f32 = 30.0;
/// Memory for decoded rows, bytes.
const CACHE_BYTES: usize = 512 << 20;

/// Position of a row: shard and index in it.
type RowPosition = (usize, usize);

/// Recording of a dataset.
pub struct Recording {
    /// Name and content.
    pub source: Source,
    /// Number of frames.
    pub frames: usize,
    /// Number of frames with a pitch.
    pub voiced: usize,
    /// Median pitch of these, semitones; `None` if there is none.
    pub pitch: Option<f32>,
    /// Loudest second: 90th percentile of its A-weighted level, dB.
    pub loudness: f32,
    rows: Vec<RowPosition>,
}

/// Rows that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Rows found in memory.
    pub cache_hits: u64,
    /// Rows read from disk.
    pub cache_misses: u64,
    /// Bytes read from disk, compressed.
    pub bytes: u64,
}

impl Reads {
    /// Returns what was read after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cache_hits: self.cache_hits - before.cache_hits,
            cache_misses: self.cache_misses - before.cache_misses,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Open dataset.
pub struct Store {
    format: DataFormat,
    shards: Vec<Shard>,
    recordings: Vec<Recording>,
    cache: Mutex<Cache>,
}

/// Rows in memory.
struct Cache {
    rows: LruCache<RowPosition, Arc<Row>>,
    reads: Reads,
}

impl Store {
    /// Opens a dataset.
    ///
    /// # Errors
    /// Returns an error if the folder holds no shards, or they are damaged or incomplete.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let name = folder.display();
        let shards = shard_paths(folder)?
            .iter()
            .map(|path| Shard::open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let format = shards
            .first()
            .with_context(|| format!("{name}: holds no dataset"))?
            .format();
        ensure!(
            shards.iter().all(|shard| shard.format() == format),
            "{name}: its shards have different formats; delete it and prepare it again"
        );
        let mut recordings = Vec::new();
        for (source, parts) in recorded_rows(&shards) {
            let (rows, frames, whole) = parts.contiguous();
            if !whole {
                bail!(
                    "{name}: {} is incomplete; run `ondes-train prepare` again",
                    source.name
                );
            }
            let entries = || rows.iter().map(|&(shard, row)| shards[shard].row(row));
            let voiced = entries().map(|entry| entry.voiced).sum();
            // Each second counts by its frames with a pitch.
            let pitches = entries()
                .flat_map(|entry| std::iter::repeat_n(entry.pitch, entry.voiced))
                .collect();
            let loudness = entries()
                .map(|entry| entry.loudness)
                .fold(f32::NEG_INFINITY, f32::max);
            let pitch = (voiced > 0).then(|| quantile(pitches, 0.5));
            recordings.push(Recording {
                source,
                frames,
                voiced,
                pitch,
                loudness,
                rows,
            });
        }
        let cache = Cache {
            rows: LruCache::new(capacity(format, CACHE_BYTES)),
            reads: Reads::default(),
        };
        Ok(Self {
            format,
            shards,
            recordings,
            cache: Mutex::new(cache),
        })
    }

    /// Changes the memory for decoded rows, bytes; at least one row is kept.
    pub fn set_cache(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        lock(&self.cache).rows.resize(capacity(self.format, bytes));
    }

    /// Runs something that reads each recording once: no row is kept in memory meanwhile.
    pub fn without_cache<R>(&self, run: impl FnOnce() -> R) -> R {
        let usual = lock(&self.cache).rows.cap();
        self.set_cache(0);
        let result = run();
        lock(&self.cache).rows.resize(usual);
        result
    }

    /// Returns how much has been read so far.
    #[must_use]
    pub fn reads(&self) -> Reads {
        lock(&self.cache).reads
    }

    /// Returns rates and sample format.
    #[must_use]
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Returns the recordings, sorted by name.
    #[must_use]
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Calls `take` with the rows that hold frames of a recording, in order, and which of their
    /// frames those are.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn read(
        &self,
        recording: usize,
        frames: Range<usize>,
        mut take: impl FnMut(&Row, Range<usize>),
    ) -> anyhow::Result<()> {
        let length = self.format.row_frames();
        let rows = &self.recordings[recording].rows;
        let last = frames.end.div_ceil(length);
        for (index, &position) in rows
            .iter()
            .enumerate()
            .take(last)
            .skip(frames.start / length)
        {
            let row = self.row(position)?;
            let first = index * length;
            take(
                &row,
                frames.start.max(first) - first..frames.end.min(first + length) - first,
            );
        }
        Ok(())
    }

    /// Returns a row from the cache or its shard.
    fn row(&self, position: RowPosition) -> anyhow::Result<Arc<Row>> {
        {
            let mut cache = lock(&self.cache);
            if let Some(row) = cache.rows.get(&position).cloned() {
                cache.reads.cache_hits += 1;
                return Ok(row);
            }
        }
        // Others read meanwhile; should two want the same row, both decode it.
        let shard = &self.shards[position.0];
        let row = Arc::new(shard.read(position.1)?);
        let mut cache = lock(&self.cache);
        cache.reads.cache_misses += 1;
        cache.reads.bytes += shard.row_bytes(position.1);
        cache.rows.put(position, row.clone());
        Ok(row)
    }

    /// Returns the sound of a recording, row by row.
    pub(super) fn stream(&self, recording: usize) -> SoundStream<'_> {
        let mut rows = self.recordings[recording].rows.iter();
        let next = move |block: &mut Vec<f32>| {
            let Some(&(shard, row)) = rows.next() else {
                return Ok(false);
            };
            *block = self.shards[shard].read(row)?.sound;
            Ok(true)
        };
        SoundStream {
            name: self.recordings[recording].source.name.clone(),
            sample_rate: self.format.rate.sample_rate,
            high_pass: 0,
            next: Box::new(next),
        }
    }

    /// Reads a whole recording.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be read or is damaged.
    pub fn features(&self, recording: usize) -> anyhow::Result<Features> {
        let hop = self.format.rate.hop;
        let mut values = Row::default();
        self.read(
            recording,
            0..self.recordings[recording].frames,
            |row, frames| {
                values
                    .sound
                    .extend_from_slice(&row.sound[frames.start * hop..frames.end * hop]);
                values.pitch.extend_from_slice(&row.pitch[frames.clone()]);
                values
                    .loudness
                    .extend_from_slice(&row.loudness[frames.clone()]);
                values.voiced.extend_from_slice(&row.voiced[frames]);
            },
        )?;
        Ok(Features {
            rate: self.format.rate,
            knobs: BTreeMap::new(),
            values,
        })
    }
}

/// Returns the number of rows that fit into memory.
fn capacity(format: DataFormat, bytes: usize) -> NonZeroUsize {
    let row_bytes = format.row_frames() * (format.rate.hop + 3) * size_of::<f32>();
    NonZeroUsize::new(bytes / row_bytes).unwrap_or(NonZeroUsize::MIN)
}

/// Recordings of a store that belong together.
#[derive(Clone)]
pub struct Recordings {
    /// Store that holds them.
    pub store: Arc<Store>,
    /// Their indices there.
    pub indices: Vec<usize>,
    /// Positions of the instrument's knobs in each recording of the store; empty without knobs.
    knobs: Arc<Vec<BTreeMap<String, f32>>>,
    /// Level that all recordings are brought to, dB; `None` to leave them as they are.
    level: Option<f32>,
}

impl Recordings {
    /// Opens all recordings of a dataset.
    ///
    /// # Errors
    /// See [`Store::open`].
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let store = Arc::new(Store::open(folder)?);
        let indices = (0..store.recordings().len()).collect();
        Ok(Self {
            store,
            indices,
            knobs: Arc::default(),
            level: None,
        })
    }

    /// Sets the positions of an instrument's knobs, which the recordings' names tell.
    ///
    /// # Errors
    /// Returns an error that names a recording if its path does not tell one position of each knob.
    pub fn with_knobs(mut self, knobs: &BTreeMap<String, RecordedKnob>) -> anyhow::Result<Self> {
        if !knobs.is_empty() {
            let positions = |recording: &Recording| knobs::positions(knobs, &recording.source.name);
            self.knobs = Arc::new(
                self.store
                    .recordings()
                    .iter()
                    .map(positions)
                    .collect::<Result<_, _>>()?,
            );
        }
        Ok(self)
    }

    /// Brings all recordings to the median of their levels, but for noise.
    #[must_use]
    pub fn with_matched_levels(mut self) -> Self {
        self.level = Some(quantile(
            self.iter().map(|recording| recording.loudness).collect(),
            0.5,
        ));
        self
    }

    /// Returns the loudness that a tenth of the recordings exceed, dB.
    #[must_use]
    pub fn loudest(&self) -> f32 {
        quantile(
            self.iter().map(|recording| recording.loudness).collect(),
            0.9,
        )
    }

    /// Returns the gain of a recording of the store, dB.
    #[must_use]
    pub fn gain(&self, recording: usize) -> f32 {
        let gain = |level: f32| {
            (level - self.store.recordings()[recording].loudness).clamp(-MATCHED_DB, MATCHED_DB)
        };
        self.level.map_or(0.0, gain)
    }

    /// Returns some of the recordings.
    #[must_use]
    pub fn subset(&self, indices: Vec<usize>) -> Self {
        Self {
            indices,
            ..self.clone()
        }
    }

    /// Returns the positions of the instrument's knobs in a recording of the store.
    #[must_use]
    pub fn knobs(&self, recording: usize) -> BTreeMap<String, f32> {
        self.knobs.get(recording).cloned().unwrap_or_default()
    }

    /// Returns the recordings in order.
    pub fn iter(&self) -> impl Iterator<Item = &Recording> {
        self.indices
            .iter()
            .map(|&index| &self.store.recordings()[index])
    }

    /// Returns the total length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.store
            .format()
            .rate
            .seconds(self.iter().map(|recording| recording.frames).sum())
    }

    /// Returns every n-th recording, so that they last about `seconds` at most.
    #[must_use]
    pub fn thinned(&self, seconds: f64) -> Self {
        let interval = (self.seconds() / seconds).ceil().max(1.0) as usize;
        Self {
            indices: self.indices.iter().copied().step_by(interval).collect(),
            ..self.clone()
        }
    }

    /// Reads the recordings one after the other.
    pub fn features(&self) -> impl Iterator<Item = anyhow::Result<Features>> {
        self.indices.iter().map(|&index| {
            let mut features = self.store.features(index)?;
            features.knobs = self.knobs(index);
            apply_gain(
                self.gain(index),
                &mut features.values.sound,
                &mut features.values.loudness,
            );
            Ok(features)
        })
    }
}

/// Amplifies sound by a gain in dB, and its levels in dB above the lowest.
pub(super) fn apply_gain(gain_db: f32, sound: &mut [f32], levels: &mut [f32]) {
    if gain_db == 0.0 {
        return;
    }
    let factor = 10.0_f32.powf(gain_db / 20.0);
    sound.iter_mut().for_each(|sample| *sample *= factor);
    let audible = levels.iter_mut().filter(|level| **level > FLOOR_DB);
    audible.for_each(|level| *level = (*level + gain_db).max(FLOOR_DB));
}

/// Rows of a recording, by first frame.
#[derive(Default)]
pub(super) struct RecordedRows(BTreeMap<usize, (RowPosition, usize, bool)>);

impl RecordedRows {
    /// Returns the rows from the start to the first gap, the number of their frames, and true if
    /// nothing is missing.
    pub(super) fn contiguous(&self) -> (Vec<RowPosition>, usize, bool) {
        let (mut rows, mut end, mut whole) = (Vec::new(), 0, false);
        for (&first_frame, &(position, frames, last)) in &self.0 {
            if first_frame != end || whole {
                return (rows, end, false);
            }
            rows.push(position);
            end += frames;
            whole = last;
        }
        (rows, end, whole)
    }
}

/// Collects the rows of each recording over all shards.
pub(super) fn recorded_rows(shards: &[Shard]) -> BTreeMap<Source, RecordedRows> {
    let mut recorded: BTreeMap<Source, RecordedRows> = BTreeMap::new();
    for (shard_index, shard) in shards.iter().enumerate() {
        for (row_index, (source, row)) in shard.rows().enumerate() {
            if !recorded.contains_key(source) {
                recorded.insert(source.clone(), RecordedRows::default());
            }
            let rows = recorded.get_mut(source).expect("it has just been inserted");
            rows.0.entry(row.first_frame).or_insert((
                (shard_index, row_index),
                row.frames,
                row.last,
            ));
        }
    }
    recorded
}

/// Lists the shards of a dataset, sorted by name.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn shard_paths(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("{}: cannot be read", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden
            && path
                .extension()
                .is_some_and(|extension| extension == shard::EXTENSION)
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
