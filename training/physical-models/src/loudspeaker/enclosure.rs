//! The air behind a cone: a closed box with its standing waves, or a box that is open at the back.
//!
//! A closed box is a sum over the modes of a room with hard walls (P. M. Morse and K. U. Ingard,
//! "Theoretical Acoustics", 1968, chapter 9.5), of which the first, without nodes, is the spring of
//! R. H. Small, "Closed-box loudspeaker systems", JAES 20 (1972). An open box is a short tube that
//! ends in an opening with its own mass of air.

use std::f64::consts::{PI, TAU};

use num_complex::Complex64;

use super::air::{AIR_DENSITY, SOUND_SPEED};

/// Modes counted along each side of a closed box.
const MODES: usize = 6;
/// Damping of an open box, 1/m at 1 kHz; grows with the root of the frequency.
const TUBE_LOSS: f64 = 0.5;

/// Box of a cabinet, with inner measures in metres: width, height, depth.
#[derive(Debug, Clone, Copy)]
pub struct Enclosure {
    /// Width, height and depth inside.
    pub size: [f64; 3],
    /// Centres of the drivers on the baffle, from its middle.
    pub drivers: &'static [[f64; 2]],
    /// Back of the box.
    pub back: Back,
}

/// Back of a box.
#[derive(Debug, Clone, Copy)]
pub enum Back {
    /// Closed; quality factor of the standing waves inside.
    Closed {
        /// Quality factor.
        q: f64,
    },
    /// Open over this part of the back.
    Open {
        /// Open part, above 0 and up to 1.
        part: f64,
    },
}

impl Enclosure {
    /// Returns the acoustic impedance that each driver sees behind it if all of them move alike, Pa
    /// s/m³.
    #[must_use]
    pub fn impedance(&self, w: f64) -> Complex64 {
        match self.back {
            Back::Closed { q } => self.modes(w, q),
            Back::Open { .. } => {
                let tube = self.tube(w);
                tube.characteristic * (tube.end + tube.characteristic * tube.tanh)
                    / (tube.characteristic + tube.end * tube.tanh)
            }
        }
    }

    /// Returns the flow out of the back for a flow of 1 into the box behind the cones; `None` if it
    /// is closed.
    #[must_use]
    pub fn rear_flow(&self, w: f64) -> Option<Complex64> {
        matches!(self.back, Back::Open { .. }).then(|| {
            let tube = self.tube(w);
            (tube.cosh * (1.0 + tube.end / tube.characteristic * tube.tanh)).inv()
        })
    }

    /// Sums over the modes of a closed box, with mutual terms of all drivers. All of them are
    /// alike, so each sees the mean.
    fn modes(&self, w: f64, q: f64) -> Complex64 {
        let [width, height, depth] = self.size;
        let mut sum = Complex64::ZERO;
        for mode in 0..MODES.pow(3) {
            let order = [mode % MODES, mode / MODES % MODES, mode / MODES / MODES]
                .map(|order| order as f64);
            let wave = (order[0] / width).hypot((order[1] / height).hypot(order[2] / depth));
            let natural = PI * SOUND_SPEED * wave;
            let shape = |[x, y]: &[f64; 2]| {
                (order[0] * PI * (x / width + 0.5)).cos()
                    * (order[1] * PI * (y / height + 0.5)).cos()
            };
            let together: f64 = self.drivers.iter().map(shape).sum();
            let norm: f64 = order
                .iter()
                .map(|order| if *order > 0.0 { 2.0 } else { 1.0 })
                .product();
            // The wool that damps standing waves damps the spring of the air less.
            let loss = if natural > 0.0 { natural / q } else { 0.0 };
            let resonance = Complex64::new(natural * natural - w * w, w * loss);
            sum += norm * together * together / resonance;
        }
        let stiffness = AIR_DENSITY * SOUND_SPEED.powi(2) / (width * height * depth);
        Complex64::new(0.0, w * stiffness / self.drivers.len() as f64) * sum
    }

    fn tube(&self, w: f64) -> Tube {
        let Back::Open { part } = self.back else {
            unreachable!("only an open box is a tube")
        };
        let [width, height, depth] = self.size;
        // Each driver has its share of the box.
        let area = width * height / self.drivers.len() as f64;
        let opening = part * area;
        let loss = TUBE_LOSS * (w / (TAU * 1_000.0)).sqrt();
        let along = Complex64::new(loss, w / SOUND_SPEED) * depth;
        // The end correction of a flanged opening of this area, and of the narrowing before it.
        let length = 0.85 * (opening / PI).sqrt() * (2.0 - part);
        let radiated = AIR_DENSITY * SOUND_SPEED / opening;
        let mass = Complex64::new(0.0, w * AIR_DENSITY * length / opening);
        Tube {
            characteristic: (AIR_DENSITY * SOUND_SPEED / area).into(),
            end: mass * radiated / (mass + radiated),
            tanh: along.tanh(),
            cosh: along.cosh(),
        }
    }
}

/// An open box as a line.
struct Tube {
    characteristic: Complex64,
    end: Complex64,
    tanh: Complex64,
    cosh: Complex64,
}
