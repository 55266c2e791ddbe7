//! Devices of libtorch.

use ondes_engine::executor::{Device as SelectedDevice, Precision};
use tch::{Cuda, Device};

/// Returns the number of GPUs that libtorch can use.
#[must_use]
pub fn gpus() -> usize {
    if Cuda::is_available() {
        usize::try_from(Cuda::device_count()).unwrap_or(0)
    } else {
        0
    }
}

/// Returns libtorch's device for a selection; `Auto` is the first GPU, or the CPU without one.
#[must_use]
pub fn choose(selected: SelectedDevice) -> Device {
    match selected {
        SelectedDevice::Cpu => Device::Cpu,
        SelectedDevice::Cuda(index) => Device::Cuda(index.into()),
        SelectedDevice::Auto if gpus() > 0 => Device::Cuda(0),
        SelectedDevice::Auto => Device::Cpu,
    }
}

/// Returns the index of a GPU; `None` for the CPU.
#[must_use]
pub fn gpu_index(device: Device) -> Option<u8> {
    match device {
        Device::Cuda(index) => u8::try_from(index).ok(),
        _ => None,
    }
}

/// Returns the name of a device, followed by the precision unless it is f32.
#[must_use]
pub fn name(device: Device, precision: Precision) -> String {
    let name = gpu_index(device).map_or_else(|| "cpu".into(), |index| format!("cuda:{index}"));
    if precision == Precision::F32 {
        name
    } else {
        format!("{name} {precision}")
    }
}
