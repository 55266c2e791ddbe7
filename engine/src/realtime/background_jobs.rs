//! One background thread for the whole process that loads models and frees those that are no longer
//! played.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_channel::{Sender, unbounded};

use crate::panics::contain;

/// Interval at which unfinished jobs run again.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Wait for a new job while none is unfinished.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// A job; returns true to run again soon.
pub(super) type Job = Box<dyn FnMut() -> bool + Send>;

/// Runs a job on the background thread.
pub(super) fn run_in_background(job: Job) {
    static QUEUE: OnceLock<Sender<Job>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, jobs) = unbounded::<Job>();
        let run_jobs = move || {
            let mut unfinished: Vec<Job> = Vec::new();
            loop {
                match jobs.recv_timeout(if unfinished.is_empty() {
                    IDLE_WAIT
                } else {
                    RETRY_INTERVAL
                }) {
                    Ok(job) => unfinished.push(job),
                    Err(error) if error.is_disconnected() => return,
                    Err(_) => {}
                }
                unfinished.retain_mut(|job| {
                    // A job that panics is dropped; requests of a session have reported why.
                    contain(job).unwrap_or(false)
                });
            }
        };
        std::thread::Builder::new()
            .name("ondes-loader".into())
            .spawn(run_jobs)
            .expect("the system can start a thread");
        sender
    });
    // Fails only when the process ends.
    let _ = queue.send(job);
}
