//! Results of a render.

use ondes_engine::dsp::level::amplitude_to_db_f64;
use serde::Serialize;

/// Results of a render; `--json` prints exactly these fields, and those of [`super::batch`].
#[derive(Serialize)]
pub struct RenderReport {
    /// Output file, or `-`.
    pub out: String,
    /// Model file.
    pub model: String,
    /// Name on the model's card.
    pub instrument: String,
    /// Length of the output, s.
    pub seconds: f64,
    /// Length of the output, samples.
    pub frames: u64,
    /// Sample rate of the output, Hz.
    pub sample_rate: u32,
    /// Channels of the output.
    pub channels: usize,
    /// Bits per sample.
    pub bits: u16,
    /// Seconds of sound per second, reading and writing included, normalization excluded.
    pub realtime_factor: f64,
    /// Computation time of the pipeline per sample, ns.
    pub ns_per_sample: f64,
    /// Largest sample, dB re full scale; null for silence.
    pub peak_db: Option<f64>,
    /// Integrated loudness, LUFS; null without `--normalize`, or if the sound is too short or soft.
    pub lufs: Option<f64>,
    /// True peak, dBTP; null without `--normalize`, and for silence.
    pub true_peak_db: Option<f64>,
    /// Gain of `--normalize`, dB; null without it.
    pub gain_db: Option<f64>,
    /// Compensated latency, samples.
    pub latency_samples: usize,
    /// Executor that ran the network.
    pub executor: String,
    /// Block length, samples.
    pub block: u32,
    /// Number of notes played; 0 for a recording.
    pub notes: usize,
    /// Notes outside the model's range.
    pub notes_outside: usize,
    /// Notes that found no voice, even by stealing.
    pub notes_dropped: u64,
    /// Output that is silent because the model computed NaN or infinity; null without any.
    pub invalid_output: Option<InvalidOutput>,
    /// Time from the start of the program, or of this file in a batch, to the first audible sample,
    /// ms.
    pub start_ms: Option<f64>,
    /// Memory of the pipeline's weights, states and buffers, bytes.
    pub memory_bytes: usize,
    /// Peak memory of the program, bytes; null if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// Warnings, also printed on standard error.
    pub warnings: Vec<String>,
}

/// Output that is silent because the model computed NaN or infinity.
#[derive(Clone, Copy, Serialize)]
pub struct InvalidOutput {
    /// Time of the first sample, s.
    pub first_second: f64,
    /// Number of samples in all.
    pub samples: u64,
}

impl InvalidOutput {
    /// Returns the warning about it.
    pub fn warning(&self) -> String {
        format!(
            "computes invalid numbers (NaN or infinity); silent from {:.2} s",
            self.first_second
        )
    }
}

impl RenderReport {
    /// Formats the results for the terminal, in one line.
    pub fn line(&self) -> String {
        let peak = self
            .peak_db
            .map_or("silent".to_owned(), |peak| format!("peak {peak:.1} dB"));
        let loudness = self
            .lufs
            .map_or_else(String::new, |lufs| format!(", {lufs:.1} LUFS"));
        let latency_ms = 1e3 * self.latency_samples as f64 / f64::from(self.sample_rate);
        format!(
            "{}: {:.2} s at {} Hz, {}× real time, {peak}{loudness}, latency of {latency_ms:.1} ms compensated",
            self.out,
            self.seconds,
            self.sample_rate,
            speed(self.realtime_factor),
        )
    }
}

/// Formats a speed in times real time: with the more digits the slower it is.
pub fn speed(realtime_factor: f64) -> String {
    match realtime_factor {
        slow if slow < 1.0 => format!("{slow:.2}"),
        medium if medium < 10.0 => format!("{medium:.1}"),
        fast => format!("{fast:.0}"),
    }
}

/// Converts an amplitude to dB re full scale; `None` for silence.
pub fn amplitude_db(amplitude: f32) -> Option<f64> {
    (amplitude > 0.0).then(|| amplitude_to_db_f64(f64::from(amplitude)))
}
