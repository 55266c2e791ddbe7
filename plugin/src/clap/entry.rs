//! CLAP entry point and plugin factory.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{from_ref, null};
use std::sync::OnceLock;

use clap_sys::entry::clap_plugin_entry;
use clap_sys::factory::plugin_factory::{CLAP_PLUGIN_FACTORY_ID, clap_plugin_factory};
use clap_sys::plugin::{clap_plugin, clap_plugin_descriptor};
use clap_sys::version::CLAP_VERSION;
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::PluginDescriptor;
use nice_plug::wrapper::setup_logger;
use ondes_engine::panics::install_hook;

use super::c_interface::{c_function, catch_panic};
use super::callbacks;
use super::framework::RequestInstance;
use super::host::Host;
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
    get_factory: c_function!(get_factory, (id: &CStr) -> *const c_void),
};

static FACTORY: clap_plugin_factory = clap_plugin_factory {
    get_plugin_count: c_function!(count, (_factory: Option<&clap_plugin_factory>) -> u32),
    get_plugin_descriptor: c_function!(
        descriptor,
        (_factory: Option<&clap_plugin_factory>, index: u32) -> *const clap_plugin_descriptor
    ),
    create_plugin: c_function!(
        create,
        (_factory: Option<&clap_plugin_factory>, host: Host, id: &CStr) -> *const clap_plugin
    ),
};

/// Descriptor and constructor of one plugin.
struct FactoryEntry {
    descriptor: PluginDescriptor,
    /// Creates the plugin.
    create: fn(Host) -> Option<*const clap_plugin>,
}

impl FactoryEntry {
    fn new<P: ClapPlugin<BackgroundTask = RequestInstance>>() -> Self {
        Self {
            descriptor: PluginDescriptor::for_plugin::<P>(),
            create: callbacks::create::<P>,
        }
    }
}

fn factory_entries() -> &'static [FactoryEntry] {
    static ENTRIES: OnceLock<[FactoryEntry; 2]> = OnceLock::new();
    ENTRIES.get_or_init(|| [FactoryEntry::new::<Ondes>(), FactoryEntry::new::<OndesFx>()])
}

extern "C" fn init(_path: *const c_char) -> bool {
    catch_panic(|| {
        setup_logger::<Ondes>();
        setup_logger::<OndesFx>();
        // After the logger, which logs panics of audio threads, too.
        install_hook();
        Some(true)
    })
}

extern "C" fn deinit() {}

fn get_factory(id: &CStr) -> *const c_void {
    if id == CLAP_PLUGIN_FACTORY_ID {
        from_ref(&FACTORY).cast()
    } else {
        discovery::factory(id)
    }
}

fn count(_: Option<&clap_plugin_factory>) -> u32 {
    factory_entries().len() as u32
}

fn descriptor(_: Option<&clap_plugin_factory>, index: u32) -> *const clap_plugin_descriptor {
    let entry = factory_entries().get(index as usize);
    entry.map_or(null(), |entry| entry.descriptor.clap_plugin_descriptor())
}

fn create(_: Option<&clap_plugin_factory>, host: Host, id: &CStr) -> *const clap_plugin {
    let mut entries = factory_entries().iter();
    let entry = entries.find(|entry| entry.descriptor.clap_id() == id);
    entry
        .and_then(|entry| (entry.create)(host))
        .unwrap_or(null())
}
