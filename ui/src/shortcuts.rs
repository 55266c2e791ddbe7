//! Keys of commands that are named where they work and where they are explained.

use egui::{Key, KeyboardShortcut, Modifiers};
use ondes_player::rig::scene::SCENES;

/// Keys of the scenes, with Alt.
pub(crate) const SCENE_KEYS: [Key; SCENES] = [
    Key::Num1,
    Key::Num2,
    Key::Num3,
    Key::Num4,
    Key::Num5,
    Key::Num6,
    Key::Num7,
    Key::Num8,
];
/// Key of the stage, with Alt.
pub(crate) const STAGE_KEY: Key = Key::Num0;
pub(crate) const UNDO: KeyboardShortcut = KeyboardShortcut::new(Modifiers::COMMAND, Key::Z);
pub(crate) const REDO: KeyboardShortcut =
    KeyboardShortcut::new(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::Z);
