//! Shapes of values.

/// Channels and ratio of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels.
    pub channels: usize,
    /// Samples per frame.
    pub ratio: usize,
}

impl Shape {
    /// Returns another number of channels at the same ratio.
    #[must_use]
    pub(crate) fn with_channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// Returns the channels of the first input of an op; 0 if there is none.
    pub(crate) fn channels_of_first(inputs: &[Self]) -> usize {
        inputs.first().map_or(0, |input| input.channels)
    }
}
