//! The archive around a TorchScript file: a ZIP whose records are stored as they are, in one folder.

use std::io::{Cursor, Write as _};

use zip::CompressionMethod;
use zip::write::{FileOptions, ZipWriter};

use super::pickle::Pickle;

/// An archive in the making.
pub(crate) struct Archive(ZipWriter<Cursor<Vec<u8>>>);

impl Archive {
    /// One that holds a pickle with the records of its tensors, and no constants.
    pub fn of(pickle: Pickle, version: &str) -> Self {
        let mut archive = Self(ZipWriter::new(Cursor::default()));
        let (data, storages) = pickle.finish();
        archive.add("data.pkl", &data);
        for (index, storage) in storages.iter().enumerate() {
            archive.add(&format!("data/{index}"), storage);
        }
        archive.add("constants.pkl", &Pickle::empty_tuple());
        archive.add("version", format!("{version}\n").as_bytes());
        archive
    }

    /// Adds a record.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        let options = FileOptions::default().compression_method(CompressionMethod::Stored).large_file(false);
        self.0.start_file(format!("model/{name}"), options).expect("memory takes it");
        self.0.write_all(content).expect("memory takes it");
    }

    /// The whole.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.finish().expect("memory takes it").into_inner()
    }
}
