//! Offline rendering: streaming equals one pass, latency is exact, files of every format play what
//! they describe, and damaged ones are refused.

mod attacks;
mod bars;
mod captures;
mod colour;
mod conformance;
mod effects;
mod feedback;
mod fuzz;
mod generators;
mod hostile_models;
mod latency;
mod latents;
mod levels;
mod playing;
mod streaming;
mod width;
