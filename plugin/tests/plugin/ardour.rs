//! The VST3 of **Ondes FX** in Ardour 7 without a window: scan, bounce of a track, presets.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use ondes_engine::dsp::level::max_difference;
use ondes_player::parameter_values::ParameterValue;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::{Preset, file};

use crate::host::{EFFECT, Host};

/// Debian's folder of Ardour's programs.
const ARDOUR: &str = "/usr/lib/ardour7";
const SCRIPT: &str = include_str!("ardour/session.lua");
const PRESET_SCRIPT: &str = include_str!("ardour/preset.lua");
const RATE: u32 = 48_000;
/// Runs of a program that aborts.
const ATTEMPTS: usize = 10;
const SIGABRT: i32 = 6;
/// Ardour's time units per second.
const TICKS: u64 = 282_240_000;

/// Returns the command of an Ardour program with a home folder of its own.
fn ardour(program: &str, home: &Path) -> Command {
    let path = Path::new(ARDOUR).join(program);
    assert!(
        path.is_file(),
        "{} is missing: `cargo xtask setup --tests` installs Ardour",
        path.display()
    );
    // Ardour can deadlock.
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "180"]).arg(path);
    command
        .env("HOME", home)
        .env("LD_LIBRARY_PATH", ARDOUR)
        .env("ARDOUR_DLL_PATH", ARDOUR);
    command
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_CACHE_HOME", home.join("cache"));
    command
        .env("ARDOUR_DATA_PATH", "/usr/share/ardour7")
        .env("ARDOUR_CONFIG_PATH", "/etc/ardour7");
    command
}

/// Runs a program to its end, again if it aborts: Ardour 7.3 corrupts its own memory in about every
/// fourth export, without a plugin as well. Returns its output.
fn run(command: &mut Command) -> String {
    let output = (0..ATTEMPTS)
        .map(|_| command.stdin(Stdio::null()).output().unwrap())
        .find(|output| output.status.signal() != Some(SIGABRT))
        .unwrap_or_else(|| panic!("{command:?} aborted {ATTEMPTS} times"));
    let said = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    said
}

/// Installs the VST3 bundle and scans it.
fn install(home: &Path) {
    fs::create_dir_all(home.join("config")).unwrap();
    let bundle = home.join(".vst3/Ondes.vst3");
    let object = bundle.join("Contents/x86_64-linux/Ondes.so");
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::copy(crate::host::object(), &object).unwrap();
    // Ardour scans a bundle again unless it is older than the scan cache.
    let past = SystemTime::now() - Duration::from_secs(10);
    let paths = [
        object.as_path(),
        object.parent().unwrap(),
        object.ancestors().nth(2).unwrap(),
        bundle.as_path(),
    ];
    paths
        .iter()
        .for_each(|path| File::open(path).unwrap().set_modified(past).unwrap());
    run(ardour("ardour-vst3-scanner", home).arg("-f").arg(&bundle));
}

/// Adds a stereo file to the session's only track, from its first sample, without fades.
fn add_region(session: &Path, file: &str, frames: usize) {
    let length = format!("a{}", frames as u64 * TICKS / u64::from(RATE));
    let source = |id: u32, channel: u32| {
        format!(
            r#"<Source name="{file}" take-id="" type="audio" flags="" id="{id}" channel="{channel}" gain="1"/>"#
        )
    };
    let region = |id: u32, whole: u32| {
        format!(
            r#"<Region name="sound" id="{id}" type="audio" start="a0" length="{length}@a0" stretch="1" shift="1" opaque="1" muted="0" locked="0" automatic="{whole}" whole-file="{whole}" hidden="0" envelope-active="0" default-fade-in="0" default-fade-out="0" fade-in-active="0" fade-out-active="0" scale-amplitude="1" channels="2" master-source-0="9001" master-source-1="9002" source-0="9001" source-1="9002"/>"#
        )
    };
    let all = format!(
        r#"<Location id="9005" name="session" start="a0" end="{length}" flags="IsSessionRange" locked="0" timestamp="0"/>"#
    );
    let mut text = fs::read_to_string(session).unwrap();
    let mut replace = |old: &str, new: String| {
        assert!(text.contains(old), "no {old} in the session");
        text = text.replacen(old, &new, 1);
    };
    replace(
        "<Sources/>",
        format!("<Sources>{}{}</Sources>", source(9001, 0), source(9002, 1)),
    );
    replace(
        "<Regions/>",
        format!("<Regions>{}</Regions>", region(9003, 1)),
    );
    replace("<Locations/>", format!("<Locations>{all}</Locations>"));
    for fades in ["use-region-fades", "use-transport-fades"] {
        replace(
            &format!(r#"name="{fades}" value="1""#),
            format!(r#"name="{fades}" value="0""#),
        );
    }
    let playlist = text.find("<Playlist ").expect("the track has a playlist");
    let end = playlist + text[playlist..].find("/>").expect("it is empty");
    text.replace_range(end..end + 2, &format!(">{}</Playlist>", region(9004, 0)));
    fs::write(session, text).unwrap();
}

/// Returns the output of the CLAP offline, without its latency.
fn rendered(sound: &[f32]) -> Vec<f32> {
    let mut host = Host::active_offline(EFFECT, f64::from(RATE), 512);
    let latency = host.latency();
    let mut input = sound.to_vec();
    input.resize(sound.len() + latency, 0.0);
    host.play(input.len(), 512, &[], Some(&input))
        .split_off(latency)
}

#[test]
fn a_bounce_of_the_effect_equals_the_clap() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    install(&home);

    // Silence first, because the plugin runs for an unknown time before playback starts.
    let phrase = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo/phrase.wav");
    let mut reader = WavReader::open(phrase).unwrap();
    assert_eq!(
        (reader.spec().sample_rate, reader.spec().channels),
        (RATE, 1)
    );
    let mut sound = vec![0.0; RATE as usize];
    sound.extend(
        reader
            .samples::<i16>()
            .take(3 * RATE as usize)
            .map(|sample| f32::from(sample.unwrap()) / 32_768.0),
    );
    sound.resize(sound.len() + RATE as usize, 0.0);

    let session = folder.path().join("session");
    let script = folder.path().join("session.lua");
    fs::write(&script, SCRIPT).unwrap();
    run(ardour("luasession", &home)
        .arg(&script)
        .arg(&session)
        .args(["session", &RATE.to_string(), "Ondes FX"]));
    let spec = WavSpec {
        channels: 2,
        sample_rate: RATE,
        bits_per_sample: 32,
        sample_format: SampleFormat::Float,
    };
    let mut file = WavWriter::create(
        session.join("interchange/session/audiofiles/sound.wav"),
        spec,
    )
    .unwrap();
    sound
        .iter()
        .for_each(|sample| (0..2).for_each(|_| file.write_sample(*sample).unwrap()));
    file.finalize().unwrap();
    add_region(&session.join("session.ardour"), "sound.wav", sound.len());

    let bounced = folder.path().join("bounced.wav");
    let rate = RATE.to_string();
    run(ardour("utils/ardour7-export", &home)
        .args(["-s", &rate, "-b", "float", "-o"])
        .arg(&bounced)
        .arg(&session)
        .arg("session"));
    let mut reader = WavReader::open(&bounced).unwrap();
    assert_eq!(reader.spec().channels, 2);
    let frames: Vec<f32> = reader.samples::<f32>().map(Result::unwrap).collect();
    let left: Vec<f32> = frames.iter().step_by(2).copied().collect();
    let right: Vec<f32> = frames.iter().skip(1).step_by(2).copied().collect();
    assert_eq!((left.len(), &left), (sound.len(), &right));

    let difference = max_difference(&rendered(&sound), &left);
    println!("largest difference {difference:e}");
    assert!(
        left.iter().any(|sample| sample.abs() > 0.01),
        "the bounce is silent"
    );
    assert!(difference < 1e-4, "{difference}");
}

/// Writes a factory preset as a `.vstpreset` file into the user's preset folder; returns the
/// preset.
fn preset(home: &Path, key: &str) -> Preset {
    let preset = PresetLocation::Factory(key.into()).read().unwrap();
    let state = file::serialize(&preset).unwrap();
    let list = 48 + state.len();
    let mut bytes = [
        b"VST3\x01\0\0\0".as_slice(),
        b"1E84D1BD68105DC8AC482C228F2986D7",
    ]
    .concat();
    bytes.extend((list as u64).to_le_bytes());
    bytes.extend(&state);
    bytes.extend(b"List\x01\0\0\0Comp");
    bytes.extend([48, state.len() as u64].map(u64::to_le_bytes).concat());
    let folder = home.join(".vst3/presets/Ondes/Ondes FX");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{}.vstpreset", preset.name)), bytes).unwrap();
    preset
}

/// Ardour deadlocks if it is notified of changed values while it loads a preset.
#[test]
fn preset_values_are_loaded_shown_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    install(&home);
    let chosen = preset(&home, "shadow-bow");
    let script = folder.path().join("preset.lua");
    fs::write(&script, PRESET_SCRIPT).unwrap();
    let session = folder.path().join("session");
    let said = run(ardour("luasession", &home).arg(&script).arg(session).args([
        "session",
        "Ondes FX",
        &chosen.name,
    ]));
    // "WHEN:NAME=VALUE" with a normalised value.
    let value = |when: &str, name: &str| -> f32 {
        let start = format!("{when}:{name}=");
        let line = said.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {start} in\n{said}"))
            .parse()
            .unwrap()
    };
    assert_eq!(value("new", "Mix"), 1.0);
    let ParameterValue::Number(mix) = chosen.sound.parameters["mix"] else {
        panic!("no number")
    };
    assert!((0.1..0.9).contains(&mix));
    for when in ["loaded", "reopened"] {
        assert!((value(when, "Mix") - mix).abs() < 1e-3, "{when}: {said}");
        assert!(
            (value(when, "Macro 1") - value("new", "Macro 1")).abs() > 0.1,
            "{when}: {said}"
        );
    }
}
