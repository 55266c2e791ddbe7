//! Connected processes, and sums over them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::net::UdpSocket;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;

use anyhow::Context;
use tch::{Device, Kind, Tensor};

use super::membership::Membership;

/// Time that a process waits for the others, seconds: longer than a validation, which only the
/// first one does.
const TIMEOUT_S: f64 = 600.0;
/// Variable that sets another time.
const TIMEOUT_VARIABLE: &str = "ONDES_GROUP_TIMEOUT_S";
/// Elements of a bucket: four megabytes, from which the time of a sum is that of its bytes.
pub const BUCKET_ELEMENTS: i64 = 1 << 20;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use super::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub fn ondes_group_join(
            host: *const c_char,
            port: u16,
            serves: bool,
            prefix: *const c_char,
            address: *const c_char,
            rank: c_int,
            size: c_int,
            timeout_s: f64,
            out: *mut *mut c_void,
        ) -> *mut c_char;
        pub safe fn ondes_group_has_nccl() -> bool;
        pub fn ondes_group_join_gpus(group: *mut c_void, timeout_s: f64) -> *mut c_char;
        pub fn ondes_group_leave(group: *mut c_void);
        pub fn ondes_group_sum(group: *const c_void, tensor: *const c_void) -> *mut c_char;
        pub fn ondes_group_broadcast(
            group: *const c_void,
            tensor: *const c_void,
            root: c_int,
        ) -> *mut c_char;
        pub fn ondes_buckets_new(
            group: *const c_void,
            gradients: *const c_void,
            leaves: *const *const c_void,
            ends: *const i64,
            count: usize,
            bucket_elements: i64,
        ) -> *mut c_void;
        pub fn ondes_buckets_free(buckets: *mut c_void);
        pub fn ondes_buckets_arm(buckets: *const c_void);
        pub fn ondes_buckets_finish(buckets: *const c_void) -> *mut c_char;
    }
}

/// A collective operation failed: another process has gone, or cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError(String);

impl fmt::Display for GroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "another process of the run has gone: {}", self.0)
    }
}

impl std::error::Error for GroupError {}

/// Converts what a function of the shim returned.
#[expect(unsafe_code)]
fn checked(error: *mut c_char) -> Result<(), GroupError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the shim returns null or a string that it allocated with `strdup`, which is ours to
    // free.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        libc::free(error.cast());
        text
    };
    // Gloo begins with the position in its source.
    let text = match text.split_once("] ") {
        Some((position, text)) if position.starts_with('[') => text.to_owned(),
        _ => text,
    };
    Err(GroupError(text))
}

/// Processes that train together.
pub struct Group {
    handle: NonNull<c_void>,
    rank: usize,
    size: usize,
    /// GPUs add up among themselves.
    gpus_are_joined: bool,
}

impl fmt::Debug for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} of {}", self.rank, self.size)
    }
}

impl Group {
    /// Connects this process with the others; returns when all have come.
    ///
    /// # Errors
    /// Returns an error if they do not meet in time.
    #[expect(unsafe_code)]
    pub fn join(membership: &Membership) -> anyhow::Result<Self> {
        let Membership {
            rank,
            size,
            host,
            port,
            is_served,
            restarts,
            ..
        } = membership;
        let meeting =
            || format!("process {rank} of {size} cannot meet the others at {host}:{port}");
        let address = own_address(host, *port).with_context(meeting)?;
        // Keys of an earlier start may still be in the launcher's store.
        let prefix = CString::new(format!("ondes/{restarts}")).context("a prefix")?;
        let (name, address) = (CString::new(host.as_str())?, CString::new(address)?);
        let mut out = std::ptr::null_mut();
        // SAFETY: the strings outlive the call, and `out` is a pointer to write.
        let error = unsafe {
            shim::ondes_group_join(
                name.as_ptr(),
                *port,
                *rank == 0 && !is_served,
                prefix.as_ptr(),
                address.as_ptr(),
                c_int::try_from(*rank)?,
                c_int::try_from(*size)?,
                timeout_s(),
                &raw mut out,
            )
        };
        checked(error)
            .map_err(|GroupError(text)| anyhow::anyhow!(text))
            .with_context(meeting)?;
        let handle = NonNull::new(out).with_context(meeting)?;
        Ok(Self {
            handle,
            rank: *rank,
            size: *size,
            gpus_are_joined: false,
        })
    }

    /// Joins the GPUs of the processes by NCCL, if all processes call this with `true`: each then
    /// has one of its own, and an NVIDIA libtorch. Otherwise tensors on GPUs pass through the CPU's
    /// memory.
    ///
    /// # Errors
    /// Returns an error if a process has gone, or NCCL cannot be started.
    pub fn join_gpus(&mut self, has_own_gpu: bool) -> anyhow::Result<()> {
        let can = has_own_gpu && shim::ondes_group_has_nccl();
        if self.sums(&[f64::from(u8::from(can))])?[0] as usize == self.size {
            self.start_nccl()?;
        }
        Ok(())
    }

    #[expect(unsafe_code)]
    pub(super) fn start_nccl(&mut self) -> anyhow::Result<()> {
        // SAFETY: the handle is alive, and no other thread uses it.
        let error = unsafe { shim::ondes_group_join_gpus(self.handle.as_ptr(), timeout_s()) };
        checked(error)
            .map_err(|GroupError(text)| anyhow::anyhow!("the GPUs cannot be joined: {text}"))?;
        self.gpus_are_joined = true;
        Ok(())
    }

    /// Returns whether tensors on a device are summed there.
    #[must_use]
    pub fn sums_on(&self, device: Device) -> bool {
        device == Device::Cpu || self.gpus_are_joined && device.is_cuda()
    }

    /// Returns the index of this process.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of processes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the range that this process computes of a batch of `rows` rows.
    #[must_use]
    pub fn rows(&self, rows: usize) -> Range<usize> {
        rows_of(self.rank, self.size, rows)
    }

    /// Replaces a tensor by its sum over the processes.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    #[expect(unsafe_code)]
    pub fn sum(&self, tensor: &mut Tensor) -> Result<(), GroupError> {
        self.on_device_of_sums(tensor, |tensor| {
            // SAFETY: group and tensor are alive, and the call ends when the sum is there.
            checked(unsafe { shim::ondes_group_sum(self.handle.as_ptr(), tensor.as_ptr().cast()) })
        })
    }

    /// Replaces a tensor by that of the first process.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    #[expect(unsafe_code)]
    pub fn broadcast(&self, tensor: &mut Tensor) -> Result<(), GroupError> {
        self.on_device_of_sums(tensor, |tensor| {
            // SAFETY: as in `sum`.
            checked(unsafe {
                shim::ondes_group_broadcast(self.handle.as_ptr(), tensor.as_ptr().cast(), 0)
            })
        })
    }

    /// Runs a collective on a tensor where and as it is, or on a copy.
    fn on_device_of_sums(
        &self,
        tensor: &mut Tensor,
        run: impl FnOnce(&Tensor) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        tch::no_grad(|| {
            let device = if self.sums_on(tensor.device()) {
                tensor.device()
            } else {
                Device::Cpu
            };
            if tensor.device() == device && tensor.is_contiguous() {
                return run(tensor);
            }
            let copy = tensor.to_device(device).contiguous();
            run(&copy)?;
            tensor.copy_(&copy);
            Ok(())
        })
    }

    /// Returns sums of numbers over the processes.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    pub fn sums(&self, numbers: &[f64]) -> Result<Vec<f64>, GroupError> {
        let mut tensor = Tensor::from_slice(numbers);
        self.sum(&mut tensor)?;
        Vec::try_from(&tensor).map_err(|error: tch::TchError| GroupError(error.to_string()))
    }

    /// Returns bytes of the first process; those of the others do not matter.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    pub fn bytes_of_first(&self, bytes: &[u8]) -> Result<Vec<u8>, GroupError> {
        let length = if self.rank == 0 { bytes.len() } else { 0 };
        let length = self.sums(&[length as f64])?[0] as i64;
        let mut tensor = match self.rank {
            0 => Tensor::from_slice(bytes),
            _ => Tensor::zeros([length], (Kind::Uint8, Device::Cpu)),
        };
        self.broadcast(&mut tensor)?;
        Vec::try_from(&tensor).map_err(|error: tch::TchError| GroupError(error.to_string()))
    }
}

fn timeout_s() -> f64 {
    std::env::var(TIMEOUT_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(TIMEOUT_S)
}

/// Returns the range of a batch of `rows` rows that a process computes.
#[must_use]
pub fn rows_of(rank: usize, size: usize, rows: usize) -> Range<usize> {
    rank * rows / size..(rank + 1) * rows / size
}

impl Drop for Group {
    #[expect(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the handle came from `ondes_group_join` and is not used afterwards.
        unsafe { shim::ondes_group_leave(self.handle.as_ptr()) };
    }
}

/// Returns the address of this machine on the way to a host, as the others see it.
fn own_address(host: &str, port: u16) -> std::io::Result<String> {
    // Connecting a datagram socket sends nothing.
    let connect = |local: &str| {
        let socket = UdpSocket::bind(local)?;
        socket.connect((host, port))?;
        Ok(socket.local_addr()?.ip().to_string())
    };
    connect("0.0.0.0:0").or_else(|_: std::io::Error| connect("[::]:0"))
}

/// Sums of a flat gradient, which begin while the backward pass still runs.
pub struct Buckets {
    handle: NonNull<c_void>,
    /// The shim points to it.
    _group: Rc<Group>,
}

impl Buckets {
    /// Divides a flat gradient on a device [of sums](Group::sums_on), to which the gradients of
    /// `leaves` belong in order, each up to its end, into buckets of at least `bucket_elements`.
    #[must_use]
    #[expect(unsafe_code)]
    pub fn new(
        group: Rc<Group>,
        gradients: &Tensor,
        leaves: &[Tensor],
        ends: &[i64],
        bucket_elements: i64,
    ) -> Option<Self> {
        assert_eq!(leaves.len(), ends.len());
        let pointers: Vec<*const c_void> = leaves.iter().map(|leaf| leaf.as_ptr().cast()).collect();
        // SAFETY: all tensors are alive, and both lists have `len` elements.
        let handle = unsafe {
            shim::ondes_buckets_new(
                group.handle.as_ptr(),
                gradients.as_ptr().cast(),
                pointers.as_ptr(),
                ends.as_ptr(),
                ends.len(),
                bucket_elements,
            )
        };
        Some(Self {
            handle: NonNull::new(handle)?,
            _group: group,
        })
    }

    /// Lets the next backward pass start the sums.
    #[expect(unsafe_code)]
    pub fn arm(&self) {
        // SAFETY: the handle is alive.
        unsafe { shim::ondes_buckets_arm(self.handle.as_ptr()) };
    }

    /// Starts the sums that are left, and waits for all.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    #[expect(unsafe_code)]
    pub fn finish(&self) -> Result<(), GroupError> {
        // SAFETY: the handle is alive.
        checked(unsafe { shim::ondes_buckets_finish(self.handle.as_ptr()) })
    }
}

impl Drop for Buckets {
    #[expect(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the handle came from `ondes_buckets_new` and is not used afterwards.
        unsafe { shim::ondes_buckets_free(self.handle.as_ptr()) };
    }
}
