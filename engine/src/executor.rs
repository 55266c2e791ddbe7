//! Executors step the methods of a model: native SIMD code, or libtorch behind a library that is
//! opened on first use.
//!
//! - [`ExecutorSelection`] says what a user wants and validates it against a model;
//! - [`ExecutorOptions::prepare`] builds a [`MethodExecutor`] from it, with fallbacks; `feedback`
//!   is for methods that receive their own output;
//! - [`take_warning`] returns what the user should know about a fallback.

mod feedback;
mod method_executor;
mod prepare;
mod selection;
mod warning;

pub use method_executor::{Execute, MethodExecutor};
pub use prepare::ExecutorOptions;
pub use selection::{
    Backend, Device, ExecutorSelection, ParseDeviceError, ParsePrecisionError, Precision,
    UnsupportedExecutor, value_or_default,
};
pub use warning::take_warning;
pub(crate) use warning::{mark_program_lost, push_warning, take_program_lost};
