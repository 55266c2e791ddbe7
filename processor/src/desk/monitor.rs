//! What the audio thread shows to a window: levels, the latest sound, notes. Lock-free on both sides.

use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crossbeam_queue::ArrayQueue;
use ondes_engine::instrument::{EventKind, controller};
use ondes_ui::Level;

/// Samples of each side that are kept.
const KEPT: usize = 1 << 14;
/// Keys of the window that may wait for the audio thread.
const KEYS: usize = 256;
/// Channels of each side that are metered.
const CHANNELS: usize = 2;
/// A peak below this, −100 dB, is silence: nobody looks at it.
const SILENT: f32 = 1e-5;

/// Written by the audio thread, read by a window. While no window is open only notes are kept.
pub struct Monitor {
    wake: Box<dyn Fn() + Send + Sync>,
    open: AtomicBool,
    panic: AtomicBool,
    /// What the window's keyboard plays, on its way to the audio thread.
    keys: ArrayQueue<EventKind>,
    rate_hz: AtomicU32,
    /// Samples that were heard since the beginning.
    heard: AtomicUsize,
    awake: AtomicBool,
    input: Side,
    output: Side,
    /// `[key]`: velocity of a note that sounds, as bits of `f32`; 0 for none.
    notes: [AtomicU32; 128],
}

/// What is known of the sound on one side.
struct Side {
    channels: AtomicUsize,
    /// Largest sample since the window looked, as bits of `f32`: these are in the order of the numbers where none is
    /// negative.
    peaks: [AtomicU32; CHANNELS],
    /// Energy since the window looked, as bits of `f32`, above the number of its samples.
    energies: [AtomicU64; CHANNELS],
    /// The latest samples, the channels' mean, as bits of `f32`.
    ring: Box<[AtomicU32]>,
}

impl Default for Side {
    fn default() -> Self {
        Self {
            channels: AtomicUsize::new(0),
            peaks: Default::default(),
            energies: Default::default(),
            ring: (0..KEPT).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Monitor {
    /// One that has heard nothing. `wake` wakes the window where it sleeps because nothing sounds; the audio thread
    /// calls it, so that it must be wait-free.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            wake: Box::new(wake),
            open: AtomicBool::new(false),
            panic: AtomicBool::new(false),
            keys: ArrayQueue::new(KEYS),
            rate_hz: AtomicU32::new(0),
            heard: AtomicUsize::new(0),
            awake: AtomicBool::new(false),
            input: Side::default(),
            output: Side::default(),
            notes: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

/// For the audio thread; wait-free but for the one window that may look at the same moment.
impl Monitor {
    /// The host begins to play, at that rate in Hz.
    pub fn begin(&self, sample_rate_hz: u32) {
        self.rate_hz.store(sample_rate_hz, Relaxed);
        self.silence();
    }

    /// No note sounds any more.
    pub fn silence(&self) {
        self.notes.iter().for_each(|note| note.store(0, Relaxed));
        (self.wake)();
    }

    /// Whether silence was asked for since this was last asked.
    pub fn panicked(&self) -> bool {
        // Reading first: most blocks need not write.
        self.panic.load(Relaxed) && self.panic.swap(false, Relaxed)
    }

    /// The next thing that was played on the window's keyboard.
    pub fn next_key(&self) -> Option<EventKind> {
        self.keys.pop()
    }

    /// Somebody plays.
    pub fn play(&self, kind: &EventKind) {
        match *kind {
            EventKind::NoteOn { key, velocity, .. } => self.note(key, velocity.max(0.0)),
            EventKind::NoteOff { key, .. } => self.note(key, 0.0),
            EventKind::Controller { number: controller::ALL_NOTES_OFF | controller::ALL_SOUND_OFF, .. } => {
                self.silence();
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

    /// A block was played: what drove the model, and what is heard. `[channel][frame]`, all of one length.
    pub fn hear(&self, input: &[&[f32]], output: &[&mut [f32]]) {
        if !self.open.load(Relaxed) {
            return;
        }
        let heard = self.heard.load(Relaxed);
        let frames = output.first().map_or(0, |channel| channel.len());
        let loud = self.input.hear(heard, frames, input) | self.output.hear(heard, frames, output);
        self.heard.store(heard.wrapping_add(frames), Release);
        // A window that is awake draws at its own pace.
        if loud && !self.awake.load(Relaxed) {
            self.awake.store(true, Relaxed);
            (self.wake)();
        }
    }
}

impl Side {
    /// Gives whether there is anything to be heard.
    fn hear<C: AsRef<[f32]>>(&self, heard: usize, frames: usize, channels: &[C]) -> bool {
        let channels = &channels[..channels.len().min(CHANNELS)];
        self.channels.store(channels.len(), Relaxed);
        let mut largest = 0.0_f32;
        for (channel, (peak, energy)) in channels.iter().zip(self.peaks.iter().zip(&self.energies)) {
            let samples = channel.as_ref();
            let top = samples.iter().fold(0.0_f32, |top, sample| top.max(sample.abs()));
            peak.fetch_max(top.to_bits(), Relaxed);
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
            let sum: f32 = channels.iter().filter_map(|channel| channel.as_ref().get(frame)).sum();
            self.ring[heard.wrapping_add(frame) % KEPT].store((share * sum).to_bits(), Relaxed);
        }
        largest > SILENT
    }

    fn levels(&self, levels: &mut Vec<Level>) {
        let one = |(peak, energy): (&AtomicU32, &AtomicU64)| {
            let (sum, count) = unpack(energy.swap(0, Relaxed));
            let peak_db = 20.0 * f32::from_bits(peak.swap(0, Relaxed)).log10();
            Level { peak_db, rms_db: 10.0 * (sum / count.max(1) as f32).log10() }
        };
        levels.clear();
        levels.extend(self.peaks.iter().zip(&self.energies).take(self.channels.load(Relaxed)).map(one));
    }

    fn wave(&self, heard: usize, wave: &mut [f32]) {
        let start = heard.wrapping_sub(wave.len());
        for (frame, sample) in wave.iter_mut().enumerate() {
            *sample = f32::from_bits(self.ring[start.wrapping_add(frame) % KEPT].load(Relaxed));
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
    /// A window opens or closes.
    pub fn set_open(&self, open: bool) {
        if open {
            // What was seen by an earlier window is past.
            for side in [&self.input, &self.output] {
                side.levels(&mut Vec::new());
                side.ring.iter().for_each(|sample| sample.store(0, Relaxed));
            }
        }
        self.open.store(open, Relaxed);
    }

    /// The window draws no more until it is woken.
    pub fn sleep(&self) {
        self.awake.store(false, Relaxed);
    }

    /// Something is played on the window's keyboard. Where nobody takes it, the oldest is forgotten.
    pub fn press(&self, kind: EventKind) {
        self.keys.force_push(kind);
    }

    /// Silence is asked for, at once.
    pub fn panic(&self) {
        self.panic.store(true, Relaxed);
    }

    /// The host's rate, Hz; 0 before it plays.
    #[must_use]
    pub fn rate_hz(&self) -> f32 {
        self.rate_hz.load(Relaxed) as f32
    }

    /// How many samples were heard so far.
    #[must_use]
    pub fn heard(&self) -> usize {
        self.heard.load(Acquire)
    }

    /// Key and velocity of the notes that sound.
    pub fn notes(&self) -> impl Iterator<Item = (u8, f32)> {
        let velocity = |note: &AtomicU32| f32::from_bits(note.load(Relaxed));
        (0..).zip(&self.notes).map(move |(key, note)| (key, velocity(note))).filter(|(_, velocity)| *velocity > 0.0)
    }

    /// Levels of input and output since this was last asked.
    pub fn levels(&self, [input, output]: [&mut Vec<Level>; 2]) {
        self.input.levels(input);
        self.output.levels(output);
    }

    /// The latest samples of input and output, of the same time.
    pub fn waves(&self, [input, output]: [&mut [f32]; 2]) {
        let heard = self.heard();
        self.input.wave(heard, input);
        self.output.wave(heard, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_was_heard_and_only_while_open() {
        let monitor = Monitor::new(|| ());
        let (left, right) = ([0.5; 64], [-0.25; 64]);
        let mut outputs = [[0.1; 64]];
        let [output] = &mut outputs;
        monitor.hear(&[&left, &right], &[output]);
        assert_eq!(monitor.heard(), 0);
        monitor.set_open(true);
        for _ in 0..3 {
            monitor.hear(&[&left, &right], &[output]);
        }
        let (mut input, mut output) = (Vec::new(), Vec::new());
        monitor.levels([&mut input, &mut output]);
        assert_eq!((input.len(), output.len()), (2, 1));
        assert!((input[0].peak_db + 6.02).abs() < 0.01 && (input[1].rms_db + 12.04).abs() < 0.01, "{input:?}");
        monitor.levels([&mut input, &mut output]);
        assert_eq!(input[0].peak_db, f32::NEG_INFINITY);
        let mut waves = [[0.0; 256]; 2];
        let [first, second] = &mut waves;
        monitor.waves([first, second]);
        assert_eq!((waves[0][63], waves[0][64], waves[1][255]), (0.0, 0.125, 0.1));
    }

    #[test]
    fn notes_come_and_go() {
        let monitor = Monitor::new(|| ());
        for key in [60, 64, 200] {
            monitor.play(&EventKind::NoteOn { channel: 0, key, velocity: 0.5 });
        }
        monitor.play(&EventKind::NoteOff { channel: 0, key: 64, velocity: 0.5 });
        assert_eq!(monitor.notes().collect::<Vec<_>>(), [(60, 0.5)]);
        let (channel, number, value) = (0, controller::ALL_SOUND_OFF, 0.0);
        monitor.play(&EventKind::Controller { channel, number, value });
        assert_eq!(monitor.notes().count(), 0);
        monitor.panic();
        assert_eq!([monitor.panicked(), monitor.panicked()], [true, false]);
    }
}
