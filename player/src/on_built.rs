//! A hook for when a model has been built.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ondes_engine::model::Levels;
use ondes_engine::pipeline::{Action, InputChannels, Playable, SessionStart};
use ondes_engine::realtime::{Driver, LoadError, ModelFactory, Setup};

/// Model factory that sets a flag when it builds a model. From then on the session records
/// parameter changes for the new model as well, so that parameters sent after the flag is set
/// cannot be lost.
pub struct OnBuilt {
    /// Factory of the model.
    pub factory: Arc<dyn ModelFactory>,
    /// Set when a model is built: the audio thread must send all parameters again.
    pub built: Arc<AtomicBool>,
}

impl OnBuilt {
    /// Returns the same hook for another factory.
    fn with_factory(&self, factory: Arc<dyn ModelFactory>) -> Self {
        Self {
            factory,
            built: self.built.clone(),
        }
    }
}

impl ModelFactory for OnBuilt {
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        self.built.store(true, Relaxed);
        self.factory.build(sample_rate, sessions)
    }

    fn sharing_key(&self) -> Option<String> {
        self.factory.sharing_key()
    }

    fn uses_audio_input(&self) -> bool {
        self.factory.uses_audio_input()
    }

    fn channels(&self) -> InputChannels {
        self.factory.channels()
    }

    fn start(&self) -> SessionStart {
        self.factory.start()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        self.factory.worst_case_load()
    }

    fn smaller(&self) -> Option<Arc<dyn ModelFactory>> {
        Some(Arc::new(self.with_factory(self.factory.smaller()?)))
    }

    fn spread(&self, driver: Driver, setup: Setup) -> Option<Box<dyn ModelFactory>> {
        Some(Box::new(
            self.with_factory(self.factory.spread(driver, setup)?.into()),
        ))
    }

    fn is_program(&self) -> bool {
        self.factory.is_program()
    }

    fn variant(&self) -> Option<String> {
        self.factory.variant()
    }

    fn levels(&self) -> Levels {
        self.factory.levels()
    }

    fn work(&self) -> f64 {
        self.factory.work()
    }

    fn expects_worker(&self) -> bool {
        self.factory.expects_worker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers unlike the defaults of the trait.
    struct Unusual;

    impl ModelFactory for Unusual {
        fn build(&self, _: u32, _: usize) -> Result<Box<dyn Playable>, LoadError> {
            Err("built".to_owned().into())
        }
        fn sharing_key(&self) -> Option<String> {
            Some("key".into())
        }
        fn uses_audio_input(&self) -> bool {
            true
        }
        fn channels(&self) -> InputChannels {
            InputChannels::Stereo
        }
        fn start(&self) -> SessionStart {
            SessionStart {
                seed: 7,
                ..Default::default()
            }
        }
        fn worst_case_load(&self) -> Vec<Action> {
            Vec::new()
        }
        fn smaller(&self) -> Option<Arc<dyn ModelFactory>> {
            Some(Arc::new(Self))
        }
        fn variant(&self) -> Option<String> {
            Some("half".into())
        }
        fn work(&self) -> f64 {
            0.5
        }
        fn spread(&self, _: Driver, _: Setup) -> Option<Box<dyn ModelFactory>> {
            Some(Box::new(Self))
        }
        fn is_program(&self) -> bool {
            true
        }
        fn expects_worker(&self) -> bool {
            true
        }
    }

    #[test]
    fn all_answers_are_passed_on_and_builds_are_told() {
        let built = Arc::new(AtomicBool::new(false));
        let hook = OnBuilt {
            factory: Arc::new(Unusual),
            built: built.clone(),
        };
        let setup = Setup {
            sample_rate: 48_000,
            max_block: 64,
        };
        let spread = hook
            .spread(Driver::Inline, setup)
            .expect("it can be spread");
        let smaller = hook.smaller().expect("there is a smaller one");
        for factory in [&hook as &dyn ModelFactory, &*spread, &*smaller] {
            assert!(factory.is_program() && factory.expects_worker() && factory.uses_audio_input());
            assert!(factory.spread(Driver::Inline, setup).is_some() && factory.smaller().is_some());
            assert_eq!(
                (factory.variant().as_deref(), factory.work()),
                (Some("half"), 0.5)
            );
            assert_eq!(
                (factory.sharing_key().as_deref(), factory.start().seed),
                (Some("key"), 7)
            );
            assert_eq!(factory.channels(), InputChannels::Stereo);
            built.store(false, Relaxed);
            assert!(factory.build(48_000, 1).is_err() && built.load(Relaxed));
        }
    }
}
