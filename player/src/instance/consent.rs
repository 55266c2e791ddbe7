//! TorchScript programs that wait for the user's consent.

use std::sync::{Arc, Mutex, Weak};

use ondes_engine::sync::lock;

use super::InstanceHandle;
use crate::library::LoadError;
use crate::trust::UntrustedProgram;

/// All instances of this process.
static INSTANCES: Mutex<Vec<Weak<InstanceHandle>>> = Mutex::new(Vec::new());

/// Registers a new instance.
pub(super) fn register(instance: &Arc<InstanceHandle>) {
    let mut instances = lock(&INSTANCES);
    instances.retain(|other| other.strong_count() > 0);
    instances.push(Arc::downgrade(instance));
}

/// Loads a program that may run from now on, on all instances that wait for it. May take long.
pub fn load_allowed(hash: &str) {
    let instances: Vec<_> = lock(&INSTANCES).iter().filter_map(Weak::upgrade).collect();
    for instance in instances {
        instance.retry_missing_blocks();
        let missing = instance.missing_model().and_then(|missing| missing.program);
        if missing.is_some_and(|program| program.hash == hash) {
            instance.retry_missing_model();
        }
    }
}

impl InstanceHandle {
    /// Returns the program that was to be loaded but may not run, if any.
    #[must_use]
    pub fn untrusted_program(&self) -> Option<UntrustedProgram> {
        let inner = self.inner();
        match &inner.load_error {
            Some(LoadError::Untrusted(program)) => Some(program.clone()),
            Some(LoadError::Failed(_)) => None,
            None => inner.missing_model.as_ref()?.program.clone(),
        }
    }

    /// Forgets that the last request has failed; what played before goes on.
    pub fn dismiss_failure(&self) {
        self.inner().load_error = None;
    }
}
