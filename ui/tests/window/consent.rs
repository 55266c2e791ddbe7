//! The question whether a program may run.

use egui::Key;
use egui_kittest::kittest::Queryable;
use ondes_player::trust::UntrustedProgram;
use ondes_ui::FileCommand;

use super::fake::{Fake, Test, open};
use super::hands::{click, expect, press};

/// A window that asks whether a program may run.
pub fn asking() -> Fake {
    let program = UntrustedProgram {
        path: "/home/ana/models/birds.ts".into(),
        hash: "0".repeat(64),
    };
    Fake {
        untrusted: Some(program),
        asks_for_consent: true,
        card: None,
        moving: false,
        ..Fake::playing()
    }
}

const REPORT: &str = "“birds.ts” is a program, which you have not allowed to run";

fn asks(test: &Test) -> bool {
    test.query_by_label("Run this program?").is_some()
}

#[test]
fn the_dialog_names_the_file_and_says_what_it_is() {
    let mut test = open(asking());
    assert!(asks(&test));
    assert!(test.query_by_label("/home/ana/models/birds.ts").is_some());
    assert!(
        test.query_by_label_contains("“birds.ts” is a TorchScript model. Such a file is a program")
            .is_some()
    );
    click(&mut test, "Run");
    expect(&mut test, [FileCommand::AnswerProgram(true)]);
    assert!(!asks(&test) && test.query_by_label(REPORT).is_none());
}

#[test]
fn no_leaves_a_message_that_asks_again() {
    for escape in [false, true] {
        let mut test = open(asking());
        // Nothing behind the dialog can be clicked.
        test.get_by_label("Panic").click();
        test.run_steps(2);
        assert!(test.state_mut().commands().is_empty());
        if escape {
            press(&mut test, Key::Escape)
        } else {
            click(&mut test, "Don't run")
        }
        expect(&mut test, [FileCommand::AnswerProgram(false)]);
        assert!(!asks(&test) && test.query_by_label(REPORT).is_some());
        click(&mut test, "Run…");
        expect(&mut test, [FileCommand::AskProgram]);
        assert!(asks(&test));
    }
}
