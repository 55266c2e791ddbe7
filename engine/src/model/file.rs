//! Model files: `NAME.ondes`, a safetensors file whose metadata contains the JSON header and a
//! checksum.
//!
//! [`open`] and [`read`] also accept captures made by other programs ([`super::import`]); the
//! format is detected from the content, not from the file name. They never run code: TorchScript
//! programs are refused here and opened by [`crate::torch::open`]. Any safetensors reader can read
//! the weights.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Metadata, TensorView};

use super::import::{self, ImportedModel};
use super::{
    Attacks, FORMAT, FORMAT_COMPRESSED, Header, Model, ModelError, ModelFileError, attacks,
    foreign, limits, tensors,
};
use crate::files;

/// Metadata key of the JSON header.
const HEADER_KEY: &str = "ondes";
/// Metadata key of the checksum.
const CHECKSUM_KEY: &str = "blake3";
/// Metadata key of the JSON list of weights that may be multiplied in 8 bits; absent if there are
/// none.
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
    open_or_run(path, |_| Err(ModelError::Program))
}

/// Reads and validates a model file or a capture, and passes a TorchScript program to `run`, which
/// reads it with [`program_bytes`]. Files are read, never mapped: others may change them at any
/// time.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be read or is invalid, or the error of `run`.
pub(crate) fn open_or_run(
    path: &Path,
    run: impl FnOnce(&mut File) -> Result<ImportedModel, ModelError>,
) -> Result<ImportedModel, ModelFileError> {
    let open = || -> Result<ImportedModel, ModelError> {
        let mut file = files::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        ModelError::limit("the file's size", length, limits::FILE_BYTES)?;
        let mut start = Vec::new();
        (&file).take(START_BYTES).read_to_end(&mut start)?;
        if start.is_empty() {
            return Err(ModelError::NotAModel("the file is empty".into()));
        }
        if is_zip(&start) {
            foreign::check_torchscript(&file)?;
            ModelError::limit("the program's size", length, limits::PROGRAM_BYTES)?;
            return run(&mut file);
        }
        if is_safetensors(&start) {
            let mut reader = start.as_slice().chain(&mut file);
            return Ok(ImportedModel {
                model: read_model(&mut reader, length)?,
                notes: Vec::new(),
            });
        }
        if !import::is_json(&start) {
            if length < PREFIX_BYTES {
                return Err(too_short());
            }
            return Err(ModelError::Foreign(foreign::describe(&start)));
        }
        let ImportedModel { model, notes } = import::parse(&whole(&mut file, import::FILE_BYTES)?)?;
        Ok(ImportedModel {
            model: model.named_after(path),
            notes,
        })
    };
    open().map_err(ModelFileError::at(path))
}

/// Bytes before the header of a safetensors file: its length.
const PREFIX_BYTES: usize = 8;
/// Number of bytes at the start of a file that tell its format.
const START_BYTES: u64 = 512;

/// Reads a program.
///
/// # Errors
/// Returns [`ModelError`] if it cannot be read or is too large.
pub(crate) fn program_bytes(file: &mut File) -> Result<Vec<u8>, ModelError> {
    whole(file, limits::PROGRAM_BYTES)
}

/// Reads a file from its start.
fn whole(file: &mut File, max_bytes: usize) -> Result<Vec<u8>, ModelError> {
    file.rewind()?;
    Ok(files::read_opened(file, max_bytes as u64)?)
}

/// Returns whether the bytes are a ZIP archive, as TorchScript programs are. Read as the length
/// prefix of a model file, the signature would exceed any limit.
fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Returns whether the bytes begin a safetensors file: the length of the header and, unless the
/// file is cut off there, an object. Of other files the length would exceed any limit.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((prefix, header)) = bytes.split_first_chunk::<PREFIX_BYTES>() else {
        return false;
    };
    let length = u64::from_le_bytes(*prefix);
    (1..=limits::HEADER_BYTES as u64).contains(&length) && matches!(header, [] | [b'{', ..])
}

/// Parses and validates a model from the bytes of a model file.
///
/// # Errors
/// Returns [`ModelError`] if the bytes are not a valid model.
pub fn parse(bytes: &[u8]) -> Result<Model, ModelError> {
    read_model(&mut &*bytes, bytes.len())
}

/// Reads and validates a model from a model file of `length` bytes.
fn read_model(file: &mut impl Read, length: usize) -> Result<Model, ModelError> {
    let not_a_model = |reason: &dyn std::fmt::Display| ModelError::NotAModel(reason.to_string());
    let cut_off = |error: std::io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => not_a_model(&"the file ends while it is read"),
        _ => error.into(),
    };
    let mut prefix = [0; PREFIX_BYTES];
    if length < PREFIX_BYTES {
        return Err(too_short());
    }
    file.read_exact(&mut prefix).map_err(cut_off)?;
    let header_bytes = usize::try_from(u64::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    ModelError::limit("the header's size", header_bytes, limits::HEADER_BYTES)?;
    if header_bytes > length - prefix.len() {
        return Err(incomplete(length, prefix.len() + header_bytes));
    }
    let mut header = vec![0; header_bytes];
    file.read_exact(&mut header).map_err(cut_off)?;
    let metadata: Metadata =
        serde_json::from_slice(&header).map_err(|error| not_a_model(&error))?;
    let data_bytes = metadata
        .tensors()
        .values()
        .map(|info| info.data_offsets.1)
        .max()
        .unwrap_or(0);
    let expected = data_bytes.saturating_add(prefix.len() + header_bytes);
    if expected > length {
        return Err(incomplete(length, expected));
    }
    if expected != length {
        return Err(not_a_model(&format!(
            "it has {length} bytes, but its header describes {expected}"
        )));
    }
    let other = || {
        let reason = "safetensors weights of another program, without an Ondes header that says how to play them";
        ModelError::Foreign(reason.into())
    };
    let texts = metadata.metadata().as_ref().ok_or_else(other)?;
    let json = texts.get(HEADER_KEY).ok_or_else(other)?;
    check_version(json)?;
    let products = texts
        .get(PRODUCTS_KEY)
        .map(|names| serde_json::from_str(names))
        .transpose();
    let products: BTreeSet<String> = products
        .map_err(|error| ModelError::Header(format!("the list of int8 products: {error}")))?
        .unwrap_or_default();
    let mut weights = tensors::read(&metadata, file, &products).map_err(|error| match error {
        ModelError::Io(error) => cut_off(error),
        other => other,
    })?;
    let header: Header = serde_json::from_str(json)
        .map_err(|error| ModelError::Header(format!("the header: {error}")))?;
    let attacks = [attacks::SOUNDS, attacks::NOTES].map(|name| weights.remove(name));
    let attacks = match attacks {
        [None, None] => None,
        [Some(sounds), Some(notes)] => Some(Arc::new(Attacks { sounds, notes })),
        _ => {
            return Err(ModelError::Header(
                "attacks: sounds or notes are missing".into(),
            ));
        }
    };
    let model = Model::new(header, weights)?.with_attacks(attacks)?;
    match texts.get(CHECKSUM_KEY) {
        Some(checksum) if *checksum == model.checksum()? => Ok(model),
        _ => Err(ModelError::Checksum),
    }
}

fn too_short() -> ModelError {
    ModelError::Foreign("too short for a model; download or copy it again".into())
}

/// Returns the error of a file of `length` bytes that should have at least `expected`.
fn incomplete(length: usize, expected: usize) -> ModelError {
    let (found, expected) = (length as u64, expected as u64);
    ModelError::Foreign(format!(
        "cut off: it has {found} of at least {expected} bytes; download or copy it again"
    ))
}

/// Checks the version before the header is parsed: other versions may have other fields.
fn check_version(json: &str) -> Result<(), ModelError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u64,
    }
    let Version { format } = serde_json::from_str(json)
        .map_err(|error| ModelError::Header(format!("the header: {error}")))?;
    if (u64::from(FORMAT)..=u64::from(FORMAT_COMPRESSED)).contains(&format) {
        return Ok(());
    }
    Err(ModelError::Version {
        found: format,
        supported: FORMAT_COMPRESSED,
    })
}

/// Encodes a model as the bytes of a model file.
///
/// # Errors
/// Returns [`ModelError::Header`] if the weights cannot be encoded as safetensors, and
/// [`ModelError::Program`] if the model is a program.
pub fn serialize(model: &Model) -> Result<Vec<u8>, ModelError> {
    if model.program().is_some() {
        return Err(ModelError::Program);
    }
    let json = encode_header(model.header())?;
    let attacks = model
        .attacks()
        .into_iter()
        .flat_map(|attacks| attacks.tensors());
    let written = tensors::write(model.weights().iter().chain(attacks));
    let header_error = |error: safetensors::SafeTensorError| ModelError::Header(error.to_string());
    let views = written.iter().map(|one| {
        Ok((
            &one.name,
            TensorView::new(one.dtype, one.shape.clone(), &one.bytes)?,
        ))
    });
    let views: Vec<_> = views.collect::<Result<_, _>>().map_err(header_error)?;
    let mut texts = HashMap::from([
        (CHECKSUM_KEY.to_owned(), model.checksum()?),
        (HEADER_KEY.to_owned(), json),
    ]);
    let products = tensors::products(model.weights());
    if !products.is_empty() {
        let names = serde_json::to_string(&products)
            .map_err(|error| ModelError::Header(error.to_string()))?;
        texts.insert(PRODUCTS_KEY.to_owned(), names);
    }
    safetensors::serialize(views, Some(texts)).map_err(header_error)
}

/// Writes a model file. An existing file is replaced only after everything has been written.
///
/// # Errors
/// Returns [`ModelFileError`] if the file cannot be written.
pub fn write(model: &Model, path: &Path) -> Result<(), ModelFileError> {
    let written = serialize(model).and_then(|bytes| Ok(files::write(path, &bytes)?));
    written.map_err(ModelFileError::at(path))
}

fn encode_header(header: &Header) -> Result<String, ModelError> {
    serde_json::to_string(header)
        .map_err(|error| ModelError::Header(format!("the header: {error}")))
}
