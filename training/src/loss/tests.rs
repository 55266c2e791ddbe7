//! Every term is zero for equal sounds, grows with the error it is named for, and has a finite
//! gradient.

use std::f64::consts::TAU;

use tch::{Device, Kind, Tensor};

use super::{LossWeights, WeightedLoss};

const RATE: u32 = 48_000;
const SAMPLES: usize = 8_192;

fn sine(frequency_hz: f64, amplitude: f64) -> Vec<f32> {
    let phase = |n: usize| TAU * frequency_hz * n as f64 / f64::from(RATE);
    (0..SAMPLES)
        .map(|n| (amplitude * phase(n).sin()) as f32)
        .collect()
}

fn row(sound: &[f32]) -> Tensor {
    Tensor::from_slice(sound).view([1, -1])
}

fn only(name: &str) -> LossWeights {
    let table = toml::Table::from_iter([(name.to_owned(), toml::Value::from(1.0))]);
    table.try_into().expect("a term")
}

fn loss(name: &str, sound: &[f32], target: &[f32]) -> f64 {
    let loss = WeightedLoss::new(only(name), RATE, &[target], Device::Cpu);
    loss.between(&row(sound), &row(target))
        .total
        .double_value(&[])
}

fn names() -> Vec<String> {
    toml::Table::try_from(LossWeights::default())
        .expect("a table")
        .keys()
        .cloned()
        .collect()
}

#[test]
fn terms_are_zero_for_equal_sounds_and_have_gradients() {
    let target = sine(1_000.0, 0.5);
    assert_eq!(names().len(), 12);
    for name in names() {
        assert!(
            loss(&name, &target, &target).abs() < 1e-5,
            "{name}: {}",
            loss(&name, &target, &target)
        );
        let worse: Vec<f64> = [0.9, 0.6, 0.0]
            .map(|gain| {
                let sound: Vec<f32> = target
                    .iter()
                    .map(|x| gain * x + 0.3 * (1.0 - gain))
                    .collect();
                loss(&name, &sound, &target)
            })
            .into();
        assert!(
            worse[0] > 1e-6 && worse[0] < worse[1] && worse[1] < worse[2],
            "{name}: {worse:?}"
        );

        let sound = row(&sine(1_030.0, 0.4)).set_requires_grad(true);
        let prepared = WeightedLoss::new(only(&name), RATE, &[&target], Device::Cpu);
        prepared
            .between(&(&sound + 0.01), &row(&target))
            .total
            .backward();
        let gradient = sound.grad();
        assert!(gradient.isfinite().all().int64_value(&[]) == 1, "{name}");
        assert!(
            gradient.abs().sum(Kind::Double).double_value(&[]) > 0.0,
            "{name}"
        );
        // The gradient at silence is finite, too.
        let silent = row(&[0.0; SAMPLES]).set_requires_grad(true);
        prepared.between(&silent, &row(&target)).total.backward();
        assert!(
            silent.grad().isfinite().all().int64_value(&[]) == 1,
            "{name}"
        );
    }
}

#[test]
fn terms_have_the_values_of_their_formulas() {
    let target = sine(1_000.0, 0.5);
    let near = |value: f64, expected: f64| {
        assert!(
            (value / expected - 1.0).abs() < 0.02,
            "{value}, not {expected}"
        )
    };
    let silence = vec![0.0; SAMPLES];
    near(loss("esr", &silence, &target), 1.0);
    near(loss("pre_emphasis", &silence, &target), 1.0);
    near(loss("a_weighting", &silence, &target), 1.0);
    near(loss("mse", &silence, &target), 0.125);
    near(
        loss("l1", &silence, &target),
        0.5 * 2.0 / std::f64::consts::PI,
    );
    let offset: Vec<f32> = target.iter().map(|x| x + 0.1).collect();
    near(loss("dc", &offset, &target), 0.01 / 0.125);
    // Half the amplitude is 6.02 dB less.
    near(loss("loudness", &sine(1_000.0, 0.25), &target), 0.602);
    // A-weighting at 100 Hz is -19.1 dB.
    let both: Vec<f32> = target
        .iter()
        .zip(sine(100.0, 0.5))
        .map(|(a, b)| a + b)
        .collect();
    near(loss("a_weighting", &both, &target), 10_f64.powf(-1.91));
    // Twice the sound: convergence 1, log magnitude at most ln 2.
    let twice: Vec<f32> = target.iter().map(|x| 2.0 * x).collect();
    let stft = loss("stft", &twice, &target);
    assert!(
        (1.0..1.0 + std::f64::consts::LN_2).contains(&stft),
        "{stft}"
    );
}

#[test]
fn rows_of_unequal_level_add_up_to_the_batch() {
    let sounds = [sine(1_000.0, 0.5), sine(700.0, 0.05)];
    let targets = [sine(1_010.0, 0.4), sine(900.0, 0.02)];
    for name in names() {
        let training_sound: Vec<&[f32]> = targets.iter().map(Vec::as_slice).collect();
        let prepared = WeightedLoss::new(only(&name), RATE, &training_sound, Device::Cpu);
        let value = |sound: &Tensor, target: &Tensor| {
            prepared.between(sound, target).total.double_value(&[])
        };
        let rows = [0, 1].map(|index: usize| value(&row(&sounds[index]), &row(&targets[index])));
        let batch = |sounds: &[Vec<f32>; 2]| Tensor::cat(&[row(&sounds[0]), row(&sounds[1])], 0);
        let whole = value(&batch(&sounds), &batch(&targets));
        let mean = (rows[0] + rows[1]) / 2.0;
        assert!(
            (whole - mean).abs() <= 1e-5 * mean,
            "{name}: {whole} for {rows:?}"
        );
    }
}

#[test]
fn weights_scale_terms_and_wrong_ones_are_named() {
    let target = sine(500.0, 0.5);
    let sound = sine(510.0, 0.5);
    let weights = LossWeights {
        esr: 2.0,
        l1: 3.0,
        ..LossWeights::default()
    };
    let all = WeightedLoss::new(weights, RATE, &[&target], Device::Cpu)
        .between(&row(&sound), &row(&target));
    let expected = 2.0 * loss("esr", &sound, &target) + 3.0 * loss("l1", &sound, &target);
    assert!((all.total.double_value(&[]) - expected).abs() < 1e-5);
    assert_eq!(
        all.terms.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["esr", "l1"]
    );
    let error = |weights: LossWeights| weights.check().expect_err("a mistake").to_string();
    assert!(
        error(LossWeights {
            mel: -1.0,
            ..weights
        })
        .contains("loss.mel")
    );
    assert!(error(LossWeights::default()).contains("weight above 0"));
}

/// Of a linear network `X w`, the Gauss-Newton matrix of `c / n |X w − y|²` is `2 c / n Xᵀ X`.
#[test]
fn a_curvature_sample_has_the_diagonal_of_the_gauss_newton_matrix_as_its_mean() {
    let target = sine(1_000.0, 0.5);
    let x = Tensor::from_slice(&[1.0_f32, 2.0, -1.0, 0.5, 3.0, 0.0, 0.25, -2.0]).view([4, 2]);
    let (esr, mse, emphasised) = (0.5, 3.0, 2.0);
    let weights = LossWeights {
        esr,
        mse,
        pre_emphasis: emphasised,
        l1: 1.0,
        ..LossWeights::default()
    };
    let loss = WeightedLoss::new(weights, RATE, &[&target], Device::Cpu);
    let steeper = x.narrow(0, 1, 3) - 0.95 * x.narrow(0, 0, 3);
    let diagonal = |x: &Tensor, weight: f64| {
        x.square().sum_dim_intlist(0, false, Kind::Float) * (2.0 * weight)
    };
    let expected = diagonal(&x, (esr / loss.power + mse) / 4.0)
        + diagonal(&steeper, emphasised / loss.emphasised_power / 3.0);
    let w = Tensor::zeros([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    let rounds = 4_000;
    let mut mean = Tensor::zeros([2], (Kind::Float, Device::Cpu));
    for seed in 0..rounds {
        let sample = loss
            .curvature_sample(&x.matmul(&w.unsqueeze(1)).view([1, 4]), seed)
            .expect("a squared error");
        let gradient = Tensor::run_backward(&[sample], &[&w], false, false).remove(0);
        mean += gradient.square() / rounds as f64;
    }
    let ratio = Vec::<f32>::try_from(mean / expected).expect("numbers");
    assert!(
        ratio.iter().all(|ratio| (0.92..1.08).contains(ratio)),
        "{ratio:?}"
    );
    let none = WeightedLoss::new(only("spectral"), RATE, &[&target], Device::Cpu);
    assert!(none.curvature_sample(&row(&target), 0).is_none());
}
