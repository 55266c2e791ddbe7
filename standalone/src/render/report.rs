//! What is said about a render when it is done.

use serde::Serialize;

/// The figures of a render; `--json` prints exactly this, and in a batch what [`super::batch`] adds.
#[derive(Serialize)]
pub struct Report {
    /// The file, or `-`.
    pub out: String,
    /// The model file.
    pub model: String,
    /// The model's name, from its card.
    pub instrument: String,
    /// Length of the sound, s.
    pub seconds: f64,
    /// Length of the sound, samples.
    pub frames: u64,
    /// Rate of the sound, Hz.
    pub sample_rate: u32,
    /// Bits per sample.
    pub bits: u16,
    /// Seconds of sound made in a second, reading and writing included, what `--normalize` does at the end not.
    pub realtime_factor: f64,
    /// Time that the pipeline alone took for a sample, ns.
    pub ns_per_sample: f64,
    /// The largest sample, dB of full scale; null for silence.
    pub peak_db: Option<f64>,
    /// Integrated loudness after EBU R128, LUFS; null without `--normalize`, and for what has none.
    pub lufs: Option<f64>,
    /// True peak after EBU R128, dBTP; null without `--normalize`, and for silence.
    pub true_peak_db: Option<f64>,
    /// What `--normalize` made it louder by, dB; null without.
    pub gain_db: Option<f64>,
    /// Latency that was compensated.
    pub latency_samples: usize,
    /// What computed the network.
    pub executor: String,
    /// Samples rendered at a time.
    pub block: u32,
    /// Notes played; 0 with a recording.
    pub notes: usize,
    /// Notes outside the range that the model has learnt.
    pub notes_outside: usize,
    /// Notes for which there was no voice, even by stealing.
    pub notes_dropped: u64,
    /// From the start of the program, in a batch of this file, to the first sample that is heard, ms.
    pub start_ms: Option<f64>,
    /// Memory of the pipeline's weights, states and buffers, bytes.
    pub memory_bytes: usize,
    /// The most memory that the program ever had, bytes; null where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// What was also said on standard error.
    pub warnings: Vec<String>,
}

impl Report {
    /// One line for a person.
    pub fn line(&self) -> String {
        let peak = self.peak_db.map_or("silent".to_owned(), |peak| format!("peak {peak:.1} dB"));
        let loudness = self.lufs.map_or_else(String::new, |lufs| format!(", {lufs:.1} LUFS"));
        let latency_ms = 1e3 * self.latency_samples as f64 / f64::from(self.sample_rate);
        format!(
            "{}: {:.2} s at {} Hz, {:.0}× real time, {peak}{loudness}, latency of {latency_ms:.1} ms compensated",
            self.out, self.seconds, self.sample_rate, self.realtime_factor,
        )
    }
}

/// An amplitude in dB of full scale; none for silence.
pub fn amplitude_db(amplitude: f32) -> Option<f64> {
    (amplitude > 0.0).then(|| 20.0 * f64::from(amplitude).log10())
}
