//! Notes held on the window's keyboard, by the pointer and by computer keys.
//!
//! Every key that goes down comes up: when it is released, when the window loses the keyboard focus
//! or the pointer, when the instance can no longer be played, and when the window closes. A key
//! held twice sounds once, until its last release.

use egui::{Event, Key, Ui};

use crate::command::{PlayCommand, WindowCommand};
use crate::frame::Frame;

/// Keys for the notes from C upwards in semitones, laid out like a piano's.
const ROW: [Key; 17] = [
    Key::A,
    Key::W,
    Key::S,
    Key::E,
    Key::D,
    Key::F,
    Key::T,
    Key::G,
    Key::Y,
    Key::H,
    Key::U,
    Key::J,
    Key::K,
    Key::O,
    Key::L,
    Key::P,
    Key::Semicolon,
];
/// Highest MIDI key.
const HIGHEST: u8 = 127;

/// Held keys and the settings of the computer keyboard.
pub(crate) struct KeyboardInput {
    /// True if computer keys play notes.
    keys: bool,
    /// MIDI key of the row's first key, a C.
    first_key: u8,
    /// Velocity of computer keys, in tenths.
    velocity_tenths: u8,
    pointer: Option<u8>,
    /// The pointer was lost while its button was down; it plays again after the button's release.
    pointer_lost: bool,
    /// Computer keys that are down, with the MIDI keys that they play.
    typed: Vec<(Key, u8)>,
}

impl Default for KeyboardInput {
    fn default() -> Self {
        Self {
            keys: false,
            first_key: 60,
            velocity_tenths: 8,
            pointer: None,
            pointer_lost: false,
            typed: Vec::new(),
        }
    }
}

impl KeyboardInput {
    /// Returns whether computer keys play notes.
    pub fn keys(&self) -> bool {
        self.keys
    }

    /// Sets whether computer keys play notes.
    pub fn set_keys(&mut self, on: bool) {
        self.keys = on;
    }

    /// Returns the MIDI key of the row's first key.
    pub fn first_key(&self) -> u8 {
        self.first_key
    }

    /// Returns the velocity of computer keys, above 0 and up to 1.
    pub fn velocity(&self) -> f32 {
        f32::from(self.velocity_tenths) / 10.0
    }

    /// Returns the held MIDI keys; a key may occur twice.
    pub fn held(&self) -> impl Iterator<Item = u8> {
        self.pointer
            .into_iter()
            .chain(self.typed.iter().map(|(_, key)| *key))
    }

    /// Handles computer keys and removes them from the input, before any widget sees them.
    pub fn handle_keys(&mut self, ui: &Ui, frame: &mut Frame<'_>) {
        let view = frame.view;
        let on = self.keys;
        let (lost, changed) = ui.input(|input| {
            let lost = input
                .events
                .iter()
                .any(|event| matches!(event, Event::WindowFocused(false)));
            (lost || !input.focused, input.modifiers.any())
        });
        let commands = &mut frame.commands;
        if lost || !view.play.can_play {
            self.release_all(commands);
        }
        // Keys with a modifier are commands, and some systems report another key when it is
        // released.
        if lost || changed || !view.play.can_play || !on {
            self.release_typed(commands);
            return;
        }
        let typing = ui.ctx().text_edit_focused();
        ui.input_mut(|input| {
            input.events.retain(|event| {
                let Event::Key {
                    key,
                    physical_key,
                    pressed,
                    repeat,
                    modifiers,
                } = event
                else {
                    return true;
                };
                let key = physical_key.unwrap_or(*key);
                let handled = match pressed {
                    true => !typing && modifiers.is_none() && self.key_down(key, *repeat, commands),
                    false => self.key_up(key, commands),
                };
                !handled
            });
        });
    }

    /// Handles a pressed key. Returns false if the key has no meaning here.
    fn key_down(&mut self, key: Key, repeat: bool, commands: &mut Vec<WindowCommand>) -> bool {
        if let Some(step) = ROW.iter().position(|one| *one == key) {
            let played = self.first_key + step as u8;
            if !repeat && played <= HIGHEST && self.typed.iter().all(|(one, _)| *one != key) {
                self.note_on(played, self.velocity(), commands);
                self.typed.push((key, played));
            }
            return true;
        }
        match key {
            _ if repeat => {}
            Key::Z => self.first_key = self.first_key.saturating_sub(12),
            Key::X => self.first_key = (self.first_key + 12).min(HIGHEST / 12 * 12),
            Key::C => self.velocity_tenths = (self.velocity_tenths - 1).max(1),
            Key::V => self.velocity_tenths = (self.velocity_tenths + 1).min(10),
            _ => return false,
        }
        matches!(key, Key::Z | Key::X | Key::C | Key::V)
    }

    /// Handles a released key. Returns false if it was not held.
    fn key_up(&mut self, key: Key, commands: &mut Vec<WindowCommand>) -> bool {
        let Some(index) = self.typed.iter().position(|(one, _)| *one == key) else {
            return false;
        };
        let (_, played) = self.typed.swap_remove(index);
        self.note_off(played, commands);
        true
    }

    /// Sets the key, with its velocity, that the pointer holds down.
    pub fn pointer_down(&mut self, key: Option<(u8, f32)>, commands: &mut Vec<WindowCommand>) {
        self.move_pointer(key.filter(|_| !self.pointer_lost), commands);
    }

    /// Handles a pointer that left the window with its button down, so that its release may go
    /// unnoticed.
    pub fn pointer_lost(&mut self, commands: &mut Vec<WindowCommand>) {
        self.pointer_lost = true;
        self.move_pointer(None, commands);
    }

    /// Handles the release of the pointer's button.
    pub fn pointer_up(&mut self, commands: &mut Vec<WindowCommand>) {
        self.pointer_lost = false;
        self.move_pointer(None, commands);
    }

    fn move_pointer(&mut self, key: Option<(u8, f32)>, commands: &mut Vec<WindowCommand>) {
        if self.pointer == key.map(|(key, _)| key) {
            return;
        }
        if let Some(left) = self.pointer.take() {
            self.note_off(left, commands);
        }
        if let Some((key, velocity)) = key {
            self.note_on(key, velocity, commands);
            self.pointer = Some(key);
        }
    }

    fn note_on(&self, key: u8, velocity: f32, commands: &mut Vec<WindowCommand>) {
        if self.held().all(|held| held != key) {
            commands.push(PlayCommand::KeyDown { key, velocity }.into());
        }
    }

    fn note_off(&self, key: u8, commands: &mut Vec<WindowCommand>) {
        if self.held().all(|held| held != key) {
            commands.push(PlayCommand::KeyUp { key }.into());
        }
    }

    fn release_typed(&mut self, commands: &mut Vec<WindowCommand>) {
        while let Some((_, key)) = self.typed.pop() {
            self.note_off(key, commands);
        }
    }

    /// Releases all keys.
    pub fn release_all(&mut self, commands: &mut Vec<WindowCommand>) {
        if self.pointer.is_some() {
            self.pointer_lost(commands);
        }
        self.release_typed(commands);
    }
}
