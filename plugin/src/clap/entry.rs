//! CLAP entry point and plugin factory.

use std::ffi::{CStr, c_char, c_void};
use std::panic::catch_unwind;
use std::ptr::{from_ref, null};
use std::sync::OnceLock;

use clap_sys::entry::clap_plugin_entry;
use clap_sys::factory::plugin_factory::{CLAP_PLUGIN_FACTORY_ID, clap_plugin_factory};
use clap_sys::host::clap_host;
use clap_sys::plugin::{clap_plugin, clap_plugin_descriptor};
use clap_sys::version::CLAP_VERSION;
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::PluginDescriptor;
use nice_plug::wrapper::setup_logger;
use ondes_engine::panics::install_hook;

use super::callbacks;
use super::plugin_wrapper::RequestInstance;
use crate::effect::OndesFx;
use crate::instrument::Ondes;
use crate::preset::discovery;

/// The symbol that CLAP hosts look up. Its functions require of a host what CLAP does: strings end
/// with NUL, and a host outlives its plugins.
// SAFETY: hosts look the symbol up in this library alone, and its type is the one that CLAP
// prescribes.
#[unsafe(no_mangle)]
#[used]
#[allow(
    non_upper_case_globals,
    reason = "the CLAP specification gives the name"
)]
pub static clap_entry: clap_plugin_entry = clap_plugin_entry {
    clap_version: CLAP_VERSION,
    init: Some(init),
    deinit: Some(deinit),
    get_factory: Some(get_factory),
};

static FACTORY: clap_plugin_factory = clap_plugin_factory {
    get_plugin_count: Some(get_plugin_count),
    get_plugin_descriptor: Some(get_plugin_descriptor),
    create_plugin: Some(create_plugin),
};

/// Descriptor and constructor of one plugin.
struct FactoryEntry {
    descriptor: PluginDescriptor,
    /// Creates the plugin.
    ///
    /// # Safety
    /// The host must be valid for as long as the plugin lives.
    create: unsafe fn(*const clap_host) -> *const clap_plugin,
}

impl FactoryEntry {
    fn of<P: ClapPlugin<BackgroundTask = RequestInstance>>() -> Self {
        Self {
            descriptor: PluginDescriptor::for_plugin::<P>(),
            create: callbacks::create::<P>,
        }
    }
}

fn factory_entries() -> &'static [FactoryEntry] {
    static ENTRIES: OnceLock<[FactoryEntry; 2]> = OnceLock::new();
    ENTRIES.get_or_init(|| [FactoryEntry::of::<Ondes>(), FactoryEntry::of::<OndesFx>()])
}

unsafe extern "C" fn init(_path: *const c_char) -> bool {
    catch_unwind(|| {
        setup_logger::<Ondes>();
        setup_logger::<OndesFx>();
        // After the logger, which logs panics of audio threads, too.
        install_hook();
    })
    .is_ok()
}

unsafe extern "C" fn deinit() {}

unsafe extern "C" fn get_factory(id: *const c_char) -> *const c_void {
    if id.is_null() {
        return null();
    }
    // SAFETY: CLAP passes a NUL-terminated string.
    let id = unsafe { CStr::from_ptr(id) };
    if id == CLAP_PLUGIN_FACTORY_ID {
        from_ref(&FACTORY).cast()
    } else {
        discovery::factory(id)
    }
}

unsafe extern "C" fn get_plugin_count(_: *const clap_plugin_factory) -> u32 {
    catch_unwind(|| factory_entries().len() as u32).unwrap_or(0)
}

unsafe extern "C" fn get_plugin_descriptor(
    _: *const clap_plugin_factory,
    index: u32,
) -> *const clap_plugin_descriptor {
    let descriptor = || {
        let entry = factory_entries().get(index as usize)?;
        Some(from_ref(entry.descriptor.clap_plugin_descriptor()))
    };
    catch_unwind(descriptor).ok().flatten().unwrap_or(null())
}

unsafe extern "C" fn create_plugin(
    _: *const clap_plugin_factory,
    host: *const clap_host,
    id: *const c_char,
) -> *const clap_plugin {
    if host.is_null() || id.is_null() {
        return null();
    }
    // SAFETY: CLAP passes a NUL-terminated string.
    let id = unsafe { CStr::from_ptr(id) };
    let plugin = || {
        let entry = factory_entries()
            .iter()
            .find(|entry| entry.descriptor.clap_id() == id)?;
        // SAFETY: the host is not null, and CLAP requires it to outlive its plugins.
        Some(unsafe { (entry.create)(host) })
    };
    catch_unwind(plugin).ok().flatten().unwrap_or(null())
}
