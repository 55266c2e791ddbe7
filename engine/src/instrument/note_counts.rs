//! Counts of held notes.

/// Number of held notes of each key. Notes without an id of the host are one a key.
///
/// # Examples
/// ```
/// use ondes_engine::instrument::NoteCounts;
///
/// let mut counts = NoteCounts::default();
/// counts.press(60, Some(1));
/// counts.press(60, Some(2));
/// assert!(!counts.lift(60, Some(1)));
/// assert!(counts.lift(60, Some(2)));
/// assert!(!counts.any());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NoteCounts([u8; 128]);

impl Default for NoteCounts {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl NoteCounts {
    /// Counts a note-on.
    pub fn press(&mut self, key: u8, id: Option<i32>) {
        let count = self.count(key);
        *count = if id.is_some() {
            count.saturating_add(1)
        } else {
            (*count).max(1)
        };
    }

    /// Counts a note-off; without an id it ends all notes of its key. Returns true if none is left.
    pub fn lift(&mut self, key: u8, id: Option<i32>) -> bool {
        let count = self.count(key);
        *count = if id.is_some() {
            count.saturating_sub(1)
        } else {
            0
        };
        *count == 0
    }

    /// Returns true if a note is held.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.iter().any(|count| *count > 0)
    }

    /// Returns the held keys, one bit each.
    #[must_use]
    pub fn keys(&self) -> u128 {
        self.0
            .iter()
            .rev()
            .fold(0, |keys, count| keys << 1 | u128::from(*count > 0))
    }

    fn count(&mut self, key: u8) -> &mut u8 {
        &mut self.0[usize::from(key & 127)]
    }
}
