//! Effects before and after the model.

use super::InstanceHandle;
use crate::effect_list::EffectState;

impl InstanceHandle {
    /// Returns the effects, in their order.
    #[must_use]
    pub fn effects(&self) -> Vec<EffectState> {
        self.read_state(|state| state.effects.clone())
    }

    /// Sets the effects, in their order. Those that play already play on.
    pub fn set_effects(&self, effects: Vec<EffectState>) {
        let mut inner = self.inner();
        self.effect_handover.send(&effects);
        if let Some(before) = &mut inner.before_audition {
            before.state.effects.clone_from(&effects);
        }
        inner.state.effects = effects;
        self.host_notifier.mark_state_changed();
        self.sleep_state.wake_host();
    }
}
