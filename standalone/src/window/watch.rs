//! Notices what changes without the user, so that the window is drawn then, and only then: devices,
//! loads, recordings, dropouts, and knobs that MIDI controllers turn. Sound wakes the window by
//! itself.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ondes_engine::panics::contain;
use ondes_engine::realtime::LoadStatus;
use ondes_player::parameter_values::ParameterValues;

use crate::audio_app::AudioApp;
use crate::devices::{AudioStatus, MidiStatus};
use crate::track_loader::PendingLoad;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// Looks between two at the figures that always move a little: load and dropouts.
const FIGURES_EVERY: usize = 8;
/// Change of the load that is worth a frame.
const LOAD_STEP: f32 = 0.05;

/// Thread that watches the app; it ends when this is dropped.
pub(super) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// State that the window shows.
#[derive(PartialEq)]
struct Seen {
    sound: AudioStatus,
    ports: MidiStatus,
    loading: Vec<PendingLoad>,
    /// Seconds of the running recording, recordings that are being completed, lost frames, error.
    recording: (Option<u64>, usize, u64, Option<String>),
    tracks: Vec<(usize, String, LoadStatus, Option<String>, ParameterValues)>,
}

impl Watch {
    /// Starts to watch; `wake` is called after each change.
    pub fn start(app: Arc<AudioApp>, wake: impl Fn() + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        let watch = move || {
            let (mut last, mut figures) = (Seen::new(&app), Figures::new(&app));
            for look in 1.. {
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                let now = Seen::new(&app);
                let mut has_changed = now != last;
                last = now;
                if look % FIGURES_EVERY == 0 {
                    let now = Figures::new(&app);
                    if now.dropouts != figures.dropouts
                        || (now.load - figures.load).abs() >= LOAD_STEP
                    {
                        (figures, has_changed) = (now, true);
                    }
                }
                if has_changed {
                    wake();
                }
            }
        };
        // Without the thread the window shows changes when it is drawn next.
        let thread = std::thread::Builder::new()
            .name("ondes-watch".into())
            .spawn(move || drop(contain(watch)))
            .ok();
        Self {
            stop: Some(stop),
            thread,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Panics were contained.
            drop(thread.join());
        }
    }
}

impl Seen {
    fn new(app: &AudioApp) -> Self {
        let sound = app.status();
        let recording = app.recording();
        let rate = if let AudioStatus::Playing(opened) = &sound {
            opened.sample_rate
        } else {
            48_000
        };
        let seconds = recording
            .recording
            .map(|frames| frames / u64::from(rate.max(1)));
        let mixer = app.mixer();
        let tracks = mixer.tracks().map(|(slot, track)| {
            let (status, error) = (track.instance.status(), track.error().map(str::to_owned));
            (
                slot,
                track.title(),
                status,
                error,
                track.parameters.values(),
            )
        });
        let tracks = tracks.collect();
        let recording = (
            seconds,
            recording.finishing,
            recording.dropped,
            recording.error,
        );
        Self {
            sound,
            ports: app.midi(),
            loading: app.loading(),
            recording,
            tracks,
        }
    }
}

/// Figures that always move a little.
struct Figures {
    dropouts: u64,
    /// Load of all models, 1 is the whole time of a block.
    load: f32,
}

impl Figures {
    fn new(app: &AudioApp) -> Self {
        let dropouts = app.dropouts();
        let mixer = app.mixer();
        let healths = mixer
            .tracks()
            .filter_map(|(_, track)| track.instance.session.health());
        Self {
            dropouts,
            load: healths.map(|health| health.load).sum(),
        }
    }
}
