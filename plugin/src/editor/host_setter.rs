//! Changes of host parameters from the window.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use nice_plug::context::gui::GuiContext;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter::ParameterId;
use ondes_player::parameter_source::ParameterSetter;

use crate::parameters::HostParameters;

/// Time after which a host that has not taken a change is found idle.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Changes that the host has not taken yet.
#[derive(Default)]
pub struct PendingChanges {
    /// Knob positions queued for the host: when, and how many samples were played until then.
    queued: RefCell<HashMap<ParameterId, (f32, Instant, usize)>>,
    /// Knob positions that an unfinished gesture has set without the host.
    applied: RefCell<HashMap<ParameterId, f32>>,
    /// Number of samples played when the host was found idle.
    idle_at: Cell<Option<usize>>,
}

impl PendingChanges {
    /// Returns whether the host may still take a change.
    pub fn is_waiting(&self) -> bool {
        !self.queued.borrow().is_empty()
    }
}

/// Changes parameters through the host, which records and shows the change.
///
/// The framework applies a change in the host's next `process` or `flush`. Qtractor 0.9.31 calls
/// neither for the effects of a stopped transport: knobs would not move, and a save would miss
/// them. What the host has not taken after [`PATIENCE`] is therefore applied without it, as are
/// further changes until it plays again; it hears of those at the end of the gesture.
pub struct HostSetter<'a> {
    pub instance: &'a InstanceHandle,
    pub context: &'a GuiContext,
    pub parameters: &'a HostParameters,
    pub pending: &'a PendingChanges,
}

impl HostSetter<'_> {
    /// Applies what an idle host has left in its queue. For every frame.
    pub fn apply_ignored(&self) {
        self.apply_older_than(PATIENCE);
    }

    /// Applies all that is queued. For the last frame.
    pub fn apply_all(&self) {
        self.apply_older_than(Duration::ZERO);
    }

    fn apply_older_than(&self, age: Duration) {
        let played = self.instance.monitor.recorded_samples();
        self.pending
            .queued
            .borrow_mut()
            .retain(|&id, &mut (position, since, played_then)| {
                let Some(parameter) = self.parameters.get(id) else {
                    return false;
                };
                if played != played_then || parameter.has_position(position) {
                    return false;
                }
                if since.elapsed() < age {
                    return true;
                }
                parameter.apply_position(position);
                self.pending.idle_at.set(Some(played));
                self.instance.host_notifier.mark_values_applied();
                false
            });
    }
}

impl ParameterSetter for HostSetter<'_> {
    fn begin_gesture(&self, id: ParameterId) {
        if let Some(parameter) = self.parameters.get(id) {
            parameter.begin_gesture(&self.context.param_setter());
        }
    }

    fn set_normalized(&self, id: ParameterId, position: f32) {
        let Some(parameter) = self.parameters.get(id) else {
            return;
        };
        let played = self.instance.monitor.recorded_samples();
        if self.pending.idle_at.get() == Some(played) {
            parameter.apply_position(position);
            self.pending.applied.borrow_mut().insert(id, position);
        } else {
            self.pending.applied.borrow_mut().remove(&id);
            parameter.set_position(&self.context.param_setter(), position);
            let mut queued = self.pending.queued.borrow_mut();
            let (last, _, _) = queued
                .entry(id)
                .or_insert((position, Instant::now(), played));
            *last = position;
        }
        self.instance.host_notifier.mark_values_changed();
    }

    fn end_gesture(&self, id: ParameterId) {
        let Some(parameter) = self.parameters.get(id) else {
            return;
        };
        if let Some(position) = self.pending.applied.borrow_mut().remove(&id) {
            parameter.set_position(&self.context.param_setter(), position);
            self.instance.host_notifier.mark_values_applied();
        }
        parameter.end_gesture(&self.context.param_setter());
        self.instance.host_notifier.mark_values_changed();
    }
}
