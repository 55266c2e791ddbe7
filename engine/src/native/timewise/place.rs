//! What passes read and write, in homes and in the slice of all signals.

use std::collections::HashMap;

use ondes_kernels::Rows;

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

/// Where something lies from chunk to chunk: all that it takes to say so, since there are many of them.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    home: usize,
    /// Of frame 0.
    start: usize,
    delay: usize,
    /// Where the ring comes round.
    round: usize,
}

impl Place {
    pub fn new(Tap { view, delay }: Tap, homes: &[Home]) -> Self {
        let home = &homes[view.home];
        Self { home: view.home, start: view.rows_at(home, 0).start, delay, round: home.round }
    }

    /// Where its first row begins in the chunk at hand.
    #[inline]
    pub fn start(&self, now: &[usize]) -> usize {
        // Where the delay is longer than the way from the beginning, it comes round. No branch: it would be taken now and then,
        // at each tap at another time.
        let frame = now[self.home] as isize - self.delay as isize;
        let frame = frame + (self.round as isize & (frame >> (isize::BITS - 1)));
        self.start + frame as usize
    }
}

/// What steps read and write: one list, as short as it can be, since all of it moves on with each chunk.
#[derive(Default)]
pub struct Places {
    taps: Vec<Tap>,
    /// Where each of them lies first.
    first: HashMap<Tap, usize>,
}

impl Places {
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

    /// Where they lie from chunk to chunk, and their rows, of which only the start changes.
    pub fn at(&self, homes: &[Home]) -> (Vec<Place>, Vec<Rows>) {
        let place = |&tap: &Tap| (Place::new(tap, homes), tap.view.rows_at(&homes[tap.view.home], 0));
        self.taps.iter().map(place).unzip()
    }
}
