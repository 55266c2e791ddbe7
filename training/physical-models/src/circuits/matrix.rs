//! Linear equations: large systems when a circuit is set up, tiny ones in every step.

use num_complex::Complex;

/// Square matrix of complex numbers, `[row][column]`.
pub type Matrix = Vec<Vec<Complex<f64>>>;

/// Returns a zero matrix with `size` rows.
#[must_use]
pub fn zeros(size: usize) -> Matrix {
    vec![vec![Complex::default(); size]; size]
}

/// Returns the inverse by elimination with row pivoting; `None` if the matrix is singular.
#[must_use]
pub fn inverse(mut matrix: Matrix) -> Option<Matrix> {
    let size = matrix.len();
    let mut inverse = zeros(size);
    for (index, row) in inverse.iter_mut().enumerate() {
        row[index] = Complex::new(1.0, 0.0);
    }
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| {
            matrix[a][column]
                .norm()
                .total_cmp(&matrix[b][column].norm())
        })?;
        if matrix[pivot][column].norm() < 1e-30 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column].inv();
        for value in matrix[column].iter_mut().chain(&mut inverse[column]) {
            *value *= scale;
        }
        let (row, inverse_row) = (matrix[column].clone(), inverse[column].clone());
        for other in (0..size).filter(|&other| other != column) {
            let factor = matrix[other][column];
            for index in 0..size {
                matrix[other][index] -= factor * row[index];
                inverse[other][index] -= factor * inverse_row[index];
            }
        }
    }
    Some(inverse)
}

/// Most unknowns of [`solve`].
pub const MAX_UNKNOWNS: usize = 4;

/// Solves the first `size` equations of `matrix · x = right` in place. A singular system gives
/// non-finite values.
pub fn solve(
    matrix: &mut [[f64; MAX_UNKNOWNS]; MAX_UNKNOWNS],
    right: &mut [f64; MAX_UNKNOWNS],
    size: usize,
) {
    for column in 0..size {
        let mut pivot = column;
        for row in column + 1..size {
            if matrix[row][column].abs() > matrix[pivot][column].abs() {
                pivot = row;
            }
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row][column] / matrix[column][column];
            let (above, below) = matrix.split_at_mut(row);
            for (value, pivot) in below[0][column..size]
                .iter_mut()
                .zip(&above[column][column..size])
            {
                *value -= factor * pivot;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size)
            .map(|index| matrix[row][index] * right[index])
            .sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
}
