//! How far a recording is behind the signal that was played, whether it is upside down, and whether the two clocks agree.
//!
//! Where the signal begins with blips as [`super::signal`] makes them, these say when they came back. Otherwise the generalised
//! cross-correlation with phase transform does (Knapp & Carter, "The generalized correlation method for estimation of time delay",
//! IEEE Trans. ASSP 24(4), 1976): devices colour a sound, and only its timing is asked for.

use ondes_engine::dsp::level::peak;
use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::signal;

/// Longest delay that is looked for, seconds.
const LONGEST_S: f64 = 5.0;
/// Sound that is looked at for the delay, seconds.
const HEARD_S: f64 = 20.0;
/// Places at which the clocks are compared, and the length of each, samples.
const PLACES: usize = 24;
const PLACE: usize = 1 << 15;
/// Farthest that a clock may have gone at any place, samples.
const FARTHEST: i64 = 2_000;
/// What may still be sounding that comes before the first sample above noise: an echo that comes too early could not be learnt,
/// one that comes late can.
const SAFETY_SAMPLES: i64 = 1;
/// A blip has come back when this share of its peak is heard.
const BLIP_SHARE: f32 = 0.1;
/// Likeness of whitened sounds from which a place has something to say.
const LIKENESS: f64 = 0.02;

/// How two sounds belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alignment {
    /// Samples by which the recording is behind; negative where it is ahead.
    pub delay_samples: i64,
    /// Whether the delay comes from blips.
    pub blips: bool,
    /// Whether what goes up comes out going down.
    pub inverted: bool,
    /// How alike the two are at that delay, 0 to 1: the correlation's peak within a millisecond of it.
    pub likeness: f64,
    /// How much longer the recording's clock took from beginning to end, samples.
    pub drift_samples: f64,
}

/// Finds how two sounds belong together.
#[must_use]
pub fn align(dry: &[f32], wet: &[f32], rate_hz: f64) -> Alignment {
    let blips = signal::has_blips(dry, rate_hz).then(|| from_blips(dry, wet, rate_hz)).flatten();
    let heard = ((HEARD_S + LONGEST_S) * rate_hz) as usize;
    let delay = blips.unwrap_or_else(|| {
        let (dry, wet) = (&dry[..dry.len().min(heard)], &wet[..wet.len().min(heard)]);
        whitened_peak(dry, wet, (LONGEST_S * rate_hz) as i64, 0).0
    });
    let (likeness, inverted) = likeness(dry, wet, delay, (rate_hz / 1_000.0) as i64);
    Alignment {
        delay_samples: delay - SAFETY_SAMPLES,
        blips: blips.is_some(),
        inverted,
        likeness,
        drift_samples: drift(dry, wet, delay),
    }
}

/// The delay of the blips; none where they did not come back, or not both after the same time.
fn from_blips(dry: &[f32], wet: &[f32], rate_hz: f64) -> Option<i64> {
    let places = signal::blips(rate_hz);
    // Whatever the delay, nothing has come back before the first blip went out.
    let noise = peak(wet.get(places[0] - (0.25 * rate_hz) as usize..places[0])?);
    let delays = places.map(|place| {
        // The next sound is half a second away.
        let after = wet.get(place..(place + (0.45 * rate_hz) as usize).min(wet.len()))?;
        let peak = peak(after);
        if peak < 4.0 * noise || peak < 1e-4 {
            return None;
        }
        let threshold = (BLIP_SHARE * peak).max(2.0 * noise);
        let came = after.iter().position(|x| x.abs() > threshold)?;
        let went = dry[place..].iter().position(|x| x.abs() > 0.5 * signal::BLIP_LEVEL)?;
        Some(came as i64 - went as i64)
    });
    match delays {
        [Some(first), Some(second)] if (first - second).abs() <= 2 => Some(first.min(second)),
        _ => None,
    }
}

/// Where the whitened cross-correlation is greatest within `reach` of `around`, and how great, 0 to 1.
fn whitened_peak(dry: &[f32], wet: &[f32], reach: i64, around: i64) -> (i64, f64) {
    let size = (dry.len() + wet.len()).next_power_of_two();
    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
    let spectrum = |sound: &[f32]| {
        let mut padded: Vec<f64> = sound.iter().map(|x| f64::from(*x)).collect();
        padded.resize(size, 0.0);
        let mut spectrum = forward.make_output_vec();
        // Both lengths are those that were planned.
        let _ = forward.process(&mut padded, &mut spectrum);
        spectrum
    };
    let mut cross: Vec<Complex<f64>> =
        spectrum(dry).iter().zip(spectrum(wet)).map(|(dry, wet)| wet * dry.conj()).collect();
    // What is weaker than a thousandth of the mean has no phase worth hearing.
    let floor = 1e-3 * cross.iter().map(|x| x.norm()).sum::<f64>() / cross.len() as f64 + 1e-30;
    for value in &mut cross {
        *value /= value.norm() + floor;
    }
    // The ends of a real spectrum are real.
    let last = cross.len() - 1;
    cross[0].im = 0.0;
    cross[last].im = 0.0;
    let mut correlation = vec![0.0; size];
    let _ = inverse.process(&mut cross, &mut correlation);
    let reach = reach.min(size as i64 / 2 - 1 - around.abs()).max(0);
    let at = |lag: i64| correlation[lag.rem_euclid(size as i64) as usize].abs() / size as f64;
    let best = (around - reach..=around + reach).max_by(|&a, &b| at(a).total_cmp(&at(b))).unwrap_or(around);
    (best, at(best))
}

/// The greatest plain correlation within `reach` of a delay, 0 to 1, and whether it is negative.
fn likeness(dry: &[f32], wet: &[f32], delay: i64, reach: i64) -> (f64, bool) {
    let mean = |sound: &[f32]| sound.iter().map(|x| f64::from(*x)).sum::<f64>() / sound.len().max(1) as f64;
    let correlation = |delay: i64| {
        let (dry, wet) = overlapping(dry, wet, delay);
        let (dry_mean, wet_mean) = (mean(dry), mean(wet));
        let mut sums = [0.0; 3];
        for (x, y) in dry.iter().zip(wet) {
            let (x, y) = (f64::from(*x) - dry_mean, f64::from(*y) - wet_mean);
            sums[0] += x * y;
            sums[1] += x * x;
            sums[2] += y * y;
        }
        sums[0] / (sums[1] * sums[2]).sqrt().max(1e-20)
    };
    let step = (reach / 12).max(1) as usize;
    let best = (delay - reach..=delay + reach).step_by(step).map(correlation);
    best.fold((0.0, false), |best, value| if value.abs() > best.0 { (value.abs(), value < 0.0) } else { best })
}

/// What of both is there when the second is that much behind.
pub(super) fn overlapping<'a>(dry: &'a [f32], wet: &'a [f32], delay: i64) -> (&'a [f32], &'a [f32]) {
    let dry = &dry[(-delay).clamp(0, dry.len() as i64) as usize..];
    let wet = &wet[delay.clamp(0, wet.len() as i64) as usize..];
    let common = dry.len().min(wet.len());
    (&dry[..common], &wet[..common])
}

/// How much later the end of the recording is than its beginning says, samples: the median slope between all pairs of places (Sen,
/// "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968), times the length.
fn drift(dry: &[f32], wet: &[f32], delay: i64) -> f64 {
    let (dry, wet) = overlapping(dry, wet, delay);
    let length = dry.len();
    let place = PLACE.min(length / 4);
    if place < 4_096 {
        return 0.0;
    }
    let mut found: Vec<(f64, f64)> = Vec::new();
    for index in 0..PLACES {
        let from = (length - place) * index / (PLACES - 1);
        let range = from..from + place;
        let reach = FARTHEST.min(place as i64 / 4);
        let (lag, likeness) = whitened_peak(&dry[range.clone()], &wet[range], reach, 0);
        if likeness > LIKENESS {
            found.push((from as f64, lag as f64));
        }
    }
    let mut slopes = Vec::new();
    for (index, first) in found.iter().enumerate() {
        let later = found[index + 1..].iter().filter(|second| second.0 > first.0 + place as f64);
        slopes.extend(later.map(|second| (second.1 - first.1) / (second.0 - first.0)));
    }
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).map_or(0.0, |slope| slope * length as f64)
}
