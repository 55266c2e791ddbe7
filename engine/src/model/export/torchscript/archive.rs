//! ZIP archive of a TorchScript file, with all records in one folder.

use std::io::{Cursor, Write as _};

use zip::write::{FileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::pickle::Pickle;

/// Archive that is being written to memory.
pub struct Archive(ZipWriter<Cursor<Vec<u8>>>);

impl Archive {
    /// Creates an archive with a pickle and its tensors, and without constants. `version` is that
    /// of the file format.
    #[must_use]
    pub fn new(pickle: Pickle, version: &str) -> Self {
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

    /// Adds a record. Zeros are compressed: states of streams begin with them, for as many rows as
    /// a batch may have.
    ///
    /// # Panics
    /// If the archive exceeds 4 GB.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        let is_silent = !content.is_empty() && content.iter().all(|&byte| byte == 0);
        let method = if is_silent {
            CompressionMethod::Deflated
        } else {
            CompressionMethod::Stored
        };
        // Without the time of writing, equal programs have equal archives.
        let options = FileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default());
        self.0
            .start_file(format!("model/{name}"), options)
            .expect("writing to memory");
        self.0.write_all(content).expect("writing to memory");
    }

    /// Returns the bytes of the archive.
    ///
    /// # Panics
    /// If the archive exceeds 4 GB.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.0.finish().expect("writing to memory").into_inner()
    }
}
