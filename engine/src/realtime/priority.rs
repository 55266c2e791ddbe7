//! Real-time priority for the worker thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

use thread_priority::Error;

/// No thread has asked yet.
const UNKNOWN: u8 = 0;
/// All threads that asked got it.
const GRANTED: u8 = 1;
/// A thread that asked did not get it.
const REFUSED: u8 = 2;

static OUTCOME: AtomicU8 = AtomicU8::new(UNKNOWN);

thread_local! {
    static IS_REAL_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Requests real-time priority for the calling thread, called `name` in the log. Returns true if it
/// was granted; the first refusal in a process logs a remedy. May allocate. Threads that this one
/// starts later inherit the priority.
pub(super) fn raise(name: &str) -> bool {
    let outcome = ask();
    let state = if outcome.is_ok() { GRANTED } else { REFUSED };
    let before = OUTCOME.fetch_max(state, Ordering::Relaxed);
    if let Err(error) = &outcome
        && before != REFUSED
    {
        tracing::warn!(thread = name, %error, "no real-time priority: expect dropouts under load. {REMEDY}");
    }
    IS_REAL_TIME.set(outcome.is_ok());
    outcome.is_ok()
}

/// Returns true if the calling thread has asked for real-time priority and got it.
#[must_use]
pub fn is_real_time() -> bool {
    IS_REAL_TIME.get()
}

/// Gives the calling thread real-time priority where that is allowed, or ordinary priority, as
/// another process has it for which this thread works.
#[cfg(target_os = "linux")]
pub fn follow(is_real_time: bool) {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    let ordinary = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    let outcome = match is_real_time {
        true => ask(),
        false => set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, ordinary),
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "the priority of a program's thread stays");
    }
}

/// Returns true if all threads that asked for real-time priority got it; `None` before the first
/// request.
#[must_use]
pub fn granted() -> Option<bool> {
    match OUTCOME.load(Ordering::Relaxed) {
        UNKNOWN => None,
        state => Some(state == GRANTED),
    }
}

#[cfg(target_os = "linux")]
const REMEDY: &str = "Join a group that may have it (`sudo usermod -aG audio $USER` on many distributions), or put the line \
    `@audio - rtprio 95` into /etc/security/limits.d/audio.conf first; then log in again";
#[cfg(not(target_os = "linux"))]
const REMEDY: &str = "Close other programs, or use a longer block";

/// Sets first-in-first-out scheduling. The priority is below that of sound servers (JACK 70 and
/// more, PipeWire 88), whose deadlines are nearer. A system limit may allow less; even the lowest
/// is above every ordinary thread.
#[cfg(unix)]
fn ask() -> Result<(), Error> {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let with = |priority| set_thread_priority_and_policy(thread_native_id(), priority, fifo);
    [60, 20]
        .into_iter()
        .filter_map(|value| ThreadPriorityValue::try_from(value).ok())
        .map(ThreadPriority::Crossplatform)
        .find_map(|priority| with(priority).ok())
        .map_or_else(|| with(ThreadPriority::Min), Ok)
}

#[cfg(not(unix))]
fn ask() -> Result<(), Error> {
    thread_priority::ThreadPriority::Max.set_for_current()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_matches_the_thread_s_policy() {
        let raised = std::thread::spawn(|| {
            let raised = raise("test");
            #[cfg(unix)]
            {
                use thread_priority::{
                    RealtimeThreadSchedulePolicy::Fifo, ThreadSchedulePolicy,
                    thread_schedule_policy,
                };
                let real_time =
                    thread_schedule_policy() == Ok(ThreadSchedulePolicy::Realtime(Fifo));
                assert_eq!(raised, real_time);
            }
            assert_eq!(is_real_time(), raised);
            raised
        });
        // Other tests may ask too, but a refusal is final.
        let raised = raised.join().unwrap();
        assert!(granted().is_some_and(|all| raised || !all));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_follows_another_one_up_and_down() {
        use thread_priority::{
            NormalThreadSchedulePolicy::Other, RealtimeThreadSchedulePolicy::Fifo,
            ThreadSchedulePolicy, thread_schedule_policy,
        };
        let policies = std::thread::spawn(|| {
            let raised = raise("test");
            let policies = [false, true, false].map(|is_real_time| {
                follow(is_real_time);
                thread_schedule_policy().unwrap()
            });
            (raised, policies)
        });
        let (raised, policies) = policies.join().unwrap();
        let ordinary = ThreadSchedulePolicy::Normal(Other);
        let high = if raised {
            ThreadSchedulePolicy::Realtime(Fifo)
        } else {
            ordinary
        };
        assert_eq!(policies, [ordinary, high, ordinary]);
    }
}
