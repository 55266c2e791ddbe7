//! Locks that outlive a panic.
//!
//! A mutex is poisoned when a thread panics while holding it. All mutexes of this workspace guard
//! values that are consistent between any two statements, so the value is used all the same.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not.
///
/// # Examples
/// ```
/// use std::sync::Mutex;
/// use ondes_engine::sync::lock;
///
/// let names = Mutex::new(vec!["lead"]);
/// lock(&names).push("bass");
/// assert_eq!(lock(&names).len(), 2);
/// ```
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    recover(mutex.lock())
}

/// Returns the guard of a lock or of a wait on a condition variable, poisoned or not.
pub fn recover<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
