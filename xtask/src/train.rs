//! Trains the bundled models again, with the commands that `assets/README.md` lists.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::builder::PossibleValuesParser;

use crate::process::{build, from_root, root, run};
use crate::setup::{Purpose, setup};

/// Source of the recordings of several instruments.
const IOWA: &str = "the University of Iowa Musical Instrument Samples (public domain), one FLAC or WAV file for each note, from \
                    https://theremin.music.uiowa.edu or https://github.com/swesterfeld/spectmorph-instruments";

/// Bundled instruments; each has a recipe of its name.
const INSTRUMENTS: [Instrument; 11] = [
    Instrument {
        model: "bowed",
        sound: Sound::Corpus,
        half: Half {
            rounds: "1",
            steps: "1500",
            learning_rate: "0.002",
        },
    },
    Instrument {
        model: "wind",
        sound: Sound::Corpus,
        half: Half {
            rounds: "2",
            steps: "400",
            learning_rate: "0.001",
        },
    },
    Instrument {
        model: "plucked",
        sound: Sound::Corpus,
        half: Half {
            rounds: "1",
            steps: "1500",
            learning_rate: "0.002",
        },
    },
    Instrument::recorded(
        "saxophone",
        "alto-sax",
        "Karoryfer Weresax (CC0-1.0), https://github.com/sfzinstruments/karoryfer.weresax: the 128 single notes of the \
         condenser microphone, soft and loud, as FLAC or WAV files",
    ),
    Instrument::recorded("violin", "violin", IOWA),
    Instrument::recorded(
        "cello",
        "cello-dynamics",
        "the Karoryfer x bigcat cello (CC0-1.0), https://github.com/sfzinstruments/karoryfer-bigcat.cello: the 136 sustained \
         notes without vibrato, four dynamics, down and up bow, mixed to mono, as FLAC or WAV files",
    ),
    Instrument::recorded("clarinet", "clarinet", IOWA),
    Instrument::recorded(
        "bass-saxophone",
        "bass-sax",
        "Karoryfer Bear Sax (CC0-1.0), https://github.com/sfzinstruments/karoryfer.bear-sax: the 64 sustained notes of one \
         microphone, soft and loud, as FLAC or WAV files",
    ),
    Instrument::recorded("trumpet", "trumpet", IOWA),
    Instrument::recorded("flute", "alto-flute", IOWA),
    Instrument::recorded(
        "voice",
        "voice",
        "the singers of SpectMorph (CC0-1.0), https://github.com/swesterfeld/spectmorph-instruments: single notes in folders \
         named sven-oh, sven-ah, sven-ih, mirko-oh and mirko-ah",
    ),
];

/// Bundled instrument.
struct Instrument {
    model: &'static str,
    sound: Sound,
    /// Its smaller size.
    half: Half,
}

/// Training data of an instrument or a codec.
enum Sound {
    /// Sound of a physical model, generated.
    Corpus,
    /// Recordings, which are not ours to commit.
    Recordings {
        /// Folder below `target/recordings`.
        folder: &'static str,
        /// Source of the recordings.
        source: &'static str,
    },
}

impl Sound {
    /// Checks that there are recordings, if `model` needs any.
    fn check(&self, model: &str) -> anyhow::Result<()> {
        let Self::Recordings { folder, source } = self else {
            return Ok(());
        };
        let folder = format!("target/recordings/{folder}");
        let found = root()
            .join(&folder)
            .read_dir()
            .is_ok_and(|mut files| files.next().is_some());
        ensure!(
            found,
            "{model} is trained on recordings: put those of {source} into {folder}"
        );
        Ok(())
    }

    /// Returns the folder of the training data below `target`.
    fn folder(&self, model: &str) -> String {
        match self {
            Self::Corpus => format!("corpora/{model}"),
            Self::Recordings { folder, .. } => format!("recordings/{folder}"),
        }
    }
}

impl Instrument {
    const fn recorded(model: &'static str, folder: &'static str, source: &'static str) -> Self {
        let half = Half {
            rounds: "1",
            steps: "1000",
            learning_rate: "0.002",
        };
        Self {
            model,
            sound: Sound::Recordings { folder, source },
            half,
        }
    }
}

/// Bundled codecs; each has a recipe of its name.
const CODECS: [Codec; 3] = [
    Codec {
        model: "strings",
        sound: Sound::Recordings {
            folder: "strings",
            source: IOWA,
        },
    },
    Codec {
        model: "winds",
        sound: Sound::Recordings {
            folder: "winds",
            source: "Karoryfer Weresax (CC0-1.0) and of clarinet, bassoon, alto flute, trumpet, French horn and tenor \
                     trombone of the University of Iowa Musical Instrument Samples (public domain), a folder for each,",
        },
    },
    Codec {
        model: "voices",
        sound: Sound::Recordings {
            folder: "voices",
            source: "Debian's festvox-ru (BSD-like), every fourth one, and the sung vowels of the SpectMorph instruments \
                     (CC0-1.0), a folder for each,",
        },
    },
];

/// Bundled codec.
struct Codec {
    model: &'static str,
    sound: Sound,
}

/// Bundled generators; each has a recipe of its name, and one of its codec, `NAME-codec`.
const GENERATORS: [Generator; 1] = [Generator {
    model: "drums",
    kit: Sound::Recordings {
        folder: "kit",
        source: "the acoustic kit of Karoryfer Gogodze Phu Vol II (CC0-1.0), a folder for each part, which \
                 `ondes-train grooves --help` lists,",
    },
    minutes: "100",
}];

/// Bundled generator, trained on grooves that are played with a kit.
struct Generator {
    model: &'static str,
    kit: Sound,
    /// Length of the grooves, minutes.
    minutes: &'static str,
}

impl Generator {
    /// Returns the commands that make it; with `steps`, those of a trial that leaves the bundled
    /// model alone.
    fn commands(&self, steps: Option<u64>) -> anyhow::Result<[Vec<String>; 5]> {
        let Self {
            model,
            kit,
            minutes,
        } = self;
        let (trained, out) = match steps {
            None => (
                format!("target/training/{model}.ondes"),
                format!("assets/models/{model}.ondes"),
            ),
            Some(steps) => {
                let trial = format!("target/training/{model}-{steps}-steps");
                (format!("{trial}.ondes"), format!("{trial}-16-bits.ondes"))
            }
        };
        let kit = format!("target/{}", kit.folder(model));
        let grooves = format!("target/recordings/{model}");
        Ok([
            strings(&["grooves", &kit, "--out", &grooves, "--minutes", minutes]),
            strings(&["codec", &recipe(&format!("{model}-codec"), steps)?]),
            strings(&["prior", &recipe(model, steps)?]),
            strings(&["quantize", &trained, "--bits", "16", "--out", &out]),
            strings(&["level", &out, "--loudness", GENERATOR_LOUDNESS]),
        ])
    }
}

/// Captures of our circuits, with their knobs.
const CAPTURES: [Capture; 12] = [
    Capture::new("clean", "lstm-32", "40"),
    Capture::new("breakup", "lstm-32", "40"),
    Capture::new("crunch", "lstm-32", "40"),
    Capture::new("lead", "lstm-32", "40"),
    Capture::new("triode", "lstm-24", "24"),
    Capture::new("treble-booster", "lstm-24", "16"),
    Capture::new("overdrive", "lstm-24", "16"),
    Capture::new("warm-overdrive", "lstm-24", "16"),
    Capture::new("distortion", "lstm-24", "16"),
    Capture {
        model: "silicon-fuzz",
        ..Capture::fuzz("fuzz", "12")
    },
    Capture {
        oversampling: "2",
        ..Capture::fuzz("germanium-fuzz", "12")
    },
    Capture::fuzz("octave-fuzz", "16"),
];

/// Capture of one of our circuits, with its knobs.
struct Capture {
    circuit: &'static str,
    /// Its model, named after the circuit unless there is another one of that name.
    model: &'static str,
    size: &'static str,
    /// Takes, each with the knobs elsewhere.
    positions: &'static str,
    epochs: &'static str,
    /// Factor at which it is played by default.
    oversampling: &'static str,
}

/// An instrument's smaller size, with half of the channels: rounds of pruning, steps of training in
/// each, and highest learning rate.
struct Half {
    rounds: &'static str,
    steps: &'static str,
    learning_rate: &'static str,
}

/// Passes of a capture through its takes, and of a fuzz.
const CAPTURE_EPOCHS: &str = "50";
const FUZZ_EPOCHS: &str = "60";

/// Loudness of the instruments at a velocity of 100, LUFS.
const LOUDNESS: &str = "-25";
/// Loudness of the generators, LUFS; hard strokes leave room for no more.
const GENERATOR_LOUDNESS: &str = "-27";

/// Name of the instruments' smaller size.
const HALF: &str = "half";

const ALL: &str = "all";

/// Options of the training corpus.
const CORPUS: [&str; 4] = ["--seed", "1", "--minutes", "36"];
/// Options of the held-out corpus; the other seed keeps it disjoint from the training corpus.
const HELD_OUT: [&str; 4] = ["--seed", "2001", "--minutes", "2"];

/// Returns the names of all models that can be trained, and `all`.
pub fn choices() -> PossibleValuesParser {
    let instruments = INSTRUMENTS.iter().map(|instrument| instrument.model);
    let codecs = CODECS.iter().map(|codec| codec.model);
    let generators = GENERATORS.iter().map(|generator| generator.model);
    PossibleValuesParser::new(
        instruments
            .chain(codecs)
            .chain(generators)
            .chain(CAPTURES.iter().map(|capture| capture.model))
            .chain([ALL]),
    )
}

/// Trains one model, or all. With `steps`, runs a trial of that length that leaves the bundled
/// model alone; for captures these are epochs.
///
/// # Errors
/// The set-up, the build or a command fails, or there are no recordings.
pub fn train(name: &str, steps: Option<u64>) -> anyhow::Result<()> {
    let instruments = || {
        INSTRUMENTS
            .iter()
            .filter(|instrument| name == ALL || name == instrument.model)
    };
    let codecs = || {
        CODECS
            .iter()
            .filter(|codec| name == ALL || name == codec.model)
    };
    instruments().try_for_each(|instrument| instrument.sound.check(instrument.model))?;
    codecs().try_for_each(|codec| codec.sound.check(codec.model))?;
    let generators = || {
        GENERATORS
            .iter()
            .filter(|generator| name == ALL || name == generator.model)
    };
    generators().try_for_each(|generator| generator.kit.check(generator.model))?;
    setup(Purpose::Training)?;
    let program = build("ondes-training", "ondes-train", &["--release"])?;
    let ondes_train = |arguments: &[&str]| {
        println!("\n$ ondes-train {}", arguments.join(" "));
        run(Command::new(&program).current_dir(root()).args(arguments))
    };
    for instrument in instruments() {
        let model = instrument.model;
        if let Sound::Corpus = instrument.sound {
            for (folder, options) in [
                (model.to_owned(), CORPUS),
                (format!("{model}-held-out"), HELD_OUT),
            ] {
                let folder = format!("target/corpora/{folder}");
                let arguments = ["corpus", model, "--out", &folder]
                    .into_iter()
                    .chain(options);
                ondes_train(&arguments.collect::<Vec<_>>())?;
            }
        }
        ondes_train(&["fit", &recipe(model, steps)?])?;
        let further = [
            Some(instrument.half_command(steps)),
            instrument.audition_command(steps),
            Some(instrument.level_command(steps)),
        ];
        for command in further.into_iter().flatten() {
            ondes_train(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    for codec in codecs() {
        ondes_train(&["codec", &recipe(codec.model, steps)?])?;
    }
    for generator in generators() {
        for command in generator.commands(steps)? {
            ondes_train(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    for capture in CAPTURES
        .iter()
        .filter(|capture| name == ALL || name == capture.model)
    {
        for command in capture.commands(steps) {
            ondes_train(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// Returns the recipe of an instrument, a codec or a generator; with `steps`, that of a trial.
fn recipe(model: &str, steps: Option<u64>) -> anyhow::Result<String> {
    match steps {
        None => Ok(format!("training/recipes/{model}.toml")),
        Some(steps) => Ok(from_root(&trial(model, steps)?).to_string()),
    }
}

impl Instrument {
    /// Returns the name of a run, and its model file; with `steps`, those of a trial.
    fn run(&self, steps: Option<u64>) -> (String, String) {
        let model = self.model;
        match steps {
            None => (model.to_owned(), format!("assets/models/{model}.ondes")),
            Some(steps) => {
                let name = format!("{model}-{steps}-steps");
                let file = format!("target/training/{name}.ondes");
                (name, file)
            }
        }
    }

    /// Returns the command that makes an instrument of recordings play as those.
    fn audition_command(&self, steps: Option<u64>) -> Option<Vec<String>> {
        let Sound::Recordings { folder, .. } = self.sound else {
            return None;
        };
        let (_, file) = self.run(steps);
        let recordings = format!("target/recordings/{folder}");
        let recipe = format!("training/recipes/{}.toml", self.model);
        Some(strings(&[
            "audition",
            &file,
            "--recordings",
            &recordings,
            "--recipe",
            &recipe,
            "--update",
        ]))
    }

    /// Returns the command that makes it as loud as the others.
    fn level_command(&self, steps: Option<u64>) -> Vec<String> {
        let (_, file) = self.run(steps);
        strings(&["level", &file, "--loudness", LOUDNESS])
    }

    /// Returns the command that adds the smaller size to the instrument's file; with `steps`, to
    /// the trial's file.
    fn half_command(&self, steps: Option<u64>) -> Vec<String> {
        let Self { model, half, .. } = self;
        let (name, file) = self.run(steps);
        let steps = steps.map_or(half.steps.to_owned(), |steps| steps.to_string());
        let work = format!("target/training/{name}-{HALF}");
        let recipe = format!("training/recipes/{model}.toml");
        let learning = [
            ["--rounds", half.rounds],
            ["--steps", &steps],
            ["--batch", "4"],
            ["--learning-rate", half.learning_rate],
            ["--data", &recipe],
        ];
        prune_command(&file, "0.5", HALF, &work, learning.as_flattened())
    }
}

/// Returns the command that prunes a model and adds the result to its file as a smaller size.
fn prune_command(
    file: &str,
    ratio: &str,
    size: &str,
    work: &str,
    learning: &[&str],
) -> Vec<String> {
    let input = ["prune", file, "--structured", "--ratio", ratio];
    let output = [
        "--device",
        "cpu",
        "--threads",
        "1",
        "--work",
        work,
        "--add-variant",
        size,
        "--out",
        file,
    ];
    strings(&[&input, learning, &output].concat())
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl Capture {
    const fn new(circuit: &'static str, size: &'static str, positions: &'static str) -> Self {
        Self {
            circuit,
            model: circuit,
            size,
            positions,
            epochs: CAPTURE_EPOCHS,
            oversampling: "4",
        }
    }

    const fn fuzz(circuit: &'static str, positions: &'static str) -> Self {
        Self {
            epochs: FUZZ_EPOCHS,
            ..Self::new(circuit, "lstm-24", positions)
        }
    }

    /// Returns the commands that make it; with `epochs`, those of a trial that leaves the bundled
    /// model alone.
    fn commands(&self, epochs: Option<u64>) -> [Vec<String>; 2] {
        let Self {
            circuit,
            model,
            size,
            positions,
            epochs: all,
            oversampling,
        } = self;
        let folder = format!("target/captures/{circuit}");
        let recipe = format!("{folder}/{circuit}.toml");
        let (out, epochs) = match epochs {
            None => (format!("assets/models/{model}.ondes"), (*all).to_owned()),
            Some(epochs) => (
                format!("target/training/{model}-{epochs}-epochs.ondes"),
                epochs.to_string(),
            ),
        };
        let name = model.replace('-', " ");
        let name = name[..1].to_uppercase() + &name[1..];
        let capture = [
            ["--size", size],
            ["--epochs", &epochs],
            ["--learning-rate", "0.004"],
            ["--oversampling", oversampling],
            ["--out", &out],
            ["--name", &name],
            ["--author", "Ondes"],
            ["--licence", "MIT OR Apache-2.0"],
            ["--device", "cpu"],
            ["--threads", "1"],
        ];
        [
            strings(&[
                "circuit",
                circuit,
                "--recipe",
                &folder,
                "--positions",
                positions,
            ]),
            // The clocks of a simulation cannot drift; its distortion can look like it.
            strings(&[&["capture", &recipe, "--force"], capture.as_flattened()].concat()),
        ]
    }
}

/// Writes the recipe of a trial. It lies as deep in the checkout as the original, so that its
/// relative paths stay valid.
fn trial(model: &str, steps: u64) -> anyhow::Result<PathBuf> {
    let recipe = root().join(format!("training/recipes/{model}.toml"));
    let text = fs::read_to_string(&recipe)
        .with_context(|| format!("{}: cannot be read", recipe.display()))?;
    let name = format!("{model}-{steps}-steps");
    let path = root().join(format!("target/training/{name}.toml"));
    fs::create_dir_all(root().join("target/training"))
        .context("target/training: cannot be made")?;
    fs::write(&path, shortened(&text, &name, steps))
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

/// Returns `recipe` with another number of steps and its output below `target/training`.
fn shortened(recipe: &str, name: &str, steps: u64) -> String {
    let mut text = String::new();
    for line in recipe.lines() {
        match line.split('=').next().map(str::trim) {
            Some("out") => text += &format!("out = \"../../target/training/{name}.ondes\""),
            Some("work") => text += &format!("work = \"../../target/training/{name}\""),
            Some("steps") => text += &format!("steps = {steps}"),
            // That of the trial, too.
            Some("codec") => text += &line.replace(".ondes\"", &format!("-{steps}-steps.ondes\"")),
            _ => text += line,
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_leaves_the_bundled_instrument_alone() {
        for instrument in &INSTRUMENTS {
            let model = instrument.model;
            let recipe =
                fs::read_to_string(root().join(format!("training/recipes/{model}.toml"))).unwrap();
            let trial = shortened(&recipe, "short", 7);
            assert!(trial.lines().any(|line| line == "steps = 7"), "{trial}");
            assert!(
                trial.contains("out = \"../../target/training/short.ondes\"")
                    && !trial.contains("assets/"),
                "{trial}"
            );
            assert_eq!(trial.lines().count(), recipe.lines().count());
            let (bundled, trial) = (
                instrument.half_command(None).join(" "),
                instrument.half_command(Some(7)).join(" "),
            );
            assert!(
                bundled.ends_with(&format!(
                    "--add-variant half --out assets/models/{model}.ondes"
                )),
                "{bundled}"
            );
            assert!(
                trial.contains("--steps 7 ") && !trial.contains("assets/"),
                "{trial}"
            );
        }
    }

    #[test]
    fn recipes_read_the_sound_that_there_is() {
        let instruments = INSTRUMENTS
            .iter()
            .map(|instrument| (instrument.model, &instrument.sound));
        for (model, sound) in
            instruments.chain(CODECS.iter().map(|codec| (codec.model, &codec.sound)))
        {
            let recipe =
                fs::read_to_string(root().join(format!("training/recipes/{model}.toml"))).unwrap();
            let folder = sound.folder(model);
            for text in [
                format!("data = \"../../target/{folder}\"\n"),
                format!("out = \"../../assets/models/{model}.ondes\"\n"),
            ] {
                assert!(recipe.contains(&text), "{model}: {text}");
            }
            if let Sound::Corpus = sound {
                assert!(
                    recipe.contains(&format!("held_out = \"../../target/{folder}-held-out\"\n")),
                    "{model}"
                );
            }
        }
    }

    #[test]
    fn recipes_of_generators_belong_together() {
        for generator @ Generator { model, .. } in &GENERATORS {
            let read = |name: &str| {
                fs::read_to_string(root().join(format!("training/recipes/{name}.toml"))).unwrap()
            };
            let (codec, prior) = (read(&format!("{model}-codec")), read(model));
            let [grooves, _, _, quantize, _] = generator.commands(None).unwrap();
            let data = format!("data = \"../../{}\"\n", grooves[3]);
            assert!(codec.contains(&data) && prior.contains(&data), "{model}");
            let trained = codec
                .lines()
                .find_map(|line| line.strip_prefix("out = "))
                .unwrap();
            assert!(
                prior.contains(&format!("codec = {trained}\n")),
                "{model}: {trained}"
            );
            assert!(
                prior.contains(&format!("out = \"../../{}\"\n", quantize[1])),
                "{model}"
            );
        }
    }

    #[test]
    fn a_trial_leaves_the_bundled_capture_alone() {
        for capture in &CAPTURES {
            let line = |epochs| {
                capture
                    .commands(epochs)
                    .map(|command| command.join(" "))
                    .join("\n")
            };
            assert!(line(None).contains(&format!("--out assets/models/{}.ondes", capture.model)));
            let trial = line(Some(2));
            assert_eq!(trial.matches("--epochs 2 ").count(), 1, "{trial}");
            assert!(!trial.contains("assets/"), "{trial}");
        }
    }
}
