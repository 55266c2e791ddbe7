//! What is copied and pasted.

use copypasta::{ClipboardContext, ClipboardProvider};

/// The system's clipboard. It is only looked for when it is needed: on X11 that takes a thread and a connection.
#[derive(Default)]
pub struct Clipboard(Option<ClipboardContext>);

impl Clipboard {
    /// The text that is there, if any.
    pub fn text(&mut self) -> Option<String> {
        self.system()?.get_contents().ok().filter(|text| !text.is_empty())
    }

    /// Puts a text there; what the system refuses is lost.
    pub fn put(&mut self, text: String) {
        if let Some(system) = self.system() {
            let _ = system.set_contents(text);
        }
    }

    fn system(&mut self) -> Option<&mut ClipboardContext> {
        if self.0.is_none() {
            self.0 = ClipboardContext::new().ok();
        }
        self.0.as_mut()
    }
}
