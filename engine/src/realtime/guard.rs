//! Runs a model's code, which may panic, without taking the audio thread or the worker down.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Reason why a model is silent for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The model's code panicked.
    #[error("the model's code panicked; it stays silent until a model is loaded again")]
    Panicked,
}

/// Longest part of a panic message that is reported, in characters.
const MAX_REASON_CHARS: usize = 200;

/// Runs a model's code and catches panics; for the audio thread.
pub(super) fn guard(work: impl FnOnce()) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        // Dropping it would free memory, perhaps on the audio thread. This happens once per model.
        std::mem::forget(payload);
        Failure::Panicked
    })
}

/// Runs a model's code and returns the reason of a panic, one line; not for the audio thread. A failing TorchScript
/// program unwinds with a [`String`], of which the first line is reported, shortened.
pub(super) fn guard_with_reason(work: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        let Some(text) = text.map(str::trim) else { return Failure::Panicked.to_string() };
        let short: String = text.chars().take(MAX_REASON_CHARS).collect();
        let ellipsis = if short.len() < text.len() { "…" } else { "" };
        format!("the model failed: {short}{ellipsis}; it stays silent until a model is loaded again")
    })
}

/// Returns the duration of `samples` samples.
pub(super) fn duration_of(samples: usize, sample_rate: u32) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(sample_rate.max(1)))
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_one_line() {
        let reason = |text: &str| {
            let text = text.to_owned();
            guard_with_reason(move || resume_unwind(Box::new(text))).unwrap_err()
        };
        assert!(reason("\n RuntimeError: shape\nTraceback").starts_with("the model failed: RuntimeError: shape; it "));
        let long = reason(&"é".repeat(1_000));
        assert!(long.contains(&format!("{}…;", "é".repeat(MAX_REASON_CHARS))) && long.lines().count() == 1, "{long}");
        assert_eq!(guard_with_reason(|| resume_unwind(Box::new(7))).unwrap_err(), Failure::Panicked.to_string());
        assert_eq!(reason(""), Failure::Panicked.to_string());
        assert_eq!(guard_with_reason(|| ()), Ok(()));
    }
}
