//! Changes on their way to the audio thread, and replaced parts on their way back.

use super::strip::{Strip, StripRouting};

/// Change of a slot of the rack.
pub(crate) enum RackChange {
    /// Puts a strip into the slot.
    Install(usize, Box<Strip>),
    /// Removes the strip of the slot.
    Remove(usize),
    /// Changes the routing of the strip in the slot.
    Route(usize, Box<StripRouting>),
}

/// Replaced part, sent back to be dropped.
pub(crate) enum RetiredPart {
    Strip { _strip: Box<Strip> },
    StripRouting { _routing: Box<StripRouting> },
}
