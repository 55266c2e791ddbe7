//! The bundled captures, with trained weights, are as close to f64 as random ones, also after a
//! long time.

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::{Model, file};
use ondes_engine::native::Executor;
use ondes_tests::bundled_file;

use super::accuracy::{play, playing, relative_rms};

fn bundled(name: &str) -> Model {
    file::read(&bundled_file(name)).expect("it is whole")
}

/// LSTM with one input and a linear head, in f64.
struct Lstm {
    hidden: usize,
    weights: [Vec<f64>; 5],
    h: Vec<f64>,
    c: Vec<f64>,
}

impl Lstm {
    /// Creates it with the model's initial state.
    fn new(model: &Model) -> Self {
        let values = |name: &str| {
            let found = model.weights().iter().find(|(other, _)| *other == name);
            found
                .unwrap_or_else(|| panic!("{name}"))
                .1
                .floats()
                .iter()
                .map(|x| f64::from(*x))
                .collect::<Vec<f64>>()
        };
        let bias: Vec<f64> = values("layer0.bias_ih")
            .iter()
            .zip(values("layer0.bias_hh"))
            .map(|(input, state)| input + state)
            .collect();
        let hidden = bias.len() / 4;
        let names = [
            "layer0.weight_ih",
            "layer0.weight_hh",
            "head.weight",
            "head.bias",
        ]
        .map(values);
        let [from_input, from_state, head, head_bias] = names;
        let weights = [from_input, from_state, bias, head, head_bias];
        let mut lstm = Self {
            hidden,
            weights,
            h: vec![0.0; hidden],
            c: vec![0.0; hidden],
        };
        let warm_up = model.method("forward").expect("a capture").warm_up;
        for _ in 0..warm_up {
            lstm.step(0.0);
        }
        lstm
    }

    fn step(&mut self, x: f64) -> f64 {
        let Self {
            hidden,
            weights: [from_input, from_state, bias, head, head_bias],
            h,
            c,
        } = self;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let gates: Vec<f64> = (0..4 * *hidden)
            .map(|gate| {
                let states = &from_state[gate * *hidden..(gate + 1) * *hidden];
                bias[gate]
                    + from_input[gate] * x
                    + states.iter().zip(h.iter()).map(|(w, h)| w * h).sum::<f64>()
            })
            .collect();
        for unit in 0..*hidden {
            let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * *hidden + unit]);
            c[unit] = sigmoid(f) * c[unit] + sigmoid(i) * g.tanh();
            h[unit] = sigmoid(o) * c[unit].tanh();
        }
        head_bias[0] + head.iter().zip(h.iter()).map(|(w, h)| w * h).sum::<f64>()
    }
}

#[test]
fn learnt_weights_are_played_as_exactly_as_random_ones() {
    let sound = playing(480_000);
    for name in ["overdrive", "triode", "fuzz"] {
        let model = bundled(name);
        let mut lstm = Lstm::new(&model);
        let expected: Vec<f64> = sound.iter().map(|x| lstm.step(f64::from(*x))).collect();
        for step in [32, 64, 512] {
            let steps: Vec<usize> = sound.chunks(step).map(<[f32]>::len).collect();
            let error = relative_rms(
                &play(&model, "forward", std::slice::from_ref(&sound), &steps),
                &expected,
            );
            assert!(error <= 1e-5, "{name} in steps of {step}: {error:e}");
        }
    }
}

#[test]
fn bundled_captures_are_silent_in_silence() {
    let silence = vec![0.0; 48_000];
    for name in ["overdrive", "triode", "fuzz"] {
        let model = bundled(name);
        for method in ["forward", "forward.light"] {
            let last = *play(&model, method, std::slice::from_ref(&silence), &[48_000])
                .last()
                .expect("sound");
            assert!(last.abs() < 1e-6, "{name}, {method}: {last:e}");
        }
    }
}

/// Length of the test in minutes: 1, or `ONDES_SOAK_MINUTES`.
#[test]
fn nothing_drifts_in_the_long_run() {
    let minutes: usize =
        std::env::var("ONDES_SOAK_MINUTES").map_or(1, |minutes| minutes.parse().expect("a number"));
    let model = bundled("fuzz");
    let mut lstm = Lstm::new(&model);
    let mut executor =
        Executor::new(&model, "forward", Kernels::detect(), 1, 512).expect("it fits");
    let sound = playing(60 * 48_000);
    for minute in 1..=minutes {
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for chunk in sound.chunks(512) {
            executor.begin(&[0], chunk.len());
            executor.input(0).copy_from_slice(chunk);
            executor.run();
            found.extend_from_slice(executor.output(0));
            expected.extend(chunk.iter().map(|x| lstm.step(f64::from(*x))));
        }
        let error = relative_rms(&found, &expected);
        assert!(error <= 1e-5, "{error:e} in minute {minute}");
    }
}
