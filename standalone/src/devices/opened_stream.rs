//! Running devices, independent of the sound system.

use super::callback_slot::CallbackOwner;
use super::status::Opened;

/// Running devices.
pub(super) trait DeviceStream: Send {
    /// Returns the reason if the devices have failed, in one line.
    fn failure(&mut self) -> Option<String>;
}

/// Running devices and the owner of their callback. The stream is dropped first, so that the
/// callback returns to its owner.
pub(super) struct OpenedStream {
    pub opened: Opened,
    pub stream: Box<dyn DeviceStream>,
    pub owner: CallbackOwner,
}
