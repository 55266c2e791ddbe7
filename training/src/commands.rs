//! Commands of `ondes-train`, and the options that several of them share.

pub mod audition;
pub mod bench;
pub mod capture;
pub mod circuit;
pub mod codec;
pub mod compare;
pub mod corpus;
pub mod data;
pub mod distill;
pub mod evaluate;
pub mod export;
pub mod fit;
pub mod folds;
pub mod generator;
pub mod level;
pub mod output_options;
pub mod prepare;
pub mod prune;
pub mod quantize;
pub mod recipe_arguments;
pub mod report;
pub mod sound_options;
pub mod sweep;
pub mod trainer_arguments;
pub mod trials;
pub mod write_model;
