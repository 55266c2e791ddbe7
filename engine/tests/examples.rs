//! Runs the examples with the bundled models.

use std::path::PathBuf;

#[path = "../examples/play_midi.rs"]
mod play_midi;
#[path = "../examples/process_effect.rs"]
mod process_effect;
#[path = "../examples/realtime_session.rs"]
mod realtime_session;

fn asset(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../assets")
        .join(name)
}

#[test]
fn play_midi_renders_the_whole_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let wav = folder.path().join("riff.wav");
    let samples = play_midi::render(
        &asset("models/plucked.ondes"),
        &asset("demo/riff.mid"),
        &wav,
    )
    .expect("it renders");
    let (sound, sample_rate) = ondes_engine::media::read_mono(&wav).expect("a WAV file");
    assert_eq!((sound.len() as u64, sample_rate), (samples, 48_000));
    assert!(sound.iter().any(|sample| sample.abs() > 0.05));
}

#[test]
fn process_effect_keeps_the_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (asset("demo/riff.wav"), folder.path().join("fuzz.wav"));
    let peak = process_effect::process(&asset("models/fuzz.ondes"), &input, &output)
        .expect("it processes");
    let length = |path| {
        ondes_engine::media::read_mono(path)
            .expect("a WAV file")
            .0
            .len()
    };
    assert_eq!(length(&output), length(&input));
    assert!(peak > 0.05, "{peak}");
}

#[test]
fn realtime_session_plays_a_note() {
    let (peak, health) = realtime_session::play(&asset("models/bowed.ondes")).expect("it plays");
    assert!(
        peak > 0.02 && health.invalid_blocks == 0,
        "{peak}, {health:?}"
    );
}
