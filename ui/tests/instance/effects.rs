//! Effects before and after a model: changed, heard, saved and restored.

use ondes_engine::effects::effect;
use ondes_player::effect_list::EffectState;
use ondes_ui::{EffectCommand, HistoryCommand};

use super::chain::{Track, play};

/// A compressor that only changes the level.
fn level(db: f32, before: bool) -> EffectState {
    let mut state = EffectState::new(effect("compressor").expect("an effect"));
    state.set_value(0, 0.0);
    state.set_value(4, 0.0);
    EffectState {
        before,
        level: db,
        ..state
    }
}

fn change(track: &mut Track, effects: &[EffectState]) {
    track.handle(EffectCommand::Change(effects.to_vec()));
    track.handle(EffectCommand::Finish);
}

/// Returns the level at the end of half a second of a constant sound.
fn heard(track: &Track) -> f32 {
    let mut player = track.player();
    *play(track, &mut player, |_| 0.1)[0]
        .last()
        .expect("a sample")
}

#[track_caller]
fn assert_near(found: f32, expected: f32) {
    assert!((found - expected).abs() < 1e-3, "{found} for {expected}");
}

#[test]
fn effects_are_heard_before_and_after_the_model_and_undone() {
    let mut track = Track::new();
    let plain = (2.0 * 0.1_f32).tanh();
    assert_near(heard(&track), plain);
    change(&mut track, &[level(-6.02, false)]);
    assert_near(heard(&track), 0.5 * plain);
    change(&mut track, &[level(6.02, true), level(-6.02, false)]);
    assert_near(heard(&track), 0.5 * 0.4_f32.tanh());
    track.handle(HistoryCommand::Undo);
    assert_eq!(track.shared.effects(), [level(-6.02, false)]);
    assert_near(heard(&track), 0.5 * plain);
    track.handle(HistoryCommand::Undo);
    assert_near(heard(&track), plain);
    track.handle(HistoryCommand::Redo);
    assert_near(heard(&track), 0.5 * plain);
}

#[test]
fn effects_change_while_they_play_and_are_saved_with_the_project() {
    let mut track = Track::new();
    let mut player = track.player();
    let plain = (2.0 * 0.1_f32).tanh();
    change(&mut track, &[level(-6.02, false)]);
    let sound = play(&track, &mut player, |_| 0.1);
    assert_near(sound[0][20_000], 0.5 * plain);
    let step = ondes_engine::dsp::level::max_step(&sound[0][1_000..]);
    assert!(step < 1e-3, "a step of {step}");

    let saved = track.save();
    change(&mut track, &[]);
    assert_near(play(&track, &mut player, |_| 0.1)[0][20_000], plain);
    track.restore(&saved);
    assert_eq!(track.shared.effects(), [level(-6.02, false)]);
}

#[test]
fn a_limiter_makes_the_holder_begin_anew_with_more_latency() {
    let mut track = Track::new();
    let mut player = track.player();
    assert_eq!(player.latency_samples(), 0);
    change(
        &mut track,
        &[EffectState::new(effect("limiter").expect("an effect"))],
    );
    play(&track, &mut player, |_| 0.1);
    assert!(player.latency_changed());
    assert_eq!(track.player().latency_samples(), 72);
}
