//! What the system tells a window, as egui wants to hear it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baseview::dpi::PhysicalPosition;
use baseview::{DropData, Event, MouseButton, MouseEvent, ScrollDelta, WindowEvent};
use egui::{HoveredFile, Modifiers, MouseWheelUnit, PointerButton, Pos2, RawInput, pos2, vec2};
use keyboard_types::{Key, KeyState, KeyboardEvent};

/// What has happened since the last picture, and what is still so.
pub struct Events {
    raw: RawInput,
    pointer: Option<Pos2>,
    modifiers: Modifiers,
    /// Size of a point, pixels.
    pixels_per_point: f32,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing changes by it.
    Nothing,
    /// It is told with the next picture.
    Something,
    /// The same, of files which may be dropped.
    Files,
    /// The user wants to have what is in the clipboard.
    Paste,
}

impl Events {
    /// Nothing has happened in a window whose points have that size.
    pub fn new(pixels_per_point: f32) -> Self {
        Self { raw: RawInput::default(), pointer: None, modifiers: Modifiers::NONE, pixels_per_point }
    }

    /// Everything since this was called last, for a picture in which points have that size, pixels.
    pub fn take(&mut self, pixels_per_point: f32) -> RawInput {
        self.pixels_per_point = pixels_per_point;
        self.raw.take()
    }

    /// A text is pasted.
    pub fn paste(&mut self, text: &str) {
        self.push(egui::Event::Paste(text.replace("\r\n", "\n")));
    }

    /// Takes an event.
    pub fn hear(&mut self, event: &Event) -> Heard {
        match event {
            Event::Mouse(event) => self.mouse(event),
            Event::Keyboard(event) => self.key(event),
            Event::Window(WindowEvent::Focused) => self.focus(true),
            Event::Window(WindowEvent::Unfocused) => self.focus(false),
            _ => Heard::Nothing,
        }
    }

    fn push(&mut self, event: egui::Event) -> Heard {
        self.raw.events.push(event);
        Heard::Something
    }

    fn focus(&mut self, on: bool) -> Heard {
        self.raw.focused = on;
        self.push(egui::Event::WindowFocused(on))
    }

    fn mouse(&mut self, event: &MouseEvent) -> Heard {
        match event {
            MouseEvent::CursorMoved { position, modifiers } => {
                self.hold(*modifiers);
                self.point(*position)
            }
            MouseEvent::ButtonPressed { button, modifiers } => self.button(*button, true, *modifiers),
            MouseEvent::ButtonReleased { button, modifiers } => self.button(*button, false, *modifiers),
            MouseEvent::WheelScrolled { delta, modifiers } => {
                self.hold(*modifiers);
                self.scroll(*delta)
            }
            MouseEvent::CursorLeft => self.leave(),
            MouseEvent::DragEntered { position, data, .. } | MouseEvent::DragMoved { position, data, .. } => {
                let files = files(data).iter().cloned();
                self.raw.hovered_files =
                    files.map(|path| HoveredFile { path: Some(path), ..HoveredFile::default() }).collect();
                self.drag(*position)
            }
            MouseEvent::DragDropped { position, data, .. } => {
                let dropped = files(data).iter().map(|path| Arc::new(Dropped(path.clone())) as _);
                self.raw.dropped_files.extend(dropped);
                let heard = self.drag(*position);
                self.raw.hovered_files.clear();
                heard
            }
            MouseEvent::DragLeft => {
                self.raw.hovered_files.clear();
                self.leave()
            }
            _ => Heard::Nothing,
        }
    }

    fn point(&mut self, position: PhysicalPosition<f64>) -> Heard {
        let position = pos2(position.x as f32, position.y as f32) / self.pixels_per_point;
        self.pointer = Some(position);
        self.push(egui::Event::PointerMoved(position))
    }

    /// Not all systems tell of modifiers while something is dragged, so that they stay as they were.
    fn drag(&mut self, position: PhysicalPosition<f64>) -> Heard {
        self.point(position);
        if self.raw.hovered_files.is_empty() && self.raw.dropped_files.is_empty() {
            Heard::Something
        } else {
            Heard::Files
        }
    }

    fn leave(&mut self) -> Heard {
        self.pointer = None;
        self.push(egui::Event::PointerGone)
    }

    fn button(&mut self, button: MouseButton, pressed: bool, modifiers: keyboard_types::Modifiers) -> Heard {
        self.hold(modifiers);
        let button = match button {
            MouseButton::Left => PointerButton::Primary,
            MouseButton::Right => PointerButton::Secondary,
            MouseButton::Middle => PointerButton::Middle,
            MouseButton::Back => PointerButton::Extra1,
            MouseButton::Forward => PointerButton::Extra2,
            _ => return Heard::Nothing,
        };
        let Some(pos) = self.pointer else { return Heard::Nothing };
        self.push(egui::Event::PointerButton { pos, button, pressed, modifiers: self.modifiers })
    }

    fn scroll(&mut self, delta: ScrollDelta) -> Heard {
        let (unit, mut delta) = match delta {
            ScrollDelta::Lines { x, y } => (MouseWheelUnit::Line, vec2(x, y)),
            ScrollDelta::Pixels { x, y } => (MouseWheelUnit::Point, vec2(x, y)),
        };
        if cfg!(target_os = "macos") {
            // It tells how contents move; egui wants to know how one scrolls.
            delta.x = -delta.x;
        }
        let (phase, source) = (egui::TouchPhase::Move, egui::MouseWheelSource::Unknown);
        self.push(egui::Event::MouseWheel { unit, delta, phase, modifiers: self.modifiers, source })
    }

    fn key(&mut self, event: &KeyboardEvent) -> Heard {
        self.hold(event.modifiers);
        let (pressed, modifiers) = (event.state == KeyState::Down, self.modifiers);
        let key = egui::Key::from_name(&event.key.to_string());
        let physical_key = egui::Key::from_name(&event.code.to_string());
        let windows = cfg!(target_os = "windows");
        if pressed {
            match key {
                Some(egui::Key::X) if modifiers.command => return self.push(egui::Event::Cut),
                Some(egui::Key::C) if modifiers.command => return self.push(egui::Event::Copy),
                Some(egui::Key::V) if modifiers.command => return Heard::Paste,
                Some(egui::Key::Delete) if windows && modifiers.shift => return self.push(egui::Event::Cut),
                Some(egui::Key::Insert) if windows && modifiers.ctrl => return self.push(egui::Event::Copy),
                Some(egui::Key::Insert) if windows && modifiers.shift => return Heard::Paste,
                _ => {}
            }
        }
        let mut heard = Heard::Nothing;
        if let Some(key) = key.or(physical_key) {
            heard = self.push(egui::Event::Key { key, physical_key, pressed, repeat: event.repeat, modifiers });
        }
        match &event.key {
            Key::Character(text) if pressed && !modifiers.ctrl && !modifiers.command => {
                self.push(egui::Event::Text(text.clone()))
            }
            _ => heard,
        }
    }

    fn hold(&mut self, modifiers: keyboard_types::Modifiers) {
        let mac = cfg!(target_os = "macos");
        let modifiers = Modifiers {
            alt: modifiers.alt(),
            ctrl: modifiers.ctrl(),
            shift: modifiers.shift(),
            mac_cmd: mac && modifiers.meta(),
            command: if mac { modifiers.meta() } else { modifiers.ctrl() },
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

/// A file that was dropped.
#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.0).map_err(|error| error.to_string())
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
        Event::Keyboard(KeyboardEvent { modifiers, ..KeyboardEvent::key_down(key, code) })
    }

    #[test]
    fn files_hover_until_they_are_dropped_or_taken_away() {
        let mut events = Events::new(2.0);
        let data = DropData::Files(vec!["/tmp/bell.ondes".into()]);
        let enter =
            Event::Mouse(MouseEvent::DragEntered { position: at(9.0, 9.0), modifiers: none(), data: data.clone() });
        let drop = Event::Mouse(MouseEvent::DragDropped { position: at(40.0, 20.0), modifiers: none(), data });
        assert_eq!(events.hear(&enter), Heard::Files);
        for _ in 0..2 {
            let raw = events.take(2.0);
            assert_eq!(raw.hovered_files[0].path.as_deref(), Some(Path::new("/tmp/bell.ondes")));
            assert!(raw.dropped_files.is_empty());
        }
        assert_eq!(events.hear(&drop), Heard::Files);
        let raw = events.take(2.0);
        assert!(raw.hovered_files.is_empty());
        assert_eq!(raw.dropped_files[0].path(), Path::new("/tmp/bell.ondes"));
        assert_eq!(raw.events, [egui::Event::PointerMoved(pos2(20.0, 10.0))], "where it was dropped, in points");
        assert!(events.take(2.0).dropped_files.is_empty());

        events.hear(&enter);
        events.hear(&Event::Mouse(MouseEvent::DragLeft));
        let raw = events.take(2.0);
        assert!(raw.hovered_files.is_empty() && raw.events.ends_with(&[egui::Event::PointerGone]));
        let nothing = MouseEvent::DragEntered { position: at(0.0, 0.0), modifiers: none(), data: DropData::None };
        assert_eq!(events.hear(&Event::Mouse(nothing)), Heard::Something, "what is no file is not taken");
    }

    #[test]
    fn keys_are_keys_and_texts() {
        let mut events = Events::new(1.0);
        let key = |key, physical_key| egui::Event::Key {
            key,
            physical_key: Some(physical_key),
            pressed: true,
            repeat: false,
            modifiers: Modifiers::NONE,
        };
        let character = |text: &str| Key::Character(text.into());
        events.hear(&press(character("q"), Code::KeyA, none()));
        events.hear(&press(character("é"), Code::Digit2, none()));
        events.hear(&press(Key::Named(NamedKey::PageUp), Code::PageUp, none()));
        events.hear(&press(Key::Named(NamedKey::F10), Code::F10, none()));
        events.hear(&press(character(" "), Code::Space, none()));
        let heard = [
            key(egui::Key::Q, egui::Key::A),
            egui::Event::Text("q".into()),
            key(egui::Key::Num2, egui::Key::Num2),
            egui::Event::Text("é".into()),
            key(egui::Key::PageUp, egui::Key::PageUp),
            key(egui::Key::F10, egui::Key::F10),
            key(egui::Key::Space, egui::Key::Space),
            egui::Event::Text(" ".into()),
        ];
        assert_eq!(events.take(1.0).events, heard);
    }

    #[test]
    fn copying_and_pasting_are_no_texts() {
        let command = if cfg!(target_os = "macos") {
            keyboard_types::Modifiers::META
        } else {
            keyboard_types::Modifiers::CONTROL
        };
        let mut events = Events::new(1.0);
        let character = |text: &str| Key::Character(text.into());
        assert_eq!(events.hear(&press(character("c"), Code::KeyC, command)), Heard::Something);
        // Where the letters are elsewhere the letter counts, not the key.
        assert_eq!(events.hear(&press(character("v"), Code::Period, command)), Heard::Paste);
        events.paste("two\r\nlines");
        let raw = events.take(1.0);
        assert!(matches!(raw.events[0], egui::Event::ModifiersChanged(modifiers) if modifiers.command));
        assert_eq!(raw.events[1..], [egui::Event::Copy, egui::Event::Paste("two\nlines".into())]);
    }

    #[test]
    fn a_button_is_pressed_where_the_pointer_is() {
        let mut events = Events::new(1.5);
        let press = Event::Mouse(MouseEvent::ButtonPressed { button: MouseButton::Right, modifiers: none() });
        assert_eq!(events.hear(&press), Heard::Nothing, "it is nowhere");
        events.hear(&Event::Mouse(MouseEvent::CursorMoved { position: at(150.0, 30.0), modifiers: none() }));
        events.hear(&press);
        let pressed = events.take(1.5).events.pop();
        let (pos, button, modifiers) = (pos2(100.0, 20.0), PointerButton::Secondary, Modifiers::NONE);
        assert_eq!(pressed, Some(egui::Event::PointerButton { pos, button, pressed: true, modifiers }));
    }
}
