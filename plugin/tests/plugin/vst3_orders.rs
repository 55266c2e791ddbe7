//! The VST3 called in the orders of other hosts and of validators: states before or without a
//! component handler, parameters set and saved without processing, interruptions, unusual sample
//! rates.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use vst3::ComWrapper;
use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;

use crate::host::{EFFECT, Host, INSTRUMENT, energy, json, sine, state};
use crate::vst3_module::instance::Instance;
use crate::vst3_module::objects::{Handler, note_on};
use crate::vst3_module::{classes, factory};

/// Returns an instance of each plugin, without a component handler.
fn instances() -> Vec<Instance> {
    let factory = factory();
    classes(&factory)
        .iter()
        .map(|(_, class)| Instance::new(&factory, class))
        .collect()
}

/// Returns the default state of each plugin with these parameters.
fn states(parameters: &[(&str, serde_json::Value)]) -> [Vec<u8>; 2] {
    [INSTRUMENT, EFFECT].map(|id| {
        let mut saved = json(&Host::new(id).save());
        for (name, value) in parameters {
            saved["params"][name] = value.clone();
        }
        state(&saved)
    })
}

fn bypassed() -> [Vec<u8>; 2] {
    states(&[
        ("bypass", serde_json::json!({ "bool": true })),
        ("driver", serde_json::json!({ "string": "inline" })),
    ])
}

/// Returns a saved parameter.
fn saved(instance: &Instance, parameter: &str) -> f64 {
    json(&instance.save())["params"][parameter]["f32"]
        .as_f64()
        .unwrap()
}

/// As Steinberg's validator does it.
#[test]
fn a_state_is_restored_without_a_component_handler() {
    for (instance, state) in instances().into_iter().zip(bypassed()) {
        assert!(instance.value("Bypass") < 0.5);
        assert!(instance.load(&state));
        assert!(
            instance.value("Bypass") > 0.5,
            "the controller shows the restored value"
        );
        assert_eq!(json(&instance.save())["params"]["bypass"]["bool"], true);
    }
}

#[test]
fn a_component_handler_learns_of_restored_values() {
    for (instance, state) in instances().into_iter().zip(bypassed()) {
        let handler = ComWrapper::new(Handler::default());
        assert!(instance.load(&state));
        instance.set_handler(Some(&handler));
        assert!(handler.0.borrow().is_empty());
        assert!(instance.load(&state));
        let told = handler
            .0
            .borrow()
            .iter()
            .any(|flags| flags & RestartFlags_::kParamValuesChanged != 0);
        assert!(told, "{:?}", handler.0.borrow());
        let before = handler.0.borrow().len();
        instance.set_handler(None);
        assert!(instance.load(&state));
        assert_eq!(
            handler.0.borrow().len(),
            before,
            "a removed handler is not called"
        );
    }
}

/// Any calls that a host may make next, at random.
#[test]
fn calls_in_any_order_are_harmless() {
    let states = [states(&[]), bypassed()];
    for (seed, mut instance) in instances().into_iter().chain(instances()).enumerate() {
        let mut random = SmallRng::seed_from_u64(seed as u64);
        let handler = ComWrapper::new(Handler::default());
        let (mut active, mut processing) = (false, false);
        for _ in 0..120 {
            match random.random_range(0..9) {
                0 => instance.set_handler(Some(&handler)),
                1 => instance.set_handler(None),
                2 => {
                    let bypassed = random.random_bool(0.5);
                    assert!(instance.load(&states[usize::from(bypassed)][seed % 2]));
                    assert_eq!(instance.value("Bypass") > 0.5, bypassed);
                }
                3 => assert!(json(&instance.save())["params"]["bypass"]["bool"].is_boolean()),
                4 => {
                    let value = random.random_range(0.0..1.0);
                    instance.set_value("Macro 1", value);
                    assert!((saved(&instance, "macro1") - value).abs() < 1e-6);
                }
                // SAFETY: the controller is alive, and the view is released at once.
                5 => drop(unsafe {
                    vst3::ComPtr::from_raw(instance.controller.createView(ViewType::kEditor))
                }),
                6 if !active => active = instance.activate(48_000.0, 64),
                6 if !processing => {
                    instance.set_active(false);
                    active = false;
                }
                7 if active => {
                    processing = !processing;
                    instance.set_processing(processing);
                }
                8 if processing => {
                    let note = if random.random_bool(0.3) {
                        vec![note_on(3, 60, 0.8)]
                    } else {
                        Vec::new()
                    };
                    let sound = instance.process(&[0.1; 64], note, None);
                    assert!(sound.iter().all(|sample| sample.is_finite()));
                }
                _ => {}
            }
        }
        assert!(instance.load(&states[0][seed % 2]));
    }
}

#[test]
fn a_parameter_set_without_processing_is_saved() {
    for mut instance in instances() {
        let id = instance.id("Output gain");
        let decibels = |text: &str| {
            let mut wide: Vec<u16> = text.encode_utf16().chain([0]).collect();
            let mut value = 0.0;
            // SAFETY: the text ends with NUL and outlives the call.
            let parsed = unsafe {
                instance
                    .controller
                    .getParamValueByString(id, wide.as_mut_ptr(), &mut value)
            };
            assert_eq!(parsed, kResultOk);
            value
        };
        let [minus_6, minus_3, minus_12, plus_6] =
            ["-6 dB", "-3 dB", "-12 dB", "6 dB"].map(decibels);
        let is = |instance: &Instance, expected: f64| {
            let gain = saved(instance, "output_gain");
            assert!((gain - expected).abs() < 1e-3, "{gain} dB, not {expected}");
        };
        // Inactive, active, and between two blocks.
        instance.set_value("Output gain", minus_6);
        is(&instance, -6.0);
        assert!(instance.activate(48_000.0, 64));
        instance.set_value("Output gain", minus_3);
        is(&instance, -3.0);
        instance.set_processing(true);
        instance.process(&[0.0; 64], Vec::new(), None);
        is(&instance, -3.0);
        instance.set_value("Output gain", minus_12);
        is(&instance, -12.0);
        // The processor's value counts if it is newer.
        instance.set_value("Output gain", minus_6);
        instance.process(&[0.0; 64], Vec::new(), Some((id, 0, plus_6)));
        is(&instance, 6.0);
        // So does a state.
        instance.set_value("Output gain", minus_6);
        let state = instance.save();
        instance.set_value("Output gain", plus_6);
        assert!(instance.load(&state));
        is(&instance, -6.0);
        assert!((instance.value("Output gain") - minus_6).abs() < 1e-6);
    }
}

#[test]
fn interruptions_silence_at_once() {
    for (index, mut instance) in instances().into_iter().enumerate() {
        assert!(
            instance.load(&states(&[("driver", serde_json::json!({ "string": "inline" }))])[index])
        );
        assert!(instance.activate(48_000.0, 512));
        instance.set_processing(true);
        let input = sine(512, 0.3);
        let play = |instance: &Instance| {
            let first = instance.process(&input, vec![note_on(0, 60, 0.8)], None);
            first
                .into_iter()
                .chain((0..40).flat_map(|_| instance.process(&input, Vec::new(), None)))
                .collect::<Vec<_>>()
        };
        let silence = |instance: &Instance| {
            (0..40)
                .flat_map(|_| instance.process(&[0.0; 512], Vec::new(), None))
                .fold(0.0, |most: f32, one| most.max(one.abs()))
        };
        // A model may have a small offset of its own.
        let idle = silence(&instance);
        assert!(idle < 1e-4, "plugin {index}: {idle}");
        for reactivate in [false, true] {
            let sound = play(&instance);
            assert!(energy(&sound[sound.len() - 4_800..]) > 1e-6);
            instance.set_processing(false);
            if reactivate {
                instance.set_active(false);
                instance.set_active(true);
            }
            instance.set_processing(true);
            let rest = silence(&instance);
            assert!(
                rest <= 1.01 * idle + 1e-6,
                "plugin {index}, reactivated {reactivate}: {rest}, and {idle} before"
            );
        }
    }
}

/// Among them those of Steinberg's validator, up to 1,234,567.8 Hz.
#[test]
fn any_sample_rate_from_1_khz_to_2_mhz_activates() {
    let rates = [
        1_000.0,
        1_234.567_8,
        8_000.0,
        11_025.0,
        22_050.5,
        192_000.0,
        768_000.0,
        1_234_567.8,
        2_000_000.0,
    ];
    for mut instance in instances() {
        for sample_rate in rates {
            assert!(instance.activate(sample_rate, 1_024), "{sample_rate} Hz");
            instance.set_processing(true);
            let sound: Vec<f32> = (0..8)
                .flat_map(|block| {
                    let note = if block == 0 {
                        vec![note_on(0, 60, 0.8)]
                    } else {
                        Vec::new()
                    };
                    instance.process(&[0.1; 1_024], note, None)
                })
                .collect();
            assert!(
                sound.iter().all(|sample| sample.is_finite()),
                "{sample_rate} Hz"
            );
            instance.set_processing(false);
            instance.set_active(false);
        }
    }
}

/// Nothing is played at such rates, but a host's track goes on.
#[test]
fn the_input_passes_at_other_sample_rates() {
    let input = sine(1_024, 0.3);
    for (index, mut instance) in instances().into_iter().enumerate() {
        for sample_rate in [0.5, 100.0, 2_822_400.0, 11_289_600.0, 1e12] {
            assert!(instance.activate(sample_rate, 1_024), "{sample_rate} Hz");
            instance.set_processing(true);
            let sound = instance.process(&input, vec![note_on(0, 60, 0.8)], None);
            assert!(
                if index == 0 {
                    energy(&sound) == 0.0
                } else {
                    sound == input
                },
                "{sample_rate} Hz"
            );
            instance.set_processing(false);
            instance.set_active(false);
        }
        // The next activation plays again.
        assert!(instance.activate(48_000.0, 1_024));
        instance.set_processing(true);
        let play = |events| instance.process(&input, events, None);
        let sound: Vec<f32> = (0..20)
            .flat_map(|at| {
                play(if at == 0 {
                    vec![note_on(0, 60, 0.8)]
                } else {
                    Vec::new()
                })
            })
            .collect();
        assert!(energy(&sound) > 1e-6 && sound[..1_024] != input[..]);
        instance.set_processing(false);
        instance.set_active(false);
    }
}

/// A side-chain that is not active may have no buffers.
#[test]
fn inactive_inputs_are_silent() {
    for (index, inactive) in [0, 1].into_iter().enumerate() {
        let play = |buses: i32| {
            let mut instance = instances().remove(index);
            assert!(
                instance
                    .load(&states(&[("driver", serde_json::json!({ "string": "inline" }))])[index])
            );
            assert!(instance.activate(48_000.0, 512));
            instance.set_processing(true);
            let input = if index == 0 {
                vec![0.0; 512]
            } else {
                sine(512, 0.3)
            };
            let block = |events| instance.process_buses(&input, buses, events, None);
            (0..20)
                .flat_map(|at| {
                    block(if at == 0 {
                        vec![note_on(0, 60, 0.8)]
                    } else {
                        Vec::new()
                    })
                })
                .collect::<Vec<_>>()
        };
        let sound = play(inactive);
        assert!(
            energy(&sound) > 1e-6,
            "plugin {index} plays without its side-chain"
        );
        assert_eq!(sound, play(inactive + 1), "plugin {index}");
    }
}
