//! The VST3 interfaces of the shared object, compared with its CLAP.

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{ComPtr, ComWrapper};

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, sine, state, state_content};
use crate::vst3_module::instance::Instance;
use crate::vst3_module::objects::{Handler, ParameterQueue, note_on, volume};
use crate::vst3_module::{classes, factory, vendor};

/// Result of [`play`].
struct Played {
    latency: usize,
    tail: usize,
    /// The left channel.
    sound: Vec<f32>,
    /// The saved state afterwards.
    state: Vec<u8>,
}

/// Creates a component, loads a state, and plays `input` with a note at the start and one parameter
/// change: name, sample, value.
fn play(
    factory: &ComPtr<IPluginFactory>,
    class: &TUID,
    state: &[u8],
    input: &[f32],
    block: usize,
    change: (&str, usize, f64),
) -> Played {
    let mut instance = Instance::new(factory, class);
    // SAFETY: the controller is alive; the view is ours to release.
    unsafe {
        assert!(instance.controller.getParameterCount() >= 15);
        let view =
            ComPtr::from_raw(instance.controller.createView(ViewType::kEditor)).expect("a window");
        assert_eq!(
            view.isPlatformTypeSupported(kPlatformTypeX11EmbedWindowID),
            kResultOk
        );
        drop(view);
        // VST3 delivers controllers as parameters; the mapping must offer learnable ones.
        let mapping: ComPtr<IMidiMapping> = instance.component.cast().expect("it listens to MIDI");
        let mut parameter = 0;
        assert_eq!(
            mapping.getMidiControllerAssignment(0, 0, 20, &mut parameter),
            kResultOk
        );
        let units: ComPtr<IUnitInfo> = instance
            .component
            .cast()
            .expect("its parameters are in groups");
        assert_eq!(
            units.getProgramListCount(),
            0,
            "hosts list programs among the presets"
        );
    }
    instance.set_handler(Some(&ComWrapper::new(Handler::default())));
    assert!(instance.load(state));
    let (name, at, value) = change;
    let id = instance.id(name);
    assert!(instance.activate(48_000.0, block));
    instance.set_processing(true);
    // SAFETY: the processor is alive.
    let tail = unsafe { instance.processor.getTailSamples() } as usize;
    let mut sound = Vec::new();
    for (index, piece) in input.chunks(block).enumerate() {
        let events = if index == 0 {
            vec![note_on(10, 60, 0.8)]
        } else {
            Vec::new()
        };
        let here = (index * block..index * block + piece.len()).contains(&at);
        sound.extend(instance.process(
            piece,
            events,
            here.then_some((id, (at % block) as i32, value)),
        ));
    }
    // SAFETY: the processor is alive.
    let latency = unsafe { instance.processor.getLatencySamples() } as usize;
    instance.set_processing(false);
    instance.set_active(false);
    Played {
        latency,
        tail,
        sound,
        state: instance.save(),
    }
}

/// Loads preset files as states, which is how VST3 hosts load presets.
fn check_presets(factory: &ComPtr<IPluginFactory>, classes: &[(String, TUID)]) {
    let presets = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/presets/");
    for ((_, class), (key, model)) in classes
        .iter()
        .zip([("harp", "Plucked"), ("singing-diodes", "Overdrive")])
    {
        let preset = std::fs::read(format!("{presets}{key}.ondes-preset")).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&preset).unwrap();
        let played = play(
            factory,
            class,
            &preset,
            &vec![0.1; 24_000],
            512,
            ("Macro 2", 9_001, 0.9),
        );
        assert!(energy(&played.sound) > 1e-7);
        let state = state_content(&played.state);
        assert_eq!(state["fields"]["ondes"]["model"]["name"], model);
        assert_eq!(
            state["fields"]["ondes"]["preset"]["factory"], key,
            "the window names the preset"
        );
        let (gain, expected) = (
            &state["params"]["output_gain"]["f32"],
            &said["parameters"]["output_gain"],
        );
        assert!(
            (gain.as_f64().unwrap() - expected.as_f64().unwrap_or(0.0)).abs() < 1e-6,
            "{gain}, not {expected}"
        );
    }
}

#[test]
fn vst3_audio_and_states_equal_the_clap() {
    let factory = factory();
    let classes = classes(&factory);
    let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Ondes", "Ondes FX"]);
    // Projects and presets refer to the plugins by these ids.
    let ids: Vec<String> = classes
        .iter()
        .map(|(_, id)| id.iter().map(|byte| format!("{byte:02X}")).collect())
        .collect();
    assert_eq!(
        ids,
        [
            "D2832EC03E945937819AFEB1EEE27629",
            "1E84D1BD68105DC8AC482C228F2986D7"
        ]
    );
    assert_eq!(vendor(&factory), ["Ondes", ""]);
    let input = sine(24_000, 0.3);
    for ((_, class), id) in classes.iter().zip([INSTRUMENT, EFFECT]) {
        // The first round loads a state saved by the CLAP, the second one saved by the VST3.
        let mut saved = json(&Host::new(id).save());
        saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
        let mut before = state(&saved);
        for (name, at, value, plain) in [
            ("Macro 2", 9_001, 0.9, 0.9),
            ("Output gain", 7_003, 0.3, -34.8),
        ] {
            let played = play(&factory, class, &before, &input, 512, (name, at, value));
            let mut host = Host::new(id);
            assert!(host.load(&before));
            host.set_offline(true);
            host.activate(48_000.0, 512);
            assert_eq!((played.latency, played.tail), (host.latency(), host.tail()));
            let mut events = vec![(at, HostEvent::SetParameter(name, plain))];
            if id == INSTRUMENT {
                events.insert(0, (10, HostEvent::NoteOn(60, f64::from(0.8_f32))));
            }
            let expected = host.play(input.len(), 512, &events, Some(&input));
            assert!(energy(&expected[2 * at..]) > 1e-7);
            let same = played.sound.iter().zip(&expected);
            let apart = same
                .map(|(one, other)| (one - other).abs())
                .fold(0.0, f32::max);
            assert!(apart < 1e-6, "{id} {name}: {apart} apart");
            assert_eq!(
                state_content(&played.state),
                state_content(&host.save()),
                "{id} {name}"
            );
            assert!((host.value(name) - plain).abs() < 1e-4);
            before = played.state;
        }
    }
    check_presets(&factory, &classes);
}

#[test]
fn the_volume_of_a_note_has_the_range_of_vst3() {
    let factory = factory();
    let classes = classes(&factory);
    let level = |value: Option<f64>| {
        let mut instance = Instance::new(&factory, &classes[0].1);
        instance.set_handler(Some(&ComWrapper::new(Handler::default())));
        assert!(instance.activate(48_000.0, 512));
        instance.set_processing(true);
        let mut sound = instance.process(&[0.0; 512], vec![note_on(0, 60, 0.8)], None);
        let mut events: Vec<_> = value
            .map(|value| volume(0, 60, value))
            .into_iter()
            .collect();
        for _ in 0..50 {
            sound.extend(instance.process(&[0.0; 512], std::mem::take(&mut events), None));
        }
        instance.set_processing(false);
        instance.set_active(false);
        10.0 * energy(&sound[12_000..]).log10()
    };
    let [plain, same, half] = [None, Some(0.25), Some(0.125)].map(level);
    assert!(
        (same - plain).abs() < 0.1,
        "{same} dB at 0 dB, {plain} dB without"
    );
    assert!(
        (half - plain + 6.0).abs() < 1.5,
        "{half} dB at -6 dB, {plain} dB without"
    );
}

#[test]
fn all_points_of_a_block_take_effect() {
    let factory = factory();
    let classes = classes(&factory);
    let mut instance = Instance::new(&factory, &classes[0].1);
    instance.set_handler(Some(&ComWrapper::new(Handler::default())));
    assert!(instance.activate(48_000.0, 4_800));
    instance.set_processing(true);
    let silence = [0.0; 4_800];
    let id = instance.id("Output gain");
    instance.process(&silence, vec![note_on(0, 60, 0.8)], None);
    let points = |points: &[(i32, f64)]| {
        let queue = ParameterQueue {
            id,
            points: points.to_vec(),
        };
        let [left, _] = instance.process_queue([&silence; 2], 1, Vec::new(), Some(queue));
        left
    };
    points(&[(0, 5.0 / 7.0)]);
    let sound = points(&[(0, 0.0), (4_000, 5.0 / 7.0)]);
    let (quiet, loud) = (energy(&sound[2_000..3_900]), energy(&sound[4_500..]));
    assert!(
        loud > 100.0 * quiet,
        "the first point mutes until the second: {quiet}, {loud}"
    );
    // Ardour also sends the value at the end of the block.
    points(&[(0, 0.5), (4_800, 0.5)]);
    let saved = json(&instance.save())["params"]["output_gain"]["f32"]
        .as_f64()
        .unwrap();
    assert!((saved + 18.0).abs() < 0.01, "{saved} dB");
    instance.set_processing(false);
    instance.set_active(false);
}
