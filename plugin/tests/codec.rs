//! A codec in the plugins: its latents are turned by a host's automation.

mod host;

/// A small codec.
#[path = "../../processor/src/tests.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod small;

use std::path::Path;
use std::sync::Arc;

use host::{Do, EFFECT, Host, INSTRUMENT, energy, json, state, with_selection};
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Action, ControlId, PipelineOptions, Source};
use ondes_engine::realtime::{BlockCue, Driver, Patch, Remote, Setup, Status};
use ondes_processor::controls::Controls;
use ondes_processor::macros::Travel;

const FRAMES: usize = 48_000;
const BLOCK: usize = 480;
/// What the first macros turn.
const TURNED: [&str; 3] = ["latent1.scale", "latent2.offset", "latent1.hold"];

/// The automation: when, which of [`TURNED`], and where its macro goes.
const WAYS: [(usize, usize, f32); 4] = [(9_001, 0, 1.0), (17_003, 1, 0.9), (30_007, 2, 1.0), (41_111, 0, 0.1)];

/// A host's project that plays the codec of that file, inline, with its latents under the first macros.
fn project(host: &mut Host, model: &Model, path: &Path) {
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    let saved = with_selection(&state(&saved), |selection| {
        selection["model"] = serde_json::json!({ "hash": model.content_hash(), "name": "Mean", "path": path });
        selection["macros"] = TURNED.into();
    });
    assert!(host.load(&saved));
}

/// What the engine's own session plays of that input, turned at the same samples.
fn expected(model: &Arc<Model>, input: &[f32]) -> (usize, Vec<f32>) {
    let remote = Remote::new();
    remote.set_driver(Driver::Inline);
    let options = PipelineOptions { source: Source::Sound, ..PipelineOptions::default() };
    let made = model.clone();
    remote.load(Box::new(move || Ok(Arc::new(Patch::new(made, options).unwrap()))), &[]);
    while remote.status() == Status::Loading {
        std::thread::yield_now();
    }
    let mut session = remote.activate(Setup { sample_rate: 48_000, max_block: BLOCK }).unwrap();
    session.reset();
    let controls = Controls::of(model);
    let cues = WAYS.map(|(offset, which, position)| {
        let control = controls.all().iter().find(|control| control.name == TURNED[which]).unwrap();
        let value = Travel::through(control).value(position);
        BlockCue { offset, action: Action::Control { id: ControlId::of(&control.name), value } }
    });
    let mut sound = Vec::new();
    for start in (0..FRAMES).step_by(BLOCK) {
        let here = cues.iter().filter(|cue| (start..start + BLOCK).contains(&cue.offset));
        let here: Vec<BlockCue> = here.map(|cue| BlockCue { offset: cue.offset - start, action: cue.action }).collect();
        let mut block = vec![0.0; BLOCK];
        session.process(&here, &[&input[start..start + BLOCK]; 2], &mut [&mut block]);
        sound.extend(block);
    }
    (session.latency_samples(), sound)
}

#[test]
fn latents_follow_automation_at_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mean.ondes");
    let model = small::codec();
    file::write(&model, &path).unwrap();
    let input: Vec<f32> = (0..FRAMES).map(|n| (n as f32 * 0.003).sin() * 0.4 + 0.1).collect();
    let (latency, wanted) = expected(&model, &input);
    assert!(energy(&wanted) > 1e-6);
    let macros = ["Macro 1", "Macro 2", "Macro 3"];
    let todo = WAYS.map(|(time, which, position)| (time, Do::Turn(macros[which], f64::from(position))));
    // The instrument hears its side-chain then.
    for id in [EFFECT, INSTRUMENT] {
        let mut host = Host::new(id);
        project(&mut host, &model, &path);
        host.set_offline(true);
        host.activate(48_000.0, BLOCK as u32);
        let saved = host.save();
        assert_eq!(host.latency(), latency, "{id}");
        let played = host.play(FRAMES, BLOCK, &todo, Some(&input));
        assert!(played == wanted, "{id}");
        // Each turn is heard, not before its sample, and soon after it.
        let mut plain = Host::new(id);
        assert!(plain.load(&saved));
        plain.set_offline(true);
        plain.activate(48_000.0, BLOCK as u32);
        let plain = plain.play(FRAMES, BLOCK, &[], Some(&input));
        let apart = played.iter().zip(&plain).position(|(turned, plain)| turned != plain).unwrap();
        assert!((WAYS[0].0..WAYS[0].0 + latency + BLOCK).contains(&apart), "{id}: {apart}");
        assert!(host.text("Macro 1", 1.0).starts_with("latent1.scale"));
    }
}
