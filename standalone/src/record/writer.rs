//! The thread between the rings and the files.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::disk::Disk;
use super::lane::Lane;
use super::take::{Take, Track};

/// How often the rings are looked at. The audio thread wakes nobody.
const POLL: Duration = Duration::from_millis(20);

/// What the recorder wants.
pub(super) enum Command {
    /// A take that goes on until it is ended.
    Begin {
        id: u64,
        tracks: Vec<Track>,
        /// Number of the frame at that moment, if there was any.
        now: Option<u64>,
        /// Whether what was before it belongs to it.
        preroll: bool,
    },
    /// A take of what was before the frame `now`.
    Save { id: u64, tracks: Vec<Track>, now: u64 },
    /// The end of a take before the frame `now`.
    End { id: u64, now: Option<u64> },
}

/// What the recorder and its thread share; the audio thread does not.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// The take that is shown as the recording, until it is told to end.
    pub current: Option<u64>,
    /// Its frames so far.
    pub frames: u64,
    /// Takes that are not complete, besides the current one.
    pub finishing: usize,
    pub error: Option<String>,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // All changes of it are single assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no take is in the making.
    pub fn wait(&self) {
        let mut state = self.lock();
        while state.current.is_some() || state.finishing > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread's work.
pub(super) struct Writer {
    pub lanes: Vec<Lane>,
    pub sample_rate: u32,
    /// Frames.
    pub preroll: u64,
    pub commands: Receiver<Command>,
    pub shared: Arc<Shared>,
    pub disk: Disk,
    pub takes: Vec<Take>,
}

impl Writer {
    /// Works until the recorder is gone and all takes are complete.
    pub fn run(mut self) {
        let mut orders = VecDeque::new();
        let mut closing = false;
        while !closing || !orders.is_empty() || !self.takes.is_empty() {
            // A command finds all that was pushed before it.
            while self.drain_and_listen(&mut orders) {}
            // What is to begin after the clock was set anew must not be mixed up with what was before.
            if !self.lanes.iter().any(Lane::at_jump) {
                orders.drain(..).for_each(|command| self.obey(command));
            }
            self.meet_jumps();
            let more = self.write();
            let wait = if more { Duration::ZERO } else { POLL };
            if closing || !orders.is_empty() {
                std::thread::sleep(wait);
                continue;
            }
            match self.commands.recv_timeout(wait) {
                Ok(command) => orders.push_back(command),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => closing = true,
            }
        }
        let failures = self.disk.finish();
        self.tell(failures.first().map(ToString::to_string));
    }

    /// Takes what is in the rings and then what the recorder wants. Gives whether it wants anything.
    fn drain_and_listen(&mut self, orders: &mut VecDeque<Command>) -> bool {
        self.drain();
        // Commands are given under the lock. So whatever ends a take from now on ends it behind what was drained, and nothing
        // is written that does not belong to it.
        let _lock = self.shared.lock();
        let before = orders.len();
        orders.extend(self.commands.try_iter());
        orders.len() > before
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Begin { id, tracks, now, preroll } => {
                // A clock that was set back since then may take for ever to come to that frame again.
                let latest = self.lanes.iter().filter_map(|lane| lane.outlet.wire.end()).max();
                let now = now.filter(|&now| latest.is_some_and(|latest| latest >= now));
                let start = if preroll { now.map(|now| self.preroll_start(now, &tracks)) } else { now };
                self.takes.push(Take::new(id, tracks, self.sample_rate, start));
            }
            Command::Save { id, tracks, now } => {
                let start = self.preroll_start(now, &tracks);
                let mut take = Take::new(id, tracks, self.sample_rate, Some(start));
                take.end_at(now, None);
                self.takes.push(take);
            }
            Command::End { id, now } => {
                if let Some(take) = self.takes.iter_mut().find(|take| take.id == id) {
                    take.end_at(now.unwrap_or(0), None);
                }
            }
        }
    }

    /// Where a pre-roll before `now` begins: as far back as asked for and as there is sound.
    fn preroll_start(&self, now: u64, tracks: &[Track]) -> u64 {
        let held = tracks.iter().filter_map(|track| self.lanes[track.lane].history.held());
        let first = held.map(|held| held.start).min();
        now.saturating_sub(self.preroll).max(first.unwrap_or(now)).min(now)
    }

    /// Takes what is in the rings.
    fn drain(&mut self) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let room = self.takes.iter().map(|take| take.room(index, lane)).min();
            lane.drain(room.unwrap_or(u64::MAX));
        }
    }

    /// Where the clock was set anew, takes end; then all goes on from there.
    fn meet_jumps(&mut self) {
        let Some(end) = self.lanes.iter().filter(|lane| lane.at_jump()).filter_map(Lane::end).max() else { return };
        if self.takes.is_empty() {
            let back = self.lanes.iter().any(Lane::jumps_back);
            self.lanes.iter_mut().for_each(|lane| lane.cross(back));
        }
        for take in &mut self.takes {
            take.end_at(end, Some("the recording ended where the sample clock was set anew"));
        }
    }

    /// Writes what there is, and completes what is over. Gives whether there is more.
    fn write(&mut self) -> bool {
        let mut more = false;
        let mut ended = Vec::new();
        for (index, take) in self.takes.iter_mut().enumerate() {
            match take.write(&self.lanes, &self.disk) {
                Ok(there_is_more) => {
                    more |= there_is_more;
                    if take.is_over() {
                        ended.push((index, None));
                    }
                }
                Err(failure) => ended.push((index, Some(failure))),
            }
        }
        for (index, failure) in ended.into_iter().rev() {
            let take = self.takes.remove(index);
            let id = take.id;
            let error = take.finish(failure, &self.disk);
            self.tell(error);
            let mut state = self.shared.lock();
            if state.current == Some(id) {
                state.current = None;
            } else {
                state.finishing -= 1;
            }
        }
        let failure = self.disk.failures().next();
        self.tell(failure.map(|failure| failure.to_string()));
        let mut state = self.shared.lock();
        if let Some(take) = self.takes.iter().find(|take| state.current == Some(take.id)) {
            state.frames = take.frames(&self.lanes);
        }
        drop(state);
        self.shared.changed.notify_all();
        more
    }

    fn tell(&self, error: Option<String>) {
        if let Some(error) = error {
            self.shared.lock().error = Some(error);
        }
    }
}
