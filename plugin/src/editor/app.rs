//! Content of an open window.

use std::sync::{Arc, Mutex};

use baseview::WindowSize;
use ondes_engine::sync::lock;
use ondes_player::instance::InstanceHandle;
use ondes_ui::Window;
use ondes_ui::view_model::model_list::{ModelList, marks_file};
use ondes_ui::view_model::{self, InstanceViewModel};

use crate::parameters::{HostParameters, PATIENCE};

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
    extent: Arc<WindowExtent>,
}

impl EditorApp {
    /// Creates the content of a window that opens next.
    pub fn new(
        instance: Arc<InstanceHandle>,
        parameters: Arc<HostParameters>,
        extent: Arc<WindowExtent>,
    ) -> Self {
        let view_model = InstanceViewModel::new(
            instance.clone(),
            parameters.clone(),
            ModelList::new(instance.product, marks_file()),
        );
        Self {
            instance,
            parameters,
            view_model,
            window: Window::new(),
            extent,
        }
    }

    /// Called once when the window is open.
    pub fn open(&mut self, size: WindowSize) {
        self.instance.monitor.set_open(true);
        self.extent.set(Some(size), true);
    }

    /// Draws a frame.
    pub fn ui(&mut self, ui: &mut egui::Ui, size: WindowSize) {
        let Self {
            parameters,
            view_model,
            window,
            extent,
            ..
        } = self;
        extent.set(Some(size), true);
        view_model::show(view_model, window, ui, &**parameters);
        if parameters.remind_host() {
            ui.ctx().request_repaint_after(PATIENCE);
        }
    }
}

impl Drop for EditorApp {
    fn drop(&mut self) {
        self.instance.monitor.set_open(false);
        self.extent.set(self.extent.get().0, false);
        view_model::close(&mut self.view_model, &mut self.window, &*self.parameters);
        self.parameters.give_up_waiting();
    }
}
