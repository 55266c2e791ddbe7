//! Training pair of a capture: a signal and its recording through the device, aligned.

use std::path::Path;

use anyhow::{Context, bail};
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::{display_name, read_mono};

use super::align::{Alignment, align};
use super::check::{self, Finding, Severity};

/// Signal and recording, of equal length and sample rate.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Signal that was played.
    pub dry: Vec<f32>,
    /// Recording.
    pub wet: Vec<f32>,
    /// Sample rate, Hz.
    pub rate: u32,
    /// Name of the recording.
    pub name: String,
    /// Positions of the model's knobs in the recording; empty for their defaults.
    pub settings: Vec<f32>,
    /// BLAKE3 hash of both sounds and the rate.
    pub hash: String,
    /// Delay, polarity and drift before alignment.
    pub alignment: Alignment,
    /// Results of the checks.
    pub findings: Vec<Finding>,
}

impl Pair {
    /// Reads, checks and aligns two files of any sample rates.
    ///
    /// # Errors
    /// Returns an error if a file cannot be decoded.
    pub fn read(dry: &Path, wet: &Path, rate: u32) -> anyhow::Result<Self> {
        let mut findings = Vec::new();
        let mut read = |path: &Path, side: &str| -> anyhow::Result<(Vec<f32>, u32)> {
            let (sound, own) = read_mono(path)?;
            if own != rate {
                findings.push(Finding::note(format!(
                    "{side} was resampled from {own} Hz to {rate} Hz"
                )));
            }
            let resampled = resample(&sound, own, rate).with_context(|| display_name(path))?;
            Ok((resampled, own))
        };
        let (dry_sound, dry_rate) = read(dry, "the dry signal")?;
        let (wet_sound, wet_rate) = read(wet, "the recording")?;
        if dry_rate != wet_rate {
            findings.push(Finding::note(format!(
                "the files have different sample rates, {dry_rate} and {wet_rate} Hz: make sure that both are correct"
            )));
        }
        let mut pair = Self::new(dry_sound, wet_sound, rate, display_name(wet));
        findings.append(&mut pair.findings);
        pair.findings = findings;
        Ok(pair)
    }

    /// Checks and aligns two sounds of equal sample rate.
    #[must_use]
    pub fn new(dry: Vec<f32>, wet: Vec<f32>, rate: u32, name: String) -> Self {
        let mut findings = check::check_sounds(&dry, &wet, rate);
        let stopped = findings
            .iter()
            .any(|finding| finding.severity == Severity::Stop);
        let alignment = if stopped {
            Alignment::default()
        } else {
            align(&dry, &wet, f64::from(rate))
        };
        let (skip_dry, skip_wet) = match alignment.delay_samples {
            delay if delay < 0 => (delay.unsigned_abs() as usize, 0),
            delay => (0, delay as usize),
        };
        let mut dry = dry[skip_dry.min(dry.len())..].to_vec();
        let mut wet = wet[skip_wet.min(wet.len())..].to_vec();
        let lengths = (dry.len(), wet.len());
        let common = lengths.0.min(lengths.1);
        dry.truncate(common);
        wet.truncate(common);
        if !stopped {
            findings.extend(check::check_alignment(
                &dry, &wet, rate, &alignment, lengths,
            ));
        }
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(bytemuck::cast_slice(&dry))
            .update(bytemuck::cast_slice(&wet))
            .update(&rate.to_le_bytes());
        let hash = hasher.finalize().to_hex().to_string();
        Self {
            dry,
            wet,
            rate,
            name,
            settings: Vec::new(),
            hash,
            alignment,
            findings,
        }
    }

    /// Inverts the polarity of the recording.
    pub fn flip(&mut self) {
        self.wet.iter_mut().for_each(|x| *x = -*x);
        self.hash += ", turned over";
    }

    /// Prints the findings. With `force`, those that stop training are printed as warnings.
    ///
    /// # Errors
    /// Returns the first finding that stops training.
    pub fn report(&self, force: bool) -> anyhow::Result<()> {
        for finding in &self.findings {
            match finding.severity {
                Severity::Stop if !force => bail!("{} (--force ignores this)", finding.message),
                Severity::Stop => eprintln!("warning: {}", finding.message),
                Severity::Note => println!("{}", finding.message),
            }
        }
        Ok(())
    }

    /// Returns the length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.dry.len() as f64 / f64::from(self.rate)
    }
}
