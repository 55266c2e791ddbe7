//! Errors of commands that print JSON: one object, `{"error": {"path": …, "reason": …}}`.

use serde::Serialize;

/// Error as `--json` prints it.
#[derive(Serialize)]
struct ErrorReport {
    error: ErrorFields,
}

#[derive(Serialize)]
struct ErrorFields {
    /// File or name that the error is about, as on the command line, or null.
    path: Option<String>,
    /// Reason.
    reason: String,
}

/// Formats a one-line message, `PATH: reason`, as a JSON object. The path is that argument of the
/// command line with which the message begins, or else an existing file.
///
/// # Errors
/// Returns an error if it cannot be encoded.
pub fn to_json(
    message: &str,
    arguments: impl IntoIterator<Item = String>,
) -> anyhow::Result<String> {
    let named = |path: &str| {
        message
            .strip_prefix(path)
            .and_then(|rest| rest.strip_prefix(": "))
            .map(str::to_owned)
    };
    let given = arguments
        .into_iter()
        .map(|argument| match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => value.to_owned(),
            _ => argument,
        });
    let given = given.filter(|argument| !argument.is_empty() && named(argument).is_some());
    let path = given.max_by_key(String::len).or_else(|| {
        let (path, _) = message.split_once(": ")?;
        std::path::Path::new(path).exists().then(|| path.to_owned())
    });
    let reason = path
        .as_deref()
        .and_then(named)
        .unwrap_or_else(|| message.to_owned());
    Ok(serde_json::to_string(&ErrorReport {
        error: ErrorFields { path, reason },
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_the_argument_that_the_message_begins_with() {
        let json = |message: &str| {
            let arguments =
                ["ondes", "render", "a", "a: b.nam", "--out=x/y.wav", ""].map(str::to_owned);
            let text = to_json(message, arguments).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let error = value["error"].clone();
            (
                error["path"].as_str().map(str::to_owned),
                error["reason"].as_str().unwrap().to_owned(),
            )
        };
        assert_eq!(
            json("a: cut off: at 3"),
            (Some("a".into()), "cut off: at 3".into())
        );
        assert_eq!(
            json("a: b.nam: a web page"),
            (Some("a: b.nam".into()), "a web page".into())
        );
        assert_eq!(
            json("x/y.wav: cannot be written"),
            (Some("x/y.wav".into()), "cannot be written".into())
        );
        assert_eq!(json("/: a folder"), (Some("/".into()), "a folder".into()));
        assert_eq!(json("--stems: no"), (None, "--stems: no".into()));
    }
}
