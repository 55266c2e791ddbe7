//! Meters, latest samples and sounding notes, written by the audio thread and shown in a window.
//! Lock-free on both sides.

use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use crossbeam_queue::ArrayQueue;
use ondes_engine::dsp::level::{amplitude_to_db, peak};
use ondes_engine::instrument::{EventKind, controller};

/// Samples kept of each signal.
const HISTORY: usize = 1 << 14;
/// Capacity of the queue of notes from the window's keyboard.
const KEYS: usize = 256;
/// Channels metered of each signal.
const CHANNELS: usize = 2;
/// Level of one channel since it was last read; -∞ for silence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterLevel {
    /// Largest sample, dB re full scale.
    pub peak_db: f32,
    /// Mean power, dB re full scale.
    pub rms_db: f32,
}

/// Shared state of the audio thread and a window. Only notes are recorded while no window is open.
pub struct Monitor {
    wake: Box<dyn Fn() + Send + Sync>,
    window_open: AtomicBool,
    panic: AtomicBool,
    /// Notes from the window's keyboard, for the audio thread.
    keys: ArrayQueue<EventKind>,
    rate_hz: AtomicU32,
    /// Samples recorded so far.
    recorded: AtomicUsize,
    /// Peak above which a block wakes the window, as bits of `f32`; infinite while it is awake.
    wakes_above: AtomicU32,
    input: SignalMonitor,
    output: SignalMonitor,
    /// `[key]`: velocity of a sounding note, as bits of `f32`; 0 for none.
    notes: [AtomicU32; 128],
}

/// Meters and latest samples of the input or the output.
struct SignalMonitor {
    channels: AtomicUsize,
    /// Largest sample since the last read, as bits of `f32`, which sort like the numbers as none is
    /// negative.
    peaks: [AtomicU32; CHANNELS],
    /// Energy since the last read, as bits of `f32` in the upper half, and the number of samples in
    /// the lower half.
    energies: [AtomicU64; CHANNELS],
    /// Latest samples, averaged over the channels, as bits of `f32`.
    ring: Box<[AtomicU32]>,
}

impl Default for SignalMonitor {
    fn default() -> Self {
        Self {
            channels: AtomicUsize::new(0),
            peaks: Default::default(),
            energies: Default::default(),
            ring: (0..HISTORY).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Monitor {
    /// Creates a monitor. `wake` wakes a window that sleeps because nothing sounds; the audio
    /// thread calls it, so it must be wait-free.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            wake: Box::new(wake),
            window_open: AtomicBool::new(false),
            panic: AtomicBool::new(false),
            keys: ArrayQueue::new(KEYS),
            rate_hz: AtomicU32::new(0),
            recorded: AtomicUsize::new(0),
            wakes_above: AtomicU32::new(0.0_f32.to_bits()),
            input: SignalMonitor::default(),
            output: SignalMonitor::default(),
            notes: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

/// For the audio thread: wait-free, except for retries while a window reads the meters.
impl Monitor {
    /// Starts playback at a rate in Hz.
    pub fn begin(&self, sample_rate_hz: u32) {
        self.rate_hz.store(sample_rate_hz, Relaxed);
        self.clear_notes();
    }

    /// Clears all notes.
    pub fn clear_notes(&self) {
        self.notes.iter().for_each(|note| note.store(0, Relaxed));
        (self.wake)();
    }

    /// Returns whether silence was requested since the last call.
    pub fn take_panic(&self) -> bool {
        // Checked with a load first: most blocks need not write.
        self.panic.load(Relaxed) && self.panic.swap(false, Relaxed)
    }

    /// Returns the next event from the window's keyboard.
    pub fn next_key(&self) -> Option<EventKind> {
        self.keys.pop()
    }

    /// Tracks the notes that sound.
    pub fn handle_event(&self, kind: &EventKind) {
        match kind.without_id().0 {
            EventKind::NoteOn { key, velocity, .. } => self.note(key, velocity.max(0.0)),
            EventKind::NoteOff { key, .. } => self.note(key, 0.0),
            EventKind::SystemReset
            | EventKind::Controller {
                number: controller::ALL_NOTES_OFF.. | controller::ALL_SOUND_OFF,
                ..
            } => {
                self.clear_notes();
            }
            _ => {}
        }
    }

    fn note(&self, key: u8, velocity: f32) {
        if let Some(note) = self.notes.get(usize::from(key)) {
            note.store(velocity.to_bits(), Relaxed);
            (self.wake)();
        }
    }

    /// Records a block: the model's input and the output. `[channel][frame]`, all of one length.
    pub fn record(&self, input: &[&[f32]], output: &[&mut [f32]]) {
        if !self.window_open.load(Relaxed) {
            return;
        }
        let recorded = self.recorded.load(Relaxed);
        let frames = output.first().map_or(0, |channel| channel.len());
        let peak = self
            .input
            .record(recorded, frames, input)
            .max(self.output.record(recorded, frames, output));
        self.recorded.store(recorded.wrapping_add(frames), Release);
        // A window that is awake repaints by itself.
        if peak > f32::from_bits(self.wakes_above.load(Relaxed)) {
            self.wakes_above.store(f32::INFINITY.to_bits(), Relaxed);
            (self.wake)();
        }
    }
}

impl SignalMonitor {
    /// Records a block; returns its largest sample.
    fn record<C: AsRef<[f32]>>(&self, recorded: usize, frames: usize, channels: &[C]) -> f32 {
        let channels = &channels[..channels.len().min(CHANNELS)];
        self.channels.store(channels.len(), Relaxed);
        let mut largest = 0.0_f32;
        for (channel, (highest, energy)) in
            channels.iter().zip(self.peaks.iter().zip(&self.energies))
        {
            let samples = channel.as_ref();
            let top = peak(samples);
            highest.fetch_max(top.to_bits(), Relaxed);
            largest = largest.max(top);
            let more: f32 = samples.iter().map(|sample| sample * sample).sum();
            let add = |packed| {
                let (sum, count) = unpack(packed);
                Some(pack(sum + more, count.saturating_add(samples.len() as u32)))
            };
            let _ = energy.fetch_update(Relaxed, Relaxed, add);
        }
        let share = 1.0 / channels.len().max(1) as f32;
        for frame in 0..frames {
            let sum: f32 = channels
                .iter()
                .filter_map(|channel| channel.as_ref().get(frame))
                .sum();
            self.ring[recorded.wrapping_add(frame) % HISTORY]
                .store((share * sum).to_bits(), Relaxed);
        }
        largest
    }

    fn levels(&self, levels: &mut Vec<MeterLevel>) {
        let one = |(peak, energy): (&AtomicU32, &AtomicU64)| {
            let (sum, count) = unpack(energy.swap(0, Relaxed));
            let peak_db = amplitude_to_db(f32::from_bits(peak.swap(0, Relaxed)));
            MeterLevel {
                peak_db,
                rms_db: 10.0 * (sum / count.max(1) as f32).log10(),
            }
        };
        levels.clear();
        levels.extend(
            self.peaks
                .iter()
                .zip(&self.energies)
                .take(self.channels.load(Relaxed))
                .map(one),
        );
    }

    fn wave(&self, recorded: usize, wave: &mut [f32]) {
        let start = recorded.wrapping_sub(wave.len());
        for (frame, sample) in wave.iter_mut().enumerate() {
            *sample = f32::from_bits(self.ring[start.wrapping_add(frame) % HISTORY].load(Relaxed));
        }
    }
}

fn pack(sum: f32, count: u32) -> u64 {
    u64::from(sum.to_bits()) << 32 | u64::from(count)
}

fn unpack(packed: u64) -> (f32, u32) {
    (f32::from_bits((packed >> 32) as u32), packed as u32)
}

/// For the window.
impl Monitor {
    /// Starts or stops recording, as a window opens or closes.
    pub fn set_open(&self, open: bool) {
        if open {
            // Discards what was recorded for an earlier window.
            for side in [&self.input, &self.output] {
                side.levels(&mut Vec::new());
                side.ring.iter().for_each(|sample| sample.store(0, Relaxed));
            }
        }
        self.window_open.store(open, Relaxed);
    }

    /// Asks to be woken by the next block with a sample above `peak`.
    pub fn wake_on_sound(&self, peak: f32) {
        self.wakes_above.store(peak.to_bits(), Relaxed);
    }

    /// Queues an event from the window's keyboard. If nobody takes it, the oldest is dropped.
    pub fn push_key(&self, kind: EventKind) {
        self.keys.force_push(kind);
    }

    /// Requests silence at once.
    pub fn request_panic(&self) {
        self.panic.store(true, Relaxed);
    }

    /// Returns the host's rate in Hz; 0 before playback.
    #[must_use]
    pub fn rate_hz(&self) -> f32 {
        self.rate_hz.load(Relaxed) as f32
    }

    /// Returns the number of samples recorded so far.
    #[must_use]
    pub fn recorded_samples(&self) -> usize {
        self.recorded.load(Acquire)
    }

    /// Returns keys and velocities of the sounding notes.
    pub fn notes(&self) -> impl Iterator<Item = (u8, f32)> {
        let velocity = |note: &AtomicU32| f32::from_bits(note.load(Relaxed));
        (0..)
            .zip(&self.notes)
            .map(move |(key, note)| (key, velocity(note)))
            .filter(|(_, velocity)| *velocity > 0.0)
    }

    /// Reads the levels of input and output since the last call.
    pub fn levels(&self, [input, output]: [&mut Vec<MeterLevel>; 2]) {
        self.input.levels(input);
        self.output.levels(output);
    }

    /// Copies the latest samples of input and output; both end at the same time.
    pub fn waves(&self, [input, output]: [&mut [f32]; 2]) {
        let recorded = self.recorded_samples();
        self.input.wave(recorded, input);
        self.output.wave(recorded, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_only_while_a_window_is_open() {
        let monitor = Monitor::new(|| ());
        let (left, right) = ([0.5; 64], [-0.25; 64]);
        let mut outputs = [[0.1; 64]];
        let [output] = &mut outputs;
        monitor.record(&[&left, &right], &[output]);
        assert_eq!(monitor.recorded_samples(), 0);
        monitor.set_open(true);
        for _ in 0..3 {
            monitor.record(&[&left, &right], &[output]);
        }
        let (mut input, mut output) = (Vec::new(), Vec::new());
        monitor.levels([&mut input, &mut output]);
        assert_eq!((input.len(), output.len()), (2, 1));
        assert!(
            (input[0].peak_db + 6.02).abs() < 0.01 && (input[1].rms_db + 12.04).abs() < 0.01,
            "{input:?}"
        );
        monitor.levels([&mut input, &mut output]);
        assert_eq!(input[0].peak_db, f32::NEG_INFINITY);
        let mut waves = [[0.0; 256]; 2];
        let [first, second] = &mut waves;
        monitor.waves([first, second]);
        assert_eq!(
            (waves[0][63], waves[0][64], waves[1][255]),
            (0.0, 0.125, 0.1)
        );
    }

    #[test]
    fn a_block_louder_than_asked_for_wakes_the_window_once() {
        let woken = std::sync::Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let monitor = Monitor::new(move || {
            counter.fetch_add(1, Relaxed);
        });
        monitor.set_open(true);
        let blocks = |monitor: &Monitor, sample: f32| {
            for _ in 0..3 {
                monitor.record(&[&[0.0; 8]], &[&mut [sample; 8]]);
            }
            woken.load(Relaxed)
        };
        monitor.wake_on_sound(0.01);
        assert_eq!(
            [
                blocks(&monitor, 0.009),
                blocks(&monitor, 0.02),
                blocks(&monitor, 0.5)
            ],
            [0, 1, 1]
        );
        monitor.wake_on_sound(0.0);
        assert_eq!([blocks(&monitor, 0.0), blocks(&monitor, 1e-9)], [1, 2]);
    }

    #[test]
    fn notes_come_and_go() {
        let monitor = Monitor::new(|| ());
        for key in [60, 64, 200] {
            monitor.handle_event(&EventKind::NoteOn {
                channel: 0,
                key,
                velocity: 0.5,
            });
        }
        monitor.handle_event(&EventKind::NoteOff {
            channel: 0,
            key: 64,
            velocity: 0.5,
        });
        assert_eq!(monitor.notes().collect::<Vec<_>>(), [(60, 0.5)]);
        let (channel, number, value) = (0, controller::ALL_SOUND_OFF, 0.0);
        monitor.handle_event(&EventKind::Controller {
            channel,
            number,
            value,
        });
        assert_eq!(monitor.notes().count(), 0);
        monitor.request_panic();
        assert_eq!([monitor.take_panic(), monitor.take_panic()], [true, false]);
    }
}
