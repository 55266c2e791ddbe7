//! The VST3 module, as a host opens it.

#![allow(dead_code, reason = "each test uses its part")]

use std::ffi::{CStr, c_void};

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr};

use super::host;

/// The module as a host opens it; it stays open.
pub fn factory() -> ComPtr<IPluginFactory> {
    // SAFETY: it is our own object, and these are the entry points that VST3 names for Linux. The factory is ours to release.
    unsafe {
        let module = libloading::os::unix::Library::new(host::object()).unwrap();
        let enter = *module.get::<unsafe extern "C" fn(*mut c_void) -> bool>(b"ModuleEntry").unwrap();
        let get = *module.get::<unsafe extern "system" fn() -> *mut c_void>(b"GetPluginFactory").unwrap();
        assert!(enter(module.into_raw()));
        ComPtr::from_raw(get().cast()).unwrap()
    }
}

/// The classes that process audio, by name.
pub fn classes(factory: &ComPtr<IPluginFactory>) -> Vec<(String, TUID)> {
    // SAFETY: the factory fills what it is given.
    let all = (0..unsafe { factory.countClasses() }).map(|index| unsafe {
        let mut info: PClassInfo = std::mem::zeroed();
        assert_eq!(factory.getClassInfo(index, &mut info), kResultOk);
        let text = |field: &[char8]| CStr::from_ptr(field.as_ptr()).to_str().unwrap().to_owned();
        (text(&info.category), text(&info.name), info.cid)
    });
    all.filter(|(category, ..)| category == "Audio Module Class").map(|(_, name, cid)| (name, cid)).collect()
}

/// Who we are.
pub struct Application;

impl Class for Application {
    type Interfaces = (IHostApplication,);
}

impl IHostApplicationTrait for Application {
    unsafe fn getName(&self, name: *mut String128) -> tresult {
        // SAFETY: the caller gives room for a name.
        unsafe { (&mut (*name))[..2].copy_from_slice(&[u16::from(b'O'), 0]) };
        kResultOk
    }

    unsafe fn createInstance(&self, _: *mut TUID, _: *mut TUID, _: *mut *mut c_void) -> tresult {
        kNotImplemented
    }
}
