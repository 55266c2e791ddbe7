//! What to do first, for a new user.

use crate::view::Surroundings;

/// Hint for a new user.
pub(super) struct Hint {
    /// Key under which it is remembered that the user has dismissed it.
    pub key: &'static str,
    /// Texts in the plugin and in the app.
    host: &'static str,
    app: &'static str,
}

pub(super) const KEYBOARD_HINT: Hint = Hint {
    key: "keyboard",
    host: "Play the keyboard below, or send notes to the track. Choose sounds on the left.",
    app: "Play the keyboard below, or a MIDI keyboard. Choose sounds on the left.",
};
pub(super) const INPUT_HINT: Hint = Hint {
    key: "input",
    host: "Send sound through the track to hear it through the model. Choose models on the left.",
    app: "Choose an input above, or drop a recording here, to hear it through the model. Choose models on the left.",
};

impl Hint {
    pub fn text(&self, surroundings: Surroundings) -> &'static str {
        if surroundings == Surroundings::Host {
            self.host
        } else {
            self.app
        }
    }
}
