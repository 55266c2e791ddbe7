//! Loads the VST3 module as a host does.

#![allow(dead_code, reason = "not every test binary uses everything")]

pub mod instance;
pub mod objects;

use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr};

use super::host;

/// Opens the module, for the rest of the process, and returns its factory, which all tests of the
/// process share.
pub fn factory() -> ComPtr<IPluginFactory> {
    // The wrapper creates the factory in the first call, and expects one thread then.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    // SAFETY: the object is our own, and these are VST3's entry points on Linux. The factory is
    // ours to release.
    unsafe {
        let module = libloading::os::unix::Library::new(host::object()).unwrap();
        let enter = *module
            .get::<unsafe extern "C" fn(*mut c_void) -> bool>(b"ModuleEntry")
            .unwrap();
        let get = *module
            .get::<unsafe extern "system" fn() -> *mut c_void>(b"GetPluginFactory")
            .unwrap();
        assert!(enter(module.into_raw()));
        ComPtr::from_raw(get().cast()).unwrap()
    }
}

/// Returns the vendor's name and e-mail address.
pub fn vendor(factory: &ComPtr<IPluginFactory>) -> [String; 2] {
    // SAFETY: the factory fills the structure that it gets with terminated texts.
    unsafe {
        let mut info: PFactoryInfo = std::mem::zeroed();
        assert_eq!(factory.getFactoryInfo(&mut info), kResultOk);
        [info.vendor.as_ptr(), info.email.as_ptr()]
            .map(|text| CStr::from_ptr(text).to_str().unwrap().to_owned())
    }
}

/// Returns name and id of the audio processor classes.
pub fn classes(factory: &ComPtr<IPluginFactory>) -> Vec<(String, TUID)> {
    // SAFETY: the factory fills the structure that it gets.
    let all = (0..unsafe { factory.countClasses() }).map(|index| unsafe {
        let mut info: PClassInfo = std::mem::zeroed();
        assert_eq!(factory.getClassInfo(index, &mut info), kResultOk);
        let text = |field: &[char8]| CStr::from_ptr(field.as_ptr()).to_str().unwrap().to_owned();
        (text(&info.category), text(&info.name), info.cid)
    });
    all.filter(|(category, ..)| category == "Audio Module Class")
        .map(|(_, name, cid)| (name, cid))
        .collect()
}

/// Host context with a name only.
pub struct Application;

impl Class for Application {
    type Interfaces = (IHostApplication,);
}

impl IHostApplicationTrait for Application {
    unsafe fn getName(&self, name: *mut String128) -> tresult {
        // SAFETY: the caller passes room for a name.
        unsafe { (&mut (*name))[..2].copy_from_slice(&[u16::from(b'O'), 0]) };
        kResultOk
    }

    unsafe fn createInstance(&self, _: *mut TUID, _: *mut TUID, _: *mut *mut c_void) -> tresult {
        kNotImplemented
    }
}
