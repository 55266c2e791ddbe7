//! MIDI learn: bindings of MIDI controllers to parameters.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// First controller number that is reserved for channel mode messages.
const CHANNEL_MODES: u8 = 120;
/// Marks the absence of a controller or a parameter.
const NO_CONTROLLER: u8 = u8::MAX;
const NO_PARAMETER: usize = usize::MAX;

/// MIDI controller that turns a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MidiBinding {
    /// None.
    #[default]
    None,
    /// The next controller that moves will be bound.
    Learning,
    /// The controller of this number, 0 … 127.
    Controller(u8),
}

/// Controller bindings of one instance. A controller may turn several parameters; a parameter has
/// one controller. Wait-free on all threads: a controller that the audio thread learns is bound at
/// once.
pub struct MidiBindings {
    parameters: OnceLock<Box<[BoundParameter]>>,
    /// Index of the parameter that learns the next controller.
    learning: AtomicUsize,
}

struct BoundParameter {
    id: String,
    controller: AtomicU8,
}

impl Default for MidiBindings {
    fn default() -> Self {
        Self {
            parameters: OnceLock::new(),
            learning: AtomicUsize::new(NO_PARAMETER),
        }
    }
}

impl MidiBindings {
    /// Sets the parameters that can be bound, once. Their order defines the indices that
    /// [`MidiBindings::controller_moved`] returns.
    pub fn set_parameters(&self, ids: impl IntoIterator<Item = String>) {
        let parameter = |id| BoundParameter {
            id,
            controller: AtomicU8::new(NO_CONTROLLER),
        };
        self.parameters
            .get_or_init(|| ids.into_iter().map(parameter).collect());
    }

    /// Lets this parameter learn the next controller that moves. Returns false if there is no such
    /// parameter.
    pub fn learn(&self, id: &str) -> bool {
        let index = self.index(id);
        if let Some(index) = index {
            self.learning.store(index, Relaxed);
        }
        index.is_some()
    }

    /// Removes the parameter's binding and cancels learning.
    pub fn forget(&self, id: &str) {
        let Some(index) = self.index(id) else { return };
        // If another thread has just learnt a controller, it is removed below.
        let _ = self
            .learning
            .compare_exchange(index, NO_PARAMETER, Relaxed, Relaxed);
        self.parameters()[index]
            .controller
            .store(NO_CONTROLLER, Relaxed);
    }

    /// Returns the parameter's binding.
    #[must_use]
    pub fn binding(&self, id: &str) -> MidiBinding {
        let Some(index) = self.index(id) else {
            return MidiBinding::None;
        };
        if self.learning.load(Relaxed) == index {
            return MidiBinding::Learning;
        }
        match self.parameters()[index].controller.load(Relaxed) {
            NO_CONTROLLER => MidiBinding::None,
            number => MidiBinding::Controller(number),
        }
    }

    /// Returns whether a parameter is learning.
    #[must_use]
    pub fn is_learning(&self) -> bool {
        self.learning.load(Relaxed) != NO_PARAMETER
    }

    /// Returns all bindings: controller numbers by parameter id.
    #[must_use]
    pub fn bindings(&self) -> BTreeMap<String, u8> {
        let bound = self
            .parameters()
            .iter()
            .map(|one| (one.id.clone(), one.controller.load(Relaxed)));
        bound
            .filter(|(_, number)| *number != NO_CONTROLLER)
            .collect()
    }

    /// Replaces all bindings. Unknown parameters and controllers that cannot be learnt are ignored.
    pub fn restore(&self, bound: &BTreeMap<String, u8>) {
        self.learning.store(NO_PARAMETER, Relaxed);
        for parameter in self.parameters() {
            let number = bound
                .get(&parameter.id)
                .copied()
                .filter(|number| is_learnable(*number));
            parameter
                .controller
                .store(number.unwrap_or(NO_CONTROLLER), Relaxed);
        }
    }

    /// For the audio thread: returns whether a controller turns a parameter, or would be learnt.
    #[must_use]
    pub fn listens_to(&self, number: u8) -> bool {
        let turns = |one: &BoundParameter| one.controller.load(Relaxed) == number;
        is_learnable(number) && (self.is_learning() || self.parameters().iter().any(turns))
    }

    /// For the audio thread: reports that a controller has moved. Returns the indices of the
    /// parameters that it turns, including one that has just learnt it.
    pub fn controller_moved(&self, number: u8) -> impl Iterator<Item = usize> {
        let parameters = if is_learnable(number) {
            self.parameters()
        } else {
            &[]
        };
        // Checked with a load first: a swap on every event would contend for the cache line.
        if !parameters.is_empty() && self.is_learning() {
            let index = self.learning.swap(NO_PARAMETER, Relaxed);
            if let Some(parameter) = parameters.get(index) {
                parameter.controller.store(number, Relaxed);
            }
        }
        let indices = parameters.iter().enumerate();
        indices
            .filter(move |(_, one)| one.controller.load(Relaxed) == number)
            .map(|(index, _)| index)
    }

    fn parameters(&self) -> &[BoundParameter] {
        self.parameters.get().map_or(&[], |parameters| parameters)
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.parameters()
            .iter()
            .position(|parameter| parameter.id == id)
    }
}

/// Returns whether a controller can be bound: not bank select, data entry, registered and
/// non-registered parameter numbers, or channel mode messages.
fn is_learnable(number: u8) -> bool {
    number < CHANNEL_MODES && !matches!(number, 0 | 6 | 32 | 38 | 98..=101)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings() -> MidiBindings {
        let bindings = MidiBindings::default();
        bindings.set_parameters(["gain", "mix", "tune"].map(str::to_owned));
        bindings
    }

    fn turned(bindings: &MidiBindings, number: u8) -> Vec<usize> {
        bindings.controller_moved(number).collect()
    }

    #[test]
    fn the_next_controller_is_taken_and_turns_at_once() {
        let bindings = bindings();
        assert!(turned(&bindings, 20).is_empty());
        assert!(bindings.learn("mix") && bindings.is_learning());
        assert_eq!(
            (bindings.binding("mix"), bindings.binding("gain")),
            (MidiBinding::Learning, MidiBinding::None)
        );
        assert_eq!(turned(&bindings, 20), [1]);
        assert_eq!(
            (bindings.binding("mix"), bindings.is_learning()),
            (MidiBinding::Controller(20), false)
        );
        assert!(turned(&bindings, 21).is_empty(), "only the next one");
        // A controller may turn several parameters, but each parameter has only one.
        bindings.learn("tune");
        assert_eq!(turned(&bindings, 20), [1, 2]);
        bindings.learn("mix");
        assert_eq!(
            (turned(&bindings, 3), turned(&bindings, 20)),
            (vec![1], vec![2])
        );
    }

    #[test]
    fn banks_and_numbered_parameters_are_not_learnt() {
        let bindings = bindings();
        bindings.learn("gain");
        for number in [0, 6, 32, 38, 98, 99, 100, 101, 120, 123, 127, 255] {
            assert!(turned(&bindings, number).is_empty(), "{number}");
        }
        assert_eq!(bindings.binding("gain"), MidiBinding::Learning);
        assert_eq!(turned(&bindings, 119), [0]);
    }

    #[test]
    fn forgetting_cancels_learning() {
        let bindings = bindings();
        bindings.learn("gain");
        bindings.forget("mix");
        assert_eq!(bindings.binding("gain"), MidiBinding::Learning);
        bindings.forget("gain");
        assert!(turned(&bindings, 7).is_empty());
        bindings.learn("gain");
        assert_eq!(turned(&bindings, 7), [0]);
        bindings.forget("gain");
        assert!(turned(&bindings, 7).is_empty() && bindings.bindings().is_empty());
        assert!(!bindings.learn("unheard of") && !bindings.is_learning());
    }

    #[test]
    fn valid_values_are_restored() {
        let bindings = bindings();
        bindings.learn("tune");
        let saved = BTreeMap::from([
            ("gain".to_owned(), 20),
            ("mix".to_owned(), 120),
            ("unheard of".to_owned(), 1),
        ]);
        bindings.restore(&saved);
        assert_eq!(
            bindings.bindings(),
            BTreeMap::from([("gain".to_owned(), 20)])
        );
        assert!(!bindings.is_learning());
        bindings.restore(&BTreeMap::new());
        assert!(bindings.bindings().is_empty());
    }
}
