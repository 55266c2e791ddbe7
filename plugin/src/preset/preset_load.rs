//! The preset-load extension: loads a preset chosen in the host's browser.

use std::ffi::CStr;

use clap_sys::ext::preset_load::clap_plugin_preset_load;
use clap_sys::factory::preset_discovery::{
    CLAP_PRESET_DISCOVERY_LOCATION_FILE, CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
    clap_preset_discovery_location_kind,
};
use ondes_player::preset::Preset;
use ondes_player::preset::file::PresetError;
use ondes_player::preset::location::PresetLocation;

use super::state;
use crate::clap::c_interface::c_function;
use crate::clap::c_text::c_string;
use crate::clap::plugin_wrapper::PluginWrapper;

pub(crate) static PRESET_LOAD: clap_plugin_preset_load = clap_plugin_preset_load {
    from_location: c_function!(
        load,
        (wrapper: &PluginWrapper, kind: u32, location: Option<&CStr>, key: Option<&CStr>) -> bool
    ),
};

/// Reason why a preset was not loaded; `os_error` is 0 if it is none of the system's.
pub(super) struct LoadError {
    os_error: i32,
    reason: String,
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self {
            os_error: 0,
            reason,
        }
    }
}

/// Loads a preset and notifies the host of success or failure; a failure leaves the plugin
/// unchanged. Returns true on success.
fn load(
    wrapper: &PluginWrapper,
    kind: clap_preset_discovery_location_kind,
    location: Option<&CStr>,
    key: Option<&CStr>,
) -> bool {
    match find_and_apply(wrapper, kind, location, key) {
        Ok(()) => {
            wrapper.log_untrusted();
            wrapper.host.preset_loaded(kind, location, key);
            true
        }
        Err(LoadError { os_error, reason }) => {
            let reason = c_string(&reason);
            wrapper
                .host
                .preset_refused(kind, location, key, os_error, &reason);
            false
        }
    }
}

fn find_and_apply(
    wrapper: &PluginWrapper,
    kind: clap_preset_discovery_location_kind,
    location: Option<&CStr>,
    key: Option<&CStr>,
) -> Result<(), LoadError> {
    let text = |text: Option<&CStr>| text?.to_str().ok().map(str::to_owned);
    let origin = match kind {
        CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN => text(key).map(PresetLocation::Factory),
        CLAP_PRESET_DISCOVERY_LOCATION_FILE => {
            text(location).map(|path| PresetLocation::File(path.into()))
        }
        _ => None,
    };
    let origin = origin.ok_or_else(|| PresetError::NotFound.to_string())?;
    let mut preset = origin.read().map_err(|error| LoadError {
        os_error: error.error.os_error(),
        reason: error.to_string(),
    })?;
    preset.sound.selection.preset = Some(origin);
    apply(wrapper, &preset)
}

/// Loads a preset: saves the plugin's state, merges the preset into it, and loads the result. A
/// program that may not run yet is no error: the window asks.
///
/// # Errors
/// Returns [`LoadError`] if the preset is for the other plugin, its model is missing, or the state
/// cannot be merged. The plugin is then unchanged.
pub(super) fn apply(wrapper: &PluginWrapper, preset: &Preset) -> Result<(), LoadError> {
    let Preset { name, product, .. } = preset;
    if wrapper.instance.product != *product {
        return Err(format!("{name}: {}", PresetError::WrongProduct(*product)).into());
    }
    if let Err(missing) = preset.sound.selection.model.find()
        && missing.program.is_none()
    {
        return Err(format!("{name}: {missing}").into());
    }
    let mut state = state::current(&wrapper.values, &wrapper.instance);
    state::set_preset(&mut state, preset).map_err(|error| format!("{name}: {error}"))?;
    wrapper.restore(&state);
    Ok(())
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the tests are the host")]
mod tests {
    use std::cell::RefCell;
    use std::ffi::{c_char, c_void};
    use std::ptr;

    use clap_sys::entry::clap_plugin_entry;
    use clap_sys::ext::log::{CLAP_EXT_LOG, clap_host_log, clap_log_severity};
    use clap_sys::ext::preset_load::{
        CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT, clap_host_preset_load,
    };
    use clap_sys::ext::state::{CLAP_EXT_STATE, clap_plugin_state};
    use clap_sys::ext::state_context::{
        CLAP_EXT_STATE_CONTEXT, CLAP_STATE_CONTEXT_FOR_DUPLICATE, CLAP_STATE_CONTEXT_FOR_PRESET,
        CLAP_STATE_CONTEXT_FOR_PROJECT, clap_plugin_state_context,
    };
    use clap_sys::factory::plugin_factory::{CLAP_PLUGIN_FACTORY_ID, clap_plugin_factory};
    use clap_sys::host::clap_host;
    use clap_sys::plugin::clap_plugin;
    use clap_sys::stream::{clap_istream, clap_ostream};
    use clap_sys::version::CLAP_VERSION;
    use ondes_engine::dsp::resample::Resampling;
    use ondes_engine::model::export::torchscript::{Archive, Pickle};
    use ondes_player::library::{self, FileReference};
    use ondes_player::preset::{file, store};
    use ondes_player::product::Product;

    use super::*;
    use crate::clap::c_interface::FromHost;

    /// A host that logs the notifications.
    struct Host {
        clap: clap_host,
        log: RefCell<Vec<String>>,
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
            let mut host = Box::new(Self {
                clap,
                log: RefCell::default(),
            });
            host.clap.host_data = ptr::from_ref(&host.log).cast_mut().cast();
            host
        }
    }

    static HOST_EXTENSION: clap_host_preset_load = clap_host_preset_load {
        on_error: Some(on_error),
        loaded: Some(loaded),
    };

    // SAFETY: these functions are only called with the host above, whose `host_data` is its log.
    unsafe extern "C" fn nothing(_: *const clap_host) {}
    unsafe extern "C" fn get_extension(_: *const clap_host, id: *const c_char) -> *const c_void {
        // SAFETY: ids are NUL-terminated strings.
        let id = unsafe { CStr::from_ptr(id) };
        if id == CLAP_EXT_PRESET_LOAD_COMPAT {
            ptr::from_ref(&HOST_EXTENSION).cast()
        } else if id == CLAP_EXT_LOG {
            ptr::from_ref(&HOST_LOG).cast()
        } else {
            ptr::null()
        }
    }
    static HOST_LOG: clap_host_log = clap_host_log {
        log: Some(log_message),
    };
    unsafe extern "C" fn log_message(
        host: *const clap_host,
        severity: clap_log_severity,
        text: *const c_char,
    ) {
        // SAFETY: as above; the text is NUL-terminated.
        unsafe {
            let text = CStr::from_ptr(text).to_str().unwrap();
            // The framework logs as well.
            if text.contains("program") {
                log_line(host, format!("log {severity} {text}"));
            }
        }
    }
    unsafe fn log_line(host: *const clap_host, line: String) {
        // SAFETY: as above.
        unsafe { &*(*host).host_data.cast::<RefCell<Vec<String>>>() }
            .borrow_mut()
            .push(line);
    }
    unsafe extern "C" fn loaded(
        host: *const clap_host,
        kind: u32,
        _: *const c_char,
        _: *const c_char,
    ) {
        // SAFETY: as above.
        unsafe { log_line(host, format!("loaded {kind}")) };
    }
    unsafe extern "C" fn on_error(
        host: *const clap_host,
        kind: u32,
        _: *const c_char,
        _: *const c_char,
        os_error: i32,
        message: *const c_char,
    ) {
        // SAFETY: as above; the message is NUL-terminated.
        unsafe {
            log_line(
                host,
                format!(
                    "error {kind} {} {}",
                    os_error != 0,
                    CStr::from_ptr(message).to_str().unwrap()
                ),
            )
        };
    }

    /// An instance of the plugin.
    struct Instance {
        plugin: *const clap_plugin,
        host: Box<Host>,
    }

    impl Instance {
        fn new(product: Product) -> Self {
            let (host, id) = (Host::new(), c_string(product.id()));
            let entry: &clap_plugin_entry = &crate::clap::entry::clap_entry;
            // SAFETY: the calls follow CLAP's order.
            let plugin = unsafe {
                assert!(entry.init.unwrap()(c"/nowhere".as_ptr()));
                let factory = entry.get_factory.unwrap()(CLAP_PLUGIN_FACTORY_ID.as_ptr())
                    .cast::<clap_plugin_factory>();
                let plugin =
                    (*factory).create_plugin.unwrap()(factory, &raw const host.clap, id.as_ptr());
                assert!((*plugin).init.unwrap()(plugin));
                plugin
            };
            Self { plugin, host }
        }

        fn load(
            &self,
            kind: u32,
            location: Option<&str>,
            key: Option<&str>,
        ) -> (bool, Vec<String>) {
            let (location, key) = (location.map(c_string), key.map(c_string));
            let text = |text: &Option<std::ffi::CString>| {
                text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
            };
            let functions: &clap_plugin_preset_load = self.extension(CLAP_EXT_PRESET_LOAD);
            // SAFETY: plugin and host are alive, and this is the thread that created them.
            let ok = unsafe {
                functions.from_location.unwrap()(self.plugin, kind, text(&location), text(&key))
            };
            (ok, self.host.log.take())
        }

        /// Returns an extension of that type.
        fn extension<E>(&self, id: &CStr) -> &E {
            // SAFETY: the plugin is alive and has this extension, which is of that type.
            unsafe { &*(*self.plugin).get_extension.unwrap()(self.plugin, id.as_ptr()).cast() }
        }

        fn restore(&self, mut bytes: &[u8]) -> bool {
            let functions: &clap_plugin_state = self.extension(CLAP_EXT_STATE);
            let stream = clap_istream {
                ctx: ptr::from_mut(&mut bytes).cast(),
                read: Some(read_slowly),
            };
            // SAFETY: the plugin is alive, and this is the thread that created it.
            unsafe { functions.load.unwrap()(self.plugin, &raw const stream) }
        }

        fn save(&self) -> Vec<u8> {
            let functions: &clap_plugin_state = self.extension(CLAP_EXT_STATE);
            let mut bytes: Vec<u8> = Vec::new();
            let stream = clap_ostream {
                ctx: ptr::from_mut(&mut bytes).cast(),
                write: Some(write_slowly),
            };
            // SAFETY: as above.
            assert!(unsafe { functions.save.unwrap()(self.plugin, &raw const stream) });
            bytes
        }

        fn state(&self) -> serde_json::Value {
            let mut state: serde_json::Value = serde_json::from_slice(&self.save()[8..]).unwrap();
            state["fields"] =
                serde_json::from_str(state["fields"]["ondes"].as_str().unwrap()).unwrap();
            state
        }
    }

    impl Drop for Instance {
        fn drop(&mut self) {
            // SAFETY: the plugin is alive and not used afterwards.
            unsafe { (*self.plugin).destroy.unwrap()(self.plugin) };
        }
    }

    #[test]
    fn presets_load_from_factory_and_files() {
        let instance = Instance::new(Product::Instrument);
        let folder = tempfile::tempdir().unwrap();
        let preset = PresetLocation::Factory("harp".into()).read().unwrap();
        let mine = Preset {
            name: "Mine".into(),
            ..preset.clone()
        };
        let path = store::save(folder.path(), &mine, false).unwrap();
        let (plugin, file) = (
            CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
            CLAP_PRESET_DISCOVERY_LOCATION_FILE,
        );

        assert_eq!(
            instance.load(plugin, None, Some("breathy-solo")),
            (true, vec!["loaded 1".to_owned()])
        );
        let state = instance.state();
        assert_eq!(
            (
                state["fields"]["model"]["name"].as_str(),
                state["params"]["mix"]["f32"].as_f64()
            ),
            (Some("Wind"), Some(1.0))
        );
        assert_eq!(
            instance.load(file, path.to_str(), None),
            (true, vec!["loaded 0".to_owned()])
        );
        let state = instance.state();
        assert_eq!(state["fields"]["model"]["name"], "Plucked");
        for (id, value) in &preset.sound.parameters {
            let (expected, actual) = (serde_json::to_value(value).unwrap(), &state["params"][id]);
            match expected.as_f64() {
                Some(expected) => {
                    let actual = actual["f32"].as_f64().or(actual["i32"].as_f64()).unwrap();
                    assert!(
                        (actual - expected).abs() < 1e-6,
                        "{id}: {actual}, not {expected}"
                    );
                }
                None if expected.is_boolean() => assert_eq!(actual["bool"], expected, "{id}"),
                None => assert_eq!(actual["string"], expected, "{id}"),
            }
        }

        let refused = |kind, location, key, reason: &str| {
            let (ok, log) = instance.load(kind, location, key);
            assert!(
                !ok && log.len() == 1 && log[0].starts_with("error ") && log[0].contains(reason),
                "{log:?}"
            );
        };
        refused(plugin, None, Some("gone"), "gone: no such preset");
        refused(plugin, None, None, "no such preset");
        refused(7, path.to_str(), None, "no such preset");
        refused(
            file,
            Some("/nowhere/x.ondes-preset"),
            None,
            "true /nowhere/x.ondes-preset: ",
        );
        refused(
            plugin,
            None,
            Some("shadow-bow"),
            "this preset is for Ondes FX",
        );
        let mut lost = mine;
        let model = &mut lost.sound.selection.model;
        (model.hash, model.name) = ("0".repeat(64), "Old Bell".into());
        let path = store::save(folder.path(), &lost, true).unwrap();
        refused(file, path.to_str(), None, "is missing");
        assert_eq!(instance.state(), state, "a refused preset changes nothing");
    }

    #[test]
    fn a_host_saves_and_loads_presets_without_the_project() {
        let pad = ["mix", "tune"].map(str::to_owned);
        let saved = |instance: &Instance, context| {
            let functions: &clap_plugin_state_context = instance.extension(CLAP_EXT_STATE_CONTEXT);
            let mut bytes: Vec<u8> = Vec::new();
            let stream = clap_ostream {
                ctx: ptr::from_mut(&mut bytes).cast(),
                write: Some(write_slowly),
            };
            // SAFETY: the stream lives longer than the call.
            assert!(unsafe {
                functions.save.unwrap()(instance.plugin, &raw const stream, context)
            });
            bytes
        };
        let source = Instance::new(Product::Instrument);
        assert!(
            source
                .load(
                    CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
                    None,
                    Some("breathy-solo")
                )
                .0
        );
        let handle = |instance: &Instance| {
            // SAFETY: the plugin is alive.
            let wrapper = unsafe { <&PluginWrapper>::from_host(instance.plugin) };
            wrapper.unwrap().instance.clone()
        };
        handle(&source).set_pad(pad.clone());
        handle(&source).set_resampling(Resampling::LinearPhase);

        let preset = saved(&source, CLAP_STATE_CONTEXT_FOR_PRESET);
        let selection = file::parse(&preset).unwrap().sound.selection;
        assert_eq!(
            (
                selection.model.name.as_str(),
                selection.pad,
                selection.resampling
            ),
            ("Wind", None, Resampling::LowLatency)
        );
        let [duplicate, project] = [
            CLAP_STATE_CONTEXT_FOR_DUPLICATE,
            CLAP_STATE_CONTEXT_FOR_PROJECT,
        ];
        let whole = saved(&source, project);
        assert_eq!(saved(&source, duplicate), whole);

        // What the host may mix, according to CLAP: `None` is the state extension.
        for (bytes, context, is_project) in [
            (&preset, Some(CLAP_STATE_CONTEXT_FOR_PRESET), false),
            (&preset, None, false),
            (&whole, Some(CLAP_STATE_CONTEXT_FOR_PRESET), false),
            (&whole, Some(duplicate), true),
            (&whole, None, true),
        ] {
            let instance = Instance::new(Product::Instrument);
            let functions: &clap_plugin_state_context = instance.extension(CLAP_EXT_STATE_CONTEXT);
            let load = |mut bytes: &[u8], context| {
                let stream = clap_istream {
                    ctx: ptr::from_mut(&mut bytes).cast(),
                    read: Some(read_slowly),
                };
                // SAFETY: plugin and stream are alive.
                unsafe { functions.load.unwrap()(instance.plugin, &raw const stream, context) }
            };
            assert!(match context {
                Some(context) => load(bytes, context),
                None => instance.restore(bytes),
            });
            let fields = &instance.state()["fields"];
            let found = (
                fields["model"]["name"] == "Wind",
                fields["pad"] == serde_json::json!(pad),
            );
            assert_eq!(
                (
                    found,
                    handle(&instance).read_state(|state| state.resampling)
                        == Resampling::LinearPhase
                ),
                ((true, is_project), is_project)
            );
            assert!(!load(b"nothing", CLAP_STATE_CONTEXT_FOR_PRESET));
        }
    }

    /// Takes seven bytes at a time.
    unsafe extern "C" fn write_slowly(
        stream: *const clap_ostream,
        from: *const c_void,
        size: u64,
    ) -> i64 {
        let length = size.min(7) as usize;
        // SAFETY: the stream above is around a vector, and there are that many bytes.
        unsafe {
            (*(*stream).ctx.cast::<Vec<u8>>())
                .extend(std::slice::from_raw_parts(from.cast::<u8>(), length));
        }
        length as i64
    }

    /// Returns seven bytes at a time.
    unsafe extern "C" fn read_slowly(
        stream: *const clap_istream,
        to: *mut c_void,
        size: u64,
    ) -> i64 {
        // SAFETY: the stream above is around a slice, and there is room for that many bytes.
        unsafe {
            let rest = &mut *(*stream).ctx.cast::<&[u8]>();
            let (taken, left) = rest.split_at(rest.len().min(size.min(7) as usize));
            ptr::copy_nonoverlapping(taken.as_ptr(), to.cast(), taken.len());
            *rest = left;
            taken.len() as i64
        }
    }

    #[test]
    fn a_program_waits_for_the_window_and_the_host_is_told() {
        let instance = Instance::new(Product::Effect);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("birds.ts");
        std::fs::write(&path, Archive::new(Pickle::default(), "4").finish()).unwrap();
        let program = library::program(&path).unwrap();
        let mut preset = PresetLocation::Factory("shadow-bow".into()).read().unwrap();
        preset.name = "Birds".into();
        preset.sound.selection.model = FileReference {
            hash: program.hash.clone(),
            name: "Birds".into(),
            path: Some(path.clone()),
            embedded: None,
        };
        let at = store::save(folder.path(), &preset, false).unwrap();
        let (ok, log) = instance.load(CLAP_PRESET_DISCOVERY_LOCATION_FILE, at.to_str(), None);
        assert!(ok && log.len() == 2 && log[1] == "loaded 0", "{log:?}");
        assert!(
            log[0].starts_with("log 2 ") && log[0].contains("birds.ts: a TorchScript program"),
            "{log:?}"
        );
        let state = instance.state();
        assert_eq!(state["fields"]["model"]["hash"], program.hash);
        // A project that is restored says so as well, and still names the program when it is saved.
        let saved = instance.save();
        let again = Instance::new(Product::Effect);
        assert!(again.restore(&saved));
        assert!(again.host.log.take()[0].contains("open the window to decide"));
        assert_eq!(again.state(), state);
    }

    #[test]
    fn a_preset_loads_as_a_state() {
        let instance = Instance::new(Product::Instrument);
        let preset = |key: &str| PresetLocation::Factory(key.into()).read().unwrap();
        let bytes = |preset: &Preset| file::serialize(preset).unwrap();
        assert!(instance.restore(&bytes(&preset("breathy-solo"))));
        let state = instance.state();
        assert_eq!(state["fields"]["model"]["name"], "Wind");
        // The plugin's own states still load.
        let saved = instance.save();
        assert!(instance.restore(&bytes(&preset("harp"))) && instance.state() != state);
        assert!(instance.restore(&saved));
        assert_eq!(instance.state(), state);
        // Anything else is refused and changes nothing.
        let harp = bytes(&preset("harp"));
        for wrong in [
            &bytes(&preset("shadow-bow")),
            &harp[..harp.len() / 2],
            &saved[..20],
            b"{}",
            b"",
        ] {
            assert!(!instance.restore(wrong));
            assert_eq!(instance.state(), state);
        }
    }
}
