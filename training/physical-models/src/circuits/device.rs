//! Nonlinear parts: diodes, valves, a transistor.
//!
//! A device has one or two ports. The current of a port flows in at its first node and out at its
//! second.

/// Most ports of a device.
pub const PORTS: usize = 2;

/// Thermal voltage at 27 °C, volts.
const THERMAL_V: f64 = 0.025_85;

/// Derivative of each port's current by each port's voltage, siemens.
pub type Slopes = [[f64; PORTS]; PORTS];

/// Nonlinear part.
#[derive(Clone, Copy, Debug)]
pub enum Device {
    /// Antiparallel diodes after Shockley; one port.
    Diodes {
        /// Saturation current, amperes.
        saturation_a: f64,
        /// Ideality factor.
        ideality: f64,
        /// Diodes in series in either direction.
        in_series: [f64; 2],
    },
    /// 12AX7 triode: plate current after Koren ("Improved vacuum tube models for SPICE
    /// simulations", Glass Audio 8(5), 1996), grid current after Dempwolf & Zölzer ("A
    /// physically-motivated triode model for circuit simulations", DAFx-11). Ports: grid to
    /// cathode, plate to cathode.
    Triode,
    /// Pentode or beam tetrode; its grid draws current as that of the triode. Ports: grid to cathode,
    /// plate to cathode.
    Pentode(Pentode),
    /// NPN transistor after Ebers & Moll ("Large-signal behavior of junction transistors", Proc.
    /// IRE 42(12), 1954), in transport form. Ports: base to emitter, base to collector.
    Npn {
        /// Saturation current, amperes.
        saturation_a: f64,
        /// Forward and reverse current gain.
        gain: [f64; 2],
    },
}

/// Koren's parameters of a pentode whose screen has a constant voltage.
#[derive(Clone, Copy, Debug)]
pub struct Pentode {
    /// Amplification factor of the screen.
    pub mu: f64,
    /// Exponent of the current.
    pub exponent: f64,
    /// Inverse perveance.
    pub kg1: f64,
    /// Sharpness of the cut-off.
    pub kp: f64,
    /// Plate voltage of the knee, volts.
    pub knee_v: f64,
    /// Screen voltage, volts.
    pub screen_v: f64,
}

/// Koren's parameters of the 12AX7.
const MU: f64 = 100.0;
const EXPONENT: f64 = 1.4;
const KG1: f64 = 1060.0;
const KP: f64 = 600.0;
const KVB: f64 = 300.0;
/// Dempwolf & Zölzer's parameters of the 12AX7 RSD-1's grid: perveance, exponent and sharpness of
/// the onset.
const GRID_PERVEANCE: f64 = 6.177e-4;
const GRID_EXPONENT: f64 = 1.314;
const GRID_SHARPNESS: f64 = 9.901;

impl Device {
    /// Returns antiparallel diodes like 1N914, that many in series in either direction.
    #[must_use]
    pub const fn silicon_diodes(in_series: [f64; 2]) -> Self {
        Self::Diodes {
            saturation_a: 2.52e-9,
            ideality: 1.752,
            in_series,
        }
    }

    /// Returns a diode like 1N34A. It does not conduct in reverse until some 50 V.
    #[must_use]
    pub const fn germanium_diode() -> Self {
        Self::Diodes {
            saturation_a: 2.0e-7,
            ideality: 1.3,
            in_series: [1.0, 200.0],
        }
    }

    /// Returns the limit of an ideal op-amp by its supplies, to put between its output and its
    /// inverting input: diodes that hold the difference to about `volts`, since 1 mA is the most that
    /// the feedback of these circuits draws.
    #[must_use]
    pub fn supply_limit(volts: f64) -> Self {
        let saturation_a = 1e-12_f64;
        let each = THERMAL_V * (1e-3 / saturation_a).ln();
        Self::Diodes {
            saturation_a,
            ideality: 1.0,
            in_series: [volts / each; 2],
        }
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn ports(&self) -> usize {
        match self {
            Self::Diodes { .. } => 1,
            Self::Triode | Self::Pentode(_) | Self::Npn { .. } => 2,
        }
    }

    /// Returns the currents at these port voltages, amperes, and their derivatives.
    #[must_use]
    pub fn currents(&self, volts: [f64; PORTS]) -> ([f64; PORTS], Slopes) {
        match *self {
            Self::Diodes {
                saturation_a,
                ideality,
                in_series,
            } => {
                let junction = |volts: f64, count: f64| {
                    let scale = 1.0 / (count * ideality * THERMAL_V);
                    let grown = saturation_a * (volts * scale).exp();
                    (grown - saturation_a, grown * scale)
                };
                let (onward, back) = (
                    junction(volts[0], in_series[0]),
                    junction(-volts[0], in_series[1]),
                );
                (
                    [onward.0 - back.0, 0.0],
                    [[onward.1 + back.1, 0.0], [0.0; PORTS]],
                )
            }
            Self::Triode => triode(volts),
            Self::Pentode(valve) => pentode(valve, volts),
            Self::Npn {
                saturation_a,
                gain: [forward, reverse],
            } => {
                let junction = |volts: f64| {
                    let grown = saturation_a * (volts / THERMAL_V).exp();
                    (grown - saturation_a, grown / THERMAL_V)
                };
                let (emitter, collector) = (junction(volts[0]), junction(volts[1]));
                let (up, down) = (1.0 + 1.0 / forward, 1.0 + 1.0 / reverse);
                (
                    [up * emitter.0 - collector.0, down * collector.0 - emitter.0],
                    [
                        [up * emitter.1, -collector.1],
                        [-emitter.1, down * collector.1],
                    ],
                )
            }
        }
    }

    /// Limits a Newton step from `from` to `to`, so that the device's exponentials do not
    /// overshoot.
    #[must_use]
    pub fn limited(&self, from: [f64; PORTS], to: [f64; PORTS]) -> [f64; PORTS] {
        match *self {
            Self::Diodes {
                saturation_a,
                ideality,
                in_series,
            } => {
                let width = ideality * THERMAL_V;
                let side = if to[0] < 0.0 { -1.0 } else { 1.0 };
                let count = if to[0] < 0.0 {
                    in_series[1]
                } else {
                    in_series[0]
                };
                [
                    side * limited_junction(
                        side * from[0],
                        side * to[0],
                        count * width,
                        saturation_a,
                    ),
                    to[1],
                ]
            }
            Self::Triode => {
                let [grid, plate] = [(from[0], to[0], 1.0), (from[1], to[1], 60.0)]
                    .map(|(from, to, most): (f64, f64, f64)| from + (to - from).clamp(-most, most));
                [grid, plate]
            }
            // A grid in cut-off moves freely. Above the knee the current is nearly constant, and whole
            // steps would jump over it.
            Self::Pentode(valve) => {
                let knee = if from[1] > 0.1 * valve.knee_v {
                    0.25 * from[1]
                } else {
                    f64::NEG_INFINITY
                };
                [to[0].min(from[0].max(0.0) + 2.0), to[1].max(knee)]
            }
            Self::Npn { saturation_a, .. } => {
                [0, 1].map(|port| limited_junction(from[port], to[port], THERMAL_V, saturation_a))
            }
        }
    }
}

/// Limits the step of a junction as SPICE does: beyond the knee it grows with the logarithm of the
/// tangent's step (Nagel, "SPICE2: a computer program to simulate semiconductor circuits", 1975).
fn limited_junction(from: f64, to: f64, width: f64, saturation_a: f64) -> f64 {
    let bend = width * (width / (std::f64::consts::SQRT_2 * saturation_a)).ln();
    if to <= bend || (to - from).abs() <= 2.0 * width {
        return to;
    }
    if from <= 0.0 {
        return width * (to / width).ln();
    }
    let grown = 1.0 + (to - from) / width;
    if grown > 0.0 {
        from + width * grown.ln()
    } else {
        bend
    }
}

/// Returns `ln(1 + e^x)` and its derivative.
fn softplus(x: f64) -> (f64, f64) {
    let grown = (-x.abs()).exp();
    let slope = if x > 0.0 {
        1.0 / (1.0 + grown)
    } else {
        grown / (1.0 + grown)
    };
    (x.max(0.0) + grown.ln_1p(), slope)
}

/// Returns the current of a grid and its derivative by the grid's voltage.
fn grid_current(grid: f64) -> (f64, f64) {
    let (soft, rise) = softplus(GRID_SHARPNESS * grid);
    let soft = soft / GRID_SHARPNESS;
    let steepness = GRID_PERVEANCE * soft.powf(GRID_EXPONENT - 1.0);
    (steepness * soft, GRID_EXPONENT * steepness * rise)
}

fn triode([grid, plate]: [f64; PORTS]) -> ([f64; PORTS], Slopes) {
    let (grid_current, grid_slope) = grid_current(grid);
    // No current flows out of a plate below its cathode.
    if plate <= 0.0 {
        return ([grid_current, 0.0], [[grid_slope, 0.0], [0.0, 0.0]]);
    }
    let root = (KVB + plate * plate).sqrt();
    let (soft, rise) = softplus(KP * (1.0 / MU + grid / root));
    let drive = plate / KP * soft;
    let steepness = 2.0 / KG1 * drive.powf(EXPONENT - 1.0);
    let (current, slope) = (steepness * drive, EXPONENT * steepness);
    let by_grid = plate * rise / root;
    let by_plate = soft / KP - grid * plate * plate * rise / root.powi(3);
    (
        [grid_current, current],
        [[grid_slope, 0.0], [slope * by_grid, slope * by_plate]],
    )
}

/// A plate below its cathode, which loads hardly bring about, continues the curve.
fn pentode(valve: Pentode, [grid, plate]: [f64; PORTS]) -> ([f64; PORTS], Slopes) {
    let (grid_current, grid_slope) = grid_current(grid);
    let (soft, rise) = softplus(valve.kp * (1.0 / valve.mu + grid / valve.screen_v));
    let drive = valve.screen_v / valve.kp * soft;
    let steepness = 2.0 / valve.kg1 * drive.powf(valve.exponent - 1.0);
    let (current, slope) = (steepness * drive, valve.exponent * steepness * rise);
    let knee = (plate / valve.knee_v).atan();
    let by_plate = current * valve.knee_v / (valve.knee_v.powi(2) + plate * plate);
    (
        [grid_current, current * knee],
        [[grid_slope, 0.0], [slope * knee, by_plate]],
    )
}
