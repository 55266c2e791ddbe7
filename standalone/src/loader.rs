//! Changes tracks where it may take its time: recordings are decoded, models are read and made ready on a thread of its own, and
//! the console is only held to put in what is finished.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use crate::rack::console::Restored;
use crate::rack::plan::{self, Plan};
use crate::rack::saved::Input;
use crate::rack::{Console, SessionFile, TRACKS};
use crate::rig::lock;

/// How often what plays is looked after.
const TICK: Duration = Duration::from_millis(100);

/// What is to be done.
pub(crate) enum Order {
    /// The track's strip is not as it should be.
    Renew(usize),
    /// The track listens to something else.
    Listen(usize, Input),
    /// Another session.
    Restore(Box<SessionFile>),
}

impl Order {
    /// What those read who wait for it, where it is long.
    fn loading(&self) -> Option<Loading> {
        match self {
            Self::Listen(place, Input::File { path, .. }) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Some(Loading { place: Some(*place), name })
            }
            Self::Restore(_) => Some(Loading { place: None, name: String::new() }),
            Self::Renew(_) | Self::Listen(..) => None,
        }
    }
}

/// What has become of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The session is there; what is wrong with it, one line each.
    Restored(Vec<String>),
    /// Something else failed, in one line.
    Failed(String),
}

/// What somebody may wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The track's place; none for all of them.
    pub place: Option<usize>,
    /// What is read, by the name of its file; empty where it has none.
    pub name: String,
}

/// The threads that do it: one works, one looks after what plays.
pub(crate) struct Loader {
    orders: Option<Sender<Order>>,
    outcomes: Receiver<Outcome>,
    loading: Arc<Mutex<Vec<Loading>>>,
    /// Both end when this is gone.
    over: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// The half of the thread that works.
struct Work {
    console: Arc<Mutex<Console>>,
    outcomes: Sender<Outcome>,
    loading: Arc<Mutex<Vec<Loading>>>,
}

impl Loader {
    /// Begins to look after a console. Where the system has no threads to give nothing is ever loaded.
    pub fn start(console: Arc<Mutex<Console>>) -> Self {
        let (orders, todo) = unbounded();
        let (tell, outcomes) = unbounded();
        let (over, ended) = bounded::<()>(0);
        let loading = Arc::<Mutex<Vec<Loading>>>::default();
        let wake = lock(&console).waker();
        let work = Work { console: console.clone(), outcomes: tell.clone(), loading: loading.clone() };
        let stop = ended.clone();
        let works = std::thread::Builder::new().name("ondes-changes".into()).spawn(move || {
            for order in todo {
                // What nobody waits for any more is left.
                if stop.try_recv() == Err(crossbeam_channel::TryRecvError::Disconnected) {
                    return;
                }
                work.carry_out(order);
                wake();
            }
        });
        let again = orders.clone();
        let keeps = std::thread::Builder::new().name("ondes-keeper".into()).spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let due = lock(&console).due();
                // Who works is there for as long as this runs.
                due.into_iter().for_each(|place| drop(again.send(Order::Renew(place))));
            }
        });
        let mut threads = Vec::new();
        for thread in [works, keeps] {
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => drop(tell.send(Outcome::Failed(format!("no thread to load anything: {error}")))),
            }
        }
        Self { orders: Some(orders), outcomes, loading, over: Some(over), threads }
    }

    /// Begins something; what was begun before ends before.
    pub fn begin(&self, order: Order) {
        lock(&self.loading).extend(order.loading());
        if let Some(orders) = &self.orders {
            drop(orders.send(order));
        }
    }

    /// What is under way, in order.
    pub fn loading(&self) -> Vec<Loading> {
        lock(&self.loading).clone()
    }

    /// What was finished since, if anything.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        drop((self.over.take(), self.orders.take()));
        for thread in self.threads.drain(..) {
            // Should it have panicked, there is nothing more to be done.
            drop(thread.join());
        }
    }
}

impl Work {
    fn carry_out(&self, order: Order) {
        let named = order.loading();
        let outcome = match order {
            Order::Renew(place) => self.renew(place).map(|()| None),
            Order::Listen(place, input) => self.listen(place, input).map(|()| None),
            Order::Restore(session) => Ok(Some(self.restore(&session))),
        };
        if let Some(named) = named {
            let mut loading = lock(&self.loading);
            if let Some(done) = loading.iter().position(|other| *other == named) {
                loading.remove(done);
            }
        }
        match outcome {
            Ok(None) => {}
            // Nobody is there to be told at the very end only.
            Ok(Some(outcome)) => drop(self.outcomes.send(outcome)),
            Err(error) => drop(self.outcomes.send(Outcome::Failed(format!("{error:#}")))),
        }
    }

    fn renew(&self, place: usize) -> anyhow::Result<()> {
        let plan = lock(&self.console).plan(place);
        if let Some(finished) = plan.map(Plan::make).transpose()?.flatten() {
            lock(&self.console).install(finished);
        }
        Ok(())
    }

    fn listen(&self, place: usize, input: Input) -> anyhow::Result<()> {
        let rate = lock(&self.console).sample_rate();
        // Before the sound is open nobody knows its rate: it is read when that begins.
        let clip = match rate {
            Some(rate) => plan::read(&input, rate)?,
            None => None,
        };
        lock(&self.console).take_input(place, input, clip);
        self.renew(place)
    }

    fn restore(&self, session: &SessionFile) -> Outcome {
        let wake = lock(&self.console).waker();
        let restored = Restored::read(session, &wake);
        let mut problems = lock(&self.console).replace(restored);
        for place in 0..TRACKS {
            problems.extend(self.renew(place).err().map(|error| format!("{error:#}")));
            problems.extend(lock(&self.console).track(place).and_then(|track| Some(track.fault()?.to_owned())));
        }
        Outcome::Restored(problems)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use ondes_engine::realtime::Setup;
    use ondes_processor::preset::Product;

    use super::*;

    fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
        let since = Instant::now();
        while !there() {
            assert!(since.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn nobody_waits_for_a_recording_that_is_being_read() {
        let folder = tempfile::tempdir().unwrap();
        // Whoever reads it waits until somebody writes.
        let path = folder.path().join("slow.wav");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut console = Console::new(|| {});
        console.add(Product::Effect).unwrap();
        let before = console.track(0).unwrap().input().clone();
        let _rack = console.open(Setup { sample_rate: 48_000, max_block: 64 }, None, Vec::new()).unwrap();
        let console = Arc::new(Mutex::new(console));
        let loader = Loader::start(console.clone());
        loader.begin(Order::Listen(0, Input::File { path: path.clone(), looped: false }));
        // Nobody can open it for writing before it is being read.
        let mut slow = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(loader.loading(), [Loading { place: Some(0), name: "slow.wav".into() }]);
        lock(&console).set_looped(0, true);
        assert_eq!(loader.outcome(), None);
        slow.write_all(b"no sound at all").unwrap();
        drop(slow);
        let mut outcome = None;
        wait_until("it is refused", || {
            outcome = outcome.take().or_else(|| loader.outcome());
            outcome.is_some()
        });
        assert!(
            matches!(&outcome, Some(Outcome::Failed(why)) if why.starts_with(&path.display().to_string())),
            "{outcome:?}"
        );
        assert_eq!((loader.loading(), lock(&console).track(0).unwrap().input()), (Vec::new(), &before));
    }

    #[test]
    fn a_session_comes_by_and_by_and_says_what_is_missing() {
        let mut console = Console::new(|| {});
        (0..2).for_each(|place| assert_eq!(console.add(Product::Instrument).unwrap(), place));
        let mut session = console.saved();
        session.tracks[1].input = Input::File { path: "/nowhere/at all.wav".into(), looped: false };
        session.master.level_db = -7.0;
        let mut rack = {
            let setup = Setup { sample_rate: 48_000, max_block: 64 };
            (0..2).for_each(|place| console.remove(place));
            console.open(setup, None, Vec::new()).unwrap()
        };
        let console = Arc::new(Mutex::new(console));
        let loader = Loader::start(console.clone());
        loader.begin(Order::Restore(Box::new(session)));
        let mut outcome = None;
        wait_until("it is there", || {
            crate::devices::Callback::process(&mut rack, &[], &mut [&mut [0.0; 64], &mut [0.0; 64]]);
            outcome = outcome.take().or_else(|| loader.outcome());
            outcome.is_some()
        });
        assert!(
            matches!(&outcome, Some(Outcome::Restored(problems)) if problems.len() == 1
                && problems[0].starts_with("/nowhere/at all.wav: ")),
            "{outcome:?}"
        );
        let console = lock(&console);
        assert_eq!((console.tracks().count(), console.master.get().level_db), (2, -7.0));
        // It stays in the session: it may be back next time.
        assert!(console.saved().tracks[1].input.is_file("/nowhere/at all.wav".as_ref()));
    }
}
