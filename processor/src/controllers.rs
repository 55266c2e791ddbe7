//! MIDI learn: which controllers turn which parameters.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use ondes_ui::Midi;

/// The first of the numbers that are no controllers but channel modes.
const MODES: u8 = 120;
/// In the place of a controller or of a parameter: none.
const NO_CONTROLLER: u8 = u8::MAX;
const NO_PARAMETER: usize = usize::MAX;

/// The controllers of one instance. A controller may turn several parameters, a parameter is turned by one controller. Wait-free
/// for all threads: what is learnt by the audio thread holds at once, whether anybody looks or not.
pub struct Controllers {
    parameters: OnceLock<Box<[Parameter]>>,
    /// Place of the parameter that takes the next controller that is moved.
    learning: AtomicUsize,
}

struct Parameter {
    id: String,
    controller: AtomicU8,
}

impl Default for Controllers {
    fn default() -> Self {
        Self { parameters: OnceLock::new(), learning: AtomicUsize::new(NO_PARAMETER) }
    }
}

impl Controllers {
    /// Names the parameters that can be turned, once; their places in this order are what [`Controllers::turned`] gives.
    pub fn begin(&self, ids: impl IntoIterator<Item = String>) {
        let parameter = |id| Parameter { id, controller: AtomicU8::new(NO_CONTROLLER) };
        self.parameters.get_or_init(|| ids.into_iter().map(parameter).collect());
    }

    /// The next controller that is moved shall turn this parameter, and no other one. Gives whether there is such a parameter.
    pub fn learn(&self, id: &str) -> bool {
        let place = self.place(id);
        if let Some(place) = place {
            self.learning.store(place, Relaxed);
        }
        place.is_some()
    }

    /// No controller turns this parameter any more, nor will the next one.
    pub fn forget(&self, id: &str) {
        let Some(place) = self.place(id) else { return };
        // If it does not learn any more, something was learnt this moment, which is forgotten too.
        let _ = self.learning.compare_exchange(place, NO_PARAMETER, Relaxed, Relaxed);
        self.parameters()[place].controller.store(NO_CONTROLLER, Relaxed);
    }

    /// What turns this parameter.
    #[must_use]
    pub fn binding(&self, id: &str) -> Midi {
        let Some(place) = self.place(id) else { return Midi::None };
        if self.learning.load(Relaxed) == place {
            return Midi::Learning;
        }
        match self.parameters()[place].controller.load(Relaxed) {
            NO_CONTROLLER => Midi::None,
            number => Midi::Controller(number),
        }
    }

    /// Whether a parameter waits for a controller.
    #[must_use]
    pub fn is_learning(&self) -> bool {
        self.learning.load(Relaxed) != NO_PARAMETER
    }

    /// All that is bound: controllers by the ids of parameters.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, u8> {
        let bound = self.parameters().iter().map(|one| (one.id.clone(), one.controller.load(Relaxed)));
        bound.filter(|(_, number)| *number != NO_CONTROLLER).collect()
    }

    /// Binds these and nothing else. Parameters that there are not and numbers that cannot be learnt are left out.
    pub fn set_all(&self, bound: &BTreeMap<String, u8>) {
        self.learning.store(NO_PARAMETER, Relaxed);
        for parameter in self.parameters() {
            let number = bound.get(&parameter.id).copied().filter(|number| is_learnable(*number));
            parameter.controller.store(number.unwrap_or(NO_CONTROLLER), Relaxed);
        }
    }

    /// For the audio thread: a controller was moved. Gives the places of the parameters that it turns, the one that has learnt it
    /// by this among them.
    pub fn turned(&self, number: u8) -> impl Iterator<Item = usize> {
        let parameters = if is_learnable(number) { self.parameters() } else { &[] };
        // Reading first: most moves teach nothing.
        if !parameters.is_empty() && self.is_learning() {
            let place = self.learning.swap(NO_PARAMETER, Relaxed);
            if let Some(parameter) = parameters.get(place) {
                parameter.controller.store(number, Relaxed);
            }
        }
        let places = parameters.iter().enumerate();
        places.filter(move |(_, one)| one.controller.load(Relaxed) == number).map(|(place, _)| place)
    }

    fn parameters(&self) -> &[Parameter] {
        self.parameters.get().map_or(&[], |parameters| parameters)
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.parameters().iter().position(|parameter| parameter.id == id)
    }
}

/// Whether such a controller can turn a parameter: not those that choose a bank, nor those that set registered and other
/// numbered parameters, nor channel modes.
fn is_learnable(number: u8) -> bool {
    number < MODES && !matches!(number, 0 | 6 | 32 | 38 | 98..=101)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controllers() -> Controllers {
        let controllers = Controllers::default();
        controllers.begin(["gain", "mix", "tune"].map(str::to_owned));
        controllers
    }

    fn turned(controllers: &Controllers, number: u8) -> Vec<usize> {
        controllers.turned(number).collect()
    }

    #[test]
    fn the_next_controller_is_taken_and_turns_at_once() {
        let controllers = controllers();
        assert!(turned(&controllers, 20).is_empty());
        assert!(controllers.learn("mix") && controllers.is_learning());
        assert_eq!((controllers.binding("mix"), controllers.binding("gain")), (Midi::Learning, Midi::None));
        assert_eq!(turned(&controllers, 20), [1]);
        assert_eq!((controllers.binding("mix"), controllers.is_learning()), (Midi::Controller(20), false));
        assert!(turned(&controllers, 21).is_empty(), "only the next one");
        // Several may have the same, and each but one.
        controllers.learn("tune");
        assert_eq!(turned(&controllers, 20), [1, 2]);
        controllers.learn("mix");
        assert_eq!((turned(&controllers, 3), turned(&controllers, 20)), (vec![1], vec![2]));
    }

    #[test]
    fn banks_and_numbered_parameters_are_not_learnt() {
        let controllers = controllers();
        controllers.learn("gain");
        for number in [0, 6, 32, 38, 98, 99, 100, 101, 120, 123, 127, 255] {
            assert!(turned(&controllers, number).is_empty(), "{number}");
        }
        assert_eq!(controllers.binding("gain"), Midi::Learning);
        assert_eq!(turned(&controllers, 119), [0]);
    }

    #[test]
    fn what_is_forgotten_is_not_learnt_later() {
        let controllers = controllers();
        controllers.learn("gain");
        controllers.forget("mix");
        assert_eq!(controllers.binding("gain"), Midi::Learning);
        controllers.forget("gain");
        assert!(turned(&controllers, 7).is_empty());
        controllers.learn("gain");
        assert_eq!(turned(&controllers, 7), [0]);
        controllers.forget("gain");
        assert!(turned(&controllers, 7).is_empty() && controllers.all().is_empty());
        assert!(!controllers.learn("unheard of") && !controllers.is_learning());
    }

    #[test]
    fn what_is_saved_comes_back_and_nonsense_does_not() {
        let controllers = controllers();
        controllers.learn("tune");
        let saved = BTreeMap::from([("gain".to_owned(), 20), ("mix".to_owned(), 120), ("unheard of".to_owned(), 1)]);
        controllers.set_all(&saved);
        assert_eq!(controllers.all(), BTreeMap::from([("gain".to_owned(), 20)]));
        assert!(!controllers.is_learning());
        controllers.set_all(&BTreeMap::new());
        assert!(controllers.all().is_empty());
    }
}
