//! Batches.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ondes_engine::model::file;
use serde_json::Value;

use crate::common::{Folder, codec, effect, json_lines, midi, tone, two_tracks, write_wav};

/// Recordings of the batch, in its order.
const TAKES: [&str; 7] = [
    "a.wav",
    "b.wav",
    "deep/c.wav",
    "deep/er/d.WAV",
    "deep/e.wave",
    "f.g.wav",
    "z.wav",
];
/// Their outputs.
const RESULTS: [&str; 7] = [
    "a.wav",
    "b.wav",
    "deep/c.wav",
    "deep/e.wav",
    "deep/er/d.wav",
    "f.g.wav",
    "z.wav",
];

const BATCH: [&str; 6] = ["render", "small.ondes", "--input", "takes", "--out", "out"];

/// Creates a folder of recordings among other files.
fn with_takes() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("takes/deep/er")).expect("a folder is made");
    for (index, name) in TAKES.iter().enumerate() {
        let pitch_hz = 220.0 + 30.0 * index as f64;
        let rate = if index % 2 == 0 { 48_000 } else { 44_100 };
        write_wav(
            &folder.path("takes").join(name),
            rate,
            1,
            tone(pitch_hz, 0.3, rate),
        );
    }
    std::fs::create_dir(folder.path("takes/.hidden")).expect("a folder is made");
    for name in ["notes.txt", ".a.wav", ".hidden/x.wav", "song.mid"] {
        std::fs::write(folder.path("takes").join(name), "no sound").expect("the file is written");
    }
    folder
}

/// Reads all files below a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(below).expect("the folder can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .expect("it is below")
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, std::fs::read(&path).expect("the file can be read"));
            }
        }
    }
    found
}

fn outs(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["out"].as_str().expect("a name"))
        .collect()
}

fn touch(path: &Path, at: SystemTime) {
    let file = std::fs::File::options()
        .append(true)
        .open(path)
        .expect("there is a file");
    file.set_modified(at).expect("the time is set");
}

#[test]
fn a_batch_renders_each_file_as_if_alone() {
    let folder = with_takes();
    let (lines, summary) = folder.batch(&BATCH);
    assert_eq!(lines.len(), TAKES.len());
    let rendered = contents(&folder.path("out"));
    assert_eq!(rendered.keys().collect::<Vec<_>>(), RESULTS);
    for line in &lines {
        let (source, out) = (
            line["source"].as_str().expect("a name"),
            line["out"].as_str().expect("a name"),
        );
        assert_eq!(line["status"], "rendered");
        let alone = folder.json(&[
            "render",
            "small.ondes",
            "--input",
            source,
            "--out",
            "alone.wav",
        ]);
        assert_eq!(line["frames"], alone["frames"]);
        let alone = std::fs::read(folder.path("alone.wav")).expect("there is a file");
        assert!(
            rendered[out.strip_prefix("out/").expect("in the folder")] == alone,
            "{source}"
        );
    }
    assert_eq!(
        (&summary["files"], &summary["rendered"]),
        (&Value::from(7), &Value::from(7))
    );
    let seconds: f64 = lines
        .iter()
        .filter_map(|line| line["seconds"].as_f64())
        .sum();
    assert!((summary["seconds"].as_f64().expect("a number") - seconds).abs() < 1e-9);
}

#[test]
fn a_reused_pipeline_renders_as_a_new_one() {
    let folder = Folder::new();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    file::write(&codec(), &folder.path("mean.ondes")).expect("the model is written");
    for name in ["in", "songs"] {
        std::fs::create_dir(folder.path(name)).expect("a folder is made");
    }
    for index in 0..3_u8 {
        let sound = tone(200.0 + 70.0 * f64::from(index), 0.2, 48_000).map(|sample| sample + 0.1);
        write_wav(&folder.path(&format!("in/{index}.wav")), 48_000, 1, sound);
        // Chords with more notes than voices.
        let notes: Vec<_> = (0..3)
            .map(|key| (0, 0, 60 + 4 * key + index, 100 * u32::from(index), 400))
            .collect();
        std::fs::write(
            folder.path(&format!("songs/{index}.mid")),
            midi(&[""], &notes),
        )
        .expect("the file is written");
    }
    let notes = [
        "--voices",
        "1",
        "--transpose",
        "3",
        "--control",
        "brightness=12",
        "--seed",
        "5",
    ];
    let cases: [(&str, [&str; 2], &[&str]); 4] = [
        ("small.ondes", ["--midi", "songs"], &notes),
        ("small.ondes", ["--input", "in"], &["--transpose", "-5"]),
        ("half.ondes", ["--input", "in"], &[]),
        (
            "mean.ondes",
            ["--input", "in"],
            &["--control", "latent1.scale=0.5"],
        ),
    ];
    for (model, source, more) in cases {
        let many = [
            &["render", model],
            &source[..],
            more,
            &["--out", "out", "--force", "--jobs", "1"],
        ]
        .concat();
        let (lines, _) = folder.batch(&many);
        assert_eq!(lines.len(), 3);
        for line in lines {
            let (from, out) = (
                line["source"].as_str().expect("a name"),
                line["out"].as_str().expect("a name"),
            );
            let alone = folder.json(
                &[
                    &["render", model, source[0], from],
                    more,
                    &["--out", "alone.wav"],
                ]
                .concat(),
            );
            assert_eq!(line["notes_dropped"], alone["notes_dropped"]);
            let read = |name: &str| std::fs::read(folder.path(name)).expect("there is a file");
            assert!(read(out) == read("alone.wav"), "{model} {from}");
        }
    }
}

#[test]
fn files_and_folders_of_midi() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("songs/old")).expect("a folder is made");
    for name in ["songs/a.mid", "songs/old/b.MIDI", "c.mid", "d"] {
        std::fs::write(folder.path(name), two_tracks()).expect("the file is written");
    }
    let (lines, _) = folder.batch(&[
        "render",
        "--midi",
        "songs",
        "small.ondes",
        "c.mid",
        "d",
        "--out",
        "out",
        "--track",
        "Low",
    ]);
    assert!(lines.iter().all(|line| line["notes"] == 2));
    let names: Vec<String> = contents(&folder.path("out")).into_keys().collect();
    assert_eq!(names, ["a.wav", "c.wav", "d.wav", "old/b.wav"]);
}

#[test]
fn jobs_do_not_change_the_output() {
    let folder = with_takes();
    folder.batch(&[&BATCH[..], &["--jobs", "1"]].concat());
    let one = contents(&folder.path("out"));
    for jobs in ["2", "5", "100"] {
        let (lines, summary) = folder.batch(&[&BATCH[..5], &["others", "--jobs", jobs]].concat());
        assert_eq!(
            (lines.len(), summary["jobs"].to_string()),
            (TAKES.len(), jobs.to_owned())
        );
        assert!(contents(&folder.path("others")) == one, "{jobs} jobs");
        std::fs::remove_dir_all(folder.path("others")).expect("the folder is removed");
    }
}

#[test]
fn shards_cover_the_batch() {
    let folder = with_takes();
    let (lines, _) = folder.batch(&[&BATCH[..], &["--jobs", "1"]].concat());
    // One job renders in the order of the list.
    assert_eq!(outs(&lines), RESULTS.map(|name| format!("out/{name}")));
    let whole = contents(&folder.path("out"));
    for count in [1, 3, 9] {
        let mut files = 0;
        for index in 1..=count {
            let shard = format!("{index}/{count}");
            let (lines, summary) =
                folder.batch(&[&BATCH[..5], &["parts", "--shard", &shard]].concat());
            let mut names = outs(&lines);
            names.sort_unstable();
            let expected = RESULTS.iter().skip(index - 1).step_by(count);
            assert_eq!(
                names,
                expected
                    .map(|name| format!("parts/{name}"))
                    .collect::<Vec<_>>(),
                "{shard}"
            );
            assert_eq!(summary["rendered"], lines.len());
            files += lines.len();
        }
        assert_eq!(files, TAKES.len());
        assert!(contents(&folder.path("parts")) == whole, "{count} parts");
        std::fs::remove_dir_all(folder.path("parts")).expect("the folder is removed");
    }
}

#[test]
fn only_outdated_outputs_are_rendered() {
    let folder = with_takes();
    folder.batch(&BATCH);
    let rendered = |extra: &[&str]| {
        let (lines, summary) = folder.batch(&[&BATCH[..], extra].concat());
        let rendered: Vec<Value> = lines
            .iter()
            .filter(|line| line["status"] == "rendered")
            .cloned()
            .collect();
        let skipped = lines
            .iter()
            .filter(|line| line["status"] == "skipped")
            .count();
        assert_eq!(
            (summary["rendered"].as_u64(), summary["skipped"].as_u64()),
            { (Some(rendered.len() as u64), Some(skipped as u64)) }
        );
        assert_eq!(rendered.len() + skipped, TAKES.len());
        outs(&rendered)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(rendered(&[]), [""; 0]);
    assert_eq!(rendered(&["--force"]).len(), TAKES.len());

    let now = SystemTime::now();
    for name in RESULTS {
        touch(&folder.path("out").join(name), now);
    }
    assert_eq!(rendered(&[]), [""; 0]);
    // A source as new as its output, a newer one, and a missing output.
    touch(&folder.path("takes/b.wav"), now);
    touch(
        &folder.path("takes/deep/er/d.WAV"),
        now + Duration::from_secs(5),
    );
    std::fs::remove_file(folder.path("out/z.wav")).expect("the file is removed");
    assert_eq!(
        rendered(&["--jobs", "1"]),
        ["out/b.wav", "out/deep/er/d.wav", "out/z.wav"]
    );
    touch(&folder.path("small.ondes"), now + Duration::from_secs(60));
    assert_eq!(rendered(&[]).len(), TAKES.len());
}

#[test]
fn outputs_are_not_sources() {
    let folder = with_takes();
    let batch = [
        "render",
        "small.ondes",
        "--input",
        "takes",
        "--out",
        "takes/out",
    ];
    let (lines, _) = folder.batch(&batch);
    assert_eq!(lines.len(), TAKES.len());
    let (lines, summary) = folder.batch(&batch);
    assert_eq!(
        (lines.len(), summary["skipped"].as_u64()),
        (TAKES.len(), Some(7))
    );
}

#[test]
fn bad_files_do_not_stop_a_batch() {
    let folder = with_takes();
    folder.batch(&BATCH);
    let good = contents(&folder.path("out"));
    std::fs::remove_dir_all(folder.path("out")).expect("the folder is removed");
    std::fs::write(
        folder.path("takes/a2.flac"),
        "It was a dark and stormy night.",
    )
    .expect("the file is written");
    std::fs::write(folder.path("takes/deep/f.mp3"), "").expect("the file is written");

    let output = folder.run(&[&BATCH[..], &["missing.wav", "--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let (lines, summary) = json_lines(&output.stdout);
    assert_eq!(
        (lines.len(), &summary["failed"], &summary["rendered"]),
        (10, &Value::from(3), &Value::from(7))
    );
    let failed: Vec<&Value> = lines
        .iter()
        .filter(|line| line["status"] == "failed")
        .collect();
    assert!(
        failed
            .iter()
            .any(|line| line["source"] == "missing.wav" && line["out"] == "out/missing.wav")
    );
    let errors = String::from_utf8(output.stderr).expect("text");
    let errors: Vec<&str> = errors.lines().collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    for (error, name) in errors.iter().zip([
        "takes/a2.flac: ",
        "takes/deep/f.mp3: ",
        "missing.wav: no such file",
    ]) {
        assert!(error.starts_with(&format!("ondes: {name}")), "{error}");
    }
    assert_eq!(errors[3], "ondes: 3 of 10 files could not be rendered");
    assert!(contents(&folder.path("out")) == good);
}

/// A link back to a folder above is not followed; other links are.
#[cfg(unix)]
#[test]
fn loops_of_links_end() {
    let folder = with_takes();
    std::os::unix::fs::symlink("..", folder.path("takes/deep/loop")).expect("a link is made");
    std::fs::create_dir(folder.path("more")).expect("a folder is made");
    write_wav(
        &folder.path("more/z.wav"),
        48_000,
        1,
        tone(300.0, 0.1, 48_000),
    );
    std::os::unix::fs::symlink("../more", folder.path("takes/linked")).expect("a link is made");
    let (lines, _) = folder.batch(&BATCH);
    assert_eq!(lines.len(), TAKES.len() + 1);
    assert_eq!(folder.files_in("out/linked"), ["z.wav"]);
}

#[test]
fn two_files_of_one_name_are_refused() {
    let folder = with_takes();
    write_wav(&folder.path("a.wav"), 48_000, 1, tone(300.0, 0.1, 48_000));
    std::fs::copy(folder.path("a.wav"), folder.path("takes/a.aiff")).expect("the file is copied");
    folder.refuses(
        &BATCH,
        &["takes/a.wav: ", "takes/a.aiff", "has the same output as"],
    );
    std::fs::remove_file(folder.path("takes/a.aiff")).expect("the file is removed");
    folder.refuses(
        &[&BATCH[..], &["a.wav"]].concat(),
        &["a.wav", "takes/a.wav", "has the same output as"],
    );
    // The same file twice counts once.
    let (lines, _) = folder.batch(&[&BATCH[..], &["takes/a.wav", "takes/../takes/b.wav"]].concat());
    assert_eq!(lines.len(), TAKES.len());
}

#[test]
fn invalid_batches_are_refused() {
    let folder = with_takes();
    std::fs::write(folder.path("file"), "").expect("the file is written");
    std::fs::create_dir(folder.path("empty")).expect("a folder is made");
    let render = ["render", "small.ondes", "--input"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["takes"], &["takes: ", "--out FOLDER"]),
        (
            &["takes/a.wav", "takes/b.wav"],
            &["takes/a.wav: ", "--out FOLDER"],
        ),
        (&["takes/a.wav", "--jobs", "1"], &["--out FOLDER"]),
        (&["takes", "--out", "-"], &["--out FOLDER"]),
        (&["takes", "--out", "file"], &["file: not a folder"]),
        (
            &["takes", "--out", "file/out"],
            &["file/out: cannot be created"],
        ),
        (
            &["empty", "--out", "out"],
            &["empty: contains no matching file"],
        ),
        (
            &["takes", "--out", "takes"],
            &["takes: input and output folder are the same"],
        ),
        (
            &["takes/a.wav", "takes/b.wav", "--out", "takes"],
            &["takes/a.wav: output would overwrite an input"],
        ),
        (
            &["takes", "--out", "out", "--control", "nothing=1"],
            &["small.ondes: unknown control \"nothing\""],
        ),
    ];
    for (arguments, words) in cases {
        folder.refuses(&[&render[..], arguments].concat(), words);
    }
    for shard in ["0/2", "3/2", "1", "1/0"] {
        let output = folder.run(&[&BATCH[..], &["--shard", shard]].concat());
        assert_eq!(output.status.code(), Some(2), "{shard}");
        assert!(output.stdout.is_empty() && !folder.path("out").exists());
    }
}

#[test]
fn the_text_report_has_a_line_per_file_and_a_summary() {
    let folder = with_takes();
    let output = folder.run(&BATCH);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().expect("a line");
    assert!(
        last.starts_with("out: 7 of 7 files rendered, 0 skipped, 0 failed, "),
        "{last}"
    );
    lines.sort_unstable();
    for (line, name) in lines.iter().zip(RESULTS) {
        assert!(
            line.starts_with(&format!("out/{name}: ")) && line.contains("× real time"),
            "{line}"
        );
    }
    assert_eq!(lines.len(), TAKES.len());
    let again = String::from_utf8(folder.run(&BATCH).stdout).expect("text");
    assert!(
        again.starts_with("out: 0 of 7 files rendered, 7 skipped, 0 failed, "),
        "{again}"
    );
}

/// What is bundled is as old as the program.
#[test]
fn a_batch_with_a_bundled_model_and_cabinet_resumes() {
    let folder = with_takes();
    let batch = [
        "render",
        "fuzz",
        "--input",
        "takes",
        "--out",
        "out",
        "--cabinet",
        "4x12",
    ];
    assert_eq!(folder.batch(&batch).1["rendered"], TAKES.len());
    assert_eq!(folder.batch(&batch).1["skipped"], TAKES.len());
    std::fs::remove_file(folder.path("out/a.wav")).expect("the file is removed");
    let (_, summary) = folder.batch(&batch);
    assert_eq!(
        (&summary["rendered"], &summary["skipped"]),
        (&Value::from(1), &Value::from(6))
    );
    // A cabinet in a file has a time of its own.
    write_wav(
        &folder.path("box.wav"),
        48_000,
        1,
        tone(300.0, 0.01, 48_000),
    );
    let own = [
        "render",
        "fuzz",
        "--input",
        "takes",
        "--out",
        "other",
        "--cabinet",
        "box.wav",
    ];
    assert_eq!(folder.batch(&own).1["rendered"], TAKES.len());
    assert_eq!(folder.batch(&own).1["skipped"], TAKES.len());
    touch(
        &folder.path("box.wav"),
        SystemTime::now() + Duration::from_secs(60),
    );
    assert_eq!(folder.batch(&own).1["rendered"], TAKES.len());
    assert_eq!(
        folder.batch(&own).1["skipped"],
        TAKES.len(),
        "the clock of the cabinet's machine is ahead"
    );
}

#[test]
fn sources_from_a_machine_whose_clock_is_ahead_are_rendered_once() {
    let folder = with_takes();
    let ahead = SystemTime::now() + Duration::from_secs(3_600);
    touch(&folder.path("takes/b.wav"), ahead);
    folder.batch(&BATCH);
    assert_eq!(folder.batch(&BATCH).1["skipped"], TAKES.len());
    touch(&folder.path("takes/b.wav"), ahead + Duration::from_secs(60));
    assert_eq!(folder.batch(&BATCH).1["rendered"], 1);
}

/// A file that takes the place of the model may be older than it.
#[cfg(unix)]
#[test]
fn another_model_of_an_older_date_makes_a_batch_anew() {
    let folder = with_takes();
    let older =
        ondes_engine::model::Model::new(effect().header().clone(), effect().weights().clone());
    file::write(
        &older.expect("the model is sound"),
        &folder.path("older.ondes"),
    )
    .expect("the model is written");
    file::write(&codec(), &folder.path("amp.ondes")).expect("the model is written");
    touch(
        &folder.path("older.ondes"),
        SystemTime::now() - Duration::from_secs(86_400),
    );
    let batch = ["render", "amp.ondes", "--input", "takes", "--out", "out"];
    folder.batch(&batch);
    assert_eq!(folder.batch(&batch).1["skipped"], TAKES.len());
    std::fs::rename(folder.path("older.ondes"), folder.path("amp.ondes"))
        .expect("the file is renamed");
    assert_eq!(folder.batch(&batch).1["rendered"], TAKES.len());
}

#[test]
fn a_batch_writes_flac() {
    let folder = with_takes();
    let batch = [&BATCH[..], &["--format", "flac", "--bits", "16"]].concat();
    let (lines, summary) = folder.batch(&batch);
    assert_eq!(
        (lines.len(), &summary["rendered"]),
        (TAKES.len(), &Value::from(7))
    );
    assert!(lines.iter().all(|line| line["bits"] == 16));
    let names: Vec<String> = contents(&folder.path("out")).into_keys().collect();
    assert_eq!(names, RESULTS.map(|name| name.replace(".wav", ".flac")));
    assert_eq!(folder.batch(&batch).1["skipped"], TAKES.len());
    folder.refuses(
        &[&BATCH[..], &["--format", "flac", "--bits", "32"]].concat(),
        &["FLAC holds integers", "--bits 24"],
    );
    folder.refuses(
        &[
            "render",
            "small.ondes",
            "--input",
            "-",
            "takes",
            "--out",
            "x",
        ],
        &["standard input"],
    );
}
