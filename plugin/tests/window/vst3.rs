//! The window of the VST3, with the host's run loop.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use vst3::Steinberg::Linux::*;
use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr, ComWrapper};

use crate::host::{EFFECT, Host, INSTRUMENT, with_selection};
use crate::parent_window::{ParentWindow, display};
use crate::vst3_module::instance::Instance;
use crate::vst3_module::{classes, factory};

/// The host's run loop, and the size that the window requested.
#[derive(Default)]
struct HostFrame {
    timers: RefCell<Vec<(*mut ITimerHandler, Duration, Instant)>>,
    files: RefCell<Vec<(*mut IEventHandler, FileDescriptor)>>,
    requested_size: Cell<Option<[u16; 2]>>,
    /// The host's window, which follows requests; without one they are refused.
    window: Option<Rc<ParentWindow>>,
    ticks: AtomicUsize,
}

impl Class for HostFrame {
    type Interfaces = (IPlugFrame, IRunLoop);
}

impl IPlugFrameTrait for HostFrame {
    unsafe fn resizeView(&self, view: *mut IPlugView, size: *mut ViewRect) -> tresult {
        // SAFETY: the caller passes a size and its view, which is alive.
        unsafe {
            let requested = [(*size).right - (*size).left, (*size).bottom - (*size).top]
                .map(|side| side as u16);
            self.requested_size.set(Some(requested));
            let Some(window) = &self.window else {
                return kResultFalse;
            };
            window.resize(requested);
            ((*(*view).vtbl).onSize)(view, size)
        }
    }
}

impl IRunLoopTrait for HostFrame {
    unsafe fn registerEventHandler(
        &self,
        handler: *mut IEventHandler,
        file: FileDescriptor,
    ) -> tresult {
        self.files.borrow_mut().push((handler, file));
        kResultOk
    }

    unsafe fn unregisterEventHandler(&self, handler: *mut IEventHandler) -> tresult {
        self.files
            .borrow_mut()
            .retain(|(known, _)| *known != handler);
        kResultOk
    }

    unsafe fn registerTimer(
        &self,
        handler: *mut ITimerHandler,
        milliseconds: TimerInterval,
    ) -> tresult {
        self.timers.borrow_mut().push((
            handler,
            Duration::from_millis(milliseconds),
            Instant::now(),
        ));
        kResultOk
    }

    unsafe fn unregisterTimer(&self, handler: *mut ITimerHandler) -> tresult {
        self.timers
            .borrow_mut()
            .retain(|(known, ..)| *known != handler);
        kResultOk
    }
}

impl HostFrame {
    /// Runs the loop until a condition holds; fails after 60 s.
    fn run_until(&self, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the condition does not hold after 60 s"
            );
            let now = Instant::now();
            let due: Vec<_> = self
                .timers
                .borrow()
                .iter()
                .filter(|(_, _, due)| *due <= now)
                .map(|one| one.0)
                .collect();
            for handler in due {
                for (known, period, due) in self.timers.borrow_mut().iter_mut() {
                    if *known == handler {
                        *due = now + *period;
                    }
                }
                // SAFETY: registered handlers are alive; nothing is borrowed during the call.
                unsafe { ((*(*handler).vtbl).onTimer)(handler) };
                self.ticks.fetch_add(1, Ordering::Relaxed);
            }
            let files = self.files.borrow().clone();
            for (handler, file) in files {
                // SAFETY: as above. A call without a pending event is harmless.
                unsafe { ((*(*handler).vtbl).onFDIsSet)(handler, file) };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn the_window_opens_draws_resizes_and_closes() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let factory = factory();
    let size = [980, 600];
    let frame = ParentWindow::new(connection, screen, size);
    for (name, class) in classes(&factory) {
        let instance = Instance::new(&factory, &class);
        // SAFETY: the calls follow VST3's order, on one thread; the parent window outlives the
        // view.
        unsafe {
            // More than once, as a user does.
            for _ in 0..2 {
                let host_frame = ComWrapper::new(HostFrame::default());
                let view = ComPtr::from_raw(instance.controller.createView(ViewType::kEditor))
                    .expect("a window");
                assert_eq!(
                    view.setFrame(host_frame.as_com_ref::<IPlugFrame>().unwrap().as_ptr()),
                    kResultOk
                );
                let mut rect = ViewRect {
                    left: 0,
                    top: 0,
                    right: 0,
                    bottom: 0,
                };
                assert_eq!(view.getSize(&mut rect), kResultOk);
                assert_eq!([rect.right, rect.bottom], size.map(i32::from), "{name}");
                let window = frame.id as usize as *mut c_void;
                assert_eq!(
                    view.attached(window, kPlatformTypeX11EmbedWindowID),
                    kResultOk
                );
                host_frame.run_until(|| frame.colours(size) > 50);
                assert_eq!(frame.children().len(), 1);

                assert_eq!(view.canResize(), kResultTrue);
                let mut small = ViewRect {
                    left: 0,
                    top: 0,
                    right: 450,
                    bottom: 280,
                };
                assert_eq!(view.checkSizeConstraint(&mut small), kResultOk);
                assert!(
                    small.right >= 450 && small.bottom >= 280 && small.right < 900,
                    "the window has a smallest size"
                );
                let mut larger = ViewRect {
                    left: 0,
                    top: 0,
                    right: 1176,
                    bottom: 720,
                };
                assert_eq!(view.onSize(&mut larger), kResultOk);
                frame.resize([1176, 720]);
                host_frame.run_until(|| {
                    frame.child_size() == Some([1176, 720]) && frame.colours([1176, 720]) > 50
                });

                assert_eq!(view.removed(), kResultOk);
                assert_eq!(view.setFrame(null_mut()), kResultOk);
                drop(view);
                assert!(
                    host_frame.ticks.load(Ordering::Relaxed) > 0,
                    "the window uses the host's run loop"
                );
                host_frame.run_until(|| frame.children().is_empty());
                frame.resize(size);
            }
        }
    }
}

/// Opens a view's window; returns its size.
///
/// # Safety
/// The frame and the parent window outlive the view's window.
unsafe fn open(
    view: &ComPtr<IPlugView>,
    host_frame: &ComWrapper<HostFrame>,
    parent: &ParentWindow,
) -> [u16; 2] {
    let mut rect = ViewRect {
        left: 0,
        top: 0,
        right: 0,
        bottom: 0,
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        assert_eq!(
            view.setFrame(host_frame.as_com_ref::<IPlugFrame>().unwrap().as_ptr()),
            kResultOk
        );
        assert_eq!(view.getSize(&mut rect), kResultOk);
        let size = [rect.right, rect.bottom].map(|side| side as u16);
        parent.resize(size);
        assert_eq!(
            view.attached(
                parent.id as usize as *mut c_void,
                kPlatformTypeX11EmbedWindowID
            ),
            kResultOk
        );
        host_frame.run_until(|| parent.child_size() == Some(size) && parent.colours(size) > 50);
        size
    }
}

/// A window at another scale asks the host for its size; one that is opened again has it, also in a
/// host that refused.
#[test]
fn the_host_window_follows_the_scale() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let factory = factory();
    let parent = Rc::new(ParentWindow::new(connection, screen, [980, 600]));
    for ((name, class), id) in classes(&factory).into_iter().zip([INSTRUMENT, EFFECT]) {
        let saved = Host::new(id).save();
        let scaled = |scale: f32| {
            let look = serde_json::json!({ "scale": scale, "theme": "dark" });
            with_selection(&saved, |selection| selection["look"] = look)
        };
        for follows in [true, false] {
            let instance = Instance::new(&factory, &class);
            let window = follows.then(|| parent.clone());
            let host_frame = ComWrapper::new(HostFrame {
                window,
                ..HostFrame::default()
            });
            // SAFETY: the calls follow VST3's order, on one thread; the parent window outlives the
            // view.
            unsafe {
                let view = ComPtr::from_raw(instance.controller.createView(ViewType::kEditor))
                    .expect("a window");
                assert_eq!(open(&view, &host_frame, &parent), [980, 600], "{name}");
                let mut opened = [980, 600];
                for (scale, size) in [(1.25, [1225, 750]), (0.75, [735, 450]), (1.0, [980, 600])] {
                    host_frame.requested_size.set(None);
                    assert!(instance.load(&scaled(scale)));
                    let expected = if follows { size } else { opened };
                    host_frame.run_until(|| {
                        host_frame.requested_size.get().is_some()
                            && parent.child_size() == Some(expected)
                    });
                    if follows {
                        assert_eq!(host_frame.requested_size.get(), Some(size), "{name}");
                        assert!(parent.colours(size) > 50);
                    }
                    // The host closes the window, and opens the same view again.
                    assert_eq!(view.removed(), kResultOk);
                    host_frame.run_until(|| parent.children().is_empty());
                    opened = open(&view, &host_frame, &parent);
                    assert_eq!(opened, size, "{name} reopens at {scale}");
                }
                assert_eq!(view.removed(), kResultOk);
                assert_eq!(view.setFrame(null_mut()), kResultOk);
                drop(view);
                host_frame.run_until(|| parent.children().is_empty());
                assert!(
                    host_frame.timers.borrow().is_empty(),
                    "a closed window needs no run loop"
                );
            }
        }
    }
}
