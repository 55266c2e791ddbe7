//! The preset discovery factory: lists presets for the host's browser.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;
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
use ondes_player::preset::file::PresetFileError;
use ondes_player::preset::location::PresetLocation;
use ondes_player::preset::{Preset, store};

use super::{c_string, catch_panic};

type Indexer = clap_preset_discovery_indexer;
type Receiver = clap_preset_discovery_metadata_receiver;
type Provider = clap_preset_discovery_provider;
type Descriptor = clap_preset_discovery_provider_descriptor;

static DESCRIPTOR: Descriptor = Descriptor {
    clap_version: CLAP_VERSION,
    id: c"org.ondes.presets".as_ptr(),
    name: c"Ondes presets".as_ptr(),
    vendor: c"Ondes".as_ptr(),
};

static FILE_TYPE: clap_preset_discovery_filetype = clap_preset_discovery_filetype {
    name: c"Ondes preset".as_ptr(),
    description: c"A sound for Ondes or Ondes FX".as_ptr(),
    // Equal to `file::EXTENSION`; a test checks it.
    file_extension: c"ondes-preset".as_ptr(),
};

static DISCOVERY: clap_preset_discovery_factory = clap_preset_discovery_factory {
    count: Some(count),
    get_descriptor: Some(get_descriptor),
    create: Some(create),
};

/// Returns the preset discovery factory; null if `id` is another factory's.
#[must_use]
pub fn factory(id: &CStr) -> *const c_void {
    if id == CLAP_PRESET_DISCOVERY_FACTORY_ID || id == CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT {
        ptr::from_ref(&DISCOVERY).cast()
    } else {
        ptr::null()
    }
}

unsafe extern "C" fn count(_: *const clap_preset_discovery_factory) -> u32 {
    1
}

unsafe extern "C" fn get_descriptor(
    _: *const clap_preset_discovery_factory,
    index: u32,
) -> *const Descriptor {
    if index == 0 {
        &raw const DESCRIPTOR
    } else {
        ptr::null()
    }
}

unsafe extern "C" fn create(
    _: *const clap_preset_discovery_factory,
    indexer: *const Indexer,
    id: *const c_char,
) -> *const Provider {
    // SAFETY: both are null, or valid for as long as CLAP requires.
    let (indexer, known) = unsafe {
        (
            indexer.as_ref(),
            !id.is_null() && CStr::from_ptr(id) == CStr::from_ptr(DESCRIPTOR.id),
        )
    };
    let Some(indexer) =
        indexer.filter(|indexer| known && clap_version_is_compatible(indexer.clap_version))
    else {
        return ptr::null();
    };
    catch_panic(ptr::null(), || {
        Box::into_raw(Box::new(Provider {
            desc: &raw const DESCRIPTOR,
            // The provider's only state is the host's indexer.
            provider_data: ptr::from_ref(indexer).cast_mut().cast(),
            init: Some(init),
            destroy: Some(destroy),
            get_metadata: Some(get_metadata),
            get_extension: Some(get_extension),
        }))
    })
}

unsafe extern "C" fn init(provider: *const Provider) -> bool {
    // SAFETY: the host passes the provider from `create`, and its indexer lives as long.
    let indexer = unsafe {
        provider
            .as_ref()
            .and_then(|provider| provider.provider_data.cast::<Indexer>().as_ref())
    };
    indexer.is_some_and(|indexer| {
        // SAFETY: as above.
        catch_panic(false, || unsafe { declare(indexer, &store::folders()) })
    })
}

/// Declares the file type and all locations; skips missing folders.
///
/// # Safety
/// The indexer is valid, and its functions may be called.
unsafe fn declare(indexer: &Indexer, folders: &[std::path::PathBuf]) -> bool {
    let (Some(filetype), Some(location)) = (indexer.declare_filetype, indexer.declare_location)
    else {
        return false;
    };
    let declare_location = |flags, name: &CStr, kind, path: *const c_char| {
        let declared = clap_preset_discovery_location {
            flags,
            name: name.as_ptr(),
            kind,
            location: path,
        };
        // SAFETY: the function is the host's; it copies all strings before it returns.
        unsafe { location(indexer, &raw const declared) }
    };
    // SAFETY: as above.
    let accepted = unsafe { filetype(indexer, &raw const FILE_TYPE) };
    let factory = CLAP_PRESET_DISCOVERY_IS_FACTORY_CONTENT;
    if !accepted
        || !declare_location(
            factory,
            c"Ondes",
            CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
            ptr::null(),
        )
    {
        return false;
    }
    for folder in folders
        .iter()
        .filter(|folder| folder.is_dir())
        .filter_map(|folder| folder.to_str())
    {
        let (path, user) = (c_string(folder), CLAP_PRESET_DISCOVERY_IS_USER_CONTENT);
        // A host may refuse one location and accept the next.
        declare_location(
            user,
            c"My Ondes presets",
            CLAP_PRESET_DISCOVERY_LOCATION_FILE,
            path.as_ptr(),
        );
    }
    true
}

unsafe extern "C" fn destroy(provider: *const Provider) {
    if !provider.is_null() {
        // SAFETY: `create` allocated it as a box, and the host destroys it once.
        drop(unsafe { Box::from_raw(provider.cast_mut()) });
    }
}

unsafe extern "C" fn get_extension(_: *const Provider, _: *const c_char) -> *const c_void {
    ptr::null()
}

unsafe extern "C" fn get_metadata(
    _: *const Provider,
    kind: clap_preset_discovery_location_kind,
    location: *const c_char,
    receiver: *const Receiver,
) -> bool {
    // SAFETY: null, or valid during this call.
    let Some(receiver) = (unsafe { receiver.as_ref() }) else {
        return false;
    };
    catch_panic(false, || match kind {
        CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN => {
            for factory in &FACTORY {
                let origin = PresetLocation::Factory(factory.key.into());
                // SAFETY: the receiver is the host's.
                if !unsafe { send_metadata(receiver, &origin, Some(factory.key)) } {
                    return false;
                }
            }
            true
        }
        CLAP_PRESET_DISCOVERY_LOCATION_FILE if !location.is_null() => {
            // SAFETY: not null, so it is a NUL-terminated string that is valid during this call.
            let path = unsafe { CStr::from_ptr(location) };
            // SAFETY: the receiver is the host's.
            path.to_str().is_ok_and(|path| unsafe {
                send_metadata(receiver, &PresetLocation::File(path.into()), None)
            })
        }
        _ => false,
    })
}

/// Sends one preset's metadata. Returns false on an error, or if the host wants no more presets.
///
/// # Safety
/// The receiver is valid, and its functions may be called.
unsafe fn send_metadata(receiver: &Receiver, origin: &PresetLocation, key: Option<&str>) -> bool {
    let preset = match origin.read() {
        Ok(preset) => preset,
        Err(error) => {
            // SAFETY: guaranteed by the caller.
            unsafe { send_error(receiver, &error) };
            return false;
        }
    };
    let Preset {
        name,
        product,
        author,
        comment,
        tags,
        ..
    } = preset;
    let (name, key) = (c_string(&name), key.map(c_string));
    let key = key.as_ref().map_or(ptr::null(), |key| key.as_ptr());
    let Some(begin) = receiver.begin_preset else {
        return false;
    };
    // SAFETY: in this function all calls are to the host's functions, which copy all strings before
    // they return.
    if !unsafe { begin(receiver, name.as_ptr(), key) } {
        return false;
    }
    let send = |function: Option<unsafe extern "C" fn(*const Receiver, *const c_char)>,
                text: &str| {
        if let Some(function) = function.filter(|_| !text.is_empty()) {
            // SAFETY: as above.
            unsafe { function(receiver, c_string(text).as_ptr()) };
        }
    };
    if let Some(add) = receiver.add_plugin_id {
        let id = c_string(product.id());
        let id = (
            clap_universal_plugin_id {
                abi: c"clap".as_ptr(),
                id: id.as_ptr(),
            },
            id,
        );
        // SAFETY: as above.
        unsafe { add(receiver, &raw const id.0) };
    }
    send(receiver.add_creator, &author);
    send(receiver.set_description, &comment);
    tags.iter().for_each(|tag| send(receiver.add_feature, tag));
    if let (PresetLocation::File(path), Some(set)) = (origin, receiver.set_timestamps) {
        // SAFETY: as above.
        unsafe { set(receiver, CLAP_TIMESTAMP_UNKNOWN, modified_s(path)) };
    }
    true
}

/// # Safety
/// The receiver is valid, and its functions may be called.
unsafe fn send_error(receiver: &Receiver, error: &PresetFileError) {
    if let Some(on_error) = receiver.on_error {
        let message = c_string(&error.to_string());
        // SAFETY: the function is the host's; it copies the message before it returns.
        unsafe { on_error(receiver, error.error.os_error(), message.as_ptr()) };
    }
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

    use ondes_player::preset::file::EXTENSION;

    use super::*;

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
        indexer: *const Indexer,
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
        indexer: *const Indexer,
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
        receiver: *const Receiver,
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
    unsafe extern "C" fn plugin(receiver: *const Receiver, id: *const clap_universal_plugin_id) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("for {} {}", text((*id).abi), text((*id).id)),
            )
        };
    }
    unsafe extern "C" fn creator(receiver: *const Receiver, name: *const c_char) {
        // SAFETY: as above.
        unsafe { log((*receiver).receiver_data, format!("by {}", text(name))) };
    }
    unsafe extern "C" fn feature(receiver: *const Receiver, name: *const c_char) {
        // SAFETY: as above.
        unsafe { log((*receiver).receiver_data, format!("tag {}", text(name))) };
    }
    unsafe extern "C" fn times(receiver: *const Receiver, created: u64, modified: u64) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("times {created} {}", modified > 1_000_000_000),
            )
        };
    }
    unsafe extern "C" fn error(receiver: *const Receiver, os_error: i32, message: *const c_char) {
        // SAFETY: as above.
        unsafe {
            log(
                (*receiver).receiver_data,
                format!("error {os_error} {}", text(message)),
            )
        };
    }

    fn indexer(call_log: &CallLog) -> Indexer {
        let name = c"test".as_ptr();
        Indexer {
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

    fn receiver(call_log: &CallLog) -> Receiver {
        Receiver {
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
        // SAFETY: the indexer is valid.
        assert!(unsafe { declare(&indexer, &folders) });
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
            // SAFETY: path and receiver are valid.
            let ok = unsafe { get_metadata(ptr::null(), kind, path.as_ptr(), &raw const receiver) };
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
