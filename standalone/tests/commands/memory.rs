//! Memory does not grow with the length of a recording that is streamed, and is limited where one
//! is held.

#![cfg(target_os = "linux")]

use ondes_engine::model::file;

use crate::common::{Folder, instrument, write_wav};

const RATE: u32 = 8_000;
const MIB: u64 = 1 << 20;

#[test]
fn memory_does_not_grow_with_the_recording() {
    let folder = Folder::new();
    file::write(&instrument(16_000, 64), &folder.path("slow.ondes")).expect("the model is written");
    let peak_bytes = |seconds: u32, extra: &[&str]| {
        // Hum that is far too soft for the instrument.
        let hum = (0..seconds * RATE).map(|n| if n % 80 < 40 { 1e-3 } else { -1e-3 });
        write_wav(&folder.path("hum.wav"), RATE, 1, hum);
        let report =
            folder.json(&[&["render", "slow.ondes", "--input", "hum.wav"], extra].concat());
        assert!(
            report["seconds"]
                .as_f64()
                .is_some_and(|length| length >= f64::from(seconds))
        );
        report["peak_memory_bytes"].as_u64().expect("Linux tells")
    };
    // Normalization buffers on the disk.
    for extra in [&[][..], &["--normalize", "-30"]] {
        let (short, long) = (peak_bytes(5, extra), peak_bytes(20 * 60, extra));
        assert!(long < 64 * MIB, "{} MiB", long / MIB);
        assert!(
            long < short + 4 * MIB,
            "{} MiB after {} MiB",
            long / MIB,
            short / MIB
        );
    }
}

/// Ten minutes of mono at 8 kHz take 110 MiB at 48 kHz: once, not twice for two channels.
#[test]
fn recordings_of_sessions_have_a_limit() {
    let folder = Folder::new();
    write_wav(
        &folder.path("hum.wav"),
        RATE,
        1,
        (0..600 * RATE).map(|n| if n % 80 < 40 { 1e-3 } else { -1e-3 }),
    );
    folder.write_session("hum.wav");
    let render = ["render", "a.ondes-session", "--seconds", "1"];
    let report = folder.json(&[&render[..], &["--memory", "120M"]].concat());
    let peak = report["peak_memory_bytes"].as_u64().expect("Linux tells");
    assert!(peak < 190 * MIB, "{} MiB", peak / MIB);
    let limited = [&render[..], &["--out", "x.wav", "--memory", "100M"]].concat();
    folder.refuses(
        &limited,
        &[
            "hum.wav: its sound takes 110 MB of memory; 100 of 100 MB are free",
            "--memory",
        ],
    );
    let input = [
        "render",
        "a.ondes-session",
        "--input",
        "hum.wav",
        "--out",
        "x.wav",
        "--memory",
        "150M",
    ];
    folder.refuses(
        &input,
        &["hum.wav: its sound takes 110 MB of memory; 40 of 150 MB are free"],
    );
}

/// A header may declare any length.
#[test]
fn long_recordings_are_refused_before_memory_is_taken() {
    let folder = Folder::new();
    write_wav(
        &folder.path("lie.wav"),
        RATE,
        1,
        std::iter::repeat_n(0.1, 1_000),
    );
    let mut bytes = std::fs::read(folder.path("lie.wav")).expect("there is a file");
    bytes[40..44].copy_from_slice(&(2 * RATE * 3_599).to_le_bytes());
    bytes[4..8].copy_from_slice(&(2 * RATE * 3_599 + 36).to_le_bytes());
    std::fs::write(folder.path("lie.wav"), bytes).expect("the file is written");
    folder.write_session("lie.wav");
    let render = [
        "render",
        "a.ondes-session",
        "--seconds",
        "1",
        "--out",
        "x.wav",
        "--memory",
        "64M",
    ];
    folder.refuses(
        &render,
        &["lie.wav: its sound takes 659 MB of memory; 64 of 64 MB are free for sound"],
    );
}
