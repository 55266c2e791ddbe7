//! Circuits against published figures, and the solver against linear theory.

use std::f64::consts::TAU;

use ondes_engine::dsp::level::{amplitude_to_db_f64, peak};

use super::device::{Device, Pentode};
use super::netlist::{GROUND, Netlist};
use super::solver::{Simulation, operating_point, small_signal_gain};
use super::{ALL, Circuit, Positions, circuit, names};

const RATE_HZ: f64 = 48_000.0;

fn sine(hz: f64, peak: f64, seconds: f64) -> Vec<f32> {
    (0..(seconds * RATE_HZ) as usize)
        .map(|n| (peak * (TAU * hz * n as f64 / RATE_HZ).sin()) as f32)
        .collect()
}

/// Returns white noise from −1 to 1, the same each time.
fn noise(samples: usize) -> Vec<f32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..samples)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) as f32
        })
        .collect()
}

/// Measures the amplitude of the partial at `hz` over the last 0.1 s, which must be whole periods.
fn partial(sound: &[f32], hz: f64) -> f64 {
    let last = &sound[sound.len() - (0.1 * RATE_HZ) as usize..];
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &x) in last.iter().enumerate() {
        let (sin, cos) = (TAU * hz * n as f64 / RATE_HZ).sin_cos();
        re += f64::from(x) * cos;
        im += f64::from(x) * sin;
    }
    2.0 * re.hypot(im) / last.len() as f64
}

fn play(circuit: &Circuit, dry: &[f32]) -> Vec<f32> {
    play_at(circuit, circuit.defaults(), dry)
}

fn play_at(circuit: &Circuit, positions: Positions, dry: &[f32]) -> Vec<f32> {
    circuit
        .play(positions, dry, RATE_HZ)
        .unwrap_or_else(|error| panic!("{} at {positions:?}: {error:#}", circuit.name))
}

/// Returns the only netlist of a circuit, with its knobs at their defaults.
fn netlist(name: &str) -> Netlist {
    let circuit = circuit(name).expect("a circuit");
    circuit.stages(circuit.defaults()).remove(0)
}

/// Returns the small-signal gain of a circuit from volts to volts, with its knobs at their defaults.
fn gain(circuit: &Circuit, hz: f64) -> f64 {
    let stages = circuit.stages(circuit.defaults());
    let gains = stages.iter().map(|stage| {
        small_signal_gain(stage, hz)
            .expect("it can be solved")
            .norm()
    });
    gains.product()
}

#[test]
fn a_low_pass_has_its_time_constant() {
    let (mut net, input, output) = Netlist::new();
    net.resistor(input, output, 10e3);
    net.capacitor(output, GROUND, 100e-9);
    let mut simulation = Simulation::new(&net, 8.0 * RATE_HZ).expect("it can be solved");
    let volts: Vec<f64> = (0..3_840).map(|_| simulation.step(1.0)).collect();
    // 1 ms is 384 steps; the trapezoidal rule responds to the jump half a step early.
    let expected = 1.0 - (-(384.0 + 0.5) / 384.0_f64).exp();
    assert!(
        (volts[384] - expected).abs() < 1e-5,
        "{} for {expected}",
        volts[384]
    );
    assert!((volts[3_839] - 1.0).abs() < 1e-4);
}

#[test]
fn operating_points_match_the_originals() {
    let overdrive = operating_point(&netlist("overdrive")).expect("it rests");
    assert!(
        overdrive.output.abs() < 1e-6 && overdrive.ports[0].abs() < 1e-6,
        "{overdrive:?}"
    );
    // Typical for 100 kΩ, 1.5 kΩ and 300 V: about 1.5 V at the cathode and 200 V at the plate.
    let triode = operating_point(&netlist("triode")).expect("it rests");
    let (grid, plate) = (triode.ports[0], triode.ports[1]);
    assert!(
        (-2.2..-1.0).contains(&grid) && (170.0..230.0).contains(&plate),
        "{triode:?}"
    );
    // The current through the plate resistor equals that through the cathode resistor.
    let (through_plate, through_cathode) = ((300.0 - plate + grid) / 100e3, -grid / 1.5e3);
    assert!(
        (through_plate / through_cathode - 1.0).abs() < 0.01,
        "{through_plate} {through_cathode}"
    );
    // The first collector is two junctions above ground; both transistors conduct, and the second
    // is not saturated.
    let fuzz = operating_point(&netlist("fuzz")).expect("it rests");
    let [first, first_reverse, second, second_reverse] = fuzz.ports[..] else {
        panic!("four ports")
    };
    let first_collector = first - first_reverse;
    let second_collector = first_collector - second_reverse;
    assert!(
        (0.5..0.75).contains(&first) && (0.5..0.75).contains(&second),
        "{fuzz:?}"
    );
    assert!((1.0..1.8).contains(&first_collector), "{first_collector}");
    assert!((2.0..6.5).contains(&second_collector), "{second_collector}");
}

#[test]
fn small_signals_have_the_linear_gain() {
    for name in names() {
        let circuit = circuit(name).expect("a circuit");
        for hz in [110.0, 1_000.0, 5_000.0] {
            let peak = 1e-5 / circuit.input_volts.abs();
            let heard = partial(&play(&circuit, &sine(hz, peak, 0.3)), hz) / peak;
            let expected = gain(&circuit, hz) * (circuit.input_volts / circuit.output_volts).abs();
            assert!(
                (amplitude_to_db_f64(heard / expected)).abs() < 0.1,
                "{name} at {hz} Hz: {heard} for {expected}"
            );
        }
    }
}

#[test]
fn the_overdrive_has_the_gain_of_its_resistors() {
    // The op-amp stage by hand: one plus the feedback over the impedance to ground, times the
    // filters around it.
    let circuit = circuit("overdrive").expect("a circuit");
    let at = |hz: f64| amplitude_to_db_f64(gain(&circuit, hz));
    // At 1 kHz 351 kΩ ∥ 51 pF ∥ the diodes' 8.97 MΩ over |4.7 kΩ − j 3.39 kΩ| is 35.3 dB, minus the
    // loss of the tone stage.
    assert!((30.0..37.0).contains(&at(1_000.0)), "{}", at(1_000.0));
    // Bass is amplified less and treble attenuated: the mid hump that this pedal is known for.
    assert!(at(1_000.0) > at(80.0) + 10.0 && at(1_000.0) > at(10_000.0) + 6.0);
}

#[test]
fn symmetric_circuits_have_odd_harmonics_only() {
    let harmonics = |name: &str, peak: f64| {
        let sound = play(&circuit(name).expect("a circuit"), &sine(220.0, peak, 1.0));
        [1.0, 2.0, 3.0].map(|order| partial(&sound, 220.0 * order))
    };
    let [one, two, three] = harmonics("overdrive", 0.3);
    assert!(
        amplitude_to_db_f64(two / one) < -90.0,
        "a symmetric clipper has no second harmonic: {}",
        amplitude_to_db_f64(two / one)
    );
    assert!(
        amplitude_to_db_f64(three / one) > -20.0,
        "{}",
        amplitude_to_db_f64(three / one)
    );
    for (name, peak) in [("triode", 0.3), ("fuzz", 0.2)] {
        let [one, two, _] = harmonics(name, peak);
        assert!(
            amplitude_to_db_f64(two / one) > -30.0,
            "{name} is lopsided: {}",
            amplitude_to_db_f64(two / one)
        );
    }
}

/// Returns all positions with each knob at one of its ends.
fn corners(circuit: &Circuit) -> impl Iterator<Item = Positions> {
    let knobs = circuit.knobs.len();
    (0..1_usize << knobs).map(move |corner| {
        std::array::from_fn(|knob| f64::from(u8::from(knob < knobs && corner >> knob & 1 == 1)))
    })
}

#[test]
fn full_scale_noise_stays_in_bounds_and_converges() {
    // A step that does not converge is an error.
    let dry = noise(1_200);
    for circuit in &ALL {
        let loudest = peak(&play(circuit, &dry));
        assert!(
            (0.05..1.0).contains(&loudest),
            "{}: peak {loudest}",
            circuit.name
        );
        for positions in corners(circuit) {
            let loudest = peak(&play_at(circuit, positions, &dry));
            assert!(
                loudest < 1.4,
                "{} at {positions:?}: {loudest}",
                circuit.name
            );
        }
    }
}

#[test]
fn the_bundled_captures_circuits_are_what_they_learnt_from() {
    // Every 1200th sample of these circuits when the captures were made of them.
    let expected: [(&str, [f32; 8]); 3] = [
        (
            "overdrive",
            [
                0.26596844,
                0.09799974,
                -0.1266763,
                -0.08560174,
                0.059446357,
                0.049548537,
                -0.005991082,
                -0.039539583,
            ],
        ),
        (
            "triode",
            [
                -0.18068826,
                0.06386366,
                0.10984749,
                -0.09908471,
                -0.04641534,
                0.02371863,
                0.026070042,
                -0.004834981,
            ],
        ),
        (
            "fuzz",
            [
                0.470849,
                -0.07324241,
                -0.29101908,
                -0.36823744,
                0.5999598,
                -0.06210168,
                -0.15504262,
                -0.14357024,
            ],
        ),
    ];
    let mut dry = noise(9_600);
    for (n, x) in dry.iter_mut().enumerate() {
        let fall = 0.8 * (-(n as f64) / 2_400.0).exp();
        let tone = (TAU * 110.0 * n as f64 / RATE_HZ).sin();
        *x = (fall * (0.7 * tone + 0.3 * f64::from(*x))) as f32;
    }
    for (name, expected) in expected {
        let sound = play(&circuit(name).expect("a circuit"), &dry);
        for (index, expected) in expected.into_iter().enumerate() {
            let found = sound[100 + 1_200 * index];
            assert!(
                (found - expected).abs() < 1e-6,
                "{name}: {found} for {expected}"
            );
        }
    }
}

/// Returns the sound of a circuit with one knob at each of its ends, the others at their defaults.
fn ends(circuit: &Circuit, knob: usize, dry: &[f32]) -> [Vec<f32>; 2] {
    [0.0, 1.0].map(|position| {
        let mut positions = circuit.defaults();
        positions[knob] = position;
        play_at(circuit, positions, dry)
    })
}

#[test]
fn knobs_do_what_they_say() {
    let quiet = sine(220.0, 0.02, 0.14);
    let middle = sine(600.0, 0.01, 0.14);
    let distortion = |sound: &[f32]| {
        let overtones = (2..30).map(|order| partial(sound, 220.0 * f64::from(order)).powi(2));
        overtones.sum::<f64>().sqrt() / partial(sound, 220.0)
    };
    for circuit in &ALL {
        for (index, knob) in circuit.knobs.iter().enumerate() {
            // More of what the knob is named for, turned up.
            let more = |dry: &[f32], of: &dyn Fn(&[f32]) -> f64| {
                let [low, high] = ends(circuit, index, dry);
                of(&high) / of(&low)
            };
            let at = |hz: f64| {
                let dry = sine(hz, 0.01, 0.14);
                more(&dry, &|sound| partial(sound, hz))
            };
            let ratio = match knob.name {
                "Gain" | "Drive" => more(&quiet, &distortion),
                "Fuzz" if circuit.name != "octave-fuzz" => more(&quiet, &distortion),
                "Octave" => more(&quiet, &|sound| {
                    partial(sound, 440.0) / partial(sound, 220.0)
                }),
                "Volume" | "Boost" => more(&quiet, &|sound| partial(sound, 220.0)),
                "Treble" => at(4_000.0),
                "Tone" => at(4_000.0) / at(220.0),
                "Bass" | "Range" => at(100.0),
                "Middle" => more(&middle, &|sound| partial(sound, 600.0)),
                "Cut" => 1.0 / at(4_000.0),
                "Fuzz" => 2.0,
                other => panic!("{other}: say what it does"),
            };
            assert!(ratio > 1.2, "{} {}: {ratio}", circuit.name, knob.name);
        }
    }
}

#[test]
fn unknown_knobs_and_positions_are_refused() {
    let overdrive = circuit("overdrive").expect("a circuit");
    let message = |setting| format!("{:#}", overdrive.positions([setting]).expect_err("refused"));
    assert_eq!(
        message(("Gain", 5.0)),
        "overdrive has no knob \"Gain\"; available: Drive, Tone"
    );
    for outside in [-0.1, 10.5, f64::NAN] {
        assert_eq!(
            message(("tone", outside)),
            format!("knob Tone cannot be at {outside}; use 0 to 10")
        );
    }
}

#[test]
fn pentodes_draw_the_current_of_their_data_sheets() {
    // Plate, screen and grid voltage of the typical operation in class A, and the plate's current.
    let sheets = [
        (super::valve::BEAM_6L6, 250.0, -14.0, 72e-3),
        (super::valve::EL34, 250.0, -13.5, 100e-3),
        (super::valve::EL84, 250.0, -7.3, 48e-3),
    ];
    for (valve, volts, grid, expected) in sheets {
        let valve = Device::Pentode(Pentode {
            screen_v: volts,
            ..valve
        });
        let (currents, _) = valve.currents([grid, volts]);
        assert!(
            (currents[1] / expected - 1.0).abs() < 0.15,
            "{valve:?}: {currents:?}"
        );
    }
}

#[test]
fn silence_stays_silent_and_bursts_decay() {
    for name in names() {
        let circuit = circuit(name).expect("a circuit");
        let quiet = play(&circuit, &[0.0; 4_800]);
        assert!(quiet.iter().all(|x| x.abs() < 1e-6), "{name}");
        let mut burst = noise(2_400);
        burst.resize(72_000, 0.0);
        let sound = play(&circuit, &burst);
        let left = peak(&sound[sound.len() - 480..]);
        assert!(left < 2e-3, "{name}: {left}");
    }
}

#[test]
fn more_oversampling_changes_little() {
    let dry = sine(1_234.0, 0.3, 0.05);
    for name in names() {
        let circuit = circuit(name).expect("a circuit");
        let at = |factor| {
            circuit
                .play_oversampled(circuit.defaults(), &dry, RATE_HZ, factor)
                .expect("it can be solved")
        };
        let (four, eight, sixteen) = (at(4), at(8), at(16));
        let difference = |a: &[f32], b: &[f32]| {
            let error: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            amplitude_to_db_f64(
                (error / b.iter().map(|b| f64::from(*b).powi(2)).sum::<f64>()).sqrt(),
            )
        };
        let (coarse, fine) = (difference(&four, &sixteen), difference(&eight, &sixteen));
        assert!(
            fine < -40.0 && fine < coarse - 4.0,
            "{name}: {coarse} dB, then {fine} dB"
        );
    }
}

#[test]
fn names_are_consistent_and_unknown_ones_refused() {
    assert!(circuit("nothing").err().is_some_and(|error| {
        error
            .to_string()
            .contains("clean, breakup, crunch, lead, triode")
    }));
    for name in names() {
        assert_eq!(circuit(name).expect("a circuit").name, name);
    }
}
