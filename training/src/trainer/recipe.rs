//! Interface of the recipes for trainings on recordings.

use std::path::Path;

use super::alerts::AlertsConfig;
use super::options::TrainerOptions;
use super::training_config::TrainingConfig;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;

/// Tables that all recipes have, and flags change.
pub struct RecipeTables<'a> {
    /// Length and pace of training.
    pub training: &'a mut TrainingConfig,
    /// Optimiser.
    pub optimizer: &'a mut OptimizerConfig,
    /// Schedule of the learning rate.
    pub schedule: &'a mut ScheduleConfig,
    /// Thresholds of warnings.
    pub alerts: &'a mut AlertsConfig,
}

/// Recipe of a training on recordings.
pub trait Recipe {
    /// Returns the tables that all recipes have.
    fn tables(&mut self) -> RecipeTables<'_>;

    /// Returns the model file to write.
    fn out(&self) -> &Path;

    /// Returns the settings of the trainer.
    fn trainer_options(&self) -> TrainerOptions;
}
