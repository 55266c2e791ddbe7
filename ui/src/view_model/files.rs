//! Files that are dropped, typed, chosen in a dialog, or searched for again.

use std::path::{Path, PathBuf};

use ondes_engine::media::FILE_EXTENSIONS;
use ondes_engine::model::{file, program};
use ondes_engine::realtime::LoadStatus;
use ondes_player::cabinet;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::{self, store};
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::tuning;

use super::InstanceViewModel;
use super::model_list::ModelLocation;
use crate::command::{FileCommand, FilePurpose};
use crate::file_dialog::{DialogAnswer, DialogRequest, FileDialog, UNAVAILABLE};

impl InstanceViewModel {
    pub(super) fn handle_file(&mut self, command: FileCommand) {
        match command {
            FileCommand::Open(path) => self.open_file(path),
            FileCommand::Browse(purpose) => self.open_dialog(purpose),
            FileCommand::Retry => self.retry(),
            FileCommand::AskProgram => self.ask_for_consent(),
            FileCommand::AnswerProgram(run) => self.answer_question(run),
        }
    }

    /// Opens a file by its extension: a preset, a tuning, an impulse response if there is an audio
    /// input, or else a model.
    fn open_file(&mut self, path: PathBuf) {
        if store::is_preset(&path) {
            self.read_preset(PresetLocation::File(path));
        } else if tuning::is_scale(&path) || tuning::is_keyboard_map(&path) {
            self.instance.load_tuning(path);
        } else if self.accepts_audio_files() && cabinet::is_audio_file(&path) {
            self.load_cabinet(path);
        } else {
            self.load_location(ModelLocation::File(path));
        }
    }

    /// Opens a dialog, unless one is open.
    fn open_dialog(&mut self, purpose: FilePurpose) {
        if self.dialog.is_some() {
            return;
        }
        let models = (
            "Models",
            [&file::EXTENSIONS[..], &program::EXTENSIONS[..]].concat(),
        );
        let model_path = self
            .model
            .as_ref()
            .and_then(|_| self.instance.state().model.path);
        let request = match purpose {
            FilePurpose::Model => DialogRequest {
                title: "Open a model, a preset or a tuning",
                file_types: vec![
                    (
                        "Models and presets",
                        [models.1.as_slice(), &[preset::file::EXTENSION]].concat(),
                    ),
                    (
                        "Tunings",
                        vec![tuning::SCALE_EXTENSION, tuning::KEYBOARD_MAP_EXTENSION],
                    ),
                ],
                folder: model_path
                    .as_deref()
                    .and_then(Path::parent)
                    .map(Path::to_owned),
                ..DialogRequest::default()
            },
            FilePurpose::MissingModel => DialogRequest {
                title: "Locate the model",
                file_types: vec![models],
                ..DialogRequest::default()
            },
            FilePurpose::ModelBlock(_) => DialogRequest {
                title: "Add a model",
                file_types: vec![models],
                ..DialogRequest::default()
            },
            FilePurpose::Cabinet | FilePurpose::ResponseBlock(_) => DialogRequest {
                title: "Open an impulse response",
                file_types: vec![("Audio files", FILE_EXTENSIONS.to_vec())],
                folder: self.cabinets.folder().map(Path::to_owned),
                ..DialogRequest::default()
            },
            FilePurpose::Sound(_) => DialogRequest {
                title: "Open a sound",
                file_types: vec![("Audio files", FILE_EXTENSIONS.to_vec())],
                ..DialogRequest::default()
            },
        };
        self.dialog = Some((purpose, FileDialog::open(request, || ())));
    }

    /// Opens the file that was chosen in the dialog, if there is an answer.
    pub(super) fn poll_dialog(&mut self) {
        let Some((purpose, dialog)) = &self.dialog else {
            return;
        };
        let (purpose, answer) = (*purpose, dialog.poll());
        if answer != DialogAnswer::Pending {
            self.dialog = None;
        }
        match (answer, purpose) {
            (DialogAnswer::Pending | DialogAnswer::Cancelled, _) => {}
            (DialogAnswer::Unavailable, _) => self.own_notice = Some(UNAVAILABLE),
            (DialogAnswer::Chosen(path), FilePurpose::Model) => self.open_file(path),
            (DialogAnswer::Chosen(path), FilePurpose::ModelBlock(place)) => {
                self.add_block(BlockState::of_file(MODEL, "", Some(&path)), place);
            }
            (DialogAnswer::Chosen(path), FilePurpose::ResponseBlock(place)) => {
                self.add_block(BlockState::of_file(RESPONSE, "", Some(&path)), place);
            }
            (DialogAnswer::Chosen(path), FilePurpose::Cabinet) => self.load_cabinet(path),
            (DialogAnswer::Chosen(path), FilePurpose::Sound(index)) => {
                self.set_program_sound(index, path)
            }
            (DialogAnswer::Chosen(path), FilePurpose::MissingModel) => {
                let instance = self.instance.clone();
                self.background_jobs.push(std::thread::spawn(move || {
                    instance.locate_missing_model(path)
                }));
            }
        }
    }

    /// Tries again what failed: searches for missing files, or loads the model.
    fn retry(&mut self) {
        if self.presets.problem.take().is_some() {
            // The message goes; the user repeats the command.
            return;
        }
        let is_missing = self.instance.missing_model().is_some();
        let has_failed = matches!(self.instance.status(), LoadStatus::Failed(_));
        if !is_missing && (self.missing_cabinet.is_none() || has_failed) {
            return self.instance.reload();
        }
        let instance = self.instance.clone();
        self.background_jobs.push(std::thread::spawn(move || {
            instance.retry_missing_model();
            instance.retry_missing_cabinet();
            instance.retry_missing_blocks();
        }));
    }
}
