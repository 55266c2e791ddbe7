//! The parameters of a plugin: those of the table of `ondes-player`, with the host's modulation, and
//! the changes that the host has to be told of.
//!
//! The framework knows none of them. Hosts identify a parameter by a hash of its row's id.

use std::array;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use nice_plug::prelude::*;
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter::{
    BYPASS, DRIVER, GLIDE, INPUT_GAIN, MIX, MODE, OUTPUT_GAIN, PANIC, PARAMETER_COUNT, Parameter,
    ParameterId, SOURCE, TRANSPOSE, TUNE, VOICES, all,
};
use ondes_player::parameter_source::{ParameterSetter, ParameterSource};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::parameter_values::ParameterValues;
use ondes_player::player_parameters::PlayerParameters;

use crate::editor::redraw::RedrawFlag;

/// Parameters that hosts list first. All others follow in the table's order, so that a new row is
/// appended.
const FIRST_IN_HOST: [ParameterId; 12] = [
    BYPASS,
    INPUT_GAIN,
    OUTPUT_GAIN,
    MIX,
    TRANSPOSE,
    TUNE,
    MODE,
    GLIDE,
    VOICES,
    PANIC,
    DRIVER,
    SOURCE,
];

/// Returns all parameters in the order in which hosts list them.
pub(crate) fn ids_in_host_order() -> impl Iterator<Item = ParameterId> {
    let rest = all().map(|(id, _)| id);
    FIRST_IN_HOST
        .into_iter()
        .chain(rest.filter(|id| !FIRST_IN_HOST.contains(id)))
}

/// Changes by the window that wait for the host. If there are more, the host reads all values.
const MAX_CHANGES: usize = 1024;

/// Time after which a host that has not taken them reads all values. Qtractor 0.9.31 calls neither
/// `process` nor `flush` for the effects of a stopped transport.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// A change by the window, for the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WindowChange {
    /// A gesture begins.
    Begin(ParameterId),
    /// The parameter has another value.
    Set(ParameterId),
    /// The gesture ends.
    End(ParameterId),
}

/// The parameters of one instance.
pub struct HostParameters {
    instance: Arc<InstanceHandle>,
    values: ParameterStore,
    /// `[id]`: modulation by the host in the parameter's unit, as bits of `f32`.
    modulation: [AtomicU32; PARAMETER_COUNT],
    /// Changes that the host has not taken yet.
    changes: ArrayQueue<WindowChange>,
    /// The change before them that the host has refused, if any: its list was full.
    refused: ArrayQueue<WindowChange>,
    /// Repaints the window.
    redraw: RedrawFlag,
}

impl HostParameters {
    /// Creates all parameters at their defaults.
    #[must_use]
    pub fn new(instance: &Arc<InstanceHandle>, redraw: RedrawFlag) -> Self {
        Self {
            instance: instance.clone(),
            values: ParameterStore::new(instance.product),
            modulation: array::from_fn(|_| AtomicU32::new(0)),
            changes: ArrayQueue::new(MAX_CHANGES),
            refused: ArrayQueue::new(1),
            redraw,
        }
    }

    /// Restores saved values; see [`ParameterStore::restore`].
    pub(crate) fn restore(&self, values: &ParameterValues) {
        self.values.restore(values);
        self.redraw.request();
    }

    /// Sets the nearest valid value, as the host wants it. For any thread.
    pub(crate) fn set(&self, id: ParameterId, value: f32) {
        self.values.set_value(id, value);
        self.redraw.request();
    }

    /// Adds an offset in the parameter's unit to its value until the next one. For any thread.
    pub(crate) fn modulate(&self, id: ParameterId, offset: f32) {
        if let Some(modulation) = self.modulation.get(id.0 as usize) {
            modulation.store(offset.to_bits(), Relaxed);
            self.redraw.request();
        }
    }

    fn modulated(&self, id: ParameterId) -> f32 {
        let value = self.value(id).unwrap_or_default();
        let offset = self.modulation.get(id.0 as usize);
        match offset.map_or(0, |offset| offset.load(Relaxed)) {
            0 => value,
            offset => Parameter::get(id).map_or(value, |parameter| {
                parameter.clamp(value + f32::from_bits(offset))
            }),
        }
    }

    /// Returns whether the window has changed values since the last time, and whether there were
    /// more changes than fit.
    pub(crate) fn take_notices(&self) -> (bool, bool) {
        let notifier = &self.instance.host_notifier;
        (notifier.take_values_changed(), notifier.take_rescan_due())
    }

    /// Passes the changes by the window on, oldest first, until one is refused, which is then the
    /// first of the next time. Wait-free.
    pub(crate) fn pass_changes(&self, mut pass: impl FnMut(WindowChange) -> bool) {
        while let Some(change) = self.refused.pop().or_else(|| self.changes.pop()) {
            if !pass(change) {
                // It is empty: the host asks for changes on one thread at a time.
                let _ = self.refused.push(change);
                return;
            }
        }
    }

    /// Returns whether the host has not taken all changes by the window.
    pub(crate) fn has_changes(&self) -> bool {
        !(self.refused.is_empty() && self.changes.is_empty())
    }

    /// Asks the host again to take the changes by the window; returns whether there are any.
    pub(crate) fn remind_host(&self) -> bool {
        let is_waiting = self.has_changes();
        if is_waiting {
            self.instance.host_notifier.mark_values_changed();
        }
        is_waiting
    }

    /// Lets the host read all values if it has not taken the changes by the window.
    pub(crate) fn give_up_waiting(&self) {
        if self.has_changes() {
            self.instance.host_notifier.mark_rescan_due();
        }
    }

    fn tell_host(&self, change: WindowChange) {
        if self.changes.push(change).is_err() {
            self.instance.host_notifier.mark_rescan_due();
        }
        self.instance.host_notifier.mark_values_changed();
    }
}

impl ParameterSource for HostParameters {
    fn player_parameters(&self) -> PlayerParameters {
        PlayerParameters::read(|id| self.modulated(id))
    }

    fn value(&self, id: ParameterId) -> Option<f32> {
        self.values.value(id)
    }
}

/// Sets what the window changes, at once, and notes it for the host.
impl ParameterSetter for HostParameters {
    fn begin_gesture(&self, id: ParameterId) {
        self.tell_host(WindowChange::Begin(id));
    }

    fn set_normalized(&self, id: ParameterId, position: f32) {
        self.values.set_normalized(id, position);
        self.tell_host(WindowChange::Set(id));
    }

    fn end_gesture(&self, id: ParameterId) {
        self.tell_host(WindowChange::End(id));
    }
}

// SAFETY: there are no pointers.
unsafe impl Params for HostParameters {
    fn param_map(&self) -> Vec<(String, ParamPtr, String)> {
        Vec::new()
    }

    fn serialize_fields(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn deserialize_fields(&self, _: &BTreeMap<String, String>) {}
}

#[cfg(test)]
mod tests {
    use ondes_engine::pipeline::ControlSource;
    use ondes_player::product::Product;

    use super::*;

    fn parameters(product: Product) -> HostParameters {
        HostParameters::new(&InstanceHandle::new(product, || ()), RedrawFlag::default())
    }

    /// Hosts without ids of their own number the parameters in this order.
    #[test]
    fn the_order_in_hosts_is_stable() {
        let ids = ids_in_host_order().filter_map(|id| Some(Parameter::get(id)?.id));
        let first: Vec<&str> = ids.take(FIRST_IN_HOST.len() + 1).collect();
        let expected = "bypass input_gain output_gain mix transpose tune mode glide voices panic driver source macro1";
        assert_eq!(first.join(" "), expected);
    }

    #[test]
    fn the_input_controls_an_effect() {
        let source = parameters(Product::Effect).control_source();
        assert_eq!(source, ControlSource::AudioInput);
    }

    #[test]
    fn modulation_is_an_offset_within_the_range() {
        let parameters = parameters(Product::Instrument);
        let read = || {
            let read = parameters.player_parameters();
            (read.mix, read.notes.semitones, read.notes.glide_ms)
        };
        parameters.set(MIX, 0.5);
        parameters.set(GLIDE, 100.0);
        parameters.modulate(MIX, 0.25);
        parameters.modulate(TRANSPOSE, -3.0);
        parameters.modulate(GLIDE, 50.0);
        assert_eq!(read(), (0.75, -3.0, 150.0));
        assert_eq!(parameters.value(MIX), Some(0.5), "the value stays");
        parameters.set(MIX, 0.9);
        parameters.modulate(TRANSPOSE, 0.0);
        assert_eq!(read(), (1.0, 0.0, 150.0));
    }

    #[test]
    fn changes_by_the_window_hold_at_once() {
        let parameters = parameters(Product::Effect);
        parameters.begin_gesture(MIX);
        parameters.set_normalized(MIX, 0.25);
        parameters.end_gesture(MIX);
        assert_eq!(parameters.value(MIX), Some(0.25));
        let expected = [
            WindowChange::Begin(MIX),
            WindowChange::Set(MIX),
            WindowChange::End(MIX),
        ];
        let mut passed = Vec::new();
        // The list of a host has room for one more each time.
        while parameters.has_changes() {
            let mut room = 1;
            parameters.pass_changes(|change| {
                let has_room = room > 0;
                passed.extend(has_room.then_some(change));
                room -= 1;
                has_room
            });
        }
        assert_eq!(passed, expected);
        (0..=MAX_CHANGES).for_each(|_| parameters.begin_gesture(MIX));
        assert!(parameters.instance.host_notifier.take_rescan_due());
    }
}
