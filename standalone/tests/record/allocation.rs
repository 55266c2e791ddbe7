//! Pushing does not allocate.

use ondes::record::{Recorder, RecorderSetup, RecordingFormat};
use ondes_tests::allocation::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn pushing_does_not_allocate() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let setup = RecorderSetup {
        sample_rate: 48_000,
        channels: vec![2, 64],
        preroll_s: 1.0,
        ring_s: 0.1,
    };
    let (mut recorder, mut taps) = Recorder::new(&setup).expect("there is memory");
    let files = (0..2).map(|tap| (tap, folder.path().join(format!("{tap}.wav"))));
    let block = vec![0.5_f32; 10_000];
    let mut clock = 0;
    let mut play = |frames: usize| {
        let blocks = [&block[..frames]; 64];
        for n in 0..50 {
            taps[0].push(clock, &blocks[..2]);
            taps[1].push(clock, &blocks);
            // Sometimes a callback is skipped.
            clock += (if n % 7 == 0 { 2 * frames } else { frames }) as u64;
        }
    };
    assert_eq!(allocations(|| play(64)), 0);
    recorder
        .start(files, RecordingFormat::Float32, true)
        .expect("it starts");
    assert_eq!(allocations(|| play(64)), 0);
    // More than the rings hold.
    assert_eq!(allocations(|| play(10_000)), 0);
    assert!(recorder.status().dropped > 0);
    assert_eq!(recorder.status().error, None);
}
