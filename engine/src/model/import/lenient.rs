//! JSON as some programs write it.

/// Number that is finite in JSON, but not in 32 bits, so that it is ignored or refused wherever it
/// is read.
const NOT_FINITE: &str = "1e39";

/// Returns strict JSON for a file with `NaN` and `Infinity`, as Python writes them, or with text
/// that is not UTF-8.
pub(super) fn strict(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut strict = String::with_capacity(text.len());
    // Every second part is a string, unless its quotation mark is escaped.
    let mut in_string = false;
    for part in text.split_inclusive('"') {
        if in_string {
            strict.push_str(part);
        } else {
            // The minus sign belongs to an infinity.
            let finite =
                ["NaN", "-Infinity", "Infinity"]
                    .iter()
                    .fold(part.to_owned(), |part, literal| {
                        if part.contains(literal) {
                            part.replace(literal, NOT_FINITE)
                        } else {
                            part
                        }
                    });
            strict.push_str(&finite);
        }
        let before = part.strip_suffix('"').unwrap_or(part);
        let escapes = before.len() - before.trim_end_matches('\\').len();
        if !in_string || escapes % 2 == 0 {
            in_string = !in_string;
        }
    }
    strict
}

#[cfg(test)]
mod tests {
    use super::strict;

    #[test]
    fn only_numbers_are_replaced() {
        let file =
            br#"{"NaN": [NaN, -Infinity, Infinity, 1], "a": "say \"NaN\", or NaN\\", "b": NaN}"#;
        let expected = r#"{"NaN": [1e39, 1e39, 1e39, 1], "a": "say \"NaN\", or NaN\\", "b": 1e39}"#;
        assert_eq!(strict(file), expected);
        assert_eq!(strict(b"{\"a\": \"R\xeave\"}"), "{\"a\": \"R\u{FFFD}ve\"}");
    }
}
