//! What passes read and write, in homes and in the slice of all signals.

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
