//! Stereo and mono tracks in CLAP and VST3 hosts.

use serde_json::json;

use crate::host::{EFFECT, Host, json, state};

const FRAMES: usize = 24_000;
const BLOCK: usize = 480;

fn tones() -> [Vec<f32>; 2] {
    [(220.0, 0.3), (331.0, -0.2)].map(|(hz, amplitude): (f64, f64)| {
        let sample = |n: usize| {
            (amplitude * (std::f64::consts::TAU * hz * n as f64 / 48_000.0).sin()) as f32
        };
        (0..FRAMES).map(sample).collect()
    })
}

/// Returns an inactive effect that plays in the callback; `channels` is the saved choice, if any.
fn effect(channels: Option<&str>) -> Host {
    let mut host = Host::new(EFFECT);
    let mut saved = json(&host.save());
    saved["params"]["driver"] = json!({ "string": "inline" });
    match channels {
        Some(channels) => saved["params"]["channels"] = json!({ "string": channels }),
        None => drop(
            saved["params"]
                .as_object_mut()
                .unwrap()
                .remove("channels")
                .unwrap(),
        ),
    }
    assert!(host.load(&state(&saved)));
    host.set_offline(true);
    host
}

/// Plays a sound with ports of N channels.
fn play<const N: usize>(host: &mut Host, input: [&[f32]; N]) -> [Vec<f32>; N] {
    let mut output = input.map(|_| Vec::new());
    for start in (0..FRAMES).step_by(BLOCK) {
        let block = host.channels_block(
            BLOCK,
            &[],
            Some(input.map(|channel| &channel[start..start + BLOCK])),
        );
        output
            .iter_mut()
            .zip(block)
            .for_each(|(output, block)| output.extend(block));
    }
    output
}

/// Plays a sound on a mono track.
fn mono(input: &[f32]) -> Vec<f32> {
    let mut host = effect(Some("stereo"));
    assert!(host.select_ports(1));
    host.activate(48_000.0, BLOCK as u32);
    let [output] = play(&mut host, [input]);
    assert!(output.iter().any(|sample| sample.abs() > 0.01));
    output
}

#[test]
fn a_stereo_track_is_two_mono_tracks() {
    let [left, right] = tones();
    let play = |channels| {
        let mut host = effect(channels);
        host.activate(48_000.0, BLOCK as u32);
        play(&mut host, [&left, &right])
    };
    assert!(play(Some("stereo")) == [mono(&left), mono(&right)]);
    assert!(play(Some("left")) == [mono(&left), mono(&left)]);
    let mean: Vec<f32> = left
        .iter()
        .zip(&right)
        .map(|(left, right)| 0.5 * left + 0.5 * right)
        .collect();
    assert!(play(Some("mono")) == [mono(&mean), mono(&mean)]);
    assert!(
        play(None) == play(Some("mono")),
        "a state from before the choice plays as it did"
    );
    let mut fresh = Host::new(EFFECT);
    let choice = fresh.value("Channels");
    assert_eq!(fresh.value_to_text("Channels", choice), "Stereo");
}

#[test]
fn port_configurations_are_stereo_and_mono() {
    let mut host = effect(Some("stereo"));
    assert!(host.select_ports(2) && host.select_ports(1) && !host.select_ports(3));
    let [left, right] = tones();
    for configuration in [1, 0, 1] {
        assert!(host.select_ports(configuration));
        host.activate(48_000.0, BLOCK as u32);
        if configuration == 1 {
            assert!(play(&mut host, [&left]) == [mono(&left)]);
        } else {
            assert!(play(&mut host, [&left, &right]) == [mono(&left), mono(&right)]);
        }
        host.deactivate();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn vst3_arrangements_are_stereo_and_mono() {
    use vst3::Steinberg::Vst::SpeakerArr;

    use crate::vst3_module::instance::Instance;
    use crate::vst3_module::{classes, factory};

    let [left, right] = tones();
    let saved = effect(Some("stereo")).save();
    let factory = factory();
    let classes = classes(&factory);
    let (_, class) = classes
        .iter()
        .find(|(name, _)| name == "Ondes FX")
        .expect("the effect is listed");
    let mut instance = Instance::new(&factory, class);
    assert!(instance.load(&saved));
    for _ in 0..2 {
        assert!(instance.arrange(SpeakerArr::kMono) && instance.arrangement() == SpeakerArr::kMono);
        assert!(!instance.arrange(SpeakerArr::k51) && instance.arrangement() == SpeakerArr::kMono);
        assert!(instance.activate(48_000.0, FRAMES));
        instance.set_processing(true);
        let [found] = instance.process_channels([&left], 2, Vec::new(), None);
        assert!(found == mono(&left));
        instance.set_processing(false);
        instance.set_active(false);
        assert!(
            instance.arrange(SpeakerArr::kStereo) && instance.arrangement() == SpeakerArr::kStereo
        );
        assert!(instance.activate(48_000.0, FRAMES));
        instance.set_processing(true);
        let found = instance.process_channels([&left, &right], 2, Vec::new(), None);
        assert!(found == [mono(&left), mono(&right)]);
        instance.set_processing(false);
        instance.set_active(false);
    }
}
