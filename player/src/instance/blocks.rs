//! Blocks before and after the model.

use super::InstanceHandle;
use crate::rig::block_state::BlockState;
use crate::rig::branch_state::BranchState;
use crate::state::InstanceState;

impl InstanceHandle {
    /// Returns the blocks, in their order.
    #[must_use]
    pub fn blocks(&self) -> Vec<BlockState> {
        self.read_state(|state| state.blocks.clone())
    }

    /// Returns why a block is not heard as it should be, if so; one line.
    #[must_use]
    pub fn block_problem(&self, block: &BlockState) -> Option<String> {
        let problem = block.problem().map(str::to_owned);
        problem.or_else(|| self.rig_handover.problem(block))
    }

    /// Searches for the files of blocks that are missing. May take long.
    pub fn retry_missing_blocks(&self) {
        let mut blocks = self.blocks();
        if !blocks.iter().any(|block| block.missing().is_some()) {
            return;
        }
        let before = blocks.clone();
        blocks.iter_mut().for_each(BlockState::find);
        // Others may have changed them meanwhile.
        if self.blocks() == before {
            self.set_blocks(blocks);
        }
    }

    /// Returns how the two branches are mixed.
    #[must_use]
    pub fn branches(&self) -> [BranchState; 2] {
        self.read_state(|state| state.branches)
    }

    /// Sets how the two branches are mixed.
    pub fn set_branches(&self, branches: [BranchState; 2]) {
        let mut inner = self.inner();
        self.rig_handover.set_branches(&branches);
        if let Some(before) = &mut inner.before_audition {
            before.state.branches = branches;
        }
        inner.state.branches = branches;
        self.host_notifier.mark_state_changed();
    }

    /// Aligns the two branches, by what was heard last. Returns false if they were too soft or too
    /// different.
    pub fn align_branches(&self) -> bool {
        let aligned = self.rig_handover.aligned(self.branches());
        aligned
            .map(|branches| self.set_branches(branches))
            .is_some()
    }

    pub(super) fn send_rig(&self, state: &InstanceState) {
        self.rig_handover.set_branches(&state.branches);
        self.rig_handover.send(&state.blocks);
    }

    /// Sets the blocks, in their order. Those that play already play on.
    pub fn set_blocks(&self, blocks: Vec<BlockState>) {
        let mut inner = self.inner();
        self.rig_handover.send(&blocks);
        if let Some(before) = &mut inner.before_audition {
            before.state.blocks.clone_from(&blocks);
        }
        inner.state.blocks = blocks;
        self.host_notifier.mark_state_changed();
        self.sleep_state.wake_host();
    }
}
