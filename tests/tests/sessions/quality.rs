//! Models with smaller sizes: the selected size plays, or with `Auto` the largest that there is
//! time for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ondes_engine::pipeline::{Action, Playable, SessionStart};
use ondes_engine::realtime::{
    Driver, LoadError, LoadStatus, ModelFactory, Quality, Session, SessionController, Setup,
};
use ondes_tests::SAMPLE_RATE;
use ondes_tests::fake_model::{FakeModel, Host, Wave, load, steepest, wait_until};

use crate::exclusive;

const BLOCK: usize = 256;
const NAMES: [Option<&str>; 3] = [None, Some("middle"), Some("small")];
/// Output of each size; the levels tell them apart.
const WAVES: [Wave; 3] = [
    Wave {
        frequency: 0.0041,
        peak: 0.8,
    },
    Wave {
        frequency: 0.0041,
        peak: 0.5,
    },
    Wave {
        frequency: 0.0041,
        peak: 0.2,
    },
];

/// Model in three sizes. A block of the full one takes `block_us` microseconds, each smaller size
/// half of that.
#[derive(Clone)]
struct Sizes {
    fakes: Arc<Vec<FakeModel>>,
    place: usize,
}

impl Sizes {
    fn new(block_us: &Arc<AtomicU64>) -> Self {
        let fake = |(place, wave): (usize, Wave)| {
            let block_us = block_us.clone();
            FakeModel::new(wave).on_output(move |_, sound| {
                let begun = Instant::now();
                let share = sound.len() as f64 / BLOCK as f64 / f64::from(1 << place);
                let time = Duration::from_secs_f64(1e-6 * block_us.load(Relaxed) as f64 * share);
                while begun.elapsed() < time {}
            })
        };
        Self {
            fakes: Arc::new(WAVES.into_iter().enumerate().map(fake).collect()),
            place: 0,
        }
    }
}

impl ModelFactory for Sizes {
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        self.fakes[self.place].build(sample_rate, sessions)
    }

    fn sharing_key(&self) -> Option<String> {
        None
    }

    fn uses_audio_input(&self) -> bool {
        false
    }

    fn start(&self) -> SessionStart {
        SessionStart::default()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }

    fn smaller(&self) -> Option<Arc<dyn ModelFactory>> {
        let place = self.place + 1;
        (place < self.fakes.len()).then(|| {
            Arc::new(Self {
                place,
                ..self.clone()
            }) as Arc<dyn ModelFactory>
        })
    }

    fn variant(&self) -> Option<String> {
        NAMES[self.place].map(str::to_owned)
    }

    fn work(&self) -> f64 {
        1.0 / f64::from(1 << self.place)
    }
}

/// Host that plays in real time.
struct RealtimeHost {
    controller: SessionController,
    session: Session,
    output: Vec<f32>,
    begun: Instant,
}

impl RealtimeHost {
    fn new(driver: Driver, block_us: &Arc<AtomicU64>) -> Self {
        let controller = SessionController::new();
        controller.set_driver(driver);
        controller.set_quality(Quality::Auto);
        load(&controller, Sizes::new(block_us));
        wait_until("the model is loaded", || {
            controller.status() != LoadStatus::Loading
        });
        let setup = Setup {
            sample_rate: SAMPLE_RATE,
            max_block: BLOCK,
        };
        let session = controller.activate(setup).expect("a sound setup");
        Self {
            controller,
            session,
            output: Vec::new(),
            begun: Instant::now(),
        }
    }

    /// Plays until the size `name` plays alone.
    fn play_until(&mut self, name: Option<&str>) {
        let since = Instant::now();
        let mut settled = 0;
        while settled < 2 * SAMPLE_RATE as usize / BLOCK / 10 {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "{name:?} never plays"
            );
            let start = self.output.len();
            self.output.resize(start + BLOCK, f32::NAN);
            self.session
                .process(&[], &[], &mut [&mut self.output[start..]]);
            settled = if self.controller.variant().as_deref() == name {
                settled + 1
            } else {
                0
            };
            let sound = Duration::from_secs_f64(self.output.len() as f64 / f64::from(SAMPLE_RATE));
            match sound.checked_sub(self.begun.elapsed()) {
                Some(early) => std::thread::sleep(early),
                // Do not catch up after a dropout.
                None => {
                    self.begun = Instant::now()
                        .checked_sub(sound)
                        .expect("the clock has run so long")
                }
            }
        }
    }
}

/// Returns the steepest step of a cross-fade of 20 ms between two waves.
fn bound() -> f32 {
    WAVES[0].steepest()
        + 2.0 * WAVES[0].peak * std::f32::consts::FRAC_PI_2 / (0.02 * SAMPLE_RATE as f32)
}

#[test]
fn a_smaller_size_plays_under_load_and_the_full_one_returns() {
    let _exclusive = exclusive();
    let block_us = Arc::new(AtomicU64::new(0));
    let mut host = RealtimeHost::new(Driver::Inline, &block_us);
    host.play_until(None);
    // Longer than the block's 5.3 ms; half of it is still too long.
    block_us.store(12_000, Relaxed);
    host.play_until(NAMES[2]);
    block_us.store(0, Relaxed);
    host.play_until(None);
    assert!(
        steepest(&host.output) < bound(),
        "a click of {}",
        steepest(&host.output)
    );
    assert_eq!(
        host.controller.health().expect("it plays").latency_samples,
        0
    );
}

#[test]
fn a_late_worker_gets_a_smaller_size_with_the_same_latency() {
    let _exclusive = exclusive();
    let block_us = Arc::new(AtomicU64::new(0));
    let mut host = RealtimeHost::new(
        Driver::Worker {
            latency: Some(2 * BLOCK),
        },
        &block_us,
    );
    host.play_until(None);
    block_us.store(7_000, Relaxed);
    host.play_until(NAMES[1]);
    assert_eq!(
        host.controller.health().expect("it plays").latency_samples,
        2 * BLOCK
    );
}

#[test]
fn each_quality_plays_its_size_after_a_smooth_change() {
    let _exclusive = exclusive();
    let mut host = Host::new(Sizes::new(&Arc::default()), Driver::Inline, BLOCK);
    for (quality, place) in [
        (Quality::Light, 2),
        (Quality::Balanced, 1),
        (Quality::Full, 0),
        (Quality::Light, 2),
        // With time to spare, Auto is the full size.
        (Quality::Auto, 0),
    ] {
        host.controller.set_quality(quality);
        host.play_until("its size plays", |host| {
            let last = host.output.len().saturating_sub(BLOCK)..host.output.len();
            let wave = WAVES[place];
            host.output.len() > BLOCK
                && last
                    .clone()
                    .all(|number| host.output[number] == wave.at(number as u64))
        });
        assert_eq!(
            host.controller.variant().as_deref(),
            NAMES[place],
            "{quality:?}"
        );
    }
    assert!(
        steepest(&host.output) < bound(),
        "{}",
        steepest(&host.output)
    );
}

#[test]
fn offline_sessions_play_the_full_size() {
    let _exclusive = exclusive();
    let block_us = Arc::new(AtomicU64::new(12_000));
    let mut host = Host::new(Sizes::new(&block_us), Driver::Offline, BLOCK);
    host.controller.set_non_realtime(false);
    host.controller.set_quality(Quality::Auto);
    host.play(120);
    let full = |number: usize| WAVES[0].at(number as u64);
    assert!(
        host.output
            .iter()
            .enumerate()
            .all(|(number, sample)| *sample == full(number))
    );
}
