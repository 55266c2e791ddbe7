//! A device without memory is replaced by the CPU; on the CPU itself the reason is reported.

use std::sync::Arc;

use ondes_engine::dsp::level::{max_step, peak};
use ondes_engine::executor::Device;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::pipeline::{ControlSource, PipelineOptions};
use ondes_engine::realtime::{Driver, LoadStatus, PlayableModel};
use ondes_tests::SAMPLE_RATE;
use ondes_tests::fake_model::{Host, Wave, wait_until};
use ondes_tests::torchscript::{Class, Value};

use crate::report::Report;
use crate::stepping::program;

/// Latency of a session on the worker, samples.
const BLOCK: usize = 256;
const LATENCY: usize = 4_096;
/// 4 TB of f32: more than any device has.
const TOO_MUCH: &str = "1099511627776";
const INPUT: Wave = Wave {
    frequency: 1.0 / 480.0,
    peak: 0.5,
};
/// Steepest step of a cross-fade of 5 ms between two signals of that peak.
const STEEPEST: f32 = 0.03;

/// Plays until the memory is exhausted, and checks the output from then on.
pub fn check(device: Device, report: &mut Report) -> Result<(), String> {
    report.section(
        "Without memory",
        "A session whose program, after 0.5 s, asks for 4 TB of the device's memory.",
        &["what is seen", "as it should be"],
    );
    let on_gpu = device != Device::Cpu;
    // On a GPU its spare, which is on the CPU, plays on; on the CPU there is nothing left to go to.
    let asks = if on_gpu { "x.is_cuda" } else { "True" };
    let condition = format!("if {asks} and bool(self.heard > {}):", SAMPLE_RATE / 2);
    let body = [
        "self.heard = self.heard + torch.size(x, 2)",
        &condition,
        &format!("  return torch.mul(torch.slice(torch.new_empty(x, [{TOO_MUCH}]), 0, 0, 1), x)"),
        "return torch.mul(x, 0.9)",
    ];
    let rate = Value::Int(i64::from(SAMPLE_RATE));
    let class = Class::default()
        .with("sr", rate)
        .with("heard", Value::Int(0))
        .nn("forward", [1, 1, 1, 1], &body);
    let executor = ExecutorSelection {
        device,
        ..ExecutorSelection::default()
    };
    let options = PipelineOptions {
        source: ControlSource::AudioInput,
        executor,
        ..PipelineOptions::default()
    };
    let playable_model = PlayableModel::new(Arc::new(program(&class)?), options)
        .map_err(|error| error.to_string())?;
    let mut host = Host::new(
        playable_model,
        Driver::Worker {
            latency: Some(LATENCY),
        },
        BLOCK,
    );
    host.input = Some(INPUT);
    let blocks = SAMPLE_RATE as usize / BLOCK;
    host.play(blocks);
    if on_gpu {
        wait_until("the worker says so", || host.controller.warning().is_some());
        let notice = host.controller.warning().unwrap_or_default();
        report.check(&[format!("said: {notice}")], notice.contains("memory"));
        report.check(
            &["the session plays on".into()],
            host.controller.status() == LoadStatus::Ready,
        );
        let late = &host.output[host.output.len() - BLOCK..];
        let loudest = peak(late);
        report.check(
            &[format!("what is heard then has a peak of {loudest:.2}")],
            loudest > 0.1,
        );
    } else {
        let told = match host.controller.status() {
            LoadStatus::Failed(reason) => reason,
            status => format!("{status:?}"),
        };
        let short: String = told.chars().take(160).collect();
        report.check(
            &[format!("said: {short}")],
            told.starts_with("the model failed: ") && told.contains("memory"),
        );
    }
    let step = max_step(&host.output);
    report.check(
        &[format!(
            "the largest step from sample to sample is {step:.4}"
        )],
        step < STEEPEST,
    );
    Ok(())
}
