//! Number of threads that libtorch uses.

/// Environment variable for the number of threads.
const VARIABLE: &str = "ONDES_TORCH_THREADS";

/// Limits libtorch to one thread, or to the number in the environment: on busy cores, more threads
/// wait for each other.
pub fn limit() {
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|count| count.parse().ok());
    tch::set_num_threads(count.filter(|count| (1..=256).contains(count)).unwrap_or(1));
}
