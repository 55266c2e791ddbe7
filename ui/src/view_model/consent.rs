//! The question whether a TorchScript program may run.
//!
//! A program that the project names is asked for once, when the window is open; one that the user
//! has chosen, in a preset too, each time until it may run. A program of a set list is only
//! reported: nobody has chosen it in the window.

use ondes_player::instance::consent;
use ondes_player::preset::location::PresetLocation;
use ondes_player::trust;
use ondes_player::trust::UntrustedProgram;

use super::InstanceViewModel;
use super::model_list::ModelLocation;

/// Reason why the user may be asked again.
const NOT_REMEMBERED: &str = "Your answer could not be saved; it holds until Ondes is closed.";

/// The question, and what has been asked.
#[derive(Default)]
pub(super) struct ConsentQuestion {
    /// The program that was to be loaded but may not run.
    program: Option<UntrustedProgram>,
    is_asked: bool,
    /// The preset that names the program, if one was chosen.
    preset: Option<PresetLocation>,
    /// Hash of the project's program that was noticed last.
    noticed: Option<String>,
}

impl ConsentQuestion {
    pub fn program(&self) -> Option<&UntrustedProgram> {
        self.program.as_ref()
    }

    /// Returns whether the user is being asked.
    pub fn is_asked(&self) -> bool {
        self.is_asked && self.program.is_some()
    }
}

impl InstanceViewModel {
    /// Asks whether the program that was to be loaded may run, if there is one.
    pub(super) fn ask_for_consent(&mut self) {
        self.question.program = self.instance.untrusted_program();
        (self.question.is_asked, self.question.preset) = (self.question.program.is_some(), None);
    }

    /// Same for the program of a preset that was chosen.
    pub(super) fn ask_for_consent_of_preset(&mut self, preset: PresetLocation) {
        self.ask_for_consent();
        self.question.preset = Some(preset);
    }

    /// Follows the instance, and asks for a program that the project names unless the user has
    /// answered before.
    pub(super) fn refresh_question(&mut self) {
        let program = self.instance.untrusted_program();
        if program != self.question.program {
            (self.question.is_asked, self.question.preset) = (false, None);
            self.question.program = program;
        }
        let named = self
            .missing
            .as_ref()
            .and_then(|missing| missing.program.as_ref());
        let hash = named.map(|program| program.hash.clone());
        if self.question.noticed == hash {
            return;
        }
        self.question.noticed.clone_from(&hash);
        match hash {
            // Allowed in another window.
            Some(hash) if trust::may_run(&hash) => self.load_allowed(hash),
            Some(hash) => self.question.is_asked |= trust::answer(&hash).is_none(),
            None => {}
        }
    }

    /// Remembers the answer; with consent the program is loaded, here and wherever else it is
    /// waited for.
    pub(super) fn answer_question(&mut self, run: bool) {
        let Some(program) = self.question.program.clone() else {
            return;
        };
        self.question.is_asked = false;
        if trust::remember(&program, run).is_err() {
            self.own_notice = Some(NOT_REMEMBERED);
        }
        if !run {
            return self.instance.dismiss_failure();
        }
        let named = self
            .instance
            .missing_model()
            .and_then(|missing| missing.program);
        self.load_allowed(program.hash.clone());
        match self.question.preset.take() {
            Some(preset) => self.read_preset(preset),
            None if named.as_ref() != Some(&program) => {
                self.load_location(ModelLocation::File(program.path))
            }
            None => {}
        }
    }

    fn load_allowed(&mut self, hash: String) {
        self.background_jobs
            .push(std::thread::spawn(move || consent::load_allowed(&hash)));
    }
}
