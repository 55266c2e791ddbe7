//! The library, opened when it is needed for the first time.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::description::{About, Description};
use super::interface::{Entry, Interface, Listener, SYMBOL, VERSION, hear};
use super::order::Order;
use super::places;
use crate::executor::Device;

/// Why a program cannot be run. Each is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TorchError {
    /// There is no library.
    #[error(
        "runs on libtorch, and {} is not there ({NO_LIBRARY}); looked for {}",
        places::library_file(),
        names(looked)
    )]
    Missing {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The library is there, and libtorch is not, or something else that it needs.
    #[error("runs on libtorch, which cannot be opened ({NO_LIBTORCH}): {}: {reason}", path.display())]
    Broken {
        /// The library.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The library is of another version.
    #[error("{} is of another version of Ondes (interface {found}, this is {VERSION}): {OTHER_LIBRARY}", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// The version of its interface.
        found: u32,
    },
    /// The library was asked for something that it could not do.
    #[error("{0}")]
    Program(String),
}

/// What helps where there is no library.
const NO_LIBRARY: &str = "it comes beside the app, and `ondes setup-torch` installs it; from a checkout `cargo xtask install --torch` makes it";
/// What helps where there is no libtorch.
const NO_LIBTORCH: &str = "`ondes setup-torch` installs it; in a checkout `cargo xtask setup --torch` does";
/// What helps where there is another library.
const OTHER_LIBRARY: &str =
    "`ondes setup-torch` of this version replaces it; from a checkout `cargo xtask install --torch` does";

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The library `ondes-torch`.
pub struct Library {
    interface: &'static Interface,
    /// GPUs that libtorch can use.
    pub gpus: usize,
}

impl Library {
    /// The library of this process. Where it could not be opened it is tried again, since it may have been installed meanwhile.
    ///
    /// # Errors
    /// [`TorchError`] says what is missing and what helps.
    pub fn get() -> Result<Arc<Self>, TorchError> {
        static OPENED: Mutex<Option<Arc<Library>>> = Mutex::new(None);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = &*opened {
            return Ok(library.clone());
        }
        let looked = places::libraries();
        let Some(path) = looked.iter().find(|path| path.is_file()) else { return Err(TorchError::Missing { looked }) };
        let library = Arc::new(Self::open(path)?);
        tracing::info!("libtorch: {} with {} GPUs", path.display(), library.gpus);
        Ok(opened.insert(library).clone())
    }

    /// Where it can compute; the choice that is the library's own first.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        let gpus = (0..=u8::MAX).take(self.gpus).map(Device::Cuda);
        [Device::Auto, Device::Cpu].into_iter().chain(gpus).collect()
    }

    /// Opens a library. It stays in memory, as libtorch must.
    ///
    /// # Errors
    /// [`TorchError`] says what is wrong with it.
    #[expect(unsafe_code)]
    pub fn open(path: &Path) -> Result<Self, TorchError> {
        let broken = |error: &dyn std::fmt::Display| TorchError::Broken {
            path: path.into(),
            reason: error.to_string().split('\n').collect::<Vec<_>>().join(" "),
        };
        // Whichever is found first counts for all: libraries are known by their names, not by where they lie.
        if let Some(folder) = places::libtorch_found() {
            for name in ["torch_cpu", "torch_cuda"] {
                let path = folder.join(places::file(name));
                if path.is_file()
                    && let Err(error) = keep(&path)
                {
                    tracing::warn!("{}: {error}", path.display());
                }
            }
        }
        // SAFETY: its initialisers are those of Rust and of libtorch, which have no conditions.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| broken(&error))?;
        // SAFETY: that is its type in all versions, and the table stays where it is because the library is never closed.
        let interface = unsafe {
            let entry: libloading::Symbol<'_, Entry> = library.get(SYMBOL).map_err(|error| broken(&error))?;
            let table = entry();
            // Other versions have other fields after the first one.
            let found = table.cast::<u32>().read();
            if found != VERSION {
                return Err(TorchError::Version { path: path.into(), found });
            }
            &*table
        };
        std::mem::forget(library);
        let mut opened = Self { interface, gpus: 0 };
        // SAFETY: that is how it is called.
        let about = opened.ask(|listener, context| unsafe { (interface.about)(listener, context) })?;
        opened.gpus = parsed::<About>(&about)?.gpus;
        Ok(opened)
    }

    /// Calls something that may say something.
    fn ask(&self, call: impl FnOnce(Listener, *mut c_void) -> bool) -> Result<String, TorchError> {
        let mut heard: Vec<u8> = Vec::new();
        let done = call(hear, (&raw mut heard).cast());
        let heard = String::from_utf8_lossy(&heard).into_owned();
        if done { Ok(heard) } else { Err(TorchError::Program(heard)) }
    }

    /// What is in a program. Runs it.
    ///
    /// # Errors
    /// [`TorchError::Program`] when it cannot be run, or keeps to no convention that is known.
    #[expect(unsafe_code)]
    pub fn describe(&self, program: &[u8]) -> Result<Description, TorchError> {
        // SAFETY: the bytes are there while it is called.
        let told = self.ask(|listener, context| unsafe {
            (self.interface.describe)(program.as_ptr(), program.len(), listener, context)
        })?;
        parsed(&told)
    }

    /// Makes something that can be stepped, of the bytes of a program or a model file.
    ///
    /// # Errors
    /// [`TorchError::Program`] when that is not possible.
    #[expect(unsafe_code)]
    pub(super) fn make(self: &Arc<Self>, order: &Order, bytes: &[u8]) -> Result<Made, TorchError> {
        let text = serde_json::to_vec(order).map_err(|error| TorchError::Program(error.to_string()))?;
        let mut made = std::ptr::null_mut();
        // SAFETY: all slices are there while it is called.
        self.ask(|listener, context| unsafe {
            let (order, bytes, length) = (text.as_ptr(), bytes.as_ptr(), bytes.len());
            (self.interface.make)(order, text.len(), bytes, length, &raw mut made, listener, context)
        })?;
        Ok(Made { library: self.clone(), made })
    }
}

/// Something that was made.
pub(super) struct Made {
    library: Arc<Library>,
    made: *mut c_void,
}

// SAFETY: what is made is used by one thread at a time, and the library promises that it may be another one each time.
#[expect(unsafe_code)]
unsafe impl Send for Made {}

#[expect(unsafe_code)]
impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: it was made by this library, and nobody uses it after this.
        unsafe { (self.library.interface.free)(self.made) }
    }
}

#[expect(unsafe_code)]
impl Made {
    /// Where it computes.
    pub fn device(&self) -> String {
        let device = self.library.ask(|listener, context| {
            // SAFETY: it was made by this library.
            unsafe { (self.library.interface.device)(self.made, listener, context) };
            true
        });
        device.unwrap_or_default()
    }

    /// Bytes of weights and states.
    pub fn bytes(&self) -> usize {
        // SAFETY: it was made by this library.
        unsafe { (self.library.interface.bytes)(self.made) }
    }

    /// Forgets all that a stream has heard and gives its noise another seed.
    pub fn seed(&mut self, stream: usize, seed: u64) {
        // SAFETY: it was made by this library.
        unsafe { (self.library.interface.seed)(self.made, stream, seed) }
    }

    /// Steps; `inputs` and `outputs` are as long as the order says, for each port `[stream][frame][channel]`.
    pub fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[*const f32],
        outputs: &[*mut f32],
    ) -> Result<(), TorchError> {
        // SAFETY: it was made by this library, and our caller sees to the lengths.
        let run = |listener, context| unsafe {
            let (inputs, outputs) = (inputs.as_ptr(), outputs.as_ptr());
            let (count, streams) = (streams.len(), streams.as_ptr());
            (self.library.interface.run)(self.made, streams, count, blocks, inputs, outputs, listener, context)
        };
        self.library.ask(run).map(drop)
    }
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, TorchError> {
    serde_json::from_str(text)
        .map_err(|error| TorchError::Program(format!("the library says what makes no sense: {error}")))
}

/// Opens a library of libtorch for all that come after it, and for good.
#[expect(unsafe_code)]
fn keep(path: &Path) -> Result<(), libloading::Error> {
    // SAFETY: libtorch's initialisers have no conditions.
    #[cfg(unix)]
    let library = unsafe {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL)?
    };
    // SAFETY: as above.
    #[cfg(not(unix))]
    let library = unsafe { libloading::Library::new(path)? };
    std::mem::forget(library);
    Ok(())
}
