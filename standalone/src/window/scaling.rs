//! Size of the window when its scale changes.

use egui::{Context, Vec2, ViewportCommand};

/// Share of the monitor that the window may grow to: it has a title bar, and the desktop may have
/// panels.
const SHARE: f32 = 0.94;
/// Sizes this close are the same, points: window managers round.
const TOLERANCE: f32 = 2.0;

/// Resizes the window with its scale, so that as much stays visible, as far as the monitor has
/// room.
pub(super) struct WindowScaling {
    scale: f32,
    /// Size at 100 % of a window that the monitor has limited, and the size that it would have had.
    limited: Option<(Vec2, Vec2)>,
}

impl Default for WindowScaling {
    fn default() -> Self {
        Self {
            scale: 1.0,
            limited: None,
        }
    }
}

impl WindowScaling {
    /// Applies a scale, 1 is 100 %.
    pub fn apply(&mut self, context: &Context, scale: f32) {
        let zoom = context.zoom_factor();
        context.set_zoom_factor(scale);
        #[expect(clippy::float_cmp, reason = "scales are chosen, not computed")]
        if scale == self.scale {
            return;
        }
        let (size, monitor, is_fixed) = context.input(|input| {
            let viewport = input.viewport();
            let is_fixed = viewport.maximized == Some(true) || viewport.fullscreen == Some(true);
            (input.content_rect().size(), viewport.monitor_size, is_fixed)
        });
        // Some systems tell the monitor only after a few frames.
        let Some(monitor) = monitor else {
            return context.request_repaint();
        };
        if is_fixed {
            self.scale = scale;
            return;
        }
        let size = self.resize(size * zoom, scale, SHARE * monitor * zoom);
        context.send_viewport_cmd(ViewportCommand::InnerSize(size / zoom));
    }

    /// Returns the new size; all sizes are points at 100 %.
    fn resize(&mut self, size: Vec2, scale: f32, room: Vec2) -> Vec2 {
        let unlimited = match self.limited {
            Some((limited, unlimited)) if (limited - size).abs().max_elem() <= TOLERANCE => {
                unlimited
            }
            _ => size,
        };
        let wanted = unlimited * (scale / self.scale);
        self.scale = scale;
        // A window that spans several monitors does not shrink when its scale grows.
        let size = wanted.min(room.max(size.min(wanted)));
        self.limited = (size != wanted).then_some((size, wanted));
        size
    }
}

#[cfg(test)]
mod tests {
    use egui::vec2;

    use super::*;

    #[test]
    fn the_window_grows_with_its_scale_as_far_as_there_is_room() {
        let (mut window, room) = (WindowScaling::default(), vec2(1800.0, 1000.0));
        let mut size = vec2(1200.0, 600.0);
        for (scale, expected) in [
            (1.5, vec2(1800.0, 900.0)),
            (2.0, vec2(1800.0, 1000.0)),
            (1.5, vec2(1800.0, 900.0)),
            (1.0, vec2(1200.0, 600.0)),
            (0.75, vec2(900.0, 450.0)),
        ] {
            size = window.resize(size, scale, room);
            assert!((size - expected).abs().max_elem() < 0.01, "{scale}: {size}");
        }
        // The user's own size counts, and a larger one than the monitor stays.
        assert_eq!(
            window.resize(vec2(600.0, 300.0), 1.5, room),
            vec2(1200.0, 600.0)
        );
        let mut wide = WindowScaling::default();
        assert_eq!(
            wide.resize(vec2(3000.0, 600.0), 1.25, room),
            vec2(3000.0, 750.0)
        );
    }
}
