//! Atomics: those of the standard library, or loom's where a test lets it walk through every interleaving.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
