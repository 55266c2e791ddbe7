//! Test sound whose every sample identifies its position, and its readers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ondes::record::{Recorder, RecorderSetup, Tap};
use ondes_engine::media::Decoder;
use ondes_engine::random::{GOLDEN_GAMMA, mix64};
use tempfile::TempDir;

/// Sample rate, Hz.
pub const RATE: u32 = 48_000;

/// Reproducible random numbers.
pub struct Chance(pub u64);

impl Chance {
    /// Returns a number from 0 to below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        self.0 += 1;
        (mix(self.0) % below as u64) as usize
    }
}

fn mix(seed: u64) -> u64 {
    mix64(seed.wrapping_mul(GOLDEN_GAMMA))
}

/// Returns the sample of a tap's channel at a time: noise in −1 … 1, never 0.
pub fn sample(tap: usize, channel: usize, clock: u64) -> f32 {
    let bits = mix(clock << 16 | (tap as u64) << 8 | channel as u64) >> 40;
    (bits as f32 + 0.5) / (1 << 23) as f32 - 1.0
}

/// Returns a range of a tap's sound, interleaved.
pub fn sound(tap: usize, channels: usize, frames: std::ops::Range<u64>) -> Vec<f32> {
    frames
        .flat_map(|clock| (0..channels).map(move |channel| sample(tap, channel, clock)))
        .collect()
}

/// Pushes a block of that sound.
pub fn push(taps: &mut [Tap], index: usize, clock: u64, frames: usize) {
    let tap = &mut taps[index];
    let block: Vec<Vec<f32>> = (0..tap.channels())
        .map(|channel| {
            (clock..clock + frames as u64)
                .map(|clock| sample(index, channel, clock))
                .collect()
        })
        .collect();
    let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
    tap.push(clock, &block);
}

/// Creates a folder, a recorder whose rings hold a whole test (8 s), and its taps.
pub fn recorder(channels: &[usize], preroll_s: f64) -> (TempDir, Recorder, Vec<Tap>) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let (recorder, taps) = Recorder::new(&setup(channels, preroll_s)).expect("there is memory");
    (folder, recorder, taps)
}

/// Returns the setup of [`recorder`].
pub fn setup(channels: &[usize], preroll_s: f64) -> RecorderSetup {
    RecorderSetup {
        sample_rate: RATE,
        channels: channels.to_vec(),
        preroll_s,
        ring_s: 8.0,
    }
}

/// Reads a 32-bit float file, interleaved.
pub fn read_float(path: &Path) -> Vec<f32> {
    let mut reader = hound::WavReader::open(path).expect("a WAV");
    reader
        .samples::<f32>()
        .collect::<Result<_, _>>()
        .expect("whole samples")
}

/// Decodes a file of any format, interleaved.
pub fn decode(path: &Path) -> Vec<f32> {
    let mut decoder = Decoder::open(path).expect("a sound file");
    let (mut all, mut block) = (Vec::new(), Vec::new());
    while decoder.next(&mut block).expect("no damage") {
        all.extend(
            (0..block[0].len()).flat_map(|frame| block.iter().map(move |channel| channel[frame])),
        );
    }
    all
}

/// Waits for something on another thread, with a timeout.
pub fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !happened() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a helper test of this program in another process, through `sh` after a script.
pub fn child(script: &str, test: &str, folder: &Path) -> std::process::Command {
    let program: PathBuf = std::env::current_exe().expect("this program has a file");
    let mut command = std::process::Command::new("sh");
    let script = format!("{script} exec \"$0\" \"$@\"");
    command
        .args(["-c", &script])
        .arg(program)
        .args(["--ignored", "--exact", "--nocapture", test]);
    command.env(FOLDER, folder);
    command
}

const FOLDER: &str = "ONDES_TEST_FOLDER";

/// Returns the folder given to [`child`].
pub fn child_folder() -> PathBuf {
    std::env::var_os(FOLDER)
        .expect("it is started by another test")
        .into()
}
