//! Text in MIDI files, whose encoding nothing states.

/// Decodes UTF-16 with a byte order mark, UTF-8, which may end within a character, or else Latin-1.
pub(super) fn decode(bytes: &[u8]) -> String {
    let utf_16 = |unit: fn([u8; 2]) -> u16| {
        let (units, _) = bytes[2..].as_chunks();
        char::decode_utf16(units.iter().map(|bytes| unit(*bytes)))
            .map(|unit| unit.unwrap_or('\u{FFFD}'))
            .collect()
    };
    match bytes {
        [0xFE, 0xFF, ..] => utf_16(u16::from_be_bytes),
        [0xFF, 0xFE, ..] => utf_16(u16::from_le_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) if error.error_len().is_none() => {
                String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
            }
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encodings() {
        for bytes in [
            "Flöte".as_bytes(),
            b"Fl\xF6te",
            b"\xFE\xFF\0F\0l\0\xF6\0t\0e",
            b"\xFF\xFEF\0l\0\xF6\0t\0e\0",
        ] {
            assert_eq!(decode(bytes), "Flöte");
        }
        assert_eq!(decode(&"Flö".as_bytes()[..3]), "Fl");
        assert_eq!(decode(b""), "");
    }
}
