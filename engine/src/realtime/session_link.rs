//! State that the audio thread, the loader and the controller of a session share, without locks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use crossbeam_utils::atomic::AtomicCell;

use super::model_instance::ModelInstance;
use super::session_input::SessionHistory;
use super::setup::{MAX_BLOCK, Setup};
use super::snapshot::SessionSnapshot;

/// Capacity of the queue of instances that the audio thread returns.
pub(super) const RETIRED: usize = 8;

/// Shared state of a session.
pub(super) struct SessionLink {
    pub setup: Setup,
    /// Another instance is being built, and the audio thread has not noticed yet.
    pub is_building: AtomicBool,
    /// An instance that is ready to take over.
    pub arrival: AtomicCell<Option<Box<ModelInstance>>>,
    /// Request slot, with an empty snapshot, and reply slot, with a filled one.
    pub snapshot_request: AtomicCell<Option<Box<SessionSnapshot>>>,
    pub snapshot_reply: AtomicCell<Option<Box<SessionSnapshot>>>,
    pub history: SessionHistory,
    /// Number of the next sample.
    pub now: AtomicU64,
    /// Number of the instance that is heard; 0 without one.
    pub active_instance: AtomicU32,
    pub latency: AtomicUsize,
    /// Waits for a late worker, as in an offline bounce.
    pub non_realtime: AtomicBool,
    /// Number of commands so far.
    pub commands: AtomicU64,
    pub commands_lost: AtomicU64,
    /// Recent share of the callbacks' time that all processing on their thread takes, as the bits
    /// of an `f32`.
    pub callback_load: AtomicU32,
    /// Number of the last instance whose model's code panicked; 0 without one.
    pub failed_instance: AtomicU32,
}

impl SessionLink {
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            is_building: AtomicBool::new(false),
            arrival: AtomicCell::new(None),
            snapshot_request: AtomicCell::new(None),
            snapshot_reply: AtomicCell::new(None),
            history: SessionHistory::new(setup.history_samples() + MAX_BLOCK),
            now: AtomicU64::new(0),
            active_instance: AtomicU32::new(0),
            latency: AtomicUsize::new(0),
            non_realtime: AtomicBool::new(false),
            commands: AtomicU64::new(0),
            commands_lost: AtomicU64::new(0),
            callback_load: AtomicU32::new(0),
            failed_instance: AtomicU32::new(0),
        }
    }
}
