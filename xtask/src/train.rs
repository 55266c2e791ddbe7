//! Makes the bundled models again: the commands that `assets/README.md` lists.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::builder::PossibleValuesParser;

use crate::process::{build, from_root, root, run};
use crate::setup::setup;

/// The bundled instruments: each has a corpus and a recipe of its name.
pub const MODELS: [&str; 3] = ["bowed", "wind", "plucked"];

/// The bundled captures.
const CAPTURES: [Capture; 3] = [
    Capture {
        circuit: "overdrive",
        size: "lstm-24",
        epochs: "40",
        pruned: "0.33",
        name: "Overdrive",
        description: "A diode overdrive pedal, drive 6, tone 5.5.",
        kind: "pedal",
        tone: "overdrive",
    },
    Capture {
        circuit: "triode",
        size: "lstm-24",
        epochs: "40",
        pruned: "0.33",
        name: "Triode",
        description: "The first valve of an amplifier, driven hard, with its tone stack.",
        kind: "preamp",
        tone: "crunch",
    },
    Capture {
        circuit: "fuzz",
        size: "lstm-32",
        epochs: "40",
        pruned: "0.5",
        name: "Fuzz",
        description: "A fuzz with two silicon transistors, fuzz 8.5.",
        kind: "pedal",
        tone: "fuzz",
    },
];

/// A capture of one of our circuits.
struct Capture {
    circuit: &'static str,
    size: &'static str,
    epochs: &'static str,
    /// Share of the units that its smaller size does without: 16 are left, which fill the widest vectors.
    pruned: &'static str,
    name: &'static str,
    description: &'static str,
    kind: &'static str,
    tone: &'static str,
}

/// An instrument with half of its channels; of each round of pruning the steps and the highest rate of learning.
struct Half {
    model: &'static str,
    rounds: &'static str,
    steps: &'static str,
    learning_rate: &'static str,
}

/// What is played into every circuit.
const SIGNAL: &str = "target/captures/signal.wav";

/// The smaller size of an instrument: half of the channels.
const HALF: &str = "half";
/// How the instruments learn to do with it.
const HALVES: [Half; 3] = [
    Half { model: "bowed", rounds: "1", steps: "1500", learning_rate: "0.002" },
    Half { model: "wind", rounds: "2", steps: "400", learning_rate: "0.001" },
    Half { model: "plucked", rounds: "1", steps: "1500", learning_rate: "0.002" },
];
/// The smaller size of a capture.
const LIGHT: &str = "light";
const LIGHT_EPOCHS: &str = "15";

const ALL: &str = "all";

/// What is learnt from.
const CORPUS: [&str; 4] = ["--seed", "1", "--minutes", "36"];
/// What is measured on: another seed, so nothing of it was learnt from.
const HELD_OUT: [&str; 4] = ["--seed", "2001", "--minutes", "2"];

/// What can be trained.
pub fn choices() -> PossibleValuesParser {
    PossibleValuesParser::new(MODELS.into_iter().chain(CAPTURES.map(|capture| capture.circuit)).chain([ALL]))
}

/// Makes one model, or all. With `steps`, a trial of that length that leaves the bundled model alone; a step of a capture is an
/// epoch.
pub fn train(name: &str, steps: Option<u64>) -> anyhow::Result<()> {
    setup(true)?;
    let program = build("ondes-training", "ondes-train")?;
    let run_it = |arguments: &[&str]| {
        println!("\n$ ondes-train {}", arguments.join(" "));
        run(Command::new(&program).current_dir(root()).args(arguments))
    };
    for model in MODELS.into_iter().filter(|&model| name == ALL || name == model) {
        for (folder, options) in [(model.to_owned(), CORPUS), (format!("{model}-held-out"), HELD_OUT)] {
            let folder = format!("target/corpora/{folder}");
            let arguments = ["corpus", model, "--out", &folder].into_iter().chain(options);
            run_it(&arguments.collect::<Vec<_>>())?;
        }
        let recipe = match steps {
            None => format!("training/recipes/{model}.toml"),
            Some(steps) => from_root(&trial(model, steps)?).to_string(),
        };
        run_it(&["fit", &recipe])?;
        for half in HALVES.iter().filter(|half| half.model == model) {
            run_it(&half.command(steps).iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    for capture in CAPTURES.iter().filter(|capture| name == ALL || name == capture.circuit) {
        for command in capture.commands(steps) {
            run_it(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

impl Half {
    /// The command that puts it into the instrument's file; with `steps`, into that of a trial.
    fn command(&self, steps: Option<u64>) -> Vec<String> {
        let Self { model, rounds, learning_rate, .. } = self;
        let corpus = format!("target/corpora/{model}");
        let held_out = format!("{corpus}-held-out");
        let (file, name, steps) = match steps {
            None => (format!("assets/models/{model}.ondes"), (*model).to_owned(), self.steps.to_owned()),
            Some(steps) => {
                let name = format!("{model}-{steps}-steps");
                (format!("target/training/{name}.ondes"), name, steps.to_string())
            }
        };
        let work = format!("target/training/{name}-{HALF}");
        let learning = [
            ["--rounds", rounds],
            ["--steps", &steps],
            ["--batch", "4"],
            ["--learning-rate", learning_rate],
            ["--data", &corpus],
            ["--held-out", &held_out],
        ];
        pruned(&file, "0.5", HALF, &work, learning.as_flattened())
    }
}

/// The command that makes a smaller size and puts it into the file of the whole.
fn pruned(file: &str, ratio: &str, size: &str, work: &str, learning: &[&str]) -> Vec<String> {
    let pruning = ["prune", file, "--structured", "--ratio", ratio];
    let keeping = ["--device", "cpu", "--threads", "1", "--work", work, "--keep-in", size, "--out", file];
    words(&[&pruning, learning, &keeping].concat())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl Capture {
    /// The commands that make it; with `epochs`, a trial of that length that leaves the bundled model alone.
    fn commands(&self, epochs: Option<u64>) -> [Vec<String>; 4] {
        let Self { circuit, size, pruned: ratio, name, description, kind, tone, .. } = self;
        let wet = format!("target/captures/{circuit}.wav");
        let (out, light_epochs, epochs) = match epochs {
            None => (format!("assets/models/{circuit}.ondes"), LIGHT_EPOCHS.to_owned(), self.epochs.to_owned()),
            Some(epochs) => {
                let out = format!("target/training/{circuit}-{epochs}-epochs.ondes");
                (out, epochs.to_string(), epochs.to_string())
            }
        };
        let work = format!("target/training/{circuit}-{LIGHT}");
        let learning = [["--epochs", &light_epochs], ["--learning-rate", "0.0025"], ["--dry", SIGNAL], ["--wet", &wet]];
        let capture = [
            ["--dry", SIGNAL],
            ["--wet", &wet],
            ["--size", size],
            ["--epochs", &epochs],
            ["--out", &out],
            ["--name", name],
            ["--description", description],
            ["--type", kind],
            ["--tone", tone],
            ["--author", "Ondes"],
            ["--licence", "MIT OR Apache-2.0"],
            ["--device", "cpu"],
            ["--threads", "1"],
        ];
        [
            words(&["capture-signal", "--out", SIGNAL]),
            words(&["circuit", circuit, "--in", SIGNAL, "--out", &wet]),
            words(&[&["capture"], capture.as_flattened()].concat()),
            pruned(&out, ratio, LIGHT, &work, learning.as_flattened()),
        ]
    }
}

/// Writes the recipe of a trial. It is as deep below the checkout as the recipe itself, so that paths in it stay right.
fn trial(model: &str, steps: u64) -> anyhow::Result<PathBuf> {
    let recipe = root().join(format!("training/recipes/{model}.toml"));
    let text = fs::read_to_string(&recipe).with_context(|| format!("{}: cannot be read", recipe.display()))?;
    let name = format!("{model}-{steps}-steps");
    let path = root().join(format!("target/training/{name}.toml"));
    fs::create_dir_all(root().join("target/training")).context("target/training: cannot be made")?;
    fs::write(&path, shortened(&text, &name, steps))
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

/// A recipe with another number of steps, which writes below `target/training`.
fn shortened(recipe: &str, name: &str, steps: u64) -> String {
    let mut text = String::new();
    for line in recipe.lines() {
        match line.split('=').next().map(str::trim) {
            Some("out") => text += &format!("out = \"../../target/training/{name}.ondes\""),
            Some("work") => text += &format!("work = \"../../target/training/{name}\""),
            Some("steps") => text += &format!("steps = {steps}"),
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
    fn a_trial_leaves_the_bundled_model_alone() {
        for model in MODELS {
            let recipe = fs::read_to_string(root().join(format!("training/recipes/{model}.toml"))).unwrap();
            let trial = shortened(&recipe, "short", 7);
            assert!(trial.lines().any(|line| line == "steps = 7"), "{trial}");
            assert!(
                trial.contains("out = \"../../target/training/short.ondes\"") && !trial.contains("assets/"),
                "{trial}"
            );
            assert_eq!(trial.lines().count(), recipe.lines().count());
            let half = HALVES.iter().find(|half| half.model == model).expect("each has a smaller size");
            let (bundled, trial) = (half.command(None).join(" "), half.command(Some(7)).join(" "));
            assert!(bundled.ends_with(&format!("--keep-in half --out assets/models/{model}.ondes")), "{bundled}");
            assert!(trial.contains("--steps 7 ") && !trial.contains("assets/"), "{trial}");
        }
    }

    #[test]
    fn recipes_read_what_we_make() {
        for model in MODELS {
            let recipe = fs::read_to_string(root().join(format!("training/recipes/{model}.toml"))).unwrap();
            for line in [
                format!("data = \"../../target/corpora/{model}\""),
                format!("held_out = \"../../target/corpora/{model}-held-out\""),
                format!("out = \"../../assets/models/{model}.ondes\""),
            ] {
                assert!(recipe.lines().any(|found| found == line), "{model}: {line}");
            }
        }
    }

    #[test]
    fn a_trial_of_a_capture_leaves_the_bundled_one_alone() {
        for capture in &CAPTURES {
            let line = |epochs| capture.commands(epochs).map(|command| command.join(" ")).join("\n");
            assert!(line(None).contains(&format!("--out assets/models/{}.ondes", capture.circuit)));
            let trial = line(Some(2));
            assert_eq!(trial.matches("--epochs 2 ").count(), 2, "{trial}");
            assert!(!trial.contains("assets/"), "{trial}");
        }
    }
}
