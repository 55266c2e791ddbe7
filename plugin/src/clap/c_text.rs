//! Texts in C's form.

use std::ffi::{CString, c_char};

/// Returns a C string; removes NUL characters.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Returns a text as a NUL-terminated array; what does not fit is cut at a character.
pub(super) fn text_field<const LENGTH: usize>(text: &str) -> [c_char; LENGTH] {
    let mut field = [0; LENGTH];
    copy_text(text, &mut field);
    field
}

/// Writes a NUL-terminated text; what does not fit is cut at a character.
pub(super) fn copy_text(text: &str, to: &mut [c_char]) {
    let Some(room) = to.len().checked_sub(1) else {
        return;
    };
    let length = text.floor_char_boundary(room);
    for (to, byte) in to
        .iter_mut()
        .zip(text.as_bytes()[..length].iter().chain(&[0]))
    {
        *to = *byte as c_char;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character() {
        let bytes = |text: &str| text_field::<5>(text).map(|byte| byte as u8);
        assert_eq!(bytes("Tune"), *b"Tune\0");
        assert_eq!(bytes("Glide"), *b"Glid\0");
        assert_eq!(
            bytes("4×××"),
            [b'4', 0xC3, 0x97, 0, 0],
            "half of a character is left out"
        );
        assert_eq!(bytes(""), [0; 5]);
        copy_text("x", &mut []);
        assert_eq!(c_string("a\0b").to_bytes(), b"ab");
    }
}
