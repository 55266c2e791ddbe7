//! A model that is told once more where all knobs stand, since they may be turned while it waits to be made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ondes_engine::pipeline::{Action, Playable, Start};
use ondes_engine::realtime::Maker;

/// A model that says when it is made. By then the session counts what it is told for the new model, too: what the audio thread
/// says from now on is not lost.
pub struct Retold {
    /// What is played.
    pub patch: Arc<dyn Maker>,
    /// Set when the audio thread is to tell everything again.
    pub due: Arc<AtomicBool>,
}

impl Maker for Retold {
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        self.due.store(true, Relaxed);
        self.patch.make(sample_rate, seats)
    }

    fn name(&self) -> Option<String> {
        self.patch.name()
    }

    fn hears(&self) -> bool {
        self.patch.hears()
    }

    fn start(&self) -> Start {
        self.patch.start()
    }

    fn hardest(&self) -> Vec<Action> {
        self.patch.hardest()
    }

    fn smaller(&self) -> Option<Arc<dyn Maker>> {
        let patch = self.patch.smaller()?;
        Some(Arc::new(Self { patch, due: self.due.clone() }))
    }

    fn variant(&self) -> Option<String> {
        self.patch.variant()
    }

    fn work(&self) -> f64 {
        self.patch.work()
    }

    fn measured_latency(&self, sample_rate: u32) -> Option<usize> {
        self.patch.measured_latency(sample_rate)
    }
}
