//! Checks that controls and displays neither overlap nor are cut. The app's tests use it, too.

use egui::{Rect, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

/// Scales, and window sizes in pixels: the least one in points at every scale, a small, a common
/// and a large screen.
pub const SCALES: [f32; 4] = [0.75, 1.0, 1.5, 2.0];
pub fn sizes(scale: f32) -> [egui::Vec2; 4] {
    let least = egui::vec2(800.0, 500.0);
    [
        least * scale,
        least,
        egui::vec2(1280.0, 800.0),
        egui::vec2(3840.0, 2160.0),
    ]
}

/// Roles of controls and displays.
const ROLES: [Role; 9] = [
    Role::Button,
    Role::CheckBox,
    Role::ComboBox,
    Role::Group,
    Role::Image,
    Role::Meter,
    Role::Slider,
    Role::Status,
    Role::TextInput,
];

/// Rounding of positions, points.
const SLACK: f32 = 1.5;

struct Widget {
    label: String,
    rect: Rect,
    /// Part that is not clipped.
    visible: Rect,
    layer: egui::LayerId,
}

/// Returns controls and displays with what is visible of them.
fn widgets<S>(test: &Harness<'_, S>) -> Vec<Widget> {
    let drawn: Vec<_> = test.ctx.viewport(|viewport| {
        let layers = viewport.prev_pass.widgets.layers();
        layers
            .flat_map(|(_, widgets)| {
                widgets
                    .iter()
                    .map(|one| (one.rect, one.interact_rect, one.layer_id))
            })
            .collect()
    });
    let nodes = ROLES
        .into_iter()
        .flat_map(|role| test.query_all_by_role(role));
    let nodes = nodes.map(|node| {
        let (rect, role) = (node.rect(), node.accesskit_node().role());
        let label = format!(
            "{role:?} {:?}",
            node.accesskit_node().label().unwrap_or_default()
        );
        let same = |(one, ..): &&(Rect, Rect, _)| {
            one.min.distance(rect.min) < 0.1 && one.max.distance(rect.max) < 0.1
        };
        // The last one that was drawn there is on top.
        let (_, visible, layer) = *drawn
            .iter()
            .rev()
            .find(same)
            .unwrap_or_else(|| panic!("{label} is not drawn"));
        Widget {
            label,
            rect,
            visible,
            layer,
        }
    });
    nodes.collect()
}

/// Fails if two widgets overlap, or if one is outside the window or cut, and no scroll bar leads to
/// it.
pub fn check<S>(test: &Harness<'_, S>, place: &str) {
    let widgets = widgets(test);
    assert!(widgets.len() > 5, "{place}: the window is drawn");
    let all = test.ctx.content_rect().expand(0.1);
    let bars: Vec<Rect> = test
        .query_all_by_role(Role::ScrollBar)
        .map(|bar| bar.rect())
        .collect();
    for (index, widget) in widgets.iter().enumerate() {
        let Widget {
            label,
            rect,
            visible,
            layer,
        } = widget;
        let is_cut = |full: egui::Rangef, seen: egui::Rangef| {
            seen.min > full.min + SLACK || seen.max < full.max - SLACK
        };
        if is_cut(rect.y_range(), visible.y_range()) || !all.y_range().contains(rect.center().y) {
            let leads = |bar: &Rect| bar.height() > bar.width();
            assert!(
                bars.iter().any(leads),
                "{place}: {label} is cut at {rect:?}, {visible:?} of {all:?}, bars {bars:?}"
            );
        }
        if is_cut(rect.x_range(), visible.x_range()) || !all.x_range().contains(rect.center().x) {
            let leads = |bar: &Rect| bar.width() > bar.height();
            assert!(
                bars.iter().any(leads),
                "{place}: {label} is cut at {rect:?}, {visible:?} of {all:?}, bars {bars:?}"
            );
        }
        for other in widgets[..index]
            .iter()
            .filter(|other| other.layer == *layer)
        {
            let shared = visible.intersect(other.visible);
            let overlaps = shared.width() > SLACK && shared.height() > SLACK;
            assert!(
                !overlaps,
                "{place}: {label} at {rect:?} lies over {} at {:?}",
                other.label, other.rect
            );
        }
    }
}
