//! Real-time sessions: drivers, faults, quality and model changes.

use std::sync::{Mutex, MutexGuard};

use ondes_engine::sync::lock;
use ondes_tests::fake_model::silence_injected_panics;

mod drivers;
mod faults;
mod quality;
mod stereo;
mod swaps;

/// Serialises the tests of this program: the worker, its load and the memory are the process's, and
/// some tests stall it.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    silence_injected_panics();
    lock(&EXCLUSIVE)
}
