//! Sizes in bytes, as recipes and flags state them: a number, or a text such as "8G".

use serde::{Deserialize, Deserializer};

/// Size in bytes, or as a text such as "8G".
#[derive(Deserialize)]
#[serde(untagged)]
enum Bytes {
    Number(u64),
    Text(String),
}

/// Reads a size in bytes such as "8G".
pub fn bytes<'de, D: Deserializer<'de>>(source: D) -> Result<u64, D::Error> {
    let expected =
        || serde::de::Error::custom("a size must be a number of bytes, or a text such as \"8G\"");
    match Bytes::deserialize(source).map_err(|_| expected())? {
        Bytes::Number(bytes) => Ok(bytes),
        Bytes::Text(text) => parse_bytes(&text).map_err(serde::de::Error::custom),
    }
}

/// Reads a size in bytes that may be absent.
pub fn some_bytes<'de, D: Deserializer<'de>>(source: D) -> Result<Option<u64>, D::Error> {
    bytes(source).map(Some)
}

/// Parses a size such as "8G", "500M" or a number of bytes.
///
/// # Errors
/// Returns what is allowed.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text[digits.len()..].trim_end_matches(['B', 'b', 'i']) {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "m" | "M" => Some(1e6),
        "g" | "G" => Some(1e9),
        _ => None,
    };
    let number = digits
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| *number > 0.0 && number.is_finite());
    match (number, factor) {
        (Some(number), Some(factor)) => Ok((number * factor) as u64),
        _ => Err(format!(
            "memory {text:?} must be a size such as \"8G\" or \"500M\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("8G"), Ok(8_000_000_000));
        assert_eq!(parse_bytes("1.5 MB"), Ok(1_500_000));
        assert_eq!(parse_bytes("4096"), Ok(4_096));
        for wrong in ["", "G", "-1G", "8T", "nanG"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
