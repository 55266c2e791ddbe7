//! How many threads libtorch may use.

/// The variable that says so.
const VARIABLE: &str = "ONDES_TORCH_THREADS";

/// One thread, or as many as the environment says: where other programs hold the cores, more of them wait for one another.
pub fn few() {
    let count = std::env::var(VARIABLE).ok().and_then(|count| count.parse().ok());
    tch::set_num_threads(count.filter(|count| (1..=256).contains(count)).unwrap_or(1));
}
