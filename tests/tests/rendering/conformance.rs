//! Files with the oddities of each format are read as their answers say.

use ondes_tests::conformance::audio::{Expected, answers, decode};
use ondes_tests::conformance::{captures, folder, midi};

#[test]
fn audio_files_are_read_as_their_answers_say() {
    let folder = folder("audio");
    let answers = answers(&folder);
    assert!(answers.len() > 150, "{}", answers.len());
    let mut wrong = Vec::new();
    for answer in &answers {
        let found = decode(&folder.join(&answer.file));
        let result = match (&answer.expected, found) {
            (Expected::Sound(signal), Ok(sound)) => signal.check(signal.measure(&sound)),
            (Expected::Refused(reason), Err(message)) if message.contains(reason.as_str()) => {
                Ok(())
            }
            (expected, Err(message)) => Err(format!("{message}; expected {expected:?}")),
            (Expected::Refused(reason), Ok(_)) => Err(format!("plays; expected: {reason}")),
        };
        wrong.extend(
            result
                .err()
                .map(|difference| format!("{} ({}): {difference}", answer.file, answer.what)),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        answers.len(),
        wrong.join("\n")
    );
}

#[test]
fn midi_files_are_read_as_their_answers_say() {
    let folder = folder("midi");
    let answers: Vec<midi::Answer> = ondes_tests::conformance::answers(&folder);
    assert!(answers.len() > 80, "{}", answers.len());
    let check = |answer: &midi::Answer| {
        let result = answer.check(midi::read(&folder.join(&answer.file)));
        result
            .err()
            .map(|difference| format!("{} ({}): {difference}", answer.file, answer.what))
    };
    let wrong: Vec<String> = answers.iter().filter_map(check).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        answers.len(),
        wrong.join("\n")
    );
}

#[test]
fn captures_are_played_as_their_answers_say() {
    let folder = folder("captures");
    let input = captures::input(&folder);
    let answers: Vec<captures::Answer> = ondes_tests::conformance::answers(&folder);
    assert!(answers.len() > 90, "{}", answers.len());
    let check = |answer: &captures::Answer| {
        let result = answer.check(captures::play(&folder.join(&answer.file), &input));
        result
            .err()
            .map(|difference| format!("{} ({}): {difference}", answer.file, answer.what))
    };
    let wrong: Vec<String> = answers.iter().filter_map(check).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        answers.len(),
        wrong.join("\n")
    );
}
