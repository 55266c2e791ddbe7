//! Requests for other models, by MIDI program changes and the set list.

use std::sync::Arc;

use ondes_player::instance::InstanceHandle;
use ondes_player::library::FileReference;

/// Request for another model of a track.
#[must_use = "the track waits for the model"]
pub struct ModelRequest {
    slot: usize,
    instance: Arc<InstanceHandle>,
    /// Number of the instance's request.
    number: u64,
    reference: FileReference,
}

impl ModelRequest {
    /// Creates a request; the track shows that it is loading.
    pub(super) fn new(
        slot: usize,
        instance: Arc<InstanceHandle>,
        reference: FileReference,
    ) -> Self {
        let number = instance.begin_request();
        Self {
            slot,
            instance,
            number,
            reference,
        }
    }

    /// Returns the slot of the track.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Loads the model, which may take long, unless the track has been given another one in the
    /// meantime. The track reports an error.
    pub fn load(self) {
        let Self {
            instance,
            number,
            reference,
            ..
        } = self;
        instance.load_requested(number, false, || reference.find().map_err(Into::into));
    }
}
