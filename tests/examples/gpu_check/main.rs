//! Checks and measures what libtorch computes on a GPU, and writes a report; `cargo xtask gpu-check` runs it with the library
//! around libtorch. The same list runs on the CPU, which tests the list.
//!
//! [`parity`] compares with our own code, [`batching`] sessions in a batch with sessions alone, [`fallback`] takes the device's
//! memory away, [`latency`] measures steps; [`report`] is what becomes of it.

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

/// Checks what libtorch computes on a GPU, and how long it takes
#[derive(Parser)]
struct Arguments {
    /// Where to compute: cuda:N, or cpu
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cuda(0))]
    device: Device,
    /// Seconds that are measured for each number of sessions and each hop
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Where the report is written
    #[arg(long, value_name = "FILE.md", default_value = "target/gpu-check/report.md")]
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
        println!("gpu-check: libtorch sees {} GPUs, and so {device} was not checked", library.gpus);
        return Ok(ExitCode::SUCCESS);
    }
    if device == Device::Auto {
        return Err("auto is no device to check: cuda:N or cpu".into());
    }
    let patience = Duration::try_from_secs_f64(arguments.seconds).map_err(|error| format!("--seconds: {error}"))?;
    let mut report = Report::new(device);
    parity::check(device, &mut report)?;
    batching::check(device, &mut report)?;
    fallback::check(device, &mut report)?;
    latency::measure(device, patience, &mut report)?;
    report.write(&arguments.report)?;
    println!("gpu-check: {} checks, {} failed: {}", report.checks(), report.failures(), arguments.report.display());
    Ok(if report.failures() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
