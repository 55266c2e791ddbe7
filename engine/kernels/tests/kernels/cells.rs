//! Recurrent layers at audio rate.

use ondes_kernels::{CellKind, CellWeights, Kernels};

use crate::common::{Noise, assert_close, assert_same_bits, sigmoid};

/// A recurrent layer with weights as in PyTorch, for four gates.
struct Layer {
    cell: CellKind,
    inputs: usize,
    hidden: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    fn new(cell: CellKind, inputs: usize, hidden: usize) -> Self {
        let mut noise = Noise::new((inputs * 100 + hidden) as u64);
        let mut weights = noise.vec(4 * hidden * (inputs + hidden), 0.4);
        if cell == CellKind::Gru {
            // Of the last two gates, one reads the inputs only, the other the state only.
            for unit in 0..hidden {
                weights[(2 * hidden + unit) * (inputs + hidden) + inputs..][..hidden].fill(0.0);
                weights[(3 * hidden + unit) * (inputs + hidden)..][..inputs].fill(0.0);
            }
        }
        Self {
            cell,
            inputs,
            hidden,
            weights,
            bias: noise.vec(4 * hidden, 0.5),
        }
    }

    fn run(&self, kernels: Kernels, x: &[f32], block: usize) -> Vec<f32> {
        let row = |gate: usize, unit: usize| gate * self.hidden + unit;
        let width = self.inputs + self.hidden;
        let weight = |gate, unit, input| self.weights[row(gate, unit) * width + input];
        let packed = CellWeights::new(self.cell, self.inputs, self.hidden, weight, |gate, unit| {
            self.bias[row(gate, unit)]
        });
        let (mut h, mut c) = (
            vec![0.0; 2 * packed.state_len()],
            vec![0.0; packed.state_len()],
        );
        let mut y = vec![0.0; x.len() / self.inputs * self.hidden];
        for (x, y) in x
            .chunks(block * self.inputs)
            .zip(y.chunks_mut(block * self.hidden))
        {
            kernels.run_cells(&packed, x, &mut h, &mut c, y);
        }
        y
    }

    fn reference(&self, x: &[f32]) -> Vec<f64> {
        let (mut h, mut c) = (vec![0.0; self.hidden], vec![0.0; self.hidden]);
        let mut y = Vec::new();
        for x in x.chunks_exact(self.inputs) {
            let inputs: Vec<f64> = x
                .iter()
                .map(|&x| f64::from(x))
                .chain(h.iter().copied())
                .collect();
            let gate = |gate: usize, unit: usize| {
                let row = gate * self.hidden + unit;
                let weights = &self.weights[row * inputs.len()..][..inputs.len()];
                let sum: f64 = weights
                    .iter()
                    .zip(&inputs)
                    .map(|(&weight, value)| f64::from(weight) * value)
                    .sum();
                sum + f64::from(self.bias[row])
            };
            for unit in 0..self.hidden {
                let [a, b, n, o] = [0, 1, 2, 3].map(|index| gate(index, unit));
                h[unit] = match self.cell {
                    CellKind::Lstm => {
                        c[unit] = sigmoid(b) * c[unit] + sigmoid(a) * n.tanh();
                        sigmoid(o) * c[unit].tanh()
                    }
                    CellKind::Gru => {
                        (1.0 - sigmoid(b)) * (n + sigmoid(a) * o).tanh() + sigmoid(b) * h[unit]
                    }
                };
            }
            y.extend(&h);
        }
        y
    }
}

#[test]
fn cells_match_the_reference_in_every_variant_and_block_size() {
    for cell in [CellKind::Lstm, CellKind::Gru] {
        for (inputs, hidden) in [
            (1, 16),
            (3, 40),
            (2, 7),
            (1, 1),
            (1, 29),
            (1, 9),
            (2, 24),
            (1, 48),
            (1, 49),
            (1, 72),
            (1, 100),
        ] {
            let layer = Layer::new(cell, inputs, hidden);
            let x = Noise::new(9).vec(300 * inputs, 1.5);
            let reference = layer.run(Kernels::scalar(), &x, 300);
            assert_close(&reference, &layer.reference(&x), 0.0, 3e-6);
            for kernels in Kernels::available() {
                for block in [1, 7, 64, 300] {
                    assert_same_bits(&layer.run(kernels, &x, block), &reference);
                }
            }
        }
    }
}

#[test]
fn cells_stay_bounded_on_extreme_input_and_propagate_nan() {
    let layer = Layer::new(CellKind::Lstm, 1, 16);
    let loud = layer.run(
        Kernels::detect(),
        &[1e30, -1e30, f32::INFINITY, 5.0, 0.0, 1.0],
        6,
    );
    assert!(
        loud.iter().all(|value| value.abs() <= 1.000_001),
        "{loud:?}"
    );
    let nan = layer.run(Kernels::detect(), &[0.5, f32::NAN, 0.5], 3);
    assert!(nan[..16].iter().all(|value| value.is_finite()));
    assert!(nan[16..].iter().all(|value| value.is_nan()));
}
