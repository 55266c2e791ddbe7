//! Memory does not grow with the length of a recording.

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
        let report = folder.json(&[&["render", "slow.ondes", "--input", "hum.wav"], extra].concat());
        assert!(report["seconds"].as_f64().is_some_and(|length| length >= f64::from(seconds)));
        report["peak_memory_bytes"].as_u64().expect("Linux tells")
    };
    // Normalization buffers on the disk.
    for extra in [&[][..], &["--normalize", "-30"]] {
        let (short, long) = (peak_bytes(5, extra), peak_bytes(20 * 60, extra));
        assert!(long < 64 * MIB, "{} MiB", long / MIB);
        assert!(long < short + 4 * MIB, "{} MiB after {} MiB", long / MIB, short / MIB);
    }
}
