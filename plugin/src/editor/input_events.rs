//! Translates baseview's window events to egui's input.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baseview::dpi::PhysicalPosition;
use baseview::{DropData, Event, MouseButton, MouseEvent, ScrollDelta, WindowEvent};
use egui::{HoveredFile, Modifiers, MouseWheelUnit, PointerButton, Pos2, RawInput, pos2, vec2};
use keyboard_types::{Key, KeyState, KeyboardEvent};
use ondes_engine::files;

/// Input collected since the last frame, and the state that persists between frames.
pub struct InputEvents {
    raw: RawInput,
    pointer: Option<Pos2>,
    modifiers: Modifiers,
    /// Pixels per egui point.
    pixels_per_point: f32,
}

/// Effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// The event was ignored.
    Ignored,
    /// The event is part of the next frame's input.
    Queued,
    /// As `Queued`, for a drag of files.
    FileDrag,
    /// The user requested the clipboard's content; see [`InputEvents::paste`].
    Paste,
}

impl InputEvents {
    /// Creates an empty input.
    pub fn new(pixels_per_point: f32) -> Self {
        Self {
            raw: RawInput::default(),
            pointer: None,
            modifiers: Modifiers::NONE,
            pixels_per_point,
        }
    }

    /// Returns the input since the last call, and sets the scale of the next events.
    pub fn take(&mut self, pixels_per_point: f32) -> RawInput {
        self.pixels_per_point = pixels_per_point;
        self.raw.take()
    }

    /// Adds a pasted text.
    pub fn paste(&mut self, text: &str) {
        self.push(egui::Event::Paste(text.replace("\r\n", "\n")));
    }

    /// Adds an event.
    pub fn handle(&mut self, event: &Event) -> EventOutcome {
        match event {
            Event::Mouse(event) => self.mouse(event),
            Event::Keyboard(event) => self.key(event),
            Event::Window(WindowEvent::Focused) => self.focus(true),
            Event::Window(WindowEvent::Unfocused) => self.focus(false),
            _ => EventOutcome::Ignored,
        }
    }

    fn push(&mut self, event: egui::Event) -> EventOutcome {
        self.raw.events.push(event);
        EventOutcome::Queued
    }

    fn focus(&mut self, on: bool) -> EventOutcome {
        self.raw.focused = on;
        self.push(egui::Event::WindowFocused(on))
    }

    fn mouse(&mut self, event: &MouseEvent) -> EventOutcome {
        match event {
            MouseEvent::CursorMoved {
                position,
                modifiers,
            } => {
                self.set_modifiers(*modifiers);
                self.point(*position)
            }
            MouseEvent::ButtonPressed { button, modifiers } => {
                self.button(*button, true, *modifiers)
            }
            MouseEvent::ButtonReleased { button, modifiers } => {
                self.button(*button, false, *modifiers)
            }
            MouseEvent::WheelScrolled { delta, modifiers } => {
                self.set_modifiers(*modifiers);
                self.scroll(*delta)
            }
            MouseEvent::CursorLeft => self.leave(),
            MouseEvent::DragEntered { position, data, .. }
            | MouseEvent::DragMoved { position, data, .. } => {
                let files = files(data).iter().cloned();
                self.raw.hovered_files = files
                    .map(|path| HoveredFile {
                        path: Some(path),
                        ..HoveredFile::default()
                    })
                    .collect();
                self.drag(*position)
            }
            MouseEvent::DragDropped { position, data, .. } => {
                let dropped = files(data)
                    .iter()
                    .map(|path| Arc::new(DroppedPath(path.clone())) as _);
                self.raw.dropped_files.extend(dropped);
                let outcome = self.drag(*position);
                self.raw.hovered_files.clear();
                outcome
            }
            MouseEvent::DragLeft => {
                self.raw.hovered_files.clear();
                self.leave()
            }
            _ => EventOutcome::Ignored,
        }
    }

    fn point(&mut self, position: PhysicalPosition<f64>) -> EventOutcome {
        let position = pos2(position.x as f32, position.y as f32) / self.pixels_per_point;
        self.pointer = Some(position);
        self.push(egui::Event::PointerMoved(position))
    }

    /// Moves the pointer during a drag. Modifiers stay, since not all systems report them then.
    fn drag(&mut self, position: PhysicalPosition<f64>) -> EventOutcome {
        self.point(position);
        if self.raw.hovered_files.is_empty() && self.raw.dropped_files.is_empty() {
            EventOutcome::Queued
        } else {
            EventOutcome::FileDrag
        }
    }

    fn leave(&mut self) -> EventOutcome {
        self.pointer = None;
        self.push(egui::Event::PointerGone)
    }

    fn button(
        &mut self,
        button: MouseButton,
        pressed: bool,
        modifiers: keyboard_types::Modifiers,
    ) -> EventOutcome {
        self.set_modifiers(modifiers);
        let button = match button {
            MouseButton::Left => PointerButton::Primary,
            MouseButton::Right => PointerButton::Secondary,
            MouseButton::Middle => PointerButton::Middle,
            MouseButton::Back => PointerButton::Extra1,
            MouseButton::Forward => PointerButton::Extra2,
            _ => return EventOutcome::Ignored,
        };
        let Some(pos) = self.pointer else {
            return EventOutcome::Ignored;
        };
        self.push(egui::Event::PointerButton {
            pos,
            button,
            pressed,
            modifiers: self.modifiers,
        })
    }

    fn scroll(&mut self, delta: ScrollDelta) -> EventOutcome {
        let (unit, mut delta) = match delta {
            ScrollDelta::Lines { x, y } => (MouseWheelUnit::Line, vec2(x, y)),
            ScrollDelta::Pixels { x, y } => (MouseWheelUnit::Point, vec2(x, y)),
        };
        if cfg!(target_os = "macos") {
            // macOS reports the content's movement, egui expects the scroll direction.
            delta.x = -delta.x;
        }
        let (phase, source) = (egui::TouchPhase::Move, egui::MouseWheelSource::Unknown);
        self.push(egui::Event::MouseWheel {
            unit,
            delta,
            phase,
            modifiers: self.modifiers,
            source,
        })
    }

    fn key(&mut self, event: &KeyboardEvent) -> EventOutcome {
        self.set_modifiers(event.modifiers);
        let (pressed, modifiers) = (event.state == KeyState::Down, self.modifiers);
        let key = egui::Key::from_name(&event.key.to_string());
        let physical_key = egui::Key::from_name(&event.code.to_string());
        let windows = cfg!(target_os = "windows");
        if pressed {
            match key {
                Some(egui::Key::X) if modifiers.command => return self.push(egui::Event::Cut),
                Some(egui::Key::C) if modifiers.command => return self.push(egui::Event::Copy),
                Some(egui::Key::V) if modifiers.command => return EventOutcome::Paste,
                Some(egui::Key::Delete) if windows && modifiers.shift => {
                    return self.push(egui::Event::Cut);
                }
                Some(egui::Key::Insert) if windows && modifiers.ctrl => {
                    return self.push(egui::Event::Copy);
                }
                Some(egui::Key::Insert) if windows && modifiers.shift => {
                    return EventOutcome::Paste;
                }
                _ => {}
            }
        }
        let mut outcome = EventOutcome::Ignored;
        if let Some(key) = key.or(physical_key) {
            outcome = self.push(egui::Event::Key {
                key,
                physical_key,
                pressed,
                repeat: event.repeat,
                modifiers,
            });
        }
        match &event.key {
            Key::Character(text) if pressed && !modifiers.ctrl && !modifiers.command => {
                self.push(egui::Event::Text(text.clone()))
            }
            _ => outcome,
        }
    }

    fn set_modifiers(&mut self, modifiers: keyboard_types::Modifiers) {
        let mac = cfg!(target_os = "macos");
        let modifiers = Modifiers {
            alt: modifiers.alt(),
            ctrl: modifiers.ctrl(),
            shift: modifiers.shift(),
            mac_cmd: mac && modifiers.meta(),
            command: if mac {
                modifiers.meta()
            } else {
                modifiers.ctrl()
            },
        };
        if std::mem::replace(&mut self.modifiers, modifiers) != modifiers {
            self.push(egui::Event::ModifiersChanged(modifiers));
        }
    }
}

fn files(data: &DropData) -> &[PathBuf] {
    match data {
        DropData::Files(files) => files,
        _ => &[],
    }
}

/// Largest dropped file, bytes.
const MAX_DROPPED_BYTES: u64 = 256 << 20;

/// A dropped file, read on demand.
#[derive(Debug)]
struct DroppedPath(PathBuf);

impl egui::DroppedFile for DroppedPath {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        files::read(&self.0, MAX_DROPPED_BYTES).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use keyboard_types::{Code, NamedKey};

    use super::*;

    fn at(x: f64, y: f64) -> PhysicalPosition<f64> {
        PhysicalPosition::new(x, y)
    }

    fn none() -> keyboard_types::Modifiers {
        keyboard_types::Modifiers::empty()
    }

    fn press(key: impl Into<Key>, code: Code, modifiers: keyboard_types::Modifiers) -> Event {
        Event::Keyboard(KeyboardEvent {
            modifiers,
            ..KeyboardEvent::key_down(key, code)
        })
    }

    #[test]
    fn files_hover_until_they_are_dropped_or_leave() {
        let mut events = InputEvents::new(2.0);
        let data = DropData::Files(vec!["/tmp/bell.ondes".into()]);
        let enter = Event::Mouse(MouseEvent::DragEntered {
            position: at(9.0, 9.0),
            modifiers: none(),
            data: data.clone(),
        });
        let drop = Event::Mouse(MouseEvent::DragDropped {
            position: at(40.0, 20.0),
            modifiers: none(),
            data,
        });
        assert_eq!(events.handle(&enter), EventOutcome::FileDrag);
        for _ in 0..2 {
            let raw = events.take(2.0);
            assert_eq!(
                raw.hovered_files[0].path.as_deref(),
                Some(Path::new("/tmp/bell.ondes"))
            );
            assert!(raw.dropped_files.is_empty());
        }
        assert_eq!(events.handle(&drop), EventOutcome::FileDrag);
        let raw = events.take(2.0);
        assert!(raw.hovered_files.is_empty());
        assert_eq!(raw.dropped_files[0].path(), Path::new("/tmp/bell.ondes"));
        assert_eq!(
            raw.events,
            [egui::Event::PointerMoved(pos2(20.0, 10.0))],
            "the drop position in points"
        );
        assert!(events.take(2.0).dropped_files.is_empty());

        events.handle(&enter);
        events.handle(&Event::Mouse(MouseEvent::DragLeft));
        let raw = events.take(2.0);
        assert!(raw.hovered_files.is_empty() && raw.events.ends_with(&[egui::Event::PointerGone]));
        let nothing = MouseEvent::DragEntered {
            position: at(0.0, 0.0),
            modifiers: none(),
            data: DropData::None,
        };
        assert_eq!(
            events.handle(&Event::Mouse(nothing)),
            EventOutcome::Queued,
            "a drag without files is not accepted"
        );
    }

    #[test]
    fn keys_produce_key_and_text_events() {
        let mut events = InputEvents::new(1.0);
        let key = |key, physical_key| egui::Event::Key {
            key,
            physical_key: Some(physical_key),
            pressed: true,
            repeat: false,
            modifiers: Modifiers::NONE,
        };
        let character = |text: &str| Key::Character(text.into());
        events.handle(&press(character("q"), Code::KeyA, none()));
        events.handle(&press(character("é"), Code::Digit2, none()));
        events.handle(&press(Key::Named(NamedKey::PageUp), Code::PageUp, none()));
        events.handle(&press(Key::Named(NamedKey::F10), Code::F10, none()));
        events.handle(&press(character(" "), Code::Space, none()));
        let outcome = [
            key(egui::Key::Q, egui::Key::A),
            egui::Event::Text("q".into()),
            key(egui::Key::Num2, egui::Key::Num2),
            egui::Event::Text("é".into()),
            key(egui::Key::PageUp, egui::Key::PageUp),
            key(egui::Key::F10, egui::Key::F10),
            key(egui::Key::Space, egui::Key::Space),
            egui::Event::Text(" ".into()),
        ];
        assert_eq!(events.take(1.0).events, outcome);
    }

    #[test]
    fn copy_and_paste_produce_no_text() {
        let command = if cfg!(target_os = "macos") {
            keyboard_types::Modifiers::META
        } else {
            keyboard_types::Modifiers::CONTROL
        };
        let mut events = InputEvents::new(1.0);
        let character = |text: &str| Key::Character(text.into());
        assert_eq!(
            events.handle(&press(character("c"), Code::KeyC, command)),
            EventOutcome::Queued
        );
        // On other keyboard layouts the letter counts, not the key's position.
        assert_eq!(
            events.handle(&press(character("v"), Code::Period, command)),
            EventOutcome::Paste
        );
        events.paste("two\r\nlines");
        let raw = events.take(1.0);
        assert!(
            matches!(raw.events[0], egui::Event::ModifiersChanged(modifiers) if modifiers.command)
        );
        assert_eq!(
            raw.events[1..],
            [egui::Event::Copy, egui::Event::Paste("two\nlines".into())]
        );
    }

    #[test]
    fn a_button_press_has_the_pointer_position() {
        let mut events = InputEvents::new(1.5);
        let press = Event::Mouse(MouseEvent::ButtonPressed {
            button: MouseButton::Right,
            modifiers: none(),
        });
        assert_eq!(
            events.handle(&press),
            EventOutcome::Ignored,
            "the pointer position is unknown"
        );
        events.handle(&Event::Mouse(MouseEvent::CursorMoved {
            position: at(150.0, 30.0),
            modifiers: none(),
        }));
        events.handle(&press);
        let pressed = events.take(1.5).events.pop();
        let (pos, button, modifiers) =
            (pos2(100.0, 20.0), PointerButton::Secondary, Modifiers::NONE);
        assert_eq!(
            pressed,
            Some(egui::Event::PointerButton {
                pos,
                button,
                pressed: true,
                modifiers
            })
        );
    }
}
