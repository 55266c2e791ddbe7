//! The thread that opens devices, watches over them and takes them again when they are back.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::audio::{AudioChoice, Desk, Factory, Opened, Status};
use super::catalogue::{self, HostKind};
use super::quiet;
use super::stage::{Backstage, Meter};
use super::system;

/// How often a device is looked after.
const GLANCE: Duration = Duration::from_millis(50);

/// Without a block for so long, a device is taken for lost. The longest buffers in use hold less.
const SILENT_FOR_TOO_LONG: Duration = Duration::from_secs(1);

/// How long after a failure the next attempt is made.
const RETRY: Duration = Duration::from_secs(1);

/// Blocks after which a system's figures for its latency hold: at first its buffers are still empty.
const SETTLING_BLOCKS: u64 = 4;

/// What the owner asks for.
pub(super) enum Order {
    Choose(AudioChoice),
}

/// A device at work.
pub(super) trait Stream: Send {
    /// Why it is of no more use, if so, in one line.
    fn fault(&mut self) -> Option<String>;
}

/// Devices that run, and the callback in them. The stream goes first, so that the callback ends up backstage.
pub(super) struct Running {
    pub opened: Opened,
    pub stream: Box<dyn Stream>,
    pub backstage: Backstage,
}

pub(super) struct Supervisor {
    pub inbox: Receiver<Order>,
    pub desk: Arc<Desk>,
    pub meter: Arc<Meter>,
    pub factory: Factory,
}

/// Why there is no sound.
enum Trouble {
    /// The device's doing; it may pass.
    Device(String),
    /// Ours; trying again would not help.
    Callback(String),
}

/// Why watching ended.
enum Watched {
    Ordered(AudioChoice),
    Troubled(Trouble),
    Closed,
}

impl Supervisor {
    pub fn run(mut self, mut choice: AudioChoice) {
        quiet::hush();
        // What is lost stays lost, with its reason, until it is back or something else is chosen.
        let mut lost = false;
        loop {
            let trouble = match self.start(&choice) {
                Ok(mut running) => {
                    lost = false;
                    self.desk.set(Status::Playing(running.opened.clone()));
                    let watched = self.watch(&mut running);
                    let device = running.opened.output.clone();
                    drop(running);
                    match watched {
                        Watched::Closed => return,
                        Watched::Ordered(other) => {
                            choice = other;
                            continue;
                        }
                        Watched::Troubled(Trouble::Device(reason)) => {
                            lost = true;
                            self.desk.set(Status::Lost { device, reason, since: Instant::now() });
                            None
                        }
                        Watched::Troubled(trouble) => Some(trouble),
                    }
                }
                Err(trouble) => Some(trouble),
            };
            let patience = match trouble {
                None => Some(RETRY),
                Some(Trouble::Device(reason)) => {
                    if !lost {
                        self.desk.set(Status::Failed(reason));
                    }
                    Some(RETRY)
                }
                Some(Trouble::Callback(reason)) => {
                    self.desk.set(Status::Failed(reason));
                    None
                }
            };
            match self.wait(patience) {
                Ok(Some(other)) => {
                    choice = other;
                    lost = false;
                }
                Ok(None) => {}
                Err(Closed) => return,
            }
        }
    }

    /// Opens what is chosen and seats a callback made for it.
    fn start(&mut self, choice: &AudioChoice) -> Result<Running, Trouble> {
        let before = self.meter.blocks();
        let mut running = open(choice, &self.meter).map_err(Trouble::Device)?;
        // It plays silence already: that shows that it runs, and what its latency is.
        let since = Instant::now();
        while self.meter.blocks() < before + SETTLING_BLOCKS && !self.meter.stopping() {
            if let Some(fault) = running.stream.fault() {
                return Err(Trouble::Device(fault));
            }
            if since.elapsed() > 2 * SILENT_FOR_TOO_LONG {
                return Err(Trouble::Device(format!("{} takes no sound", running.opened.output)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let (output, input) = self.meter.latencies();
        running.opened.output_latency_frames = output;
        if running.opened.inputs > 0 {
            running.opened.input_latency_frames = input + running.opened.bridge_frames;
        }
        let callback = (self.factory)(&running.opened).map_err(Trouble::Callback)?;
        running.backstage.seat(callback);
        Ok(running)
    }

    fn watch(&self, running: &mut Running) -> Watched {
        let mut blocks = self.meter.blocks();
        let mut since = Instant::now();
        loop {
            match self.wait(Some(GLANCE)) {
                Ok(Some(choice)) => return Watched::Ordered(choice),
                Ok(None) => {}
                Err(Closed) => return Watched::Closed,
            }
            if let Some(reason) = running.backstage.panic() {
                let reason = format!("the sound broke down: {}", reason.replace('\n', " "));
                return Watched::Troubled(Trouble::Callback(reason));
            }
            if let Some(reason) = running.stream.fault() {
                return Watched::Troubled(Trouble::Device(reason));
            }
            let now = self.meter.blocks();
            if now != blocks {
                (blocks, since) = (now, Instant::now());
            } else if since.elapsed() >= SILENT_FOR_TOO_LONG {
                return Watched::Troubled(Trouble::Device("it takes no more sound".into()));
            }
        }
    }

    /// The latest choice that comes in within some time, or ever.
    fn wait(&self, patience: Option<Duration>) -> Result<Option<AudioChoice>, Closed> {
        let order = match patience {
            Some(patience) => self.inbox.recv_timeout(patience),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(Order::Choose(choice)) => {
                let (latest, more) =
                    self.inbox.try_iter().fold((choice, 0), |(_, more), Order::Choose(choice)| (choice, more + 1));
                self.desk.seen(1 + more);
                Ok(Some(latest))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Closed),
        }
    }
}

/// The owner is gone.
struct Closed;

fn open(choice: &AudioChoice, meter: &Arc<Meter>) -> Result<Running, String> {
    match catalogue::find_host(choice.host.as_deref())? {
        HostKind::System(host) => system::open(host, choice, meter),
        #[cfg(target_os = "linux")]
        HostKind::Jack => super::jack::open(choice, meter),
    }
}
