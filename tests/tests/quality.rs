//! A model that holds smaller sizes of itself: the one that is chosen plays, or the one that there is time for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ondes_engine::pipeline::{Action, Playable, Start};
use ondes_engine::realtime::{Driver, Maker, Quality, Remote, Session, Setup, Status};
use ondes_tests::SAMPLE_RATE;
use ondes_tests::doubles::{Double, Host, Wave, load, steepest, wait_until};

const BLOCK: usize = 256;
const NAMES: [Option<&str>; 3] = [None, Some("middle"), Some("small")];
/// Each size plays a tone of its own, so that it can be told.
const WAVES: [Wave; 3] = [
    Wave { frequency: 0.0041, peak: 0.8 },
    Wave { frequency: 0.0041, peak: 0.5 },
    Wave { frequency: 0.0041, peak: 0.2 },
];

/// A model in three sizes; a block of the whole takes so many microseconds, each smaller size half of that.
#[derive(Clone)]
struct Sizes {
    doubles: Arc<Vec<Double>>,
    place: usize,
}

impl Sizes {
    fn new(block_us: &Arc<AtomicU64>) -> Self {
        let double = |(place, wave): (usize, Wave)| {
            let block_us = block_us.clone();
            Double::new(wave).at_sound(move |_, sound| {
                let begun = Instant::now();
                let share = sound.len() as f64 / BLOCK as f64 / f64::from(1 << place);
                let time = Duration::from_secs_f64(1e-6 * block_us.load(Relaxed) as f64 * share);
                while begun.elapsed() < time {}
            })
        };
        Self { doubles: Arc::new(WAVES.into_iter().enumerate().map(double).collect()), place: 0 }
    }
}

impl Maker for Sizes {
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        self.doubles[self.place].make(sample_rate, seats)
    }

    fn name(&self) -> Option<String> {
        None
    }

    fn hears(&self) -> bool {
        false
    }

    fn start(&self) -> Start {
        Start::default()
    }

    fn hardest(&self) -> Vec<Action> {
        Vec::new()
    }

    fn smaller(&self) -> Option<Arc<dyn Maker>> {
        let place = self.place + 1;
        (place < self.doubles.len()).then(|| Arc::new(Self { place, ..self.clone() }) as Arc<dyn Maker>)
    }

    fn variant(&self) -> Option<String> {
        NAMES[self.place].map(str::to_owned)
    }

    fn work(&self) -> f64 {
        1.0 / f64::from(1 << self.place)
    }

    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        None
    }
}

/// A host that plays as time goes by.
struct Live {
    remote: Remote,
    session: Session,
    heard: Vec<f32>,
    begun: Instant,
}

impl Live {
    fn new(driver: Driver, block_us: &Arc<AtomicU64>) -> Self {
        let remote = Remote::new();
        remote.set_driver(driver);
        remote.set_quality(Quality::Auto);
        load(&remote, Sizes::new(block_us));
        wait_until("the model is loaded", || remote.status() != Status::Loading);
        let setup = Setup { sample_rate: SAMPLE_RATE, max_block: BLOCK };
        let session = remote.activate(setup).expect("a sound setup");
        Self { remote, session, heard: Vec::new(), begun: Instant::now() }
    }

    /// Plays until a size is heard, and on until nothing of another one is.
    fn play_until(&mut self, name: Option<&str>) {
        let since = Instant::now();
        let mut settled = 0;
        while settled < 2 * SAMPLE_RATE as usize / BLOCK / 10 {
            assert!(since.elapsed() < Duration::from_secs(60), "{name:?} is never heard");
            let start = self.heard.len();
            self.heard.resize(start + BLOCK, f32::NAN);
            self.session.process(&[], &[], &mut [&mut self.heard[start..]]);
            settled = if self.remote.variant().as_deref() == name { settled + 1 } else { 0 };
            let sound = Duration::from_secs_f64(self.heard.len() as f64 / f64::from(SAMPLE_RATE));
            match sound.checked_sub(self.begun.elapsed()) {
                Some(early) => std::thread::sleep(early),
                // What was missed is missed.
                None => self.begun = Instant::now().checked_sub(sound).expect("the clock has run so long"),
            }
        }
    }
}

/// The steepest step where one wave turns into another within a cross-fade of 20 ms.
fn bound() -> f32 {
    WAVES[0].steepest() + 2.0 * WAVES[0].peak * std::f32::consts::FRAC_PI_2 / (0.02 * SAMPLE_RATE as f32)
}

#[test]
fn under_load_a_smaller_size_takes_over_and_the_whole_comes_back() {
    let block_us = Arc::new(AtomicU64::new(0));
    let mut live = Live::new(Driver::Inline, &block_us);
    live.play_until(None);
    // Longer than the block's 5.3 ms, and half of that is still too much.
    block_us.store(12_000, Relaxed);
    live.play_until(NAMES[2]);
    block_us.store(0, Relaxed);
    live.play_until(None);
    assert!(steepest(&live.heard) < bound(), "nobody hears a click: {}", steepest(&live.heard));
    assert_eq!(live.remote.health().expect("it plays").latency_samples, 0);
}

#[test]
fn a_worker_that_is_late_is_given_a_smaller_size_as_late_as_the_whole() {
    let block_us = Arc::new(AtomicU64::new(0));
    let mut live = Live::new(Driver::Worker { latency: Some(2 * BLOCK) }, &block_us);
    live.play_until(None);
    block_us.store(7_000, Relaxed);
    live.play_until(NAMES[1]);
    assert_eq!(live.remote.health().expect("it plays").latency_samples, 2 * BLOCK);
}

#[test]
fn each_quality_plays_its_size_and_nobody_hears_how() {
    let mut host = Host::new(Sizes::new(&Arc::default()), Driver::Inline, BLOCK);
    for (quality, place) in [
        (Quality::Light, 2),
        (Quality::Balanced, 1),
        (Quality::Full, 0),
        (Quality::Light, 2),
        // Where there is time it is the whole.
        (Quality::Auto, 0),
    ] {
        host.remote.set_quality(quality);
        host.play_until("its size is heard", |host| {
            let last = host.heard.len().saturating_sub(BLOCK)..host.heard.len();
            let wave = WAVES[place];
            host.heard.len() > BLOCK && last.clone().all(|number| host.heard[number] == wave.at(number as u64))
        });
        assert_eq!(host.remote.variant().as_deref(), NAMES[place], "{quality:?}");
    }
    assert!(steepest(&host.heard) < bound(), "{}", steepest(&host.heard));
}

#[test]
fn what_is_made_without_a_clock_is_made_whole() {
    let block_us = Arc::new(AtomicU64::new(12_000));
    let mut host = Host::new(Sizes::new(&block_us), Driver::Offline, BLOCK);
    host.remote.set_patient(false);
    host.remote.set_quality(Quality::Auto);
    host.play(120);
    let whole = |number: usize| WAVES[0].at(number as u64);
    assert!(host.heard.iter().enumerate().all(|(number, sample)| *sample == whole(number)));
}
