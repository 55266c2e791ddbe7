//! The demo: the bundled piece played by the bundled instruments, mixed and drawn; and a recording replayed by one of them.
//!
//! All sound is made by `ondes render`, as a user would call it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::compose::{PARTS, compose};
use crate::mix::{Sound, Stem, decibels, fault, mix, read, write};
use crate::process::{build, from_root, output, root};
use crate::setup::setup;
use crate::train::MODELS;
use crate::{phrase, picture};

/// How a part sits in the mix.
struct Seat {
    level_db: f32,
    /// −1 for left to 1 for right.
    pan: f32,
}

/// As the parts are in [`PARTS`]: the melody in front, the harp-like bass in the middle.
const SEATS: [Seat; 3] =
    [Seat { level_db: 0.0, pan: -0.32 }, Seat { level_db: -3.0, pan: 0.36 }, Seat { level_db: -1.5, pan: 0.04 }];

/// Whose sound replays the recording.
const REPLAYED_BY: &str = "bowed";

/// What `ondes render --json` says of a file.
struct Report {
    realtime_factor: f64,
    peak_db: f64,
}

/// Renders everything into `target/demo`.
pub fn demo() -> anyhow::Result<()> {
    setup(false)?;
    let folder = root().join("target/demo");
    fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let (midi, recording) = bundled()?;
    let models = models()?;
    println!("building ondes, optimised");
    let ondes = build("ondes", "ondes")?;

    let parts = PARTS.map(|part| folder.join(format!("{}.wav", part.to_lowercase())));
    let begun = Instant::now();
    for ((part, model), file) in PARTS.iter().zip(&models).zip(&parts) {
        render(&ondes, part, model, &["--midi".as_ref(), midi.as_ref(), "--track".as_ref(), part.as_ref()], file)?;
    }
    let took = begun.elapsed().as_secs_f64();

    let stem = |(file, seat): (&PathBuf, Seat)| Ok(Stem { sound: read(file)?, level_db: seat.level_db, pan: seat.pan });
    let stems = parts.iter().zip(SEATS).map(stem).collect::<anyhow::Result<Vec<_>>>()?;
    let file = folder.join("demo.wav");
    let sound = mixed(&stems, &file)?;
    let drawing = folder.join("demo.png");
    let subtitle =
        format!("{} · {:.1} s · {} kHz", PARTS.join(", ").to_lowercase(), sound.seconds(), sound.rate / 1000);
    picture::draw(&sound, "First Light", &subtitle, &drawing)?;

    let transfer = folder.join("transfer.wav");
    let player = &models[MODELS.iter().position(|&model| model == REPLAYED_BY).context("there is such a model")?];
    render(&ondes, "Replay", player, &["--input".as_ref(), recording.as_ref()], &transfer)?;

    let seconds = sound.seconds();
    println!();
    println!("the piece: {seconds:.1} s in three parts, rendered in {took:.2} s: {:.1} × real time", seconds / took);
    println!("           peak {:.2} dBFS; no clipping and no NaN in parts, mix and file", decibels(sound.peak()));
    println!("listen to: {}", from_root(&file));
    println!("look at:   {}", from_root(&drawing));
    println!("also:      {}, replayed by {REPLAYED_BY}: {}", from_root(&recording), from_root(&transfer));
    Ok(())
}

/// The files to play from, written anew where they are missing or not what the code makes.
fn bundled() -> anyhow::Result<(PathBuf, PathBuf)> {
    let folder = root().join("assets/demo");
    let (midi, recording) = (folder.join("first-light.mid"), folder.join("phrase.wav"));
    let piece = compose();
    let write = |path: &Path, bytes: &[u8]| {
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(path, bytes))
            .with_context(|| format!("{}: cannot be written", path.display()))
    };
    if fs::read(&midi).ok().as_ref() != Some(&piece) {
        write(&midi, &piece)?;
    }
    // Its last bits depend on the system's sine, so what is there stays.
    if !recording.exists() {
        write(&recording, &phrase::wav())?;
    }
    Ok((midi, recording))
}

fn models() -> anyhow::Result<Vec<PathBuf>> {
    let path = |name: &str| root().join(format!("assets/models/{name}.ondes"));
    let missing = MODELS.into_iter().find(|name| !path(name).exists());
    if let Some(name) = missing {
        bail!("{} is missing: `cargo xtask train {name}` makes it", from_root(&path(name)));
    }
    Ok(MODELS.iter().map(|name| path(name)).collect())
}

/// Has a part rendered, and says how that went.
fn render(ondes: &Path, part: &str, model: &Path, source: &[&std::ffi::OsStr], file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(ondes);
    command
        .current_dir(root())
        .arg("render")
        .arg(model)
        .args(source)
        .arg("--out")
        .arg(file)
        .args(["--seed", "1", "--json"]);
    let Report { realtime_factor, peak_db } = report(&output(&mut command)?)?;
    println!("{part:8} {realtime_factor:6.0} × real time, peak {peak_db:6.1} dBFS  {}", from_root(file));
    Ok(())
}

fn report(json: &str) -> anyhow::Result<Report> {
    let object: serde_json::Value =
        serde_json::from_str(json).context("ondes render --json: printed what is not JSON")?;
    let factor = object["realtime_factor"].as_f64().context("ondes render --json: says no realtime_factor")?;
    let peak_db = object["peak_db"].as_f64().context("ondes render: what it rendered is silent")?;
    Ok(Report { realtime_factor: factor, peak_db })
}

/// Mixes, writes, and reads back what was written, to be sure of it.
fn mixed(stems: &[Stem], file: &Path) -> anyhow::Result<Sound> {
    let sound = mix(stems)?;
    if let Some(fault) = fault(&sound) {
        bail!("the mix is not fit to be heard: {fault}");
    }
    write(&sound, file)?;
    let again = read(file)?;
    ensure!(again.frames.len() == sound.frames.len(), "{}: is not what was written", file.display());
    match fault(&again) {
        None => Ok(again),
        Some(fault) => bail!("{}: {fault}", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_the_model_of_its_name() {
        assert_eq!(PARTS.map(str::to_lowercase), MODELS);
    }

    #[test]
    fn bundled_files_are_what_the_code_makes() {
        let bundled = |name: &str| fs::read(root().join("assets/demo").join(name)).unwrap();
        assert_eq!(bundled("first-light.mid"), compose());
        let samples = |bytes: &[u8]| {
            let reader = hound::WavReader::new(bytes).unwrap();
            reader.into_samples().collect::<Result<Vec<i16>, _>>().unwrap()
        };
        let (ours, theirs) = (phrase::wav(), bundled("phrase.wav"));
        let (ours, theirs) = (samples(&ours), samples(&theirs));
        assert_eq!(ours.len(), theirs.len());
        // Systems differ in the last bit of a sine, and so in where a sample is rounded to.
        assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| ours.abs_diff(*theirs) <= 1));
    }

    #[test]
    fn reads_a_report() {
        let Report { realtime_factor, peak_db } =
            report("{\"out\":\"a.wav\",\"seconds\":2.0,\"realtime_factor\":123.5,\"peak_db\":-3.0}\n").unwrap();
        assert_eq!((realtime_factor, peak_db), (123.5, -3.0));
        assert!(report("{\"peak_db\":-3.0}").is_err_and(|error| error.to_string().contains("realtime_factor")));
        assert!(
            report("{\"realtime_factor\":99.0,\"peak_db\":null}")
                .is_err_and(|error| error.to_string().contains("silent"))
        );
        assert!(report("rendered").is_err());
    }

    #[test]
    fn a_mix_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let tone = |hz: f32| (0..4800).map(|n| [(std::f32::consts::TAU * hz * n as f32 / 48_000.0).sin(); 2]).collect();
        let sounds = [220.0, 330.0, 440.0].map(|hz| Sound { rate: 48_000, frames: tone(hz) });
        let stems: Vec<Stem> = sounds
            .into_iter()
            .zip(SEATS)
            .map(|(sound, Seat { level_db, pan })| Stem { sound, level_db, pan })
            .collect();
        let sound = mixed(&stems, &folder.path().join("mix.wav")).unwrap();
        assert!((decibels(sound.peak()) + 1.5).abs() < 0.001);
    }
}
