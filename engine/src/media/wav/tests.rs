//! Files of our writer, read by hound and by [`Decoder`].

use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::dsp::level::max_difference;
use crate::media::Decoder;

const KINDS: [WavBits; 3] = [WavBits::Int16, WavBits::Int24, WavBits::Float32];

fn scale(bits: WavBits) -> f32 {
    match bits {
        WavBits::Int16 => 32_768.0,
        WavBits::Int24 => 8_388_608.0,
        WavBits::Float32 => 1.0,
    }
}

/// Writer that accepts a number of bytes and then reports a full disk.
#[derive(Clone)]
struct LimitedWriter {
    capacity: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl LimitedWriter {
    fn new(capacity: usize) -> Self {
        Self {
            capacity,
            written: Arc::default(),
        }
    }
}

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written.lock().unwrap();
        let length = bytes.len().min(self.capacity - written.len());
        if length == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        written.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sound(channels: usize, frames: usize) -> Vec<Vec<f32>> {
    let sample =
        |channel: usize, frame: usize| ((channel * 3 + frame * 7) % 199) as f32 / 100.0 - 1.0;
    (0..channels)
        .map(|channel| (0..frames).map(|frame| sample(channel, frame)).collect())
        .collect()
}

fn decode(path: &Path) -> Vec<Vec<f32>> {
    let mut decoder = Decoder::open(path).unwrap();
    let mut all = vec![Vec::new(); decoder.channels()];
    let mut block = Vec::new();
    while decoder.next(&mut block).unwrap() {
        for (all, block) in all.iter_mut().zip(&block) {
            all.extend_from_slice(block);
        }
    }
    all
}

fn by_hound(path: &Path, bits: WavBits) -> Vec<Vec<f32>> {
    let mut reader = hound::WavReader::open(path).unwrap();
    let channels = usize::from(reader.spec().channels);
    let interleaved: Vec<f32> = match bits {
        WavBits::Float32 => reader.samples::<f32>().map(Result::unwrap).collect(),
        _ => reader
            .samples::<i32>()
            .map(|sample| sample.unwrap() as f32 / scale(bits))
            .collect(),
    };
    (0..channels)
        .map(|channel| {
            interleaved
                .iter()
                .skip(channel)
                .step_by(channels)
                .copied()
                .collect()
        })
        .collect()
}

fn names(folder: &TempDir) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(folder.path()).unwrap().map(name).collect()
}

#[test]
fn written_samples_are_read_back() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    for bits in KINDS {
        for channels in [1, 2, 3, 8, 18, 32] {
            let sound = sound(channels, 1_001);
            let mut writer = WavWriter::create(&path, 44_100, channels, bits).unwrap();
            for start in [0, 400, 800] {
                let block: Vec<&[f32]> = sound
                    .iter()
                    .map(|channel| &channel[start..1_001.min(start + 400)])
                    .collect();
                writer.write(&block).unwrap();
            }
            assert_eq!(writer.frames(), 1_001);
            writer.finish().unwrap();
            let tolerance = match bits {
                // Dither of one step to either side and rounding by half a step; 1 exceeds the
                // largest integer.
                WavBits::Int16 => 1.5 / 32_768.0 + 1e-9,
                WavBits::Int24 => 1.01 / 8_388_608.0,
                WavBits::Float32 => 0.0,
            };
            let by_hound = by_hound(&path, bits);
            assert_eq!(by_hound.len(), channels);
            let all = decode(&path);
            assert_eq!(all, by_hound);
            for (found, expected) in all.iter().zip(&sound) {
                assert_eq!(found.len(), expected.len());
                let worst = max_difference(found, expected);
                assert!(worst <= tolerance, "{bits:?}, {channels} channels: {worst}");
            }
            let reader = hound::WavReader::open(&path).unwrap();
            let spec = reader.spec();
            assert_eq!(
                (spec.sample_rate, usize::from(spec.channels)),
                (44_100, channels)
            );
            assert_eq!(
                (spec.bits_per_sample, reader.duration()),
                (8 * bits.bytes(), 1_001)
            );
            let length = fs::metadata(&path).unwrap().len();
            let header = fs::read(&path).unwrap();
            assert_eq!(length % 2, 0);
            assert_eq!(
                u64::from(u32::from_le_bytes(header[4..8].try_into().unwrap())),
                length - 8
            );
        }
    }
    assert_eq!(names(&folder), ["a.wav"]);
}

#[test]
fn integers_are_clamped_and_floats_are_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let samples = [2.0, -2.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for (bits, expected) in [
        (
            WavBits::Int24,
            [8_388_607, -8_388_608, 8_388_607, -8_388_608, 0],
        ),
        (WavBits::Int16, [32_767, -32_768, 32_767, -32_768, 0]),
    ] {
        let mut writer = WavWriter::create(&path, 48_000, 1, bits).unwrap();
        writer.write(&[samples]).unwrap();
        writer.finish().unwrap();
        let found: Vec<i32> = hound::WavReader::open(&path)
            .unwrap()
            .samples()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found[..4], expected[..4]);
        assert!(found[4].abs() <= 1);
    }
    let mut writer = WavWriter::create(&path, 48_000, 1, WavBits::Float32).unwrap();
    writer.write(&[samples]).unwrap();
    writer.finish().unwrap();
    let found: Vec<f32> = hound::WavReader::open(&path)
        .unwrap()
        .samples()
        .map(Result::unwrap)
        .collect();
    assert_eq!(found, [2.0, -2.0, f32::INFINITY, f32::NEG_INFINITY, 0.0]);
}

#[test]
fn dither_preserves_signals_below_one_step() {
    let write = |level: f32| {
        let stream = LimitedWriter::new(1 << 20);
        let mut writer =
            WavWriter::to_writer(stream.clone(), "-", 48_000, 1, WavBits::Int16, None).unwrap();
        writer.write(&[vec![level / 32_768.0; 100_000]]).unwrap();
        writer.finish().unwrap();
        let bytes = stream.written.lock().unwrap()[44..].to_vec();
        bytes
            .chunks_exact(2)
            .map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]])))
            .collect::<Vec<_>>()
    };
    for level in [0.0_f32, 0.1, 0.25, 0.5, -0.3] {
        let found = write(level);
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        let variance = found
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / found.len() as f64;
        assert!((mean - f64::from(level)).abs() < 0.01, "{level}: {mean}");
        // 1/12 of rounding and 2/12 of dither at any level.
        assert!((variance - 0.25).abs() < 0.01, "{level}: {variance}");
        assert_eq!(found, write(level), "dither must be the same in every run");
    }
}

#[test]
fn the_target_appears_when_it_is_complete() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    fs::write(&path, b"before").unwrap();
    let mut writer = WavWriter::create(&path, 48_000, 2, WavBits::Float32).unwrap();
    writer.write(&sound(2, 10_000)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before");
    let all = names(&folder);
    let hidden: Vec<&String> = all
        .iter()
        .filter(|name| name.starts_with(".a.wav.") && name.ends_with(".part"))
        .collect();
    assert_eq!((all.len(), hidden.len()), (2, 1));
    drop(writer);
    assert_eq!(names(&folder), ["a.wav"]);
    assert_eq!(fs::read(&path).unwrap(), b"before");
}

#[test]
fn concurrent_writers_of_one_target_do_not_interfere() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let mut writers: Vec<WavWriter> = (0..2)
        .map(|_| WavWriter::create(&path, 48_000, 1, WavBits::Float32).unwrap())
        .collect();
    for (index, writer) in writers.iter_mut().enumerate() {
        writer.write(&[[index as f32]]).unwrap();
    }
    writers
        .into_iter()
        .for_each(|writer| writer.finish().unwrap());
    assert_eq!(decode(&path), [[1.0]]);
    assert_eq!(names(&folder), ["a.wav"]);
}

#[test]
fn unwritable_targets_are_named() {
    let folder = TempDir::new().unwrap();
    for path in [folder.path().join("none/a.wav"), folder.path().to_owned()] {
        let line = WavWriter::create(&path, 48_000, 1, WavBits::Int16)
            .err()
            .unwrap()
            .to_string();
        assert!(
            line.starts_with(&format!("{}: cannot be written: ", path.display())),
            "{line}"
        );
        assert!(!line.contains('\n'), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_written_in_place() {
    use std::os::unix::fs::FileTypeExt;

    let error = WavWriter::create("/dev/full", 48_000, 1, WavBits::Int16)
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("/dev/full: cannot be written: No space left"),
        "{error}"
    );
    let mut writer = WavWriter::create("/dev/null", 48_000, 1, WavBits::Int16).unwrap();
    writer.write(&[[0.5]]).unwrap();
    writer.finish().unwrap();
    for device in ["/dev/full", "/dev/null"] {
        assert!(fs::metadata(device).unwrap().file_type().is_char_device());
    }
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed() {
    let folder = TempDir::new().unwrap();
    let (target, link) = (
        folder.path().join("target.wav"),
        folder.path().join("link.wav"),
    );
    fs::write(&target, b"before").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut writer = WavWriter::create(&link, 48_000, 1, WavBits::Float32).unwrap();
    writer.write(&[[0.5]]).unwrap();
    writer.finish().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(decode(&target), [[0.5]]);
}

#[test]
fn a_full_disk_is_reported() {
    for capacity in [0, 20, 44, 100, 1_043] {
        let stream = LimitedWriter::new(capacity);
        let result =
            WavWriter::to_writer(stream.clone(), "out", 48_000, 1, WavBits::Int16, Some(500));
        let error = result.and_then(|mut writer| {
            let error = writer.write(&[[0.5; 500]]).err().unwrap();
            // The writer stays closed.
            assert!(writer.write(&[[0.5; 1]]).is_err() && writer.finish().is_err());
            Err::<(), _>(error)
        });
        let line = error.err().unwrap().to_string();
        assert!(
            line.starts_with("out: cannot be written: ") && line.contains("storage"),
            "{capacity}: {line}"
        );
    }
}

#[test]
fn streams_declare_their_length_or_the_largest() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    for bits in KINDS {
        for frames in [None, Some(333)] {
            let stream = LimitedWriter::new(1 << 20);
            let mut writer =
                WavWriter::to_writer(stream.clone(), "-", 48_000, 1, bits, frames).unwrap();
            writer.write(&sound(1, 333)).unwrap();
            writer.finish().unwrap();
            let bytes = stream.written.lock().unwrap().clone();
            fs::write(&path, &bytes).unwrap();
            let all = decode(&path);
            assert_eq!(all[0].len(), 333, "{bits:?} {frames:?}");
            assert!(
                all[0]
                    .iter()
                    .zip(&sound(1, 333)[0])
                    .all(|(a, b)| (a - b).abs() < 1e-4)
            );
            if frames.is_some() {
                assert_eq!(hound::WavReader::new(&bytes[..]).unwrap().duration(), 333);
            }
        }
    }
}

#[test]
fn declared_lengths_are_enforced() {
    let make = || {
        WavWriter::to_writer(
            LimitedWriter::new(1 << 20),
            "-",
            48_000,
            1,
            WavBits::Int16,
            Some(100),
        )
        .unwrap()
    };
    let mut short = make();
    short.write(&sound(1, 99)).unwrap();
    assert_eq!(
        short.finish().unwrap_err().to_string(),
        "-: the header declares 100 frames, but 99 were written"
    );
    let mut long = make();
    long.write(&sound(1, 99)).unwrap();
    assert!(matches!(
        long.write(&sound(1, 2)),
        Err(MediaError::Length {
            declared: 100,
            written: 101,
            ..
        })
    ));
}

#[test]
fn lengths_do_not_wrap_around() {
    let folder = TempDir::new().unwrap();
    let line = |frames| {
        let result = WavWriter::to_writer(
            LimitedWriter::new(1_000),
            "out",
            48_000,
            2,
            WavBits::Int16,
            Some(frames),
        );
        result.err().map(|error| error.to_string())
    };
    // 4 GiB minus the header, 4 bytes per frame.
    assert_eq!(line((u64::from(u32::MAX) - 100) / 4), None);
    let expected =
        "out: the length of a WAV file in frames is 1073741824; supported: 0 to 1073741812 (4 GiB)";
    assert_eq!(line(1 << 30).as_deref(), Some(expected));
    assert!(line(u64::MAX).is_some());
    let mut writer =
        WavWriter::create(folder.path().join("a.wav"), 48_000, 2, WavBits::Int16).unwrap();
    writer.frames = writer.header.max_frames() - 1;
    writer.write(&sound(2, 1)).unwrap();
    assert!(matches!(
        writer.write(&sound(2, 1)),
        Err(MediaError::Limit { .. })
    ));
    assert!(names(&folder).is_empty());
    assert!(writer.finish().is_err());
    assert!(names(&folder).is_empty());
}

#[test]
fn invalid_formats_are_refused() {
    let folder = TempDir::new().unwrap();
    for (rate, channels) in [
        (0, 1),
        (999, 1),
        (800_000, 1),
        (48_000, 0),
        (48_000, 33),
        (48_000, 65_537),
    ] {
        let result = WavWriter::create(folder.path().join("a.wav"), rate, channels, WavBits::Int16);
        assert!(
            matches!(result, Err(MediaError::Limit { .. })),
            "{rate} {channels}"
        );
    }
    assert!(names(&folder).is_empty());
}

#[test]
fn long_files_have_room_for_64_bit_lengths() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let mut writer = WavWriter::create_long(&path, 48_000, 2, WavBits::Float32).unwrap();
    writer.write(&sound(2, 1_000)).unwrap();
    writer.finish().unwrap();
    assert_eq!(hound::WavReader::open(&path).unwrap().duration(), 1_000);
    assert_eq!(decode(&path), sound(2, 1_000));
    let bytes = fs::read(&path).unwrap();
    assert_eq!(
        (&bytes[..4], &bytes[12..16]),
        (b"RIFF".as_slice(), b"JUNK".as_slice())
    );
    // As if 4 GiB preceded.
    let mut writer = WavWriter::create_long(&path, 48_000, 2, WavBits::Float32).unwrap();
    writer.frames = 1 << 29;
    writer.write(&sound(2, 1_000)).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    let data = 8_u64 * ((1 << 29) + 1_000);
    assert_eq!(
        (&bytes[..8], &bytes[12..16]),
        (b"RF64\xff\xff\xff\xff".as_slice(), b"ds64".as_slice())
    );
    assert_eq!(bytes[28..36], data.to_le_bytes());
    // 4 GiB of 32-bit mono.
    assert!(
        WavWriter::is_long(1 << 30, 1, WavBits::Float32)
            && !WavWriter::is_long(1 << 30, 1, WavBits::Int24)
    );
}
