//! Axes of charts.

/// Margin around the outermost points of a logarithmic axis, as a factor.
const MARGIN: f64 = 1.25;
/// Least value on a logarithmic axis.
const LEAST: f64 = 1e-9;
/// Ticks of a linear axis, about.
const LINEAR_TICKS: f64 = 5.0;

/// Axis of a chart.
pub struct Axis {
    /// Its ends; natural logarithms of a logarithmic axis.
    low: f64,
    high: f64,
    /// Positions of its ends, pixels.
    pixels: (f32, f32),
    is_logarithmic: bool,
}

impl Axis {
    /// Creates a logarithmic axis that contains all finite values, with a margin.
    pub fn logarithmic(values: impl Iterator<Item = f64>, pixels: (f32, f32)) -> Self {
        let (low, high) = ends(values.map(|value| value.max(LEAST))).unwrap_or((1.0, 1.0));
        Self {
            low: (low / MARGIN).ln(),
            high: (high * MARGIN).ln(),
            pixels,
            is_logarithmic: true,
        }
    }

    /// Creates a linear axis that contains all finite values.
    pub fn linear(values: impl Iterator<Item = f64>, pixels: (f32, f32)) -> Self {
        let (low, high) = ends(values).unwrap_or((0.0, 1.0));
        let high = if low < high { high } else { low + 1.0 };
        Self {
            low,
            high,
            pixels,
            is_logarithmic: false,
        }
    }

    /// Returns the position of a value, pixels.
    pub fn pixel(&self, value: f64) -> f32 {
        let value = if self.is_logarithmic {
            value.max(LEAST).ln()
        } else {
            value
        };
        let fraction = (value - self.low) / (self.high - self.low);
        self.pixels.0 + fraction as f32 * (self.pixels.1 - self.pixels.0)
    }

    /// Returns round values within the axis. On a logarithmic axis these are 1, 2 and 5 times
    /// powers of ten, or more digits if these are fewer than three.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.is_logarithmic {
            let rough = (self.high - self.low) / LINEAR_TICKS;
            let power = 10_f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0]
                .map(|digit| digit * power)
                .into_iter()
                .find(|step| *step >= rough);
            let step = step.unwrap_or(rough);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            return (first..=last).map(|index| index as f64 * step).collect();
        }
        let multiples = |digits: &[f64]| -> Vec<f64> {
            let powers = (self.low / std::f64::consts::LN_10).floor() as i32
                ..=(self.high / std::f64::consts::LN_10) as i32;
            let all =
                powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            all.filter(|tick| (self.low..=self.high).contains(&tick.ln()))
                .collect()
        };
        let few = multiples(&[1.0, 2.0, 5.0]);
        if few.len() >= 3 {
            few
        } else {
            multiples(&[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
        }
    }
}

/// Returns least and largest of the finite values; `None` if there are none.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values
        .filter(|value| value.is_finite())
        .map(|value| (value, value));
    finite.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
}

/// Formats a number with as many digits as it needs.
pub fn label(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = (1 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_contains_all_values_and_has_ticks() {
        for values in [
            vec![53.0, 341.0],
            vec![0.0006, 0.0045],
            vec![7.0],
            vec![0.0],
            vec![],
            vec![f64::NAN, 3.0],
        ] {
            for make in [Axis::logarithmic, Axis::linear] {
                let axis = make(values.clone().into_iter(), (100.0, 200.0));
                let finite = values.iter().filter(|value| value.is_finite());
                assert!(
                    finite
                        .clone()
                        .all(|&value| (100.0..=200.0).contains(&axis.pixel(value))),
                    "{values:?}"
                );
                assert!(!axis.ticks().is_empty(), "{values:?}");
            }
        }
        assert_eq!(
            [0.0005, 0.02, 1.5, 100.0, 25.0, 0.0].map(label),
            ["0.0005", "0.02", "1.5", "100", "25", "0"]
        );
        let axis = Axis::linear([0.0, 1_000.0].into_iter(), (0.0, 1.0));
        assert_eq!(axis.ticks(), [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
    }
}
