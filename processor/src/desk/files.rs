//! What becomes of files: dropped, typed, chosen in the system's dialog, or looked for again.

use std::path::{Path, PathBuf};

use ondes_engine::media::FILE_ENDINGS;
use ondes_engine::model::{file, program};
use ondes_engine::realtime::Status;
use ondes_ui::Browse;

use super::commands::play;
use super::entries::Origin;
use super::{Desk, presets};
use crate::cabinet;
use crate::dialog::{Answer, Dialog, Request, UNAVAILABLE};
use crate::preset::{self, store};

/// A preset is known by its ending, and so is a sound, which is a cabinet's where sounds are played; all else should be a model.
pub(super) fn open(desk: &mut Desk, path: PathBuf) {
    if store::is_preset(&path) {
        presets::open(desk, path);
    } else if desk.takes_sounds() && cabinet::is_sound(&path) {
        fetch_cabinet(desk, path);
    } else {
        play(desk, Origin::File(path));
    }
}

/// Opens a dialog; while there is one, no other.
pub(super) fn browse(desk: &mut Desk, what: Browse) {
    if desk.dialog.is_some() {
        return;
    }
    let models = ("Models", [&file::EXTENSIONS[..], &program::EXTENSIONS[..]].concat());
    let of_model = desk.model.as_ref().and_then(|_| desk.shared.saved().model.path);
    let request = match what {
        Browse::Model => Request {
            title: "Open a model or a preset",
            kinds: vec![("Models and presets", [models.1.as_slice(), &[preset::file::EXTENSION]].concat())],
            folder: of_model.as_deref().and_then(Path::parent).map(Path::to_owned),
            ..Request::default()
        },
        Browse::Missing => Request { title: "Where is the model?", kinds: vec![models], ..Request::default() },
        Browse::Cabinet => Request {
            title: "Open an impulse response",
            kinds: vec![("Sounds", FILE_ENDINGS.to_vec())],
            folder: desk.cabinets.folder().map(Path::to_owned),
            ..Request::default()
        },
    };
    desk.dialog = Some((what, Dialog::open(request, || ())));
}

/// Does what a dialog was opened for, once there is an answer.
pub(super) fn answered(desk: &mut Desk) {
    let Some((what, dialog)) = &desk.dialog else { return };
    let (what, answer) = (*what, dialog.poll());
    if answer != Answer::Open {
        desk.dialog = None;
    }
    match (answer, what) {
        (Answer::Open | Answer::Cancelled, _) => {}
        (Answer::Unavailable, _) => desk.hint = Some(UNAVAILABLE),
        (Answer::Chosen(path), Browse::Model) => open(desk, path),
        (Answer::Chosen(path), Browse::Cabinet) => fetch_cabinet(desk, path),
        (Answer::Chosen(path), Browse::Missing) => {
            let shared = desk.shared.clone();
            desk.errands.push(std::thread::spawn(move || shared.locate(path)));
        }
    }
}

pub(super) fn fetch_cabinet(desk: &mut Desk, path: PathBuf) {
    let errand = desk.shared.fetch_cabinet(path);
    desk.errands.push(errand);
}

pub(super) fn retry(desk: &mut Desk) {
    if desk.presets.problem.take().is_some() {
        // It was said; the user does it again.
        return;
    }
    let is_missing = desk.shared.missing().is_some();
    if !is_missing && (desk.missing_cabinet.is_none() || matches!(desk.shared.progress(), Status::Failed(_))) {
        return desk.shared.reload();
    }
    let shared = desk.shared.clone();
    desk.errands.push(std::thread::spawn(move || {
        shared.retry();
        shared.retry_cabinet();
    }));
}
