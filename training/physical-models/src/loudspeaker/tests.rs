//! Features of measured guitar cabinets, and limits in which the model is known exactly.

use std::f64::consts::TAU;
use std::path::Path;
use std::sync::LazyLock;

use num_complex::Complex64;
use ondes_engine::media::read_mono;

use super::air::{AIR_DENSITY, SOUND_SPEED};
use super::cabinets::{CABINETS, CabinetDesign};
use super::driver::{Driver, DriverLoad};
use super::enclosure::{Back, Enclosure};
use super::sound_field::SoundField;
use super::{LENGTH, RATE_HZ, impulse_response};

/// Responses of all cabinets, computed once.
static RESPONSES: LazyLock<Vec<Vec<f64>>> =
    LazyLock::new(|| CABINETS.iter().map(impulse_response).collect());

fn each() -> impl Iterator<Item = (&'static CabinetDesign, &'static [f64])> {
    CABINETS.iter().zip(RESPONSES.iter().map(Vec::as_slice))
}

/// Returns the gain at a frequency, dB.
fn gain_db(response: &[f64], hz: f64) -> f64 {
    let w = TAU * hz / RATE_HZ;
    let sum: Complex64 = response
        .iter()
        .enumerate()
        .map(|(n, x)| Complex64::from_polar(*x, -w * n as f64))
        .sum();
    20.0 * sum.norm().log10()
}

/// Frequencies in a range, 24 per octave.
fn within(low_hz: f64, high_hz: f64) -> impl Iterator<Item = f64> + Clone {
    let steps = (24.0 * (high_hz / low_hz).log2()) as i32;
    (0..=steps).map(move |step| low_hz * (f64::from(step) / 24.0).exp2())
}

/// Returns the mean power in a range, dB.
fn level_db(response: &[f64], low_hz: f64, high_hz: f64) -> f64 {
    let bins = within(low_hz, high_hz);
    let power: f64 = bins
        .clone()
        .map(|hz| 10f64.powf(0.1 * gain_db(response, hz)))
        .sum();
    10.0 * (power / bins.count() as f64).log10()
}

/// Returns the frequency of the largest gain in a range, Hz.
fn peak_hz(response: &[f64], low_hz: f64, high_hz: f64) -> f64 {
    within(low_hz, high_hz)
        .max_by(|a, b| gain_db(response, *a).total_cmp(&gain_db(response, *b)))
        .unwrap()
}

#[test]
fn every_cabinet_has_a_resonance_a_presence_and_a_steep_end() {
    for (design, response) in each() {
        let name = design.name;
        let middle = level_db(response, 700.0, 1_400.0);
        let resonance = peak_hz(response, 50.0, 160.0);
        assert!(
            (65.0..125.0).contains(&resonance),
            "{name}: resonates at {resonance:.0} Hz"
        );
        assert!(
            gain_db(response, 35.0) < gain_db(response, resonance) - 9.0,
            "{name} has too much below its resonance"
        );
        let presence = peak_hz(response, 1_000.0, 6_000.0);
        let raised = gain_db(response, presence) - middle;
        assert!(
            (2_000.0..4_000.0).contains(&presence),
            "{name}: presence at {presence:.0} Hz"
        );
        assert!(
            (3.0..12.0).contains(&raised),
            "{name}: presence of {raised:.1} dB"
        );
        for (low_hz, high_hz, most) in [(6_500.0, 9_500.0, -9.0), (10_000.0, 20_000.0, -25.0)] {
            let level = level_db(response, low_hz, high_hz) - middle;
            assert!(
                level < most,
                "{name}: {level:.1} dB from {low_hz} to {high_hz} Hz"
            );
        }
    }
}

#[test]
fn responses_begin_at_once_and_decay_within_their_length() {
    for (design, response) in each() {
        assert_eq!(response.len(), LENGTH);
        let total: f64 = response.iter().map(|x| x * x).sum();
        let left_db = |ms: f64| {
            let from = (1e-3 * ms * RATE_HZ) as usize;
            10.0 * (response[from..].iter().map(|x| x * x).sum::<f64>() / total).log10()
        };
        let peak = response.iter().position(|x| x.abs() > 0.89).unwrap();
        assert!(
            peak < 48,
            "{}: the peak comes after {peak} samples",
            design.name
        );
        // Energy that is still to come: a cabinet rings for some 20 ms.
        assert!(
            left_db(5.0) > -45.0 && left_db(20.0) < -35.0 && left_db(34.0) < -55.0,
            "{}",
            design.name
        );
        assert!(
            left_db(20.0) > -70.0,
            "{} is shorter than a loudspeaker",
            design.name
        );
        assert!(response[LENGTH - 1].abs() < 1e-6);
    }
}

#[test]
fn an_open_back_has_less_bass_than_a_closed_one() {
    let bass: Vec<f64> = each()
        .map(|(_, h)| level_db(h, 80.0, 160.0) - level_db(h, 700.0, 1_400.0))
        .collect();
    assert!(bass[2] > bass[0].max(bass[1]) + 5.0, "{bass:.1?}");
}

#[test]
fn a_rigid_cone_is_the_second_order_system_of_thiele_and_small() {
    let mut driver = CABINETS[2].driver;
    driver.paper.modulus = 1e15;
    driver.paper.loss = (0.0, 0.0);
    driver.neck_stiffness = 1e12;
    driver.coil_inductance.0 = 0.0;
    driver.cap.1 = 1e6;
    driver.surround.1 = 0.0;
    let (free_hz, mass) = (driver.resonance_hz(), driver.moving_mass());
    let stiffness = driver.stiffness.0 + driver.stiffness.1;
    let resistance = driver.coil_resistance + driver.source_resistance;
    for hz in [20.0, 50.0, free_hz, 120.0] {
        let w = TAU * hz;
        let jw = Complex64::new(0.0, w);
        let damping = driver.resistance + driver.force_factor.powi(2) / resistance;
        let velocity = driver.force_factor / resistance / (jw * mass + damping + stiffness / jw);
        let found = driver
            .motion(
                w,
                &DriverLoad {
                    box_impedance: Complex64::ZERO,
                },
            )
            .total()
            / driver.area();
        let error_db = 20.0 * (found.norm() / velocity.norm()).log10();
        // The air takes a little energy away, which the formula leaves out.
        assert!(error_db.abs() < 0.5, "{hz:.0} Hz: {error_db:.2} dB");
    }
}

#[test]
fn cones_break_up_between_two_and_five_kilohertz() {
    for design in &CABINETS {
        let driver: &Driver = &design.driver;
        let rings = driver.rings();
        let area: f64 = rings.iter().map(|ring| ring.area).sum();
        assert!((area / driver.area() - 1.0).abs() < 1e-9);
        let spread = |hz: f64| {
            let motion = driver.motion(
                TAU * hz,
                &DriverLoad {
                    box_impedance: Complex64::ZERO,
                },
            );
            let speed = |ring: usize| motion.flow[ring] / rings[ring].area;
            (speed(rings.len() - 1) / speed(1)).norm()
        };
        // As one piece, then ringing, then with a resting edge.
        assert!((spread(150.0) - 1.0).abs() < 0.1, "{}", spread(150.0));
        let ringing = within(1_500.0, 5_000.0).map(spread).fold(0.0, f64::max);
        assert!(ringing > 1.5, "{}: {ringing:.2}", design.name);
        assert!(within(9_000.0, 18_000.0).map(spread).fold(0.0, f64::max) < 1.2);
        let (hz, q) = (driver.resonance_hz(), driver.electrical_q());
        assert!(
            (70.0..100.0).contains(&hz) && (0.4..1.0).contains(&q),
            "{hz:.0} Hz, Q {q:.2}"
        );
    }
}

#[test]
fn boxes_are_a_spring_or_a_mass_at_low_frequencies() {
    let w = TAU * 10.0;
    let size = [0.5, 0.4, 0.25];
    let centre = |back| Enclosure {
        size,
        drivers: &[[0.0, 0.0]],
        back,
    };
    let spring = AIR_DENSITY * SOUND_SPEED.powi(2) / size.iter().product::<f64>() / w;
    let closed = centre(Back::Closed { q: 10.0 });
    let found = closed.impedance(w);
    assert!(
        (found.im / -spring - 1.0).abs() < 0.02 && found.re.abs() < 0.01 * spring,
        "{found} for {spring}"
    );
    assert!(closed.rear_flow(w).is_none());
    let open = centre(Back::Open { part: 1.0 });
    assert!(open.impedance(w).im > 0.0 && (open.rear_flow(w).unwrap() - 1.0).norm() < 0.02);
    // The mode across the depth stands where half a wave fits in.
    let standing = within(500.0, 900.0).max_by(|a, b| {
        let size = |hz: f64| closed.impedance(TAU * hz).re;
        size(*a).total_cmp(&size(*b))
    });
    let expected = SOUND_SPEED / (2.0 * size[2]);
    assert!(
        (standing.unwrap() / expected - 1.0).abs() < 0.03,
        "{standing:?} for {expected}"
    );
}

#[test]
fn a_closed_cabinet_far_away_radiates_all_around_at_low_frequencies() {
    let mut design = CABINETS[2];
    design.microphone.position = [0.0, 0.0, 20.0];
    let w = TAU * 10.0;
    let motion = design.driver.motion(
        w,
        &DriverLoad {
            box_impedance: design.enclosure.impedance(w),
        },
    );
    let near_by_flat = SoundField::new(&CabinetDesign {
        baffle: [4_000.0, 4_000.0],
        ..design
    });
    let step = SoundField::new(&design).pressure(w, &motion).norm()
        / near_by_flat.pressure(w, &motion).norm();
    // Half the pressure of a driver in a wall: 6 dB.
    assert!((step - 0.5).abs() < 0.03, "{step}");
}

#[test]
fn the_bundled_files_are_what_the_model_makes() {
    for (design, response) in each() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/cabinets");
        let (samples, rate) = read_mono(folder.join(format!("{}.wav", design.name))).unwrap();
        assert_eq!((rate, samples.len()), (48_000, LENGTH));
        let apart = samples
            .iter()
            .zip(response)
            .map(|(a, b)| (f64::from(*a) - b).abs())
            .fold(0.0, f64::max);
        // Two steps of 24 bits.
        assert!(
            apart < 2.0 / f64::from(1 << 23),
            "{}: {apart:e}",
            design.name
        );
    }
}
