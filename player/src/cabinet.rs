//! Cabinet of an instance: finding impulse-response files, and handing cabinets over to the audio
//! thread. Those that come with Ondes are in [`bundled`].

pub mod bundled;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::Kernels;
use ondes_engine::chain::{ImpulseFile, MAX_KEPT_BYTES};
use ondes_engine::dsp::cabinet::{Cabinet, CabinetSlot};
use ondes_engine::sync::lock;

use self::bundled::{BUNDLED, BundledCabinet};
use crate::folder;
use crate::library::{FileReference, MissingFile};

/// Environment variable with the folders of impulse responses, in the form of `PATH`.
const FOLDERS: &str = "ONDES_CABINETS";
/// Capacity of the queue of replaced cabinets that wait to be dropped.
const RETIRED: usize = 4;

/// An impulse response and the path that it was read from; no path if it came out of a project.
pub type FoundImpulse = (Arc<ImpulseFile>, Option<PathBuf>);

/// Returns the user's folders of impulse responses: `ONDES_CABINETS`, or `ondes/cabinets` in the
/// user's data folder.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named).collect();
    }
    dirs::data_dir()
        .map(|data| data.join("ondes").join("cabinets"))
        .into_iter()
        .collect()
}

/// Returns whether the file's name has an audio extension.
#[must_use]
pub fn is_audio_file(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_audio_name(&name.to_string_lossy()))
}

/// Returns whether a file name has an audio extension.
#[must_use]
pub fn is_audio_name(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["wav", "wave", "aif", "aiff", "flac"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// Lists the impulse responses in a folder and its subfolders ([`folder::files`]).
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    folder::files(folder, is_audio_file)
}

/// Returns the reference that a project saves for a file that was read from `path`.
#[must_use]
pub fn reference(file: &ImpulseFile, path: Option<PathBuf>) -> FileReference {
    let name = path
        .as_deref()
        .and_then(Path::file_stem)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    FileReference {
        hash: file.hash.clone(),
        name,
        path,
        embedded: None,
    }
}

/// Encodes a file in Base64; `None` if it is larger than [`MAX_KEPT_BYTES`].
#[must_use]
pub fn to_base64(file: &ImpulseFile) -> Option<String> {
    (!file.bytes.is_empty()).then(|| BASE64_STANDARD.encode(&file.bytes))
}

/// Finds a file by its hash: at its path, among the bundled cabinets, in the user's folders, or
/// embedded in the project. A bundled cabinet of another version is replaced by that of its name.
///
/// # Errors
/// Returns [`MissingFile`] with the places that were searched.
pub fn find(reference: &FileReference) -> Result<FoundImpulse, MissingFile> {
    if reference.hash.is_empty() {
        return find_unidentified(reference);
    }
    let named = BUNDLED.iter().find(|bundled| bundled.is_meant(reference));
    let mut searched = Vec::new();
    if let Some(path) = &reference.path {
        match ImpulseFile::read(path) {
            Ok(file) if file.hash == reference.hash => {
                return Ok((file.into(), Some(path.clone())));
            }
            Ok(_) => searched.push(format!("{}: another sound", path.display())),
            Err(error) => searched.push(error.to_string()),
        }
    }
    if let Some(bundled) = BUNDLED
        .iter()
        .find(|bundled| bundled.file().hash == reference.hash)
    {
        return Ok((bundled.file(), None));
    }
    for folder in folders() {
        let found = files(&folder).into_iter().find_map(|path| {
            let file = ImpulseFile::read(&path)
                .ok()
                .filter(|file| file.hash == reference.hash)?;
            Some((file.into(), Some(path)))
        });
        if let Some(found) = found {
            return Ok(found);
        }
        searched.push(folder.display().to_string());
    }
    let small = |text: &&String| text.len() / 4 * 3 <= MAX_KEPT_BYTES + 3;
    let embedded = reference
        .embedded
        .as_ref()
        .filter(small)
        .and_then(|text| BASE64_STANDARD.decode(text).ok());
    let file = embedded.and_then(|bytes| ImpulseFile::parse(&reference.name, bytes).ok());
    if let Some(file) = file.filter(|file| file.hash == reference.hash) {
        return Ok((file.into(), reference.path.clone()));
    }
    let missing = || MissingFile::new(&reference.name, searched);
    named
        .map(|bundled| (bundled.file(), None))
        .ok_or_else(missing)
}

/// Finds a cabinet of which only the path or the name is known, as in files that people write.
fn find_unidentified(reference: &FileReference) -> Result<FoundImpulse, MissingFile> {
    let missing = |searched: String| MissingFile::new(&reference.shown_name(), vec![searched]);
    match &reference.path {
        Some(path) => {
            let file = ImpulseFile::read(path).map_err(|error| missing(error.to_string()))?;
            Ok((file.into(), Some(path.clone())))
        }
        None => {
            let named =
                BundledCabinet::named(&reference.name).map(|bundled| (bundled.file(), None));
            named.ok_or_else(|| missing("the bundled cabinets".into()))
        }
    }
}

/// Hands cabinets over to the audio thread and takes replaced ones back, so that they are dropped
/// elsewhere.
pub struct CabinetHandover {
    current: Mutex<CurrentCabinet>,
    arrival: AtomicCell<Option<Box<Cabinet>>>,
    retired: ArrayQueue<Box<Cabinet>>,
}

/// The cabinet that plays, or is about to.
#[derive(Default)]
struct CurrentCabinet {
    file: Option<Arc<ImpulseFile>>,
    /// The host's rate in Hz; `None` before playback starts.
    sample_rate: Option<u32>,
}

impl Default for CabinetHandover {
    fn default() -> Self {
        Self {
            current: Mutex::default(),
            arrival: AtomicCell::new(None),
            retired: ArrayQueue::new(RETIRED),
        }
    }
}

impl CabinetHandover {
    /// Sends a cabinet made from `file`, or an empty one. Does nothing if that file is in use
    /// already.
    pub fn send(&self, file: Option<Arc<ImpulseFile>>) {
        while self.retired.pop().is_some() {}
        let mut current = self.current();
        let hash = |file: &Option<Arc<ImpulseFile>>| file.as_ref().map(|file| file.hash.clone());
        if hash(&current.file) == hash(&file) {
            return;
        }
        current.file = file;
        if let Some(cabinet) = current.cabinet() {
            drop(self.arrival.swap(Some(cabinet)));
        }
    }

    /// Returns the file in use.
    #[must_use]
    pub fn file(&self) -> Option<Arc<ImpulseFile>> {
        self.current().file.clone()
    }

    /// Returns the current cabinet for an audio thread that starts at `sample_rate` (Hz).
    #[must_use]
    pub fn start(&self, sample_rate: u32) -> Option<Box<Cabinet>> {
        let mut current = self.current();
        current.sample_rate = Some(sample_rate);
        drop(self.arrival.take());
        current.cabinet()
    }

    /// For the audio thread: installs a cabinet that has arrived, and takes back the one that it
    /// has replaced. Wait-free.
    pub fn exchange(&self, place: &mut CabinetSlot) {
        // The audio thread is the only producer, so a queue that is not full has room.
        if !self.retired.is_full()
            && let Some(left) = place.take_retired()
            && let Err(left) = self.retired.push(left)
        {
            std::mem::forget(left);
        }
        if place.is_ready()
            && let Some(cabinet) = self.arrival.take()
            && let Err(cabinet) = place.replace(cabinet)
        {
            std::mem::forget(cabinet);
        }
    }

    fn current(&self) -> MutexGuard<'_, CurrentCabinet> {
        lock(&self.current)
    }
}

impl CurrentCabinet {
    /// Builds the cabinet for the host's rate; an empty one if the response cannot be resampled to
    /// it.
    fn cabinet(&self) -> Option<Box<Cabinet>> {
        let sample_rate = self.sample_rate?;
        let make = |file: &Arc<ImpulseFile>| {
            Cabinet::new(&file.response, sample_rate, Kernels::detect()).ok()
        };
        Some(self.file.as_ref().and_then(make).unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::media::{WavBits, WavWriter};

    use super::*;

    fn write(path: &Path, samples: &[f32]) {
        let mut wav = WavWriter::create(path, 48_000, 1, WavBits::Float32).unwrap();
        wav.write(&[samples]).unwrap();
        wav.finish().unwrap();
    }

    #[test]
    fn a_file_is_found_where_it_was_and_in_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Old box.WAV");
        write(&path, &[1.0, 0.5]);
        let file = ImpulseFile::read(&path).unwrap();
        let known = reference(&file, Some(path.clone()));
        assert_eq!(
            (known.name.as_str(), files(folder.path())),
            ("Old box", vec![path.clone()])
        );
        assert_eq!(find(&known).unwrap().0.hash, file.hash);
        write(&path, &[1.0, -0.5]);
        let missing = find(&known).unwrap_err();
        assert!(
            missing.name == "Old box" && missing.searched[0].ends_with("another sound"),
            "{missing:?}"
        );
        let carried = FileReference {
            embedded: to_base64(&file),
            ..known
        };
        assert_eq!(find(&carried).unwrap().0.hash, file.hash);
        assert!(
            find(&FileReference {
                embedded: Some("nonsense".into()),
                ..carried
            })
            .is_err()
        );
    }

    #[test]
    fn a_path_or_a_bundled_name_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.wav");
        write(&path, &[1.0, 0.5]);
        let (file, there) = find(&FileReference {
            path: Some(path.clone()),
            ..FileReference::default()
        })
        .unwrap();
        assert_eq!(
            (file.hash.as_str(), there),
            (ImpulseFile::read(&path).unwrap().hash.as_str(), Some(path))
        );
        for name in ["4x12", "ondes 4x12 Closed Back", "ONDES 4X12 CLOSED BACK"] {
            let reference = FileReference {
                name: name.into(),
                ..FileReference::default()
            };
            assert_eq!(
                find(&reference).unwrap().0.hash,
                BUNDLED[2].file().hash,
                "{name}"
            );
        }
        let none = FileReference {
            path: Some(folder.path().join("none.wav")),
            ..FileReference::default()
        };
        assert!(find(&none).is_err_and(|missing| missing.name == "none"));
    }

    #[test]
    fn cabinets_arrive_once_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.wav");
        write(&path, &[0.5; 100]);
        let file = Arc::new(ImpulseFile::read(&path).unwrap());
        let handover = CabinetHandover::default();
        handover.send(Some(file.clone()));
        assert!(handover.arrival.take().is_none(), "nobody plays yet");
        assert_eq!(handover.start(48_000).unwrap().tail_samples(), 99);
        handover.send(Some(file));
        assert!(handover.arrival.take().is_none(), "it is there already");
        handover.send(None);
        let mut place = CabinetSlot::new(48_000, 2_000);
        handover.exchange(&mut place);
        assert!(!place.is_ready());
        let mut sound = [[0.0; 2_000]; 2];
        let [left, right] = &mut sound;
        place.process(left, right, false);
        handover.exchange(&mut place);
        assert!(place.is_ready() && handover.retired.len() == 1);
    }
}
