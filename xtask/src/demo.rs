//! The demo: renders the bundled session, a timbre transfer and a generator with `ondes render`,
//! and draws the session.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::picture;
use crate::process::{build, from_root, output, root};
use crate::setup::{Purpose, setup};
use crate::sound::StereoSound;

/// The piece: a session of six instruments and a generator, and the notes that they play.
const SESSION: &str = "assets/demo/harbour-at-dusk.ondes-session";
const NOTES: &str = "assets/demo/harbour-at-dusk.mid";
/// The recording that an instrument replays, and that instrument.
const RECORDING: &str = "assets/demo/phrase.wav";
const REPLAYED_BY: &str = "assets/models/bowed.ondes";
/// The generator that plays by itself, and its options.
const GENERATOR: &str = "assets/models/drums.ondes";
const GENERATED: [&str; 6] = ["--seconds", "60", "--seed", "7", "--tempo", "96"];

/// Rendering needs no window, no sound card and no network.
const BUILD_OPTIONS: [&str; 3] = ["--no-default-features", "--profile", "rendering"];

/// Figures that `ondes render --json` prints.
struct RenderReport {
    seconds: f64,
    realtime_factor: f64,
    peak_db: f64,
}

/// Renders the demo into `target/demo`.
///
/// # Errors
/// A program that building needs is missing, or a render fails or is not fit to be heard.
pub fn demo() -> anyhow::Result<()> {
    setup(Purpose::Rendering)?;
    let folder = root().join("target/demo");
    fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot be created", folder.display()))?;
    println!("building `ondes render`");
    let ondes = build("ondes", "ondes", &BUILD_OPTIONS)?;

    let (mix, drawing) = (folder.join("demo.wav"), folder.join("demo.png"));
    let piece = render(&ondes, &[SESSION, "--midi", NOTES, "--bits", "24"], &mix)?;
    let sound = StereoSound::read(&mix)?;
    if let Some(defect) = sound.defect() {
        bail!("{}: {defect}", from_root(&mix));
    }
    let subtitle = format!(
        "flute, clarinet, violin, cello, voice, trumpet, drums · {:.1} s · {} kHz",
        sound.seconds(),
        sound.sample_rate / 1000
    );
    picture::draw(&sound, "Harbour at Dusk", &subtitle, &drawing)?;

    let transfer = folder.join("transfer.wav");
    let replay = render(&ondes, &[REPLAYED_BY, "--input", RECORDING], &transfer)?;
    let alone = folder.join("drums.wav");
    let drums = render(&ondes, &[&[GENERATOR], &GENERATED[..]].concat(), &alone)?;

    println!();
    for (name, report) in [
        ("the piece", piece),
        ("the replay", replay),
        ("the drums", drums),
    ] {
        let RenderReport {
            seconds,
            realtime_factor,
            peak_db,
        } = report;
        println!(
            "{name:10}  {seconds:5.1} s, {realtime_factor:4.0} × real time, peak {peak_db:5.2} dBFS"
        );
    }
    println!("listen to:  {}", from_root(&mix));
    println!("look at:    {}", from_root(&drawing));
    println!(
        "also:       {RECORDING}, replayed by {REPLAYED_BY}: {}",
        from_root(&transfer)
    );
    println!(
        "            a minute that {GENERATOR} plays by itself: {}",
        from_root(&alone)
    );
    Ok(())
}

/// Runs `ondes render` in the checkout.
fn render(ondes: &Path, arguments: &[&str], out: &Path) -> anyhow::Result<RenderReport> {
    let mut command = Command::new(ondes);
    command
        .current_dir(root())
        .arg("render")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .args(["--json"]);
    parse_report(&output(&mut command)?)
}

fn parse_report(json: &str) -> anyhow::Result<RenderReport> {
    let report: serde_json::Value =
        serde_json::from_str(json).context("`ondes render --json` did not print a JSON object")?;
    let number = |name: &str| {
        report[name]
            .as_f64()
            .with_context(|| format!("`ondes render --json` printed no {name}"))
    };
    Ok(RenderReport {
        seconds: number("seconds")?,
        realtime_factor: number("realtime_factor")?,
        peak_db: report["peak_db"]
            .as_f64()
            .context("`ondes render` rendered silence")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_in_the_checkout() {
        for file in [SESSION, NOTES, RECORDING, REPLAYED_BY, GENERATOR] {
            assert!(root().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn parses_a_report() {
        let report = parse_report(
            "{\"out\":\"a.wav\",\"seconds\":2.0,\"realtime_factor\":123.5,\"peak_db\":-3.0}\n",
        );
        let RenderReport {
            seconds,
            realtime_factor,
            peak_db,
        } = report.unwrap();
        assert_eq!((seconds, realtime_factor, peak_db), (2.0, 123.5, -3.0));
        let error = |json| parse_report(json).err().unwrap().to_string();
        assert!(error("{\"seconds\":2.0,\"peak_db\":-3.0}").contains("realtime_factor"));
        assert!(
            error("{\"seconds\":2.0,\"realtime_factor\":99.0,\"peak_db\":null}")
                .contains("silence")
        );
        assert!(error("rendered").contains("JSON"));
    }
}
