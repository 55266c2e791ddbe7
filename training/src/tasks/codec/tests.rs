use ondes_engine::dsp::level::peak;
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::Model;
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::filter_bank::FilterBank;
use super::loss::{CodecLoss, LatentDistribution};
use super::*;
use crate::tasks::capture::measure::play_method;
use crate::trainer::recipe::Recipe;
use crate::trainer::{Length, Task, Trainer, TrainerOptions};

/// Writes a recipe of a small codec for three recordings of tones, and returns the recipe.
fn recipe(folder: &std::path::Path, more: &str) -> CodecConfig {
    let sounds = folder.join("sounds");
    std::fs::create_dir_all(&sounds).expect("a folder");
    for (index, frequency) in [220.0, 330.0, 440.0].into_iter().enumerate() {
        let path = sounds.join(format!("{index}.wav"));
        let mut writer = WavWriter::create(path, 16_000, 1, WavBits::Int16).expect("a file");
        writer
            .write(&[tone(frequency, 24_000)])
            .expect("it is written");
        writer.finish().expect("it is written");
    }
    let path = folder.join("a.toml");
    let text = format!(
        "name = \"a\"\ndata = \"sounds\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
         bands = 4\nchannels = 4\nratios = [2, 4]\nlatents = 3\nnoise_bands = 3\nharmonics = 8\n[training]\nbatch = 2\n\
         clip_seconds = 0.3\nthreads = 1\ndevice = \"cpu\"\nwarmup_steps = 5\nvalidate_every = 20\n{more}"
    );
    std::fs::write(&path, text).expect("it is written");
    CodecConfig::read(&path).expect("a recipe")
}

/// A tone of 16 kHz that swells and fades four times a second.
fn tone(frequency: f32, samples: usize) -> Vec<f32> {
    let wave = |hz: f32, n: usize| (std::f32::consts::TAU * hz * n as f32 / 16_000.0).sin();
    (0..samples)
        .map(|n| 0.3 * wave(frequency, n) * wave(2.0, n).powi(2))
        .collect()
}

fn noise(samples: usize) -> Vec<f32> {
    let mut random = ondes_engine::random::Lcg::new(3);
    (0..samples).map(|_| random.next_signed() as f32).collect()
}

fn power(sound: &[f32]) -> f64 {
    sound.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// Splits a sound into bands, `[1, band, frame]`; the frames before it are silent.
fn split(bank: FilterBank, sound: &[f32]) -> Tensor {
    let weight =
        Tensor::from_slice(&bank.analysis()).view([bank.bands as i64, 1, bank.taps() as i64]);
    let sound = Tensor::from_slice(sound)
        .view([1, 1, -1])
        .constant_pad_nd([bank.delay() as i64, 0]);
    sound.conv1d(&weight, None::<Tensor>, [bank.bands as i64], [0], [1], 1)
}

#[test]
fn filter_banks_lose_little_and_separate_bands() {
    for bands in [4, 16, 64] {
        let bank = FilterBank { bands };
        let sound = noise(64 * bands);
        let (bands_i, frames) = (bands as i64, bank.synthesis_frames() as i64);
        let weight = Tensor::from_slice(&bank.synthesis()).view([bands_i, bands_i, frames]);
        let joined = split(bank, &sound).constant_pad_nd([frames - 1, 0]).conv1d(
            &weight,
            None::<Tensor>,
            [1],
            [0],
            [1],
            1,
        );
        let joined =
            Vec::<f32>::try_from(joined.transpose(1, 2).contiguous().view(-1)).expect("numbers");
        let error: Vec<f32> = joined[bank.delay()..]
            .iter()
            .zip(&sound)
            .map(|(a, b)| a - b)
            .collect();
        let loss_db = 10.0 * (power(&error) / power(&sound)).log10();
        assert!(loss_db < -45.0, "{bands}: {loss_db} dB");

        // A sound in the middle of band 1 leaks 30 dB below into its neighbours, and not beyond.
        let frequency = 1.5 * std::f32::consts::PI / bands as f32;
        let sound: Vec<f32> = (0..64 * bands)
            .map(|n| (frequency * n as f32).sin())
            .collect();
        let levels = split(bank, &sound).narrow(2, 16, 48).square().mean_dim(
            [2_i64].as_slice(),
            false,
            Kind::Float,
        );
        let levels = Vec::<f32>::try_from(levels.view(-1)).expect("numbers");
        assert!(
            levels[0] + levels[2] < 3e-3 * levels[1],
            "{bands}: {levels:?}"
        );
        assert!(
            levels[3..].iter().all(|level| *level < 1e-7 * levels[1]),
            "{bands}: {levels:?}"
        );
    }
}

/// Returns a model whose weights are larger than untrained ones, so that nothing is near zero.
fn lively(model: &Model) -> Model {
    let mut weights = model.weights().clone();
    let changed: Vec<_> = weights
        .iter()
        .filter(|(name, _)| !network::FIXED.iter().any(|fixed| name.starts_with(fixed)))
        .map(|(name, weight)| {
            let floats = weight.floats();
            let values = floats.iter().zip(noise(floats.len()));
            let values = values
                .map(|(weight, noise)| 1.5 * weight + 0.02 * noise)
                .collect();
            (
                name.to_owned(),
                ondes_engine::model::Tensor::new(weight.shape(), values),
            )
        })
        .collect();
    for (name, weight) in changed {
        weights.insert(name, weight);
    }
    Model::new(model.header().clone(), weights).expect("a model")
}

fn played(model: &Model, sound: &[f32]) -> Vec<f32> {
    play_method(model, "forward", &[], sound).expect("it plays")
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f64) {
    let error: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
    let relative = (power(&error) / power(expected)).sqrt();
    assert!(relative < tolerance && peak(expected) > 1e-3, "{relative}");
}

#[test]
fn information_is_counted_above_what_is_free() {
    // Kullback-Leibler divergence from a normal distribution: none for that itself, m²/2 for a mean
    // of m.
    let encoded = Tensor::from_slice(&[0.0_f32, 2.0, 0.0, 0.0])
        .view([1, 4, 1])
        .repeat([3, 1, 5]);
    let latents = LatentDistribution::new(&encoded);
    assert_eq!(
        Vec::<f32>::try_from(latents.nats().view(-1)).expect("numbers"),
        [0.0, 2.0, 0.0, 2.0, 0.0, 2.0]
    );
    let drawn = latents.drawn(&Tensor::full([3, 2, 5], 0.5, (Kind::Float, Device::Cpu)));
    assert_eq!(drawn, &latents.mean + 0.5);

    let config = config::CodecLossConfig {
        information: 0.1,
        free_nats: 0.25,
        ..Default::default()
    };
    let sound = Tensor::from_slice(&noise(4_096)).view([1, -1]);
    let prepared = CodecLoss::new(config, 16_000, &[], Device::Cpu);
    let mut loss = prepared.between(&sound, &sound);
    prepared.add_latents(&mut loss, &latents);
    let loss = loss.total;
    assert!(
        (loss.double_value(&[]) - 0.1 * 2.25).abs() < 1e-6,
        "{loss:?}"
    );
}

#[test]
fn codecs_play_natively_as_in_training() {
    let folder = tempfile::tempdir().expect("a folder");
    // Phases drift apart by the rounding of the pitch.
    for (harmonics, tolerance) in [(0, 2e-5), (8, 2e-3)] {
        let network = config::CodecNetworkConfig {
            harmonics,
            ..small()
        };
        let config = CodecConfig {
            network,
            ..recipe(folder.path(), "")
        };
        let model = lively(&network::untrained(&config).expect("a codec"));
        let sound = tone(220.0, 6_400);
        let graph =
            TorchGraph::new(model.method("forward").expect("a method"), 16_000).expect("it fits");
        let weights = TorchWeights::new(model.weights(), Device::Cpu);
        let output = graph
            .run(&weights, &[Tensor::from_slice(&sound).view([1, 1, -1])], 0)
            .remove(0);
        assert_close(
            &played(&model, &sound),
            &Vec::<f32>::try_from(output.view(-1)).expect("numbers"),
            tolerance,
        );
    }
}

#[test]
fn finished_codecs_sound_the_same_and_order_their_latents() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(folder.path(), "");
    let untrained = network::untrained(&config).expect("a codec");
    let model = lively(&untrained);
    let task = CodecTask::new(config).expect("a task");
    let finished = task.finished(&model).expect("latents");
    let sound = tone(330.0, 6_400);
    // What the decoder takes for the latents before the first differs.
    assert_close(
        &played(&finished, &sound)[3_200..],
        &played(&model, &sound)[3_200..],
        1e-4,
    );
    assert!(
        finished
            .weights()
            .iter()
            .all(|(name, _)| !name.starts_with(network::DISTRIBUTION))
    );

    let again = principal::in_training(&finished, &untrained).expect("the same sizes");
    assert_close(&played(&again, &sound), &played(&finished, &sound), 1e-6);
    let weights = TorchWeights::new(again.weights(), Device::Cpu);
    let latents = task
        .latents(&weights, 0..principal::BATCHES, Device::Cpu, 2)
        .expect("latents");
    let (mean, variance) = (
        latents.mean_dim(1, false, Kind::Float),
        latents.var_dim(1, true, false),
    );
    assert!(mean.abs().max().double_value(&[]) < 1e-4);
    let variance = Vec::<f32>::try_from(variance).expect("numbers");
    assert!(
        variance.is_sorted_by(|a, b| a >= b) && variance[0] > 1.1 * variance[2],
        "{variance:?}"
    );

    let other = CodecConfig {
        network: config::CodecNetworkConfig {
            latents: 4,
            ..small()
        },
        ..recipe(folder.path(), "")
    };
    let other = network::untrained(&other).expect("a codec");
    let error = principal::in_training(&finished, &other)
        .expect_err("other sizes")
        .to_string();
    assert!(error.contains("other sizes"), "{error}");
}

#[test]
fn sizes_are_those_of_the_recipe() {
    let folder = tempfile::tempdir().expect("a folder");
    for harmonics in [0, 8] {
        let mut config = recipe(folder.path(), "");
        config.network.harmonics = harmonics;
        let codec = network::untrained(&config).expect("a codec");
        assert_eq!(network::sizes(&codec).expect("a codec"), config.network);
    }
}

/// Trains up to a step.
fn trained(config: &CodecConfig, steps: u64, resumed: bool) -> (Trainer<CodecTask>, Model) {
    let options = TrainerOptions {
        length: Length::Steps(steps),
        ..config.trainer_options()
    };
    let mut trainer =
        Trainer::new(CodecTask::new(config.clone()).expect("a task"), options).expect("a trainer");
    if resumed {
        trainer.resume().expect("a checkpoint");
    }
    trainer.run().expect("it trains");
    let model = trainer.model().expect("a model");
    (trainer, model)
}

fn small() -> config::CodecNetworkConfig {
    let folder = tempfile::tempdir().expect("a folder");
    recipe(folder.path(), "").network
}

#[test]
fn codecs_learn_and_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = recipe(
        folder.path(),
        "learning_rate = 0.005\n[schedule]\nname = \"constant\"\n",
    );
    let run = |steps, resumed| {
        let (trainer, model) = trained(&config, steps, resumed);
        trainer.task().finished(&model).expect("a codec")
    };
    let finished = run(60, false);
    assert_eq!(
        finished.method("decode").expect("a method").inputs[0].channels,
        4,
        "three latents and the pitch"
    );
    let metrics = std::fs::read_to_string(folder.path().join("work/metrics.jsonl")).expect("a log");
    let losses: Vec<f64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter_map(|line| line["loss"].as_f64())
        .collect();
    assert!(
        losses.last() < losses.first().map(|first| 0.7 * first).as_ref(),
        "{losses:?}"
    );
    assert_ne!(run(30, false).weights(), finished.weights());
    assert_eq!(
        run(60, true).weights(),
        finished.weights(),
        "a run that goes on is the same"
    );

    // A trained codec is a better start than none.
    ondes_engine::model::file::write(&finished, &folder.path().join("a.ondes"))
        .expect("it is written");
    let mut further = recipe(folder.path(), "");
    let start = |config: CodecConfig| {
        let mut task = CodecTask::new(config).expect("a task");
        let weights = TorchWeights::new(task.initial().weights(), Device::Cpu);
        task.validate(&weights, Device::Cpu, usize::MAX)
            .expect("a loss")
            .loss
    };
    let untrained = start(further.clone());
    further.from = Some(folder.path().join("a.ondes"));
    assert!(start(further) < 0.8 * untrained);
}

#[test]
fn loaders_cut_the_crops_of_each_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let batches = |workers: usize, steps: std::ops::Range<u64>| -> Vec<[Tensor; 2]> {
        let config = recipe(
            folder.path(),
            &format!("[loader]\nworkers = {workers}\n[augmentation]\ngain = 6.0\n"),
        );
        let mut task = CodecTask::new(config).expect("a task");
        let mut tensors = |step| {
            let [first, second] = [0..1, 1..2].map(|rows| {
                task.batch(step, rows, Device::Cpu)
                    .expect("a batch")
                    .tensors()
            });
            std::array::from_fn(|index| Tensor::cat(&[&first[index], &second[index]], 0))
        };
        steps.map(&mut tensors).collect()
    };
    let all = batches(1, 0..30);
    assert!(
        all == batches(0, 0..30) && all == batches(3, 0..30) && all[11..] == batches(3, 11..30)
    );
    let config = recipe(folder.path(), "[augmentation]\ngain = 6.0\n");
    let task = CodecTask::new(config).expect("a task");
    for (step, [sound, _]) in all.iter().enumerate() {
        assert_eq!(
            *sound,
            task.training_sound(step as u64, 0..2, Device::Cpu)
                .expect("crops"),
            "step {step}"
        );
    }
}
