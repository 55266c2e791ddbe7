//! History of what the user changed in the window, for undo and redo. It outlives the window, but
//! not the project: a loaded state clears it.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::sync::lock;

use crate::compare_slots::CompareSlot;
use crate::parameter::{Parameter, ParameterId, ParameterScope, all};
use crate::parameter_source::ParameterSource;
use crate::parameter_values::ParameterValues;
use crate::programs::ProgramChange;
use crate::snapshot::{SelectionSnapshot, SoundSnapshot};

/// Number of steps kept.
pub const STEPS: usize = 200;
/// Number of steps kept that hold models, which may be large.
pub const MODEL_STEPS: usize = 32;
/// Changes of the same settings within this time are one step, such as those of a repeated arrow
/// key.
const PAUSE: Duration = Duration::from_millis(700);

/// A value before and after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<T> {
    /// Value that undo restores.
    pub before: T,
    /// Value that redo restores.
    pub after: T,
}

/// Active slot and both sounds, as in
/// [`CompareSlots::get`](crate::compare_slots::CompareSlots::get).
pub type Slots = (CompareSlot, [Option<SoundSnapshot>; 2]);

/// Setting outside the instance, such as of the app's mixer, with its value.
pub type OutsideSetting = Arc<dyn Any + Send + Sync>;

/// Something that was changed.
#[derive(Clone)]
pub enum Edit {
    /// Position of a parameter or a latent knob, 0 … 1.
    Knob(ParameterId, Change<f32>),
    /// Model, preset, macro bindings, latents and cabinet.
    Selection(Box<Change<SelectionSnapshot>>),
    /// Slots A and B.
    Slots(Box<Change<Slots>>),
    /// Knobs that the pad turns.
    Pad(Change<[String; 2]>),
    /// Requested executor.
    Executor(Change<ExecutorSelection>),
    /// Method of rate conversion.
    Resampling(Change<Resampling>),
    /// Choices of MIDI program changes.
    Programs(Change<Vec<ProgramChange>>),
    /// MIDI controllers by parameter.
    Midi(Change<BTreeMap<String, u8>>),
    /// Setting outside the instance. The step's label tells which one.
    Outside(Change<OutsideSetting>),
}

/// Returns a change, unless it is none.
#[must_use]
pub fn changed<T: PartialEq>(before: T, after: T) -> Option<Change<T>> {
    (before != after).then_some(Change { before, after })
}

/// Returns the changes of knobs that these parameter values mean.
#[must_use]
pub fn knob_edits(source: &dyn ParameterSource, values: &ParameterValues) -> Vec<Edit> {
    let edit = |(id, parameter): (ParameterId, &'static Parameter)| {
        let value = values.get(parameter.id)?.for_parameter(parameter)?;
        let (before, after) = (source.normalized(id)?, parameter.normalize(value));
        Some(Edit::Knob(id, changed(before, after)?))
    };
    all()
        .filter(|(_, parameter)| parameter.scope != ParameterScope::Momentary)
        .filter_map(edit)
        .collect()
}

/// Changes that are undone together.
#[derive(Clone)]
pub struct Step {
    /// Name to show, such as that of a knob.
    pub label: String,
    /// Changes, in the order in which they were made.
    pub edits: Vec<Edit>,
}

impl Step {
    /// Returns whether a later step turns the same knobs, or changes the same setting outside the
    /// instance.
    fn is_continued_by(&self, later: &Self) -> bool {
        let same = |(one, other): (&Edit, &Edit)| match (one, other) {
            (Edit::Knob(one, _), Edit::Knob(other, _)) => one == other,
            (Edit::Outside(_), Edit::Outside(_)) => true,
            _ => false,
        };
        let edits = || self.edits.iter().zip(&later.edits);
        self.label == later.label && self.edits.len() == later.edits.len() && edits().all(same)
    }

    fn holds_models(&self) -> bool {
        self.edits
            .iter()
            .any(|edit| matches!(edit, Edit::Selection(_) | Edit::Slots(_)))
    }
}

/// Steps to undo and to redo.
#[derive(Default)]
pub struct History(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    undo: VecDeque<Step>,
    redo: Vec<Step>,
    /// Time of the last change, unless something else happened since.
    changed: Option<Instant>,
    /// Number of times that the history was cleared.
    cleared: u64,
}

impl History {
    /// Adds a step that was made at `now`. Steps that were undone can no longer be redone. A step
    /// that changes the same knobs, or the same setting outside the instance, shortly after the
    /// previous one becomes part of it.
    pub fn push(&self, step: Step, now: Instant) {
        let mut steps = self.steps();
        steps.redo.clear();
        let soon = steps
            .changed
            .replace(now)
            .is_some_and(|then| now.duration_since(then) < PAUSE);
        match steps
            .undo
            .back_mut()
            .filter(|last| soon && last.is_continued_by(&step))
        {
            Some(last) => {
                for (edit, later) in last.edits.iter_mut().zip(step.edits) {
                    match (edit, later) {
                        (Edit::Knob(_, change), Edit::Knob(_, later)) => change.after = later.after,
                        (Edit::Outside(change), Edit::Outside(later)) => change.after = later.after,
                        _ => {}
                    }
                }
            }
            None => steps.undo.push_back(step),
        }
        let models = |steps: &Steps| steps.undo.iter().filter(|step| step.holds_models()).count();
        while steps.undo.len() > STEPS || models(&steps) > MODEL_STEPS {
            steps.undo.pop_front();
        }
    }

    /// Returns the last step, whose changes the caller undoes in reverse order; it can then be
    /// redone.
    pub fn undo(&self) -> Option<Step> {
        let mut steps = self.steps();
        steps.changed = None;
        let step = steps.undo.pop_back()?;
        steps.redo.push(step.clone());
        Some(step)
    }

    /// Returns the step that was undone last, whose changes the caller makes again.
    pub fn redo(&self) -> Option<Step> {
        let mut steps = self.steps();
        steps.changed = None;
        let step = steps.redo.pop()?;
        steps.undo.push_back(step.clone());
        Some(step)
    }

    /// Returns the labels of the steps that would be undone and redone.
    #[must_use]
    pub fn labels(&self) -> [Option<String>; 2] {
        let steps = self.steps();
        [steps.undo.back(), steps.redo.last()].map(|step| step.map(|step| step.label.clone()))
    }

    /// Forgets all steps.
    pub fn clear(&self) {
        let mut steps = self.steps();
        let cleared = steps.cleared + 1;
        *steps = Steps {
            cleared,
            ..Steps::default()
        };
    }

    /// Returns how often the history was cleared: changes that began before belong to another
    /// project.
    #[must_use]
    pub fn cleared(&self) -> u64 {
        self.steps().cleared
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::InstanceHandle;
    use crate::product::Product;

    fn turn(label: &str, id: u32, before: f32, after: f32) -> Step {
        Step {
            label: label.into(),
            edits: vec![Edit::Knob(ParameterId(id), Change { before, after })],
        }
    }

    fn change(step: Option<Step>) -> (String, f32, f32) {
        match step {
            Some(Step { label, edits }) => match edits.as_slice() {
                [Edit::Knob(_, change)] => (label, change.before, change.after),
                _ => panic!("one knob"),
            },
            None => panic!("no step"),
        }
    }

    #[test]
    fn steps_are_undone_and_redone_in_order() {
        let (history, now) = (History::default(), Instant::now());
        history.push(turn("Attack", 1, 0.5, 0.7), now);
        history.push(turn("Room", 2, 0.1, 0.2), now);
        assert_eq!(history.labels(), [Some("Room".to_owned()), None]);
        assert_eq!(change(history.undo()), ("Room".into(), 0.1, 0.2));
        assert_eq!(
            history.labels(),
            [Some("Attack".to_owned()), Some("Room".to_owned())]
        );
        assert_eq!(change(history.undo()), ("Attack".into(), 0.5, 0.7));
        assert!(history.undo().is_none());
        assert_eq!(change(history.redo()), ("Attack".into(), 0.5, 0.7));
        history.push(turn("Air", 3, 0.0, 1.0), now);
        assert!(history.redo().is_none(), "what was undone is replaced");
        history.clear();
        assert_eq!((history.labels(), history.cleared()), ([None, None], 1));
    }

    #[test]
    fn repeated_keys_are_one_step_and_later_ones_another() {
        let (history, then) = (History::default(), Instant::now());
        let at = |millis| then + Duration::from_millis(millis);
        history.push(turn("Attack", 1, 0.50, 0.51), then);
        history.push(turn("Attack", 1, 0.51, 0.52), at(500));
        history.push(turn("Attack", 1, 0.52, 0.53), at(1000));
        history.push(turn("Attack", 1, 0.53, 0.60), at(1800));
        history.push(turn("Room", 2, 0.0, 0.1), at(1900));
        assert_eq!(change(history.undo()).0, "Room");
        // After an undo the same knob begins another step.
        history.push(turn("Attack", 1, 0.60, 0.61), at(1950));
        assert_eq!(change(history.undo()), ("Attack".into(), 0.60, 0.61));
        assert_eq!(change(history.undo()), ("Attack".into(), 0.53, 0.60));
        assert_eq!(change(history.undo()), ("Attack".into(), 0.50, 0.53));
    }

    #[test]
    fn a_setting_outside_that_is_dragged_is_one_step() {
        let (history, then) = (History::default(), Instant::now());
        let step = |label: &str, before: i32, after: i32| {
            let change = Change {
                before: Arc::new(before) as OutsideSetting,
                after: Arc::new(after) as _,
            };
            Step {
                label: label.into(),
                edits: vec![Edit::Outside(change)],
            }
        };
        history.push(step("Fader 1", 0, -1), then);
        history.push(step("Fader 1", -1, -2), then);
        history.push(step("Fader 2", 0, -3), then);
        let undone = || {
            let step = history.undo()?;
            let Edit::Outside(change) = &step.edits[0] else {
                panic!("another edit")
            };
            let value = |setting: &OutsideSetting| *setting.downcast_ref::<i32>().unwrap();
            Some((
                step.label.clone(),
                value(&change.before),
                value(&change.after),
            ))
        };
        assert_eq!(undone(), Some(("Fader 2".into(), 0, -3)));
        assert_eq!(undone(), Some(("Fader 1".into(), 0, -2)));
        assert_eq!(undone(), None);
    }

    #[test]
    fn the_number_of_steps_is_bounded_and_that_of_models_more_so() {
        let (history, now) = (History::default(), Instant::now());
        for id in 0..STEPS as u32 + 50 {
            history.push(turn("Knob", id, 0.0, 1.0), now);
        }
        let count = || {
            let steps = std::iter::from_fn(|| history.undo()).count();
            std::iter::from_fn(|| history.redo()).for_each(drop);
            steps
        };
        assert_eq!(count(), STEPS);
        let selection = InstanceHandle::new(Product::Effect, || ()).saved_selection();
        for _ in 0..MODEL_STEPS + 3 {
            let change = Change {
                before: selection.clone(),
                after: selection.clone(),
            };
            history.push(
                Step {
                    label: "Model".into(),
                    edits: vec![Edit::Selection(change.into())],
                },
                now,
            );
        }
        assert_eq!(count(), MODEL_STEPS);
    }
}
