//! The zip file of a TorchScript module: records under one folder, `data.pkl` for the tree of modules, `data/KEY` for values,
//! `code/` for sources.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use ondes_engine::model::limits;
use zip::ZipArchive;

use super::pickle::TensorPlace;

/// A tensor of the archive, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// `shape.iter().product()` values.
    pub data: Vec<f32>,
}

impl Array {
    /// An array of those values.
    pub fn new(shape: &[usize], data: Vec<f32>) -> Self {
        Self { shape: shape.to_vec(), data }
    }
}

/// Largest pickle and largest source, bytes: a hundred times those of the largest codecs.
const TEXT_BYTES: u64 = 16 << 20;

/// An archive that is open.
pub struct Archive {
    zip: RefCell<ZipArchive<BufReader<File>>>,
    /// The folder that all records are in, with a slash at its end.
    folder: String,
    /// Of the file. Values are stored as they are, so no record of them is longer.
    bytes: u64,
}

impl Archive {
    /// Opens an archive.
    ///
    /// # Errors
    /// When the file cannot be read or is no TorchScript archive.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        ensure!(metadata.is_file(), "not a regular file");
        let zip = ZipArchive::new(BufReader::new(file)).context("not a TorchScript archive")?;
        let folder = zip.file_names().find_map(|name| name.strip_suffix("data.pkl").map(str::to_owned));
        let folder = folder.context("not a TorchScript archive: it has no data.pkl")?;
        let archive = Self { zip: RefCell::new(zip), folder, bytes: metadata.len() };
        ensure!(
            archive.has("constants.pkl"),
            "weights without code, not a TorchScript archive: export the model first"
        );
        Ok(archive)
    }

    fn has(&self, record: &str) -> bool {
        let name = format!("{}{record}", self.folder);
        self.zip.borrow().file_names().any(|other| other == name)
    }

    /// A record's bytes.
    fn bytes(&self, record: &str, limit: u64) -> anyhow::Result<Vec<u8>> {
        let mut zip = self.zip.borrow_mut();
        let file = zip.by_name(&format!("{}{record}", self.folder)).with_context(|| format!("record {record:?}"))?;
        ensure!(file.size() <= limit, "record {record:?} has {} bytes, more than {limit}", file.size());
        let mut bytes = Vec::new();
        // What is written about its size need not be true.
        file.take(limit).read_to_end(&mut bytes).with_context(|| format!("record {record:?}"))?;
        Ok(bytes)
    }

    /// The pickle of the modules.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn pickle(&self) -> anyhow::Result<Vec<u8>> {
        self.bytes("data.pkl", TEXT_BYTES)
    }

    /// The source of a Python module, such as `__torch__.rave.blocks`; nothing where there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn source(&self, module: &str) -> anyhow::Result<Option<String>> {
        let record = format!("code/{}.py", module.replace('.', "/"));
        if !self.has(&record) {
            return Ok(None);
        }
        String::from_utf8(self.bytes(&record, TEXT_BYTES)?).map(Some).with_context(|| format!("record {record:?}"))
    }

    /// A tensor's values.
    ///
    /// # Errors
    /// When its record cannot be read, or is of another kind or shorter than the tensor.
    pub fn tensor(&self, place: &TensorPlace) -> anyhow::Result<Array> {
        let values = place.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        let values = values.filter(|&values| values <= limits::FILE_BYTES / size_of::<f32>());
        let values = values.with_context(|| format!("its shape {:?} is too large", place.shape))?;
        if values == 0 {
            return Ok(Array::new(&place.shape, Vec::new()));
        }
        let record = format!("data/{}", place.storage.key);
        let bytes = self.bytes(&record, self.bytes.min(limits::FILE_BYTES as u64))?;
        let all: Vec<f32> = match &*place.storage.kind {
            "torch.FloatStorage" => bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            "torch.DoubleStorage" => {
                bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32).collect()
            }
            "torch.LongStorage" => bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as f32).collect(),
            other => bail!("its values are {other}, which is not supported"),
        };
        // The last value, which lies the furthest.
        let reach = place.shape.iter().zip(&place.stride).try_fold(place.offset, |reach, (extent, stride)| {
            stride.checked_mul(extent - 1).and_then(|way| reach.checked_add(way))
        });
        ensure!(reach.is_some_and(|reach| reach < all.len()), "record {record:?} is shorter than its tensor");
        ensure!(values <= all.len(), "record {record:?} is shorter than its tensor");
        let mut data = Vec::with_capacity(values);
        let mut index = vec![0; place.shape.len()];
        for _ in 0..values {
            let at: usize = index.iter().zip(&place.stride).map(|(index, stride)| index * stride).sum();
            data.push(all[place.offset + at]);
            for (index, extent) in index.iter_mut().zip(&place.shape).rev() {
                *index += 1;
                if *index < *extent {
                    break;
                }
                *index = 0;
            }
        }
        Ok(Array::new(&place.shape, data))
    }
}
