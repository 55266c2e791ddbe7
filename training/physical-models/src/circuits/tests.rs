//! Circuits against published figures, and the solver against linear theory.

use std::f64::consts::TAU;

use ondes_engine::dsp::level::{amplitude_to_db_f64, peak};

use super::netlist::{GROUND, Netlist};
use super::solver::{Simulation, operating_point, small_signal_gain};
use super::{Circuit, circuit, names};

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

/// Measures the amplitude of the partial at `hz` over the last 0.2 s, which must be whole periods.
fn partial(sound: &[f32], hz: f64) -> f64 {
    let last = &sound[sound.len() - (0.2 * RATE_HZ) as usize..];
    let (mut re, mut im) = (0.0, 0.0);
    for (n, &x) in last.iter().enumerate() {
        let (sin, cos) = (TAU * hz * n as f64 / RATE_HZ).sin_cos();
        re += f64::from(x) * cos;
        im += f64::from(x) * sin;
    }
    2.0 * re.hypot(im) / last.len() as f64
}

fn play(circuit: &Circuit, dry: &[f32]) -> Vec<f32> {
    circuit
        .play(dry, RATE_HZ)
        .expect("the circuit can be solved")
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
    let overdrive =
        operating_point(&circuit("overdrive").expect("a circuit").netlist).expect("it rests");
    assert!(
        overdrive.output.abs() < 1e-6 && overdrive.ports[0].abs() < 1e-6,
        "{overdrive:?}"
    );
    // Typical for 100 kΩ, 1.5 kΩ and 300 V: about 1.5 V at the cathode and 200 V at the plate.
    let triode = operating_point(&circuit("triode").expect("a circuit").netlist).expect("it rests");
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
    let fuzz = operating_point(&circuit("fuzz").expect("a circuit").netlist).expect("it rests");
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
            let peak = 1e-5 / circuit.input_volts;
            let heard = partial(&play(&circuit, &sine(hz, peak, 0.6)), hz) / peak;
            let gain = small_signal_gain(&circuit.netlist, hz)
                .expect("it can be solved")
                .norm();
            let expected = gain * circuit.input_volts / circuit.output_volts.abs();
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
    let at = |hz: f64| {
        amplitude_to_db_f64(
            small_signal_gain(&circuit.netlist, hz)
                .expect("it can be solved")
                .norm(),
        )
    };
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

#[test]
fn full_scale_noise_stays_in_bounds_and_converges() {
    for name in names() {
        // A step that does not converge is an error.
        let sound = play(&circuit(name).expect("a circuit"), &noise(24_000));
        let peak = peak(&sound);
        assert!(
            peak.is_finite() && (0.05..1.0).contains(&peak),
            "{name}: peak {peak}"
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
        burst.resize(6 * 48_000, 0.0);
        let sound = play(&circuit, &burst);
        let left = peak(&sound[sound.len() - 480..]);
        assert!(left < 2e-3, "{name}: {left}");
    }
}

#[test]
fn more_oversampling_changes_little() {
    let dry = sine(1_234.0, 0.3, 0.2);
    for name in names() {
        let circuit = circuit(name).expect("a circuit");
        let at = |factor| {
            circuit
                .play_oversampled(&dry, RATE_HZ, factor)
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
    assert!(
        circuit("nothing")
            .err()
            .is_some_and(|error| error.to_string().contains("overdrive, triode, fuzz"))
    );
    for name in names() {
        assert_eq!(&circuit(name).expect("a circuit").name, name);
    }
}
