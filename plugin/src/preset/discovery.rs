//! The preset discovery factory: lists presets for the host's browser.

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{from_ref, null, null_mut};
use std::time::UNIX_EPOCH;

use clap_sys::factory::preset_discovery::{
    CLAP_PRESET_DISCOVERY_FACTORY_ID, CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT,
    CLAP_PRESET_DISCOVERY_IS_FACTORY_CONTENT, CLAP_PRESET_DISCOVERY_IS_USER_CONTENT,
    CLAP_PRESET_DISCOVERY_LOCATION_FILE, CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
    clap_preset_discovery_factory, clap_preset_discovery_filetype, clap_preset_discovery_indexer,
    clap_preset_discovery_location, clap_preset_discovery_location_kind,
    clap_preset_discovery_metadata_receiver, clap_preset_discovery_provider,
    clap_preset_discovery_provider_descriptor,
};
use clap_sys::timestamp::CLAP_TIMESTAMP_UNKNOWN;
use clap_sys::universal_plugin_id::clap_universal_plugin_id;
use clap_sys::version::{CLAP_VERSION, clap_version_is_compatible};
use ondes_player::preset::factory::FACTORY;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::{Preset, store};

use crate::clap::c_interface::{Functions, Pointee, c_function, call};
use crate::clap::c_text::c_string;

type Factory = clap_preset_discovery_factory;
type Indexer<'a> = Functions<'a, clap_preset_discovery_indexer>;
type Receiver<'a> = Functions<'a, clap_preset_discovery_metadata_receiver>;
type Descriptor = clap_preset_discovery_provider_descriptor;

/// Id of the only provider.
const PROVIDER_ID: &CStr = c"org.ondes.presets";

static DESCRIPTOR: Descriptor = Descriptor {
    clap_version: CLAP_VERSION,
    id: PROVIDER_ID.as_ptr(),
    name: c"Ondes presets".as_ptr(),
    vendor: c"Ondes".as_ptr(),
};

static FILE_TYPE: clap_preset_discovery_filetype = clap_preset_discovery_filetype {
    name: c"Ondes preset".as_ptr(),
    description: c"A sound for Ondes or Ondes FX".as_ptr(),
    // Equal to `file::EXTENSION`; a test checks it.
    file_extension: c"ondes-preset".as_ptr(),
};

static DISCOVERY: Factory = Factory {
    count: c_function!(count, (_factory: Option<&Factory>) -> u32),
    get_descriptor: c_function!(
        descriptor,
        (_factory: Option<&Factory>, index: u32) -> *const Descriptor
    ),
    create: c_function!(
        create,
        (_factory: Option<&Factory>, indexer: Indexer<'static>, id: &CStr)
            -> *const clap_preset_discovery_provider
    ),
};

/// Returns the preset discovery factory; null if `id` is another factory's.
pub(crate) fn factory(id: &CStr) -> *const c_void {
    if id == CLAP_PRESET_DISCOVERY_FACTORY_ID || id == CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT {
        from_ref(&DISCOVERY).cast()
    } else {
        null()
    }
}

fn count(_: Option<&Factory>) -> u32 {
    1
}

fn descriptor(_: Option<&Factory>, index: u32) -> *const Descriptor {
    if index == 0 {
        &raw const DESCRIPTOR
    } else {
        null()
    }
}

/// Provider for one host.
#[repr(C)]
struct Provider {
    /// The provider that the host sees. Must be the first field: its address is the provider's.
    provider: clap_preset_discovery_provider,
    /// The host, which outlives this.
    indexer: Indexer<'static>,
}

// SAFETY: the provider is the first field; only our providers have the functions below.
unsafe impl Pointee for Provider {
    type C = clap_preset_discovery_provider;
}

fn create(
    _: Option<&Factory>,
    indexer: Indexer<'static>,
    id: &CStr,
) -> *const clap_preset_discovery_provider {
    if id != PROVIDER_ID || !clap_version_is_compatible(indexer.clap_version) {
        return null();
    }
    let provider = clap_preset_discovery_provider {
        desc: &raw const DESCRIPTOR,
        provider_data: null_mut(),
        init: c_function!(init, (provider: &Provider) -> bool),
        destroy: c_function!(drop, (provider: Box<Provider>)),
        get_metadata: c_function!(
            get_metadata,
            (
                _provider: Option<&Provider>,
                kind: u32,
                location: Option<&CStr>,
                receiver: Receiver<'_>
            ) -> bool
        ),
        get_extension: c_function!(
            get_extension,
            (_provider: Option<&Provider>, _id: Option<&CStr>) -> *const c_void
        ),
    };
    // `destroy` takes it back.
    Box::into_raw(Box::new(Provider { provider, indexer })).cast()
}

fn init(provider: &Provider) -> bool {
    declare(provider.indexer, &store::folders())
}

/// Declares the file type and all locations; skips missing folders.
fn declare(indexer: Indexer<'_>, folders: &[PathBuf]) -> bool {
    let declare_location = |flags, name: &CStr, kind, location: *const c_char| {
        let declared = clap_preset_discovery_location {
            flags,
            name: name.as_ptr(),
            kind,
            location,
        };
        call!(indexer, declare_location(indexer.as_ptr(), &declared)).unwrap_or(false)
    };
    let (factory, user) = (
        CLAP_PRESET_DISCOVERY_IS_FACTORY_CONTENT,
        CLAP_PRESET_DISCOVERY_IS_USER_CONTENT,
    );
    let plugin = CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN;
    if call!(indexer, declare_filetype(indexer.as_ptr(), &FILE_TYPE)) != Some(true)
        || !declare_location(factory, c"Ondes", plugin, null())
    {
        return false;
    }
    for folder in folders
        .iter()
        .filter(|folder| folder.is_dir())
        .filter_map(|folder| folder.to_str())
    {
        let (path, file) = (c_string(folder), CLAP_PRESET_DISCOVERY_LOCATION_FILE);
        // A host may refuse one location and accept the next.
        declare_location(user, c"My Ondes presets", file, path.as_ptr());
    }
    true
}

fn get_extension(_: Option<&Provider>, _: Option<&CStr>) -> *const c_void {
    null()
}

fn get_metadata(
    _: Option<&Provider>,
    kind: clap_preset_discovery_location_kind,
    location: Option<&CStr>,
    receiver: Receiver<'_>,
) -> bool {
    match (kind, location.map(CStr::to_str)) {
        (CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN, _) => FACTORY.iter().all(|factory| {
            let origin = PresetLocation::Factory(factory.key.into());
            send_metadata(receiver, &origin, Some(factory.key))
        }),
        (CLAP_PRESET_DISCOVERY_LOCATION_FILE, Some(Ok(path))) => {
            send_metadata(receiver, &PresetLocation::File(path.into()), None)
        }
        _ => false,
    }
}

/// Sends one preset's metadata. Returns false on an error, or if the host wants no more presets.
fn send_metadata(receiver: Receiver<'_>, origin: &PresetLocation, key: Option<&str>) -> bool {
    let this = receiver.as_ptr();
    let Preset {
        name,
        product,
        author,
        comment,
        tags,
        ..
    } = match origin.read() {
        Ok(preset) => preset,
        Err(error) => {
            let message = c_string(&error.to_string());
            let os_error = error.error.os_error();
            call!(receiver, on_error(this, os_error, message.as_c_str()));
            return false;
        }
    };
    let (name, key) = (c_string(&name), key.map(c_string));
    let begun = call!(
        receiver,
        begin_preset(this, name.as_c_str(), key.as_deref())
    );
    if begun != Some(true) {
        return false;
    }
    let id = c_string(product.id());
    let id = clap_universal_plugin_id {
        abi: c"clap".as_ptr(),
        id: id.as_ptr(),
    };
    call!(receiver, add_plugin_id(this, &id));
    if !author.is_empty() {
        call!(receiver, add_creator(this, c_string(&author).as_c_str()));
    }
    if !comment.is_empty() {
        call!(
            receiver,
            set_description(this, c_string(&comment).as_c_str())
        );
    }
    for tag in tags.iter().filter(|tag| !tag.is_empty()) {
        call!(receiver, add_feature(this, c_string(tag).as_c_str()));
    }
    if let PresetLocation::File(path) = origin {
        call!(
            receiver,
            set_timestamps(this, CLAP_TIMESTAMP_UNKNOWN, modified_s(path))
        );
    }
    true
}

/// Returns a file's modification time in seconds since 1970.
fn modified_s(path: &Path) -> u64 {
    let modified = std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok();
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    since.map_or(CLAP_TIMESTAMP_UNKNOWN, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ptr;

    use ondes_player::preset::file::EXTENSION;

    use super::*;
    use crate::clap::c_interface::FromHost;

    type RawIndexer = clap_preset_discovery_indexer;
    type RawReceiver = clap_preset_discovery_metadata_receiver;

    /// Calls that the host received, one line each.
    type CallLog = RefCell<Vec<String>>;

    unsafe fn log(data: *mut c_void, line: String) {
        // SAFETY: the data of all host structures below is a `CallLog`.
        unsafe { &*data.cast::<CallLog>() }.borrow_mut().push(line);
    }

    unsafe fn text(text: *const c_char) -> String {
        if text.is_null() {
            return "-".into();
        }
        // SAFETY: not null, so NUL-terminated.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    }

    // SAFETY: these functions are only called by the code above, with the host structures below.
    unsafe extern "C" fn filetype(
        indexer: *const RawIndexer,
        declared: *const clap_preset_discovery_filetype,
    ) -> bool {
        // SAFETY: as above.
        unsafe {
            log(
                (*indexer).indexer_data,
                format!("type {}", text((*declared).file_extension)),
            )
        };
        true
    }
    unsafe extern "C" fn location(
        indexer: *const RawIndexer,
        declared: *const clap_preset_discovery_location,
    ) -> bool {
        // SAFETY: as above.
        unsafe {
            let declared = &*declared;
            let location = text(declared.location);
            log(
                (*indexer).indexer_data,
                format!("location {} {} {location}", declared.kind, declared.flags),
            );
        }
        true
    }
    unsafe extern "C" fn begin(
        receiver: *const RawReceiver,
        name: *const c_char,
        key: *const c_char,
    ) -> bool {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("begin {} {}", text(key), text(name)),
            )
        };
        true
    }
    unsafe extern "C" fn plugin(receiver: *const RawReceiver, id: *const clap_universal_plugin_id) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("for {} {}", text((*id).abi), text((*id).id)),
            )
        };
    }
    unsafe extern "C" fn creator(receiver: *const RawReceiver, name: *const c_char) {
        // SAFETY: as above.
        unsafe { log((*receiver).receiver_data, format!("by {}", text(name))) };
    }
    unsafe extern "C" fn feature(receiver: *const RawReceiver, name: *const c_char) {
        // SAFETY: as above.
        unsafe { log((*receiver).receiver_data, format!("tag {}", text(name))) };
    }
    unsafe extern "C" fn times(receiver: *const RawReceiver, created: u64, modified: u64) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("times {created} {}", modified > 1_000_000_000),
            )
        };
    }
    unsafe extern "C" fn error(
        receiver: *const RawReceiver,
        os_error: i32,
        message: *const c_char,
    ) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("error {os_error} {}", text(message)),
            )
        };
    }

    fn indexer(call_log: &CallLog) -> RawIndexer {
        let name = c"test".as_ptr();
        RawIndexer {
            clap_version: CLAP_VERSION,
            name,
            vendor: name,
            url: name,
            version: name,
            indexer_data: ptr::from_ref(call_log).cast_mut().cast(),
            declare_filetype: Some(filetype),
            declare_location: Some(location),
            declare_soundpack: None,
            get_extension: None,
        }
    }

    fn receiver(call_log: &CallLog) -> RawReceiver {
        RawReceiver {
            receiver_data: ptr::from_ref(call_log).cast_mut().cast(),
            on_error: Some(error),
            begin_preset: Some(begin),
            add_plugin_id: Some(plugin),
            set_soundpack_id: None,
            set_flags: None,
            add_creator: Some(creator),
            set_description: None,
            set_timestamps: Some(times),
            add_feature: Some(feature),
            add_extra_info: None,
        }
    }

    #[test]
    fn all_presets_are_listed_under_both_factory_ids() {
        assert!(factory(c"clap.plugin-factory").is_null());
        for id in [
            CLAP_PRESET_DISCOVERY_FACTORY_ID,
            CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT,
        ] {
            let discovery = factory(id).cast::<clap_preset_discovery_factory>();
            let call_log = CallLog::default();
            let (indexer, receiver) = (indexer(&call_log), receiver(&call_log));
            // SAFETY: the calls follow CLAP's order.
            unsafe {
                let functions = &*discovery;
                assert_eq!(functions.count.unwrap()(discovery), 1);
                assert!(functions.get_descriptor.unwrap()(discovery, 1).is_null());
                let id = (*functions.get_descriptor.unwrap()(discovery, 0)).id;
                assert!(
                    functions.create.unwrap()(discovery, &raw const indexer, c"other".as_ptr())
                        .is_null()
                );
                assert!(functions.create.unwrap()(discovery, ptr::null(), id).is_null());
                let provider = functions.create.unwrap()(discovery, &raw const indexer, id);
                assert!((*provider).init.unwrap()(provider));
                assert_eq!(
                    call_log.take()[..2],
                    ["type ondes-preset", "location 1 1 -"]
                );
                let kind = CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN;
                assert!((*provider).get_metadata.unwrap()(
                    provider,
                    kind,
                    ptr::null(),
                    &raw const receiver
                ));
                assert!(!(*provider).get_metadata.unwrap()(
                    provider,
                    9,
                    ptr::null(),
                    &raw const receiver
                ));
                assert!((*provider).get_extension.unwrap()(provider, c"x".as_ptr()).is_null());
                (*provider).destroy.unwrap()(provider);
            }
            let call_log = call_log.take();
            assert_eq!(
                call_log
                    .iter()
                    .filter(|line| line.starts_with("begin "))
                    .count(),
                FACTORY.len()
            );
            let harp = call_log
                .iter()
                .position(|line| line == "begin harp Harp")
                .unwrap();
            assert_eq!(
                call_log[harp + 1..harp + 3],
                ["for clap org.ondes.instrument", "by Ondes"]
            );
            assert!(call_log[harp + 3].starts_with("tag "));
            assert!(
                call_log
                    .iter()
                    .any(|line| line == "for clap org.ondes.effect")
            );
        }
    }

    #[test]
    fn folders_are_declared_and_broken_files_reported() {
        assert_eq!(EXTENSION, "ondes-preset");
        let folder = tempfile::tempdir().unwrap();
        let call_log = CallLog::default();
        let (indexer, receiver) = (indexer(&call_log), receiver(&call_log));
        let folders = [folder.path().to_owned(), folder.path().join("none")];
        // SAFETY: indexer and receiver are alive.
        let (indexer, receiver) = unsafe {
            (
                Indexer::from_host(&raw const indexer).unwrap(),
                Receiver::from_host(&raw const receiver).unwrap(),
            )
        };
        assert!(declare(indexer, &folders));
        let user_folder = format!("location 0 2 {}", folder.path().display());
        assert_eq!(
            call_log.take(),
            ["type ondes-preset", "location 1 1 -", &user_folder]
        );
        let preset = Preset {
            name: "Mine".into(),
            ..FACTORY[0].preset().unwrap()
        };
        let path = store::save(folder.path(), &preset, false).unwrap();
        let broken = folder.path().join("broken.ondes-preset");
        std::fs::write(&broken, "{").unwrap();
        let metadata = |path: &Path| {
            let (path, kind) = (
                c_string(path.to_str().unwrap()),
                CLAP_PRESET_DISCOVERY_LOCATION_FILE,
            );
            let ok = get_metadata(None, kind, Some(&path), receiver);
            (ok, call_log.take())
        };
        let (ok, lines) = metadata(&path);
        assert!(
            ok && lines[0] == "begin - Mine" && lines.last().unwrap() == "times 0 true",
            "{lines:?}"
        );
        let (ok, lines) = metadata(&broken);
        assert!(
            !ok && lines.len() == 1 && lines[0].contains("broken.ondes-preset: not a preset"),
            "{lines:?}"
        );
        let (ok, lines) = metadata(&folder.path().join("none"));
        assert!(
            !ok && lines.len() == 1 && !lines[0].starts_with("error 0 "),
            "{lines:?}"
        );
    }
}
