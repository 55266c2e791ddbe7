//! Model files: `NAME.ondes`, a safetensors file whose metadata holds the JSON header and a checksum.
//!
//! [`open`] and [`read`] take captures of other programs too ([`super::import`]), whatever the file is named.
//! Any safetensors reader sees the weights; Ondes also checks that header and weights are those that were written.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;

use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::import::{self, Imported};
use super::{FORMAT, Fault, Header, Model, ModelError, Tensor, Weights, limits};

/// Key of the JSON header in the metadata.
const HEADER_KEY: &str = "ondes";
/// Key of the checksum in the metadata.
const CHECKSUM_KEY: &str = "blake3";

/// Endings of files that may be models, without the dot: ours, and those of captures.
pub const EXTENSIONS: [&str; 3] = ["ondes", "nam", "json"];

/// Reads and checks a model file.
///
/// # Errors
/// [`ModelError`] names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Model, ModelError> {
    Ok(open(path)?.model)
}

/// Reads and checks a model file; tells what was noticed while doing so, of a file in another format.
///
/// # Errors
/// [`ModelError`] names the file and what is wrong with it.
pub fn open(path: &Path) -> Result<Imported, ModelError> {
    let at = ModelError::at(path);
    let file = std::fs::File::open(path).map_err(|error| at(error.into()))?;
    let metadata = file.metadata().map_err(|error| at(error.into()))?;
    if !metadata.is_file() {
        return Err(at(Fault::NotAModel("not a regular file".into())));
    }
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    Fault::limit("the file's size", length, limits::FILE_BYTES).map_err(&at)?;
    if length == 0 {
        return Err(at(Fault::NotAModel("the file is empty".into())));
    }
    let bytes = map(&file).map_err(|error| at(error.into()))?;
    if !looks_foreign(&bytes) {
        return Ok(Imported { model: parse(&bytes).map_err(at)?, notes: Vec::new() });
    }
    let Imported { model, notes } = import::parse(&bytes).map_err(&at)?;
    Ok(Imported { model: named(model, path).map_err(at)?, notes })
}

/// Whether the bytes are those of a capture: JSON, which could never be the length that our files begin with.
fn looks_foreign(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<8>().map_or(u64::MAX, |prefix| u64::from_le_bytes(*prefix));
    length > limits::HEADER_BYTES as u64 && import::is_json(bytes)
}

/// The model under its file's name where it has none of its own.
fn named(model: Model, path: &Path) -> Result<Model, Fault> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if !model.header().card.name.trim().is_empty() || stem.is_empty() {
        return Ok(model);
    }
    let mut header = model.header().clone();
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
/// [`Fault`] says what is wrong.
pub fn parse(bytes: &[u8]) -> Result<Model, Fault> {
    let not_a_model = |reason: &dyn std::fmt::Display| Fault::NotAModel(reason.to_string());
    let Some(prefix) = bytes.first_chunk::<8>() else {
        return Err(not_a_model(&"shorter than a header"));
    };
    let header_bytes = usize::try_from(u64::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
    if header_bytes > bytes.len() {
        // Most files of other kinds look like this.
        return Err(not_a_model(&"it does not begin with a header"));
    }
    Fault::limit("the header's size", header_bytes, limits::HEADER_BYTES)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| not_a_model(&error))?;
    let texts =
        metadata.metadata().as_ref().ok_or_else(|| not_a_model(&"a safetensors file without a header of ours"))?;
    let json = texts.get(HEADER_KEY).ok_or_else(|| not_a_model(&"a safetensors file without a header of ours"))?;
    check_version(json)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| not_a_model(&error))?;
    let mut weights = Weights::default();
    for (name, view) in tensors.iter() {
        Fault::limit("the length of a weight's name", name.len(), limits::NAME_BYTES)?;
        if view.dtype() != Dtype::F32 {
            return Err(Fault::weight(name, format!("is {:?}, F32 is needed", view.dtype())));
        }
        let data =
            view.data().chunks_exact(4).map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]]));
        weights.insert(name, Tensor { shape: view.shape().to_vec(), data: data.collect() });
    }
    let header: Header = serde_json::from_str(json).map_err(|error| Fault::Header(format!("the header: {error}")))?;
    let model = Model::new(header, weights)?;
    match texts.get(CHECKSUM_KEY) {
        Some(checksum) if checksum == model.content_hash() => Ok(model),
        _ => Err(Fault::Checksum),
    }
}

/// The version comes first: another version's header may not even have our fields.
fn check_version(json: &str) -> Result<(), Fault> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u64,
    }
    let Version { format } =
        serde_json::from_str(json).map_err(|error| Fault::Header(format!("the header: {error}")))?;
    if format == u64::from(FORMAT) {
        return Ok(());
    }
    Err(Fault::Version { found: format, supported: FORMAT })
}

/// The bytes of a model's file.
///
/// # Errors
/// [`Fault::Header`] when the weights cannot be laid out as safetensors.
pub fn serialize(model: &Model) -> Result<Vec<u8>, Fault> {
    let json = encode_header(model.header())?;
    let bytes: Vec<(&str, &[usize], Vec<u8>)> = model
        .weights()
        .iter()
        .map(|(name, tensor)| {
            let data = tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect();
            (name, tensor.shape.as_slice(), data)
        })
        .collect();
    let as_fault = |error: safetensors::SafeTensorError| Fault::Header(error.to_string());
    let views = bytes.iter().map(|(name, shape, data)| Ok((*name, TensorView::new(Dtype::F32, shape.to_vec(), data)?)));
    let views: Vec<_> = views.collect::<Result<_, _>>().map_err(as_fault)?;
    let texts =
        HashMap::from([(CHECKSUM_KEY.to_owned(), model.content_hash().to_owned()), (HEADER_KEY.to_owned(), json)]);
    safetensors::serialize(views, Some(texts)).map_err(as_fault)
}

/// Writes a model file; a file of that name is replaced only by a whole one.
///
/// # Errors
/// [`ModelError`] names the file and why it could not be written.
pub fn write(model: &Model, path: &Path) -> Result<(), ModelError> {
    let at = ModelError::at(path);
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

fn encode_header(header: &Header) -> Result<String, Fault> {
    serde_json::to_string(header).map_err(|error| Fault::Header(format!("the header: {error}")))
}

/// BLAKE3 over the header and over names, shapes and values of all weights, in hexadecimal.
pub(super) fn content_hash(header: &Header, weights: &Weights) -> Result<String, Fault> {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(encode_header(header)?.as_bytes());
    for (name, tensor) in weights.iter() {
        part(name.as_bytes());
        part(&tensor.shape.iter().flat_map(|&extent| (extent as u64).to_le_bytes()).collect::<Vec<u8>>());
        part(&tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    }
    Ok(hasher.finalize().to_hex().to_string())
}
