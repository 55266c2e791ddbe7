//! The VST3 entry points, which lead to the wrapper that `build.rs` builds. It finds our CLAP entry
//! by its symbol.

use std::ffi::c_void;

/// Declares a function of the wrapper and exports it under the name that VST3 gives.
macro_rules! export {
    ($abi:literal $name:ident = $wrapped:ident($($argument:ident)?) -> $result:ty) => {
        unsafe extern $abi {
            fn $wrapped($($argument: *mut c_void)?) -> $result;
        }

        /// Calls the wrapper's function of this name.
        ///
        /// # Safety
        /// As VST3 requires: on the main thread; entry and exit when the module is loaded or
        /// unloaded, the factory in between.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "VST3 gives the name")]
        pub unsafe extern $abi fn $name($($argument: *mut c_void)?) -> $result {
            // SAFETY: guaranteed by the caller.
            unsafe { $wrapped($($argument)?) }
        }
    };
}

export!("system" GetPluginFactory = clap_wrapper_GetPluginFactory() -> *mut c_void);
#[cfg(all(unix, not(target_os = "macos")))]
export!("C" ModuleEntry = clap_wrapper_ModuleEntry(module) -> bool);
#[cfg(all(unix, not(target_os = "macos")))]
export!("C" ModuleExit = clap_wrapper_ModuleExit() -> bool);
#[cfg(target_os = "macos")]
export!("C" bundleEntry = clap_wrapper_bundleEntry(module) -> bool);
#[cfg(target_os = "macos")]
export!("C" bundleExit = clap_wrapper_bundleExit() -> bool);
#[cfg(windows)]
export!("system" InitDll = clap_wrapper_InitDll() -> bool);
#[cfg(windows)]
export!("system" ExitDll = clap_wrapper_ExitDll() -> bool);
