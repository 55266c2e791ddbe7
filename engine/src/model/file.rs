//! Model files: `NAME.ondes`, a safetensors file whose metadata contains the JSON header and a checksum.
//!
//! [`open`] and [`read`] also accept captures made by other programs ([`super::import`]); the format is detected from
//! the content, not from the file name. They never run code: TorchScript programs are refused here and opened by
//! [`crate::torch::open`]. Any safetensors reader can read the weights.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::Path;

use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::import::{self, ImportedModel};
use super::{FORMAT, FORMAT_COMPRESSED, Header, Model, ModelError, ModelFileError, Tensor, limits, tensors};

/// Metadata key of the JSON header.
const HEADER_KEY: &str = "ondes";
/// Metadata key of the checksum.
const CHECKSUM_KEY: &str = "blake3";
/// Metadata key of the JSON list of weights that may be multiplied in 8 bits; absent if there are none.
const PRODUCTS_KEY: &str = "int8";

/// File extensions of models and captures, without the dot.
pub const EXTENSIONS: [&str; 3] = ["ondes", "nam", "json"];

/// Reads and validates a model file or a capture.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be read or is invalid.
///
/// # Examples
/// ```no_run
/// use std::path::Path;
///
/// use ondes_engine::model::file;
///
/// let model = file::read(Path::new("bowed.ondes"))?;
/// println!("{} by {}", model.header().card.name, model.header().card.author);
/// for control in &model.header().controls {
///     println!("{}: {} to {} {}", control.name, control.min, control.max, control.unit);
/// }
/// # Ok::<(), ondes_engine::model::ModelFileError>(())
/// ```
pub fn read(path: &Path) -> Result<Model, ModelFileError> {
    Ok(open(path)?.model)
}

/// Reads and validates a model file or a capture, with remarks about the import of captures.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be read or is invalid.
pub fn open(path: &Path) -> Result<ImportedModel, ModelFileError> {
    let at = ModelFileError::at(path);
    let bytes = bytes(path)?;
    if is_torchscript(&bytes) {
        return Err(at(ModelError::Program));
    }
    if !looks_foreign(&bytes) {
        return Ok(ImportedModel { model: parse(&bytes).map_err(at)?, notes: Vec::new() });
    }
    let ImportedModel { model, notes } = import::parse(&bytes).map_err(&at)?;
    Ok(ImportedModel { model: named(model, path).map_err(at)?, notes })
}

/// Maps the content of a file that may be a model.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be read, is empty or is too large.
pub(crate) fn bytes(path: &Path) -> Result<Mmap, ModelFileError> {
    let at = ModelFileError::at(path);
    let file = std::fs::File::open(path).map_err(|error| at(error.into()))?;
    let metadata = file.metadata().map_err(|error| at(error.into()))?;
    if !metadata.is_file() {
        return Err(at(ModelError::NotAModel("not a regular file".into())));
    }
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    ModelError::limit("the file's size", length, limits::FILE_BYTES).map_err(&at)?;
    if length == 0 {
        return Err(at(ModelError::NotAModel("the file is empty".into())));
    }
    map(&file).map_err(|error| at(error.into()))
}

/// Returns whether the bytes are a ZIP archive, as TorchScript programs are. Read as the length prefix of a model file,
/// the signature would exceed any limit.
#[must_use]
pub(crate) fn is_torchscript(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Returns whether the bytes are JSON, as captures are. Read as the length prefix of a model file, they would exceed
/// any limit.
fn looks_foreign(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<8>().map_or(u64::MAX, |prefix| u64::from_le_bytes(*prefix));
    length > limits::HEADER_BYTES as u64 && import::is_json(bytes)
}

/// Names a model without a name after its file.
fn named(model: Model, path: &Path) -> Result<Model, ModelError> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if !model.header().card.name.trim().is_empty() || stem.is_empty() {
        return Ok(model);
    }
    let mut header = model.header.clone();
    header.card.name = stem;
    Model::new(header, model.weights)
}

/// Maps a file for reading.
#[expect(unsafe_code)]
fn map(file: &std::fs::File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and lives only while the weights are copied out. If another process truncates the
    // file meanwhile, the system ends this process with SIGBUS, as for every program that maps files. Every bit pattern
    // is a valid byte, and the content is validated after it was copied.
    unsafe { Mmap::map(file) }
}

/// Parses and validates a model from the bytes of a model file.
///
/// # Errors
/// Returns [`ModelError`] if the bytes are not a valid model.
pub fn parse(bytes: &[u8]) -> Result<Model, ModelError> {
    let not_a_model = |reason: &dyn std::fmt::Display| ModelError::NotAModel(reason.to_string());
    let Some(prefix) = bytes.first_chunk::<8>() else {
        return Err(not_a_model(&"the file is shorter than a header"));
    };
    let header_bytes = usize::try_from(u64::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
    if header_bytes > bytes.len() {
        // Files of other formats usually end here.
        return Err(not_a_model(&"it does not begin with a safetensors header"));
    }
    ModelError::limit("the header's size", header_bytes, limits::HEADER_BYTES)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| not_a_model(&error))?;
    let texts =
        metadata.metadata().as_ref().ok_or_else(|| not_a_model(&"a safetensors file without an Ondes header"))?;
    let json = texts.get(HEADER_KEY).ok_or_else(|| not_a_model(&"a safetensors file without an Ondes header"))?;
    check_version(json)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| not_a_model(&error))?;
    let products = texts.get(PRODUCTS_KEY).map(|names| serde_json::from_str(names)).transpose();
    let products: BTreeSet<String> = products
        .map_err(|error| ModelError::Header(format!("the list of int8 products: {error}")))?
        .unwrap_or_default();
    let weights = tensors::read(&tensors, &products)?;
    let header: Header =
        serde_json::from_str(json).map_err(|error| ModelError::Header(format!("the header: {error}")))?;
    let model = Model::new(header, weights)?;
    match texts.get(CHECKSUM_KEY) {
        Some(checksum) if checksum == model.content_hash() => Ok(model),
        _ => Err(ModelError::Checksum),
    }
}

/// Checks the version before the header is parsed: other versions may have other fields.
fn check_version(json: &str) -> Result<(), ModelError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u64,
    }
    let Version { format } =
        serde_json::from_str(json).map_err(|error| ModelError::Header(format!("the header: {error}")))?;
    if (u64::from(FORMAT)..=u64::from(FORMAT_COMPRESSED)).contains(&format) {
        return Ok(());
    }
    Err(ModelError::Version { found: format, supported: FORMAT_COMPRESSED })
}

/// Encodes a model as the bytes of a model file.
///
/// # Errors
/// Returns [`ModelError::Header`] if the weights cannot be encoded as safetensors, and [`ModelError::Program`] if the
/// model is a program.
pub fn serialize(model: &Model) -> Result<Vec<u8>, ModelError> {
    if model.program().is_some() {
        return Err(ModelError::Program);
    }
    let json = encode_header(model.header())?;
    let written = tensors::write(model.weights());
    let header_error = |error: safetensors::SafeTensorError| ModelError::Header(error.to_string());
    let views = written.iter().map(|one| Ok((&one.name, TensorView::new(one.dtype, one.shape.clone(), &one.bytes)?)));
    let views: Vec<_> = views.collect::<Result<_, _>>().map_err(header_error)?;
    let mut texts =
        HashMap::from([(CHECKSUM_KEY.to_owned(), model.content_hash().to_owned()), (HEADER_KEY.to_owned(), json)]);
    let products = tensors::products(model.weights());
    if !products.is_empty() {
        let names = serde_json::to_string(&products).map_err(|error| ModelError::Header(error.to_string()))?;
        texts.insert(PRODUCTS_KEY.to_owned(), names);
    }
    safetensors::serialize(views, Some(texts)).map_err(header_error)
}

/// Writes a model file. An existing file is replaced only after everything has been written.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be written.
pub fn write(model: &Model, path: &Path) -> Result<(), ModelFileError> {
    let at = ModelFileError::at(path);
    let bytes = serialize(model).map_err(&at)?;
    let part = path.with_extension("ondes.part");
    let written = std::fs::File::create(&part)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| {
        // Best effort: the original error is more important than a leftover file.
        drop(std::fs::remove_file(&part));
        at(error.into())
    })
}

fn encode_header(header: &Header) -> Result<String, ModelError> {
    serde_json::to_string(header).map_err(|error| ModelError::Header(format!("the header: {error}")))
}

/// Returns the BLAKE3 hash of the header and of the names, shapes and stored values of all weights, in hexadecimal.
pub(super) fn content_hash<'a>(
    header: &Header,
    weights: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<String, ModelError> {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let extents = |shape: &[usize]| shape.iter().flat_map(|&extent| (extent as u64).to_le_bytes()).collect::<Vec<u8>>();
    part(encode_header(header)?.as_bytes());
    for (name, tensor) in weights {
        part(name.as_bytes());
        part(&extents(tensor.shape()));
        // Absent in format 1, whose hashes must not change.
        if header.format != FORMAT {
            part(tensor.values().storage().name().as_bytes());
        }
        part(&tensor.values().bytes());
        if let Some(quantized) = tensor.quantized() {
            part(&extents(&quantized.scale_shape));
            part(&quantized.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect::<Vec<u8>>());
            part(&[u8::from(quantized.int8_products)]);
            if !quantized.zero_points.is_empty() {
                part(&quantized.zero_points.iter().map(|zero| zero.cast_unsigned()).collect::<Vec<_>>());
            }
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}
