//! Blocks before and after a model: changed, heard, saved and restored.

use std::time::Duration;

use ondes_engine::Kernels;
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::dsp::level::{db_to_amplitude, max_step, peak};
use ondes_engine::effects::effect;
use ondes_engine::model::file;
use ondes_engine::pipeline::{InputChannels, Pipeline, PipelineOptions};
use ondes_engine::realtime::Driver;
use ondes_player::cabinet::bundled;
use ondes_player::library::BundledModel;
use ondes_player::parameter::{NEXT_SCENE, OUTPUT_GAIN, PREVIOUS_SCENE, ParameterId, SCENE};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::rig::block_macros;
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::rig::branch_state::{Branch, BranchState};
use ondes_ui::{HistoryCommand, RigCommand};

use super::chain::{Track, play};

/// A compressor that only changes the level.
fn level(db: f32, before: bool) -> BlockState {
    let mut state = BlockState::of_effect(effect("compressor").expect("an effect"));
    for parameter in ["threshold", "gain"] {
        state.values.insert(parameter.into(), 0.0);
    }
    BlockState {
        before,
        level: db,
        ..state
    }
}

fn change(track: &mut Track, effects: &[BlockState]) {
    track.handle(RigCommand::Change(effects.to_vec()));
    track.handle(RigCommand::Finish);
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
    assert_eq!(track.shared.blocks(), [level(-6.02, false)]);
    assert_near(heard(&track), 0.5 * plain);
    track.handle(HistoryCommand::Undo);
    assert_near(heard(&track), plain);
    track.handle(HistoryCommand::Redo);
    assert_near(heard(&track), 0.5 * plain);
}

#[test]
fn a_macro_turns_a_block_and_is_named_after_it() {
    let mut track = Track::new();
    let plain = (2.0 * 0.1_f32).tanh();
    let mut block = level(0.0, false);
    block.turn_by(block_macros::LEVEL, Some(7));
    block.turn_by(block_macros::ON, Some(6));
    change(&mut track, &[block]);
    assert_near(heard(&track), plain);
    let macros = [ParameterId(6), ParameterId(7)];
    let names = macros.map(|id| track.shared.parameter_label(id).expect("a name"));
    assert_eq!(names, ["Compressor on", "Compressor level"]);
    let text = |id, position| track.shared.format_value(id, position).expect("a text");
    assert_eq!(text(macros[1], 0.75), "12.0 dB");
    assert_eq!(
        (text(macros[0], 0.0), text(macros[0], 1.0)),
        ("off".into(), "on".into())
    );
    assert_eq!(
        track
            .shared
            .parse_value(macros[1], "Compressor level -12 dB"),
        Some(0.25)
    );
    assert_eq!(track.shared.parse_value(macros[0], "off"), Some(0.0));
    // While it plays, and from the start.
    let mut player = track.player();
    play(&track, &mut player, |_| 0.1);
    track.store.set_value(macros[1], 0.25);
    let sound = play(&track, &mut player, |_| 0.1);
    assert_near(sound[0][20_000], 0.2512 * plain);
    assert!(max_step(&sound[0]) < 1e-3);
    assert_near(heard(&track), 0.2512 * plain);
    track.store.set_value(macros[0], 0.0);
    assert_near(heard(&track), plain);
    track.handle(HistoryCommand::Undo);
    assert_eq!(track.shared.macro_label(7), None);
}

#[test]
fn pedals_step_through_the_scenes() {
    let track = Track::new();
    let scene = |track: &Track| {
        track.shared.follow_scene(&*track.store, &*track.store);
        let shown = track.store.scene();
        (track.shared.scenes().active, shown)
    };
    for index in [3, 5] {
        track.store.set_value(SCENE, index as f32 + 1.0);
        assert_eq!(scene(&track), (index, index));
    }
    let mut player = track.player();
    let mut press = |track: &Track, pedal| {
        for position in [1.0, 0.0] {
            track.store.set_value(pedal, position);
            play(track, &mut player, |_| 0.1);
        }
        scene(track)
    };
    assert_eq!(press(&track, NEXT_SCENE), (0, 0));
    assert_eq!(press(&track, NEXT_SCENE), (3, 3));
    assert_eq!(press(&track, PREVIOUS_SCENE), (0, 0));
    assert_eq!(press(&track, PREVIOUS_SCENE), (5, 5));
}

#[test]
fn a_looper_plays_on_when_its_block_is_off() {
    let mut track = Track::new();
    let looper = BlockState::of_effect(effect("looper").expect("an effect"));
    let mut player = track.player();
    let set = |track: &mut Track, value: f32, off: bool| {
        let mut block = BlockState {
            off,
            ..looper.clone()
        };
        block.values.insert("pedal".into(), value);
        change(track, &[block]);
    };
    set(&mut track, 0.0, false);
    play(&track, &mut player, |_| 0.0);
    set(&mut track, 1.0, false);
    play(&track, &mut player, |_| 0.1);
    set(&mut track, 0.0, false);
    assert!(player.tail_samples() == usize::MAX, "it records");
    play(&track, &mut player, |_| 0.1);
    set(&mut track, 1.0, false);
    play(&track, &mut player, |_| 0.0);
    set(&mut track, 0.0, true);
    for _ in 0..4 {
        let sound = play(&track, &mut player, |_| 0.0);
        assert!(peak(&sound[0][12_000..]) > 0.1);
        assert!(!player.is_silent());
    }
}

#[test]
fn effects_change_while_they_play_and_are_saved_with_the_project() {
    let mut track = Track::new();
    let mut player = track.player();
    let plain = (2.0 * 0.1_f32).tanh();
    change(&mut track, &[level(-6.02, false)]);
    let sound = play(&track, &mut player, |_| 0.1);
    assert_near(sound[0][20_000], 0.5 * plain);
    let step = max_step(&sound[0][1_000..]);
    assert!(step < 1e-3, "a step of {step}");

    let saved = track.save();
    change(&mut track, &[]);
    assert_near(play(&track, &mut player, |_| 0.1)[0][20_000], plain);
    track.restore(&saved);
    assert_eq!(track.shared.blocks(), [level(-6.02, false)]);
}

#[test]
fn a_limiter_makes_the_holder_begin_anew_with_more_latency() {
    let mut track = Track::new();
    let mut player = track.player();
    assert_eq!(player.latency_samples(), 0);
    change(
        &mut track,
        &[BlockState::of_effect(effect("limiter").expect("an effect"))],
    );
    play(&track, &mut player, |_| 0.1);
    assert!(player.latency_changed());
    assert_eq!(track.player().latency_samples(), 72);
}

#[track_caller]
fn assert_near_all(found: &[Vec<f32>; 2], expected: &[Vec<f32>; 2]) {
    for (found, expected) in found.iter().zip(expected) {
        let far = |(a, b): (&f32, &f32)| (a - b).abs();
        let errors = found.iter().zip(expected).map(far);
        let (place, error) = errors
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .expect("a sample");
        assert!(error < 1e-6, "{error} at {place}");
    }
}

/// Adds a block of a bundled file, and waits until it is read.
fn add(track: &mut Track, block: &str, name: &str, before: bool) -> BlockState {
    let state = BlockState {
        before,
        ..BlockState::of_file(block, name, None)
    };
    track.handle(RigCommand::Add(state));
    track.settle();
    track.shared.blocks().pop().expect("it was added")
}

#[test]
fn models_and_responses_in_blocks_sound_as_by_hand() {
    let mut track = Track::new();
    // Independent of the load of this machine.
    track.shared.rig_handover.set_driver(Driver::Inline);
    let mut crunch = add(&mut track, MODEL, "crunch", true);
    let response = add(&mut track, RESPONSE, "4x12", false);
    crunch.values.insert("Gain".into(), 0.8);
    crunch.values.insert("model.gain".into(), 6.0);
    change(&mut track, &[crunch.clone(), response]);
    let tone = |n: usize| 0.05 * (n as f32 * 0.03).sin();
    let mut player = track.player();
    let heard = play(&track, &mut player, tone);

    let model = BundledModel::named("crunch")
        .expect("a bundled model")
        .model();
    let options = PipelineOptions {
        channels: InputChannels::Stereo,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
    pipeline.set_control("Gain", 0.8).expect("a control");
    let count = heard[0].len();
    let input: Vec<f32> = (0..count).map(|n| db_to_amplitude(6.0) * tone(n)).collect();
    let mut driven = [vec![0.0; count], vec![0.0; count]];
    let [left, right] = &mut driven;
    pipeline.process_stereo([&input, &input], [left, right]);
    for side in &mut driven {
        side.iter_mut()
            .for_each(|sample| *sample = (2.0 * *sample).tanh());
    }
    let file = bundled::BundledCabinet::named("4x12")
        .expect("a cabinet")
        .file();
    let mut cabinet =
        Cabinet::new(&file.response, 48_000, Kernels::detect()).expect("it can be resampled");
    let mut expected = [vec![0.0; count], vec![0.0; count]];
    let [left, right] = &mut expected;
    cabinet.process([&driven[0], &driven[1]], [left, right], true);

    assert_eq!(player.latency_samples(), pipeline.latency_samples());
    assert_near_all(&heard, &expected);
    assert!(peak(&heard[0]) > 0.05);

    // The model of the test is in no file.
    track.shared.set_embed_model(true);
    let saved = track.save();
    track.handle(HistoryCommand::Undo);
    track.handle(HistoryCommand::Undo);
    assert_eq!(track.shared.blocks().len(), 1);
    track.restore(&saved);
    let mut again = track.player();
    let restored = play(&track, &mut again, tone);
    assert_near_all(&restored, &heard);
}

#[test]
fn a_model_begins_without_a_click_while_its_sound_plays() {
    let mut track = Track::new();
    let mut player = track.player();
    // Whole periods each time.
    let tone = |n: usize| 0.05 * (n as f32 * std::f32::consts::TAU / 188.0).sin();
    play(&track, &mut player, tone);
    let mut triode = add(&mut track, MODEL, "triode", true);
    let first = play(&track, &mut player, tone);
    track.shared.wait_until_loaded(Duration::from_secs(10));
    let second = play(&track, &mut player, tone);
    triode.values.insert("model.oversampling".into(), 3.0);
    change(&mut track, &[triode.clone()]);
    let third = play(&track, &mut player, tone);
    triode.off = true;
    change(&mut track, &[triode]);
    let fourth = play(&track, &mut player, tone);
    let whole: Vec<f32> = [first, second, third, fourth]
        .into_iter()
        .flat_map(|sound| sound.into_iter().next())
        .flatten()
        .collect();
    let step = max_step(&whole);
    assert!(step < 0.02, "a step of {step}");
    assert!(whole.iter().all(|sample| sample.is_finite()));
}

#[test]
fn a_model_is_replaced_with_its_settings_and_undone() {
    let mut track = Track::new();
    let mut first = add(&mut track, MODEL, "crunch", true);
    first.level = -3.0;
    first.values.insert("model.gain".into(), 6.0);
    first.turn_by("model.gain", Some(4));
    change(
        &mut track,
        &[level(0.0, true), first.clone(), level(-1.0, false)],
    );
    let other = BlockState::of_file(MODEL, "triode", None);
    track.handle(RigCommand::Replace(1, other));
    track.settle();
    let blocks = track.shared.blocks();
    assert_eq!(blocks[1].name(), "Triode");
    let kept = BlockState {
        file: first.file.clone(),
        ..blocks[1].clone()
    };
    assert_eq!((kept, blocks.len()), (first.clone(), 3));
    track.handle(HistoryCommand::Undo);
    assert_eq!(track.shared.blocks()[1], first);
}

#[test]
fn a_file_that_is_missing_says_so_and_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lost.ondes");
    let mut track = Track::new();
    let state = BlockState::of_file(MODEL, "", Some(&path));
    track.handle(RigCommand::Add(state));
    track.settle();
    let block = track.shared.blocks().remove(0);
    let problem = track.shared.block_problem(&block).expect("it is missing");
    assert!(problem.contains("lost.ondes"), "{problem}");
    let plain = (2.0 * 0.1_f32).tanh();
    assert_near(heard(&track), plain);

    let model = BundledModel::named("triode")
        .expect("a bundled model")
        .model();
    file::write(&model, &path).expect("it can be written");
    track.shared.retry_missing_blocks();
    let block = track.shared.blocks().remove(0);
    assert_eq!(track.shared.block_problem(&block), None);
    assert!((heard(&track) - plain).abs() > 1e-3);

    // An instrument does not process sound.
    track.handle(RigCommand::Add(BlockState::of_file(MODEL, "violin", None)));
    track.settle();
    let block = track.shared.blocks().pop().expect("it was added");
    let problem = track.shared.block_problem(&block);
    assert!(problem.is_some_and(|problem| problem.contains("an instrument")));
}

#[test]
fn scenes_change_knobs_and_blocks_without_a_click() {
    let mut track = Track::new();
    let mut player = track.player();
    let plain = (2.0 * 0.1_f32).tanh();
    change(&mut track, &[level(-6.02, false), level(6.02, true)]);
    track.handle(RigCommand::NameScene("Verse".into()));
    track.handle(RigCommand::GoToScene(1));
    let blocks = track.shared.blocks();
    let off = |block: &BlockState| BlockState {
        off: true,
        ..block.clone()
    };
    let quiet: Vec<BlockState> = blocks.iter().map(off).collect();
    change(&mut track, &quiet);
    track.turn(OUTPUT_GAIN, -6.02);
    assert_near(play(&track, &mut player, |_| 0.1)[0][20_000], 0.5 * plain);

    let chorus = 0.5 * 0.4_f32.tanh();
    for _ in 0..3 {
        track.handle(RigCommand::GoToScene(0));
        let verse = play(&track, &mut player, |_| 0.1);
        assert_near(verse[0][20_000], chorus);
        assert_eq!(track.store.value(OUTPUT_GAIN), Some(0.0));
        // As a host's automation, a MIDI controller or a program change do.
        track.turn(SCENE, 2.0);
        track.shared.follow_scene(&*track.store, &*track.store);
        let second = play(&track, &mut player, |_| 0.1);
        assert_near(second[0][20_000], 0.5 * plain);
        let step = max_step(&verse[0]).max(max_step(&second[0]));
        assert!(step < 1e-3, "a step of {step}");
    }
    // A block that is new belongs to both.
    let mut more = track.shared.blocks();
    more.push(BlockState::of_effect(effect("limiter").expect("an effect")));
    change(&mut track, &more);
    track.handle(RigCommand::GoToScene(0));
    assert_eq!(track.shared.blocks().len(), 3);
    assert_eq!(
        track.shared.scenes().get(0).map(|scene| scene.name.clone()),
        Some("Verse".into())
    );

    let saved = track.save();
    track.handle(HistoryCommand::Undo);
    assert_eq!(track.shared.scenes().active, 1);
    assert_near(track.store.value(SCENE).expect("a value"), 2.0);
    track.restore(&saved);
    track.shared.follow_scene(&*track.store, &*track.store);
    assert_eq!(track.shared.scenes().active, 0);
    assert_near(track.store.value(SCENE).expect("a value"), 1.0);
    track.handle(RigCommand::GoToScene(1));
    assert!(track.shared.blocks()[..2].iter().all(|block| block.off));
}

#[test]
fn two_branches_are_mixed_saved_and_undone() {
    let mut track = Track::new();
    let plain = (2.0 * 0.1_f32).tanh();
    let in_branch = |db: f32, branch| BlockState {
        branch: Some(branch),
        ..level(db, false)
    };
    let blocks = [in_branch(0.0, Branch::A), in_branch(-6.02, Branch::B)];
    change(&mut track, &blocks);
    assert_near(heard(&track), 0.75 * plain);
    let left = BranchState {
        level: 0.0,
        pan: -1.0,
        ..BranchState::default()
    };
    let right = BranchState {
        level: 0.0,
        pan: 1.0,
        inverted: true,
        ..BranchState::default()
    };
    track.handle(RigCommand::ChangeBranches([left, right]));
    track.handle(RigCommand::Finish);
    let sides = |track: &Track| {
        let mut player = track.player();
        play(track, &mut player, |_| 0.1).map(|side| *side.last().expect("a sample"))
    };
    let [left, right] = sides(&track);
    assert_near(left, plain);
    assert_near(right, -0.5 * plain);
    track.shared.set_embed_model(true);
    let saved = track.save();
    track.handle(HistoryCommand::Undo);
    assert_near(heard(&track), 0.75 * plain);
    // A branch that is 2 ms behind is waited for.
    let late = BranchState {
        delay: 2.0,
        ..BranchState::default()
    };
    track.handle(RigCommand::ChangeBranches([BranchState::default(), late]));
    track.handle(RigCommand::AlignBranches);
    assert_eq!(track.shared.branches()[0].delay, 0.0, "nothing was heard");
    let mut player = track.player();
    let noise = |n: usize| 0.1 * ((n * n % 1_009) as f32 / 504.5 - 1.0);
    play(&track, &mut player, noise);
    track.handle(RigCommand::AlignBranches);
    let [first, second] = track.shared.branches();
    assert_near(second.delay - first.delay, 0.0);
    assert!(!second.inverted);
    track.restore(&saved);
    assert_near(sides(&track)[1], -0.5 * plain);
}
