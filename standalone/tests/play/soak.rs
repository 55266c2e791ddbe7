//! Eight tracks with everything at once, as fast as it goes: models and sessions change, devices
//! come and go at other rates, the disk fills up, floods of MIDI and broken input arrive, and the
//! process stands still now and then.
//!
//! `ONDES_SOAK_MINUTES` is the length in minutes of sound, by default two, and `ONDES_SOAK_SEED`
//! selects the sequence of actions. `cargo xtask soak` plays an hour.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ondes::io::{Callback, MidiMessage};
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::rack::{Mixer, Rack, SessionFile, TRACKS};
use ondes::record::{Recorder, RecorderSetup, RecordingFormat};
use ondes_engine::dsp::limiter::CEILING;
use ondes_engine::media::Decoder;
use ondes_engine::realtime::Setup;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::parameter;
use ondes_player::parameter_source::ParameterSource as _;
use ondes_player::product::Product;
use ondes_tests::documentation::checkout;
use ondes_tests::seeded_rng;
use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus as Random;

use crate::recording::{child, child_folder, read_float};

/// Number of tracks that play.
const PLAYING: usize = 8;
/// Limit on file sizes that simulates a full disk, in units of 512 bytes: half a minute of stereo.
const DISK_BLOCKS: usize = 20_000;
/// Growth of memory after the first half that still counts as flat, bytes.
const FLAT: usize = 64 << 20;
/// Longest time without a block of sound.
const HANG: Duration = Duration::from_secs(180);
/// Length of the pre-roll, seconds.
const PREROLL_S: f64 = 2.0;

#[test]
fn eight_tracks_survive_everything_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // With a fixed threshold glibc gives large buffers back once they are freed; otherwise it keeps
    // ever more of them.
    let script =
        format!("trap '' XFSZ; ulimit -f {DISK_BLOCKS}; export MALLOC_MMAP_THRESHOLD_=131072;");
    let mut soak = child(&script, "soak::plays_eight_tracks", folder.path())
        .spawn()
        .unwrap();
    let mut since = Instant::now();
    let status = loop {
        if let Some(status) = soak.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
        // All threads stand still, as after a suspension of the machine.
        if since.elapsed() > Duration::from_secs(7) {
            let signal = |name: &str| {
                Command::new("kill")
                    .args([name, &soak.id().to_string()])
                    .status()
            };
            // It may have ended meanwhile.
            drop(signal("-STOP"));
            std::thread::sleep(Duration::from_millis(300));
            drop(signal("-CONT"));
            since = Instant::now();
        }
    };
    assert!(status.success(), "{status}");
}

static PANICS: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicU64 = AtomicU64::new(0);

#[test]
#[ignore = "is run, with a small disk, by another test"]
fn plays_eight_tracks() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|value| value.parse::<f64>().unwrap())
    };
    let seed = number("ONDES_SOAK_SEED").unwrap_or(1.0) as u64;
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Relaxed);
        before(panic);
    }));
    std::thread::spawn(end_if_it_hangs);
    let mut soak = Soak::new(&child_folder(), seed);
    soak.play(60.0 * number("ONDES_SOAK_MINUTES").unwrap_or(2.0));
    soak.report(seed);
    assert_eq!(PANICS.load(Relaxed), 0, "a thread has panicked");
}

fn end_if_it_hangs() {
    let mut last = 0;
    loop {
        std::thread::sleep(HANG);
        let blocks = BLOCKS.load(Relaxed);
        if blocks == last {
            eprintln!("no sound for {HANG:?}");
            std::process::abort();
        }
        last = blocks;
    }
}

/// Recording under way.
struct Take {
    /// File of the master, then those of the tracks.
    files: Vec<PathBuf>,
    format: RecordingFormat,
    /// Frames of pre-roll.
    before: usize,
    /// Samples that the master has played since the start, interleaved.
    master: Vec<f32>,
}

/// Open devices.
struct Opened {
    rack: Rack,
    recorder: Recorder,
    setup: Setup,
    frames: u64,
}

#[derive(Default, Debug)]
struct Counts {
    openings: usize,
    takes: usize,
    full_disks: usize,
    models: usize,
    sessions: usize,
    messages: usize,
}

struct Soak {
    random: Random,
    folder: PathBuf,
    mixer: Mixer,
    opened: Option<Opened>,
    take: Option<Take>,
    counts: Counts,
    /// Resident memory and number of threads whenever no device was open.
    quiet: Vec<(usize, usize)>,
}

impl Soak {
    fn new(folder: &Path, seed: u64) -> Self {
        crate::program::tone(folder, 0.0, 3.0);
        let mut mixer = Mixer::new(|| {});
        mixer.set_list = BUNDLED
            .iter()
            .map(|bundled| FileReference::to(&bundled.model(), None))
            .collect();
        let (random, folder) = (seeded_rng(seed), folder.to_owned());
        let mut soak = Self {
            random,
            folder,
            mixer,
            opened: None,
            take: None,
            counts: Counts::default(),
            quiet: Vec::new(),
        };
        soak.open();
        soak
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.random.random_range(0..number) == 0
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())]
    }

    fn play(&mut self, seconds: f64) {
        let mut played = 0.0;
        let mut next_action = 0.0;
        while played < seconds {
            if played > next_action {
                self.act();
                next_action = played + self.random.random_range(0.0..0.4);
            }
            played += self.block();
        }
        self.close();
    }

    /// Plays a block; returns its length in seconds.
    fn block(&mut self) -> f64 {
        let level = if self.one_in(200) {
            self.choose(&[100.0, 3e38, f32::NAN, f32::INFINITY])
        } else {
            0.3
        };
        let (setup, messages) = (self.opened.as_ref().unwrap().setup, self.messages());
        let frames = if self.one_in(4) {
            self.random.random_range(1..=setup.max_block)
        } else {
            setup.max_block
        };
        let input: Vec<f32> = (0..frames)
            .map(|_| level * self.random.random_range(-1.0..1.0))
            .collect();
        let mut output = [vec![f32::NAN; frames], vec![f32::NAN; frames]];
        let opened = self.opened.as_mut().unwrap();
        let count = messages.len();
        for (index, bytes) in messages.iter().enumerate() {
            if let Some(message) = MidiMessage::new(Instant::now(), bytes) {
                opened.rack.receive_midi(index * frames / count, &message);
            }
        }
        self.counts.messages += count;
        let [left, right] = &mut output;
        opened.rack.process(&[&input, &input], &mut [left, right]);
        opened.frames += frames as u64;
        BLOCKS.fetch_add(1, Relaxed);
        let [left, right] = &output;
        for sample in left.iter().chain(right) {
            assert!(sample.abs() <= 1.0001 * CEILING, "{sample} is played");
        }
        if let Some(take) = &mut self.take {
            take.master.extend(
                left.iter()
                    .zip(right)
                    .flat_map(|(left, right)| [*left, *right]),
            );
            // A disk keeps up with real time, not with this.
            let due = (take.before + take.master.len() / 2)
                .saturating_sub(setup.sample_rate as usize) as u64;
            while opened
                .recorder
                .status()
                .recording
                .is_some_and(|frames| frames < due)
            {
                std::thread::sleep(Duration::from_micros(200));
            }
            if opened.recorder.status().recording.is_none() {
                self.end_take();
            }
        }
        frames as f64 / f64::from(setup.sample_rate)
    }

    /// Returns the MIDI messages of a block: few, or more than fit.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let count = if self.one_in(300) {
            3_000
        } else {
            self.random.random_range(0..3)
        };
        let random = &mut self.random;
        let message = |_| {
            let (channel, a, b) = (
                random.random_range(0..16_u8),
                random.random_range(0..128),
                random.random_range(0..128),
            );
            match random.random_range(0..24) {
                0..6 => vec![0x90 | channel, a, b],
                6..16 => vec![0x80 | channel, a, b],
                16 => vec![0xB0 | channel, a, b],
                17 => vec![0xE0 | channel, a, b],
                18 => vec![0xD0 | channel, a],
                // The clock of another sequencer, which starts, stops and jumps.
                19 => vec![0xF8],
                20 => vec![[0xFA, 0xFB, 0xFC][usize::from(a) % 3]],
                21 => vec![0xF2, a, b],
                22 => vec![0xC0 | channel, a % 8],
                _ => (0..random.random_range(1..9))
                    .map(|_| random.random())
                    .collect(),
            }
        };
        (0..count).map(message).collect()
    }

    fn act(&mut self) {
        let slot = self.random.random_range(0..PLAYING);
        match self.random.random_range(0..40) {
            0..6 => self.swap_model(slot),
            6 => self.save_and_restore(),
            7 if self.one_in(3) => {
                self.close();
                self.open();
            }
            8..12 if self.take.is_none() => self.start_take(),
            // Long enough, now and then, to fill the disk.
            8..12 if self.one_in(12) => self.end_take(),
            12 => self.save_preroll(),
            13 => {
                self.mixer.remove(slot);
                self.fill_tracks();
            }
            14 => self.route(slot),
            15 => self.set_patience(slot),
            16..24 => self.set_fader(slot),
            24..34 => self.set_parameter(slot),
            _ => self.mixer.tick(),
        }
    }

    fn swap_model(&mut self, slot: usize) {
        self.counts.models += 1;
        let bundled = BUNDLED[self.random.random_range(0..BUNDLED.len())].model();
        let mut reference = FileReference::to(&bundled, None);
        if self.one_in(3) {
            // A file that is written, whole or not, while others read it.
            let fuzz = BUNDLED
                .iter()
                .find(|bundled| bundled.name == "Fuzz")
                .unwrap();
            let bytes = std::fs::read(checkout().join("assets/models/fuzz.ondes")).unwrap();
            let written = if self.one_in(2) {
                bytes.len()
            } else {
                self.random.random_range(0..bytes.len())
            };
            let path = self.folder.join("rewritten.ondes");
            std::fs::write(&path, &bytes[..written]).unwrap();
            reference = FileReference {
                path: Some(path),
                ..FileReference::to(&fuzz.model(), None)
            };
        } else if self.one_in(10) {
            reference.hash = "0".repeat(64);
        }
        self.mixer.request_model(slot, reference);
    }

    fn save_and_restore(&mut self) {
        self.counts.sessions += 1;
        let path = self.folder.join("a.ondes-session");
        self.mixer.saved().write(&path).unwrap();
        let session = if self.one_in(3) {
            checkout().join("assets/demo/harbour-at-dusk.ondes-session")
        } else {
            path
        };
        let problems = self.mixer.restore(&SessionFile::read(&session).unwrap());
        assert!(
            problems.iter().all(|problem| problem.lines().count() == 1),
            "{problems:?}"
        );
        self.fill_tracks();
    }

    /// Adds tracks until eight play.
    fn fill_tracks(&mut self) {
        while self.mixer.tracks().count() < PLAYING {
            let product = if self.one_in(2) {
                Product::Instrument
            } else {
                Product::Effect
            };
            self.mixer.add(product).unwrap();
        }
    }

    fn route(&mut self, slot: usize) {
        let input = match self.random.random_range(0..4) {
            0 => TrackInput::Nothing,
            1 => TrackInput::Channels {
                first: self.random.random_range(0..4),
                count: self.random.random_range(1..3),
            },
            _ => TrackInput::File {
                path: self.folder.join("tone.wav"),
                looped: true,
            },
        };
        self.mixer.set_input(slot, input).unwrap();
        self.mixer
            .set_midi_channels(slot, self.random.random())
            .unwrap();
    }

    /// Lets a model wait for its worker, or miss blocks: this plays faster than a worker computes.
    fn set_patience(&mut self, slot: usize) {
        let is_patient = self.one_in(2);
        if let Some(track) = self.mixer.track(slot) {
            track.instance.set_non_realtime(is_patient);
        }
    }

    fn set_fader(&mut self, slot: usize) {
        let level_db = self.choose(&[-60.0, -20.0, -6.0, 0.0, 12.0, 1e9, f32::NAN]);
        let (mute, solo) = (self.one_in(8), self.one_in(16));
        let settings = FaderSettings {
            level_db,
            pan: self.random.random_range(-1.0..1.0),
            mute,
            solo,
        };
        if let Some(track) = self.mixer.track(slot) {
            track.fader.set(settings);
        }
    }

    fn set_parameter(&mut self, slot: usize) {
        let all: Vec<_> = parameter::all().collect();
        let (id, parameter) = all[self.random.random_range(0..all.len())];
        let value = parameter.denormalize(self.random.random_range(0.0..=1.0));
        if let Some(track) = self.mixer.track(slot) {
            track.parameters.set_value(id, value);
            assert!(track.parameters.value(id).is_none_or(f32::is_finite));
        }
    }

    fn save_preroll(&mut self) {
        if self.take.is_some() {
            // Its error would be forgotten.
            return;
        }
        let path = self
            .folder
            .join(format!("preroll-{}.flac", BLOCKS.load(Relaxed)));
        // Without any sound yet it is refused.
        drop(
            self.opened
                .as_mut()
                .unwrap()
                .recorder
                .save_preroll([(0, path)], RecordingFormat::Flac),
        );
    }

    fn start_take(&mut self) {
        let format = self.choose(&[RecordingFormat::Float32, RecordingFormat::Flac]);
        let with_preroll = self.one_in(2);
        let opened = self.opened.as_mut().unwrap();
        let before = if with_preroll {
            (PREROLL_S * f64::from(opened.setup.sample_rate)) as u64
        } else {
            0
        };
        let ending = if format == RecordingFormat::Flac {
            "flac"
        } else {
            "wav"
        };
        let name = |tap: usize| {
            self.folder
                .join(format!("{}-{tap}.{ending}", self.counts.takes))
        };
        let files: Vec<PathBuf> = (0..=PLAYING).map(name).collect();
        self.counts.takes += 1;
        opened
            .recorder
            .start(files.iter().cloned().enumerate(), format, with_preroll)
            .unwrap();
        self.take = Some(Take {
            files,
            format,
            before: before.min(opened.frames) as usize,
            master: Vec::new(),
        });
    }

    /// Ends a recording and checks that its files are whole, or say that the disk is full.
    fn end_take(&mut self) {
        let Some(take) = self.take.take() else { return };
        let recorder = &mut self.opened.as_mut().unwrap().recorder;
        recorder.stop();
        let status = recorder.wait();
        assert_eq!(status.dropped, 0, "sound is missing");
        self.counts.full_disks += usize::from(status.error.is_some());
        take.check(status.error.as_deref());
    }

    fn open(&mut self) {
        self.counts.openings += 1;
        let sample_rate = self.choose(&[44_100, 48_000, 48_000, 96_000]);
        let setup = Setup {
            sample_rate,
            max_block: self.choose(&[32, 128, 480, 512, 2_048]),
        };
        let recorder = RecorderSetup {
            sample_rate,
            channels: vec![2; TRACKS + 1],
            preroll_s: PREROLL_S,
            ring_s: 4.0,
        };
        let (recorder, taps) = Recorder::new(&recorder).unwrap();
        let rack = self.mixer.open(setup, None, taps).unwrap();
        self.opened = Some(Opened {
            rack,
            recorder,
            setup,
            frames: 0,
        });
        self.fill_tracks();
    }

    /// Closes the devices; a recording ends with what was played.
    fn close(&mut self) {
        self.end_take();
        self.opened = None;
        self.remove_takes();
        if let Some(now) = resident_bytes().zip(threads()) {
            self.quiet.push(now);
        }
    }

    fn remove_takes(&self) {
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            let is_input = path.ends_with("tone.wav");
            if !is_input
                && path
                    .extension()
                    .is_some_and(|extension| extension == "wav" || extension == "flac")
            {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    /// Asserts that memory and threads are flat in the second half.
    fn report(&self, seed: u64) {
        println!("seed {seed}: {:?}", self.counts);
        let (first, second) = self.quiet.split_at(self.quiet.len() / 2);
        let most = |part: &[(usize, usize)]| {
            part.iter()
                .fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)))
        };
        let ((early, early_threads), (late, late_threads)) = (most(first), most(second));
        println!(
            "memory {} MiB, then {} MiB; threads {early_threads}, then {late_threads}",
            early >> 20,
            late >> 20
        );
        if !first.is_empty() {
            assert!(late < early + FLAT, "memory grows");
            assert!(late_threads <= early_threads + 2, "threads are left over");
        }
    }
}

impl Take {
    fn check(self, error: Option<&str>) {
        if let Some(error) = error {
            assert!(
                error.lines().count() == 1 && error.contains("cannot be written"),
                "{error}"
            );
        }
        if self.before == 0 && self.master.is_empty() {
            return;
        }
        let mut lengths = Vec::new();
        for (index, path) in self.files.iter().enumerate() {
            let (mut decoder, mut block) = (Decoder::open(path).unwrap(), Vec::new());
            let mut frames = 0;
            while decoder.next(&mut block).unwrap() {
                for (frame, (&left, &right)) in block[0].iter().zip(&block[1]).enumerate() {
                    let played = (frames + frame)
                        .checked_sub(self.before)
                        .map(|frame| &self.master[2 * frame..][..2]);
                    if let (0, RecordingFormat::Float32, Some(played)) =
                        (index, self.format, played)
                    {
                        assert!([left, right] == *played, "another sound is recorded");
                    }
                }
                frames += block[0].len();
            }
            // A broken input may be louder than what the decoder accepts.
            let is_valid = self.format != RecordingFormat::Float32
                || read_float(path).iter().all(|sample| sample.is_finite());
            assert!(is_valid, "{} holds NaN", path.display());
            lengths.push(frames);
        }
        if error.is_none() {
            let expected = self.before + self.master.len() / 2;
            assert!(
                lengths.iter().all(|&frames| frames == expected),
                "{lengths:?} frames instead of {expected}"
            );
        }
    }
}

/// Returns the resident memory of this process in bytes.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * pages.split(' ').nth(1)?.parse::<usize>().ok()?)
}

/// Returns the number of threads of this process.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}
