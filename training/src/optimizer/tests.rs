//! Updates against PyTorch and against the formulas of the papers, in f64.

use ondes_torch::TorchWeights;
use tch::{Kind, Tensor};

use super::{
    AdamConfig, CurvatureEstimate, GradientKind, LambConfig, Optimizer, OptimizerConfig,
    OptimizerStep, SamConfig, SgdConfig, SophiaConfig,
};
use crate::trainer::parameters::{Clip, Parameters};

/// Weights that PyTorch 2.11.0 reaches, printed by `reference.py`.
const REFERENCE: [(&str, [f64; 9]); 5] = [
    (
        "sgd",
        [
            0.206731457907,
            0.301215087191,
            0.412458380413,
            0.243462298116,
            0.217866719630,
            0.201507821984,
            -0.083654201044,
            -0.083258162195,
            -0.145247207852,
        ],
    ),
    (
        "momentum",
        [
            0.024980995448,
            0.199734711237,
            0.423216701785,
            0.128998136740,
            0.148836804847,
            0.195736113980,
            -0.422979258448,
            -0.235378189914,
            -0.038770297717,
        ],
    ),
    (
        "nesterov",
        [
            0.019741129886,
            0.194199258992,
            0.414905445102,
            0.122501180597,
            0.142237112183,
            0.187753960480,
            -0.418719503631,
            -0.228661806821,
            -0.035189829335,
        ],
    ),
    (
        "adam",
        [
            0.230221243804,
            0.280748301019,
            0.459014452048,
            0.230197373056,
            0.180622272799,
            0.208907307546,
            0.030258788468,
            -0.068944503183,
            -0.132342220553,
        ],
    ),
    (
        "adamw",
        [
            0.228336274712,
            0.278547040442,
            0.459586751351,
            0.228308863103,
            0.179100660129,
            0.228388576327,
            0.030262582402,
            -0.068924588610,
            -0.132455109225,
        ],
    ),
];

fn matrix(rows: i64, columns: i64, value: impl Fn(f64, f64) -> f64) -> Tensor {
    let values: Vec<f64> = (0..rows)
        .flat_map(|i| (0..columns).map(move |j| (i as f64, j as f64)))
        .map(|(i, j)| value(i, j))
        .collect();
    Tensor::from_slice(&values).view([rows, columns])
}

/// The problem of `reference.py`: one layer with tanh.
struct Problem {
    weights: TorchWeights,
    parameters: Parameters,
    x: Tensor,
    y: Tensor,
}

impl Problem {
    fn new() -> Self {
        let a = matrix(2, 3, |i, j| 0.3 - 0.1 * i * j + 0.05 * j);
        let b = Tensor::from_slice(&[0.1, 0.0, -0.2]);
        let mut weights = TorchWeights([("a".into(), a), ("b".into(), b)].into());
        let parameters = Parameters::new(&mut weights, &["a".into(), "b".into()])
            .expect("there are such weights");
        let x = matrix(4, 2, |i, j| 0.1 * i - 0.2 * j + 0.3);
        let y = matrix(4, 3, |i, j| 0.2 * j - 0.15 * i);
        Self {
            weights,
            parameters,
            x,
            y,
        }
    }

    fn loss(&self) -> Tensor {
        let output = (self.x.matmul(&self.weights.0["a"]) + &self.weights.0["b"]).tanh();
        (output - &self.y).square().mean(Kind::Double)
    }

    /// Makes steps with an optimiser.
    fn train(&mut self, optimizer: &mut dyn Optimizer, steps: u64, rate: f64, weight_decay: f64) {
        for number in 1..=steps {
            let Self {
                weights,
                parameters,
                x,
                y,
            } = self;
            let mut gradient = |parameters: &mut Parameters, _: GradientKind| {
                parameters.clear_gradients();
                let output = (x.matmul(&weights.0["a"]) + &weights.0["b"]).tanh();
                (output - &*y).square().mean(Kind::Double).backward();
                parameters.collect_gradients();
                Ok(())
            };
            gradient(parameters, GradientKind::Loss).expect("it can be computed");
            let step = OptimizerStep {
                number,
                rate,
                weight_decay,
                clip: Clip::default(),
            };
            optimizer
                .step(parameters, step, &mut gradient)
                .expect("it steps");
        }
    }

    fn values(&self) -> Vec<f64> {
        ["a", "b"]
            .iter()
            .flat_map(|name| Vec::<f64>::try_from(self.weights.0[*name].detach().view(-1)).unwrap())
            .collect()
    }

    /// Returns the gradient of `a` and `b` at the current weights.
    fn gradient(&self) -> Vec<f64> {
        let inputs = [
            self.weights.0["a"].shallow_clone(),
            self.weights.0["b"].shallow_clone(),
        ];
        let gradients = Tensor::run_backward(&[self.loss()], &inputs, false, false);
        gradients
            .iter()
            .flat_map(|gradient| Vec::<f64>::try_from(gradient.contiguous().view(-1)).unwrap())
            .collect()
    }
}

fn near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    let largest = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(
        largest <= tolerance,
        "{what}: {largest}: {found:?}, not {expected:?}"
    );
}

fn trained(config: &OptimizerConfig, steps: u64, rate: f64, weight_decay: f64) -> Vec<f64> {
    let mut problem = Problem::new();
    let mut optimizer = config.build(&problem.parameters);
    problem.train(&mut *optimizer, steps, rate, weight_decay);
    problem.values()
}

#[test]
fn sgd_adam_and_adamw_equal_pytorch() {
    let sgd = |momentum, nesterov| OptimizerConfig::Sgd(SgdConfig { momentum, nesterov });
    let adam = AdamConfig {
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-8,
    };
    for (name, expected) in REFERENCE {
        let (config, rate, decay) = match name {
            "sgd" => (sgd(0.0, false), 0.1, 0.0),
            "momentum" => (sgd(0.9, false), 0.1, 0.01),
            "nesterov" => (sgd(0.9, true), 0.1, 0.01),
            "adam" => (OptimizerConfig::Adam(adam), 0.01, 0.01),
            _ => (OptimizerConfig::AdamW(adam), 0.01, 0.1),
        };
        near(&trained(&config, 7, rate, decay), &expected, 1e-11, name);
    }
}

/// Algorithm 2 of You et al., written out for the two weights.
#[test]
fn lamb_equals_its_paper() {
    let config = LambConfig {
        beta1: 0.8,
        beta2: 0.9,
        epsilon: 1e-6,
    };
    let (rate, decay) = (0.05, 0.02);
    let mut problem = Problem::new();
    let mut w = problem.values();
    let (mut m, mut v) = (vec![0.0; 9], vec![0.0; 9]);
    let mut optimizer = OptimizerConfig::Lamb(config).build(&problem.parameters);
    for number in 1..=5 {
        let g = problem.gradient();
        let mut u = vec![0.0; 9];
        for i in 0..9 {
            m[i] = 0.8 * m[i] + 0.2 * g[i];
            v[i] = 0.9 * v[i] + 0.1 * g[i] * g[i];
            let corrected = m[i]
                / (1.0 - 0.8_f64.powi(number))
                / ((v[i] / (1.0 - 0.9_f64.powi(number))).sqrt() + 1e-6);
            u[i] = corrected + if i < 6 { decay * w[i] } else { 0.0 };
        }
        for layer in [0..6, 6..9] {
            let norm = |values: &[f64]| {
                values[layer.clone()]
                    .iter()
                    .map(|x| x * x)
                    .sum::<f64>()
                    .sqrt()
            };
            let ratio = norm(&w) / norm(&u);
            layer.clone().for_each(|i| w[i] -= rate * ratio * u[i]);
        }
        let step = OptimizerStep {
            number: number as u64,
            rate,
            weight_decay: decay,
            clip: Clip::default(),
        };
        problem.parameters.clear_gradients();
        problem.loss().backward();
        problem.parameters.collect_gradients();
        optimizer
            .step(&mut problem.parameters, step, &mut |_, _| Ok(()))
            .expect("it steps");
        near(&problem.values(), &w, 1e-12, "lamb");
    }
}

/// Algorithm 1 of Foret et al. around plain gradient descent.
#[test]
fn sam_equals_its_paper() {
    let around = Box::new(OptimizerConfig::Sgd(SgdConfig {
        momentum: 0.0,
        nesterov: false,
    }));
    let (rho, rate) = (0.1, 0.2);
    let found = trained(
        &OptimizerConfig::Sam(SamConfig { rho, around }),
        3,
        rate,
        0.0,
    );
    let problem = Problem::new();
    let set = |values: &[f64]| {
        tch::no_grad(|| {
            problem.weights.0["a"]
                .shallow_clone()
                .copy_(&Tensor::from_slice(&values[..6]).view([2, 3]));
            problem.weights.0["b"]
                .shallow_clone()
                .copy_(&Tensor::from_slice(&values[6..]));
        });
    };
    let mut w = problem.values();
    for _ in 0..3 {
        set(&w);
        let g = problem.gradient();
        let norm = g.iter().map(|x| x * x).sum::<f64>().sqrt();
        set(&w
            .iter()
            .zip(&g)
            .map(|(w, g)| w + rho * g / norm)
            .collect::<Vec<_>>());
        let worst = problem.gradient();
        w.iter_mut().zip(&worst).for_each(|(w, g)| *w -= rate * g);
    }
    near(&found, &w, 1e-12, "sam");
}

/// Algorithm 3 of Liu et al. On a quadratic whose Hessian is diagonal, both estimates are exact;
/// Gauss-Newton's of a negative curvature is the magnitude that the sampled gradient has.
#[test]
fn sophia_equals_its_paper() {
    for estimate in [
        CurvatureEstimate::Hutchinson,
        CurvatureEstimate::GaussNewton,
    ] {
        sophia_equals_its_paper_with(estimate);
    }
}

fn sophia_equals_its_paper_with(estimate: CurvatureEstimate) {
    let curvature = Tensor::from_slice(&[4.0_f64, 1.0, -1.0, 0.01]);
    let start = [1.0_f64, -2.0, 0.5, 3.0];
    let mut weights = TorchWeights([("w".into(), Tensor::from_slice(&start).view([2, 2]))].into());
    let mut parameters =
        Parameters::new(&mut weights, &["w".into()]).expect("there is such a weight");
    let config = SophiaConfig {
        beta1: 0.9,
        beta2: 0.5,
        gamma: 0.5,
        every: 2,
        estimate,
        ..SophiaConfig::default()
    };
    let mut optimizer = OptimizerConfig::Sophia(config).build(&parameters);
    let (rate, decay) = (0.1, 0.01);
    let mut w = start;
    let (mut m, mut h) = ([0.0; 4], [0.0; 4]);
    let c: [f64; 4] = [4.0, 1.0, -1.0, 0.01];
    let estimated = if estimate == CurvatureEstimate::GaussNewton {
        c.map(f64::abs)
    } else {
        c
    };
    for number in 1..=6_u64 {
        for i in 0..4 {
            m[i] = 0.9 * m[i] + 0.1 * c[i] * w[i];
            if number % 2 == 1 {
                h[i] = 0.5 * h[i] + 0.5 * estimated[i];
            }
            w[i] -= rate * decay * w[i];
            w[i] -= rate * (m[i] / (0.5_f64 * h[i]).max(1e-12)).clamp(-1.0, 1.0);
        }
        let mut gradient = |parameters: &mut Parameters, kind| {
            parameters.clear_gradients();
            let w = weights.0["w"].view(-1);
            let value = match kind {
                GradientKind::Loss => (w.square() * &curvature).sum(Kind::Double) * 0.5,
                GradientKind::CurvatureSample => (w * curvature.abs().sqrt()).sum(Kind::Double),
            };
            value.backward();
            parameters.collect_gradients();
            Ok(())
        };
        gradient(&mut parameters, GradientKind::Loss).expect("it can be computed");
        let step = OptimizerStep {
            number,
            rate,
            weight_decay: decay,
            clip: Clip::default(),
        };
        optimizer
            .step(&mut parameters, step, &mut gradient)
            .expect("it steps");
        let found = Vec::<f64>::try_from(weights.0["w"].detach().view(-1)).expect("numbers");
        near(&found, &w, 1e-9, "sophia");
    }
}

/// The estimate of a Hessian that is not diagonal has the right mean, and every optimiser lowers
/// the loss.
#[test]
fn every_optimizer_learns() {
    let start = Problem::new().loss().double_value(&[]);
    for name in OptimizerConfig::NAMES {
        let config = OptimizerConfig::named(name).expect("an optimizer");
        config.check().expect("defaults are allowed");
        let mut problem = Problem::new();
        let mut optimizer = config.build(&problem.parameters);
        problem.train(&mut *optimizer, 60, 0.01, 0.0);
        let end = problem.loss().double_value(&[]);
        assert!(end < 0.8 * start, "{name}: {end} after {start}");
        assert!(!optimizer.state().is_empty(), "{name}");
    }
}

#[test]
fn a_wrong_setting_is_named() {
    let error = |text: &str| {
        let config: Result<OptimizerConfig, _> = toml::from_str(text);
        match config {
            Ok(config) => config.check().expect_err("a mistake").to_string(),
            Err(error) => error.message().to_owned(),
        }
    };
    assert!(error("name = \"newton\"").contains("sophia"));
    assert!(error("name = \"sgd\"\nbeta1 = 0.9").contains("beta1"));
    for (text, field) in [
        ("name = \"sgd\"\nmomentum = 1.0", "optimizer.momentum"),
        ("name = \"adam\"\nbeta1 = -0.1", "optimizer.beta1"),
        ("name = \"adamw\"\nbeta2 = 1.0", "optimizer.beta2"),
        ("name = \"lamb\"\nepsilon = 0.0", "optimizer.epsilon"),
        ("name = \"sam\"\nrho = 0.0", "optimizer.rho"),
        (
            "name = \"sam\"\naround = { name = \"sam\" }",
            "optimizer.around",
        ),
        ("name = \"sophia\"\nevery = 0", "optimizer.every"),
        ("name = \"sophia\"\ngamma = 0.0", "optimizer.gamma"),
        ("name = \"sophia\"\nestimate = \"exact\"", "gauss-newton"),
    ] {
        assert!(error(text).contains(field), "{text}: {}", error(text));
    }
    assert!(OptimizerConfig::named("newton").is_err());
}
