//! What a host asks before there is an instance: which plugins there are.

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

use super::shell::{self, Introduce};
use crate::effect::OndesFx;
use crate::instrument::Ondes;
use crate::preset::discovery;

/// Where a host begins; found by its name.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "CLAP names it")]
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

/// A plugin that can be made.
struct Offer {
    descriptor: PluginDescriptor,
    make: unsafe fn(*const clap_host) -> *const clap_plugin,
}

impl Offer {
    fn of<P: ClapPlugin<BackgroundTask = Introduce>>() -> Self {
        Self { descriptor: PluginDescriptor::for_plugin::<P>(), make: shell::make::<P> }
    }
}

fn offers() -> &'static [Offer] {
    static OFFERS: OnceLock<[Offer; 2]> = OnceLock::new();
    OFFERS.get_or_init(|| [Offer::of::<Ondes>(), Offer::of::<OndesFx>()])
}

unsafe extern "C" fn init(_path: *const c_char) -> bool {
    catch_unwind(|| {
        setup_logger::<Ondes>();
        setup_logger::<OndesFx>();
    })
    .is_ok()
}

unsafe extern "C" fn deinit() {}

unsafe extern "C" fn get_factory(id: *const c_char) -> *const c_void {
    if id.is_null() {
        return null();
    }
    // SAFETY: CLAP gives a text that ends with a zero.
    let id = unsafe { CStr::from_ptr(id) };
    if id == CLAP_PLUGIN_FACTORY_ID { from_ref(&FACTORY).cast() } else { discovery::factory(id) }
}

unsafe extern "C" fn get_plugin_count(_: *const clap_plugin_factory) -> u32 {
    catch_unwind(|| offers().len() as u32).unwrap_or(0)
}

unsafe extern "C" fn get_plugin_descriptor(_: *const clap_plugin_factory, index: u32) -> *const clap_plugin_descriptor {
    let descriptor = || {
        let offer = offers().get(index as usize)?;
        Some(from_ref(offer.descriptor.clap_plugin_descriptor()))
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
    // SAFETY: CLAP gives a text that ends with a zero.
    let id = unsafe { CStr::from_ptr(id) };
    let plugin = || {
        let offer = offers().iter().find(|offer| offer.descriptor.clap_id() == id)?;
        // SAFETY: the host is there, and CLAP lets it live longer than its plugins.
        Some(unsafe { (offer.make)(host) })
    };
    catch_unwind(plugin).ok().flatten().unwrap_or(null())
}
