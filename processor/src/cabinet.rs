//! The cabinet of an instance: where its impulse response is found, and its way to the audio thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::Kernels;
use ondes_engine::chain::ImpulseFile;
use ondes_engine::dsp::cabinet::{Cabinet, Place};

use crate::library::{Missing, Reference};

/// The largest file that a project carries with it, bytes.
pub const LARGEST_EMBEDDED: usize = 4 << 20;
/// The variable that names folders of impulse responses, in the form of `PATH`.
const FOLDERS: &str = "ONDES_CABINETS";
/// Cabinets that may wait to be dropped.
const RETIRED: usize = 4;

/// An impulse response that was found: the file, and where it is if it is anywhere.
pub type Found = (Arc<ImpulseFile>, Option<PathBuf>);

/// The user's folders of impulse responses: those of `ONDES_CABINETS`, else `ondes/cabinets` among the user's data.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named).collect();
    }
    dirs::data_dir().map(|data| data.join("ondes").join("cabinets")).into_iter().collect()
}

/// Whether a file may hold an impulse response, by its name.
#[must_use]
pub fn is_sound(path: &Path) -> bool {
    path.file_name().is_some_and(|name| ondes_ui::is_sound(&name.to_string_lossy()))
}

/// The impulse responses in a folder, in the order of their names.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| is_sound(path));
    paths.sort();
    paths
}

/// What a project remembers of a file that was read from there.
#[must_use]
pub fn reference(file: &ImpulseFile, path: Option<PathBuf>) -> Reference {
    let name = path.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy().into_owned();
    Reference { hash: file.hash.clone(), name, path, embedded: None }
}

/// A file in Base64; none where it is too large to travel with a project.
#[must_use]
pub fn pack(file: &ImpulseFile) -> Option<String> {
    (file.bytes.len() <= LARGEST_EMBEDDED).then(|| BASE64_STANDARD.encode(&file.bytes))
}

/// Finds a file: where it was, in the user's folders, in the project.
///
/// # Errors
/// What is missing, and where it was looked for.
pub fn find(reference: &Reference) -> Result<Found, Missing> {
    let mut looked = Vec::new();
    if let Some(path) = &reference.path {
        match ImpulseFile::read(path) {
            Ok(file) if file.hash == reference.hash => return Ok((file.into(), Some(path.clone()))),
            Ok(_) => looked.push(format!("{}: another sound", path.display())),
            Err(error) => looked.push(error.to_string()),
        }
    }
    for folder in folders() {
        let found = files(&folder).into_iter().find_map(|path| {
            let file = ImpulseFile::read(&path).ok().filter(|file| file.hash == reference.hash)?;
            Some((file.into(), Some(path)))
        });
        if let Some(found) = found {
            return Ok(found);
        }
        looked.push(folder.display().to_string());
    }
    let small = |text: &&String| text.len() / 4 * 3 <= LARGEST_EMBEDDED + 3;
    let embedded = reference.embedded.as_ref().filter(small).and_then(|text| BASE64_STANDARD.decode(text).ok());
    let file = embedded.and_then(|bytes| ImpulseFile::parse(&reference.name, bytes).ok());
    match file.filter(|file| file.hash == reference.hash) {
        Some(file) => Ok((file.into(), reference.path.clone())),
        None => Err(Missing { name: reference.name.clone(), looked }),
    }
}

/// The way of a cabinet to the audio thread, and that of the one before it back.
pub struct Courier {
    present: Mutex<Present>,
    arrival: AtomicCell<Option<Box<Cabinet>>>,
    retired: ArrayQueue<Box<Cabinet>>,
}

/// What the audio thread plays, or is about to.
#[derive(Default)]
struct Present {
    file: Option<Arc<ImpulseFile>>,
    /// The host's rate, Hz; none before anything was played.
    sample_rate: Option<u32>,
}

impl Default for Courier {
    fn default() -> Self {
        Self { present: Mutex::default(), arrival: AtomicCell::new(None), retired: ArrayQueue::new(RETIRED) }
    }
}

impl Courier {
    /// Sends a cabinet of that file, or none; what is there already stays.
    pub fn send(&self, file: Option<Arc<ImpulseFile>>) {
        while self.retired.pop().is_some() {}
        let mut present = self.present();
        let hash = |file: &Option<Arc<ImpulseFile>>| file.as_ref().map(|file| file.hash.clone());
        if hash(&present.file) == hash(&file) {
            return;
        }
        present.file = file;
        if let Some(cabinet) = present.cabinet() {
            drop(self.arrival.swap(Some(cabinet)));
        }
    }

    /// The file that is in use.
    #[must_use]
    pub fn file(&self) -> Option<Arc<ImpulseFile>> {
        self.present().file.clone()
    }

    /// For an audio thread that begins, at a rate in Hz: the cabinet as it is.
    #[must_use]
    pub fn begin(&self, sample_rate: u32) -> Option<Box<Cabinet>> {
        let mut present = self.present();
        present.sample_rate = Some(sample_rate);
        drop(self.arrival.take());
        present.cabinet()
    }

    /// For the audio thread: lets a cabinet that has come take over, and fetches the one that has left. Wait-free.
    pub fn visit(&self, place: &mut Place) {
        // Who pushes is nobody else: there is room.
        if !self.retired.is_full()
            && let Some(left) = place.leave()
            && let Err(left) = self.retired.push(left)
        {
            std::mem::forget(left);
        }
        if place.is_free()
            && let Some(cabinet) = self.arrival.take()
            && let Err(cabinet) = place.change(cabinet)
        {
            std::mem::forget(cabinet);
        }
    }

    /// Nothing that is kept here is half done when a thread panics.
    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    /// One for the host's rate. A rate that nothing can be converted to has none.
    fn cabinet(&self) -> Option<Box<Cabinet>> {
        let sample_rate = self.sample_rate?;
        let make = |file: &Arc<ImpulseFile>| Cabinet::new(&file.response, sample_rate, Kernels::detect()).ok();
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
        assert_eq!((known.name.as_str(), files(folder.path())), ("Old box", vec![path.clone()]));
        assert_eq!(find(&known).unwrap().0.hash, file.hash);
        write(&path, &[1.0, -0.5]);
        let missing = find(&known).unwrap_err();
        assert!(missing.name == "Old box" && missing.looked[0].ends_with("another sound"), "{missing:?}");
        let carried = Reference { embedded: pack(&file), ..known };
        assert_eq!(find(&carried).unwrap().0.hash, file.hash);
        assert!(find(&Reference { embedded: Some("nonsense".into()), ..carried }).is_err());
    }

    #[test]
    fn what_is_sent_arrives_once_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.wav");
        write(&path, &[0.5; 100]);
        let file = Arc::new(ImpulseFile::read(&path).unwrap());
        let courier = Courier::default();
        courier.send(Some(file.clone()));
        assert!(courier.arrival.take().is_none(), "nobody plays yet");
        assert_eq!(courier.begin(48_000).unwrap().tail_samples(), 99);
        courier.send(Some(file));
        assert!(courier.arrival.take().is_none(), "it is there already");
        courier.send(None);
        let mut place = Place::new(48_000, 2_000);
        courier.visit(&mut place);
        assert!(!place.is_free());
        let mut sound = [[0.0; 2_000]; 2];
        let [left, right] = &mut sound;
        place.process(left, right);
        courier.visit(&mut place);
        assert!(place.is_free() && courier.retired.len() == 1);
    }
}
