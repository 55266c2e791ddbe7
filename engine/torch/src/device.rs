//! Where libtorch computes.

use ondes_engine::executor::{Device as Wanted, Precision};
use tch::{Cuda, Device};

/// GPUs that libtorch can use.
#[must_use]
pub fn gpus() -> usize {
    if Cuda::is_available() { usize::try_from(Cuda::device_count()).unwrap_or(0) } else { 0 }
}

/// The device that is wanted, or the best one.
#[must_use]
pub fn choose(wanted: Wanted) -> Device {
    match wanted {
        Wanted::Cpu => Device::Cpu,
        Wanted::Cuda(number) => Device::Cuda(number.into()),
        Wanted::Auto if gpus() > 0 => Device::Cuda(0),
        Wanted::Auto => Device::Cpu,
    }
}

/// The number of a GPU; none for the CPU.
#[must_use]
pub fn cuda(device: Device) -> Option<u8> {
    match device {
        Device::Cuda(number) => u8::try_from(number).ok(),
        _ => None,
    }
}

/// The name of a device, and of what it computes in where that is not f32.
#[must_use]
pub fn name(device: Device, precision: Precision) -> String {
    let name = cuda(device).map_or_else(|| "cpu".into(), |number| format!("cuda:{number}"));
    if precision == Precision::F32 { name } else { format!("{name} {precision}") }
}
