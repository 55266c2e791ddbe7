//! Changes tracks in the background: decodes recordings, reads sessions and builds strips on a
//! thread of its own, and locks the mixer only to install the result. Models that program changes
//! and the set list select are loaded on another thread, so that they do not wait for long
//! recordings. A panic fails its request only.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};
use ondes_engine::panics::contain;
use ondes_engine::sync::lock;

use crate::rack::mixer::LoadedSession;
use crate::rack::session_file::TrackInput;
use crate::rack::strip_plan::{self, StripPlan};
use crate::rack::{Mixer, SessionFile, TRACKS};

/// Interval of the checks for tracks that need another strip.
const MONITOR_INTERVAL: Duration = Duration::from_millis(100);

/// Request to the loader.
pub(crate) enum LoadRequest {
    /// Rebuild the strip of the track in this slot.
    Renew(usize),
    /// Change the input of the track in this slot.
    SetInput(usize, TrackInput),
    /// Restore a session.
    Restore(SessionSource),
}

/// Session to restore.
pub(crate) enum SessionSource {
    Session(Box<SessionFile>),
    /// Read in the background as well, since the file may be on a disk that does not answer.
    File(PathBuf),
}

impl LoadRequest {
    /// Returns the entry to show while this request is pending; `None` for short ones.
    fn loading(&self) -> Option<PendingLoad> {
        match self {
            Self::SetInput(slot, TrackInput::File { path, .. }) => {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                Some(PendingLoad {
                    slot: Some(*slot),
                    name,
                })
            }
            Self::Restore(_) => Some(PendingLoad {
                slot: None,
                name: String::new(),
            }),
            Self::Renew(_) | Self::SetInput(..) => None,
        }
    }
}

/// Result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// The session was restored; one line per problem.
    Restored(Vec<String>),
    /// The session cannot be read or restored, for this one-line reason.
    NotRestored(String),
    /// A request failed; one line.
    Failed(String),
}

/// Request that takes long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLoad {
    /// Slot of the track; `None` for a whole session.
    pub slot: Option<usize>,
    /// File name of what is read; empty if it has none.
    pub name: String,
}

/// Handle on three threads: one handles requests, one loads models, one monitors the tracks.
pub(crate) struct TrackLoader {
    requests: Option<Sender<LoadRequest>>,
    outcomes: Receiver<LoadOutcome>,
    loading: Arc<Mutex<Vec<PendingLoad>>>,
    /// The threads end when this is dropped.
    shutdown: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// State of the thread that handles requests.
struct LoaderThread {
    mixer: Arc<Mutex<Mixer>>,
    outcomes: Sender<LoadOutcome>,
    loading: Arc<Mutex<Vec<PendingLoad>>>,
}

impl TrackLoader {
    /// Starts the threads. If a thread cannot be started, [`TrackLoader::outcome`] reports it and
    /// nothing is loaded.
    pub fn start(mixer: Arc<Mutex<Mixer>>) -> Self {
        let (requests, incoming) = unbounded();
        let (outcome_tx, outcomes) = unbounded();
        let (shutdown, shutdown_rx) = bounded::<()>(0);
        let loading = Arc::<Mutex<Vec<PendingLoad>>>::default();
        let wake = lock(&mixer).waker();
        let worker = LoaderThread {
            mixer: mixer.clone(),
            outcomes: outcome_tx.clone(),
            loading: loading.clone(),
        };
        let stop = shutdown_rx.clone();
        // Nobody waits for the remaining requests.
        let is_over = move || stop.try_recv() == Err(TryRecvError::Disconnected);
        let (is_closing, waker) = (is_over.clone(), wake.clone());
        let loader = std::thread::Builder::new()
            .name("ondes-tracks".into())
            .spawn(move || {
                for request in incoming.into_iter().take_while(|_| !is_closing()) {
                    worker.handle(request);
                    waker();
                }
            });
        let (models_tx, models_rx) = bounded::<()>(1);
        let (requested, failures) = (mixer.clone(), outcome_tx.clone());
        let models = std::thread::Builder::new()
            .name("ondes-models".into())
            .spawn(move || {
                for () in models_rx {
                    let next = || lock(&requested).next_request().filter(|_| !is_over());
                    while let Some(request) = next() {
                        report_panic(&failures, contain(|| request.load()));
                        wake();
                    }
                }
            });
        let (renewals, failures) = (requests.clone(), outcome_tx.clone());
        let monitor = std::thread::Builder::new()
            .name("ondes-monitor".into())
            .spawn(move || {
                while shutdown_rx.recv_timeout(MONITOR_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let due = report_panic(&failures, contain(|| lock(&mixer).tracks_to_renew()))
                        .unwrap_or_default();
                    // The loader's channel is open as long as this thread runs.
                    due.into_iter()
                        .for_each(|slot| drop(renewals.send(LoadRequest::Renew(slot))));
                    // If the channel is full, the models are being loaded.
                    let _full = models_tx.try_send(());
                }
            });
        let mut threads = Vec::new();
        for thread in [loader, models, monitor] {
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => drop(outcome_tx.send(LoadOutcome::Failed(format!(
                    "the loader thread cannot be started: {error}"
                )))),
            }
        }
        Self {
            requests: Some(requests),
            outcomes,
            loading,
            shutdown: Some(shutdown),
            threads,
        }
    }

    /// Queues a request; requests are handled in order.
    pub fn request(&self, request: LoadRequest) {
        lock(&self.loading).extend(request.loading());
        if let Some(requests) = &self.requests {
            drop(requests.send(request));
        }
    }

    /// Returns the pending requests that take long, in order.
    pub fn loading(&self) -> Vec<PendingLoad> {
        lock(&self.loading).clone()
    }

    /// Returns the next result, if any.
    pub fn outcome(&self) -> Option<LoadOutcome> {
        self.outcomes.try_recv().ok()
    }
}

impl Drop for TrackLoader {
    fn drop(&mut self) {
        drop((self.shutdown.take(), self.requests.take()));
        for thread in self.threads.drain(..) {
            // The threads contain their panics.
            drop(thread.join());
        }
    }
}

impl LoaderThread {
    fn handle(&self, request: LoadRequest) {
        let pending = request.loading();
        let is_session = matches!(request, LoadRequest::Restore(_));
        let outcome = contain(|| match request {
            LoadRequest::Renew(slot) => self.renew(slot).map(|()| None),
            LoadRequest::SetInput(slot, input) => self.set_input(slot, input).map(|()| None),
            LoadRequest::Restore(SessionSource::Session(session)) => {
                Ok(Some(self.restore(&session)))
            }
            LoadRequest::Restore(SessionSource::File(path)) => {
                Ok(Some(match SessionFile::read(&path) {
                    Ok(session) => self.restore(&session),
                    Err(error) => LoadOutcome::NotRestored(format!("{error:#}")),
                }))
            }
        });
        let outcome = outcome.unwrap_or_else(|panic| match is_session {
            true => Ok(Some(LoadOutcome::NotRestored(format!(
                "loading the session failed: {panic}"
            )))),
            false => Err(anyhow!("loading failed: {panic}")),
        });
        if let Some(pending) = pending {
            let mut loading = lock(&self.loading);
            if let Some(done) = loading.iter().position(|other| *other == pending) {
                loading.remove(done);
            }
        }
        match outcome {
            Ok(None) => {}
            // The receiver is gone only at the end of the program.
            Ok(Some(outcome)) => drop(self.outcomes.send(outcome)),
            Err(error) => drop(
                self.outcomes
                    .send(LoadOutcome::Failed(format!("{error:#}"))),
            ),
        }
    }

    fn renew(&self, slot: usize) -> anyhow::Result<()> {
        let plan = lock(&self.mixer).plan(slot);
        if let Some(finished) = plan.map(StripPlan::build).transpose()?.flatten() {
            lock(&self.mixer).install(finished);
        }
        Ok(())
    }

    fn set_input(&self, slot: usize, input: TrackInput) -> anyhow::Result<()> {
        let rate = lock(&self.mixer).sample_rate();
        // Without open devices there is no sample rate yet; the recording is read when they open.
        let clip = match rate {
            Some(rate) => strip_plan::read(&input, rate)?,
            None => None,
        };
        lock(&self.mixer).store_input(slot, input, clip);
        self.renew(slot)
    }

    fn restore(&self, session: &SessionFile) -> LoadOutcome {
        let wake = lock(&self.mixer).waker();
        let restored = LoadedSession::read(session, &wake);
        let mut problems = lock(&self.mixer).replace(restored);
        for slot in 0..TRACKS {
            problems.extend(self.renew(slot).err().map(|error| format!("{error:#}")));
            problems.extend(
                lock(&self.mixer)
                    .track(slot)
                    .and_then(|track| Some(track.error()?.to_owned())),
            );
        }
        LoadOutcome::Restored(problems)
    }
}

/// Reports a panic and returns the result otherwise.
fn report_panic<T>(failures: &Sender<LoadOutcome>, result: Result<T, String>) -> Option<T> {
    // The receiver is gone only at the end of the program.
    let report = |panic: &String| {
        drop(failures.send(LoadOutcome::Failed(format!("loading failed: {panic}"))))
    };
    result.inspect_err(report).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ondes_engine::realtime::Setup;
    use ondes_player::library::{BUNDLED, FileReference};
    use ondes_player::product::Product;

    use super::*;

    fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
        let since = Instant::now();
        while !there() {
            assert!(
                since.elapsed() < Duration::from_secs(30),
                "waited in vain until {what}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn the_mixer_stays_unlocked_while_a_recording_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.wav");
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 8_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        (0..300 * 8_000).for_each(|n: i32| writer.write_sample((n % 100) as i16).unwrap());
        writer.finalize().unwrap();
        let mut mixer = Mixer::new(|| {});
        mixer.add(Product::Effect).unwrap();
        let before = mixer.track(0).unwrap().input().clone();
        let _rack = mixer
            .open(
                Setup {
                    sample_rate: 48_000,
                    max_block: 64,
                },
                None,
                Vec::new(),
            )
            .unwrap();
        let mixer = Arc::new(Mutex::new(mixer));
        let loader = TrackLoader::start(mixer.clone());
        let input = TrackInput::File {
            path: path.clone(),
            looped: false,
        };
        loader.request(LoadRequest::SetInput(0, input.clone()));
        // Converting the recording takes a while.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(lock(&mixer).track(0).unwrap().input(), &before);
        lock(&mixer).set_looped(0, true);
        assert_eq!(
            loader.loading(),
            [PendingLoad {
                slot: Some(0),
                name: "long.wav".into()
            }]
        );
        assert_eq!(loader.outcome(), None);
        wait_until("it is there", || loader.loading().is_empty());
        assert_eq!(
            (loader.outcome(), lock(&mixer).track(0).unwrap().input()),
            (None, &input)
        );

        std::fs::write(&path, b"no sound at all").unwrap();
        loader.request(LoadRequest::SetInput(
            0,
            TrackInput::File {
                path: path.clone(),
                looped: true,
            },
        ));
        let mut outcome = None;
        wait_until("it is refused", || {
            outcome = outcome.take().or_else(|| loader.outcome());
            outcome.is_some()
        });
        assert!(
            matches!(&outcome, Some(LoadOutcome::Failed(why)) if why.starts_with(&path.display().to_string())),
            "{outcome:?}"
        );
        assert_eq!(
            (loader.loading(), lock(&mixer).track(0).unwrap().input()),
            (Vec::new(), &input)
        );
    }

    #[test]
    fn the_last_selected_model_is_loaded() {
        let mut mixer = Mixer::new(|| {});
        mixer.add(Product::Instrument).unwrap();
        let mixer = Arc::new(Mutex::new(mixer));
        let loader = TrackLoader::start(mixer.clone());
        for bundled in BUNDLED.iter().take(3).cycle().take(50) {
            lock(&mixer).request_model(0, FileReference::to(&bundled.model(), None));
        }
        wait_until("the last one is there", || {
            lock(&mixer).track(0).unwrap().title() == BUNDLED[49 % 3].name
        });
        assert_eq!(loader.outcome(), None);
    }

    #[test]
    fn a_session_loads_in_the_background_and_reports_missing_files() {
        let mut mixer = Mixer::new(|| {});
        (0..2).for_each(|slot| assert_eq!(mixer.add(Product::Instrument).unwrap(), slot));
        let mut session = mixer.saved();
        session.tracks[1].input = TrackInput::File {
            path: "/nowhere/at all.wav".into(),
            looped: false,
        };
        session.master.level_db = -7.0;
        let mut rack = {
            let setup = Setup {
                sample_rate: 48_000,
                max_block: 64,
            };
            (0..2).for_each(|slot| mixer.remove(slot));
            mixer.open(setup, None, Vec::new()).unwrap()
        };
        let mixer = Arc::new(Mutex::new(mixer));
        let loader = TrackLoader::start(mixer.clone());
        loader.request(LoadRequest::Restore(SessionSource::Session(Box::new(
            session,
        ))));
        let mut outcome = None;
        wait_until("it is there", || {
            crate::io::Callback::process(&mut rack, &[], &mut [&mut [0.0; 64], &mut [0.0; 64]]);
            outcome = outcome.take().or_else(|| loader.outcome());
            outcome.is_some()
        });
        assert!(
            matches!(&outcome, Some(LoadOutcome::Restored(problems)) if problems.len() == 1
                && problems[0].starts_with("/nowhere/at all.wav: ")),
            "{outcome:?}"
        );
        let mixer = lock(&mixer);
        assert_eq!(
            (mixer.tracks().count(), mixer.master.get().level_db),
            (2, -7.0)
        );
        // The input stays in the session; its file may be back next time.
        assert!(
            mixer.saved().tracks[1]
                .input
                .is_file("/nowhere/at all.wav".as_ref())
        );
    }
}
