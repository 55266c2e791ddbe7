//! Who holds which keys of the window's keyboard: the pointer, and keys of the computer.
//!
//! Whatever goes down comes up: when it is let go, when the window loses the keyboard or the pointer, when nothing can be played
//! any more, and when the window closes. A key that two hold sounds once, until the last of them leaves.

use egui::{Event, Key, Ui};

use super::command::Command;
use super::desk::Desk;

/// From C upwards, by semitones, as the keys of a piano lie.
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
/// The highest key of MIDI.
const HIGHEST: u8 = 127;

/// The state of the keyboard.
pub(crate) struct Fingers {
    /// Whether computer keys play; not known until the owner was asked.
    keys: Option<bool>,
    /// MIDI key of the row's first key, a C.
    first: u8,
    /// How hard computer keys strike, tenths.
    tenths: u8,
    pointer: Option<u8>,
    /// The pointer was lifted off the keys though it is down still: it must come up before it plays again.
    lifted: bool,
    /// Computer keys that are down, with what they play.
    typed: Vec<(Key, u8)>,
}

impl Default for Fingers {
    fn default() -> Self {
        Self { keys: None, first: 60, tenths: 8, pointer: None, lifted: false, typed: Vec::new() }
    }
}

impl Fingers {
    /// Whether computer keys play.
    pub fn keys(&self) -> bool {
        self.keys == Some(true)
    }

    /// Lets computer keys play, or not.
    pub fn set_keys(&mut self, on: bool) {
        self.keys = Some(on);
    }

    /// MIDI key of the row's first key.
    pub fn first(&self) -> u8 {
        self.first
    }

    /// How hard computer keys strike, above 0 and up to 1.
    pub fn velocity(&self) -> f32 {
        f32::from(self.tenths) / 10.0
    }

    /// The keys that are held, MIDI; one may come twice.
    pub fn held(&self) -> impl Iterator<Item = u8> {
        self.pointer.into_iter().chain(self.typed.iter().map(|(_, key)| *key))
    }

    /// Takes what is played on computer keys out of the input, before anybody else sees it.
    pub fn listen(&mut self, ui: &Ui, desk: &mut Desk<'_>) {
        let view = desk.view;
        let on = *self.keys.get_or_insert(view.keys_on_start);
        let (lost, changed) = ui.input(|input| {
            let lost = input.events.iter().any(|event| matches!(event, Event::WindowFocused(false)));
            (lost || !input.focused, input.modifiers.any())
        });
        let commands = &mut desk.commands;
        if lost || !view.can_play {
            self.let_go(commands);
        }
        // With a modifier a key is a command, and some systems have another name for it when it comes up.
        if lost || changed || !view.can_play || !on {
            self.untype(commands);
            return;
        }
        let typing = ui.ctx().text_edit_focused();
        ui.input_mut(|input| {
            input.events.retain(|event| {
                let Event::Key { key, physical_key, pressed, repeat, modifiers } = event else { return true };
                let key = physical_key.unwrap_or(*key);
                let mine = match pressed {
                    true => !typing && modifiers.is_none() && self.press(key, *repeat, commands),
                    false => self.release(key, commands),
                };
                !mine
            });
        });
    }

    /// A computer key goes down. False if it means nothing here.
    fn press(&mut self, key: Key, repeat: bool, commands: &mut Vec<Command>) -> bool {
        if let Some(step) = ROW.iter().position(|one| *one == key) {
            let played = self.first + step as u8;
            if !repeat && played <= HIGHEST && self.typed.iter().all(|(one, _)| *one != key) {
                self.strike(played, self.velocity(), commands);
                self.typed.push((key, played));
            }
            return true;
        }
        match key {
            _ if repeat => {}
            Key::Z => self.first = self.first.saturating_sub(12),
            Key::X => self.first = (self.first + 12).min(HIGHEST / 12 * 12),
            Key::C => self.tenths = (self.tenths - 1).max(1),
            Key::V => self.tenths = (self.tenths + 1).min(10),
            _ => return false,
        }
        matches!(key, Key::Z | Key::X | Key::C | Key::V)
    }

    /// A computer key comes up. False if it was not down here.
    fn release(&mut self, key: Key, commands: &mut Vec<Command>) -> bool {
        let Some(place) = self.typed.iter().position(|(one, _)| *one == key) else { return false };
        let (_, played) = self.typed.swap_remove(place);
        self.leave(played, commands);
        true
    }

    /// The pointer is down, on that key with that velocity or on none.
    pub fn point(&mut self, key: Option<(u8, f32)>, commands: &mut Vec<Command>) {
        self.glide(key.filter(|_| !self.lifted), commands);
    }

    /// The pointer has left the window while it was down: nobody may tell when it comes up.
    pub fn lose(&mut self, commands: &mut Vec<Command>) {
        self.lifted = true;
        self.glide(None, commands);
    }

    /// The pointer is up.
    pub fn lift(&mut self, commands: &mut Vec<Command>) {
        self.lifted = false;
        self.glide(None, commands);
    }

    fn glide(&mut self, key: Option<(u8, f32)>, commands: &mut Vec<Command>) {
        if self.pointer == key.map(|(key, _)| key) {
            return;
        }
        if let Some(left) = self.pointer.take() {
            self.leave(left, commands);
        }
        if let Some((key, velocity)) = key {
            self.strike(key, velocity, commands);
            self.pointer = Some(key);
        }
    }

    fn strike(&self, key: u8, velocity: f32, commands: &mut Vec<Command>) {
        if self.held().all(|held| held != key) {
            commands.push(Command::KeyDown { key, velocity });
        }
    }

    fn leave(&self, key: u8, commands: &mut Vec<Command>) {
        if self.held().all(|held| held != key) {
            commands.push(Command::KeyUp { key });
        }
    }

    fn untype(&mut self, commands: &mut Vec<Command>) {
        while let Some((_, key)) = self.typed.pop() {
            self.leave(key, commands);
        }
    }

    /// Everything comes up.
    pub fn let_go(&mut self, commands: &mut Vec<Command>) {
        if self.pointer.is_some() {
            self.lose(commands);
        }
        self.untype(commands);
    }
}
