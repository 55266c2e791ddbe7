//! Training by several processes, on one machine or on many: each computes its rows of every batch,
//! and gradients are summed by the collectives of libtorch (c10d): over Gloo in the memory of CPUs,
//! over NCCL in that of GPUs.
//!
//! [`membership`] reads who a process is from the variables of `torchrun`, Slurm or Open MPI,
//! [`launch`] starts processes on this machine, and [`Group`] connects them. All processes take the
//! same decisions, since they see the same sums; the first one validates, writes the files and
//! prints.

use std::rc::Rc;

use crate::trainer::TrainerOptions;

mod group;
pub mod launch;
pub mod membership;
pub mod quiet;
#[cfg(test)]
mod tests;

pub use group::{BUCKET_ELEMENTS, Buckets, Group, GroupError, rows_of};
pub use membership::Membership;

/// Connects this process with the others of its group, and gives it a GPU of its own where there
/// are several.
///
/// # Errors
/// Returns an error if the processes do not meet.
pub fn join(membership: &Membership, options: &mut TrainerOptions) -> anyhow::Result<()> {
    let gpus = tch::Cuda::device_count();
    let is_chosen = gpus > 0 && matches!(options.training.device.as_str(), "auto" | "cuda");
    if is_chosen {
        options.training.device = format!("cuda:{}", membership.local_rank as i64 % gpus);
    }
    let mut group = Group::join(membership)?;
    group.join_gpus(is_chosen && (membership.local_rank as i64) < gpus)?;
    options.group = Some(Rc::new(group));
    Ok(())
}
