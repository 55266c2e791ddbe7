//! TensorBoard event files: scalars, histograms of weights and gradients, spectrograms and sound of
//! the validation.
//!
//! A file is a series of records (TFRecord): length, checksum, `Event` message in protobuf's wire
//! format, checksum.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tch::{Kind, Tensor};

use super::callback::{Callback, StepReport, StopReason, ValidationReport};
use crate::loss::power_spectrum;

/// Lines of the log between two histograms.
const LINES_PER_HISTOGRAM: u64 = 10;
const HISTOGRAM_BINS: i64 = 64;
/// Transform and hop of spectrograms, samples.
const TRANSFORM: i64 = 1024;
const HOP: i64 = 512;
/// Range of spectrograms, dB below the loudest.
const RANGE_DB: f64 = 90.0;

/// Event file of a run.
pub struct TensorBoard {
    path: PathBuf,
    file: File,
    every: u64,
}

impl TensorBoard {
    /// Creates an event file in a folder. TensorBoard reads all files of a folder as one run and,
    /// where a resumed run repeats steps, shows the later ones.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn new(folder: &Path, every: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
        let now = now();
        let path = folder.join(format!(
            "events.out.tfevents.{:.0}.{}.ondes",
            now,
            std::process::id()
        ));
        let file = File::create(&path)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        let mut log = Self { path, file, every };
        let mut event = Message::default();
        event.double(1, now);
        event.bytes(3, b"brain.Event:2");
        log.write(&event)?;
        Ok(log)
    }

    /// Writes values of a step.
    fn summary(&mut self, step: u64, values: &[Message]) -> anyhow::Result<()> {
        let mut summary = Message::default();
        values.iter().for_each(|value| summary.bytes(1, &value.0));
        let mut event = Message::default();
        event.double(1, now());
        event.integer(2, step);
        event.bytes(5, &summary.0);
        self.write(&event)
    }

    fn write(&mut self, event: &Message) -> anyhow::Result<()> {
        let length = (event.0.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(event.0.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked_checksum(&length).to_le_bytes());
        record.extend_from_slice(&event.0);
        record.extend_from_slice(&masked_checksum(&event.0).to_le_bytes());
        self.file
            .write_all(&record)
            .with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

impl Callback for TensorBoard {
    fn step_done(&mut self, report: &StepReport<'_>) -> anyhow::Result<()> {
        if !report.step.is_multiple_of(self.every) {
            return Ok(());
        }
        let mut values = vec![
            scalar("loss/mean", report.mean_loss),
            scalar("rate", report.rate),
            scalar("gradient/norm", report.gradient),
            scalar("seconds per step", report.seconds),
        ];
        values.extend(
            report
                .terms
                .iter()
                .map(|(name, value)| scalar(&format!("loss/{name}"), *value)),
        );
        if report.step.is_multiple_of(self.every * LINES_PER_HISTOGRAM) {
            for (name, weight, gradient) in report.parameters.parts() {
                values.extend(histogram(&format!("weights/{name}"), &weight));
                values.extend(histogram(&format!("gradients/{name}"), &gradient));
            }
        }
        self.summary(report.step, &values)
    }

    fn validated(&mut self, report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        let mut values = vec![scalar(report.validation.measure, report.validation.loss)];
        if let Some([target, sound]) = &report.validation.sounds {
            values.push(image(
                "spectrogram: target above, model below",
                target,
                sound,
            )?);
            values.push(audio("model", sound, report.sample_rate)?);
            values.push(audio("target", target, report.sample_rate)?);
        }
        self.summary(report.step, &values)?;
        Ok(None)
    }
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

/// Returns the checksum of TFRecords: CRC-32C, rotated, plus a constant.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

/// Message in protobuf's wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn doubles(&mut self, field: u64, values: &[f64]) {
        let packed: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.bytes(field, &packed);
    }
}

/// Returns a value of a summary; `field` is that of its content.
fn value(tag: &str, field: u64, content: &Message) -> Message {
    let mut value = Message::default();
    value.bytes(1, tag.as_bytes());
    value.bytes(field, &content.0);
    value
}

fn scalar(tag: &str, number: f64) -> Message {
    let mut value = Message::default();
    value.bytes(1, tag.as_bytes());
    value.float(2, number as f32);
    value
}

/// Returns a histogram; `None` if a value is not finite.
fn histogram(tag: &str, tensor: &Tensor) -> Option<Message> {
    let flat = tensor
        .view(-1)
        .to_kind(Kind::Float)
        .to_device(tch::Device::Cpu);
    let [min, max] = [flat.min(), flat.max()].map(|value| value.double_value(&[]));
    if !(min.is_finite() && max.is_finite()) {
        return None;
    }
    // All values in one bin need a bin of some width.
    let (low, high) = if min < max {
        (min, max)
    } else {
        (
            min - 1e-12_f64.max(min.abs() * 1e-6),
            max + 1e-12_f64.max(max.abs() * 1e-6),
        )
    };
    let counts = Vec::<f64>::try_from(flat.histc(HISTOGRAM_BINS).to_kind(Kind::Double)).ok()?;
    let width = (high - low) / HISTOGRAM_BINS as f64;
    let limits: Vec<f64> = (1..=HISTOGRAM_BINS)
        .map(|bin| low + bin as f64 * width)
        .collect();
    let mut content = Message::default();
    content.double(1, min);
    content.double(2, max);
    content.double(3, flat.numel() as f64);
    content.double(4, flat.sum(Kind::Double).double_value(&[]));
    content.double(5, flat.square().sum(Kind::Double).double_value(&[]));
    content.doubles(6, &limits);
    content.doubles(7, &counts);
    Some(value(tag, 5, &content))
}

/// Returns the spectrograms of two sounds, one above the other, as a grey image.
fn image(tag: &str, above: &[f32], below: &[f32]) -> anyhow::Result<Message> {
    let window = Tensor::hann_window(TRANSFORM, (Kind::Float, tch::Device::Cpu));
    let levels = |sound: &[f32]| {
        let row = Tensor::from_slice(sound).view([1, -1]);
        (power_spectrum(&row, TRANSFORM, HOP, &window).get(0) + 1e-12).log10() * 10.0
    };
    // Low frequencies at the bottom.
    let both = Tensor::cat(&[levels(above).flip([0]), levels(below).flip([0])], 0);
    let top = both.max().double_value(&[]);
    let grey = ((&both - top) / RANGE_DB + 1.0).clamp(0.0, 1.0) * 255.0;
    let (height, width) = grey.size2()?;
    let pixels = Vec::<u8>::try_from(grey.to_kind(Kind::Uint8).contiguous().view(-1))?;
    let mut encoded = Vec::new();
    let mut encoder =
        png::Encoder::new(&mut encoded, u32::try_from(width)?, u32::try_from(height)?);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header()?.write_image_data(&pixels)?;
    let mut content = Message::default();
    content.integer(1, height as u64);
    content.integer(2, width as u64);
    content.integer(3, 1);
    content.bytes(4, &encoded);
    Ok(value(tag, 4, &content))
}

fn audio(tag: &str, sound: &[f32], sample_rate: u32) -> anyhow::Result<Message> {
    let format = hound::WavSpec {
        channels: 1,
        sample_rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, format)?;
    for sample in sound {
        writer.write_sample((sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)) as i16)?;
    }
    writer.finalize()?;
    let mut content = Message::default();
    content.float(1, sample_rate as f32);
    content.integer(2, 1);
    content.integer(3, sound.len() as u64);
    content.bytes(4, &file.into_inner());
    content.bytes(5, b"audio/wav");
    Ok(value(tag, 6, &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the fields of a message: number, and bytes or number.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key & 7 {
                0 => {
                    fields.push((key >> 3, varint(&mut bytes).to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                5 => 4,
                _ => varint(&mut bytes) as usize,
            };
            fields.push((key >> 3, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        fields
    }

    #[test]
    fn records_have_checksums_and_hold_what_was_written() {
        // The example of RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = TensorBoard::new(folder.path(), 1).expect("a file");
        let sound: Vec<f32> = (0..4_800).map(|n| (0.1 * n as f32).sin()).collect();
        let values = [
            scalar("loss", 0.25),
            histogram("weights", &Tensor::from_slice(&[0.0_f32, 1.0, 1.0, 2.0])).expect("finite"),
            histogram("constant", &Tensor::from_slice(&[3.0_f32, 3.0])).expect("finite"),
            image("spectrogram", &sound, &sound).expect("an image"),
            audio("sound", &sound, 48_000).expect("sound"),
        ];
        assert!(histogram("broken", &Tensor::from_slice(&[f32::NAN])).is_none());
        log.summary(300, &values).expect("it is written");
        let path = log.path.clone();
        let mut bytes = &std::fs::read(path).expect("a file")[..];
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(number(8), masked_checksum(&bytes[..8]));
            let event = &bytes[12..12 + length];
            assert_eq!(number(12 + length), masked_checksum(event));
            events.push(fields(event));
            bytes = &bytes[16 + length..];
        }
        assert_eq!(events[0][1], (3, b"brain.Event:2".to_vec()));
        assert_eq!(events[1][1], (2, 300_u64.to_le_bytes().to_vec()));
        let found: Vec<_> = fields(&events[1][2].1)
            .iter()
            .map(|(_, value)| fields(value))
            .collect();
        assert_eq!(found.len(), values.len());
        assert_eq!(
            found[0],
            [(1, b"loss".to_vec()), (2, 0.25_f32.to_le_bytes().to_vec())]
        );
        let counts = fields(&found[1][1].1);
        let counts: Vec<f64> = counts[6]
            .1
            .chunks(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(
            (
                counts.iter().sum::<f64>(),
                counts[0],
                counts[32],
                counts[63]
            ),
            (4.0, 1.0, 2.0, 1.0)
        );
        assert_eq!(&fields(&found[3][1].1)[3].1[1..4], b"PNG");
        let wav = hound::WavReader::new(Cursor::new(fields(&found[4][1].1)[3].1.clone()))
            .expect("a WAV file");
        assert_eq!((wav.spec().sample_rate, wav.len()), (48_000, 4_800));
    }
}
