//! Mutated files of the formats that training reads give an error or are used.

use ondes_engine::media::{WavBits, WavWriter};
use ondes_tests::allocation::CountingAllocator;
use ondes_tests::documentation::checkout;
use ondes_tests::fuzz::{Format, Syntax, files, run};
use ondes_tests::untrained_instrument;
use ondes_torch::TorchWeights;
use ondes_training::data::store::shard_paths;
use ondes_training::data::{
    DataFormat, FeatureRate, PrepareOptions, Recordings, SoundFormat, prepare,
};
use ondes_training::tasks::instrument::config::Config;
use ondes_training::trainer::recipe::Recipe;
use ondes_training::trainer::{Checkpoint, Progress, checkpoint};
use tch::Device;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Files of each format that a normal run reads.
const INPUTS: u64 = 1_500;

#[test]
fn mutated_files_give_an_error_or_are_used() {
    run(vec![recipe(), shards(), checkpoints()], INPUTS);
}

/// Recipes of `ondes-train fit`.
fn recipe() -> Format<'static> {
    let folder = tempfile::tempdir().expect("a folder");
    let seeds = files(&checkout().join("training/recipes"), ".toml");
    Format::new("fit", Syntax::Text, seeds, move |bytes| {
        let path = folder.path().join("a.toml");
        std::fs::write(&path, bytes).expect("the file is written");
        let config = Config::read(&path).map_err(|error| format!("{error:#}"))?;
        assert!(config.trainer_options().check().is_ok() && config.data().frames > 0);
        Ok(())
    })
}

/// Shards of analysed recordings.
fn shards() -> Format<'static> {
    let folder = tempfile::tempdir().expect("a folder");
    let (sounds, dataset) = (folder.path().join("sounds"), folder.path().join("dataset"));
    std::fs::create_dir(&sounds).expect("a folder");
    let mut writer =
        WavWriter::create(sounds.join("a.wav"), 16_000, 1, WavBits::Int16).expect("a file");
    writer
        .write(&[(0..3_200)
            .map(|n| (n as f32 * 0.1).sin())
            .collect::<Vec<f32>>()])
        .expect("it is written");
    writer.finish().expect("it is written");
    let rate = FeatureRate {
        sample_rate: 16_000,
        hop: 160,
    };
    let options = PrepareOptions::new(DataFormat {
        rate,
        sound: SoundFormat::F32,
        high_pass: 0,
    });
    prepare(&[sounds], &dataset, &options).expect("it is analysed");
    let path = shard_paths(&dataset).expect("a folder").remove(0);
    let seeds = vec![std::fs::read(&path).expect("it was written")];
    Format::new("shard", Syntax::Binary, seeds, move |bytes| {
        let _kept = &folder;
        std::fs::write(&path, bytes).expect("the file is written");
        let read = || -> anyhow::Result<()> {
            let recordings = Recordings::open(&dataset)?;
            let rate = recordings.store.format().rate;
            for features in recordings.features() {
                let features = features?;
                let frames = features.frames();
                let values = [features.pitch(), features.loudness(), features.voiced()];
                assert!(values.iter().all(|values| values.len() == frames));
                assert!(features.audio().len() == frames * rate.hop);
            }
            Ok(())
        };
        read().map_err(|error| format!("{error:#}"))
    })
}

/// Checkpoints that a run resumes from.
fn checkpoints() -> Format<'static> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    let model = untrained_instrument(1);
    let weights = TorchWeights::new(model.weights(), Device::Cpu).0;
    let tensors: Vec<_> = weights
        .into_iter()
        .map(|(name, tensor)| (format!("best/{name}"), tensor))
        .collect();
    let progress = Progress {
        step: 3,
        steps: 9,
        best: Some((0.5, 2)),
        ..Progress::default()
    };
    checkpoint::write(&path, &progress, &model, &tensors).expect("it is written");
    let seeds = vec![std::fs::read(&path).expect("it was written")];
    Format::new("checkpoint", Syntax::Binary, seeds, move |bytes| {
        let _kept = &folder;
        std::fs::write(&path, bytes).expect("the file is written");
        let read = Checkpoint::read(&path).and_then(|checkpoint| checkpoint.best_model());
        read.map(drop).map_err(|error| format!("{error:#}"))
    })
}
