//! Commands on effects.

use super::InstanceViewModel;
use crate::command::EffectCommand;

impl InstanceViewModel {
    pub(super) fn handle_effect(&mut self, command: EffectCommand) {
        match command {
            EffectCommand::Change(effects) => {
                if self.recorder.effects.is_none() {
                    self.recorder.effects = Some(self.capture());
                }
                self.instance.set_effects(effects);
            }
            EffectCommand::Finish => {
                if let Some(before) = self.recorder.effects.take() {
                    self.record_since(before, Vec::new(), "Effects".into());
                }
            }
        }
    }
}
