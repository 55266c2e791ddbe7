//! Who plays when: a pipeline for each job, which goes from file to file.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ondes_engine::pipeline::Pipeline;

/// As many pipelines as may play at the same time.
///
/// Who has one plays; who waits for the disk has given it back, so that meanwhile another file is played.
pub struct Turns {
    free: Mutex<Vec<Spare>>,
    given_back: Condvar,
}

/// A pipeline that has nothing to play any more or yet, for the next file at its rate, Hz.
pub type Spare = Option<(u32, Pipeline)>;

/// The right to play, given back when it is dropped.
pub struct Turn<'a> {
    turns: &'a Turns,
    /// What was played with, to be played with again.
    pub spare: Spare,
}

impl Turns {
    /// For so many at a time, the first of them with a pipeline that is there already.
    pub fn new(jobs: usize, first: Spare) -> Self {
        let others = (1..jobs).map(|_| None);
        Self { free: Mutex::new(others.chain([first]).collect()), given_back: Condvar::new() }
    }

    /// Waits for a turn.
    pub fn take(&self) -> Turn<'_> {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(spare) => return Turn { turns: self, spare },
                None => free = self.given_back.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.free().push(self.spare.take());
        self.turns.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_play_than_there_are_turns_and_all_come_to_theirs() {
        let turns = Turns::new(2, None);
        let (playing, most, played) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let turn = turns.take();
                        most.fetch_max(playing.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        playing.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                        played.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((most.into_inner(), played.into_inner()), (2, 500));
    }
}
