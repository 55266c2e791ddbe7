//! Content of the file after every block.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::media::Decoder;

/// Ramp of multiples of 2^-15, which are exact in every format.
fn ramp(channels: usize, frames: std::ops::Range<usize>) -> Vec<f32> {
    let sample = |frame: usize, channel: usize| {
        ((frame * 7 + channel * 1_001) % 65_536) as f32 / 32_768.0 - 1.0
    };
    frames
        .flat_map(|frame| (0..channels).map(move |channel| sample(frame, channel)))
        .collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Chunks of a RIFF or RF64 file (EBU Tech 3306) with the lengths that they must have.
struct Chunks {
    form: String,
    riff: u64,
    data: u64,
    frames: Option<u64>,
    data_start: u64,
}

impl Chunks {
    fn read(bytes: &[u8]) -> Self {
        let form = String::from_utf8_lossy(&bytes[..4]).into_owned();
        let mut chunks = Self {
            form,
            riff: number(&bytes[4..8]),
            data: 0,
            frames: None,
            data_start: 0,
        };
        assert_eq!(&bytes[8..12], b"WAVE");
        let mut at = 12;
        let mut lengths = None;
        loop {
            let (name, length) = (&bytes[at..at + 4], number(&bytes[at + 4..at + 8]));
            let contents = &bytes[at + 8..];
            match name {
                b"ds64" => {
                    assert_eq!(
                        (at, length, number(&contents[24..28])),
                        (12, 28, 0),
                        "the first chunk, without a table"
                    );
                    lengths = Some([0, 8, 16].map(|start| number(&contents[start..start + 8])));
                }
                b"fact" => chunks.frames = Some(number(&contents[..4])),
                b"data" => {
                    chunks.data = length;
                    chunks.data_start = at as u64 + 8;
                    break;
                }
                _ => (),
            }
            at += 8 + length as usize;
        }
        if let Some([riff, data, frames]) = lengths {
            let unknown = u64::from(u32::MAX);
            assert!(
                chunks.riff == unknown
                    && chunks.data == unknown
                    && chunks.frames.is_none_or(|f| f == unknown)
            );
            (chunks.riff, chunks.data, chunks.frames) = (riff, data, Some(frames));
        }
        chunks
    }
}

fn decode(path: &Path) -> Vec<f32> {
    let mut decoder = Decoder::open(path).unwrap();
    let (mut all, mut block) = (Vec::new(), Vec::new());
    while decoder.next(&mut block).unwrap() {
        all.extend(
            (0..block[0].len()).flat_map(|frame| block.iter().map(move |channel| channel[frame])),
        );
    }
    assert!(!decoder.truncated());
    all
}

#[test]
fn the_file_is_complete_after_every_block() {
    let folder = TempDir::new().unwrap();
    for bits in [WavBits::Int16, WavBits::Int24, WavBits::Float32] {
        for channels in [1, 2, 5] {
            let path = folder.path().join(format!("{bits:?}{channels}.wav"));
            let mut wav = GrowingWav::create(&path, 48_000, channels, bits).unwrap();
            assert_eq!(hound::WavReader::open(&path).unwrap().duration(), 0);
            for (start, end) in [(0, 1), (1, 334), (334, 334), (334, 1_001)] {
                wav.append(&ramp(channels, start..end)).unwrap();
                let length = fs::metadata(&path).unwrap().len();
                assert_eq!((length % 2, wav.frames()), (0, end as u64));
                assert_eq!(Chunks::read(&fs::read(&path).unwrap()).riff, length - 8);
                assert_eq!(
                    hound::WavReader::open(&path).unwrap().duration(),
                    end as u32
                );
                let step = match bits {
                    WavBits::Int16 => 1.0 / 32_768.0,
                    WavBits::Int24 => 1.0 / 8_388_608.0,
                    WavBits::Float32 => 0.0,
                };
                let (found, expected) = (decode(&path), ramp(channels, 0..end));
                assert_eq!(found.len(), expected.len());
                // Dither of less than one step to either side.
                assert!(
                    found
                        .iter()
                        .zip(&expected)
                        .all(|(a, b)| (a - b).abs() <= step),
                    "{bits:?}"
                );
                // Both integer formats are dithered.
                assert!(end < 1_000 || bits == WavBits::Float32 || found != expected);
            }
        }
    }
}

#[test]
fn long_files_become_rf64() {
    let folder = TempDir::new().unwrap();
    for bits in [WavBits::Int16, WavBits::Int24, WavBits::Float32] {
        let path = folder.path().join(format!("{bits:?}.wav"));
        let mut wav = GrowingWav::with_largest_riff(&path, 48_000, 3, bits, 10_000).unwrap();
        let mut last = 0;
        for end in (100..3_000).step_by(100) {
            wav.append(&ramp(3, last..end)).unwrap();
            last = end;
            let bytes = fs::read(&path).unwrap();
            let chunks = Chunks::read(&bytes);
            assert_eq!(
                chunks.form,
                if bytes.len() - 8 > 10_000 {
                    "RF64"
                } else {
                    "RIFF"
                }
            );
            assert_eq!(chunks.riff, bytes.len() as u64 - 8);
            assert_eq!(chunks.data, end as u64 * 3 * u64::from(bits.bytes()));
            assert!(chunks.frames.is_none_or(|frames| frames == end as u64));
            if bits == WavBits::Float32 {
                let data = &bytes[chunks.data_start as usize..];
                let found: Vec<f32> = data
                    .chunks_exact(4)
                    .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                    .collect();
                assert!(found == ramp(3, 0..end));
            }
        }
        assert_eq!(Chunks::read(&fs::read(&path).unwrap()).form, "RF64");
    }
}

/// The file is sparse up to 4 GiB, so it needs no disk space.
#[cfg(target_os = "linux")]
#[test]
fn files_can_exceed_4_gib() {
    use std::io::Read;

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("long.wav");
    let mut wav = GrowingWav::create(&path, 48_000, 2, WavBits::Float32).unwrap();
    let header = |path: &Path| {
        let mut bytes = vec![0; 200];
        File::open(path).unwrap().read_exact(&mut bytes).unwrap();
        Chunks::read(&bytes)
    };
    let most = (LARGEST_RIFF - wav.data_start() + 8) / 8;
    wav.frames = most - 10;
    wav.append(&ramp(2, 0..10)).unwrap();
    let chunks = header(&path);
    assert_eq!(
        (chunks.form.as_str(), chunks.riff),
        ("RIFF", fs::metadata(&path).unwrap().len() - 8)
    );
    wav.append(&ramp(2, 10..11)).unwrap();
    let chunks = header(&path);
    assert_eq!(
        (chunks.form.as_str(), chunks.riff),
        ("RF64", fs::metadata(&path).unwrap().len() - 8)
    );
    assert_eq!(
        (chunks.data, chunks.frames),
        (8 * (most + 1), Some(most + 1))
    );
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    fs::write(&path, b"before").unwrap();
    let error = GrowingWav::create(&path, 48_000, 1, WavBits::Float32)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("a.wav: cannot be written: ") && error.contains("exists"),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"before");
    for (rate, channels) in [(999, 1), (48_000, 0), (48_000, 65)] {
        let path = folder.path().join("b.wav");
        assert!(matches!(
            GrowingWav::create(&path, rate, channels, WavBits::Float32),
            Err(MediaError::Limit { .. })
        ));
        assert!(!path.exists());
    }
}
