//! Zip file of a TorchScript module. All records lie under one folder: `data.pkl` holds the module
//! tree, `data/KEY` tensor values, `code/` the Python sources.

use std::cell::RefCell;
use std::io::{Cursor, Read as _};
use std::path::Path;

use zip::ZipArchive;

use super::error::RaveError;
use super::pickle::TensorLocation;
use crate::files;
use crate::model::{ModelError, limits};

/// Values of a tensor, row-major. In contrast to [`crate::model::Tensor`] they can be changed.
pub(super) struct TensorData {
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// `shape.iter().product()` values.
    pub values: Vec<f32>,
}

impl TensorData {
    pub fn new(shape: &[usize], values: Vec<f32>) -> Self {
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    pub fn zeros(shape: &[usize]) -> Self {
        Self::new(shape, vec![0.0; shape.iter().product()])
    }
}

/// Largest pickle and largest source file, bytes: a hundred times those of the largest codecs.
const TEXT_BYTES: u64 = 16 << 20;

/// Open TorchScript archive.
pub(super) struct Archive {
    /// In memory: the search for the directory of a damaged archive reads thousands of times.
    zip: RefCell<ZipArchive<Cursor<Vec<u8>>>>,
    /// Folder that all records are in, with a slash at its end.
    folder: String,
    /// Size of the file. Tensor values are stored uncompressed, so no record of them is longer.
    bytes: u64,
}

impl Archive {
    /// Opens an archive.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let content = files::read(path, limits::PROGRAM_BYTES as u64)?;
        let bytes = content.len() as u64;
        let zip = ZipArchive::new(Cursor::new(content)).map_err(RaveError::archive)?;
        let folder = zip
            .file_names()
            .find_map(|name| name.strip_suffix("data.pkl").map(str::to_owned));
        let folder = folder.ok_or_else(|| RaveError::archive("it has no data.pkl"))?;
        let archive = Self {
            zip: RefCell::new(zip),
            folder,
            bytes,
        };
        if !archive.has("constants.pkl") {
            return Err(RaveError::archive(
                "it holds weights without code; export the model first",
            ));
        }
        Ok(archive)
    }

    fn has(&self, record: &str) -> bool {
        let name = format!("{}{record}", self.folder);
        self.zip.borrow().file_names().any(|other| other == name)
    }

    fn bytes(&self, record: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        let mut zip = self.zip.borrow_mut();
        let file = zip
            .by_name(&format!("{}{record}", self.folder))
            .map_err(|error| RaveError::record(record, error))?;
        if file.size() > limit {
            let reason = format!(
                "it has {} bytes, more than the limit of {limit}",
                file.size()
            );
            return Err(RaveError::record(record, reason));
        }
        let mut bytes = Vec::new();
        // The size in the zip directory may be wrong, so the limit also holds while reading.
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| RaveError::record(record, error))?;
        Ok(bytes)
    }

    /// Returns the pickle of the module tree.
    pub fn pickle(&self) -> Result<Vec<u8>, ModelError> {
        self.bytes("data.pkl", TEXT_BYTES)
    }

    /// Returns the source of a Python module such as `__torch__.rave.blocks`; `None` if the archive
    /// has none.
    pub fn source(&self, module: &str) -> Result<Option<String>, ModelError> {
        let record = format!("code/{}.py", module.replace('.', "/"));
        if !self.has(&record) {
            return Ok(None);
        }
        let text = String::from_utf8(self.bytes(&record, TEXT_BYTES)?);
        text.map(Some)
            .map_err(|error| RaveError::record(&record, error))
    }

    /// Reads a tensor and makes it contiguous.
    pub fn tensor(&self, location: &TensorLocation) -> Result<TensorData, ModelError> {
        let TensorLocation {
            storage,
            offset,
            shape,
            stride,
        } = location;
        let record = format!("data/{}", storage.key);
        let error = |reason: String| RaveError::record(&record, reason);
        let count = shape
            .iter()
            .try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        let count = count.filter(|&count| count <= limits::FILE_BYTES / size_of::<f32>());
        let count =
            count.ok_or_else(|| error(format!("a tensor of the shape {shape:?} is too large")))?;
        if count == 0 {
            return Ok(TensorData::new(shape, Vec::new()));
        }
        let bytes = self.bytes(&record, self.bytes.min(limits::FILE_BYTES as u64))?;
        let stored: Vec<f32> = match &*storage.kind {
            "torch.FloatStorage" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect(),
            "torch.DoubleStorage" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|bytes| f64::from_le_bytes(*bytes) as f32)
                .collect(),
            "torch.LongStorage" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|bytes| i64::from_le_bytes(*bytes) as f32)
                .collect(),
            other => {
                return Err(error(format!(
                    "values of the type {other} are not supported"
                )));
            }
        };
        let last = shape
            .iter()
            .zip(stride)
            .try_fold(*offset, |last, (extent, stride)| {
                stride
                    .checked_mul(extent - 1)
                    .and_then(|distance| last.checked_add(distance))
            });
        if last.is_none_or(|last| last >= stored.len()) || count > stored.len() {
            return Err(error(format!(
                "its {} values are too few for the shape {shape:?}",
                stored.len()
            )));
        }
        let mut values = Vec::with_capacity(count);
        let mut index = vec![0; shape.len()];
        for _ in 0..count {
            let distance: usize = index
                .iter()
                .zip(stride)
                .map(|(index, stride)| index * stride)
                .sum();
            values.push(stored[offset + distance]);
            for (index, extent) in index.iter_mut().zip(shape).rev() {
                *index += 1;
                if *index < *extent {
                    break;
                }
                *index = 0;
            }
        }
        Ok(TensorData::new(shape, values))
    }
}
