use std::net::TcpListener;
use std::path::Path;
use std::rc::Rc;

use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::Weights;
use tch::{Device, Kind, Tensor};

use super::*;
use crate::optimizer::OptimizerConfig;
use crate::tasks::capture::architecture::Architecture;
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::task::{CaptureOptions, CaptureTask};
use crate::tasks::codec::{CodecConfig, CodecTask};
use crate::tasks::generator::{PriorConfig, PriorTask};
use crate::tasks::instrument::config::Config;
use crate::tasks::instrument::task::InstrumentTask;
use crate::trainer::recipe::Recipe;
use crate::trainer::{Length, RunFiles, Task, Trainer, TrainerOptions};

/// Runs a closure as each process of a group, here on threads, and returns the results by rank.
fn together<R: Send>(size: usize, run: impl Fn(Rc<Group>) -> R + Sync) -> Vec<R> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let host = || "127.0.0.1".to_owned();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                let run = &run;
                scope.spawn(move || {
                    let (host, is_served) = (host(), false);
                    let membership = Membership {
                        rank,
                        size,
                        local_rank: rank,
                        host,
                        port,
                        is_served,
                        restarts: 0,
                    };
                    run(Rc::new(Group::join(&membership).expect("they meet")))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"))
            .collect()
    })
}

#[test]
fn processes_add_up_and_hear_the_first() {
    let results = together(3, |group| {
        let mut tensor = Tensor::from_slice(&[1.0_f32, 10.0]) * (group.rank() as f64 + 1.0);
        group.sum(&mut tensor).expect("all are there");
        let bytes = group
            .bytes_of_first(if group.rank() == 0 { b"first" } else { b"no" })
            .expect("all are there");
        let sums = group
            .sums(&[0.5, group.rank() as f64])
            .expect("all are there");
        (
            Vec::<f32>::try_from(&tensor).expect("numbers"),
            bytes,
            sums,
            group.rows(7),
        )
    });
    for (tensor, bytes, sums, _) in &results {
        assert_eq!(
            (tensor.as_slice(), bytes.as_slice(), sums.as_slice()),
            (&[6.0, 60.0][..], &b"first"[..], &[1.5, 3.0][..])
        );
    }
    assert_eq!(
        results
            .iter()
            .map(|result| result.3.clone())
            .collect::<Vec<_>>(),
        [0..2, 2..4, 4..7]
    );
}

#[test]
fn gpus_add_up_among_themselves_where_each_process_has_one() {
    let gpus = tch::Cuda::device_count() as usize;
    let results = together(gpus.max(2), |group| {
        let mut group = Rc::into_inner(group).expect("it is not shared");
        if gpus < 2 {
            // libtorch either lacks NCCL, or NCCL refuses to start without GPUs; nothing else
            // changes.
            let libraries = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let reason = if libraries.contains("libtorch_cuda") {
                "no GPUs found"
            } else {
                "has no NCCL"
            };
            let error = group
                .start_nccl()
                .expect_err("there are no GPUs")
                .to_string();
            assert!(error.contains(reason), "{error}");
            return (
                group.sums_on(Device::Cuda(0)),
                group.sums(&[1.0]).expect("all are there")[0],
            );
        }
        group.join_gpus(true).expect("each has one");
        let device = Device::Cuda(group.rank());
        let mut tensor = Tensor::ones([3, 5], (Kind::Float, device));
        group.sum(&mut tensor).expect("all are there");
        (
            tensor.device() == device && group.sums_on(device),
            tensor.double_value(&[2, 4]),
        )
    });
    if gpus < 2 {
        println!("not run: sums over NCCL need two NVIDIA GPUs and their libtorch");
    }
    assert!(
        results
            .iter()
            .all(|result| *result == (gpus >= 2, gpus.max(2) as f64)),
        "{results:?}"
    );
}

#[test]
fn buckets_add_up_while_the_backward_pass_runs() {
    let results = together(2, |group| {
        let gradients = Tensor::zeros([48], (Kind::Float, Device::Cpu));
        let leaves: Vec<Tensor> = (0..3)
            .map(|_| Tensor::ones([16], (Kind::Float, Device::Cpu)).set_requires_grad(true))
            .collect();
        let loss = |power: f64| {
            let factor = group.rank() as f64 + 1.0;
            leaves.iter().enumerate().map(move |(index, leaf)| {
                (leaf.square() * (index as f64 + factor)).sum(Kind::Float) * power
            })
        };
        // Gradients belong to the buffer from the first pass on.
        loss(0.0)
            .reduce(|sum, term| sum + term)
            .expect("terms")
            .backward();
        for (index, leaf) in leaves.iter().enumerate() {
            leaf.grad()
                .set_data(&gradients.narrow(0, 16 * index as i64, 16));
        }
        let buckets =
            Buckets::new(group.clone(), &gradients, &leaves, &[16, 32, 48], 1).expect("buckets");
        for _ in 0..2 {
            let _ = tch::no_grad(|| gradients.shallow_clone().zero_());
            buckets.arm();
            // The middle one has no gradient in this pass.
            let mut terms: Vec<Tensor> = loss(1.0).collect();
            drop(terms.remove(1));
            terms
                .into_iter()
                .reduce(|sum, term| sum + term)
                .expect("terms")
                .backward();
            buckets.finish().expect("all are there");
        }
        Vec::<f32>::try_from(&gradients).expect("numbers")
    });
    for gradients in results {
        let expected = [6.0_f32, 0.0, 14.0];
        assert!(
            gradients
                .chunks(16)
                .zip(expected)
                .all(|(part, expected)| part.iter().all(|value| *value == expected))
        );
    }
}

fn pair() -> Pair {
    let mut random = ondes_engine::random::Lcg::new(7);
    let dry: Vec<f32> = (0..24_000)
        .map(|_| 0.5 * random.next_signed() as f32)
        .collect();
    let wet = dry.iter().map(|x| (2.0 * x).tanh()).collect();
    Pair::new(dry, wet, 48_000, "curve".into())
}

fn capture_options(size: &str, optimizer: &str, steps: u64, folder: &Path) -> CaptureOptions {
    let files = RunFiles {
        checkpoint: folder.join("checkpoint"),
        metrics: folder.join("metrics.jsonl"),
    };
    let network = Architecture::named(size).expect("a size");
    let mut options = CaptureOptions {
        batch: 6,
        window: 64,
        ..CaptureOptions::new(network, files)
    };
    options.trainer.length = Length::Steps(steps);
    options.trainer.training.validate_every = Some(10);
    options.trainer.training.threads = 1;
    options.trainer.training.device = "cpu".into();
    options.trainer.training.ema = 0.9;
    options.trainer.optimizer = OptimizerConfig::named(optimizer).expect("an optimizer");
    options
}

/// Trains a capture in a group, or alone, and returns its weights at the end.
fn captured(mut options: CaptureOptions, group: Option<Rc<Group>>, resumed: bool) -> Weights {
    options.trainer.group = group;
    let pair = [pair()];
    let trainer_options = options.trainer.clone();
    let task = CaptureTask::new(options, &pair, None).expect("a task");
    let mut trainer = Trainer::new(task, trainer_options).expect("it can be trained");
    if resumed {
        trainer.resume().expect("there is a checkpoint");
    }
    trainer.run().expect("it trains");
    trained(&mut trainer)
}

fn trained<T: Task>(trainer: &mut Trainer<T>) -> Weights {
    trainer.model().expect("a model").weights().clone()
}

fn assert_close(expected: &Weights, found: &Weights, name: &str) {
    for ((weight, expected), (_, found)) in expected.iter().zip(found.iter()) {
        let largest = expected
            .floats()
            .iter()
            .zip(&*found.floats())
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(largest <= 1e-5, "{name}, {weight}: {largest}");
    }
}

#[test]
fn processes_train_to_the_weights_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = OptimizerConfig::NAMES
        .iter()
        .map(|optimizer| ("lstm-2", *optimizer, 2));
    for (size, optimizer, processes) in cases.chain([("nano", "adamw", 3), ("nano", "sam", 2)]) {
        let options = || capture_options(size, optimizer, 20, folder.path());
        let alone = captured(options(), None, false);
        let untrained = Architecture::named(size)
            .unwrap()
            .untrained(0, 48_000)
            .unwrap();
        assert_ne!(&alone, untrained.weights(), "it learns");
        for found in together(processes, |group| captured(options(), Some(group), false)) {
            assert_close(&alone, &found, &format!("{size}, {optimizer}"));
        }
    }
}

/// Writes recordings of tones, each softer than the one before.
fn write_tones(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    for (index, frequency) in [220.0, 330.0, 440.0].into_iter().enumerate() {
        let level = 0.3 * 0.3_f32.powi(index as i32);
        let tone =
            |n: usize| level * (std::f32::consts::TAU * frequency * n as f32 / 16_000.0).sin();
        let samples: Vec<f32> = (0..16_000).map(tone).collect();
        let mut writer = WavWriter::create(
            folder.join(format!("{index}.wav")),
            16_000,
            1,
            WavBits::Int16,
        )
        .expect("a file");
        writer.write(&[samples]).expect("it is written");
        writer.finish().expect("it is written");
    }
}

#[test]
fn codecs_and_generators_train_to_the_weights_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    write_tones(&folder.path().join("sounds"));
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        let common = "data = \"sounds\"\nwork = \"work\"\n";
        std::fs::write(&path, format!("name = \"a\"\n{common}{text}")).expect("it is written");
        path
    };
    let training = "steps = 20\nbatch = 4\nclip_seconds = 0.4\nthreads = 1\ndevice = \"cpu\"\n[optimizer]\nname = \"sgd\"\n";
    let network = "[network]\nsample_rate = 16000\nbands = 4\nchannels = 4\nratios = [2, 4]\nlatents = 3\nnoise_bands = 3\n";
    let recipe = write(
        "codec.toml",
        &format!(
            "out = \"codec.ondes\"\n{network}harmonics = 8\n[augmentation]\ngain = 20.0\n[training]\n{training}"
        ),
    );
    let config = CodecConfig::read(&recipe).expect("a recipe");
    let untrained = crate::tasks::codec::network::untrained(&config).expect("a codec");
    ondes_engine::model::file::write(&untrained, &folder.path().join("codec.ondes"))
        .expect("it is written");
    let train_codec = |group: Option<Rc<Group>>| {
        let options = TrainerOptions {
            group,
            ..config.trainer_options()
        };
        let mut trainer = Trainer::new(CodecTask::new(config.clone()).expect("a task"), options)
            .expect("it can be trained");
        trainer.run().expect("it trains");
        trained(&mut trainer)
    };
    let recipe = write(
        "prior.toml",
        &format!(
            "codec = \"codec.ondes\"\nout = \"b.ondes\"\n[network]\nunits = 12\ncomponents = 3\n[training]\n{training}"
        ),
    );
    let train_prior = |group: Option<Rc<Group>>| {
        let config = PriorConfig::read(&recipe).expect("a recipe");
        let options = TrainerOptions {
            group,
            ..config.trainer_options()
        };
        let mut trainer = Trainer::new(PriorTask::new(config).expect("a task"), options)
            .expect("it can be trained");
        trainer.run().expect("it trains");
        trained(&mut trainer)
    };
    let alone = train_codec(None);
    assert_ne!(&alone, untrained.weights(), "it learns");
    for found in together(2, |group| train_codec(Some(group))) {
        assert_close(&alone, &found, "codec");
    }
    let alone = train_prior(None);
    for found in together(2, |group| train_prior(Some(group))) {
        assert_close(&alone, &found, "generator");
    }
}

#[test]
fn instruments_train_to_the_weights_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    write_tones(&folder.path().join("sounds"));
    let recipe = folder.path().join("a.toml");
    let text = "name = \"a\"\ndata = \"sounds\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
                hop = 160\nharmonics = 8\nnoise_bands = 5\ninput_units = 4\nrecurrent_units = 6\noutput_units = 5\n\
                room_seconds = 0.02\n[augmentation]\npitch = 1.0\n[training]\nsteps = 20\nbatch = 4\n\
                clip_seconds = 0.4\nthreads = 1\ndevice = \"cpu\"\n[optimizer]\nname = \"sgd\"\n";
    std::fs::write(&recipe, text).expect("it is written");
    let train = |group: Option<Rc<Group>>| {
        let config = Config::read(&recipe).expect("a recipe");
        let mut options = config.trainer_options();
        options.group = group;
        let mut trainer = Trainer::new(InstrumentTask::new(config).expect("a task"), options)
            .expect("it can be trained");
        trainer.run().expect("it trains");
        trained(&mut trainer)
    };
    let alone = train(None);
    let config = Config::read(&recipe).expect("a recipe");
    assert_ne!(
        &alone,
        crate::tasks::instrument::network::untrained(&config)
            .expect("an instrument")
            .weights(),
        "it learns"
    );
    for found in together(2, |group| train(Some(group))) {
        assert_close(&alone, &found, "instrument");
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    for size in ["lstm-2", "nano"] {
        let options = |steps| capture_options(size, "adamw", steps, folder.path());
        let alone = captured(options(20), None, false);
        together(2, |group| captured(options(12), Some(group), false));
        for found in together(3, |group| captured(options(20), Some(group), true)) {
            assert_close(&alone, &found, size);
        }
        together(2, |group| captured(options(12), Some(group), false));
        assert_close(&alone, &captured(options(20), None, true), size);
    }
}

#[test]
fn a_process_that_has_gone_is_told() {
    let results = together(2, |group| {
        if group.rank() == 1 {
            return None;
        }
        group.sums(&[1.0]).err().map(|error| error.to_string())
    });
    let error = results[0].as_ref().expect("the other has gone");
    assert!(
        error.starts_with("another process of the run has gone: ") && !error.contains('\n'),
        "{error}"
    );
}
