//! What every panel is handed while a frame is drawn.

use super::command::Command;
use super::hand::Hand;
use super::view::{Owner, View};

/// The frame that is being drawn.
pub(crate) struct Desk<'a> {
    pub owner: &'a dyn Owner,
    pub view: View<'a>,
    /// What the user has done so far.
    pub commands: Vec<Command>,
    /// The knob that is being turned or typed at.
    pub hand: &'a mut Hand,
}

impl Desk<'_> {
    pub fn tell(&mut self, command: Command) {
        self.commands.push(command);
    }
}
