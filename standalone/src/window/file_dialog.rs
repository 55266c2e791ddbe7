//! File dialogs of the system.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ondes_ui::file_dialog::{DialogAnswer, DialogKind, DialogRequest, FileDialog, UNAVAILABLE};

use super::recording_settings::RecordingSettings;
use crate::rack::{clip, session_file};

/// Purpose of a file dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogPurpose {
    /// Open a session.
    OpenSession,
    /// Choose where to save the session.
    SaveSession,
    /// Choose a recording for the track in this slot.
    Recording(usize),
    /// Choose the folder for recordings.
    RecordingFolder,
}

/// The open dialog, if any.
#[derive(Default)]
pub(super) struct OpenDialog(Option<(DialogPurpose, FileDialog)>);

impl OpenDialog {
    /// Opens a dialog, unless one is open.
    pub fn open(
        &mut self,
        purpose: DialogPurpose,
        session: Option<&Path>,
        recording_settings: &RecordingSettings,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) {
        if self.0.is_none() {
            self.0 = Some((
                purpose,
                FileDialog::open(request(purpose, session, recording_settings), move || {
                    wake()
                }),
            ));
        }
    }

    /// Returns the answer of the dialog, if there is one.
    ///
    /// # Errors
    /// Returns an error if no dialog is available.
    pub fn poll(&mut self) -> Result<Option<(DialogPurpose, PathBuf)>, &'static str> {
        let Some((purpose, dialog)) = &self.0 else {
            return Ok(None);
        };
        let (purpose, answer) = (*purpose, dialog.poll());
        if answer != DialogAnswer::Pending {
            self.0 = None;
        }
        match answer {
            DialogAnswer::Chosen(path) => Ok(Some((purpose, path))),
            DialogAnswer::Unavailable => Err(UNAVAILABLE),
            DialogAnswer::Pending | DialogAnswer::Cancelled => Ok(None),
        }
    }
}

fn request(
    purpose: DialogPurpose,
    session: Option<&Path>,
    recording_settings: &RecordingSettings,
) -> DialogRequest {
    let sessions = vec![("Sessions", vec![session_file::EXTENSION])];
    let folder = session.and_then(Path::parent).map(Path::to_owned);
    match purpose {
        DialogPurpose::OpenSession => DialogRequest {
            title: "Open a session",
            file_types: sessions,
            folder,
            ..DialogRequest::default()
        },
        DialogPurpose::SaveSession => {
            let name = session
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|| format!("Session.{}", session_file::EXTENSION));
            DialogRequest {
                title: "Save the session",
                kind: DialogKind::SaveFile(name),
                file_types: sessions,
                folder,
            }
        }
        DialogPurpose::Recording(_) => {
            let file_types = vec![("Recordings", clip::EXTENSIONS.to_vec())];
            DialogRequest {
                title: "Open a recording",
                file_types,
                folder: recording_settings.folder(),
                ..DialogRequest::default()
            }
        }
        DialogPurpose::RecordingFolder => {
            let folder = recording_settings.folder();
            DialogRequest {
                title: "Folder for recordings",
                kind: DialogKind::OpenFolder,
                folder,
                ..DialogRequest::default()
            }
        }
    }
}
