//! Preparation of a dataset: analyses what is new or changed in folders of recordings, and drops
//! what has vanished.
//!
//! Shards take their names when they are complete, and say themselves what is in them. So there is
//! nothing to repair after a process was killed, or the disk was full: the next preparation
//! continues after the last complete shard.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use ondes_engine::files;
use ondes_engine::sync::lock;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::pieces::{AnalysedPiece, Piece, SoundStream, cut};
use super::shard::{DataFormat, EXTENSION, Shard, ShardWriter, Source};
use super::store::{RecordedRows, Store, recorded_rows, shard_paths};

/// Sizes, times and hashes of the files at the last preparation. Only saves time: without it, all
/// are hashed again.
const STAMPS: &str = "sources.json";
/// Largest file of stamps, bytes: millions of files.
const MAX_STAMPS_BYTES: u64 = 1 << 30;
/// File that is locked during a preparation.
const LOCK: &str = ".lock";
/// Default size of a shard, bytes.
pub const SHARD_BYTES: u64 = 256 << 20;

/// Settings of a preparation.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOptions {
    /// Rates and sample format.
    pub format: DataFormat,
    /// Size from which a shard is complete, bytes.
    pub shard_bytes: u64,
    /// Threads that analyse.
    pub threads: usize,
    /// Reads all shards to find damage.
    pub check: bool,
}

impl PrepareOptions {
    /// Returns the default settings for a format.
    #[must_use]
    pub fn new(format: DataFormat) -> Self {
        Self {
            format,
            shard_bytes: SHARD_BYTES,
            threads: rayon::current_num_threads(),
            check: false,
        }
    }
}

/// What a preparation did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Recordings in the dataset.
    pub recordings: usize,
    /// Recordings that were analysed, at least in part.
    pub analysed: usize,
    /// Recordings that were dropped: changed, vanished or damaged.
    pub dropped: usize,
}

/// Recording to analyse.
struct Found {
    origin: Origin,
    source: Source,
}

/// Place of a recording's sound.
enum Origin {
    /// Audio file.
    File(PathBuf),
    /// Recording of another dataset.
    Stored(Arc<Store>, usize),
}

impl Origin {
    fn stream(&self, format: DataFormat) -> anyhow::Result<SoundStream<'_>> {
        match self {
            Self::File(path) => SoundStream::open(path, format.high_pass),
            Self::Stored(store, recording) => Ok(store.stream(*recording)),
        }
    }
}

/// Identity of a file by its metadata, and its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    modified_ns: u128,
    hash: String,
}

/// Prepares a dataset of all audio files below folders.
///
/// # Errors
/// Returns an error if there is no audio, a file cannot be decoded, or the dataset cannot be
/// written. What was complete before stays.
pub fn prepare(
    folders: &[PathBuf],
    out: &Path,
    options: &PrepareOptions,
) -> anyhow::Result<Summary> {
    prepare_found(out, options, || find(folders, out))
}

/// Prepares a dataset of another one, whose sound is filtered already, at other rates.
///
/// # Errors
/// Returns an error if that cannot be read, or the new one cannot be written.
pub fn prepare_again(
    store: &Arc<Store>,
    out: &Path,
    options: &PrepareOptions,
) -> anyhow::Result<Summary> {
    let recordings = store.recordings().iter().enumerate();
    let found = recordings.map(|(index, recording)| Found {
        origin: Origin::Stored(store.clone(), index),
        source: recording.source.clone(),
    });
    prepare_found(out, options, || Ok(found.collect()))
}

/// Prepares a dataset of recordings that are listed once no other process prepares it.
fn prepare_found(
    out: &Path,
    options: &PrepareOptions,
    find: impl FnOnce() -> anyhow::Result<Vec<Found>>,
) -> anyhow::Result<Summary> {
    let unwritable = || format!("{}: cannot be written", out.display());
    fs::create_dir_all(out).with_context(unwritable)?;
    let lock_file = File::create(out.join(LOCK)).with_context(unwritable)?;
    // On systems without locks nobody waits.
    if let Err(fs::TryLockError::WouldBlock) = lock_file.try_lock() {
        eprintln!(
            "{}: waiting for another process that prepares it",
            out.display()
        );
        lock_file.lock().with_context(unwritable)?;
    }
    files::remove_abandoned(out, |name| name.ends_with(EXTENSION)).with_context(unwritable)?;
    let found = find()?;
    let wanted: BTreeSet<&Source> = found.iter().map(|found| &found.source).collect();
    let mut summary = Summary {
        recordings: found.len(),
        ..Summary::default()
    };
    let mut shards = open_shards(out, options)?;
    let recorded = recorded_rows(&shards);
    // Rows after a gap, which a damaged shard leaves, are written again.
    let ends = recorded
        .iter()
        .map(|(source, rows)| (source.clone(), rows.contiguous()));
    let ends: BTreeMap<Source, (usize, bool)> = ends
        .map(|(source, (_, end, whole))| (source, (end, whole)))
        .collect();
    summary.dropped = ends
        .keys()
        .filter(|source| !wanted.contains(source))
        .count();
    for shard in &shards {
        keep_rows(shard, |source, first_frame| {
            wanted.contains(source) && first_frame < ends[source].0
        })?;
    }
    let missing = found
        .iter()
        .filter(|found| !ends.get(&found.source).is_some_and(|(_, whole)| *whole));
    let missing: Vec<(&Found, usize)> = missing
        .map(|found| (found, ends.get(&found.source).map_or(0, |(end, _)| *end)))
        .collect();
    summary.analysed = missing.len();
    let held = missing
        .iter()
        .map(|(found, end)| held_pitch(&shards, &recorded, &found.source, *end));
    let held = held.collect::<Result<Vec<_>, _>>()?;
    shards.clear();
    if !missing.is_empty() {
        analyse(&missing, &held, out, options)?;
    }
    Ok(summary)
}

/// Lists the files of the folders with their hashes; those whose size and time are as before are
/// not read.
fn find(folders: &[PathBuf], out: &Path) -> anyhow::Result<Vec<Found>> {
    let stamps_path = out.join(STAMPS);
    let known = files::read(&stamps_path, MAX_STAMPS_BYTES).ok();
    let known: BTreeMap<String, Stamp> = known
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let mut paths = BTreeMap::new();
    for folder in folders {
        for path in super::audio_files(folder)? {
            let below = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            let name = match folder.file_name() {
                Some(folder) if folders.len() > 1 => {
                    format!("{}/{below}", folder.to_string_lossy())
                }
                _ => below,
            };
            if let Some(other) = paths.insert(name.clone(), path.clone()) {
                bail!(
                    "{} and {} have the same name; rename a folder",
                    other.display(),
                    path.display()
                );
            }
        }
    }
    let stamp = |(name, path): (&String, &PathBuf)| -> anyhow::Result<(String, Stamp)> {
        let read = || -> std::io::Result<Stamp> {
            let metadata = fs::metadata(path)?;
            let modified = metadata
                .modified()?
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let mut stamp = Stamp {
                bytes: metadata.len(),
                modified_ns: modified.as_nanos(),
                hash: String::new(),
            };
            stamp.hash = match known.get(name) {
                Some(known)
                    if (known.bytes, known.modified_ns) == (stamp.bytes, stamp.modified_ns) =>
                {
                    known.hash.clone()
                }
                _ => blake3::Hasher::new()
                    .update_reader(files::open(path)?)?
                    .finalize()
                    .to_hex()
                    .to_string(),
            };
            Ok(stamp)
        };
        let stamp = read().with_context(|| format!("{}: cannot be read", path.display()))?;
        Ok((name.clone(), stamp))
    };
    let stamps = paths
        .par_iter()
        .map(stamp)
        .collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    if stamps != known {
        let written = files::write(&stamps_path, &serde_json::to_vec(&stamps)?);
        written.with_context(|| format!("{}: cannot be written", stamps_path.display()))?;
    }
    let found = stamps.into_iter().zip(paths.into_values());
    Ok(found
        .map(|((name, stamp), path)| Found {
            origin: Origin::File(path),
            source: Source {
                name,
                hash: stamp.hash,
            },
        })
        .collect())
}

/// Opens the shards that are there. Damaged ones are reported and removed: their recordings are
/// analysed again.
fn open_shards(out: &Path, options: &PrepareOptions) -> anyhow::Result<Vec<Shard>> {
    let mut shards = Vec::new();
    for path in shard_paths(out)? {
        let opened = Shard::open(&path).and_then(|shard| {
            let rows = if options.check { shard.rows().len() } else { 0 };
            (0..rows)
                .into_par_iter()
                .try_for_each(|row| shard.read(row).map(drop))?;
            Ok(shard)
        });
        match opened {
            Ok(shard) => {
                let (own, wanted) = (shard.format(), options.format);
                ensure!(
                    own == wanted,
                    "{}: has {}, not {}; use another --out",
                    out.display(),
                    own.describe(),
                    wanted.describe()
                );
                shards.push(shard);
            }
            Err(error) => {
                eprintln!("{error:#}; its recordings are analysed again");
                fs::remove_file(&path)
                    .with_context(|| format!("{}: cannot be removed", path.display()))?;
            }
        }
    }
    Ok(shards)
}

/// Removes rows from a shard; those that stay are copied to a shard that replaces it.
fn keep_rows(shard: &Shard, keep: impl Fn(&Source, usize) -> bool) -> anyhow::Result<()> {
    let kept: Vec<_> = shard
        .rows()
        .enumerate()
        .filter(|(_, (source, row))| keep(source, row.first_frame))
        .collect();
    if kept.len() == shard.rows().len() {
        return Ok(());
    }
    let path = shard.path();
    if kept.is_empty() {
        return fs::remove_file(path)
            .with_context(|| format!("{}: cannot be removed", path.display()));
    }
    let mut writer = ShardWriter::create(path, shard.format())?;
    for (index, (source, entry)) in kept {
        writer.write(source, entry.first_frame, entry.last, &shard.read(index)?)?;
    }
    writer.finish()
}

/// Returns the pitch at the end of the frames that are there already.
fn held_pitch(
    shards: &[Shard],
    recorded: &BTreeMap<Source, RecordedRows>,
    source: &Source,
    end: usize,
) -> anyhow::Result<Option<f32>> {
    if end == 0 {
        return Ok(None);
    }
    let Some(&(shard, row)) = recorded[source].contiguous().0.last() else {
        return Ok(None);
    };
    Ok(shards[shard].read(row)?.pitch.last().copied())
}

/// Message from the decoding to the writing thread, in order.
enum Message {
    /// A piece of a recording, as soon as it is analysed.
    Piece(usize, Receiver<AnalysedPiece>),
    /// A recording is complete.
    End,
    /// A file cannot be decoded.
    Failed(anyhow::Error),
}

/// Analyses recordings, each from the frame given with it, and writes shards.
fn analyse(
    recordings: &[(&Found, usize)],
    held: &[Option<f32>],
    out: &Path,
    options: &PrepareOptions,
) -> anyhow::Result<()> {
    let threads = options.threads.max(1);
    // Both queues are bounded, so that memory does not depend on the length of the recordings.
    let (to_writer, messages) = sync_channel::<Message>(threads);
    let (to_workers, work) = sync_channel::<(Piece, SyncSender<AnalysedPiece>)>(1);
    let work = Mutex::new(work);
    std::thread::scope(|scope| {
        let (work, format) = (&work, options.format);
        for _ in 0..threads {
            scope.spawn(move || {
                loop {
                    let next = lock(work).recv();
                    let Ok((piece, reply)) = next else { return };
                    // The writer is gone after an error.
                    drop(reply.send(piece.analyse(format)));
                }
            });
        }
        scope.spawn(move || {
            for (index, (found, from)) in recordings.iter().enumerate() {
                let emit = |piece: Piece| {
                    if piece.end() <= *from {
                        return true;
                    }
                    let (reply, analysed) = sync_channel(1);
                    to_workers.send((piece, reply)).is_ok()
                        && to_writer.send(Message::Piece(index, analysed)).is_ok()
                };
                let done = found
                    .origin
                    .stream(format)
                    .and_then(|stream| cut(stream, format, emit));
                let message = done.map_or_else(Message::Failed, |()| Message::End);
                if to_writer.send(message).is_err() {
                    return;
                }
            }
        });
        // It drops the receiver, which ends the decoding thread, and that the workers.
        write(recordings, held, messages, out, options)
    })
}

/// Writes analysed pieces in order.
fn write(
    recordings: &[(&Found, usize)],
    held: &[Option<f32>],
    messages: Receiver<Message>,
    out: &Path,
    options: &PrepareOptions,
) -> anyhow::Result<()> {
    let progress = ProgressBar::new(recordings.len() as u64).with_message("analysing");
    let mut next_number = next_number(out)?;
    let mut open: Option<ShardWriter> = None;
    let mut held = held.to_vec();
    for message in messages {
        let (index, analysed) = match message {
            Message::Piece(index, analysed) => (index, analysed),
            Message::End => {
                progress.inc(1);
                continue;
            }
            Message::Failed(error) => {
                // What is complete so far stays.
                return open.map_or(Ok(()), ShardWriter::finish).and(Err(error));
            }
        };
        let (found, from) = recordings[index];
        let mut piece = analysed
            .recv()
            .context("a thread that analyses has crashed")?;
        held[index] = piece.hold(held[index]);
        let rows = piece.rows(options.format);
        let count = rows.len();
        for (row_index, (first_frame, row)) in rows.enumerate() {
            if first_frame < from {
                continue;
            }
            if open.is_none() {
                open = Some(ShardWriter::create(
                    &out.join(format!("{next_number:05}.{EXTENSION}")),
                    options.format,
                )?);
                next_number += 1;
            }
            let writer = open.as_mut().expect("it has just been created");
            writer.write(
                &found.source,
                first_frame,
                piece.last && row_index + 1 == count,
                &row,
            )?;
            if writer.bytes() >= options.shard_bytes {
                open.take().expect("it is open").finish()?;
            }
        }
    }
    progress.finish_and_clear();
    open.map_or(Ok(()), ShardWriter::finish)
}

/// Returns the number of the next shard, above all that are there.
fn next_number(out: &Path) -> anyhow::Result<usize> {
    let paths = shard_paths(out)?;
    let numbers = paths
        .iter()
        .filter_map(|path| path.file_stem()?.to_str()?.parse::<usize>().ok());
    Ok(numbers.max().map_or(0, |number| number + 1))
}
