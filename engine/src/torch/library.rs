//! The library `ondes-torch`, opened on first use.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::description::{LibraryInfo, ProgramDescription};
use super::error::TorchError;
use super::interface::{Interface, InterfaceFn, Listener, SYMBOL, VERSION, append_text};
use super::library_paths;
use super::prepare_request::{PrepareRequest, step_values};
use super::prepared_method::PreparedMethod;
use crate::executor::Device;
use crate::model::Port;
use crate::sync::lock;

/// The opened library.
pub struct Library {
    interface: &'static Interface,
    path: PathBuf,
    /// Number of GPUs that libtorch can use.
    pub gpus: usize,
}

impl Library {
    /// Returns the library of this process. Tries again after a failure, since the library may have
    /// been installed meanwhile.
    ///
    /// # Errors
    /// Returns [`TorchError`] with what is missing and the remedy.
    pub fn get() -> Result<Arc<Self>, TorchError> {
        static OPENED: Mutex<Option<Arc<Library>>> = Mutex::new(None);
        let mut opened = lock(&OPENED);
        if let Some(library) = &*opened {
            return Ok(library.clone());
        }
        let looked = library_paths::libraries();
        let Some(path) = looked.iter().find(|path| path.is_file()) else {
            return Err(TorchError::Missing { looked });
        };
        let library = Arc::new(Self::open(path)?);
        tracing::info!("libtorch: {} with {} GPUs", path.display(), library.gpus);
        Ok(opened.insert(library).clone())
    }

    /// Returns the file of the library.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the available devices, starting with [`Device::Auto`].
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        let gpus = (0..=u8::MAX).take(self.gpus).map(Device::Cuda);
        [Device::Auto, Device::Cpu]
            .into_iter()
            .chain(gpus)
            .collect()
    }

    /// Opens a library. It stays in memory, since libtorch cannot be unloaded.
    ///
    /// # Errors
    /// Returns [`TorchError`] if the library or libtorch cannot be opened, or belongs to another
    /// version.
    #[expect(unsafe_code)]
    pub fn open(path: &Path) -> Result<Self, TorchError> {
        let broken = |error: &dyn std::fmt::Display| TorchError::Broken {
            path: path.into(),
            reason: error.to_string().split('\n').collect::<Vec<_>>().join(" "),
        };
        // First, since the system identifies loaded libraries by name: this copy then serves all
        // later ones.
        if let Some(folder) = library_paths::libtorch_found() {
            for name in ["torch_cpu", "torch_cuda"] {
                let path = folder.join(library_paths::file(name));
                if path.is_file()
                    && let Err(error) = load_globally(&path)
                {
                    tracing::warn!("{}: {error}", path.display());
                }
            }
        }
        // SAFETY: the initialisers are those of Rust and libtorch, which have no preconditions.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| broken(&error))?;
        // SAFETY: the symbol has this type in all versions, and the table stays valid because the
        // library is never closed.
        let interface = unsafe {
            let entry: libloading::Symbol<'_, InterfaceFn> =
                library.get(SYMBOL).map_err(|error| broken(&error))?;
            let table = entry();
            // Other versions differ after the first field.
            let found = table.cast::<u32>().read();
            if found != VERSION {
                return Err(TorchError::Version {
                    path: path.into(),
                    found,
                });
            }
            &*table
        };
        std::mem::forget(library);
        let mut opened = Self {
            interface,
            path: path.into(),
            gpus: 0,
        };
        // SAFETY: listener and context belong together.
        let info =
            opened.call(|listener, context| unsafe { (interface.about)(listener, context) })?;
        opened.gpus = parsed::<LibraryInfo>(&info)?.gpus;
        Ok(opened)
    }

    /// Calls a function and returns the text that it sends, or its error.
    fn call(&self, call: impl FnOnce(Listener, *mut c_void) -> bool) -> Result<String, TorchError> {
        let mut text: Vec<u8> = Vec::new();
        let succeeded = call(append_text, (&raw mut text).cast());
        let text = String::from_utf8_lossy(&text).into_owned();
        if succeeded {
            Ok(text)
        } else {
            Err(TorchError::Program(text))
        }
    }

    /// Runs a program and describes it.
    ///
    /// # Errors
    /// Returns [`TorchError::Program`] if the program fails or follows no known convention.
    #[expect(unsafe_code)]
    pub fn describe(&self, program: &[u8]) -> Result<ProgramDescription, TorchError> {
        // SAFETY: the bytes are valid during the call.
        let description = self.call(|listener, context| unsafe {
            (self.interface.describe)(program.as_ptr(), program.len(), listener, context)
        })?;
        parsed(&description)
    }

    /// Prepares a method from the bytes of a program or a model file.
    ///
    /// # Errors
    /// Returns [`TorchError::Program`] if the method cannot be prepared.
    #[expect(unsafe_code)]
    pub fn prepare(
        self: &Arc<Self>,
        request: &PrepareRequest,
        bytes: &[u8],
    ) -> Result<LibraryExecutor, TorchError> {
        let text =
            serde_json::to_vec(request).map_err(|error| TorchError::Program(error.to_string()))?;
        let mut executor = std::ptr::null_mut();
        // SAFETY: all slices are valid during the call.
        self.call(|listener, context| unsafe {
            let (request, bytes, length) = (text.as_ptr(), bytes.as_ptr(), bytes.len());
            (self.interface.prepare)(
                request,
                text.len(),
                bytes,
                length,
                &raw mut executor,
                listener,
                context,
            )
        })?;
        Ok(LibraryExecutor {
            library: self.clone(),
            executor,
            request: request.clone(),
        })
    }
}

/// A prepared method in the library, in this process.
pub struct LibraryExecutor {
    library: Arc<Library>,
    executor: *mut c_void,
    request: PrepareRequest,
}

// SAFETY: one thread at a time uses the executor, and the library allows a different one each time.
#[expect(unsafe_code)]
unsafe impl Send for LibraryExecutor {}

#[expect(unsafe_code)]
impl Drop for LibraryExecutor {
    fn drop(&mut self) {
        // SAFETY: the handle comes from this library and is not used afterwards.
        unsafe { (self.library.interface.free)(self.executor) }
    }
}

#[expect(unsafe_code)]
impl PreparedMethod for LibraryExecutor {
    /// # Panics
    /// Panics if a port has more or fewer values than this step, or a stream or the blocks exceed
    /// what was prepared.
    fn run(
        &mut self,
        streams: &[usize],
        blocks: usize,
        inputs: &[&[f32]],
        outputs: &mut [&mut [f32]],
    ) -> Result<(), TorchError> {
        let PrepareRequest {
            method,
            streams: max_streams,
            blocks: max_blocks,
            ..
        } = &self.request;
        assert!(
            streams.len() <= *max_streams && streams.iter().all(|stream| stream < max_streams),
            "unknown stream"
        );
        assert!(blocks <= *max_blocks, "too many blocks");
        let values = |port: &Port| step_values(port, method.block, streams.len(), blocks);
        assert!(
            method
                .inputs
                .iter()
                .map(values)
                .eq(inputs.iter().map(|port| port.len())),
            "other inputs"
        );
        assert!(
            method
                .outputs
                .iter()
                .map(values)
                .eq(outputs.iter().map(|port| port.len())),
            "other outputs"
        );
        let inputs: Vec<*const f32> = inputs.iter().map(|values| values.as_ptr()).collect();
        let outputs: Vec<*mut f32> = outputs
            .iter_mut()
            .map(|values| values.as_mut_ptr())
            .collect();
        // SAFETY: the handle comes from this library, and all slices are as long as the request
        // says.
        let run = |listener, context| unsafe {
            let (inputs, outputs) = (inputs.as_ptr(), outputs.as_ptr());
            let (count, streams) = (streams.len(), streams.as_ptr());
            (self.library.interface.run)(
                self.executor,
                streams,
                count,
                blocks,
                inputs,
                outputs,
                listener,
                context,
            )
        };
        self.library.call(run).map(drop)
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        assert!(stream < self.request.streams, "unknown stream");
        // SAFETY: the handle comes from this library.
        unsafe { (self.library.interface.seed)(self.executor, stream, seed) }
    }

    fn bytes(&self) -> usize {
        // SAFETY: the handle comes from this library.
        unsafe { (self.library.interface.bytes)(self.executor) }
    }

    fn device(&self) -> String {
        let device = self.library.call(|listener, context| {
            // SAFETY: the handle comes from this library.
            unsafe { (self.library.interface.device)(self.executor, listener, context) };
            true
        });
        device.unwrap_or_default()
    }
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, TorchError> {
    serde_json::from_str(text)
        .map_err(|error| TorchError::Program(format!("the library sent malformed JSON: {error}")))
}

/// Loads a library of libtorch with global symbols, for the rest of the process.
#[expect(unsafe_code)]
fn load_globally(path: &Path) -> Result<(), libloading::Error> {
    // SAFETY: libtorch's initialisers have no preconditions.
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
