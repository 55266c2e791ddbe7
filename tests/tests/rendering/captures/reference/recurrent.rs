//! Recurrent cells, gates in PyTorch's order, weights `[gate · unit][input]`.

use super::{Signal, sigmoid};

pub struct Cell {
    pub hidden: usize,
    pub from_input: Vec<Vec<f64>>,
    pub from_state: Vec<Vec<f64>>,
    pub input_bias: Vec<f64>,
    pub state_bias: Vec<f64>,
    pub state: Vec<f64>,
    pub cells: Vec<f64>,
}

fn product(matrix: &[Vec<f64>], x: &[f64], bias: &[f64]) -> Vec<f64> {
    matrix
        .iter()
        .zip(bias)
        .map(|(row, bias)| bias + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
        .collect()
}

impl Cell {
    fn frames(x: &Signal) -> impl Iterator<Item = Vec<f64>> + '_ {
        (0..x[0].len()).map(|t| x.iter().map(|channel| channel[t]).collect())
    }

    pub fn lstm(mut self, x: &Signal) -> Signal {
        let h = self.hidden;
        let mut output = vec![Vec::new(); h];
        for frame in Self::frames(x) {
            let gates = product(&self.from_input, &frame, &self.input_bias);
            let more = product(&self.from_state, &self.state, &self.state_bias);
            let gate = |kind: usize, unit: usize| gates[kind * h + unit] + more[kind * h + unit];
            for unit in 0..h {
                let entering = sigmoid(gate(0, unit)) * gate(2, unit).tanh();
                self.cells[unit] = sigmoid(gate(1, unit)) * self.cells[unit] + entering;
                self.state[unit] = sigmoid(gate(3, unit)) * self.cells[unit].tanh();
                output[unit].push(self.state[unit]);
            }
        }
        output
    }

    pub fn gru(mut self, x: &Signal) -> Signal {
        let h = self.hidden;
        let mut output = vec![Vec::new(); h];
        for frame in Self::frames(x) {
            let a = product(&self.from_input, &frame, &self.input_bias);
            let b = product(&self.from_state, &self.state, &self.state_bias);
            for unit in 0..h {
                let r = sigmoid(a[unit] + b[unit]);
                let z = sigmoid(a[h + unit] + b[h + unit]);
                let n = (a[2 * h + unit] + r * b[2 * h + unit]).tanh();
                self.state[unit] = (1.0 - z) * n + z * self.state[unit];
                output[unit].push(self.state[unit]);
            }
        }
        output
    }
}
