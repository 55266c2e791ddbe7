//! `ondes render`: MIDI files, recordings or sessions to WAV files.
//!
//! [`arguments`] is the command line. [`model_renderer`] renders one file: from a [`source`] (a
//! [`midi_score`], a [`recording_reader`], or nothing but a recording to go on from, [`prime`]),
//! through a pipeline ([`pipeline_render`]), to an [`output_target`] as [`wav_output`], with a
//! [`loudness`] if one is asked for; [`report`] has the results. [`batch`] renders many files, in
//! [`shard`]s if asked to; [`session`] renders the tracks of a session.

mod arguments;
mod batch;
mod loudness;
pub(crate) mod midi_score;
mod model_renderer;
pub(crate) mod output_target;
mod parameter_arguments;
mod pipeline_render;
mod prime;
mod recording_reader;
mod report;
mod session;
mod shard;
mod sound_format;
mod source;
mod wav_output;

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

pub use arguments::RenderArguments;
pub use batch::FailedFiles;
pub use midi_score::note_name;
pub use report::speed;

use crate::progress::RenderProgress;
use crate::{memory, open_model, terminal};
use model_renderer::ModelRenderer;
use output_target::{OutputTarget, default_name};

/// Renders as the command line asks. `started` is the start of the program.
///
/// # Errors
/// Returns an error that names the file and what is wrong with it. A failed render leaves no
/// output.
pub fn run(arguments: &RenderArguments, started: Instant) -> anyhow::Result<()> {
    memory::set_limit(arguments.memory.unwrap_or_else(memory::usual_limit));
    if arguments.is_session() {
        return session::run(arguments);
    }
    arguments.check_model()?;
    let is_one = arguments.generated_seconds().is_some() || arguments.single().is_some();
    let names_source = arguments.seconds.is_some() || !arguments.sources().is_empty();
    arguments.check_format(is_one || !names_source)?;
    let started_at = SystemTime::now();
    let (model, _) = open_model::find(&arguments.model)?;
    arguments.check_source(&model)?;
    let model = arguments
        .program
        .apply(Arc::unwrap_or_clone(model), &arguments.model)?;
    let renderer = ModelRenderer {
        model: &model,
        arguments,
    };
    if arguments.generated_seconds().is_some() {
        return render_one(&renderer, Path::new("prior"), started);
    }
    match arguments.single() {
        Some(source) => render_one(&renderer, source, started),
        None => batch::run(&renderer, started_at),
    }
}

fn render_one(renderer: &ModelRenderer<'_>, source: &Path, started: Instant) -> anyhow::Result<()> {
    let arguments = renderer.arguments;
    let default = || default_name(source, &arguments.model, arguments.container());
    let read = [source, &arguments.model];
    let target = OutputTarget::choose(arguments.out.as_deref(), default, read)?;
    let to_stdout = target == OutputTarget::StandardOutput;
    let progress = RenderProgress::of_sound(arguments.quiet);
    let finish = renderer.play(source, target, &progress, started, &mut None)?;
    let report = finish()?;
    if arguments.quiet {
        return Ok(());
    }
    let text = if arguments.json {
        serde_json::to_string(&report)?
    } else {
        report.line()
    };
    if to_stdout {
        terminal::print_to_stderr(&text)
    } else {
        terminal::print(&text)
    }
}
