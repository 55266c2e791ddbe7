//! Room of the recordings: a fixed impulse response, short enough to be learnt.

use ondes_engine::dsp::level::db_to_amplitude_f64;
use rand::{Rng, RngExt};

use super::filter::OnePole;

/// Length of the response, seconds, without the tails of the one-pole filters.
pub const LENGTH_S: f64 = 0.34;

/// Level of the reverberation relative to the direct sound, dB of energy.
pub const WET_DB: f64 = -18.0;

/// Reverberation time (60 dB), seconds.
const T60_S: f64 = 0.32;

/// Start of the dense tail, seconds; before it there are early reflections only.
const TAIL_START_S: f64 = 0.024;

/// Average distance of the tail's pulses, seconds. Low-passed pulses sound smooth above 1,500 per
/// second.
const PULSE_SPACING_S: f64 = 1.0 / 1_800.0;

/// Early reflections: arrival in seconds, and gain relative to the direct sound before [`WET_DB`].
const EARLY: [(f64, f64); 7] = [
    (0.0043, 0.62),
    (0.0071, -0.48),
    (0.0107, 0.41),
    (0.0132, 0.33),
    (0.0176, -0.30),
    (0.0213, 0.24),
    (0.0269, -0.21),
];

/// Corners of the low-passes of successive segments, Hz: walls and air absorb treble first.
const CORNERS_HZ: [f64; 5] = [7_500.0, 5_000.0, 3_600.0, 2_600.0, 1_900.0];

/// Segment of the response: sparse pulses before a low-pass.
#[derive(Debug, Clone)]
struct Segment {
    /// Delays in samples, and gains.
    pulses: Vec<(usize, f32)>,
    corner_hz: f64,
}

/// Reverberation by segmented velvet noise.
///
/// The tail has one pulse of random sign at a random position in each slot of a regular grid; its
/// segments pass darker and darker low-passes (Järveläinen & Karjalainen, "Reverberation modeling
/// using velvet noise", AES 30th International Conference, 2007; Holm-Rasmussen, Lehtonen &
/// Välimäki, "A new reverberator based on variable sparsity convolution", DAFx 2013). A few hundred
/// additions per sample replace a Fourier transform.
#[derive(Debug, Clone)]
pub struct Room {
    segments: Vec<Segment>,
    rate_hz: f64,
}

impl Room {
    /// Draws a random room.
    pub fn new(rate_hz: f64, rng: &mut impl Rng) -> Self {
        let samples = |seconds: f64| (seconds * rate_hz).round() as usize;
        let mut segments: Vec<Segment> = CORNERS_HZ
            .iter()
            .map(|&corner_hz| Segment {
                pulses: Vec::new(),
                corner_hz,
            })
            .collect();
        for (at_s, gain) in EARLY {
            let jitter_s = rng.random_range(-0.0006..0.0006);
            segments[0]
                .pulses
                .push((samples(at_s + jitter_s), gain as f32));
        }
        let tail_s = LENGTH_S - TAIL_START_S;
        let slots = (tail_s / PULSE_SPACING_S) as usize;
        for slot in 0..slots {
            let at_s = TAIL_START_S + (slot as f64 + rng.random_range(0.0..1.0)) * PULSE_SPACING_S;
            let decay = 10f64.powf(-3.0 * at_s / T60_S);
            // The last fifth fades out, so that the response does not end in a step.
            let fade = ((LENGTH_S - at_s) / (0.2 * LENGTH_S)).clamp(0.0, 1.0);
            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
            let part = slot * CORNERS_HZ.len() / slots;
            segments[part]
                .pulses
                .push((samples(at_s), (0.22 * sign * decay * fade) as f32));
        }
        let energy: f32 = segments
            .iter()
            .flat_map(|s| &s.pulses)
            .map(|(_, gain)| gain * gain)
            .sum();
        let scale = (db_to_amplitude_f64(WET_DB) / f64::from(energy).sqrt()) as f32;
        for (_, gain) in segments.iter_mut().flat_map(|segment| &mut segment.pulses) {
            *gain *= scale;
        }
        Self { segments, rate_hz }
    }

    /// Returns `dry` with reverberation; the tail beyond the end is cut.
    #[must_use]
    pub fn apply(&self, dry: &[f32]) -> Vec<f32> {
        // Blocks fit into the first-level cache, since every pulse reads them.
        const BLOCK: usize = 4_096;
        let mut wet = dry.to_vec();
        let mut part = vec![0.0f32; dry.len()];
        for segment in &self.segments {
            part.fill(0.0);
            for start in (0..dry.len()).step_by(BLOCK) {
                let end = (start + BLOCK).min(dry.len());
                for &(delay, gain) in &segment.pulses {
                    let from = start.max(delay);
                    if from < end {
                        let source = &dry[from - delay..end - delay];
                        for (y, x) in part[from..end].iter_mut().zip(source) {
                            *y += gain * x;
                        }
                    }
                }
            }
            let mut low_pass = OnePole::new(segment.corner_hz, self.rate_hz);
            for (y, x) in wet.iter_mut().zip(&part) {
                *y += low_pass.low(f64::from(*x)) as f32;
            }
        }
        wet
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    use super::{LENGTH_S, Room, WET_DB};

    #[test]
    fn the_response_starts_dry_and_ends_in_silence() {
        let rate_hz = 48_000.0;
        let room = Room::new(rate_hz, &mut Xoshiro256PlusPlus::seed_from_u64(1));
        let mut impulse = vec![0.0f32; 24_000];
        impulse[0] = 1.0;
        let response = room.apply(&impulse);
        assert_eq!(response[0], 1.0);
        assert!(response[1..150].iter().all(|x| *x == 0.0));
        let energy = |range: &[f32]| range.iter().map(|x| x * x).sum::<f32>();
        let wet = energy(&response[1..]);
        // The low-passes take some of the nominal level.
        let wet_db = 10.0 * wet.log10();
        assert!(
            (WET_DB - 10.0..WET_DB + 1.0).contains(&f64::from(wet_db)),
            "{wet_db} dB"
        );
        let end = (LENGTH_S * rate_hz) as usize;
        assert!(energy(&response[end + 480..]) < 1e-9 * wet);
    }
}
