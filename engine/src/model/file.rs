//! Model files: `NAME.ondes`, a safetensors file whose metadata holds the JSON header and a checksum.
//!
//! [`open`] and [`read`] take captures of other programs too ([`super::import`]), whatever the file is named. They run nothing:
//! what is a program they refuse, and [`crate::torch::open`] opens it. Any safetensors reader sees the weights; Ondes also
//! checks that header and weights are those that were written.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::Path;

use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::import::{self, ImportedModel};
use super::{FORMAT, FORMAT_COMPRESSED, ModelError, Header, Model, ModelFileError, Tensor, limits, tensors};

/// Key of the JSON header in the metadata.
const HEADER_KEY: &str = "ondes";
/// Key of the checksum in the metadata.
const CHECKSUM_KEY: &str = "blake3";
/// Key of the names of the weights whose products may be computed on bytes, a JSON list; there only where there are any.
const PRODUCTS_KEY: &str = "int8";

/// Endings of files that may be models, without the dot: ours, and those of captures.
pub const EXTENSIONS: [&str; 3] = ["ondes", "nam", "json"];

/// Reads and checks a model file.
///
/// # Errors
/// [`ModelFileError`] names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Model, ModelFileError> {
    Ok(open(path)?.model)
}

/// Reads and checks a model file; tells what was noticed while doing so, of a file in another format.
///
/// # Errors
/// [`ModelFileError`] names the file and what is wrong with it.
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

/// The bytes of a file that may be a model.
///
/// # Errors
/// [`ModelFileError`] names the file and why it cannot be one.
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

/// Whether the bytes are those of a TorchScript program: a ZIP archive, which could never be the length that our files begin with.
#[must_use]
pub(crate) fn is_torchscript(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Whether the bytes are those of a capture: JSON, which could never be the length that our files begin with.
fn looks_foreign(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<8>().map_or(u64::MAX, |prefix| u64::from_le_bytes(*prefix));
    length > limits::HEADER_BYTES as u64 && import::is_json(bytes)
}

/// The model under its file's name where it has none of its own.
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
    // SAFETY: the map is read-only and lives only while `read` copies the weights out. Should another program shorten the file
    // in that time the system ends us with a signal, as for every program that maps files; nothing else can go wrong, since
    // every bit pattern is a valid byte and all content is checked after it was copied.
    unsafe { Mmap::map(file) }
}

/// Reads and checks a model from the bytes of a file.
///
/// # Errors
/// [`ModelError`] says what is wrong.
pub fn parse(bytes: &[u8]) -> Result<Model, ModelError> {
    let not_a_model = |reason: &dyn std::fmt::Display| ModelError::NotAModel(reason.to_string());
    let Some(prefix) = bytes.first_chunk::<8>() else {
        return Err(not_a_model(&"shorter than a header"));
    };
    let header_bytes = usize::try_from(u64::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
    if header_bytes > bytes.len() {
        // Most files of other kinds look like this.
        return Err(not_a_model(&"it does not begin with a header"));
    }
    ModelError::limit("the header's size", header_bytes, limits::HEADER_BYTES)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| not_a_model(&error))?;
    let texts =
        metadata.metadata().as_ref().ok_or_else(|| not_a_model(&"a safetensors file without a header of ours"))?;
    let json = texts.get(HEADER_KEY).ok_or_else(|| not_a_model(&"a safetensors file without a header of ours"))?;
    check_version(json)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| not_a_model(&error))?;
    let products = texts.get(PRODUCTS_KEY).map(|names| serde_json::from_str(names)).transpose();
    let products: BTreeSet<String> =
        products.map_err(|error| ModelError::Header(format!("the list of int8 products: {error}")))?.unwrap_or_default();
    let weights = tensors::read(&tensors, &products)?;
    let header: Header = serde_json::from_str(json).map_err(|error| ModelError::Header(format!("the header: {error}")))?;
    let model = Model::new(header, weights)?;
    match texts.get(CHECKSUM_KEY) {
        Some(checksum) if checksum == model.content_hash() => Ok(model),
        _ => Err(ModelError::Checksum),
    }
}

/// The version comes first: another version's header may not even have our fields.
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

/// The bytes of a model's file.
///
/// # Errors
/// [`ModelError::Header`] when the weights cannot be laid out as safetensors, [`ModelError::Program`] where there are none.
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

/// Writes a model file; a file of that name is replaced only by a whole one.
///
/// # Errors
/// [`ModelFileError`] names the file and why it could not be written.
pub fn write(model: &Model, path: &Path) -> Result<(), ModelFileError> {
    let at = ModelFileError::at(path);
    let bytes = serialize(model).map_err(&at)?;
    let part = path.with_extension("ondes.part");
    let written = std::fs::File::create(&part)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| {
        // What is left of a failed write is of no use; that it cannot be removed either changes nothing about the error.
        drop(std::fs::remove_file(&part));
        at(error.into())
    })
}

fn encode_header(header: &Header) -> Result<String, ModelError> {
    serde_json::to_string(header).map_err(|error| ModelError::Header(format!("the header: {error}")))
}

/// BLAKE3 over the header and over names, shapes and values of all weights as they are stored, in hexadecimal.
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
        // Where all are F32, nothing needs to be said about it.
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
