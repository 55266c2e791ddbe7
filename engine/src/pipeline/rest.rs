//! When an instrument that follows a sound may rest.
//!
//! In silence the network plays on, for nobody. It may rest where it has nothing to say: nothing is heard, nothing that it is
//! fed changes, and what it made of that, with all of the room's tail, has long been below what anybody hears. All this is known
//! at the instants of control frames, so that it does not depend on who drives the model, nor on blocks. A network that hums
//! by itself never rests.
//!
//! When it wakes, it goes on from the state in which it was: where nothing changes that state has settled, and it is that of a
//! network that has played all along, but for the phases of oscillators and noise. One that began anew would speak otherwise
//! for the first tenths of a second.

/// How long nothing must have happened, seconds.
const PATIENCE_S: f64 = 0.5;
/// What is quieter than this will not be missed: −80 dB of full scale.
const INAUDIBLE: f32 = 1e-4;

/// Whether a network plays, frame by frame.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// Frames in a row, up to the last one, in which nothing happened.
    idle: u32,
    /// So many let it rest.
    patience: u32,
    /// Nothing was heard and nothing changed at this frame.
    still: bool,
    resting: bool,
}

/// What a network does at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It plays, or begins to again.
    Plays,
    /// It plays a last hop, down to gain 0.
    Retires,
    Rests,
}

impl Rest {
    /// Of a network that plays. Frames are `hop` samples apart, at `sample_rate` in Hz.
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        let patience = (PATIENCE_S * sample_rate / hop as f64).ceil().max(1.0) as u32;
        Self { idle: 0, patience, still: false, resting: false }
    }

    /// As new.
    pub fn reset(&mut self) {
        *self = Self { idle: 0, still: false, resting: false, ..*self };
    }

    /// The next frame; `still` says that nothing is heard and that nothing the network is fed has changed since the last one.
    pub fn step(&mut self, still: bool) -> Step {
        self.still = still;
        let rests = still && self.idle >= self.patience;
        match (rests, std::mem::replace(&mut self.resting, rests)) {
            (false, _) => Step::Plays,
            (true, false) => Step::Retires,
            (true, true) => Step::Rests,
        }
    }

    /// The hop that the frame led to; none where the network had no time for it, and nobody knows how it would have sounded.
    pub fn made(&mut self, sound: Option<&[f32]>) {
        let silent = |sound: &[f32]| sound.iter().all(|sample| sample.abs() < INAUDIBLE);
        let idle = self.still && (self.resting || sound.is_some_and(silent));
        self.idle = if idle { self.idle.saturating_add(1) } else { 0 };
    }

    /// Never rests: what a test compares with.
    #[cfg(test)]
    pub fn forbid(&mut self) {
        self.patience = u32::MAX;
    }
}

#[cfg(test)]
mod tests;
