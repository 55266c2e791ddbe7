//! Runs resume to the same weights, stop when they should, and refuse what changes their
//! mathematics.

use std::path::Path;
use std::process::Command;

use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

use super::checkpoint::Checkpoint;
use super::guard::injection;
use super::memory;
use super::run::MAX_RECOVERIES;
use super::task::first_non_finite;
use super::training_config::AUTO_BATCH;
use super::{Length, Outcome, Precision, ProfileOptions, RunFiles, Trainer, log_line};
use crate::loss::LossWeights;
use crate::optimizer::{CurvatureEstimate, OptimizerConfig, SgdConfig, SophiaConfig};
use crate::schedule::{Constant, Plateau, ScheduleConfig};
use crate::tasks::capture::architecture::Architecture;
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::task::{CaptureOptions, CaptureTask};

/// Returns half a second of noise through a curve.
fn pair() -> Pair {
    let mut random = ondes_engine::random::Lcg::new(7);
    let dry: Vec<f32> = (0..24_000)
        .map(|_| 0.5 * random.next_signed() as f32)
        .collect();
    let mut low = 0.0;
    let wet = dry.iter().map(|x| {
        low += 0.3 * (x - low);
        (2.0_f32 * low).tanh()
    });
    let wet = wet.collect();
    Pair::new(dry, wet, 48_000, "curve".into())
}

fn options(size: &str, steps: u64, folder: &Path) -> CaptureOptions {
    let files = RunFiles {
        checkpoint: folder.join("checkpoint"),
        metrics: folder.join("metrics.jsonl"),
    };
    let network = Architecture::named(size).expect("a size");
    let mut options = CaptureOptions {
        batch: 4,
        window: 64,
        ..CaptureOptions::new(network, files)
    };
    options.trainer.length = Length::Steps(steps);
    options.trainer.training.validate_every = Some(50);
    options.trainer.training.threads = 1;
    options.trainer.training.device = "cpu".into();
    options
}

fn trainer<'a>(options: &CaptureOptions, pair: &'a Pair) -> Trainer<CaptureTask<'a>> {
    let task = CaptureTask::new(options.clone(), std::slice::from_ref(pair), None).expect("a task");
    Trainer::new(task, options.trainer.clone()).expect("it can be trained")
}

fn run(options: &CaptureOptions, pair: &Pair) -> Trainer<CaptureTask<'static>> {
    let pair: &'static Pair = Box::leak(Box::new(pair.clone()));
    let mut trainer = trainer(options, pair);
    assert_eq!(trainer.run().expect("it trains"), Outcome::Finished);
    trainer
}

/// Returns all tensors of a checkpoint.
fn tensors(path: &Path) -> Vec<(String, Vec<f32>)> {
    let checkpoint = Checkpoint::read(path).expect("a checkpoint");
    let mut names = checkpoint.names("").expect("names");
    names.sort();
    let numbers = names.into_iter().filter(|name| name != "model");
    numbers
        .map(|name| {
            let tensor = checkpoint.tensor(&name).expect("a tensor");
            (
                name,
                Vec::<f32>::try_from(tensor.contiguous().view(-1)).expect("numbers"),
            )
        })
        .collect()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one_with_every_optimizer() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    // The epoch of the recurrent network has 79 steps, so the run stops within the second.
    for (size, names) in [
        ("lstm-2", &OptimizerConfig::NAMES[..]),
        ("nano", &["adamw", "sam"][..]),
    ] {
        for name in names {
            let case = folder.path().join(format!("{size}-{name}"));
            let mut whole = options(
                size,
                if size == "nano" { 30 } else { 130 },
                &case.join("whole"),
            );
            whole.trainer.optimizer = OptimizerConfig::named(name).expect("an optimizer");
            whole.trainer.training.learning_rate = 1e-3;
            whole.trainer.training.ema = 0.9;
            whole.trainer.training.validate_every = Some(if size == "nano" { 10 } else { 100 });
            let expected = run(&whole, &pair).model().expect("a model");

            let mut parts = whole.clone();
            parts.trainer.files.checkpoint = case.join("parts/checkpoint");
            parts.trainer.files.metrics = case.join("parts/metrics.jsonl");
            let mut first = parts.clone();
            first.trainer.training.stop_at = Some(1e9);
            let stopped = run(&first, &pair);
            assert!(stopped.progress().step < stopped.progress().steps, "{name}");
            let mut second = trainer(&parts, &pair);
            second.resume().expect("it goes on");
            second.run().expect("it trains");
            let model = second.model().expect("a model");
            assert_eq!(model.weights(), expected.weights(), "{size}, {name}");
            assert_eq!(model.header(), expected.header(), "{size}, {name}");
            assert_eq!(
                tensors(&parts.trainer.files.checkpoint),
                tensors(&whole.trainer.files.checkpoint),
                "{size}, {name}"
            );
            let steps = |options: &CaptureOptions| -> Vec<(u64, Option<f64>)> {
                let lines = log_line::read(&options.trainer.files.metrics).expect("a log");
                lines.iter().map(|line| (line.step, line.loss)).collect()
            };
            assert_eq!(steps(&parts), steps(&whole), "no line twice");
        }
    }
}

#[test]
fn the_mean_of_the_weights_soon_forgets_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let after = |steps: u64| {
        let mut options = options("lstm-2", steps, &folder.path().join(steps.to_string()));
        options.trainer.training.ema = 0.999;
        options.trainer.schedule = ScheduleConfig::Constant(Constant {});
        run(&options, &pair);
        tensors(&options.trainer.files.checkpoint)
    };
    let [first, second] = [1, 2].map(after);
    let named = |tensors: &[(String, Vec<f32>)], part: &str| {
        let found = tensors.iter().filter(|(name, _)| name.starts_with(part));
        found
            .flat_map(|(_, values)| values.clone())
            .collect::<Vec<f32>>()
    };
    let (before, mean, weights) = (
        named(&first, "ema/"),
        named(&second, "ema/"),
        named(&second, "weights/"),
    );
    assert!(!mean.is_empty() && before.len() == mean.len() && weights.len() == mean.len());
    // The second step keeps 3 / 12 of the mean, where 0.999 would hardly move it.
    for ((before, mean), weight) in before.iter().zip(mean).zip(weights) {
        assert!(
            (before + 0.75 * (weight - before) - mean).abs() < 1e-5,
            "{before}, {mean}, {weight}"
        );
    }
}

#[test]
fn what_changes_the_mathematics_is_refused_by_name_and_other_changes_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let base = options("lstm-2", 60, folder.path());
    run(&base, &pair);
    let resumed = |change: &dyn Fn(&mut CaptureOptions)| {
        let mut changed = base.clone();
        change(&mut changed);
        let mut trainer = trainer(&changed, &pair);
        trainer
            .resume()
            .map(|()| trainer.progress().steps)
            .map_err(|error| format!("{error:#}"))
    };
    assert_eq!(resumed(&|_| ()), Ok(60));
    assert_eq!(
        resumed(&|options| options.trainer.length = Length::Steps(90)),
        Ok(90)
    );
    assert_eq!(
        resumed(&|options| options.trainer.training.checkpoint_every = Some(7)),
        Ok(60)
    );
    assert_eq!(
        resumed(&|options| options.trainer.training.patience = Some(3)),
        Ok(60)
    );
    assert_eq!(
        resumed(&|options| options.trainer.training.accumulate = 2),
        Ok(60)
    );
    for (named, change) in [
        (
            "batch is 4 in the checkpoint and 8 now",
            (&|o: &mut CaptureOptions| o.batch = 8) as &dyn Fn(&mut CaptureOptions),
        ),
        ("window is 64", &|o| o.window = 128),
        ("seed is 0", &|o| o.seed = 1),
        ("network is Lstm { hidden: 2 } in the checkpoint", &|o| {
            o.network = Architecture::named("lstm-3").expect("a size").into()
        }),
        ("loss is", &|o| o.loss.mse = 1.0),
        ("training.learning_rate is", &|o| {
            o.trainer.training.learning_rate = 0.5
        }),
        ("training.warmup_steps is", &|o| {
            o.trainer.training.warmup_steps = 5
        }),
        ("training.weight_decay is", &|o| {
            o.trainer.training.weight_decay = 0.5
        }),
        ("training.gradient_norm is", &|o| {
            o.trainer.training.gradient_norm = 0.5
        }),
        ("training.gradient_value is", &|o| {
            o.trainer.training.gradient_value = 0.5
        }),
        ("training.ema is", &|o| o.trainer.training.ema = 0.5),
        ("optimizer", &|o| {
            o.trainer.optimizer = OptimizerConfig::named("lamb").expect("one")
        }),
        ("schedule", &|o| {
            o.trainer.schedule = ScheduleConfig::Constant(Constant::default())
        }),
    ] {
        let error = resumed(change).expect_err(named);
        assert!(
            error.contains(named) && error.contains("checkpoint"),
            "{error}"
        );
    }
    let mut other = pair.clone();
    other.flip();
    let error = trainer(&base, &other).resume().expect_err("other sound");
    assert!(format!("{error:#}").contains("sound"), "{error:#}");
}

#[test]
fn accumulated_parts_equal_the_whole_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    for size in ["lstm-2", "nano"] {
        let weights = |accumulate: usize| {
            let mut options = CaptureOptions {
                batch: 32,
                ..options(size, 3, folder.path())
            };
            options.trainer.training.accumulate = accumulate;
            options.trainer.optimizer = OptimizerConfig::Sgd(SgdConfig {
                momentum: 0.9,
                nesterov: false,
            });
            options.trainer.training.learning_rate = 0.1;
            options.trainer.training.warmup_steps = 0;
            run(&options, &pair)
                .model()
                .expect("a model")
                .weights()
                .clone()
        };
        let (whole, parts) = (weights(1), weights(4));
        assert_ne!(
            &whole,
            Architecture::named(size)
                .unwrap()
                .untrained(0, 48_000)
                .unwrap()
                .weights(),
            "it learns"
        );
        for ((name, whole), (_, parts)) in whole.iter().zip(parts.iter()) {
            let largest = whole
                .floats()
                .iter()
                .zip(&*parts.floats())
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(largest <= 1e-6, "{size}, {name}: {largest}");
        }
    }
}

#[test]
fn runs_stop_when_they_should() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let base = options("lstm-2", 100, folder.path());
    // A learning rate of nearly nothing brings no progress after the first validation.
    let mut still = base.clone();
    still.trainer.training.validate_every = Some(10);
    still.trainer.training.patience = Some(3);
    still.trainer.training.learning_rate = 1e-30;
    assert_eq!(run(&still, &pair).progress().step, 40);
    let mut good = base.clone();
    good.trainer.training.validate_every = Some(10);
    good.trainer.training.stop_at = Some(1e3);
    assert_eq!(run(&good, &pair).progress().step, 10);
    // The rate of a plateau falls.
    let mut plateau = still.clone();
    plateau.trainer.training.patience = None;
    plateau.trainer.training.warmup_steps = 0;
    plateau.trainer.schedule = ScheduleConfig::Plateau(Plateau {
        factor: 0.1,
        patience: 2,
        threshold: 0.0,
        last: 1e-3,
    });
    run(&plateau, &pair);
    let rates: Vec<f64> = log_line::read(&plateau.trainer.files.metrics)
        .expect("a log")
        .iter()
        .filter(|line| line.loss.is_some())
        .filter_map(|line| line.rate)
        .collect();
    let near =
        |at: usize, share: f64| assert!((rates[at] / 1e-30 - share).abs() < 1e-9, "{rates:?}");
    near(0, 1.0);
    near(3, 0.1);
    near(9, 1e-3);

    let mut minutes = base;
    minutes.trainer.length = Length::Minutes(1e-9);
    assert_eq!(
        run(&minutes, &pair).progress().step,
        79,
        "one epoch at least"
    );
}

#[test]
fn mixed_precision_learns_and_an_overflow_skips_a_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let loss = |precision: Precision| {
        let mut options = options("nano", 60, folder.path());
        options.trainer.training.precision = precision;
        options.trainer.training.validate_every = Some(10);
        let trainer = run(&options, &pair);
        let scale = trainer.progress().loss_scale.factor;
        (trainer.progress().best.expect("a validation").0, scale)
    };
    let (exact, _) = loss(Precision::F32);
    for precision in [Precision::Bf16, Precision::F16] {
        let (mixed, _) = loss(precision);
        assert!(
            (mixed / exact - 1.0).abs() < 0.1,
            "{precision:?}: {mixed}, {exact} in f32"
        );
    }
    // A loss that overflows in f16 at the first factors: the weights wait until it fits.
    let mut loud = options("nano", 60, folder.path());
    loud.trainer.training.precision = Precision::F16;
    loud.loss.esr = 1e4;
    loud.trainer.training.validate_every = Some(10);
    let trainer = run(&loud, &pair);
    assert!(
        trainer.progress().loss_scale.factor < 65_536.0,
        "{:?}",
        trainer.progress()
    );
    assert!((trainer.progress().best.expect("a validation").0 / exact - 1.0).abs() < 0.5);
}

#[test]
fn timing_changes_no_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let mut epoch = options("lstm-2", 79, folder.path());
    let expected = run(&epoch, &pair).model().expect("a model");
    epoch.trainer.length = Length::Minutes(1e-9);
    let model = run(&epoch, &pair).model().expect("a model");
    assert_eq!(model.weights(), expected.weights());
}

#[test]
fn divergence_names_the_layer() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let mut wild = options("nano", 100, folder.path());
    // The first gradient of such a loss makes weights whose products overflow.
    wild.loss.esr = 1e15;
    wild.trainer.optimizer = OptimizerConfig::named("sgd").expect("an optimizer");
    wild.trainer.training.gradient_norm = 0.0;
    wild.trainer.training.learning_rate = 1.0;
    wild.trainer.training.warmup_steps = 0;
    let error = trainer(&wild, &pair)
        .run()
        .expect_err("it diverges")
        .to_string();
    assert!(
        error.contains("training diverged at step") && error.contains("in the layer"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);

    let model = Architecture::named("lstm-2")
        .unwrap()
        .untrained(0, 48_000)
        .expect("a model");
    let mut method = model.method("forward").expect("a method").clone();
    method.warm_up = 0;
    let mut weights = TorchWeights::new(model.weights(), Device::Cpu);
    let input = [Tensor::zeros([1, 1, 8], (tch::Kind::Float, Device::Cpu))];
    assert_eq!(first_non_finite(&method, 48_000, &weights, &input), None);
    let name = weights
        .0
        .keys()
        .find(|name| name.starts_with("head"))
        .expect("a head")
        .clone();
    let broken = weights.0[&name].full_like(f64::NAN);
    weights.0.insert(name, broken);
    assert_eq!(
        first_non_finite(&method, 48_000, &weights, &input).as_deref(),
        Some("head")
    );
}

#[test]
fn a_run_that_diverges_goes_on_from_its_best_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let mut trainer = run(&options("lstm-2", 20, folder.path()), &pair);
    let best = trainer.progress.best.expect("a validation").0;
    let break_it = |trainer: &mut Trainer<CaptureTask<'_>>| {
        trainer.progress.steps += 20;
        let _ = tch::no_grad(|| trainer.parameters.values().fill_(f64::NAN));
    };
    break_it(&mut trainer);
    assert_eq!(trainer.run().expect("it goes on"), Outcome::Finished);
    assert_eq!(
        (trainer.progress.step, trainer.progress.recoveries),
        (40, 1)
    );
    assert!(trainer.progress.best.expect("a validation").0 <= best);
    assert!(trainer.model().is_ok());

    trainer.progress.recoveries = MAX_RECOVERIES;
    break_it(&mut trainer);
    let error = trainer.run().expect_err("too often").to_string();
    assert!(error.contains("use a lower learning rate"), "{error}");
}

#[test]
fn checkpoints_hold_a_model_and_damaged_ones_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let base = options("lstm-2", 60, folder.path());
    let mut trained = run(&base, &pair);
    let checkpoint = Checkpoint::read(&base.trainer.files.checkpoint).expect("a checkpoint");
    let (exported, model) = (
        checkpoint.best_model().expect("a model"),
        trained.model().expect("a model"),
    );
    assert_eq!(exported.weights(), model.weights());
    assert_eq!(exported.header(), model.header());
    let bytes = std::fs::read(&base.trainer.files.checkpoint).expect("a file");
    let cut = folder.path().join("cut");
    for length in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&cut, &bytes[..length]).expect("a file");
        let error = Checkpoint::read(&cut).err().expect("it is damaged");
        assert!(error.to_string().contains("damaged"), "{error:#}");
    }
}

#[test]
fn sophia_learns_by_gauss_newton_samples_and_names_a_loss_without_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    for size in ["lstm-2", "nano"] {
        let mut options = options(size, 60, folder.path());
        let sophia = SophiaConfig {
            estimate: CurvatureEstimate::GaussNewton,
            ..SophiaConfig::default()
        };
        options.trainer.optimizer = OptimizerConfig::Sophia(sophia);
        options.trainer.training.learning_rate = 1e-3;
        options.trainer.training.validate_every = Some(10);
        run(&options, &pair);
        let log = log_line::read(&options.trainer.files.metrics).expect("a log");
        let losses: Vec<f64> = log.iter().filter_map(|line| line.validation).collect();
        assert!(
            losses.len() == 6 && losses[5] < losses[0],
            "{size}: {losses:?}"
        );
        // Parts of a batch have samples of their own.
        options.trainer.training.accumulate = 2;
        run(&options, &pair);
        options.loss = LossWeights {
            l1: 1.0,
            ..LossWeights::default()
        };
        let error = trainer(&options, &pair)
            .run()
            .expect_err("no squared error")
            .to_string();
        assert!(
            error.contains("gauss-newton") && error.contains("esr"),
            "{error}"
        );
    }
}

/// Tells whether a test has a process of its own, because what it measures is of the whole process;
/// runs it in one if not.
fn is_alone(test: &str) -> bool {
    const VARIABLE: &str = "ONDES_TEST_ALONE";
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let mut own = Command::new(std::env::current_exe().expect("a program"));
    let run = own
        .args(["--exact", &format!("trainer::tests::{test}")])
        .env(VARIABLE, "1")
        .output()
        .expect("a run");
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    false
}

#[test]
fn a_profile_changes_no_weight_and_writes_a_trace() {
    if !is_alone("a_profile_changes_no_weight_and_writes_a_trace") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let plain = options("nano", 9, &folder.path().join("plain"));
    run(&plain, &pair);
    let mut profiled = options("nano", 9, &folder.path().join("profiled"));
    let trace = folder.path().join("trace.json");
    profiled.trainer.training.profile = Some(ProfileOptions {
        trace: Some(trace.clone()),
        operators: true,
    });
    run(&profiled, &pair);
    assert_eq!(
        tensors(&plain.trainer.files.checkpoint),
        tensors(&profiled.trainer.files.checkpoint)
    );

    let text = std::fs::read_to_string(&trace).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let count = |name: &str| {
        events
            .iter()
            .filter(|event| event["name"] == name && event["ph"] == "X")
            .count()
    };
    for name in ["data", "forward", "backward", "optimizer"] {
        assert!(count(name) >= 5, "{name}: {}", count(name));
    }
    assert!(events.iter().any(|event| {
        event["name"]
            .as_str()
            .is_some_and(|name| name.contains("conv1d"))
    }));
    let own = &trace["ondes"];
    assert!(
        own["steps"] == 5 && own["tensor_peak_bytes"].as_u64().is_some(),
        "{own}"
    );
    let operators = own["operators"].as_array().expect("operators");
    let conv = operators
        .iter()
        .find(|operator| operator["name"] == "aten::conv1d")
        .expect("convolutions");
    let time = |name: &str| conv[name].as_u64().expect("a time");
    assert!(
        time("calls") >= 5 && time("self_ns") < time("total_ns"),
        "{conv}"
    );

    let missing = folder.path().join("missing/trace.json");
    profiled.trainer.training.profile = Some(ProfileOptions {
        trace: Some(missing),
        operators: true,
    });
    let error = trainer(&profiled, &pair)
        .run()
        .expect_err("there is no folder");
    assert!(
        format!("{error:#}").contains("trace.json: cannot be written"),
        "{error:#}"
    );
}

/// Checks that all weights are equal within 1e-6.
fn assert_close(a: &Trainer<CaptureTask<'static>>, b: &Trainer<CaptureTask<'static>>, named: &str) {
    for ((name, a, _), (_, b, _)) in a.parameters().parts().zip(b.parameters().parts()) {
        let largest = (a - b).abs().max().double_value(&[]);
        assert!(largest <= 1e-6, "{named}, {name}: {largest}");
    }
}

#[test]
fn without_memory_the_batch_is_halved_with_the_same_mathematics() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    for size in ["lstm-2", "nano"] {
        let mut options = CaptureOptions {
            batch: 32,
            ..options(size, 9, folder.path())
        };
        options.trainer.optimizer = OptimizerConfig::Sgd(SgdConfig {
            momentum: 0.9,
            nesterov: false,
        });
        options.trainer.training.learning_rate = 0.1;
        let whole = run(&options, &pair);
        injection::fail_after(5);
        let halved = run(&options, &pair);
        assert_eq!(
            (
                whole.options.training.accumulate,
                halved.options.training.accumulate
            ),
            (1, 2),
            "{size}"
        );
        assert_close(&whole, &halved, size);
    }
    // Nothing is left to halve.
    let mut single = CaptureOptions {
        batch: 1,
        ..options("nano", 9, folder.path())
    };
    single.trainer.length = Length::Steps(2);
    injection::fail_after(0);
    let error = trainer(&single, &pair)
        .run()
        .expect_err("nothing fits")
        .to_string();
    assert!(
        error.contains("out of memory in a step of one row at a time"),
        "{error}"
    );
}

#[test]
fn checkpointed_gradients_equal_plain_ones_and_need_less_memory() {
    if !is_alone("checkpointed_gradients_equal_plain_ones_and_need_less_memory") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    for (size, precision) in [
        ("lstm-2", Precision::F32),
        ("nano", Precision::F32),
        ("nano", Precision::Bf16),
    ] {
        let mut options = options(size, 9, folder.path());
        options.trainer.optimizer = OptimizerConfig::Sgd(SgdConfig {
            momentum: 0.9,
            nesterov: false,
        });
        options.trainer.training.learning_rate = 0.1;
        options.trainer.training.precision = precision;
        let plain = run(&options, &pair);
        options.trainer.training.checkpoint_activations = true;
        assert_close(&plain, &run(&options, &pair), size);
    }
    memory::bound(None).expect("a bound");
    let peak = |checkpointed: bool| {
        let mut options = CaptureOptions {
            batch: 4,
            window: 8_192,
            ..options("standard", 1, folder.path())
        };
        options.trainer.training.checkpoint_activations = checkpointed;
        let mut trainer = trainer(&options, &pair);
        let _ = memory::peak_bytes();
        trainer.advance().expect("a step");
        memory::peak_bytes()
    };
    let [plain, checkpointed] = [false, true].map(peak);
    assert!(
        plain == 0 || 3 * checkpointed < 2 * plain,
        "{checkpointed} of {plain} bytes"
    );
}

#[test]
fn the_largest_batch_that_fits_is_chosen_and_kept_by_a_resumed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let mut options = options("nano", 20, folder.path());
    options.trainer.training.batch = AUTO_BATCH;
    let chosen = run(&options, &pair);
    // The training part has 317 windows of 64 samples.
    assert_eq!(chosen.progress().batch(), Some(256));
    options.trainer.length = Length::Steps(21);
    let mut again = trainer(&options, &pair);
    again.resume().expect("the same batch");
    assert_eq!(
        (again.progress().batch(), again.progress().step),
        (Some(256), 20)
    );
    // Memory ends at a batch of eight: six rows are tried and fit.
    injection::fail_after(3);
    assert_eq!(run(&options, &pair).progress().batch(), Some(6));
}

#[test]
fn the_best_checkpoints_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair();
    let mut options = options("lstm-2", 100, folder.path());
    options.trainer.training.validate_every = Some(10);
    options.trainer.training.keep_best = 3;
    options.trainer.files.checkpoint = folder.path().join("checkpoint.safetensors");
    let trained = run(&options, &pair);
    let kept = trained.progress().kept.clone();
    assert!(
        kept.len() == 3 && kept.is_sorted_by(|a, b| a.0 <= b.0),
        "{kept:?}"
    );
    assert_eq!(Some(kept[0]), trained.progress().best);
    let mut found: Vec<String> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("-step"))
        .collect();
    found.sort();
    let mut expected: Vec<String> = kept
        .iter()
        .map(|(_, step)| format!("checkpoint-step{step}.safetensors"))
        .collect();
    expected.sort();
    assert_eq!(found, expected);
    for (_, step) in kept {
        let path = folder
            .path()
            .join(format!("checkpoint-step{step}.safetensors"));
        let checkpoint = Checkpoint::read(&path).expect("a checkpoint");
        assert_eq!(checkpoint.progress.step, step);
        let training = checkpoint
            .last_model()
            .expect("a model")
            .header()
            .card
            .training
            .clone();
        assert_eq!(training.expect("its provenance").steps, step);
    }
}
