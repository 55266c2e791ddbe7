//! `ondes render`: an instrument plays a MIDI file or re-plays a recording, or a recording goes through an effect or a codec, into
//! a WAV; or many of them.
//!
//! [`arguments`] is the command line. [`player`] plays one file: [`music`] is what is played, a [`score`] or a [`recording`],
//! [`destination`] where it goes, at the [`loudness`] asked for, [`stage`] where it is played; [`report`] is what is said about
//! it. [`batch`] has many files played, [`session`] all tracks of a session.

mod arguments;
mod batch;
mod destination;
mod loudness;
mod music;
mod player;
mod recording;
mod report;
mod score;
mod session;
mod stage;

use std::path::Path;
use std::time::{Instant, SystemTime};

pub use arguments::RenderArguments;
pub(crate) use arguments::parse_size;
pub(crate) use score::Score;
pub use score::note_name;

use crate::progress::Progress;
use crate::{interrupt, opening, terminal};
use destination::Place;
use player::Player;

/// Renders as the command line says; `started` is when the program was.
///
/// # Errors
/// One line that names the file and what is wrong with it. No output is left of what failed.
pub fn run(arguments: &RenderArguments, started: Instant) -> anyhow::Result<()> {
    interrupt::listen();
    if arguments.is_session() {
        return session::run(arguments);
    }
    arguments.check_model()?;
    let begun = SystemTime::now();
    let model = opening::open(&arguments.model)?;
    let player = Player { model: &model, arguments };
    if arguments.alone().is_some() {
        return one(&player, Path::new("prior"), started);
    }
    match arguments.single() {
        Some(source) => one(&player, source, started),
        None => batch::run(&player, begun),
    }
}

fn one(player: &Player<'_>, source: &Path, started: Instant) -> anyhow::Result<()> {
    let arguments = player.arguments;
    let place = Place::choose(arguments, source)?;
    let aside = place == Place::StandardOutput;
    let progress = Progress::of_sound();
    let finish = player.play(source, place, &progress, started, &mut None)?;
    let report = finish()?;
    let text = if arguments.json { serde_json::to_string(&report)? } else { report.line() };
    if aside { terminal::print_aside(&text) } else { terminal::print(&text) }
}
