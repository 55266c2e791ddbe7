//! A driver: voice coil, suspension, and a cone that breaks up.
//!
//! At low frequencies it is the mass on a spring of A. N. Thiele, "Loudspeakers in vented boxes",
//! JAES 19 (1971), and R. H. Small, "Direct-radiator loudspeaker system analysis", JAES 20 (1972).
//! Above about 1 kHz the cone no longer moves as one piece. It is divided into rings that are
//! coupled by the stiffness of the paper along the cone, as the membrane part of shell models: F.
//! J. M. Frankfort, "Vibration patterns and radiation behavior of loudspeaker cones", JAES 26
//! (1978); T. Shindo, O. Yashima and H. Suzuki, "Effect of voice-coil and surround on vibration and
//! sound pressure response of loudspeaker cones", JAES 28 (1980). A wave runs out from the coil, is
//! reflected at the surround, and makes the peaks between 2 and 5 kHz; above them the outer cone
//! stands still, and the response falls. The coil's inductance with its eddy currents follows W. M.
//! Leach, "Loudspeaker voice-coil inductance losses", JAES 50 (2002).

use std::f64::consts::{PI, TAU};

use num_complex::Complex64;

use super::air::{AIR_DENSITY, SOUND_SPEED};

/// Rings of a cone.
const RINGS: usize = 28;

/// Parameters of a driver and of the amplifier at its terminals, in SI units.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// Output resistance of the amplifier, Ω.
    pub source_resistance: f64,
    /// DC resistance of the coil, Ω.
    pub coil_resistance: f64,
    /// Magnitude of the lossy inductance at 1 rad/s, Ω, and its exponent: 1 would be without
    /// losses.
    pub coil_inductance: (f64, f64),
    /// Force factor, N/A.
    pub force_factor: f64,
    /// Mass of coil and former, kg.
    pub coil_mass: f64,
    /// Stiffness of the joint between coil and cone, N/m.
    pub neck_stiffness: f64,
    /// Stiffness of the spider, N/m, and of the surround.
    pub stiffness: (f64, f64),
    /// Mechanical resistance of the suspension, N s/m.
    pub resistance: f64,
    /// Mass of the surround, kg, and its loss factor.
    pub surround: (f64, f64),
    /// Radius of the coil, where the cone begins, and of the cone's edge, m.
    pub radii: (f64, f64),
    /// Angle of the cone to the baffle, rad.
    pub slope: f64,
    /// The paper: Young's modulus, Pa; loss factor; density, kg/m³; thickness, m.
    pub paper: Paper,
    /// The dust cap: mass, kg; frequency, Hz; and quality factor of its resonance on the coil.
    pub cap: (f64, f64, f64),
}

/// Material of a cone.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    /// Young's modulus, Pa.
    pub modulus: f64,
    /// Loss factor of the modulus at low frequencies, and by how much it grows per kHz.
    pub loss: (f64, f64),
    /// Density, kg/m³.
    pub density: f64,
    /// Thickness, m.
    pub thickness: f64,
}

/// Acoustic load behind a driver.
#[derive(Debug, Clone, Copy)]
pub struct DriverLoad {
    /// Acoustic impedance of the air behind the cone, Pa s/m³.
    pub box_impedance: Complex64,
}

/// A ring of the cone, or the dust cap.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// Radius of its middle, m.
    pub radius: f64,
    /// Depth behind the baffle, m.
    pub depth: f64,
    /// Area as seen from the front, m².
    pub area: f64,
}

/// Motion of a driver at one frequency.
#[derive(Debug, Clone)]
pub struct Motion {
    /// Volume velocities in m³/s for 1 V, in the order of [`Driver::rings`].
    pub flow: Vec<Complex64>,
}

impl Motion {
    /// Returns the volume velocity of the whole cone, m³/s.
    #[must_use]
    pub fn total(&self) -> Complex64 {
        self.flow.iter().sum()
    }
}

impl Driver {
    /// Returns the rings from the inside to the outside, after the dust cap.
    #[must_use]
    pub fn rings(&self) -> Vec<Ring> {
        let (inner, outer) = self.radii;
        let width = (outer - inner) / RINGS as f64;
        let depth = |radius: f64| (outer - radius) * self.slope.tan();
        // A point in the middle would be infinitely near to a microphone on the axis.
        let cap = Ring {
            radius: 0.6 * inner,
            depth: depth(inner) * 0.8,
            area: PI * inner * inner,
        };
        let ring = |index: usize| {
            let radius = inner + (index as f64 + 0.5) * width;
            Ring {
                radius,
                depth: depth(radius),
                area: TAU * radius * width,
            }
        };
        std::iter::once(cap).chain((0..RINGS).map(ring)).collect()
    }

    /// Returns the area of cone and dust cap, m².
    #[must_use]
    pub fn area(&self) -> f64 {
        PI * self.radii.1 * self.radii.1
    }

    /// Returns the moving mass with its air load at low frequencies, kg.
    #[must_use]
    pub fn moving_mass(&self) -> f64 {
        let rings = self.rings();
        let cone: f64 = rings[1..].iter().map(|ring| self.ring_mass(ring)).sum();
        self.coil_mass + self.cap.0 + cone + 0.5 * self.surround.0 + 2.0 * self.air_mass()
    }

    /// Returns the resonance in free air, Hz.
    #[must_use]
    pub fn resonance_hz(&self) -> f64 {
        ((self.stiffness.0 + self.stiffness.1) / self.moving_mass()).sqrt() / TAU
    }

    /// Returns the quality factor of that resonance due to the coil: 2π f M R / (Bl)².
    #[must_use]
    pub fn electrical_q(&self) -> f64 {
        TAU * self.resonance_hz() * self.moving_mass() * self.coil_resistance
            / self.force_factor.powi(2)
    }

    fn ring_mass(&self, ring: &Ring) -> f64 {
        ring.area / self.slope.cos() * self.paper.thickness * self.paper.density
    }

    /// Returns the mass of the air that moves with one side of the cone, kg: that of a piston in a
    /// baffle.
    fn air_mass(&self) -> f64 {
        8.0 / 3.0 * AIR_DENSITY * self.radii.1.powi(3)
    }

    /// Returns the mechanical impedance of the air on one side of the cone, N s/m: a mass beside a
    /// resistance (L. L. Beranek, "Acoustics", 1954, figure 5.3).
    fn air_impedance(&self, w: f64) -> Complex64 {
        let mass = Complex64::new(0.0, w * self.air_mass());
        let resistance = 128.0 / (9.0 * PI * PI) * AIR_DENSITY * SOUND_SPEED * self.area();
        mass * resistance / (mass + resistance)
    }

    /// Returns the motion at the angular frequency `w` for 1 V.
    #[must_use]
    pub fn motion(&self, w: f64, load: &DriverLoad) -> Motion {
        let rings = self.rings();
        let ladder = Ladder::new(self, &rings, w);
        // Displacements for 1 N at the coil, and for 1 Pa on the back of every ring.
        let mut force = vec![Complex64::ZERO; rings.len() + 1];
        force[0] = Complex64::ONE;
        let mut pressure: Vec<Complex64> = rings[1..].iter().map(|ring| ring.area.into()).collect();
        pressure.insert(0, Complex64::ZERO);
        pressure.push(Complex64::ZERO);
        let [by_force, by_pressure] = [force, pressure].map(|load| ladder.solve(load));
        let cap = ladder.cap;
        let flow = |moved: &[Complex64]| -> Vec<Complex64> {
            let motions = std::iter::once(moved[0] * cap).chain(moved[1..].iter().copied());
            rings
                .iter()
                .zip(motions)
                .map(|(ring, moved)| Complex64::new(0.0, w * ring.area) * moved)
                .collect()
        };
        let (by_force_flow, by_pressure_flow) = (flow(&by_force), flow(&by_pressure));
        let sum = |flow: &[Complex64]| flow.iter().sum::<Complex64>();
        // The box answers the flow with a pressure that reduces it.
        let back = load.box_impedance * sum(&by_force_flow)
            / (1.0 + load.box_impedance * sum(&by_pressure_flow));
        let admittance = Complex64::new(0.0, w) * (by_force[0] - back * by_pressure[0]);
        let (magnitude, exponent) = self.coil_inductance;
        let inductance = Complex64::from_polar(magnitude * w.powf(exponent), 0.5 * PI * exponent);
        let electrical = self.source_resistance + self.coil_resistance + inductance;
        let newton = self.force_factor / (electrical + self.force_factor.powi(2) * admittance);
        let flow = by_force_flow
            .iter()
            .zip(&by_pressure_flow)
            .map(|(force, pressure)| newton * (force - back * pressure));
        Motion {
            flow: flow.collect(),
        }
    }
}

/// Equations of motion of a driver at one frequency, tridiagonal: coil, rings, surround.
struct Ladder {
    diagonal: Vec<Complex64>,
    /// Coupling of each mass with the next one.
    coupling: Vec<Complex64>,
    /// Motion of the dust cap relative to that of the coil.
    cap: Complex64,
}

impl Ladder {
    fn new(driver: &Driver, rings: &[Ring], w: f64) -> Self {
        let inertia = |mass: f64| Complex64::from(-w * w * mass);
        let jw = Complex64::new(0.0, w);
        let (cap_mass, cap_hz, cap_q) = driver.cap;
        let cap_w = TAU * cap_hz;
        let cap_spring = cap_mass * Complex64::new(cap_w * cap_w, w * cap_w / cap_q);
        let cap = cap_spring / (cap_spring + inertia(cap_mass));
        let (spider, surround) = driver.stiffness;
        let (surround_mass, surround_loss) = driver.surround;
        // Half of the surround's length is on either side of its mass.
        let surround_spring = 2.0 * surround * Complex64::new(1.0, surround_loss);
        // Both sides move air; what is behind the cone is the box.
        let air = 2.0 * jw * driver.air_impedance(w) / driver.area();

        let mut diagonal = vec![
            inertia(driver.coil_mass) + cap * inertia(cap_mass) + spider + jw * driver.resistance,
        ];
        diagonal.extend(
            rings[1..]
                .iter()
                .map(|ring| inertia(driver.ring_mass(ring)) + air * ring.area),
        );
        diagonal.push(inertia(surround_mass) + surround_spring);
        let (loss, growth) = driver.paper.loss;
        let lossy = Complex64::new(1.0, loss + growth * w / (TAU * 1_000.0));
        let paper = lossy * driver.paper.modulus * driver.paper.thickness;
        // A strip at an angle is stretched by the sine of the angle and pulls back by the same.
        let along = |radius: f64, distance: f64| {
            paper * driver.slope.sin().powi(2) * TAU * radius / (distance / driver.slope.cos())
        };
        let width = rings[2].radius - rings[1].radius;
        let first = along(driver.radii.0, 0.5 * width);
        let neck = lossy * driver.neck_stiffness;
        let mut coupling = vec![first * neck / (first + neck)];
        coupling.extend(
            rings[1..]
                .windows(2)
                .map(|pair| along(0.5 * (pair[0].radius + pair[1].radius), width)),
        );
        coupling.push(surround_spring);
        for (index, spring) in coupling.iter().enumerate() {
            diagonal[index] += spring;
            diagonal[index + 1] += spring;
        }
        Self {
            diagonal,
            coupling,
            cap,
        }
    }

    /// Returns the displacements under these forces.
    fn solve(&self, mut forces: Vec<Complex64>) -> Vec<Complex64> {
        let mut diagonal = self.diagonal.clone();
        for (index, spring) in self.coupling.iter().enumerate() {
            let factor = spring / diagonal[index];
            diagonal[index + 1] -= factor * spring;
            let above = forces[index];
            forces[index + 1] += factor * above;
        }
        let last = forces.len() - 1;
        forces[last] /= diagonal[last];
        for index in (0..last).rev() {
            let below = forces[index + 1];
            forces[index] = (forces[index] + self.coupling[index] * below) / diagonal[index];
        }
        forces
    }
}
