//! Sound in and out: what is asked for, what is got, and the handle on it.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::stage::Meter;
use super::supervisor::{Order, Supervisor};

/// What makes the sound. It lives on the audio thread and is dropped elsewhere.
pub trait Callback: Send {
    /// Plays one block: reads `input[channel][frame]`, writes all of `output[channel][frame]`.
    ///
    /// All channels have the same length, 1 … [`Opened::max_block`] frames, and it may be another one each time. Nothing here
    /// may allocate, lock or wait. After a panic it is not called again, and there is silence.
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]);
}

/// Makes the callback for devices that were opened; called again whenever they were lost and are back.
pub type Factory = Box<dyn FnMut(&Opened) -> Result<Box<dyn Callback>, String> + Send>;

/// Which devices are wanted, and how. What is left out is left to the system.
///
/// Names are those of [`catalogue`](super::catalogue): a device's identifier or name, or a part that only one has; case does
/// not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioChoice {
    /// The sound system: "ALSA", "JACK" …; else JACK where its server runs, else the system's own.
    pub host: Option<String>,
    /// The device that plays.
    pub output: Option<String>,
    /// The device that records. Nothing is recorded where neither this nor `input_channels` is given.
    pub input: Option<String>,
    /// Hz.
    pub sample_rate: Option<u32>,
    /// Frames in a block: the nearest that the device allows. JACK's server has its own.
    pub block: Option<u32>,
    /// 1 … 64.
    pub output_channels: Option<u16>,
    /// 0 … 64; 0 records nothing.
    pub input_channels: Option<u16>,
}

impl AudioChoice {
    pub(super) fn wants_input(&self) -> bool {
        self.input_channels.map_or(self.input.is_some(), |channels| channels > 0)
    }
}

/// What was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// The sound system.
    pub host: String,
    /// The name of the device that plays.
    pub output: String,
    /// The name of the device that records.
    pub input: Option<String>,
    /// Hz, of both.
    pub sample_rate: u32,
    /// The most frames of a block.
    pub max_block: usize,
    /// Channels recorded.
    pub inputs: usize,
    /// Channels played.
    pub outputs: usize,
    /// From the callback to the converter, as far as the system tells, in frames.
    pub output_latency_frames: usize,
    /// From the converter to the callback, as far as the system tells, in frames; `bridge_frames` included.
    pub input_latency_frames: usize,
    /// What joining two devices that run on their own adds, in frames; 0 where both run in one cycle.
    pub bridge_frames: usize,
}

/// How things stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Devices are being opened for the first time since they were chosen.
    Opening,
    /// Sound runs.
    Playing(Opened),
    /// A device that played is gone; it is tried again every second.
    Lost {
        /// Its name.
        device: String,
        /// One line.
        reason: String,
        /// When it was noticed.
        since: Instant,
    },
    /// What was chosen cannot be had, in one line. It is tried again every second, unless the callback itself failed or could
    /// not be made.
    Failed(String),
}

/// Frames that were left out or put in between an input and an output that do not run at quite the same speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Frames that were recorded and not heard.
    pub dropped_frames: u64,
    /// Frames of silence that were heard instead of a recording.
    pub inserted_frames: u64,
}

/// Sound in and out, until it is dropped. Devices that go away are taken again when they are back.
pub struct Audio {
    orders: Option<Sender<Order>>,
    desk: Arc<Desk>,
    meter: Arc<Meter>,
    thread: Option<JoinHandle<()>>,
}

/// Where the supervisor tells how things stand.
pub(super) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    status: Status,
    /// Choices that the supervisor has not seen yet. Until then, what it tells is about devices that nobody wants any more.
    unseen: usize,
}

impl Desk {
    pub fn set(&self, status: Status) {
        let mut state = self.lock();
        if state.unseen == 0 {
            state.status = status;
            self.changed.notify_all();
        }
    }

    /// So many choices were seen.
    pub fn seen(&self, choices: usize) {
        let mut state = self.lock();
        state.unseen = state.unseen.saturating_sub(choices);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audio {
    /// Starts to open what is chosen and returns at once; see [`settled`](Self::settled).
    pub fn open(choice: AudioChoice, factory: Factory) -> Self {
        let state = State { status: Status::Opening, unseen: 0 };
        let desk = Arc::new(Desk { state: Mutex::new(state), changed: Condvar::new() });
        let meter = Arc::new(Meter::default());
        let (orders, inbox) = mpsc::channel();
        let supervisor = Supervisor { inbox, desk: desk.clone(), meter: meter.clone(), factory };
        let thread = std::thread::Builder::new().name("ondes-audio".into());
        let thread = match thread.spawn(move || supervisor.run(choice)) {
            Ok(thread) => Some(thread),
            Err(error) => {
                desk.set(Status::Failed(format!("no thread for the sound: {error}")));
                None
            }
        };
        Self { orders: Some(orders), desk, meter, thread }
    }

    /// Goes over to other devices.
    pub fn choose(&self, choice: AudioChoice) {
        let Some(orders) = &self.orders else { return };
        let mut state = self.desk.lock();
        if orders.send(Order::Choose(choice)).is_ok() {
            // Set here, or whoever asks next would still see the old devices.
            state.status = Status::Opening;
            state.unseen += 1;
        }
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        self.desk.lock().status.clone()
    }

    /// How things stand, once devices are no longer being opened; [`Status::Opening`] when that takes longer than `patience`.
    pub fn settled(&self, patience: Duration) -> Status {
        let opening = |state: &mut State| state.status == Status::Opening;
        let state = self.desk.changed.wait_timeout_while(self.desk.lock(), patience, opening);
        let (state, _) = state.unwrap_or_else(PoisonError::into_inner);
        state.status.clone()
    }

    /// How often sound came too late so far, where the system tells.
    pub fn xruns(&self) -> u64 {
        self.meter.xruns()
    }

    /// How far input and output have run apart so far.
    pub fn drift(&self) -> Drift {
        self.meter.drift()
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        self.orders = None;
        self.meter.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own thread.
            drop(thread.join());
        }
    }
}
