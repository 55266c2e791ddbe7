//! Copies of recurrent states, and their tensors by name, as checkpoints hold them.

use tch::Tensor;

use crate::RecurrentState;

impl Clone for RecurrentState {
    /// Returns states that share the same memory, which no op changes.
    fn clone(&self) -> Self {
        let copy = |states: &Vec<Tensor>| states.iter().map(Tensor::shallow_clone).collect();
        Self(
            self.0
                .iter()
                .map(|(node, states)| (node.clone(), copy(states)))
                .collect(),
        )
    }
}

impl RecurrentState {
    /// Returns the states as "INDEX/NODE", sorted by name.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Tensor)> {
        let named = |(node, states): (&String, &Vec<Tensor>)| -> Vec<_> {
            let states = states.iter().enumerate();
            states
                .map(|(index, state)| (format!("{index}/{node}"), state.shallow_clone()))
                .collect()
        };
        let mut tensors: Vec<_> = self.0.iter().flat_map(named).collect();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors
    }

    /// Makes states of what [`RecurrentState::tensors`] returned; other names are ignored.
    #[must_use]
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        let mut sorted: Vec<(usize, String, Tensor)> = tensors
            .into_iter()
            .filter_map(|(name, tensor)| {
                let (index, node) = name.split_once('/')?;
                Some((index.parse().ok()?, node.to_owned(), tensor))
            })
            .collect();
        sorted.sort_by_key(|(index, _, _)| *index);
        let mut state = Self::default();
        for (_, node, tensor) in sorted {
            state.0.entry(node).or_default().push(tensor);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_return_from_their_tensors() {
        let number = |value: f64| Tensor::from_slice(&[value]);
        let mut state = RecurrentState::default();
        state.0.insert("a/b".into(), vec![number(1.0), number(2.0)]);
        state.0.insert("c".into(), vec![number(3.0)]);
        let again = RecurrentState::from_tensors(state.tensors());
        let values = |state: &RecurrentState| -> Vec<(String, f64)> {
            state
                .tensors()
                .into_iter()
                .map(|(name, tensor)| (name, tensor.double_value(&[0])))
                .collect()
        };
        assert_eq!(values(&again), values(&state));
        assert_eq!(
            values(&state.clone()),
            [
                ("0/a/b".into(), 1.0),
                ("0/c".into(), 3.0),
                ("1/a/b".into(), 2.0)
            ]
        );
    }
}
