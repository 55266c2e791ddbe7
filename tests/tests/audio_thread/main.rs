//! The audio thread neither allocates nor makes system calls, except the one that wakes the worker.

mod allocation;
mod system_calls;
