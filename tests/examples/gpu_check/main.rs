//! Checks and measures libtorch on a GPU, and writes a report. `cargo xtask gpu-check` runs it with
//! the library around libtorch. The same checks run on the CPU.
//!
//! [`parity`] compares to the native executor, [`batching`] compares batches to sessions alone,
//! [`fallback`] exhausts the device's memory, [`latency`] measures steps, [`report`] writes the
//! results.

mod batching;
mod fallback;
mod latency;
mod parity;
mod report;
mod stepping;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use ondes_engine::executor::Device;
use ondes_engine::torch::Library;

use report::Report;

/// Checks libtorch on a GPU and measures it
#[derive(Parser)]
struct Arguments {
    /// Device: cuda:N, or cpu
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cuda(0))]
    device: Device,
    /// Seconds to measure per number of sessions and hop
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Path of the report
    #[arg(
        long,
        value_name = "FILE.md",
        default_value = "target/gpu-check/report.md"
    )]
    report: PathBuf,
}

fn main() -> ExitCode {
    match check(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gpu-check: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(arguments: &Arguments) -> Result<ExitCode, String> {
    let device = arguments.device;
    let library = Library::get().map_err(|error| error.to_string())?;
    if let Device::Cuda(number) = device
        && usize::from(number) >= library.gpus
    {
        println!(
            "gpu-check: libtorch finds {} GPUs; {device} was not checked",
            library.gpus
        );
        return Ok(ExitCode::SUCCESS);
    }
    if device == Device::Auto {
        return Err("--device auto cannot be checked; choose cuda:N or cpu".into());
    }
    let patience = Duration::try_from_secs_f64(arguments.seconds)
        .map_err(|error| format!("--seconds: {error}"))?;
    let mut report = Report::new(device);
    parity::check(device, &mut report)?;
    batching::check(device, &mut report)?;
    fallback::check(device, &mut report)?;
    latency::measure(device, patience, &mut report)?;
    report.write(&arguments.report)?;
    println!(
        "gpu-check: {} checks, {} failed: {}",
        report.checks(),
        report.failures(),
        arguments.report.display()
    );
    Ok(if report.failures() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
