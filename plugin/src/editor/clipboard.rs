//! The system's clipboard.

use copypasta::{ClipboardContext, ClipboardProvider};

/// The system's clipboard, opened on first use: on X11 it needs a thread and a connection.
#[derive(Default)]
pub struct Clipboard(Option<ClipboardContext>);

impl Clipboard {
    /// Returns the text, if there is any.
    pub fn text(&mut self) -> Option<String> {
        self.system()?
            .get_contents()
            .ok()
            .filter(|text| !text.is_empty())
    }

    /// Replaces the content. A failure is ignored; the user sees that nothing was copied.
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
