//! Content of an open window, and its changes of host parameters.

use std::sync::{Arc, Mutex};

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

/// View model and panels of an open window.
pub struct EditorApp {
    instance: Arc<InstanceHandle>,
    parameters: Arc<HostParameters>,
    view_model: InstanceViewModel,
    window: Window,
    context: GuiContext,
    extent: Arc<WindowExtent>,
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
        Self { instance, parameters, view_model, window: Window::new(), context, extent }
    }

    /// Called once when the window is open.
    pub fn open(&mut self, size: WindowSize) {
        self.instance.monitor.set_open(true);
        self.extent.set(Some(size), true);
    }

    /// Draws a frame.
    pub fn ui(&mut self, ui: &mut egui::Ui, size: WindowSize) {
        let Self { instance, parameters, view_model, window, context, extent } = self;
        extent.set(Some(size), true);
        view_model::show(view_model, window, ui, &HostSetter { instance, context, parameters });
    }
}

impl Drop for EditorApp {
    fn drop(&mut self) {
        self.instance.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        let Self { instance, parameters, view_model, window, context, .. } = self;
        view_model::close(view_model, window, &HostSetter { instance, context, parameters });
    }
}

/// Changes parameters through the host, which records and shows the change.
struct HostSetter<'a> {
    instance: &'a InstanceHandle,
    context: &'a GuiContext,
    parameters: &'a HostParameters,
}

impl ParameterSetter for HostSetter<'_> {
    fn begin_gesture(&self, id: ParameterId) {
        if let Some(parameter) = self.parameters.get(id) {
            parameter.begin_gesture(&self.context.param_setter());
        }
    }

    fn set_normalized(&self, id: ParameterId, position: f32) {
        if let Some(parameter) = self.parameters.get(id) {
            parameter.set_position(&self.context.param_setter(), position);
            self.instance.host_notifier.mark_values_changed();
        }
    }

    fn end_gesture(&self, id: ParameterId) {
        if let Some(parameter) = self.parameters.get(id) {
            parameter.end_gesture(&self.context.param_setter());
            self.instance.host_notifier.mark_values_changed();
        }
    }
}
