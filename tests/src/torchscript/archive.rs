//! ZIP archive of a TorchScript file, with uncompressed records in one folder.

use std::io::{Cursor, Write as _};

use zip::CompressionMethod;
use zip::write::{FileOptions, ZipWriter};

use super::pickle::Pickle;

/// Archive that is being written.
pub(crate) struct Archive(ZipWriter<Cursor<Vec<u8>>>);

impl Archive {
    /// Creates an archive with a pickle and its tensors, and without constants.
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
        self.0.start_file(format!("model/{name}"), options).expect("writing to memory");
        self.0.write_all(content).expect("writing to memory");
    }

    /// Returns the bytes of the archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.finish().expect("writing to memory").into_inner()
    }
}
