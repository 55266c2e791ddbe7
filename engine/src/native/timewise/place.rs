//! What passes read and write, in homes and in the slice of all signals.

use std::collections::HashMap;

use ondes_kernels::{Place, Rows};

use super::home::Home;

/// Part of a home: all of its channels, or some from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub home: usize,
    pub first: usize,
    pub channels: usize,
}

impl View {
    /// Where it lies from chunk to chunk.
    pub fn place(self, homes: &[Home]) -> Place {
        let home = &homes[self.home];
        let rows = Rows { start: home.row(self.first), stride: home.stride, channels: self.channels };
        let place = Place::new(rows, self.home);
        if home.round > 0 { place.in_ring(home.round, home.chunk) } else { place }
    }
}

/// A signal that is looked at, at some delays in frames.
#[derive(Clone, Debug)]
pub struct Looked {
    pub view: View,
    pub delays: Vec<usize>,
}

/// What steps read and write, in one list.
#[derive(Default)]
pub struct List {
    views: Vec<View>,
    /// Where each of them lies in it.
    found: HashMap<View, usize>,
}

impl List {
    /// Where that lies in the list.
    pub fn find(&mut self, view: View) -> usize {
        *self.found.entry(view).or_insert_with(|| {
            self.views.push(view);
            self.views.len() - 1
        })
    }

    /// Where all of it lies from chunk to chunk.
    pub fn places(&self, homes: &[Home]) -> Vec<Place> {
        self.views.iter().map(|view| view.place(homes)).collect()
    }
}
