//! Content of an open window, and its changes of host parameters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baseview::WindowSize;
use nice_plug::context::gui::GuiContext;
use ondes_engine::sync::lock;
use ondes_processor::instance::InstanceHandle;
use ondes_processor::parameter::ParameterId;
use ondes_processor::parameter_source::ParameterSetter;
use ondes_ui::Window;
use ondes_ui::view_model::model_list::{ModelList, marks_file};
use ondes_ui::view_model::{self, InstanceViewModel};

use crate::parameters::HostParameters;

/// Last known size of the window, and whether it is open.
#[derive(Default)]
pub struct WindowExtent(Mutex<(Option<WindowSize>, bool)>);

impl WindowExtent {
    /// Returns the size, if the window was ever open, and true if it is open now.
    pub fn get(&self) -> (Option<WindowSize>, bool) {
        *lock(&self.0)
    }

    fn set(&self, size: Option<WindowSize>, open: bool) {
        *lock(&self.0) = (size, open);
    }
}

/// Time without a block after which the host does not process audio.
const IDLE: Duration = Duration::from_millis(500);

/// Notices from the window whether the host processes audio.
struct HostActivity {
    /// Samples that were recorded at the last frame.
    recorded: usize,
    /// Time at which a frame last saw others.
    changed: Instant,
}

impl HostActivity {
    fn new(recorded: usize) -> Self {
        Self { recorded, changed: Instant::now() }
    }

    /// Returns whether the host has processed nothing for a while; `recorded` is the number of samples so far.
    fn is_idle(&mut self, recorded: usize) -> bool {
        if std::mem::replace(&mut self.recorded, recorded) != recorded {
            self.changed = Instant::now();
        }
        self.changed.elapsed() >= IDLE
    }
}

/// View model and panels of an open window.
pub struct EditorApp {
    instance: Arc<InstanceHandle>,
    parameters: Arc<HostParameters>,
    view_model: InstanceViewModel,
    window: Window,
    context: GuiContext,
    extent: Arc<WindowExtent>,
    activity: HostActivity,
    applied: AppliedPositions,
}

impl EditorApp {
    /// Creates the content of a window that opens next.
    pub fn new(
        instance: Arc<InstanceHandle>,
        parameters: Arc<HostParameters>,
        context: GuiContext,
        extent: Arc<WindowExtent>,
    ) -> Self {
        let view_model = InstanceViewModel::new(
            instance.clone(),
            parameters.clone(),
            ModelList::new(instance.product, marks_file()),
        );
        let activity = HostActivity::new(instance.monitor.recorded_samples());
        let (window, applied) = (Window::new(), AppliedPositions::default());
        Self { instance, parameters, view_model, window, context, extent, activity, applied }
    }

    /// Called once when the window is open.
    pub fn open(&mut self, size: WindowSize) {
        self.instance.monitor.set_open(true);
        self.extent.set(Some(size), true);
    }

    /// Draws a frame.
    pub fn ui(&mut self, ui: &mut egui::Ui, size: WindowSize) {
        self.extent.set(Some(size), true);
        self.with_setter(|view_model, window, setter| view_model::show(view_model, window, ui, setter));
    }
}

impl EditorApp {
    fn with_setter(&mut self, run: impl FnOnce(&mut InstanceViewModel, &mut Window, &HostSetter<'_>)) {
        let Self { instance, parameters, view_model, window, context, activity, applied, .. } = self;
        let is_idle = activity.is_idle(instance.monitor.recorded_samples());
        run(view_model, window, &HostSetter { instance, context, parameters, is_idle, applied });
    }
}

impl Drop for EditorApp {
    fn drop(&mut self) {
        self.instance.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        self.with_setter(|view_model, window, setter| view_model::close(view_model, window, setter));
    }
}

/// Knob positions that unfinished gestures have set without the host.
type AppliedPositions = RefCell<HashMap<ParameterId, f32>>;

/// Changes parameters through the host, which records and shows the change.
///
/// The framework applies a change in the host's next `process` or `flush`. Qtractor 0.9.31 calls neither for the effects
/// of a stopped transport, so that knobs would not move, and a save would miss them. While the host is idle a value is
/// therefore applied at once; the host gets it at the end of the gesture.
struct HostSetter<'a> {
    instance: &'a InstanceHandle,
    context: &'a GuiContext,
    parameters: &'a HostParameters,
    is_idle: bool,
    applied: &'a AppliedPositions,
}

impl ParameterSetter for HostSetter<'_> {
    fn begin_gesture(&self, id: ParameterId) {
        if let Some(parameter) = self.parameters.get(id) {
            parameter.begin_gesture(&self.context.param_setter());
        }
    }

    fn set_normalized(&self, id: ParameterId, position: f32) {
        if let Some(parameter) = self.parameters.get(id) {
            if self.is_idle {
                parameter.apply_position(position);
                self.applied.borrow_mut().insert(id, position);
            } else {
                parameter.set_position(&self.context.param_setter(), position);
            }
            self.instance.host_notifier.mark_values_changed();
        }
    }

    fn end_gesture(&self, id: ParameterId) {
        if let Some(parameter) = self.parameters.get(id) {
            if let Some(position) = self.applied.borrow_mut().remove(&id) {
                parameter.set_position(&self.context.param_setter(), position);
                self.instance.host_notifier.mark_values_applied();
            }
            parameter.end_gesture(&self.context.param_setter());
            self.instance.host_notifier.mark_values_changed();
        }
    }
}
