//! A GPU that fails while playing, simulated by a library with our interface: another executor
//! takes over, with a warning.
//!
//! A process opens the library only once, so each test runs in a child process whose environment
//! names it.

use std::process::Command;
use std::sync::Arc;

use ondes_engine::executor::ExecutorSelection;
use ondes_engine::executor::{self, Backend, Device, Precision};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_engine::realtime::{Driver, LoadStatus, PlayableModel};
use ondes_engine::torch::Library;
use ondes_engine::torch::interface::VERSION;
use ondes_tests::SAMPLE_RATE;
use ondes_tests::audio_models::{EFFECT_BLOCK, untrained_effect};
use ondes_tests::fake_model::{Host, Wave};

/// Steps until the library fails, each of one block of the effect.
const STEPS: usize = 40;
/// Samples of the cross-fade at the effect's rate.
const FADE: usize = SAMPLE_RATE as usize / 200;

/// Library with one GPU, which passes the input until it fails; its CPU fails at the same step.
const SOURCE: &str = r#"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
typedef void (*Listener)(void *context, const char *text, size_t length);
struct Made { bool cuda; int steps; };
static void say(Listener listener, void *context, const char *text) { listener(context, text, strlen(text)); }
static bool about(Listener listener, void *context) { say(listener, context, "{\"gpus\":1}"); return true; }
static bool describe(const void *b, size_t n, Listener listener, void *context) { say(listener, context, "no"); return false; }
static bool make(const char *order, size_t length, const void *b, size_t n, void **made, Listener listener, void *context) {
  char *text = calloc(length + 1, 1);
  struct Made *it = calloc(1, sizeof *it);
  memcpy(text, order, length);
  it->cuda = strstr(text, "\"cuda:0\"") != NULL;
  it->steps = STEPS;
  free(text);
  if (it->cuda && getenv("FULL")) { free(it); say(listener, context, "CUDA error: out of memory"); return false; }
  *made = it;
  return true;
}
static void release(void *made) { free(made); }
static void device(const void *made, Listener listener, void *context) {
  say(listener, context, ((const struct Made *)made)->cuda ? "cuda:0" : "cpu");
}
static size_t bytes(const void *made) { return 1000; }
static void seed(void *made, size_t stream, unsigned long long seed) {}
static bool run(void *made, const size_t *streams, size_t count, size_t blocks, const float *const *inputs,
                float *const *outputs, Listener listener, void *context) {
  struct Made *it = made;
  if ((it->steps -= (int)blocks) < 0) { say(listener, context, "CUDA error: out of memory"); return false; }
  memcpy(outputs[0], inputs[0], count * blocks * BLOCK * sizeof(float));
  return true;
}
static const struct { unsigned version; void *functions[8]; } table = {
  VERSION, { about, describe, make, release, device, bytes, seed, run } };
const void *ondes_torch_interface(void) { return &table; }
"#;

/// Runs one of the ignored tests below in a child process with the fake library.
fn with_library(test: &str, variables: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, library) = (
        folder.path().join("fake.c"),
        folder.path().join("libfake.so"),
    );
    std::fs::write(&code, SOURCE).expect("it can be written");
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-w"])
        .arg(format!("-DSTEPS={STEPS}"))
        .arg(format!("-DBLOCK={EFFECT_BLOCK}"));
    compile.arg(format!("-DVERSION={VERSION}"));
    assert!(
        compile
            .arg("-o")
            .arg(&library)
            .arg(&code)
            .status()
            .expect("there is a compiler")
            .success()
    );
    let mut child = Command::new(std::env::current_exe().expect("we are a program"));
    child
        .args([
            "--exact",
            &format!("fallback::{test}"),
            "--ignored",
            "--nocapture",
        ])
        .env("ONDES_TORCH_LIBRARY", &library);
    // No libtorch is needed.
    child
        .env("LIBTORCH", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path());
    let done = child
        .envs(variables.iter().copied())
        .output()
        .expect("it starts");
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        String::from_utf8_lossy(&done.stdout).contains("1 passed"),
        "{test} was not found"
    );
}

#[test]
fn native_code_takes_over_from_a_gpu() {
    with_library("child_native_code_takes_over", &[]);
}

#[test]
fn a_gpu_without_memory_is_replaced_unless_it_was_requested() {
    with_library("child_no_room", &[("FULL", "1")]);
}

#[test]
fn a_session_continues_with_a_warning() {
    with_library("child_a_session_goes_on", &[]);
}

#[test]
fn without_a_stand_by_the_reason_is_reported() {
    with_library("child_the_reason_is_told", &[]);
}

fn options(device: Device) -> PipelineOptions {
    options_with(ExecutorSelection {
        backend: Backend::Torch,
        device,
        ..ExecutorSelection::default()
    })
}

fn options_with(executor: ExecutorSelection) -> PipelineOptions {
    PipelineOptions {
        source: ControlSource::AudioInput,
        executor,
        ..PipelineOptions::default()
    }
}

const INPUT: Wave = Wave {
    frequency: 1.0 / 480.0,
    peak: 0.5,
};

#[test]
#[ignore = "needs the library that its parent makes"]
fn child_native_code_takes_over() {
    assert_eq!(Library::get().expect("it opens").gpus, 1);
    let model = untrained_effect(1);
    for device in [Device::Auto, Device::Cuda(0)] {
        let mut pipeline = Pipeline::new(&model, &options(device)).expect("it plays");
        assert_eq!(pipeline.executor(), "torch cuda:0");
        let latency = pipeline.latency_samples();
        let failure = STEPS * EFFECT_BLOCK;
        let input: Vec<f32> = (0..2 * failure as u64)
            .map(|number| INPUT.at(number))
            .collect();
        let mut output = vec![0.0; input.len()];
        pipeline.process(&input, &mut output);
        let sound = &output[latency..];
        for (number, (output, input)) in sound.iter().zip(&input).take(failure).enumerate() {
            assert_eq!(output, input, "sample {number}");
        }
        // From there on, the native executor's output from the same input, starting in silence.
        let mut native = Pipeline::new(&model, &options_with(ExecutorSelection::default()));
        let native = native.as_mut().expect("it plays");
        let mut alone = vec![0.0; input.len() - failure];
        native.process(&input[failure..], &mut alone);
        let (sound, alone) = (&sound[failure - 1..], &alone[latency..]);
        for (number, (output, alone)) in sound[1..].iter().zip(alone).enumerate() {
            let share = ((number + 1) as f32 / FADE as f32).min(1.0);
            let due = sound[0] + share * (alone - sound[0]);
            assert!(
                (output - due).abs() < 1e-6,
                "sample {number} after the failure: {output}, due {due}"
            );
        }
        let said = pipeline.executor();
        assert!(
            said.starts_with("native ")
                && said.contains("since torch cuda:0 failed (CUDA error: out of memory)")
        );
        let notice = executor::take_warning().expect("it is said");
        assert!(
            notice.contains("CUDA error: out of memory") && notice.contains("native"),
            "{notice}"
        );
    }
}

#[test]
#[ignore = "needs the library that its parent makes"]
fn child_no_room() {
    let model = untrained_effect(1);
    let pipeline = Pipeline::new(&model, &options(Device::Auto)).expect("it plays");
    assert!(
        pipeline.executor().starts_with("native "),
        "{}",
        pipeline.executor()
    );
    assert!(
        executor::take_warning()
            .expect("it is said")
            .contains("out of memory")
    );
    let refused = Pipeline::new(&model, &options(Device::Cuda(0)))
        .err()
        .expect("it is what was asked for");
    assert!(refused.to_string().contains("out of memory"), "{refused}");
    // A precision that the native executor lacks is refused, too.
    let f16 = Precision::F16;
    let narrow = options_with(ExecutorSelection {
        backend: Backend::Torch,
        precision: f16,
        ..ExecutorSelection::default()
    });
    let refused = Pipeline::new(&model, &narrow)
        .err()
        .expect("it is what was asked for");
    assert!(refused.to_string().contains("out of memory"), "{refused}");
    let refused = Pipeline::new(&model, &options(Device::Cuda(3)))
        .err()
        .expect("there is only one");
    assert!(refused.to_string().contains("cuda:3"), "{refused}");
    // With a fallback allowed, an available executor plays.
    for (device, precision, executor) in [
        (
            Device::Cuda(0),
            Precision::F32,
            "torch cuda:0: CUDA error: out of memory",
        ),
        (Device::Auto, f16, "torch f16: CUDA error: out of memory"),
        (Device::Cuda(3), f16, "torch cuda:3 f16: there is no cuda:3"),
    ] {
        let lenient = PipelineOptions {
            allow_fallback: true,
            ..options_with(ExecutorSelection {
                backend: Backend::Torch,
                device,
                precision,
            })
        };
        let pipeline = Pipeline::new(&model, &lenient).expect("it plays");
        let (name, notice) = (
            pipeline.executor(),
            executor::take_warning().expect("it is said"),
        );
        assert!(
            notice.starts_with(&format!("running on {name} instead of {executor}")),
            "{notice}"
        );
        assert!(name.starts_with("native "), "{name}");
    }
}

/// Returns a host that plays the effect with the library.
fn host(device: Device) -> Host {
    let playable_model =
        PlayableModel::new(Arc::new(untrained_effect(1)), options(device)).expect("it plays");
    let mut host = Host::new(
        playable_model,
        Driver::Worker {
            latency: Some(1_024),
        },
        256,
    );
    host.input = Some(INPUT);
    host
}

#[test]
#[ignore = "needs the library that its parent makes"]
fn child_a_session_goes_on() {
    let mut host = host(Device::Cuda(0));
    host.play(5);
    assert_eq!(
        (host.controller.warning(), host.controller.status()),
        (None, LoadStatus::Ready)
    );
    host.play_until("it is said", |host| host.controller.warning().is_some());
    let notice = host.controller.warning().expect("it is said");
    assert!(
        notice.contains("torch cuda:0 failed (CUDA error: out of memory); running on native"),
        "{notice}"
    );
    let begun = host.output.len();
    host.play(20);
    assert_eq!(host.controller.status(), LoadStatus::Ready);
    assert!(
        host.output[begun..]
            .iter()
            .any(|sample| sample.abs() > 0.01),
        "it plays on"
    );
}

#[test]
#[ignore = "needs the library that its parent makes"]
fn child_the_reason_is_told() {
    let mut host = host(Device::Cpu);
    host.play_until("the host hears of it", |host| {
        matches!(host.controller.status(), LoadStatus::Failed(_))
    });
    let LoadStatus::Failed(reason) = host.controller.status() else {
        unreachable!("it was just seen")
    };
    assert!(
        reason.starts_with("the model failed: CUDA error: out of memory; it stays silent"),
        "{reason}"
    );
}
