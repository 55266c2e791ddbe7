//! Files that are chosen in the system's dialog.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ondes_processor::dialog::{Answer, Dialog, Request, UNAVAILABLE, Wanted};

use super::takes::Takes;
use crate::rack::{clip, saved};

/// What a file or a folder is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browse {
    /// A session to open.
    Session,
    /// Where the session is to be saved.
    Place,
    /// A recording for the track in that place to listen to.
    Recording(usize),
    /// The folder for recordings.
    Takes,
}

/// The dialog, while one is open.
#[derive(Default)]
pub(super) struct Browser(Option<(Browse, Dialog)>);

impl Browser {
    /// Opens the dialog, unless there is one.
    pub fn open(&mut self, what: Browse, session: Option<&Path>, takes: &Takes, wake: Arc<dyn Fn() + Send + Sync>) {
        if self.0.is_none() {
            self.0 = Some((what, Dialog::open(request(what, session, takes), move || wake())));
        }
    }

    /// What the user has chosen, if they have.
    ///
    /// # Errors
    /// Why there was nothing to choose from.
    pub fn poll(&mut self) -> Result<Option<(Browse, PathBuf)>, &'static str> {
        let Some((what, dialog)) = &self.0 else { return Ok(None) };
        let (what, answer) = (*what, dialog.poll());
        if answer != Answer::Open {
            self.0 = None;
        }
        match answer {
            Answer::Chosen(path) => Ok(Some((what, path))),
            Answer::Unavailable => Err(UNAVAILABLE),
            Answer::Open | Answer::Cancelled => Ok(None),
        }
    }
}

fn request(what: Browse, session: Option<&Path>, takes: &Takes) -> Request {
    let sessions = vec![("Sessions", vec![saved::ENDING])];
    let folder = session.and_then(Path::parent).map(Path::to_owned);
    match what {
        Browse::Session => Request { title: "Open a session", kinds: sessions, folder, ..Request::default() },
        Browse::Place => {
            let name = session.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|| format!("Session.{}", saved::ENDING));
            Request { title: "Save the session", wanted: Wanted::Place(name), kinds: sessions, folder }
        }
        Browse::Recording(_) => {
            let kinds = vec![("Recordings", clip::ENDINGS.to_vec())];
            Request { title: "Open a recording", kinds, folder: takes.folder(), ..Request::default() }
        }
        Browse::Takes => {
            let folder = takes.folder();
            Request { title: "Where recordings go", wanted: Wanted::Folder, folder, ..Request::default() }
        }
    }
}
