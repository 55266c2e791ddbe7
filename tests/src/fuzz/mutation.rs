//! Mutations of files: blind ones of bytes and text, and ones that know JSON and ZIP archives.

use std::io::{Cursor, Read as _, Write as _};

use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus as Random;
use serde_json::Value;
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Structure of a format, as far as mutations use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Bytes, with lengths and offsets as integers.
    Binary,
    /// Text with numbers.
    Text,
    /// One JSON document.
    Json,
    /// ZIP archive; its checksums are corrected.
    Zip,
}

/// Largest mutated file, bytes.
const LARGEST: usize = 1 << 20;

/// Numbers, and what stands in for them, as text.
const NUMBERS: &str = "0 -0 -0.0 1 -1 2 3 0.5 127 128 255 256 32768 65535 65536 16777217 2147483647 2147483648 \
    4294967295 4294967296 9007199254740993 9223372036854775807 -9223372036854775808 18446744073709551615 \
    18446744073709551616 99999999999999999999999999 1e-46 1e-320 3.4e38 1e39 -1e39 1e308 1e400 NaN nan inf -inf \
    Infinity null true \"\" []";
/// Sizes of integers in bits, at whose limits lengths overflow.
const INTEGER_BITS: [u32; 8] = [0, 7, 8, 15, 16, 31, 32, 63];
/// Samples and weights that are hard to compute with.
const FLOATS: [f32; 8] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    -3e37,
    1e-40,
    -0.0,
    1e20,
];

/// Returns one of the seeds, mutated one to four times.
pub fn mutate(syntax: Syntax, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    let other = &seeds[random.random_range(0..seeds.len())];
    for _ in 0..random.random_range(1..=4) {
        bytes = match syntax {
            Syntax::Zip if random.random_bool(0.75) => member(&bytes, random).unwrap_or(bytes),
            Syntax::Json if random.random_bool(0.5) => document(&bytes, random).unwrap_or(bytes),
            Syntax::Json | Syntax::Text if random.random_bool(0.7) => text(bytes, random),
            _ => binary(bytes, other, random),
        };
    }
    bytes.truncate(LARGEST);
    bytes
}

/// Returns a position, in half of the cases near the beginning, where headers are.
fn position(length: usize, random: &mut Random) -> usize {
    let end = if random.random_bool(0.5) {
        length.min(128)
    } else {
        length
    };
    random.random_range(0..end.max(1))
}

/// Returns a short range, now and then a long one.
fn range(length: usize, random: &mut Random) -> std::ops::Range<usize> {
    let start = position(length, random);
    let longest = if random.random_bool(0.2) { length } else { 16 };
    start..(start + random.random_range(1..=longest.max(1))).min(length)
}

fn binary(mut bytes: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    if bytes.is_empty() {
        return vec![random.random()];
    }
    let place = position(bytes.len(), random);
    match random.random_range(0..11) {
        0 => bytes[place] ^= 1 << random.random_range(0..8),
        1 => bytes[place] = random.random(),
        2 => bytes.truncate(place),
        3 => drop(bytes.drain(range(bytes.len(), random))),
        4 => bytes.insert(place, random.random()),
        5 => {
            // The end of another file.
            bytes.truncate(place);
            bytes.extend_from_slice(&other[random.random_range(0..=other.len())..]);
        }
        6 => {
            let copied = bytes[range(bytes.len(), random)].to_vec();
            let times = if random.random_bool(0.1) {
                random.random_range(1..200)
            } else {
                1
            };
            if copied.len() * times < LARGEST {
                bytes.splice(place..place, copied.repeat(times));
            }
        }
        7 => {
            let value = FLOATS[random.random_range(0..FLOATS.len())].to_le_bytes();
            overwrite(&mut bytes, place, &value);
        }
        8 => return text(bytes, random),
        _ => {
            let limit = 1_u64 << INTEGER_BITS[random.random_range(0..INTEGER_BITS.len())];
            let value = limit.wrapping_sub(random.random_range(0..=2));
            let size = 1 << random.random_range(0..4);
            let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
            overwrite(
                &mut bytes,
                place,
                if random.random_bool(0.5) {
                    &little[..size]
                } else {
                    &big[8 - size..]
                },
            );
        }
    }
    bytes
}

fn overwrite(bytes: &mut [u8], place: usize, value: &[u8]) {
    let count = value.len().min(bytes.len() - place);
    bytes[place..][..count].copy_from_slice(&value[..count]);
}

fn number(random: &mut Random) -> &'static str {
    let count = NUMBERS.split_whitespace().count();
    NUMBERS
        .split_whitespace()
        .nth(random.random_range(0..count))
        .unwrap_or_default()
}

fn text(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let number = number(random).as_bytes();
    match random.random_range(0..10) {
        0..=4 => {
            if let Some(place) = token(&bytes, random, |byte| {
                byte.is_ascii_digit() || b"+-.eE".contains(&byte)
            }) {
                bytes.splice(place, number.iter().copied());
            }
        }
        5 => {
            if let Some(place) = token(&bytes, random, |byte| {
                byte.is_ascii_alphanumeric() || byte == b'_'
            }) {
                bytes.splice(place, *b"x");
            }
        }
        6 => {
            // The same key twice.
            let key = bytes
                .iter()
                .enumerate()
                .filter(|&(_, &byte)| byte == b',' || byte == b'\n');
            let ends: Vec<usize> = key.map(|(place, _)| place).collect();
            if ends.len() > 1 {
                let end = random.random_range(1..ends.len());
                let again = bytes[ends[end - 1]..ends[end]].to_vec();
                bytes.splice(ends[end]..ends[end], again);
            }
        }
        7 => {
            let depth = [40, 130, 1_000, 100_000][random.random_range(0..4)];
            if let Some(place) = token(&bytes, random, |byte| byte.is_ascii_digit()) {
                let (open, close) = [("[", "]"), ("{\"a\":", "}")][random.random_range(0..2)];
                let nested = [open.repeat(depth), "0".into(), close.repeat(depth)].concat();
                bytes.splice(place, nested.into_bytes());
            }
        }
        8 => bytes.truncate(position(bytes.len(), random)),
        _ => {
            let place = position(bytes.len(), random).min(bytes.len());
            bytes.insert(
                place,
                b"0123456789-.eE{}[],:\"\\\n#=\xFF\0"[random.random_range(0..27)],
            );
        }
    }
    bytes
}

/// Finds a run of bytes of a kind, from a random place on.
fn token(
    bytes: &[u8],
    random: &mut Random,
    is_part: impl Fn(u8) -> bool,
) -> Option<std::ops::Range<usize>> {
    let from = random.random_range(0..bytes.len().max(1));
    let start = from + bytes.get(from..)?.iter().position(|&byte| is_part(byte))?;
    let start = start
        - bytes[..start]
            .iter()
            .rev()
            .take_while(|&&byte| is_part(byte))
            .count();
    let length = bytes[start..]
        .iter()
        .take_while(|&&byte| is_part(byte))
        .count();
    Some(start..start + length)
}

/// Mutates a JSON document as a tree; `None` if the bytes are none.
fn document(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(bytes).ok()?;
    twist(&mut value, random);
    Some(value.to_string().into_bytes())
}

/// Replaces, removes, copies or exchanges a random value.
fn twist(value: &mut Value, random: &mut Random) {
    if random.random_bool(0.9) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                let place = random.random_range(0..items.len());
                match random.random_range(0..12) {
                    0 => drop(items.remove(place)),
                    1 => items.insert(place, items[place].clone()),
                    2 => items.swap(0, place),
                    _ => twist(&mut items[place], random),
                }
                return;
            }
            Value::Object(fields) if !fields.is_empty() => {
                let name = fields
                    .keys()
                    .nth(random.random_range(0..fields.len()))
                    .cloned()
                    .unwrap_or_default();
                if random.random_bool(0.1) {
                    fields.remove(&name);
                } else {
                    twist(&mut fields[&name], random);
                }
                return;
            }
            Value::String(text) if text.starts_with('{') && random.random_bool(0.8) => {
                // A document in a document.
                if let Some(inner) = document(text.as_bytes(), random) {
                    *text = String::from_utf8(inner).unwrap_or_default();
                }
                return;
            }
            _ => {}
        }
    }
    let number = number(random);
    *value = match random.random_range(0..8) {
        0 => Value::String(number.into()),
        1 => Value::String("x".repeat([0, 1, 300, 70_000][random.random_range(0..4)])),
        2 => Value::Array(vec![value.clone(); random.random_range(0..4)]),
        3 => Value::Object([(String::from("a"), value.clone())].into_iter().collect()),
        4 => Value::from(random.random_range(0..9_u64)),
        _ => serde_json::from_str(number).unwrap_or_else(|_| Value::from(random.random::<u64>())),
    };
}

/// Mutates a member of an archive and packs it again, uncompressed; `None` if the bytes are no
/// archive.
fn member(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).ok()?;
        let mut content = Vec::new();
        file.by_ref()
            .take(LARGEST as u64)
            .read_to_end(&mut content)
            .ok()?;
        members.push((file.name().to_owned(), content));
    }
    // Most members of an archive are weights, in which there is little to break.
    let pickle = members
        .iter()
        .position(|(name, _)| name.ends_with("data.pkl"));
    let any = random.random_range(0..members.len().max(1));
    let chosen = pickle.filter(|_| random.random_bool(0.5)).unwrap_or(any);
    let (name, content) = members.get_mut(chosen)?;
    let is_text = name.ends_with(".py") || name.ends_with(".json");
    *content = if is_text {
        text(content.clone(), random)
    } else {
        binary(content.clone(), &[], random)
    };
    match random.random_range(0..30) {
        0 => drop(members.remove(chosen)),
        1 => members[chosen].0.push('x'),
        2 => members.push(members[chosen].clone()),
        _ => {}
    }
    let mut writer = ZipWriter::new(Cursor::default());
    let options = FileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in members {
        writer.start_file(name, options).ok()?;
        writer.write_all(&content).ok()?;
    }
    Some(writer.finish().ok()?.into_inner())
}
