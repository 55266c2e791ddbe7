//! Recurrent layers of the CPU in training, by the kernels that play them.
//!
//! libtorch's layers are a dozen operations a frame, forward and backward; at the sample rate these
//! are most of a step. Here a frame is one product and one pass over the gates. The rows of a batch
//! are shared out to threads.

use std::ffi::{c_char, c_void};

use ondes_engine::Kernels;
use ondes_kernels::{Columns, PackedMatrix};
use tch::{Device, Kind, Tensor};

use crate::cpp_error;

/// Fewest rows of a batch for a thread.
const MIN_ROWS: usize = 4;

/// Values of a sequence, as in `recurrence.cpp`.
#[repr(C)]
struct Values {
    frames: i64,
    rows: i64,
    units: i64,
    lstm: bool,
    weight: *const f32,
    bias: *const f32,
    gates: *mut f32,
    kept: *mut f32,
    h0: *const f32,
    h: *mut f32,
    dy: *const f32,
    d_gates: *mut f32,
    d_state: *mut f32,
    dh: *mut f32,
    dc: *mut f32,
}

type Pass = unsafe extern "C" fn(*const Values);

unsafe extern "C" {
    fn ondes_recurrence(
        forward: Pass,
        backward: Pass,
        gates: *const c_void,
        weight: *const c_void,
        bias: *const c_void,
        h0: *const c_void,
        c0: *const c_void,
        outputs: *mut *mut c_void,
    ) -> *mut c_char;
}

/// Returns whether [`recurrence`] computes a layer with these weights.
pub fn serves(weight: &Tensor) -> bool {
    weight.requires_grad() && weight.device() == Device::Cpu && weight.kind() == Kind::Float
}

/// Computes the states of a sequence, `[frame, row, unit]`, and the last of them, `[row, unit]`; of
/// an LSTM, which has a `c0`, also the last c. `gates` are the products of the input,
/// `[frame, row, gate * unit]`, in memory that nothing else reads, since the passes overwrite it;
/// `weight` and `bias` are those of the state, in PyTorch's order. The products of an LSTM have
/// both biases.
///
/// # Panics
/// Panics with libtorch's error, such as that there is not enough memory.
pub fn recurrence(
    gates: Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    states: &[Tensor],
) -> Vec<Tensor> {
    let gates = gates.to_kind(Kind::Float).contiguous();
    let (weight, bias) = (weight.contiguous(), bias.map(Tensor::contiguous));
    let states: Vec<Tensor> = states
        .iter()
        .map(|state| state.to_kind(Kind::Float).contiguous())
        .collect();
    let pointer =
        |tensor: Option<&Tensor>| tensor.map_or(std::ptr::null(), |tensor| tensor.as_ptr().cast());
    let mut outputs = [std::ptr::null_mut(); 3];
    // SAFETY: the tensors live during the call; there is room for three outputs; the error is ours.
    unsafe {
        let (gates, weight) = (pointer(Some(&gates)), pointer(Some(&weight)));
        let (h0, c0) = (pointer(states.first()), pointer(states.get(1)));
        let (bias, outputs) = (pointer(bias.as_ref()), outputs.as_mut_ptr());
        cpp_error::raise(ondes_recurrence(
            forward, backward, gates, weight, bias, h0, c0, outputs,
        ));
    }
    // SAFETY: without an error each output is a tensor of its own, freed here only.
    outputs[..=states.len()]
        .iter()
        .map(|output| unsafe { Tensor::from_ptr(output.cast()) })
        .collect()
}

/// Runs the forward pass.
///
/// # Safety
/// The pointers that it reads are valid for the lengths that `recurrence.cpp` states.
unsafe extern "C" fn forward(values: *const Values) {
    // SAFETY: stated above.
    let values = unsafe { &*values };
    values.share_out(|rows| values.forward(rows));
}

/// Runs the backward pass.
///
/// # Safety
/// As for [`forward`].
unsafe extern "C" fn backward(values: *const Values) {
    // SAFETY: stated above.
    let values = unsafe { &*values };
    values.share_out(|rows| values.backward(rows));
}

// SAFETY: threads have rows of their own; what they share is only read.
unsafe impl Sync for Values {}

/// Rows of one thread.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    count: usize,
}

impl Values {
    fn gate_count(&self) -> usize {
        if self.lstm { 4 } else { 3 }
    }

    /// Runs a pass on parts of the rows, as many as libtorch has threads.
    fn share_out(&self, pass: impl Fn(Rows) + Sync) {
        let rows = self.rows as usize;
        let threads = (tch::get_num_threads() as usize)
            .min(rows / MIN_ROWS)
            .max(1);
        let part = |index: usize| {
            let (first, end) = (rows * index / threads, rows * (index + 1) / threads);
            Rows {
                first,
                count: end - first,
            }
        };
        std::thread::scope(|scope| {
            for index in 1..threads {
                let (pass, part) = (&pass, part(index));
                scope.spawn(move || pass(part));
            }
            pass(part(0));
        });
    }

    /// Returns some rows of a frame: `width` values of each.
    ///
    /// # Safety
    /// The values are there, and nothing writes them meanwhile.
    unsafe fn read<'v>(
        &self,
        values: *const f32,
        frame: usize,
        rows: Rows,
        width: usize,
    ) -> &'v [f32] {
        // SAFETY: stated above.
        unsafe {
            let start = (frame * self.rows as usize + rows.first) * width;
            std::slice::from_raw_parts(values.add(start), rows.count * width)
        }
    }

    /// Returns some rows of a frame to be written: `width` values of each.
    ///
    /// # Safety
    /// The values are there, and nothing else reads or writes them meanwhile.
    unsafe fn write<'v>(
        &self,
        values: *mut f32,
        frame: usize,
        rows: Rows,
        width: usize,
    ) -> &'v mut [f32] {
        // SAFETY: stated above.
        unsafe {
            let start = (frame * self.rows as usize + rows.first) * width;
            std::slice::from_raw_parts_mut(values.add(start), rows.count * width)
        }
    }

    fn forward(&self, rows: Rows) {
        let (units, products) = (self.units as usize, self.gate_count() * self.units as usize);
        let kernels = Kernels::detect();
        // SAFETY: the weights have these lengths.
        let (weight, bias) = unsafe {
            let bias =
                (!self.bias.is_null()).then(|| std::slice::from_raw_parts(self.bias, products));
            (
                std::slice::from_raw_parts(self.weight, products * units),
                bias,
            )
        };
        let packed = PackedMatrix::new(
            products,
            1,
            units,
            |output, _, input| weight[output * units + input],
            bias,
        );
        let mut from_state = vec![0.0; rows.count * products];
        for frame in 0..self.frames as usize {
            // SAFETY: each frame and row is written once, and read only in later frames; c has one
            // frame more.
            let (before, gates, h) = unsafe {
                let before = match frame {
                    0 => self.read(self.h0, 0, rows, units),
                    _ => self.read(self.h, frame - 1, rows, units),
                };
                (
                    before,
                    self.write(self.gates, frame, rows, products),
                    self.write(self.h, frame, rows, units),
                )
            };
            let columns = Columns {
                data: before,
                count: rows.count,
                stride: units,
                tap_stride: units,
            };
            kernels.matmul(&packed, columns, &mut from_state, products);
            let each = from_state
                .chunks_exact(products)
                .zip(gates.chunks_exact_mut(products));
            let each = each.zip(h.chunks_exact_mut(units));
            if self.lstm {
                // SAFETY: as above.
                let (c_before, c) = unsafe {
                    (
                        self.read(self.kept, frame, rows, units),
                        self.write(self.kept, frame + 1, rows, units),
                    )
                };
                let memory = c_before.chunks_exact(units).zip(c.chunks_exact_mut(units));
                for (((from_state, gates), h), (c_before, c)) in each.zip(memory) {
                    kernels.lstm_step(from_state, c_before, gates, c, h);
                }
            } else {
                // SAFETY: as above.
                let kept = unsafe { self.write(self.kept, frame, rows, units) };
                let memory = before.chunks_exact(units).zip(kept.chunks_exact_mut(units));
                for (((from_state, gates), h), (before, kept)) in each.zip(memory) {
                    kernels.gru_step(from_state, before, gates, kept, h);
                }
            }
        }
    }

    fn backward(&self, rows: Rows) {
        let (units, products) = (self.units as usize, self.gate_count() * self.units as usize);
        let kernels = Kernels::detect();
        // SAFETY: the weights have this length.
        let weight = unsafe { std::slice::from_raw_parts(self.weight, products * units) };
        let packed = PackedMatrix::new(
            units,
            1,
            products,
            |output, _, input| weight[input * units + output],
            None,
        );
        // SAFETY: no other thread has these rows.
        let (dh, dc) = unsafe {
            (
                self.write(self.dh, 0, rows, units),
                self.write(self.dc, 0, rows, units),
            )
        };
        // What a step gets from the next one: through its gates, and of a GRU also past them.
        let mut from_next = dh.to_vec();
        let direct = dh;
        direct.fill(0.0);
        for frame in (0..self.frames as usize).rev() {
            // SAFETY: each frame and row is written once; what is read was written by the forward
            // pass.
            let (gates, dy, d_gates) = unsafe {
                let d_gates = self.write(self.d_gates, frame, rows, products);
                (
                    self.read(self.gates, frame, rows, products),
                    self.read(self.dy, frame, rows, units),
                    d_gates,
                )
            };
            let part = |row: usize| row * units..(row + 1) * units;
            let gates_part = |row: usize| row * products..(row + 1) * products;
            let d_state = if self.lstm {
                // SAFETY: as above; c has one frame more.
                let (c_before, c) = unsafe {
                    (
                        self.read(self.kept, frame, rows, units),
                        self.read(self.kept, frame + 1, rows, units),
                    )
                };
                for row in 0..rows.count {
                    let (part, gates_part) = (part(row), gates_part(row));
                    kernels.lstm_step_gradient(
                        &gates[gates_part.clone()],
                        [&c_before[part.clone()], &c[part.clone()]],
                        [&dy[part.clone()], &from_next[part.clone()]],
                        &mut d_gates[gates_part],
                        &mut dc[part],
                    );
                }
                d_gates
            } else {
                // SAFETY: as above.
                let (kept, before, d_state) = unsafe {
                    let before = match frame {
                        0 => self.read(self.h0, 0, rows, units),
                        _ => self.read(self.h, frame - 1, rows, units),
                    };
                    (
                        self.read(self.kept, frame, rows, units),
                        before,
                        self.write(self.d_state, frame, rows, products),
                    )
                };
                for row in 0..rows.count {
                    let (part, gates_part) = (part(row), gates_part(row));
                    kernels.gru_step_gradient(
                        &gates[gates_part.clone()],
                        [&kept[part.clone()], &before[part.clone()]],
                        [&dy[part.clone()], &from_next[part.clone()]],
                        [&mut d_gates[gates_part.clone()], &mut d_state[gates_part]],
                        &mut direct[part],
                    );
                }
                d_state
            };
            let columns = Columns {
                data: d_state,
                count: rows.count,
                stride: products,
                tap_stride: products,
            };
            kernels.matmul(&packed, columns, &mut from_next, units);
        }
        direct
            .iter_mut()
            .zip(&from_next)
            .for_each(|(dh, from_next)| *dh += from_next);
    }
}
