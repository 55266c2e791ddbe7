//! The bundled cabinets.

use super::driver::{Driver, Paper};
use super::enclosure::{Back, Enclosure};
use super::microphone::Microphone;

/// A cabinet with its microphone.
#[derive(Debug, Clone, Copy)]
pub struct CabinetDesign {
    /// Name of the file, without ending.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
    /// The drivers, all alike.
    pub driver: Driver,
    /// The box, with the drivers' places.
    pub enclosure: Enclosure,
    /// Width and height of the baffle with the box's walls, m.
    pub baffle: [f64; 2],
    /// The microphone.
    pub microphone: Microphone,
}

/// A 12-inch driver with a heavy ceramic magnet and a doped, stiff cone.
const LOUD: Driver = Driver {
    source_resistance: 5.0,
    coil_resistance: 6.6,
    coil_inductance: (0.011, 0.72),
    force_factor: 12.5,
    coil_mass: 0.007,
    neck_stiffness: 7.0e6,
    stiffness: (3_500.0, 4_500.0),
    resistance: 1.6,
    surround: (0.0015, 0.35),
    radii: (0.022, 0.128),
    slope: 0.53,
    paper: Paper {
        modulus: 5.0e9,
        loss: (0.05, 0.025),
        density: 620.0,
        thickness: 0.000_38,
    },
    cap: (0.0012, 4_600.0, 3.0),
};

/// A 12-inch driver with a light, ribbed cone.
const LIGHT: Driver = Driver {
    source_resistance: 8.0,
    coil_inductance: (0.006, 0.74),
    force_factor: 11.0,
    coil_mass: 0.0055,
    neck_stiffness: 3.2e6,
    stiffness: (3_500.0, 4_000.0),
    resistance: 1.3,
    surround: (0.0012, 0.30),
    paper: Paper {
        modulus: 4.8e9,
        loss: (0.03, 0.055),
        density: 560.0,
        thickness: 0.000_33,
    },
    cap: (0.0012, 3_900.0, 2.5),
    ..LOUD
};

/// The cabinets.
pub static CABINETS: [CabinetDesign; 3] = [
    CabinetDesign {
        name: "1x12-open-back",
        description: "one light 12-inch driver in an open box; microphone 15 cm before the baffle, 5 cm off the axis",
        driver: LIGHT,
        enclosure: Enclosure {
            size: [0.48, 0.42, 0.22],
            drivers: &[[0.0, 0.0]],
            back: Back::Open { part: 0.45 },
        },
        baffle: [0.52, 0.46],
        microphone: Microphone {
            position: [0.05, 0.0, 0.15],
            low_hz: 70.0,
            diaphragm: (7_500.0, 0.9),
        },
    },
    CabinetDesign {
        name: "2x12-open-back",
        description: "two light 12-inch drivers in an open box; microphone 11 cm before the baffle, 3.5 cm off the axis of one",
        driver: LIGHT,
        enclosure: Enclosure {
            size: [0.64, 0.44, 0.22],
            drivers: &[[-0.155, 0.0], [0.155, 0.0]],
            back: Back::Open { part: 0.55 },
        },
        baffle: [0.68, 0.48],
        microphone: Microphone {
            position: [-0.120, 0.0, 0.11],
            low_hz: 90.0,
            diaphragm: (7_500.0, 0.9),
        },
    },
    CabinetDesign {
        name: "4x12-closed-back",
        description: "four loud 12-inch drivers in a closed box; microphone 5 cm before the baffle, 5 cm off the axis of one",
        driver: LOUD,
        enclosure: Enclosure {
            size: [0.70, 0.70, 0.30],
            drivers: &[
                [-0.165, 0.165],
                [0.165, 0.165],
                [-0.165, -0.165],
                [0.165, -0.165],
            ],
            back: Back::Closed { q: 12.0 },
        },
        baffle: [0.76, 0.75],
        microphone: Microphone {
            position: [-0.115, 0.150, 0.05],
            low_hz: 130.0,
            diaphragm: (9_000.0, 0.9),
        },
    },
];
