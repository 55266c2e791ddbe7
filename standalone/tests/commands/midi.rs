//! Rendering of MIDI files.

use ondes_engine::dsp::level::peak;

use crate::common::{Folder, midi, read_wav, two_tracks};

fn with_score() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    folder
}

#[test]
fn a_score_renders_until_it_has_faded() {
    let folder = with_score();
    let report = folder.json(&["render", "small.ondes", "--midi", "song.mid"]);
    assert_eq!(report["out"], "song-small.wav");
    let sound = read_wav(&folder.path("song-small.wav"));
    let seconds = sound.len() as f64 / 48_000.0;
    // The last key is released after 1.5 s; release and room take less than a second.
    assert!((1.5..2.5).contains(&seconds), "{seconds} s");
    let peak = peak(&sound);
    assert!((0.01..1.0).contains(&peak), "{peak}");
    let end = &sound[sound.len() - 100..];
    assert!(
        end.iter().all(|sample| sample.abs() < 1e-3 * peak),
        "it ends in the middle of a sound"
    );
    assert!(
        sound[..960].iter().any(|&sample| sample != 0.0),
        "latency is not compensated"
    );
}

#[test]
fn the_report_matches_the_file() {
    let folder = with_score();
    let report = folder.json(&[
        "render",
        "small.ondes",
        "--midi",
        "song.mid",
        "--out",
        "x.wav",
        "--transpose",
        "-3.5",
    ]);
    let sound = read_wav(&folder.path("x.wav"));
    assert_eq!(report["out"], "x.wav");
    assert_eq!(report["model"], "small.ondes");
    assert_eq!(report["instrument"], "Small");
    assert_eq!(report["sample_rate"], 48_000);
    assert_eq!(report["frames"], sound.len());
    assert_eq!(report["latency_samples"], 192);
    assert_eq!(report["notes"], 4);
    assert_eq!(report["notes_dropped"], 0);
    assert!(
        report["executor"]
            .as_str()
            .is_some_and(|name| name.starts_with("native"))
    );
    let number = |key: &str| {
        report[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key} is no number"))
    };
    assert!((number("seconds") - sound.len() as f64 / 48_000.0).abs() < 1e-9);
    let peak = peak(&sound);
    assert!((number("peak_db") - 20.0 * f64::from(peak).log10()).abs() < 1e-3);
    for key in [
        "realtime_factor",
        "ns_per_sample",
        "start_ms",
        "memory_bytes",
    ] {
        assert!(number(key) > 0.0, "{key}");
    }
}

#[test]
fn seeds_change_the_sound_and_blocks_do_not() {
    let folder = with_score();
    for rate in ["48000", "44100"] {
        let render = |extra: &[&str]| {
            let fixed = [
                "render",
                "small.ondes",
                "--midi",
                "song.mid",
                "--out",
                "x.wav",
                "--sample-rate",
                rate,
            ];
            folder.json(&[&fixed, extra].concat());
            std::fs::read(folder.path("x.wav")).expect("there is a file")
        };
        let sound = render(&[]);
        for block in ["1", "100", "1024", "65536"] {
            assert!(
                render(&["--block", block]) == sound,
                "{rate} Hz in blocks of {block} sounds different"
            );
        }
        assert!(render(&["--seed", "1"]) != sound);
    }
}

#[test]
fn a_full_event_queue_loses_nothing() {
    let folder = Folder::new();
    // 1,500 notes within one sample, then one that stays.
    let mut notes = vec![(0, 0, 60, 480, 0); 1_500];
    notes.push((0, 0, 69, 480, 960));
    std::fs::write(folder.path("dense.mid"), midi(&["Dense"], &notes))
        .expect("the file is written");
    let render = |block| {
        let report = folder.json(&[
            "render",
            "small.ondes",
            "--midi",
            "dense.mid",
            "--block",
            block,
        ]);
        assert_eq!(report["notes"], 1_501);
        read_wav(&folder.path("dense-small.wav"))
    };
    let sound = render("64");
    let held = &sound[48_000..60_000];
    let peak = peak(held);
    assert!(peak > 0.003, "the last note was lost: {peak}");
    assert!(sound == render("4096"));
}

/// At 11,025 Hz these ticks fall on samples less than a model sample after a frame. A note that
/// starts there is not in that frame, whether it is queued early or just in time.
#[test]
fn onsets_just_after_a_frame_do_not_depend_on_blocks() {
    let folder = Folder::new();
    let notes = [73, 265, 457, 649].map(|tick| (0, 0, 60 + (tick % 24) as u8, tick, 150));
    std::fs::write(folder.path("song.mid"), midi(&["Close"], &notes)).expect("the file is written");
    let render = |block| {
        folder.json(&[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--sample-rate",
            "11025",
            "--block",
            block,
        ]);
        read_wav(&folder.path("song-small.wav"))
    };
    assert!(render("1") == render("4096"));
}

#[test]
fn rates_and_lengths_agree() {
    let folder = with_score();
    let seconds = |rate: &str| {
        let report = folder.json(&[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--out",
            "x.wav",
            "--sample-rate",
            rate,
        ]);
        assert_eq!(
            hound::WavReader::open(folder.path("x.wav"))
                .expect("a WAV")
                .spec()
                .sample_rate
                .to_string(),
            rate
        );
        report["seconds"].as_f64().expect("a number")
    };
    let natural = seconds("48000");
    for rate in ["44100", "96000", "22050"] {
        assert!((seconds(rate) - natural).abs() < 0.1, "{rate} Hz");
    }
}

#[test]
fn tracks_and_channels_are_selected() {
    let folder = with_score();
    let render = |part: &[&str]| {
        let report = folder.json(
            &[
                &[
                    "render",
                    "small.ondes",
                    "--midi",
                    "song.mid",
                    "--out",
                    "x.wav",
                ],
                part,
            ]
            .concat(),
        );
        assert_eq!(report["notes"], 2, "{part:?}");
        read_wav(&folder.path("x.wav"))
    };
    let low = render(&["--track", "Low"]);
    assert!(render(&["--track", "low"]) == low);
    assert!(render(&["--track", "2"]) == low);
    assert!(render(&["--channel", "2"]) == low);
    assert!(render(&["--track", "1"]) != low);
    let song = |words: &[&str], part: [&str; 2]| {
        folder.refuses(
            &[
                "render",
                "small.ondes",
                "--midi",
                "song.mid",
                part[0],
                part[1],
            ],
            words,
        );
    };
    song(
        &[
            "song.mid: ",
            "\"Middle\"",
            "1 \"High\" (2 notes), 2 \"Low\" (2 notes)",
        ],
        ["--track", "Middle"],
    );
    song(
        &["song.mid: ", "channel 5 has no notes", "1, 2"],
        ["--channel", "5"],
    );
}

#[test]
fn warnings_are_printed() {
    let folder = with_score();
    let warned = |arguments: &[&str]| {
        let output =
            folder.run(&[&["render", "small.ondes", "--out", "x.wav"], arguments].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(warned(&["--midi", "song.mid"]), "");
    let high = warned(&["--midi", "song.mid", "--transpose", "20"]);
    assert!(
        high.starts_with(
            "ondes: warning: song.mid: 1 of 4 notes are outside the model's range, E2 to F♯6"
        ),
        "{high}"
    );
    let whole = two_tracks();
    std::fs::write(folder.path("cut.mid"), &whole[..whole.len() - 6]).expect("the file is written");
    let cut = warned(&["--midi", "cut.mid"]);
    assert!(
        cut.contains("cut.mid: the file is damaged: track 2 is cut short")
            && cut.lines().count() == 1,
        "{cut}"
    );
}

#[test]
fn controls_are_audible_or_refused() {
    let folder = with_score();
    let render = |control: &[&str]| {
        let report = folder.json(
            &[
                &[
                    "render",
                    "small.ondes",
                    "--midi",
                    "song.mid",
                    "--out",
                    "x.wav",
                ],
                control,
            ]
            .concat(),
        );
        report["peak_db"].as_f64().expect("a number")
    };
    let plain = render(&[]);
    assert!((render(&["--control", "brightness=12"]) - plain).abs() > 0.1);
    let refuses = |control: &str, words: &[&str]| {
        folder.refuses(
            &[
                "render",
                "small.ondes",
                "--midi",
                "song.mid",
                "--out",
                "y.wav",
                "--control",
                control,
            ],
            words,
        );
    };
    refuses(
        "sparkle=1",
        &["small.ondes: ", "sparkle", "noise, brightness"],
    );
    refuses("noise=5", &["small.ondes: ", "noise", "0 to 4", "5"]);
    for wrong in ["noise", "noise=loud", "noise=NaN"] {
        let output = folder.run(&[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--control",
            wrong,
        ]);
        assert_eq!(output.status.code(), Some(2));
    }
}
