//! Drivers: the thread and the time in which a model runs.

/// Thread and time in which a model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Audio callback if the slowest block takes less than a quarter of the block's time, else the
    /// worker.
    #[default]
    Auto,
    /// Audio callback; models that may allocate or wait use the worker nevertheless.
    Inline,
    /// Worker thread.
    Worker {
        /// Latency for the worker in host samples, at least one block; `None` for the shortest safe
        /// one.
        latency: Option<usize>,
    },
    /// Caller's thread, however long it takes; for rendering faster or slower than real time.
    Offline,
}

/// Share of a block's time that a model may take in the audio callback.
pub(super) const INLINE_SHARE: f64 = 0.25;
/// Choice of a [`Driver`] for one model and setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolvedDriver {
    Inline,
    Offline,
    /// Worker with a latency in host samples.
    Worker(usize),
}

impl ResolvedDriver {
    /// Returns the driver that leads to the same choice again.
    pub fn to_driver(self) -> Driver {
        match self {
            Self::Inline => Driver::Inline,
            Self::Offline => Driver::Offline,
            Self::Worker(latency) => Driver::Worker {
                latency: Some(latency),
            },
        }
    }
}
