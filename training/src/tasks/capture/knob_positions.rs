//! Positions of knobs to capture a device at.

/// Share by which positions reach beyond the ends of the knobs, where they stop. A twelfth of them is
/// at each end, so that a network learns what happens there.
const OVERREACH: f64 = 0.1;
/// Steps of a knob from 0 to 1.
const STEPS: f64 = 100.0;

/// Returns the position of each knob, 0 to 1, in the take of that number; takes from 0 on fill the
/// space of all positions evenly, however many there are.
///
/// It is the additive recurrence with the generalised golden ratio (Roberts, "The unreasonable
/// effectiveness of quasirandom sequences", 2018), shifted by the seed, in steps of a hundredth.
#[must_use]
pub fn knob_positions(knobs: usize, seed: u64, take: usize) -> Vec<f64> {
    let power = 1.0 / (knobs as f64 + 1.0);
    // The root of x^(knobs + 1) = x + 1.
    let ratio = (0..40).fold(2.0_f64, |x, _| (1.0 + x).powf(power));
    let position = |knob: usize| {
        let step = ratio.powi(-(knob as i32 + 1));
        let along = (0.5 + (take as f64 + 1_009.0 * seed as f64) * step).fract();
        let stretched = ((1.0 + 2.0 * OVERREACH) * along - OVERREACH).clamp(0.0, 1.0);
        (STEPS * stretched).round() / STEPS
    };
    (0..knobs).map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::knob_positions;

    #[test]
    fn positions_fill_the_space() {
        let takes: Vec<_> = (0..64).map(|take| knob_positions(4, 0, take)).collect();
        assert!(
            takes
                .iter()
                .flatten()
                .all(|position| (0.0..=1.0).contains(position))
        );
        // Each quarter of each pair of knobs has about its share of 16.
        for (first, second) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let mut quarters = [0; 4];
            for take in &takes {
                quarters[2 * usize::from(take[first] > 0.5) + usize::from(take[second] > 0.5)] += 1;
            }
            assert!(
                quarters.iter().all(|count| (9..=23).contains(count)),
                "{first} {second}: {quarters:?}"
            );
        }
        for knob in 0..4 {
            let at_end = |end: f64| takes.iter().filter(|take| take[knob] == end).count();
            assert!(at_end(0.0) > 2 && at_end(1.0) > 2, "{knob}");
        }
        assert_ne!(knob_positions(4, 1, 0), takes[0]);
    }
}
