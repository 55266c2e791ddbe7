//! Sound of a cabinet at a microphone.
//!
//! Each ring of each cone radiates by its own path (the integral of Rayleigh), so that beaming, the
//! depth of the cone, the place of the microphone before it and the other drivers follow from
//! geometry. The edges of the baffle send a part of it back with the opposite sign (J. Vanderkooy,
//! "A simple theory of cabinet edge diffraction", JAES 39 (1991); H. F. Olson, "Direct radiator
//! loudspeaker enclosures", JAES 17 (1969)), and the sound of an open back comes around them. The
//! microphone is a cardioid with proximity effect, as a moving-coil microphone close to a
//! loudspeaker is.

use std::f64::consts::TAU;

use num_complex::Complex64;

use super::air::{AIR_DENSITY, SOUND_SPEED};
use super::cabinets::CabinetDesign;
use super::driver::Motion;
use super::enclosure::Enclosure;
use super::microphone::Microphone;

/// Points of a ring; neighbours are less than half a wavelength apart up to 6 kHz at the cone's
/// edge.
const AROUND: usize = 32;
/// Points of the edges.
const EDGE_POINTS: usize = 96;

/// Path from a source to the microphone.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// Length, m, and distance of its last straight part.
    length: f64,
    last: f64,
    /// Cosine of the angle to the microphone's axis.
    cosine: f64,
}

/// Geometry between drivers and microphone.
pub struct SoundField {
    /// `[driver][ring][point]`
    direct: Vec<Vec<Vec<Path>>>,
    /// `[driver][point]`: by the edges of the baffle.
    edges: Vec<Vec<Path>>,
    enclosure: Enclosure,
    microphone: Microphone,
    cone_radius: f64,
    depth: f64,
}

impl SoundField {
    /// Measures all paths of a cabinet.
    #[must_use]
    pub fn new(design: &CabinetDesign) -> Self {
        let at = design.microphone.position;
        let path = |[x, y, z]: [f64; 3], before: f64| {
            let last = (x - at[0]).hypot((y - at[1]).hypot(z - at[2]));
            Path {
                length: before + last,
                last,
                cosine: (at[2] - z) / last,
            }
        };
        let rings = design.driver.rings();
        let direct = |[x, y]: &[f64; 2]| -> Vec<Vec<Path>> {
            let points = |radius: f64, depth: f64| {
                let point = move |index: usize| {
                    let (sin, cos) = (TAU * (index as f64 + 0.5) / AROUND as f64).sin_cos();
                    path([x + radius * cos, y + radius * sin, -depth], 0.0)
                };
                (0..AROUND).map(point).collect()
            };
            rings
                .iter()
                .map(|ring| points(ring.radius, ring.depth))
                .collect()
        };
        let [width, height] = design.baffle;
        let edges = |[x, y]: &[f64; 2]| -> Vec<Path> {
            let point = |index: usize| {
                let (sin, cos) = (TAU * (index as f64 + 0.5) / EDGE_POINTS as f64).sin_cos();
                let side =
                    |along: f64, half: f64, from: f64| (half - along.signum() * from) / along.abs();
                let before = side(cos, 0.5 * width, *x).min(side(sin, 0.5 * height, *y));
                path([x + before * cos, y + before * sin, 0.0], before)
            };
            (0..EDGE_POINTS).map(point).collect()
        };
        let drivers = design.enclosure.drivers;
        Self {
            direct: drivers.iter().map(direct).collect(),
            edges: drivers.iter().map(edges).collect(),
            enclosure: design.enclosure,
            microphone: design.microphone,
            cone_radius: design.driver.radii.1,
            depth: design.enclosure.size[2],
        }
    }

    /// Returns the signal of the microphone if all drivers move like this, at the angular frequency
    /// `w`.
    #[must_use]
    pub fn pressure(&self, w: f64, motion: &Motion) -> Complex64 {
        let k = w / SOUND_SPEED;
        let mean = |paths: &[Path]| -> Complex64 {
            paths.iter().map(|path| path.arrival(k)).sum::<Complex64>() / paths.len() as f64
        };
        let flow = motion.total();
        // An edge lies at the side of the cone, which beams forwards.
        let sideways = Complex64::new(1.0, 0.5 * k * self.cone_radius).powi(-2);
        let mut sum = Complex64::ZERO;
        for (rings, edges) in self.direct.iter().zip(&self.edges) {
            sum += rings
                .iter()
                .zip(&motion.flow)
                .map(|(paths, flow)| flow * mean(paths))
                .sum::<Complex64>();
            sum -= 0.5 * flow * sideways * mean(edges);
            if let Some(rear) = self.enclosure.rear_flow(w) {
                // The way is longer by the depth; two edges in turn shade what is short against it.
                let around = Complex64::from_polar(1.0, -k * self.depth)
                    / Complex64::new(1.0, k * self.depth).sqrt();
                sum -= 0.5 * flow * rear * sideways * around * mean(edges);
            }
        }
        Complex64::new(0.0, w * AIR_DENSITY / TAU) * sum * self.microphone.response(w)
    }
}

impl Path {
    /// Returns what a cardioid receives of a source by this path: pressure and pressure gradient in
    /// equal parts.
    fn arrival(&self, k: f64) -> Complex64 {
        let gradient = self.cosine * Complex64::new(1.0, -1.0 / (k * self.last));
        0.5 * (1.0 + gradient) * Complex64::from_polar(1.0 / self.length, -k * self.length)
    }
}
