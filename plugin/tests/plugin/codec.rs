//! Codec models: host automation of latents, and the bundled codec.

use std::path::Path;
use std::sync::Arc;

use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Action, ControlId, ControlSource, PipelineOptions};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadStatus, PlayableModel, SessionController, Setup,
};
use ondes_player::library::BUNDLED;
use ondes_player::model_controls::ModelControls;

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, state, with_selection};
use ondes_engine::dsp::level::{db_to_amplitude, max_step, peak};

const FRAMES: usize = 48_000;
const BLOCK: usize = 480;
/// Controls assigned to the first macros.
const TARGETS: [&str; 3] = ["latent1.scale", "latent2.offset", "latent1.hold"];

/// Automation: sample, index into [`TARGETS`], macro value.
const AUTOMATION: [(usize, usize, f32); 4] = [
    (9_001, 0, 1.0),
    (17_003, 1, 0.9),
    (30_007, 2, 1.0),
    (41_111, 0, 0.1),
];

/// Loads a project that plays the codec file inline, with [`TARGETS`] assigned to the first macros.
fn load_project(host: &mut Host, model: &Model, path: &Path) {
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    let saved = with_selection(&state(&saved), |selection| {
        selection["model"] =
            serde_json::json!({ "hash": model.content_hash(), "name": "Mean", "path": path });
        selection["macros"] = TARGETS.into();
    });
    assert!(host.load(&saved));
}

/// Returns the latency and the output of an engine session with the same automation.
fn expected(model: &Arc<Model>, input: &[f32]) -> (usize, Vec<f32>) {
    let controller = SessionController::new();
    controller.set_driver(Driver::Inline);
    let options = PipelineOptions {
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    };
    let shared_model = model.clone();
    controller.load(
        Box::new(move || Ok(Arc::new(PlayableModel::new(shared_model, options).unwrap()))),
        &[],
    );
    while controller.status() == LoadStatus::Loading {
        std::thread::yield_now();
    }
    let mut session = controller
        .activate(Setup {
            sample_rate: 48_000,
            max_block: BLOCK,
        })
        .unwrap();
    session.reset();
    let controls = ModelControls::new(model);
    let commands = AUTOMATION.map(|(offset, which, position)| {
        let control = controls
            .all()
            .iter()
            .find(|control| control.name == TARGETS[which])
            .unwrap();
        let value = control.knob_range().value(position);
        BlockCommand {
            offset,
            action: Action::Control {
                id: ControlId::new(&control.name),
                value,
            },
        }
    });
    let mut sound = Vec::new();
    for start in (0..FRAMES).step_by(BLOCK) {
        let here = commands
            .iter()
            .filter(|command| (start..start + BLOCK).contains(&command.offset));
        let here: Vec<BlockCommand> = here
            .map(|command| BlockCommand {
                offset: command.offset - start,
                action: command.action,
            })
            .collect();
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
    let model = crate::test_model::codec();
    file::write(&model, &path).unwrap();
    let input: Vec<f32> = (0..FRAMES)
        .map(|n| (n as f32 * 0.003).sin() * 0.4 + 0.1)
        .collect();
    let (latency, expected_sound) = expected(&model, &input);
    assert!(energy(&expected_sound) > 1e-6);
    let macros = ["Macro 1", "Macro 2", "Macro 3"];
    let events = AUTOMATION.map(|(time, which, position)| {
        (
            time,
            HostEvent::SetParameter(macros[which], f64::from(position)),
        )
    });
    // With a codec the instrument processes its side-chain.
    for id in [EFFECT, INSTRUMENT] {
        let mut host = Host::new(id);
        load_project(&mut host, &model, &path);
        host.set_offline(true);
        host.activate(48_000.0, BLOCK as u32);
        let saved = host.save();
        assert_eq!(host.latency(), latency, "{id}");
        let played = host.play(FRAMES, BLOCK, &events, Some(&input));
        assert!(played == expected_sound, "{id}");
        // The first change is audible within the latency and a block.
        let mut plain = Host::new(id);
        assert!(plain.load(&saved));
        plain.set_offline(true);
        plain.activate(48_000.0, BLOCK as u32);
        let plain = plain.play(FRAMES, BLOCK, &[], Some(&input));
        let apart = played
            .iter()
            .zip(&plain)
            .position(|(turned, plain)| turned != plain)
            .unwrap();
        assert!(
            (AUTOMATION[0].0..AUTOMATION[0].0 + latency + BLOCK).contains(&apart),
            "{id}: {apart}"
        );
        assert_eq!(
            (host.name("Macro 1").as_str(), host.name("Macro 4").as_str()),
            ("Latent 1 scale", "Macro 4")
        );
    }
}

/// Sample rate of the bundled codecs, Hz.
const RATE: usize = 48_000;
/// Their host block, samples.
const SHORT_BLOCK: usize = 64;

/// Length of a knock, 5 ms; instruments hardly answer a click of one sample.
const KNOCK: usize = RATE / 200;
/// Bundled codecs.
const BUNDLED_CODECS: [&str; 3] = ["Strings", "Winds", "Voices"];

/// Returns an active effect that plays a bundled codec inline, with macros bound to these controls.
fn codec(name: &str, macros: &[&str]) -> Host {
    let mut host = Host::new(EFFECT);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
    let bundled = BUNDLED.iter().find(|bundled| bundled.name == name).unwrap();
    assert!(host.load(&with_selection(&state(&saved), |selection| {
        selection["model"]["hash"] = bundled.model().content_hash().into();
        selection["macros"] = macros.into();
    })));
    host.set_offline(true);
    host.activate(RATE as f64, SHORT_BLOCK as u32);
    host
}

/// Returns a saw-like tone of 220 Hz, −12 dB.
fn tone(frames: usize) -> Vec<f32> {
    let phase = |frame: usize| frame as f32 * 220.0 / RATE as f32 * std::f32::consts::TAU;
    (0..frames)
        .map(|frame| {
            (1..9)
                .map(|partial| (phase(frame) * partial as f32).sin() / partial as f32)
                .sum::<f32>()
                * 0.14
        })
        .collect()
}

#[test]
fn codecs_answer_a_knock_within_8_ms_and_are_silent_before() {
    for name in BUNDLED_CODECS {
        let mut host = codec(name, &[]);
        assert!(
            host.latency() < 8 * RATE / 1000,
            "{name}: {}",
            host.latency()
        );
        let mut knock = vec![0.0; 2 * RATE];
        knock[RATE..RATE + KNOCK].fill(0.9);
        let sound = host.play(2 * RATE, SHORT_BLOCK, &[], Some(&knock));
        assert!(
            peak(&sound[RATE / 2..RATE]) < db_to_amplitude(-90.0),
            "{name} is silent without input"
        );
        let first = sound
            .iter()
            .skip(RATE)
            .position(|sample| sample.abs() > 0.005)
            .expect("it answers");
        assert!(first < 8 * RATE / 1000, "{name}: {first} samples");
    }
}

#[test]
fn codecs_do_not_play_the_noise_of_a_microphone() {
    let mut noise = vec![0.0; 2 * RATE];
    ondes_engine::dsp::noise::fill(ondes_engine::Kernels::detect(), 1, 0, &mut noise);
    // −60 dB.
    noise
        .iter_mut()
        .for_each(|sample| *sample *= 1e-3 * 3.0_f32.sqrt());
    for name in BUNDLED_CODECS {
        let sound = codec(name, &[]).play(2 * RATE, SHORT_BLOCK, &[], Some(&noise));
        let (heard, played) = (energy(&noise[RATE..]), energy(&sound[RATE..]));
        assert!(played < 2.0 * heard, "{name}: {played} of {heard}");
    }
}

#[test]
fn latents_of_codecs_bend_without_clicks() {
    let input = tone(3 * RATE);
    let bends = [
        ("latent17.offset", 0.625),
        ("latent1.offset", 0.75),
        ("latent2.scale", 0.25),
        ("latent1.hold", 1.0),
    ];
    for (name, (control, position)) in BUNDLED_CODECS
        .iter()
        .flat_map(|name| bends.map(|bend| (name, bend)))
    {
        let event = (3 * RATE / 2, HostEvent::SetParameter("Macro 1", position));
        let sound = codec(name, &[control]).play(3 * RATE, SHORT_BLOCK, &[event], Some(&input));
        let [before, bend, after] = [
            RATE / 2..7 * RATE / 5,
            7 * RATE / 5..8 * RATE / 5,
            2 * RATE..3 * RATE,
        ]
        .map(|part| max_step(&sound[part]));
        assert!(
            bend < 1.5 * before.max(after),
            "{name}, {control}: {bend}, {before} before and {after} after"
        );
    }
}
