//! Account of what is skipped in a damaged MIDI file.

/// Most faults that a warning lists.
const MAX_LISTED: usize = 4;

/// Faults of a file that was read all the same.
#[derive(Debug, Default)]
pub(super) struct Damage {
    listed: Vec<String>,
    count: usize,
}

impl Damage {
    /// Adds a fault.
    pub(super) fn add(&mut self, fault: impl FnOnce() -> String) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(fault());
        }
    }

    /// Adds bytes that were skipped.
    pub(super) fn skip_bytes(&mut self, count: usize, place: &str) {
        self.add(|| format!("skipped {} {place}", plural(count, "byte")));
    }

    /// Returns all faults as one line; `None` if there are none.
    pub(super) fn into_warning(self) -> Option<String> {
        let more = self.count - self.listed.len();
        let more = (more > 0).then(|| format!("{more} more"));
        let faults: Vec<String> = self.listed.into_iter().chain(more).collect();
        (!faults.is_empty()).then(|| format!("the file is damaged: {}", faults.join("; ")))
    }
}

/// Returns a number with its noun.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
