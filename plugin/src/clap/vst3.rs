//! The VST3 entry points, which lead to the wrapper that `build.rs` builds. It finds our CLAP entry
//! by its symbol.

use std::ffi::c_void;

unsafe extern "system" {
    fn clap_wrapper_GetPluginFactory() -> *mut c_void;
}

/// Declares a module entry point and exports it under its own name.
macro_rules! export {
    ($abi:literal $name:ident = $wrapped:ident($($argument:ident)?)) => {
        unsafe extern $abi {
            fn $wrapped($($argument: *mut c_void)?) -> bool;
        }

        /// Calls the wrapper's function of this name.
        ///
        /// # Safety
        /// As VST3 requires: on the main thread, when the module is loaded or unloaded.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "VST3 gives the name")]
        pub unsafe extern $abi fn $name($($argument: *mut c_void)?) -> bool {
            // SAFETY: guaranteed by the caller.
            unsafe { $wrapped($($argument)?) }
        }
    };
}

/// Returns the VST3 factory.
///
/// # Safety
/// On the main thread, after the module has been entered.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "VST3 gives the name")]
pub unsafe extern "system" fn GetPluginFactory() -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    unsafe { clap_wrapper_GetPluginFactory() }
}

#[cfg(all(unix, not(target_os = "macos")))]
export!("C" ModuleEntry = clap_wrapper_ModuleEntry(module));
#[cfg(all(unix, not(target_os = "macos")))]
export!("C" ModuleExit = clap_wrapper_ModuleExit());
#[cfg(target_os = "macos")]
export!("C" bundleEntry = clap_wrapper_bundleEntry(module));
#[cfg(target_os = "macos")]
export!("C" bundleExit = clap_wrapper_bundleExit());
#[cfg(windows)]
export!("system" InitDll = clap_wrapper_InitDll());
#[cfg(windows)]
export!("system" ExitDll = clap_wrapper_ExitDll());
