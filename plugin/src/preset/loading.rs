//! Plays a preset that a host has chosen in its own browser.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use clap_sys::ext::preset_load::{
    CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT, clap_host_preset_load, clap_plugin_preset_load,
};
use clap_sys::ext::state::clap_plugin_state;
use clap_sys::factory::preset_discovery::{
    CLAP_PRESET_DISCOVERY_LOCATION_FILE, CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN, clap_preset_discovery_location_kind,
};
use clap_sys::host::clap_host;
use clap_sys::plugin::clap_plugin;
use ondes_processor::preset::Preset;
use ondes_processor::preset::file::Fault;
use ondes_processor::preset::list::Origin;

use super::{c_string, guarded, restoring, state, streams};
use crate::clap::shell::Shell;

/// The ids by which hosts ask for [`extension`], the newer one first.
pub const IDS: [&CStr; 2] = [CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT];

static PRESET_LOAD: clap_plugin_preset_load = clap_plugin_preset_load { from_location: Some(from_location) };

/// The extension, the same for all instances.
#[must_use]
pub fn extension() -> *const c_void {
    ptr::from_ref(&PRESET_LOAD).cast()
}

/// Why a preset is not played.
pub struct Refusal {
    os_error: i32,
    reason: String,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { os_error: 0, reason }
    }
}

unsafe extern "C" fn from_location(
    plugin: *const clap_plugin,
    kind: clap_preset_discovery_location_kind,
    location: *const c_char,
    key: *const c_char,
) -> bool {
    // SAFETY: the host calls this on its main thread, for an instance that it got from us, with what CLAP promises.
    unsafe {
        let host = Shell::of(plugin).map_or(ptr::null(), |shell| shell.host);
        load(plugin, host, kind, location, key)
    }
}

/// Plays a preset, and tells the host so; else tells it why not, and leaves everything as it is. Gives whether it plays.
///
/// # Safety
/// On the main thread. The plugin is alive; the host is null or the plugin's; `location` and `key` are null or texts.
pub unsafe fn load(
    plugin: *const clap_plugin,
    host: *const clap_host,
    kind: clap_preset_discovery_location_kind,
    location: *const c_char,
    key: *const c_char,
) -> bool {
    guarded(false, || {
        // SAFETY: as the caller's.
        let loaded = unsafe { find_and_put(plugin, kind, location, key) };
        // SAFETY: as the caller's; the host's functions may be called after it has given an extension.
        unsafe {
            let Some(host_side) = host_side(host) else { return loaded.is_ok() };
            match &loaded {
                Ok(()) => {
                    if let Some(tell) = host_side.loaded {
                        tell(host, kind, location, key);
                    }
                }
                Err(Refusal { os_error, reason }) => {
                    if let Some(tell) = host_side.on_error {
                        tell(host, kind, location, key, *os_error, c_string(reason).as_ptr());
                    }
                }
            }
        }
        loaded.is_ok()
    })
}

/// # Safety
/// The host is null or alive.
unsafe fn host_side<'a>(host: *const clap_host) -> Option<&'a clap_host_preset_load> {
    // SAFETY: the caller's; what a host gives for an id is of that type, or null.
    unsafe {
        let get = host.as_ref()?.get_extension?;
        IDS.iter().find_map(|id| get(host, id.as_ptr()).cast::<clap_host_preset_load>().as_ref())
    }
}

/// # Safety
/// As of [`load`].
unsafe fn find_and_put(
    plugin: *const clap_plugin,
    kind: clap_preset_discovery_location_kind,
    location: *const c_char,
    key: *const c_char,
) -> Result<(), Refusal> {
    // SAFETY: the caller's.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().ok()).flatten();
    let origin = match kind {
        CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN => text(key).map(|key| Origin::Factory(key.into())),
        CLAP_PRESET_DISCOVERY_LOCATION_FILE => text(location).map(|path| Origin::File(path.into())),
        _ => None,
    };
    let origin = origin.ok_or_else(|| Fault::Unknown.to_string())?;
    let preset =
        origin.read().map_err(|refused| Refusal { os_error: refused.fault.os_error(), reason: refused.to_string() })?;
    // SAFETY: the caller's.
    unsafe {
        let functions = restoring::frameworks(plugin).ok_or_else(|| refusal(&preset))?;
        put(plugin, functions, &preset)
    }
}

/// Plays a preset: puts it into what the plugin saves, and loads that.
///
/// # Errors
/// When it is for the other plugin, its model is missing, or the plugin does not take it; then nothing has changed.
///
/// # Safety
/// The plugin is alive, the functions are the framework's for it, and this is its main thread.
pub unsafe fn put(plugin: *const clap_plugin, functions: &clap_plugin_state, preset: &Preset) -> Result<(), Refusal> {
    // SAFETY: the plugin is alive, and so are its descriptor and what is in it.
    let id = unsafe { plugin.as_ref().and_then(|plugin| plugin.desc.as_ref()).map(|desc| CStr::from_ptr(desc.id)) };
    if id.and_then(|id| id.to_str().ok()) != Some(preset.product.id()) {
        return Err(format!("{}: {}", preset.name, Fault::Elsewhere(preset.product)).into());
    }
    preset.sound.selection.model.find().map_err(|missing| format!("{}: {missing}", preset.name))?;
    // SAFETY: the caller's.
    let saved = unsafe { streams::saved(plugin, functions) }.ok_or_else(|| refusal(preset))?;
    let bytes = state::with(&saved, preset).map_err(|error| format!("{}: {error}", preset.name))?;
    // SAFETY: the caller's.
    if unsafe { streams::load(plugin, functions, &bytes) } { Ok(()) } else { Err(refusal(preset)) }
}

fn refusal(preset: &Preset) -> Refusal {
    format!("{}: the plugin does not take it", preset.name).into()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap_sys::entry::clap_plugin_entry;
    use clap_sys::ext::state::CLAP_EXT_STATE;
    use clap_sys::factory::plugin_factory::{CLAP_PLUGIN_FACTORY_ID, clap_plugin_factory};
    use clap_sys::version::CLAP_VERSION;
    use ondes_processor::preset::{Product, file, store};

    use super::*;

    /// A host that remembers what it is told.
    struct Host {
        clap: clap_host,
        told: RefCell<Vec<String>>,
    }

    impl Host {
        fn new() -> Box<Self> {
            let name = c"test".as_ptr();
            let clap = clap_host {
                clap_version: CLAP_VERSION,
                host_data: ptr::null_mut(),
                name,
                vendor: name,
                url: name,
                version: name,
                get_extension: Some(get_extension),
                request_restart: Some(nothing),
                request_process: Some(nothing),
                request_callback: Some(nothing),
            };
            let mut host = Box::new(Self { clap, told: RefCell::default() });
            host.clap.host_data = ptr::from_ref(&host.told).cast_mut().cast();
            host
        }
    }

    static HOST_SIDE: clap_host_preset_load = clap_host_preset_load { on_error: Some(on_error), loaded: Some(loaded) };

    // SAFETY: what follows is only called with the host above, for which it is made.
    unsafe extern "C" fn nothing(_: *const clap_host) {}
    unsafe extern "C" fn get_extension(_: *const clap_host, id: *const c_char) -> *const c_void {
        // SAFETY: ids are texts.
        let known = unsafe { CStr::from_ptr(id) } == CLAP_EXT_PRESET_LOAD_COMPAT;
        if known { ptr::from_ref(&HOST_SIDE).cast() } else { ptr::null() }
    }
    unsafe fn tell(host: *const clap_host, line: String) {
        // SAFETY: as above.
        unsafe { &*(*host).host_data.cast::<RefCell<Vec<String>>>() }.borrow_mut().push(line);
    }
    unsafe extern "C" fn loaded(host: *const clap_host, kind: u32, _: *const c_char, _: *const c_char) {
        // SAFETY: as above.
        unsafe { tell(host, format!("loaded {kind}")) };
    }
    unsafe extern "C" fn on_error(
        host: *const clap_host,
        kind: u32,
        _: *const c_char,
        _: *const c_char,
        os_error: i32,
        message: *const c_char,
    ) {
        // SAFETY: as above; the message is a text.
        unsafe { tell(host, format!("error {kind} {} {}", os_error != 0, CStr::from_ptr(message).to_str().unwrap())) };
    }

    /// The real plugin.
    struct Instance {
        plugin: *const clap_plugin,
        host: Box<Host>,
    }

    impl Instance {
        fn new(product: Product) -> Self {
            let (host, id) = (Host::new(), c_string(product.id()));
            let entry: &clap_plugin_entry = &crate::clap::entry::clap_entry;
            // SAFETY: this is what a host does, in its order.
            let plugin = unsafe {
                assert!(entry.init.unwrap()(c"/nowhere".as_ptr()));
                let factory = entry.get_factory.unwrap()(CLAP_PLUGIN_FACTORY_ID.as_ptr()).cast::<clap_plugin_factory>();
                let plugin = (*factory).create_plugin.unwrap()(factory, &raw const host.clap, id.as_ptr());
                assert!((*plugin).init.unwrap()(plugin));
                plugin
            };
            Self { plugin, host }
        }

        fn load(&self, kind: u32, location: Option<&str>, key: Option<&str>) -> (bool, Vec<String>) {
            let (location, key) = (location.map(c_string), key.map(c_string));
            let text = |text: &Option<std::ffi::CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
            // SAFETY: plugin and host are alive, and this is the thread that made them.
            let fine = unsafe { load(self.plugin, &raw const self.host.clap, kind, text(&location), text(&key)) };
            (fine, self.host.told.take())
        }

        /// What a host is given for states.
        fn functions(&self) -> &clap_plugin_state {
            // SAFETY: the plugin is alive and has this extension.
            unsafe {
                let get = (*self.plugin).get_extension.unwrap();
                &*get(self.plugin, CLAP_EXT_STATE.as_ptr()).cast::<clap_plugin_state>()
            }
        }

        fn restore(&self, bytes: &[u8]) -> bool {
            // SAFETY: the plugin is alive, and this is the thread that made it.
            unsafe { streams::load(self.plugin, self.functions(), bytes) }
        }

        fn state(&self) -> serde_json::Value {
            // SAFETY: the plugin is alive.
            let saved = unsafe { streams::saved(self.plugin, self.functions()) }.unwrap();
            let mut state: serde_json::Value = serde_json::from_slice(&saved[8..]).unwrap();
            state["fields"] = serde_json::from_str(state["fields"]["ondes"].as_str().unwrap()).unwrap();
            state
        }
    }

    impl Drop for Instance {
        fn drop(&mut self) {
            // SAFETY: it is alive, and nobody uses it afterwards.
            unsafe { (*self.plugin).destroy.unwrap()(self.plugin) };
        }
    }

    #[test]
    fn the_real_plugin_plays_what_its_host_chooses() {
        let instance = Instance::new(Product::Instrument);
        let folder = tempfile::tempdir().unwrap();
        let preset = Origin::Factory("harp".into()).read().unwrap();
        let mine = Preset { name: "Mine".into(), ..preset.clone() };
        let path = store::save(folder.path(), &mine, false).unwrap();
        let (plugin, file) = (CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN, CLAP_PRESET_DISCOVERY_LOCATION_FILE);

        assert_eq!(instance.load(plugin, None, Some("breathy-solo")), (true, vec!["loaded 1".to_owned()]));
        let state = instance.state();
        assert_eq!(
            (state["fields"]["model"]["name"].as_str(), state["params"]["mix"]["f32"].as_f64()),
            (Some("Wind"), Some(1.0))
        );
        assert_eq!(instance.load(file, path.to_str(), None), (true, vec!["loaded 0".to_owned()]));
        let state = instance.state();
        assert_eq!(state["fields"]["model"]["name"], "Plucked");
        for (id, value) in &preset.sound.parameters {
            let (wanted, there) = (serde_json::to_value(value).unwrap(), &state["params"][id]);
            match wanted.as_f64() {
                Some(wanted) => {
                    let there = there["f32"].as_f64().or(there["i32"].as_f64()).unwrap();
                    assert!((there - wanted).abs() < 1e-6, "{id}: {there}, not {wanted}");
                }
                None if wanted.is_boolean() => assert_eq!(there["bool"], wanted, "{id}"),
                None => assert_eq!(there["string"], wanted, "{id}"),
            }
        }

        let refused = |kind, location, key, reason: &str| {
            let (fine, told) = instance.load(kind, location, key);
            assert!(!fine && told.len() == 1 && told[0].starts_with("error ") && told[0].contains(reason), "{told:?}");
        };
        refused(plugin, None, Some("gone"), "gone: there is no such preset");
        refused(plugin, None, None, "no such preset");
        refused(7, path.to_str(), None, "no such preset");
        refused(file, Some("/nowhere/x.ondes-preset"), None, "true /nowhere/x.ondes-preset: ");
        refused(plugin, None, Some("shadow-bow"), "made for Ondes FX");
        let mut lost = mine;
        let model = &mut lost.sound.selection.model;
        (model.hash, model.name) = ("0".repeat(64), "Old Bell".into());
        let path = store::save(folder.path(), &lost, true).unwrap();
        refused(file, path.to_str(), None, "is missing");
        assert_eq!(instance.state(), state, "what cannot be played changes nothing");
    }

    #[test]
    fn a_preset_is_taken_for_a_state() {
        let instance = Instance::new(Product::Instrument);
        let preset = |key: &str| Origin::Factory(key.into()).read().unwrap();
        let bytes = |preset: &Preset| file::serialize(preset).unwrap();
        assert!(instance.restore(&bytes(&preset("breathy-solo"))));
        let state = instance.state();
        assert_eq!(state["fields"]["model"]["name"], "Wind");
        // A state of its own is still one.
        // SAFETY: the plugin is alive.
        let saved = unsafe { streams::saved(instance.plugin, instance.functions()) }.unwrap();
        assert!(instance.restore(&bytes(&preset("harp"))) && instance.state() != state);
        assert!(instance.restore(&saved));
        assert_eq!(instance.state(), state);
        // What is neither changes nothing.
        let harp = bytes(&preset("harp"));
        for wrong in [&bytes(&preset("shadow-bow")), &harp[..harp.len() / 2], &saved[..20], b"{}", b""] {
            assert!(!instance.restore(wrong));
            assert_eq!(instance.state(), state);
        }
    }
}
