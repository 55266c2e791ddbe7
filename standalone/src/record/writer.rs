//! The thread between the taps and the files.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use ondes_engine::panics::contain;
use ondes_engine::sync::{lock, recover};

use super::disk_sync::DiskSync;
use super::take::{Take, TakeTrack};
use super::tap_reader::TapReader;

/// Interval at which the rings are read; the audio thread does not wake the writer.
const POLL: Duration = Duration::from_millis(20);

/// Command from the recorder to its thread.
pub(super) enum WriterCommand {
    /// Starts a take that runs until it is ended.
    Begin {
        id: u64,
        tracks: Vec<TakeTrack>,
        /// Number of the frame at that moment, if there was any sound.
        now: Option<u64>,
        /// Includes the pre-roll.
        preroll: bool,
    },
    /// Saves the pre-roll up to frame `now`.
    Save {
        id: u64,
        tracks: Vec<TakeTrack>,
        now: u64,
    },
    /// Ends a take before frame `now`.
    End { id: u64, now: Option<u64> },
}

/// State shared by the recorder and its thread, not by the audio thread.
#[derive(Default)]
pub(super) struct WriterShared {
    state: Mutex<WriterState>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct WriterState {
    /// Running take, until it is told to end.
    pub current: Option<u64>,
    /// Frames of the running take.
    pub frames: u64,
    /// Unfinished takes besides the running one.
    pub finishing: usize,
    pub error: Option<String>,
}

impl WriterShared {
    pub fn lock(&self) -> MutexGuard<'_, WriterState> {
        // All changes of the state are single assignments.
        lock(&self.state)
    }

    /// Waits until no take is running or unfinished.
    pub fn wait(&self) {
        let mut state = self.lock();
        while state.current.is_some() || state.finishing > 0 {
            state = recover(self.changed.wait(state));
        }
    }
}

/// State of the thread.
pub(super) struct Writer {
    pub readers: Vec<TapReader>,
    pub sample_rate: u32,
    /// Length of the pre-roll, frames.
    pub preroll: u64,
    pub commands: Receiver<WriterCommand>,
    pub shared: Arc<WriterShared>,
    pub disk: DiskSync,
    pub takes: Vec<Take>,
}

impl Writer {
    /// Runs until the recorder is dropped and all takes are complete. A panic ends the takes, whose
    /// files are complete up to there.
    pub fn run(mut self) {
        let mut pending = VecDeque::new();
        let mut closing = false;
        while !closing || !pending.is_empty() || !self.takes.is_empty() {
            let Err(panic) = contain(|| self.step(&mut pending, &mut closing)) else {
                continue;
            };
            pending.clear();
            let was_idle = self.takes.is_empty();
            self.takes.clear();
            let mut state = self.shared.lock();
            (state.current, state.finishing) = (None, 0);
            state.error = Some(format!("the recording failed: {panic}"));
            drop(state);
            self.shared.changed.notify_all();
            if was_idle {
                // No take was the cause, so it would fail for ever.
                return;
            }
        }
        let failures = self.disk.finish();
        self.report_error(failures.first().map(ToString::to_string));
    }

    /// Executes commands, writes what is due and waits for a while. Sets `closing` when the
    /// recorder is dropped.
    fn step(&mut self, pending: &mut VecDeque<WriterCommand>, closing: &mut bool) {
        // So that a command finds all frames that were pushed before it.
        while self.drain_and_receive(pending) {}
        // A take that starts after a clock reset must not contain frames from before it.
        if !self.readers.iter().any(TapReader::at_jump) {
            pending.drain(..).for_each(|command| self.execute(command));
        }
        self.handle_clock_jumps();
        let more = self.write();
        let wait = if more { Duration::ZERO } else { POLL };
        if *closing || !pending.is_empty() {
            std::thread::sleep(wait);
            return;
        }
        match self.commands.recv_timeout(wait) {
            Ok(command) => pending.push_back(command),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => *closing = true,
        }
    }

    /// Reads the rings, then the commands. Returns whether there were any.
    fn drain_and_receive(&mut self, pending: &mut VecDeque<WriterCommand>) -> bool {
        self.drain();
        // Commands are sent under this lock. An end that comes from now on lies behind what was
        // read, so nothing beyond the end is written.
        let _lock = self.shared.lock();
        let before = pending.len();
        pending.extend(self.commands.try_iter());
        pending.len() > before
    }

    fn execute(&mut self, command: WriterCommand) {
        match command {
            WriterCommand::Begin {
                id,
                tracks,
                now,
                preroll,
            } => {
                // After the clock was set back, that frame might not come for a long time.
                let latest = self
                    .readers
                    .iter()
                    .filter_map(|reader| reader.consumer.progress.end())
                    .max();
                let now = now.filter(|&now| latest.is_some_and(|latest| latest >= now));
                let start = if preroll {
                    now.map(|now| self.preroll_start(now, &tracks))
                } else {
                    now
                };
                self.takes
                    .push(Take::new(id, tracks, self.sample_rate, start));
            }
            WriterCommand::Save { id, tracks, now } => {
                let start = self.preroll_start(now, &tracks);
                let mut take = Take::new(id, tracks, self.sample_rate, Some(start));
                take.end_at(now, None);
                self.takes.push(take);
            }
            WriterCommand::End { id, now } => {
                if let Some(take) = self.takes.iter_mut().find(|take| take.id == id) {
                    take.end_at(now.unwrap_or(0), None);
                }
            }
        }
    }

    /// Returns the first frame of a pre-roll that ends at `now`, limited by the sound held.
    fn preroll_start(&self, now: u64, tracks: &[TakeTrack]) -> u64 {
        let held = tracks
            .iter()
            .filter_map(|track| self.readers[track.reader].history.held());
        let first = held.map(|held| held.start).min();
        now.saturating_sub(self.preroll)
            .max(first.unwrap_or(now))
            .min(now)
    }

    /// Reads the rings.
    fn drain(&mut self) {
        for (index, reader) in self.readers.iter_mut().enumerate() {
            let room = self.takes.iter().map(|take| take.room(index, reader)).min();
            reader.drain(room.unwrap_or(u64::MAX));
        }
    }

    /// Ends all takes at a clock reset, then continues after it.
    fn handle_clock_jumps(&mut self) {
        let Some(end) = self
            .readers
            .iter()
            .filter(|reader| reader.at_jump())
            .filter_map(TapReader::end)
            .max()
        else {
            return;
        };
        if self.takes.is_empty() {
            let back = self.readers.iter().any(TapReader::jumps_back);
            self.readers
                .iter_mut()
                .for_each(|reader| reader.pass_jump(back));
        }
        for take in &mut self.takes {
            take.end_at(
                end,
                Some("the recording ended at a reset of the sample clock"),
            );
        }
    }

    /// Writes what is due and completes finished takes. Returns whether more is waiting.
    fn write(&mut self) -> bool {
        let mut more = false;
        let mut ended = Vec::new();
        for (index, take) in self.takes.iter_mut().enumerate() {
            match take.write(&self.readers, &self.disk) {
                Ok(there_is_more) => {
                    more |= there_is_more;
                    if take.is_complete() {
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
            self.report_error(error);
            let mut state = self.shared.lock();
            if state.current == Some(id) {
                state.current = None;
            } else {
                state.finishing -= 1;
            }
        }
        let failure = self.disk.failures().next();
        self.report_error(failure.map(|failure| failure.to_string()));
        let mut state = self.shared.lock();
        if let Some(take) = self
            .takes
            .iter()
            .find(|take| state.current == Some(take.id))
        {
            state.frames = take.frames(&self.readers);
        }
        drop(state);
        self.shared.changed.notify_all();
        more
    }

    fn report_error(&self, error: Option<String>) {
        if let Some(error) = error {
            self.shared.lock().error = Some(error);
        }
    }
}
