//! The panels of the window.
//!
//! Top: `header` with `card`, `preset_menu` and `about`, and `message`. Left: `browser`. Middle:
//! `knob_pages` with `latents`, `chain`, `rig` and `pad`, and `scope`; or `tuner`. Right:
//! `meters`. Bottom: `play` with `keyboard`, and `status_bar` with `executor_menu` and `program_menu`.
//! `file_drop` covers all of them while a file is dragged over the window, `consent` while it asks
//! whether a program may run.

pub(crate) mod about;
pub(crate) mod browser;
pub(crate) mod card;
pub(crate) mod chain;
pub(crate) mod consent;
pub(crate) mod executor_menu;
pub(crate) mod file_drop;
pub(crate) mod header;
pub(crate) mod keyboard;
pub(crate) mod knob_pages;
pub(crate) mod latents;
pub(crate) mod message;
pub(crate) mod meters;
pub(crate) mod pad;
pub(crate) mod play;
pub(crate) mod preset_menu;
pub(crate) mod program_menu;
pub(crate) mod rig;
pub(crate) mod scope;
pub(crate) mod stage;
pub(crate) mod status_bar;
pub(crate) mod tuner;
