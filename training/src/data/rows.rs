//! Rows of batches: sources that a loader cuts them from, and the way from rows to tensors of a
//! device.

use std::ops::Range;
use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::store::Reads;
use crate::distributed::rows_of;

/// Source of the rows that a [`Loader`](super::Loader) cuts: crops of recordings, windows of
/// captures.
pub trait RowSource: Send + Sync + 'static {
    /// Row of a batch, in plain memory: on the threads of a loader libtorch would start threads of
    /// its own.
    type Row: Send + Sync + 'static;
    /// Batch of rows.
    type Batch: TensorGroup;

    /// Cuts a row of a step. It depends on the source, the step and the row only, so that threads,
    /// their order and resumed runs change nothing.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    fn row(&self, step: u64, row: usize) -> anyhow::Result<Self::Row>;

    /// Joins rows to a batch in the memory of the CPU.
    fn joined(&self, rows: &[Arc<Self::Row>]) -> Self::Batch;

    /// Returns the size of a row in memory, bytes.
    fn row_bytes(&self) -> usize;

    /// Returns how much has been read from files so far.
    fn reads(&self) -> Reads {
        Reads::default()
    }

    /// Cuts some rows of a step at once, on this thread.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    fn cut(&self, step: u64, rows: Range<usize>) -> anyhow::Result<Self::Batch> {
        let rows = rows.map(|row| Ok(Arc::new(self.row(step, row)?)));
        Ok(self.joined(&rows.collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// Tensors that are moved together.
pub trait TensorGroup: Sized {
    /// Replaces each tensor, in an order that is always the same.
    #[must_use]
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self;

    /// Copies the tensors to a device; to a GPU from pinned memory, without waiting for the copy.
    #[must_use]
    fn to_device(self, device: Device) -> Self {
        self.map(&mut |tensor| match device {
            Device::Cuda(_) => {
                tensor
                    .pin_memory(device)
                    .to_device_(device, tensor.kind(), true, false)
            }
            _ => tensor.to_device(device),
        })
    }
}

/// Rows of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRows {
    /// Rows of a step, those of all processes.
    pub batch: usize,
    /// Rows of an epoch, whose last step may have fewer; `None` if all steps have `batch` rows.
    pub epoch: Option<usize>,
    /// Index of this process, and number of processes.
    pub process: (usize, usize),
}

impl StepRows {
    /// Returns equal batches of one process.
    #[must_use]
    pub fn new(batch: usize) -> Self {
        Self {
            batch,
            epoch: None,
            process: (0, 1),
        }
    }

    /// Returns the number of rows of a step, those of all processes.
    #[must_use]
    pub fn count(&self, step: u64) -> usize {
        let Some(rows) = self.epoch else {
            return self.batch;
        };
        let steps = rows.div_ceil(self.batch).max(1) as u64;
        self.batch.min(rows - (step % steps) as usize * self.batch)
    }

    /// Returns the rows of a step that this process takes.
    #[must_use]
    pub fn own(&self, step: u64) -> Range<usize> {
        let (rank, size) = self.process;
        rows_of(rank, size, self.count(step))
    }
}

/// Copies rows of equal length into a tensor `[row, 1, value]`. libtorch's own functions would fill
/// it with zeros first, by threads that wait for their next task at full load, in the way of those
/// that cut rows.
#[expect(unsafe_code)]
pub(crate) fn stack<'a>(rows: impl ExactSizeIterator<Item = &'a [f32]>) -> Tensor {
    let (count, mut rows) = (rows.len(), rows.peekable());
    let length = rows.peek().map_or(0, |row| row.len());
    let tensor = Tensor::empty([count as i64, 1, length as i64], (Kind::Float, Device::Cpu));
    let data = tensor.data_ptr().cast::<f32>();
    for (index, row) in rows.take(count).enumerate() {
        assert_eq!(row.len(), length, "rows are equally long");
        // SAFETY: `index` is below `count`, and the tensor is new and contiguous, `count` rows of
        // `length` values, without another reference to it.
        unsafe {
            data.add(index * length)
                .copy_from_nonoverlapping(row.as_ptr(), length)
        };
    }
    tensor
}
