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
    /// Where it lies in the chunk at hand.
    pub fn rows(self, homes: &[Home], now: &[usize]) -> Rows {
        self.rows_at(&homes[self.home], now[self.home])
    }

    /// Where it lies at a frame of its home.
    pub fn rows_at(self, home: &Home, frame: usize) -> Rows {
        Rows { start: home.row(self.first) + frame, stride: home.stride, channels: self.channels }
    }
}

/// What is read so many frames late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tap {
    pub view: View,
    pub delay: usize,
}

impl Tap {
    /// Where it lies from chunk to chunk.
    fn place(self, homes: &[Home]) -> Place {
        let Self { view, delay } = self;
        let home = &homes[view.home];
        Place { rows: view.rows_at(home, 0), signal: view.home, delay, round: home.round }
    }
}

/// What steps read and write, in one list.
#[derive(Default)]
pub struct List {
    taps: Vec<Tap>,
    /// Where each of them lies first.
    first: HashMap<Tap, usize>,
}

impl List {
    /// Where these lie in the list, one after another.
    pub fn find(&mut self, taps: &[Tap]) -> usize {
        let known = taps.first().and_then(|tap| self.first.get(tap)).copied();
        if let Some(first) = known.filter(|&first| self.taps[first..].starts_with(taps)) {
            return first;
        }
        let first = self.taps.len();
        self.taps.extend_from_slice(taps);
        for (index, &tap) in taps.iter().enumerate() {
            self.first.entry(tap).or_insert(first + index);
        }
        first
    }

    /// Where that lies in it, as it is in the chunk at hand.
    pub fn find_here(&mut self, view: View) -> usize {
        self.find(&[Tap { view, delay: 0 }])
    }

    /// Where all of it lies from chunk to chunk.
    pub fn places(&self, homes: &[Home]) -> Vec<Place> {
        self.taps.iter().map(|tap| tap.place(homes)).collect()
    }
}
