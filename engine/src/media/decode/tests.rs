//! The sines beside this file are 0.5 sin(2π 441 n / 22050) at 22 050 Hz, of 5000 frames (FLAC 12
//! 000, others than Ogg and MP3 500), written with libsndfile 1.2; RF64 and `stream.wav` (to a
//! pipe) with ffmpeg 5.1, Wave64 with SoX 14.4. The Opus files are of opusenc 0.2: 10 000 frames of
//! the sine at 48 kHz, a voice-like sound of 0.25 s with its decoded form by opusdec in FLAC, and
//! three channels of the sine: left, none and half as loud, in the order of WAV.

use std::f64::consts::TAU;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::dsp::level::{max_difference, peak};
use crate::random::SplitMix64;

const FLAC: &[u8] = include_bytes!("sine.flac");
const OGG: &[u8] = include_bytes!("sine.ogg");
const MP3: &[u8] = include_bytes!("sine.mp3");
const RF64: &[u8] = include_bytes!("sine.rf64");
const WAVE64: &[u8] = include_bytes!("sine.w64");
const STREAM: &[u8] = include_bytes!("stream.wav");
const OPUS: &[u8] = include_bytes!("sine.opus");
const AIFF: &[u8] = include_bytes!("sine.aiff");

fn file(folder: &TempDir, name: &str, contents: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

/// Writes a WAV file with hound.
fn wav(folder: &TempDir, name: &str, spec: hound::WavSpec, samples: &[f32]) -> PathBuf {
    let path = folder.path().join(name);
    let mut writer = hound::WavWriter::create(&path, spec).unwrap();
    for &sample in samples {
        match spec.bits_per_sample {
            32 => writer.write_sample(sample).unwrap(),
            bits => writer
                .write_sample((sample * (1 << (bits - 1)) as f32) as i32)
                .unwrap(),
        }
    }
    writer.finalize().unwrap();
    path
}

fn spec(channels: u16, bits: u16) -> hound::WavSpec {
    let sample_format = if bits == 32 {
        hound::SampleFormat::Float
    } else {
        hound::SampleFormat::Int
    };
    hound::WavSpec {
        channels,
        sample_rate: 44_100,
        bits_per_sample: bits,
        sample_format,
    }
}

fn read(path: &PathBuf) -> Result<(Vec<Vec<f32>>, Decoder), MediaError> {
    let mut decoder = Decoder::open(path)?;
    let mut all = vec![Vec::new(); decoder.channels()];
    let mut block = Vec::new();
    while decoder.next(&mut block)? {
        assert!(!block[0].is_empty());
        for (all, block) in all.iter_mut().zip(&block) {
            all.extend_from_slice(block);
        }
    }
    assert!(!decoder.next(&mut block)?, "the end stays the end");
    Ok((all, decoder))
}

/// Returns the error message, which must be one line that begins with the file name.
fn message(path: &PathBuf) -> String {
    let error = Decoder::open(path).err().or_else(|| read(path).err());
    let line = error.expect("an error").to_string();
    assert!(!line.contains('\n'), "{line}");
    line.strip_prefix(&format!("{}: ", path.display()))
        .unwrap_or_else(|| panic!("{line}"))
        .to_owned()
}

fn assert_sine(samples: &[f32], tolerance: f32) {
    for (n, &sample) in samples.iter().enumerate() {
        let expected = (0.5 * (TAU * 441.0 * n as f64 / 22_050.0).sin()) as f32;
        assert!(
            (sample - expected).abs() < tolerance,
            "{sample} for {expected} at {n}"
        );
    }
}

#[test]
fn wav_of_every_kind() {
    let folder = TempDir::new().unwrap();
    let samples: Vec<f32> = (0..6_000)
        .map(|n| ((n * 37) % 256 - 128) as f32 / 128.0)
        .collect();
    for (channels, bits) in [(1, 16), (2, 16), (2, 24), (3, 16), (1, 32), (6, 32)] {
        let path = wav(&folder, "a.wav", spec(channels, bits), &samples);
        let (all, decoder) = read(&path).unwrap();
        assert_eq!(
            (decoder.sample_rate(), decoder.channels()),
            (44_100, usize::from(channels))
        );
        assert_eq!(decoder.frames(), Some(6_000 / u64::from(channels)));
        for (channel, found) in all.iter().enumerate() {
            let expected: Vec<f32> = samples
                .iter()
                .skip(channel)
                .step_by(usize::from(channels))
                .copied()
                .collect();
            assert_eq!(*found, expected, "{channels} channels of {bits} bits");
        }
    }
}

#[test]
fn compressed_formats() {
    let folder = TempDir::new().unwrap();
    // Lossy codecs change samples slightly; length and position must be exact.
    for (name, contents, frames, tolerance) in [
        ("a.flac", FLAC, 12_000, 2e-5),
        ("a.aiff", AIFF, 500, 1e-6),
        ("a.rf64", RF64, 500, 4e-5),
        ("a.w64", WAVE64, 500, 4e-5),
        ("a.wav", STREAM, 500, 4e-5),
        ("a.ogg", OGG, 5_000, 0.02),
        ("a.mp3", MP3, 5_000, 0.05),
    ] {
        let (all, decoder) = read(&file(&folder, name, contents)).unwrap();
        assert_eq!(
            (decoder.sample_rate(), decoder.channels(), all[0].len()),
            (22_050, 1, frames),
            "{name}"
        );
        assert!(!decoder.truncated(), "{name}");
        assert_sine(&all[0], tolerance);
        // The format is detected from the content, not from the name.
        assert_eq!(
            read(&file(&folder, "b.dat", contents)).unwrap().0,
            all,
            "{name}"
        );
    }
}

#[test]
fn opus_is_what_its_own_decoder_makes_of_it() {
    let folder = TempDir::new().unwrap();
    let (all, decoder) = read(&file(&folder, "a.opus", OPUS)).unwrap();
    assert_eq!(
        (decoder.sample_rate(), decoder.frames(), all[0].len()),
        (48_000, Some(10_000), 10_000)
    );
    assert!(!decoder.truncated());
    assert_sine(&all[0][500..9_500], 0.03);
    let (voice, _) = read(&file(&folder, "b.opus", include_bytes!("voice.opus"))).unwrap();
    let (expected, _) = read(&file(&folder, "b.flac", include_bytes!("voice.flac"))).unwrap();
    assert_eq!(voice[0].len(), expected[0].len());
    assert!(
        max_difference(&voice[0], &expected[0]) < 1e-3,
        "{}",
        max_difference(&voice[0], &expected[0])
    );
    let (three, _) = read(&file(&folder, "c.opus", include_bytes!("three.opus"))).unwrap();
    let levels: Vec<f32> = three
        .iter()
        .map(|channel| peak(&channel[1_000..2_000]))
        .collect();
    assert!(
        (levels[0] - 0.5).abs() < 0.1 && levels[1] < 0.1 && (levels[2] - 0.25).abs() < 0.1,
        "left, right, centre: {levels:?}"
    );
}

/// Files whose recorder crashed have lengths of 0, or those of an earlier moment, in their headers.
#[test]
fn lengths_that_were_not_written_are_measured() {
    let folder = TempDir::new().unwrap();
    let samples: Vec<f32> = (0..2_000).map(|n| (n % 100) as f32 / 128.0).collect();
    let whole = std::fs::read(wav(&folder, "a.wav", spec(2, 16), &samples)).unwrap();
    let frames = |riff: u32, data: u32, rest: &[u8]| {
        let mut contents = whole.clone();
        contents[4..8].copy_from_slice(&riff.to_le_bytes());
        contents[40..44].copy_from_slice(&data.to_le_bytes());
        contents.extend_from_slice(rest);
        let (all, decoder) =
            read(&file(&folder, "b.wav", &contents)).map_err(|error| error.to_string())?;
        assert!((0..all[0].len()).all(|frame| all[1][frame] == samples[2 * frame + 1]));
        Ok::<_, String>((all[0].len(), decoder.truncated()))
    };
    let right = (whole.len() as u32 - 8, 4_000);
    for (riff, data) in [
        (0, 0),
        (36, 0),
        (0, u32::MAX),
        (u32::MAX, 0),
        (u32::MAX, u32::MAX),
        (0, 4_000),
        (36, 4_000),
    ] {
        assert_eq!(frames(riff, data, &[]), Ok((1_000, false)), "{riff} {data}");
    }
    assert_eq!(
        frames(36 + 400, 400, &[]),
        Ok((100, false)),
        "what the header says"
    );
    assert_eq!(
        frames(right.0, right.1, b"LIST\x04\0\0\0INFO"),
        Ok((1_000, false))
    );
    assert_eq!(frames(0, 8_000, &[]), Ok((1_000, true)));
    // An empty file with another chunk after its sound is whole.
    let mut empty = whole[..44].to_vec();
    empty[40..44].fill(0);
    empty.extend_from_slice(b"LIST\x04\0\0\0INFO");
    let length = empty.len() as u32 - 8;
    empty[4..8].copy_from_slice(&length.to_le_bytes());
    assert_eq!(
        message(&file(&folder, "c.wav", &empty)),
        "contains no audio"
    );
}

#[test]
fn truncated_files_with_long_lengths_are_read_up_to_their_end() {
    let folder = TempDir::new().unwrap();
    for (name, contents, header) in [("a.rf64", RF64, 80), ("a.w64", WAVE64, 104)] {
        let (all, decoder) = read(&file(&folder, name, &contents[..header + 500])).unwrap();
        assert!(decoder.truncated(), "{name}");
        assert!((250 - all[0].len()) < 2, "{name}: {}", all[0].len());
        assert_sine(&all[0], 4e-5);
        assert_eq!(decoder.frames(), Some(500));
    }
}

/// A decoder would reserve 2.6 GB.
#[test]
fn packets_of_absurd_length_are_refused() {
    let folder = TempDir::new().unwrap();
    let mut contents = b"caff\0\x01\0\0desc\0\0\0\0\0\0\0\x20".to_vec();
    contents.extend_from_slice(&44_100.0_f64.to_be_bytes());
    contents.extend_from_slice(b"ima4\0\0\0\0");
    for number in [4_u32, 650_000_000, 1, 16] {
        contents.extend_from_slice(&number.to_be_bytes());
    }
    contents.extend_from_slice(b"data\0\0\0\0\0\0\0\x44\0\0\0\0");
    contents.extend_from_slice(&[0; 64]);
    let line = message(&file(&folder, "a.caf", &contents));
    assert_eq!(
        line,
        "the number of frames in a packet is 650000000; supported: 0 to 65536"
    );
}

/// Pictures make tags of megabytes.
#[test]
fn tags_before_any_format_are_skipped() {
    let folder = TempDir::new().unwrap();
    let mut tag = b"ID3\x04\0\0\x01\x40\0\0".to_vec();
    // Content that looks like frames of MPEG audio.
    tag.resize(10 + (1 << 21) + (1 << 20), 0xff);
    tag[6..10].copy_from_slice(&[1, 0x40, 0, 0]);
    for (name, contents) in [
        ("a.mp3", MP3),
        ("a.flac", FLAC),
        ("a.aiff", AIFF),
        ("a.wav", STREAM),
        ("a.w64", WAVE64),
    ] {
        let (expected, _) = read(&file(&folder, name, contents)).unwrap();
        let (found, decoder) = read(&file(&folder, "b.dat", &[&tag, contents].concat())).unwrap();
        assert_eq!(found, expected, "{name}");
        assert!(!decoder.truncated(), "{name}");
    }
}

#[test]
fn mono_is_the_mean() {
    let folder = TempDir::new().unwrap();
    let path = wav(
        &folder,
        "a.wav",
        spec(2, 32),
        &[1.0, 0.5, -0.25, 0.75, 3.0, -1.0],
    );
    assert_eq!(read_mono(&path).unwrap(), (vec![0.75, 0.25, 1.0], 44_100));
}

#[test]
fn missing_files_and_other_content_are_refused() {
    let folder = TempDir::new().unwrap();
    let text = b"Lorem ipsum dolor sit amet, consectetur adipiscing elit.\n".repeat(200);
    assert_eq!(message(&folder.path().join("none.wav")), "no such file");
    assert!(message(&folder.path().to_owned()).starts_with("cannot be read: "));
    for (name, contents) in [
        ("text.wav", text.as_slice()),
        ("nothing.wav", b""),
        ("short.wav", b"RIFF"),
    ] {
        let line = message(&file(&folder, name, contents));
        assert!(
            line.starts_with("is not audio in a known format: "),
            "{line}"
        );
    }
    let line = Decoder::open(folder.path().join("two\nlines.wav"))
        .err()
        .unwrap()
        .to_string();
    assert!(line.ends_with("two\\nlines.wav: no such file"), "{line}");
}

#[test]
fn files_without_samples_are_refused() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        message(&wav(&folder, "a.wav", spec(2, 16), &[])),
        "contains no audio"
    );
    assert_eq!(
        message(&wav(&folder, "a.wav", spec(1, 32), &[])),
        "contains no audio"
    );
}

#[test]
fn truncated_files_are_read_up_to_their_end() {
    let folder = TempDir::new().unwrap();
    let samples: Vec<f32> = (0..20_000).map(|n| (n % 100) as f32 / 128.0).collect();
    let contents = std::fs::read(wav(&folder, "a.wav", spec(2, 16), &samples)).unwrap();
    for length in [48, 49, 1_000, 20_001] {
        let (all, _) = read(&file(&folder, "b.wav", &contents[..length])).unwrap();
        let frames = (length - 44) / 4;
        assert_eq!(all[0].len(), frames, "{length}");
        assert!(
            (0..frames).all(|frame| all[1][frame] == samples[2 * frame + 1]),
            "{length}"
        );
    }
    for (name, contents, least, most) in [
        ("a.flac", FLAC, 8_192, 11_999),
        ("a.mp3", MP3, 3_000, 4_999),
    ] {
        let (all, decoder) =
            read(&file(&folder, name, &contents[..contents.len() * 9 / 10])).unwrap();
        assert!(decoder.truncated(), "{name}");
        assert!(
            (least..=most).contains(&all[0].len()),
            "{name}: {}",
            all[0].len()
        );
        assert_sine(&all[0], 0.05);
    }
    // All audio is in a single page, which is checked as a whole.
    let line = message(&file(&folder, "a.ogg", &OGG[..OGG.len() * 9 / 10]));
    assert_eq!(
        line,
        "is not audio in a known format: the file ends before any audio"
    );
}

/// Damaged files give a result or an error, never a panic.
#[test]
fn damaged_files_never_panic() {
    let folder = TempDir::new().unwrap();
    let samples: Vec<f32> = (0..3_000).map(|n| (n % 100) as f32 / 128.0).collect();
    let wav = std::fs::read(wav(&folder, "a.wav", spec(3, 24), &samples)).unwrap();
    let mut generator = SplitMix64::new(1);
    let mut random = |below: usize| (generator.next_u64() >> 33) as usize % below;
    for contents in [FLAC, OGG, MP3, AIFF, RF64, WAVE64, OPUS, &wav] {
        for _ in 0..150 {
            let mut contents = contents.to_vec();
            for _ in 0..random(4) {
                let reach = if random(2) == 0 { 100 } else { contents.len() };
                let place = random(reach);
                contents[place] = [0, 0xff, 0x7f, random(256) as u8][random(4)];
            }
            if random(3) == 0 {
                contents.truncate(random(contents.len()));
            }
            let path = file(&folder, "hostile", &contents);
            match read(&path) {
                Ok((all, _)) => assert!(all[0].len() < 1_000_000),
                Err(error) => assert!(!error.to_string().contains('\n')),
            }
        }
    }
}

#[test]
fn damage_in_the_middle_is_an_error() {
    let folder = TempDir::new().unwrap();
    let mut contents = FLAC.to_vec();
    // In the second of three blocks of 4096 frames.
    let middle = contents.len() / 2;
    contents[middle..middle + 8].fill(0x55);
    let error = read(&file(&folder, "a.flac", &contents)).err().unwrap();
    assert!(
        matches!(error, MediaError::Damaged { frames: 4_096, .. }),
        "{error}"
    );
}

#[test]
fn invalid_headers_are_refused() {
    let folder = TempDir::new().unwrap();
    let contents = std::fs::read(wav(&folder, "a.wav", spec(2, 16), &[0.5; 1_000])).unwrap();
    let patched = |place: usize, bytes: &[u8]| {
        let mut contents = contents.clone();
        contents[place..place + bytes.len()].copy_from_slice(bytes);
        message(&file(&folder, "b.wav", &contents))
    };
    assert_eq!(
        patched(24, &999_u32.to_le_bytes()),
        "the sample rate in Hz is 999; supported: 1000 to 768000"
    );
    assert_eq!(
        patched(24, &u32::MAX.to_le_bytes()),
        "the sample rate in Hz is 4294967295; supported: 1000 to 768000"
    );
    assert_eq!(
        patched(24, &0_u32.to_le_bytes()),
        "the sample rate in Hz is 0; supported: 1000 to 768000"
    );
    for channels in [0_u16, 33, 1_000] {
        let line = patched(22, &channels.to_le_bytes());
        assert_eq!(
            line,
            format!("the number of channels is {channels}; supported: 1 to 32")
        );
    }
}

#[test]
fn non_finite_samples_are_replaced_and_counted() {
    let folder = TempDir::new().unwrap();
    let samples = [
        0.5,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -2.0,
        1e38,
        f32::MIN,
        SAMPLE_LIMIT,
    ];
    let path = wav(&folder, "a.wav", spec(1, 32), &samples);
    let (all, decoder) = read(&path).unwrap();
    assert_eq!(
        all,
        [[
            0.5,
            0.0,
            0.0,
            0.0,
            -2.0,
            SAMPLE_LIMIT,
            -SAMPLE_LIMIT,
            SAMPLE_LIMIT
        ]]
    );
    assert_eq!(decoder.replaced(), 5);
}
