//! Lengths that do not fit panic before anything is computed.

use ondes_kernels::{Columns, HarmonicFrame, Int8Columns, Int8Matrix, Kernels, PackedMatrix};

fn dense() -> PackedMatrix {
    PackedMatrix::new(4, 2, 3, |_, _, _| 1.0, None)
}

fn multiply(
    data: &[f32],
    count: usize,
    stride: usize,
    tap_stride: usize,
    y: usize,
    y_stride: usize,
) {
    let columns = Columns {
        data,
        count,
        stride,
        tap_stride,
    };
    Kernels::detect().matmul(&dense(), columns, &mut vec![0.0; y], y_stride);
}

#[test]
fn a_product_that_fits() {
    multiply(&[0.0; 9], 2, 3, 3, 8, 4);
}

#[test]
#[should_panic(expected = "columns end at")]
fn columns_beyond_the_data() {
    multiply(&[0.0; 8], 2, 3, 3, 8, 4);
}

#[test]
#[should_panic(expected = "columns end at None")]
fn columns_that_overflow() {
    multiply(&[0.0; 8], 3, usize::MAX, 3, 12, 4);
}

#[test]
#[should_panic(expected = "product ends at")]
fn results_beyond_the_slice() {
    multiply(&[0.0; 9], 2, 3, 3, 7, 4);
}

#[test]
#[should_panic(expected = "overlap")]
fn overlapping_results() {
    multiply(&[0.0; 9], 2, 3, 3, 8, 3);
}

#[test]
#[should_panic(expected = "a bias per output")]
fn a_short_bias() {
    PackedMatrix::new(4, 1, 1, |_, _, _| 1.0, Some(&[1.0]));
}

fn multiply_int8(frames: usize, first: usize, count: usize, y: usize) {
    let w = Int8Matrix::new(4, 2, 5, |_, _, _| 1, &[1.0; 4], &[0.0; 4]);
    let (codes, scales) = (vec![128; frames * 12], vec![1.0; frames]);
    let columns = Int8Columns {
        codes: &codes,
        scales: &scales,
        width: 12,
        first,
        count,
        stride: 1,
        tap_stride: 2,
    };
    Kernels::detect().int8_matmul(&w, columns, &mut vec![0.0; y], 4);
}

#[test]
fn an_int8_product_that_fits() {
    multiply_int8(4, 4, 2, 8);
}

#[test]
#[should_panic(expected = "columns end in frame Some(3) of 3")]
fn int8_columns_beyond_the_frames() {
    multiply_int8(3, 4, 2, 8);
}

#[test]
#[should_panic(expected = "a tap ends at Some(13) of a frame of 12 bytes")]
fn an_int8_tap_beyond_its_frame() {
    multiply_int8(4, 5, 2, 8);
}

#[test]
#[should_panic(expected = "product ends at")]
fn int8_results_beyond_the_slice() {
    multiply_int8(4, 4, 2, 7);
}

#[test]
#[should_panic(expected = "no opposite")]
fn a_weight_of_minus_128() {
    let _ = Int8Matrix::new(1, 1, 1, |_, _, _| -128, &[1.0], &[0.0]);
}

#[test]
#[should_panic(expected = "a scale per output")]
fn too_few_scales() {
    let _ = Int8Matrix::new(2, 1, 1, |_, _, _| 1, &[1.0], &[0.0; 2]);
}

#[test]
#[should_panic(expected = "sums of 66313 products do not fit")]
fn sums_beyond_32_bits() {
    let _ = Int8Matrix::new(1, 1, 66_313, |_, _, _| 1, &[1.0], &[0.0]);
}

#[test]
#[should_panic(expected = "a scale for each frame")]
fn frames_without_scales() {
    Kernels::detect().quantize(&[0.0; 6], 3, &mut [0; 8], &mut [0.0; 1]);
}

#[test]
#[should_panic(expected = "gate")]
fn an_odd_gate() {
    Kernels::detect().gate(&[0.0; 5], &mut [0.0; 3]);
}

#[test]
#[should_panic(expected = "film")]
fn a_short_condition() {
    Kernels::detect().film(&mut [0.0; 3], &[0.0; 3]);
}

#[test]
#[should_panic(expected = "layer_norm")]
fn a_short_gain() {
    Kernels::detect().layer_norm(&mut [0.0; 3], &[0.0; 2], &[0.0; 3], 1e-5);
}

#[test]
#[should_panic(expected = "gru")]
fn short_gru_gates() {
    Kernels::detect().gru(&[0.0; 9], &[0.0; 8], &mut [0.0; 3]);
}

#[test]
#[should_panic(expected = "lstm")]
fn short_lstm_cell() {
    Kernels::detect().lstm(&[0.0; 12], &mut [0.0; 3], &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "half a complex number")]
fn half_a_complex_number() {
    Kernels::detect().complex_multiply_add(&mut [0.0; 3], &[0.0; 3], &[0.0; 3]);
}

#[test]
#[should_panic(expected = "complex_multiply_add: 6 values in blocks of 4")]
fn part_of_a_block() {
    Kernels::detect().complex_multiply_add(&mut [0.0; 4], &[0.0; 6], &[0.0; 6]);
}

#[test]
#[should_panic(expected = "real_bins: lengths")]
fn unequal_bins() {
    Kernels::detect().real_bins(&mut [0.0; 4], &mut [0.0; 2], &[0.0; 4], 1.0);
}

#[test]
#[should_panic(expected = "real_bins: a twiddle")]
fn missing_twiddles() {
    Kernels::detect().real_bins(&mut [0.0; 4], &mut [0.0; 4], &[0.0; 2], 1.0);
}

#[test]
#[should_panic(expected = "snake over 5 values of 3 channels")]
fn part_of_a_frame() {
    Kernels::detect().snake(&mut [0.0; 5], &[1.0; 3]);
}

#[test]
#[should_panic(expected = "multiply_add")]
fn different_lengths() {
    Kernels::detect().multiply_add(&mut [0.0; 3], &[0.0; 2], 1.0);
}

#[test]
#[should_panic(expected = "as many amplitudes")]
fn amplitudes_of_different_lengths() {
    let frame = HarmonicFrame {
        phase: 0.0,
        step_start: 0.0,
        step_end: 0.0,
        start: &[1.0],
        end: &[],
    };
    Kernels::detect().harmonics(frame, &mut [0.0; 4]);
}

#[test]
fn the_scalar_variant_is_always_available_and_first() {
    let available = Kernels::available();
    assert_eq!(available[0], Kernels::scalar());
    assert_eq!(available[0].name(), "scalar");
    assert_eq!(available.last(), Some(&Kernels::detect()));
}
