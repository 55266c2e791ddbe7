//! Tells what a file is that is not a model, from its first bytes, so that an error can say what to
//! do.

use std::fs::File;

use serde_json::Value;
use zip::ZipArchive;

use super::ModelError;
use crate::files::{shortened, without_mark};

/// Beginning of a file that is no model, and what it is.
struct Signature {
    offset: usize,
    bytes: &'static [u8],
    what: &'static str,
}

const fn signature(bytes: &'static [u8], what: &'static str) -> Signature {
    Signature {
        offset: 0,
        bytes,
        what,
    }
}

const UNPACK: &str = "an archive; unpack it and open a model in it";
const PICKLE: &str =
    "PyTorch weights without their network; export the model: as .nam, or as TorchScript (.ts)";
const SOUND: &str = "a recording, not a model; give it with --input";
const PICTURE: &str = "a picture or document, not a model";
const PROGRAM: &str = "a program or plugin for this or another system, not a model";
const UTF_16: &str = "UTF-16 text; save it as UTF-8";

/// Signatures of common formats.
const SIGNATURES: [Signature; 35] = [
    signature(b"\x1f\x8b", UNPACK),
    signature(b"BZh", UNPACK),
    signature(b"\xfd7zXZ", UNPACK),
    signature(b"\x28\xb5\x2f\xfd", UNPACK),
    signature(b"7z\xbc\xaf", UNPACK),
    signature(b"Rar!", UNPACK),
    Signature {
        offset: 257,
        bytes: b"ustar",
        what: UNPACK,
    },
    signature(b"PK\x05\x06", "an empty ZIP archive; download it again"),
    signature(b"\x80\x02", PICKLE),
    signature(b"\x80\x03", PICKLE),
    signature(b"\x80\x04", PICKLE),
    signature(b"\x80\x05", PICKLE),
    signature(
        b"\x89HDF",
        "a Keras model (HDF5); export it as JSON for RTNeural",
    ),
    Signature {
        offset: 4,
        bytes: b"TFL3",
        what: "a TensorFlow Lite model, which Ondes does not read",
    },
    signature(
        b"GGUF",
        "a language model (GGUF), which Ondes does not read",
    ),
    signature(b"\x93NUMPY", "a NumPy array, not a model"),
    signature(b"MThd", "a MIDI file, not a model; give it with --midi"),
    signature(b"RIFF", SOUND),
    signature(b"RIFX", SOUND),
    signature(b"RF64", SOUND),
    signature(b"FORM", SOUND),
    signature(b"fLaC", SOUND),
    signature(b"OggS", SOUND),
    signature(b"ID3", SOUND),
    Signature {
        offset: 4,
        bytes: b"ftyp",
        what: SOUND,
    },
    signature(b"\x89PNG", PICTURE),
    signature(b"\xff\xd8\xff", PICTURE),
    signature(b"GIF8", PICTURE),
    signature(b"%PDF", PICTURE),
    signature(b"\x7fELF", PROGRAM),
    signature(b"MZ", PROGRAM),
    signature(b"\xcf\xfa\xed\xfe", PROGRAM),
    signature(b"\xca\xfe\xba\xbe", PROGRAM),
    signature(b"\xff\xfe", UTF_16),
    signature(b"\xfe\xff", UTF_16),
];

/// Returns what a file is that begins with these bytes and is neither a model file nor JSON.
pub(super) fn describe(start: &[u8]) -> String {
    let matches = |one: &&Signature| {
        start
            .get(one.offset..)
            .is_some_and(|rest| rest.starts_with(one.bytes))
    };
    if let Some(known) = SIGNATURES.iter().find(matches) {
        return known.what.to_owned();
    }
    if is_onnx(start) {
        return "an ONNX model, which Ondes does not read; export it as TorchScript (.ts)"
            .to_owned();
    }
    let text = without_mark(start).trim_ascii_start();
    if text.starts_with(b"version https://git-lfs.github.com/") {
        return "a Git LFS pointer, not the file; run `git lfs pull`, or download the file itself"
            .to_owned();
    }
    if text.starts_with(b"<") {
        return "a web page, not the file; open the page and download the file itself".to_owned();
    }
    if start.iter().all(|&byte| byte == 0) {
        return "only zeros, as after a broken download; download or copy it again".to_owned();
    }
    match readable(text) {
        Some(words) => format!("a text file, not a model; it begins with {words:?}"),
        None => "not an Ondes model, and no other format that Ondes reads".to_owned(),
    }
}

/// Returns whether the bytes begin an ONNX model: a protocol buffer with the format's version and
/// then a string or the sets of operators.
fn is_onnx(start: &[u8]) -> bool {
    matches!(
        start,
        [
            0x08,
            1..=20,
            0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a | 0x42,
            ..
        ]
    )
}

/// Returns the first words of a text; `None` if the bytes are no text.
fn readable(bytes: &[u8]) -> Option<String> {
    const SHOWN: usize = 40;
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be cut off.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = |sign: char| !sign.is_control() || sign.is_ascii_whitespace();
    (!text.trim().is_empty() && text.chars().all(is_text)).then(|| {
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.chars().take(SHOWN).collect()
    })
}

/// Checks that a ZIP archive holds a TorchScript program: a pickle of the module, its constants and
/// its code.
///
/// # Errors
/// Returns [`ModelError::Foreign`] with what the archive holds instead.
pub(super) fn check_torchscript(file: &File) -> Result<(), ModelError> {
    let Ok(archive) = ZipArchive::new(file) else {
        let reason = "a ZIP archive that is damaged or cut off, as a TorchScript program may be; download or copy it again";
        return Err(ModelError::Foreign(reason.into()));
    };
    let names: Vec<&str> = archive.file_names().collect();
    let has = |name: &str| names.contains(&name);
    let folders = names
        .iter()
        .filter_map(|name| name.strip_suffix("data.pkl"));
    let mut is_pickled = false;
    for folder in folders {
        if has(&format!("{folder}constants.pkl")) {
            return Ok(());
        }
        is_pickled = true;
    }
    let ends_with = |ends: &[&str]| {
        names.iter().find(|name| {
            ends.iter()
                .any(|end| name.to_ascii_lowercase().ends_with(end))
                && !name.starts_with("__MACOSX")
        })
    };
    let what = if is_pickled {
        PICKLE.to_owned()
    } else if ends_with(&["archive_format"]).is_some() {
        "a program of torch.export (.pt2); export it as TorchScript (.ts)".to_owned()
    } else if let Some(model) =
        ends_with(&[".nam", ".ondes", ".json", ".ts"]).filter(|_| !has("config.json"))
    {
        format!("a ZIP archive with models; unpack it and open one, such as {model:?}")
    } else if has("config.json") && ends_with(&[".h5"]).is_some() {
        "a Keras model; export it as JSON for RTNeural".to_owned()
    } else if ends_with(&[".npy"]).is_some() {
        "NumPy arrays, not a model".to_owned()
    } else {
        "a ZIP archive without a model".to_owned()
    };
    Err(ModelError::Foreign(what))
}

/// Returns what invalid JSON is; `None` if only its syntax is wrong.
pub(super) fn describe_json_error(error: &serde_json::Error) -> Option<String> {
    let (line, column) = (error.line(), error.column());
    error.is_eof().then(|| {
        format!("cut off: its JSON ends at line {line}, column {column}; download or copy it again")
    })
}

/// Returns what a JSON file is that is no capture; `None` if that is unknown.
pub(super) fn describe_json(value: &Value) -> Option<String> {
    /// Fields of the answers of servers that have an error to tell.
    const ANSWER: [&str; 16] = [
        "error",
        "errors",
        "message",
        "detail",
        "details",
        "code",
        "status",
        "statusCode",
        "title",
        "type",
        "reason",
        "documentation_url",
        "success",
        "timestamp",
        "path",
        "request_id",
    ];
    let fields = value.as_object()?;
    let has = |name: &str| fields.contains_key(name);
    match fields.get("format").and_then(Value::as_str) {
        Some("ondes-preset") => {
            return Some("a preset, not a model; load it in the menu of presets".into());
        }
        Some("ondes-session") => {
            return Some(
                "a session, not a model; give it the ending .ondes-session to open it".into(),
            );
        }
        _ => {}
    }
    let is_answer = fields.keys().all(|name| ANSWER.contains(&name.as_str()));
    if is_answer && let Some(name) = ANSWER[..5].iter().find(|name| has(name)) {
        let said = match &fields[*name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return Some(format!(
            "an error message of a server ({}), not the file; download it again",
            shortened(&said)
        ));
    }
    if has("modelTopology") {
        return Some("a TensorFlow.js model, which Ondes does not read".into());
    }
    let is_keras = has("class_name") && has("config");
    is_keras.then(|| "a Keras network without weights; export it as JSON for RTNeural".into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use crate::model::export::torchscript::{Archive, Pickle};
    use crate::model::{ModelFileError, file};

    fn refused(folder: &Path, name: &str, bytes: &[u8]) -> String {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let ModelFileError { path: named, error } = file::read(&path).expect_err(name);
        assert_eq!(named, path);
        error.to_string()
    }

    fn zip(entries: &[&str]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for entry in entries {
            writer
                .start_file(*entry, zip::write::FileOptions::default())
                .unwrap();
            writer.write_all(b"{}").unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn each_file_is_said_for_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let tar = [
            vec![b'a'; 100],
            vec![0; 157],
            b"ustar".to_vec(),
            vec![0; 300],
        ]
        .concat();
        let cases: &[(&str, &[u8], &str)] = &[
            ("page.nam", b"<!DOCTYPE html>\n<html><head>", "a web page"),
            ("page.ondes", b"\xef\xbb\xbf\n <html lang=en>", "a web page"),
            (
                "pointer.nam",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
                "git lfs pull",
            ),
            (
                "cut.nam",
                br#"{"version": "0.5.4", "architecture": "Wav"#,
                "cut off: its JSON ends at line 1, column 41",
            ),
            ("one.nam", b"{", "cut off"),
            (
                "answer.nam",
                br#"{"message": "Not Found", "status": "404"}"#,
                "an error message of a server (Not Found)",
            ),
            (
                "answer.json",
                br#"{"detail": [1]}"#,
                "an error message of a server ([1])",
            ),
            (
                "preset.json",
                br#"{"format": "ondes-preset", "version": 1}"#,
                "a preset",
            ),
            (
                "session.json",
                br#"{"format": "ondes-session"}"#,
                "a session",
            ),
            ("theme.json", br#"{"theme": 1}"#, "a JSON file without"),
            ("list.json", b"[1, 2]", "a JSON file without"),
            (
                "keras.json",
                br#"{"class_name": "Sequential", "config": {}}"#,
                "Keras",
            ),
            ("a.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", "ONNX"),
            ("a.h5", b"\x89HDF\r\n\x1a\n\0\0", "Keras"),
            (
                "old.pt",
                b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
                "PyTorch weights",
            ),
            (
                "a.nam.gz",
                b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c",
                "unpack it",
            ),
            ("a.tar", &tar, "unpack it"),
            ("take.wav", b"RIFF\x24\0\0\0WAVEfmt ", "--input"),
            ("song.mid", b"MThd\0\0\0\x06\0\0", "--midi"),
            ("amp.dll", b"MZ\x90\0\x03\0\0\0", "a program or plugin"),
            ("utf16.nam", b"\xff\xfe{\0\"\0v\0", "UTF-16"),
            ("zeros.ondes", &[0; 4_000], "only zeros"),
            (
                "readme.nam",
                "Für Gitarre:\nerst lesen".as_bytes(),
                "a text file, not a model; it begins with \"Für Gitarre:",
            ),
            (
                "noise.ondes",
                b"\xf3\x91\x07\xc8\xee\x02\x99\xa1\xb4\xc3",
                "no other format",
            ),
            ("empty.nam", b"", "the file is empty"),
            (
                "pack.zip",
                &zip(&["__MACOSX/._a.nam", "amps/a.nam"]),
                "unpack it and open one, such as \"amps/a.nam\"",
            ),
            (
                "weights.ckpt",
                &zip(&["archive/data.pkl", "archive/data/0", "archive/version"]),
                "PyTorch weights",
            ),
            (
                "a.keras",
                &zip(&["metadata.json", "config.json", "model.weights.h5"]),
                "Keras",
            ),
            (
                "a.pt2",
                &zip(&["archive/archive_format", "archive/models/model.json"]),
                "torch.export",
            ),
            ("a.npz", &zip(&["a.npy"]), "NumPy"),
            (
                "a.docx",
                &zip(&["word/document.xml"]),
                "a ZIP archive without a model",
            ),
            ("none.zip", &zip(&[]), "empty ZIP archive"),
            (
                "cut.ts",
                &zip(&["x/data.pkl", "x/constants.pkl"])[..60],
                "damaged or cut off",
            ),
        ];
        for (name, bytes, words) in cases {
            let error = refused(folder.path(), name, bytes);
            assert!(
                error.contains(words) && error.lines().count() == 1,
                "{name}: {error}"
            );
        }
        let program = Archive::new(Pickle::default(), "3").finish();
        assert!(refused(folder.path(), "a.ts", &program).contains("programs run only if"));
    }

    #[test]
    fn models_that_are_cut_off_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let whole = include_bytes!("../../../assets/models/fuzz.ondes");
        assert!(file::parse(whole).is_ok());
        for length in [2, 8, 9, 100, 2_000, whole.len() / 2, whole.len() - 1] {
            let error = refused(folder.path(), "cut.ondes", &whole[..length]);
            assert!(
                error.contains("cut off") || error.contains("too short"),
                "{length}: {error}"
            );
        }
        let error = refused(
            folder.path(),
            "long.ondes",
            &[whole.as_slice(), b"more"].concat(),
        );
        assert!(error.contains("its header describes"), "{error}");
    }
}
