//! Mutated files of the formats that the engine reads give an error, or something that plays.

use std::path::Path;

use ondes_engine::Kernels;
use ondes_engine::chain::ImpulseFile;
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::instrument::{KeyTuning, MidiFile, MidiSelection};
use ondes_engine::media::Decoder;
use ondes_engine::model::import::{self, rave};
use ondes_engine::model::{Header, Kind, Model, ModelError, ModelFileError, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_tests::allocation::CountingAllocator;
use ondes_tests::audio_models::{codec_methods, effect_methods, untrained_codec};
use ondes_tests::conformance::folder;
use ondes_tests::documentation::checkout;
use ondes_tests::fuzz::{Format, Syntax, files, run};
use ondes_tests::rave::{Generation, Recipe};
use ondes_tests::torchscript::models;
use ondes_tests::{header, instrument_methods, int8_model, random_weights, untrained_instrument};

use crate::captures::generate::Generator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Files of each format that a normal run reads.
const INPUTS: u64 = 1_500;
/// Samples that a model plays once it was read.
const PLAYED: usize = 600;

#[test]
fn mutated_files_give_an_error_or_play() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ts");
    run(
        vec![
            model(),
            graph(),
            capture(),
            archive(&path),
            midi(),
            scale(),
            keyboard_map(),
            recording(),
            cabinet(),
        ],
        INPUTS,
    );
}

/// Returns the message that a user sees.
fn message(error: ModelError) -> String {
    ModelFileError {
        path: "a".into(),
        error,
    }
    .to_string()
}

/// Plays a short sound and a note. Huge weights make it NaN, which a session silences.
fn play(model: &Model) -> Result<(), String> {
    let options = PipelineOptions {
        voices: Some(2),
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(model, &options).map_err(|error| error.to_string())?;
    let input: Vec<f32> = (0..PLAYED).map(|n| 0.5 * (n as f32 * 0.05).sin()).collect();
    let mut sound = vec![f32::NAN; PLAYED];
    if model.header().kind == Kind::Instrument {
        pipeline
            .handle(ondes_tests::random_events(1, PLAYED as u64)[0])
            .map_err(|error| error.to_string())?;
        pipeline.process(&[], &mut sound);
    } else {
        pipeline.process(&input, &mut sound);
    }
    Ok(())
}

/// Model files: a file that is read is one that was written, since there is a checksum.
fn model() -> Format<'static> {
    let small = [
        untrained_instrument(1),
        int8_model(&untrained_instrument(1)),
        untrained_codec(1),
    ];
    let mut seeds: Vec<Vec<u8>> = small
        .iter()
        .map(|model| file::serialize(model).expect("a model"))
        .collect();
    let assets = checkout().join("assets/models");
    seeds.extend(
        ["fuzz.ondes", "overdrive.ondes"]
            .into_iter()
            .flat_map(|name| files(&assets, name)),
    );
    let written: Vec<Model> = seeds
        .iter()
        .map(|seed| file::parse(seed).expect("a model"))
        .collect();
    Format::new("ondes", Syntax::Binary, seeds, move |bytes| {
        let model = file::parse(bytes).map_err(message)?;
        assert!(written.contains(&model), "a damaged model is read");
        Ok(())
    })
}

/// Headers of model files whose checksum an attacker has corrected.
fn graph() -> Format<'static> {
    let parts = [
        (Kind::Instrument, instrument_methods()),
        (Kind::Effect, effect_methods()),
        (Kind::Codec, codec_methods()),
    ];
    let seeds = parts
        .clone()
        .map(|(kind, methods)| serde_json::to_vec(&header(kind, methods)).expect("JSON"));
    let weights = parts.map(|(_, methods)| random_weights(&methods, 1));
    Format::new("header", Syntax::Json, seeds.into(), move |bytes| {
        let header = serde_json::from_slice(bytes);
        let header: Header =
            header.map_err(|error| message(ModelError::Header(error.to_string())))?;
        let built = weights
            .iter()
            .map(|weights| Model::new(header.clone(), weights.clone()));
        let model = built
            .reduce(|one, other| one.or(other))
            .expect("there are weights");
        play(&model.map_err(message)?)
    })
}

/// Captures of other programs.
fn capture() -> Format<'static> {
    let kinds: [fn(&mut Generator) -> serde_json::Value; 8] = [
        |generator| generator.wavenet(1),
        |generator| generator.convnet(),
        |generator| generator.lstm_of(4, 2),
        |generator| generator.linear(20),
        |generator| generator.container(2),
        Generator::keras,
        Generator::proteus,
        Generator::any,
    ];
    let generated = (0..6).flat_map(|seed| {
        kinds.map(|make| make(&mut Generator::new(seed)).to_string().into_bytes())
    });
    Format::new("capture", Syntax::Json, generated.collect(), |bytes| {
        let imported = import::parse(bytes).map_err(message)?;
        assert!(imported.notes.iter().all(|note| !note.contains('\n')));
        play(&imported.model)
    })
}

/// RAVE exports, which are imported without libtorch, and other TorchScript archives.
fn archive(path: &Path) -> Format<'_> {
    let mut seeds: Vec<Vec<u8>> = vec![
        models::neutone(true).bytes(),
        models::codec(4, 512, true).bytes(),
    ];
    for generation in [Generation::V1, Generation::V2, Generation::V3] {
        Recipe {
            generation,
            noise: true,
            ..Recipe::v2().small()
        }
        .export(1)
        .0
        .save(path);
        seeds.push(std::fs::read(path).expect("an export"));
    }
    Recipe::brave().small().export(1).0.save(path);
    seeds.push(std::fs::read(path).expect("an export"));
    Format::new("archive", Syntax::Zip, seeds, move |bytes| {
        std::fs::write(path, bytes).expect("the file is written");
        // Only programs and damaged model files are refused here: nothing runs unasked.
        assert!(file::open(path).is_err());
        let imported = rave::import(path, None).map_err(|error| error.to_string())?;
        play(&imported.model)
    })
}

fn midi() -> Format<'static> {
    let mut seeds = files(&checkout().join("assets/demo"), ".mid");
    seeds.extend(files(&checkout().join("tests/conformance/midi"), ".mid"));
    Format::new("midi", Syntax::Binary, seeds, |bytes| {
        let file = MidiFile::parse(bytes).map_err(|error| error.to_string())?;
        let part = MidiSelection::default();
        let (first, last) = file
            .events_at(48_000.0, part)
            .fold((0, 0), |(count, last), event| {
                assert!(event.at >= last, "events are in order");
                (count + 1, event.at)
            });
        assert!(
            file.notes(part) <= first && file.key_range(part).is_none_or(|(low, high)| low <= high),
            "{last}"
        );
        Ok(())
    })
}

const SCALE: &[u8] =
    b"! just.scl\n!\nJust intonation\n 7\n!\n 9/8\n 386.31 cents\n 4/3\n 3/2\n 5/3\n 15/8\n 2\n";
const KEYBOARD_MAP: &[u8] = b"! white.kbm\n7\n0\n127\n60\n69\n440.0\n7\n0\n1\nx\n2\n3\n4\n5\n";

fn check_tuning(tuning: KeyTuning) {
    assert!(
        (0..128)
            .filter_map(|key| tuning.pitch(key))
            .all(f32::is_finite),
        "not a pitch"
    );
}

fn scale() -> Format<'static> {
    Format::new("scale", Syntax::Text, vec![SCALE.to_vec()], |bytes| {
        KeyTuning::parse(bytes, Some(KEYBOARD_MAP))
            .map(check_tuning)
            .map_err(|error| error.to_string())
    })
}

fn keyboard_map() -> Format<'static> {
    Format::new(
        "keyboard_map",
        Syntax::Text,
        vec![KEYBOARD_MAP.to_vec()],
        |bytes| {
            KeyTuning::parse(SCALE, Some(bytes))
                .map(check_tuning)
                .map_err(|error| error.to_string())
        },
    )
}

/// Recordings, converted to another rate as for a model.
fn recording() -> Format<'static> {
    // Names of containers, and of those WAV files that are read in ways of their own.
    let endings = ".aifc .aiff .au .caf .flac .m4a .mkv .mov .mp3 .mp4 .ogg .w64 .webm dts.wav ext24in32.wav mp3.wav \
                   pcm24_low.wav rf64.wav rifx.wav";
    let folder = folder("audio");
    let seeds = endings
        .split_whitespace()
        .flat_map(|ending| files(&folder, ending))
        .collect();
    Format::new("recording", Syntax::Binary, seeds, |bytes| {
        let mut decoder =
            Decoder::from_bytes("a.wav", bytes.to_vec()).map_err(|error| error.to_string())?;
        let resampler = StreamResampler::new(decoder.sample_rate(), 48_000);
        let mut resampler = resampler.map_err(|error| error.to_string())?;
        let check = |sound: &[f32]| {
            assert!(
                sound.iter().all(|sample| sample.is_finite()),
                "not a number"
            )
        };
        let mut block = Vec::new();
        while decoder
            .next(&mut block)
            .map_err(|error| error.to_string())?
        {
            assert!(
                block
                    .iter()
                    .all(|channel| channel.len() == block[0].len() && !channel.is_empty())
            );
            resampler.push(&block[0], check);
        }
        resampler.finish(check);
        Ok(())
    })
}

fn cabinet() -> Format<'static> {
    let seeds = files(&checkout().join("assets/cabinets"), ".wav");
    Format::new("cabinet", Syntax::Binary, seeds, |bytes| {
        let file =
            ImpulseFile::parse("a.wav", bytes.to_vec()).map_err(|error| error.to_string())?;
        let cabinet = Cabinet::new(&file.response, 48_000, Kernels::detect());
        let mut cabinet = cabinet.map_err(|error| error.to_string())?;
        let (mut left, mut right) = ([0.0; 64], [0.0; 64]);
        cabinet.process([&[0.5; 64]; 2], [&mut left, &mut right], false);
        assert!(
            left.iter().chain(&right).all(|sample| sample.is_finite()),
            "it plays NaN"
        );
        Ok(())
    })
}
