//! The window at all scales and sizes: nothing overlaps, nothing is cut without a scroll bar.

use egui::{Role, Vec2, vec2};
use egui_kittest::kittest::Queryable;
use ondes_player::library::MissingFile;

use super::fake::{Fake, open, open_in};
use super::geometry::{SCALES, check, sizes};
use super::hands::{choose, click, press, settle};

/// Sizes, pixels, that are also as small as a host may leave the window, and as the app's panels.
fn all_sizes(scale: f32) -> impl Iterator<Item = Vec2> {
    sizes(scale).into_iter().chain([
        vec2(980.0, 634.0),
        vec2(528.0, 413.0) * scale,
        vec2(420.0, 300.0),
    ])
}

#[test]
fn nothing_overlaps_or_is_cut_at_any_size() {
    for scale in SCALES {
        for size in all_sizes(scale) {
            let missing = Some(MissingFile::new("Old Bell", vec!["/models".into()]));
            let mut busy = Fake {
                scale,
                missing,
                ..Fake::amplifying()
            };
            busy.health.as_mut().expect("figures").invalid_blocks = 3;
            for (name, scene, pages) in [
                (
                    "playing",
                    Fake {
                        scale,
                        ..Fake::playing()
                    },
                    &["Macros", "Voice", "Chain", "Pad"][..],
                ),
                (
                    "bending",
                    Fake {
                        scale,
                        hint: Some("Play".into()),
                        ..Fake::bending()
                    },
                    &["Latents", "Pad"],
                ),
                ("busy", busy, &["Chain"]),
                (
                    "tuning",
                    Fake {
                        scale,
                        ..Fake::tuning()
                    },
                    &[],
                ),
                (
                    "empty",
                    Fake {
                        scale,
                        ..Fake::empty()
                    },
                    &[],
                ),
            ] {
                let mut test = open_in(scene, size);
                let place = |what: &str| format!("{name}, {what}, {size} at {scale}");
                check(&test, &place("opened"));
                for page in pages {
                    choose(&mut test, Role::Button, page);
                    check(&test, &place(page));
                }
                click(&mut test, "Browser");
                check(&test, &place("browser"));
            }
        }
    }
}

#[test]
fn menus_fit_into_the_window_or_scroll() {
    for (scale, size) in [
        (1.0, vec2(800.0, 500.0)),
        (2.0, vec2(980.0, 634.0)),
        (2.0, vec2(800.0, 500.0)),
    ] {
        let menus = |scene: Fake, page: &str, menus: &[(Role, &str)]| {
            let mut test = open_in(scene, size);
            choose(&mut test, Role::Button, page);
            for (role, menu) in menus {
                // By the keyboard, which also reaches what is not visible.
                test.get_by_role_and_label(*role, menu).focus();
                settle(&mut test);
                press(&mut test, egui::Key::Enter);
                let place = format!("{menu}, {size} at {scale}");
                let all = test.ctx.content_rect();
                let popup = test.ctx.memory(|memory| {
                    memory
                        .areas()
                        .visible_layer_ids()
                        .into_iter()
                        .collect::<Vec<_>>()
                });
                let popups = popup
                    .into_iter()
                    .filter(|layer| layer.order > egui::Order::Middle);
                let rects: Vec<_> = popups
                    .filter_map(|layer| test.ctx.memory(|memory| memory.area_rect(layer.id)))
                    .collect();
                assert!(!rects.is_empty(), "{place}: it is open");
                assert!(
                    rects
                        .iter()
                        .all(|rect| all.expand(1.0).contains_rect(*rect)),
                    "{place}: {rects:?} in {all:?}"
                );
                test.key_press(egui::Key::Escape);
                settle(&mut test);
            }
        };
        let box_of = Role::ComboBox;
        let playing = Fake {
            scale,
            ..Fake::playing()
        };
        menus(
            playing,
            "Voice",
            &[
                (Role::Button, "Window"),
                (box_of, "Preset"),
                (box_of, "Processing"),
                (box_of, "Voices"),
            ],
        );
        let amplifying = Fake {
            scale,
            ..Fake::amplifying()
        };
        menus(
            amplifying,
            "Chain",
            &[
                (box_of, "Impulse response"),
                (Role::Button, "About Tube amp"),
                (Role::Button, "About Ondes FX"),
            ],
        );
    }
}

#[test]
fn a_narrow_window_shows_the_browser_in_place_of_the_pages() {
    let mut test = open_in(Fake::playing(), vec2(620.0, 480.0));
    assert!(
        test.query_by_label("Search models").is_none()
            && test.query_by_label("Brightness").is_some()
    );
    click(&mut test, "Browser");
    assert!(
        test.query_by_label("Search models").is_some()
            && test.query_by_label("Brightness").is_none()
    );
    // A wide window has room for both, and remembers its own choice.
    test.set_size(vec2(980.0, 600.0));
    settle(&mut test);
    assert!(
        test.query_by_label("Search models").is_some()
            && test.query_by_label("Brightness").is_some()
    );
    let test = open(Fake::playing());
    assert!(test.query_by_label("Search models").is_some());
}
