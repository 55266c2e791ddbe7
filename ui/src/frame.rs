//! The context that all panels receive while a frame is drawn.

use crate::command::WindowCommand;
use crate::knob_gesture::KnobGestures;
use crate::view::{ViewModel, WindowView};

/// The frame that is being drawn.
pub(crate) struct Frame<'a> {
    pub model: &'a dyn ViewModel,
    pub view: WindowView<'a>,
    /// Actions of the user in this frame, in order.
    pub commands: Vec<WindowCommand>,
    /// The gesture and the text entry on a knob.
    pub gestures: &'a mut KnobGestures,
}

impl Frame<'_> {
    pub fn push(&mut self, command: impl Into<WindowCommand>) {
        self.commands.push(command.into());
    }
}
