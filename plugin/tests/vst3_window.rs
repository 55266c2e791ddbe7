//! The VST3 side's window in a host's window, with the host's run loop. Needs a display; where there is none, nothing is tried.

#![cfg(target_os = "linux")]

mod frame;
mod host;
mod module;

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use frame::{Frame, display};
use module::{Application, classes, factory};
use vst3::Steinberg::Linux::*;
use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr, ComWrapper, Interface};

/// The host around a window: its run loop, and the size that the window asks for.
#[derive(Default)]
struct Surroundings {
    timers: RefCell<Vec<(*mut ITimerHandler, Duration, Instant)>>,
    files: RefCell<Vec<(*mut IEventHandler, FileDescriptor)>>,
    asked: RefCell<Option<ViewRect>>,
    ticks: AtomicUsize,
}

impl Class for Surroundings {
    type Interfaces = (IPlugFrame, IRunLoop);
}

impl IPlugFrameTrait for Surroundings {
    unsafe fn resizeView(&self, _: *mut IPlugView, size: *mut ViewRect) -> tresult {
        // SAFETY: the caller gives a size.
        *self.asked.borrow_mut() = Some(unsafe { *size });
        kResultOk
    }
}

impl IRunLoopTrait for Surroundings {
    unsafe fn registerEventHandler(&self, handler: *mut IEventHandler, file: FileDescriptor) -> tresult {
        self.files.borrow_mut().push((handler, file));
        kResultOk
    }

    unsafe fn unregisterEventHandler(&self, handler: *mut IEventHandler) -> tresult {
        self.files.borrow_mut().retain(|(known, _)| *known != handler);
        kResultOk
    }

    unsafe fn registerTimer(&self, handler: *mut ITimerHandler, milliseconds: TimerInterval) -> tresult {
        self.timers.borrow_mut().push((handler, Duration::from_millis(milliseconds), Instant::now()));
        kResultOk
    }

    unsafe fn unregisterTimer(&self, handler: *mut ITimerHandler) -> tresult {
        self.timers.borrow_mut().retain(|(known, ..)| *known != handler);
        kResultOk
    }
}

impl Surroundings {
    /// Runs the loop until something has come true; a machine may be slow, but not for ever.
    fn run_until(&self, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not come true");
            let now = Instant::now();
            let due: Vec<_> = self.timers.borrow().iter().filter(|(_, _, due)| *due <= now).map(|one| one.0).collect();
            for handler in due {
                for (known, period, due) in self.timers.borrow_mut().iter_mut() {
                    if *known == handler {
                        *due = now + *period;
                    }
                }
                // SAFETY: what is registered is alive, and not called while we hold anything.
                unsafe { ((*(*handler).vtbl).onTimer)(handler) };
                self.ticks.fetch_add(1, Ordering::Relaxed);
            }
            let files = self.files.borrow().clone();
            for (handler, file) in files {
                // SAFETY: as above. Being called without need does no harm.
                unsafe { ((*(*handler).vtbl).onFDIsSet)(handler, file) };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn the_window_opens_draws_takes_a_size_and_goes() {
    let Some((_turn, connection, screen)) = display() else { return };
    let factory = factory();
    let size = [900, 560];
    let frame = Frame::new(connection, screen, size);
    for (name, class) in classes(&factory) {
        // SAFETY: calls come in the order that VST3 asks for, on one thread; the frame outlives the view in it.
        unsafe {
            let mut object = null_mut();
            let wanted = IComponent::IID;
            assert_eq!(factory.createInstance(class.as_ptr(), wanted.as_ptr().cast(), &mut object), kResultOk);
            let component = ComPtr::<IComponent>::from_raw(object.cast()).unwrap();
            let application = ComWrapper::new(Application).to_com_ptr::<FUnknown>().unwrap();
            assert_eq!(component.initialize(application.as_ptr()), kResultOk);
            let controller: ComPtr<IEditController> = component.cast().expect("one object for both");
            // Again and again, as a user does.
            for _ in 0..2 {
                let surroundings = ComWrapper::new(Surroundings::default());
                let view = ComPtr::from_raw(controller.createView(ViewType::kEditor)).expect("a window");
                assert_eq!(view.setFrame(surroundings.as_com_ref::<IPlugFrame>().unwrap().as_ptr()), kResultOk);
                let mut rect = ViewRect { left: 0, top: 0, right: 0, bottom: 0 };
                assert_eq!(view.getSize(&mut rect), kResultOk);
                assert_eq!([rect.right, rect.bottom], size.map(i32::from), "{name}");
                let window = frame.id as usize as *mut c_void;
                assert_eq!(view.attached(window, kPlatformTypeX11EmbedWindowID), kResultOk);
                surroundings.run_until(|| frame.colours(size) > 50);
                assert_eq!(frame.children().len(), 1);

                assert_eq!(view.canResize(), kResultTrue);
                let mut small = ViewRect { left: 0, top: 0, right: 450, bottom: 280 };
                assert_eq!(view.checkSizeConstraint(&mut small), kResultOk);
                assert!(small.right >= 450 && small.bottom >= 280 && small.right < 900, "it has a smallest size");
                let mut larger = ViewRect { left: 0, top: 0, right: 1080, bottom: 672 };
                assert_eq!(view.onSize(&mut larger), kResultOk);
                frame.resize([1080, 672]);
                surroundings.run_until(|| frame.child_size() == Some([1080, 672]) && frame.colours([1080, 672]) > 50);

                assert_eq!(view.removed(), kResultOk);
                assert_eq!(view.setFrame(null_mut()), kResultOk);
                drop(view);
                assert!(surroundings.ticks.load(Ordering::Relaxed) > 0, "it lives by the host's run loop");
                surroundings.run_until(|| frame.children().is_empty());
                frame.resize(size);
            }
            component.terminate();
        }
    }
}
