//! JACK clients whose process thread can be cancelled at any time.
//!
//! JACK's library ends the process thread of a client by `pthread_cancel`, asynchronously: also in
//! the middle of a cycle if the client is late. The C library then unwinds the thread's stack and
//! aborts the whole process ("FATAL: exception not rethrown") if a frame on it catches that, as
//! `catch_unwind` does. The crate `jack` calls all its handlers within `catch_unwind`, so an
//! overloaded Ondes aborted now and then when it closed its client.
//!
//! An [`ActiveClient`] therefore brings its own callbacks. Cancellation is disabled while a cycle
//! is processed; the one frame that is on the stack otherwise has neither destructors nor landing
//! pads, and neither have the callbacks for notifications, which JACK calls on another thread that
//! it cancels.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jack::jack_sys::{self, jack_nframes_t, jack_status_t};
use jack::{Client, ClientOptions, ClientStatus, ProcessScope};
use ondes_engine::sync::lock;

use super::callback_slot::StreamStats;

/// Name of our clients; the server appends a number if there are several.
pub(super) const CLIENT: &str = "Ondes";

/// Connection attempts to a server that refuses. It may be busy, or a client of the same name on
/// another server of this machine blocks the socket for a moment.
const ATTEMPTS: usize = 4;

/// Time between attempts.
const PAUSE: Duration = Duration::from_millis(30);

/// Error if no server is running.
pub(super) const NO_SERVER: &str = "no JACK server is running";
/// Error if JACK is not installed.
pub(super) const NO_LIBRARY: &str = "JACK's library is not installed";

/// States of `pthread_setcancelstate`.
const CANCEL_ENABLE: c_int = 0;
const CANCEL_DISABLE: c_int = 1;

unsafe extern "C-unwind" {
    /// Of the C library. A cancellation that is pending takes effect when it is enabled.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Connects to the running server; does not start one.
pub(super) fn connect(name: &str) -> Result<Client, String> {
    // Parallel connections, for a device list and for the sound, disturb each other: the server
    // would seem to be missing.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    for attempt in 1..=ATTEMPTS {
        match Client::new(name, ClientOptions::NO_START_SERVER) {
            Ok((client, _)) => return Ok(client),
            Err(jack::Error::LibraryError(_)) => return Err(NO_LIBRARY.into()),
            Err(jack::Error::ClientError(status))
                if status.contains(ClientStatus::SERVER_FAILED) =>
            {
                break;
            }
            Err(_) if attempt == ATTEMPTS => {
                return Err("the JACK server refuses the connection".into());
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Err(NO_SERVER.into())
}

/// Handler of a process cycle.
pub(super) type CycleHandler = Box<dyn FnMut(&Client, &ProcessScope) + Send>;

/// Client in the server's graph until dropped, which waits for a cycle that is being processed.
pub(super) struct ActiveClient(Arc<ClientContext>);

/// Argument of all callbacks of a client.
struct ClientContext {
    client: Client,
    /// Only used by the process thread.
    handler: UnsafeCell<CycleHandler>,
    state: ServerState,
    stats: Option<Arc<StreamStats>>,
}

// SAFETY: libjack's functions may be called from any thread, the handler is `Send` and only the
// process thread uses it, and the other fields are `Send` and `Sync`.
unsafe impl Send for ClientContext {}
// SAFETY: as above.
unsafe impl Sync for ClientContext {}

impl ActiveClient {
    /// Puts a client into the graph. `stats` counts the underruns that the server reports.
    pub fn activate(
        client: Client,
        handler: CycleHandler,
        stats: Option<Arc<StreamStats>>,
    ) -> Result<Self, &'static str> {
        let state = ServerState::at(client.sample_rate());
        let context = Arc::new(ClientContext {
            client,
            handler: UnsafeCell::new(handler),
            state,
            stats,
        });
        let active = Self(context);
        let raw = active.client().raw();
        let argument = Arc::as_ptr(&active.0).cast_mut().cast::<c_void>();
        // SAFETY: both types are pointers to functions with the same arguments and result; only the
        // unwinding of `run_cycles` must be allowed, see there.
        let run = unsafe {
            std::mem::transmute::<
                unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
                unsafe extern "C" fn(*mut c_void) -> *mut c_void,
            >(run_cycles)
        };
        // SAFETY: the client is open and not active yet, as these functions require. The argument
        // is a `ClientContext` that lives until the client is deactivated: `Drop` deactivates
        // before it frees.
        let refused = unsafe {
            jack_sys::jack_on_info_shutdown(raw, Some(on_shutdown), argument);
            [
                jack_sys::jack_set_process_thread(raw, Some(run), argument),
                jack_sys::jack_set_xrun_callback(raw, Some(on_xrun), argument),
                jack_sys::jack_set_sample_rate_callback(raw, Some(on_sample_rate), argument),
            ]
        };
        // SAFETY: the client is open.
        if refused == [0; 3] && unsafe { jack_sys::jack_activate(raw) } == 0 {
            Ok(active)
        } else {
            Err("JACK: the client cannot be activated")
        }
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns the reason if the client has become useless.
    pub fn failure(&self) -> Option<String> {
        self.0.state.failure()
    }
}

impl Drop for ActiveClient {
    fn drop(&mut self) {
        // SAFETY: the client is open. Afterwards its process thread has ended: JACK cancels and
        // joins it. The result does not matter: without a server there is nothing to be deactivated
        // in.
        unsafe { jack_sys::jack_deactivate(self.0.client.raw()) };
    }
}

/// Process thread of a client. JACK ends it by unwinding, from its functions or from
/// `pthread_setcancelstate`, so this frame must own nothing and catch nothing.
unsafe extern "C-unwind" fn run_cycles(argument: *mut c_void) -> *mut c_void {
    let context = argument.cast_const().cast::<ClientContext>();
    // SAFETY: `activate` has passed a context that outlives this thread, and the functions of
    // libjack are called in the order that it requires of a process thread.
    unsafe {
        let client = (*context).client.raw();
        loop {
            let frames = jack_sys::jack_cycle_wait(client);
            pthread_setcancelstate(CANCEL_DISABLE, std::ptr::null_mut());
            process_cycle(&*context, frames);
            pthread_setcancelstate(CANCEL_ENABLE, std::ptr::null_mut());
            jack_sys::jack_cycle_signal(client, 0);
        }
    }
}

/// Processes a cycle of `frames`, with cancellation disabled. After a panic the handler is not
/// called again.
fn process_cycle(context: &ClientContext, frames: jack_nframes_t) {
    if context.state.panicked.load(Relaxed) {
        return;
    }
    // SAFETY: this is the process thread, the only one that uses the handler, and it does not call
    // itself.
    let handler = unsafe { &mut *context.handler.get() };
    // SAFETY: the scope is that of the cycle that `jack_cycle_wait` has begun for this client.
    let scope = unsafe { ProcessScope::from_raw(frames, context.client.raw()) };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler(&context.client, &scope))) {
        // Not freed on the audio thread.
        std::mem::forget(panic);
        context.state.panicked.store(true, Relaxed);
    }
}

unsafe extern "C" fn on_xrun(argument: *mut c_void) -> c_int {
    // SAFETY: see `activate`.
    if let Some(stats) = unsafe { &(*argument.cast_const().cast::<ClientContext>()).stats } {
        stats.count_xrun();
    }
    0
}

unsafe extern "C" fn on_sample_rate(sample_rate: jack_nframes_t, argument: *mut c_void) -> c_int {
    // SAFETY: see `activate`.
    let state = unsafe { &(*argument.cast_const().cast::<ClientContext>()).state };
    // The server also reports its rate to each new client.
    if state.sample_rate.swap(sample_rate, Relaxed) != sample_rate {
        state.changed_rate.store(true, Relaxed);
    }
    0
}

/// May interrupt anything, so it only sets flags.
unsafe extern "C" fn on_shutdown(status: jack_status_t, _: *const c_char, argument: *mut c_void) {
    // SAFETY: see `activate`.
    let state = unsafe { &(*argument.cast_const().cast::<ClientContext>()).state };
    state.removed.store(
        ClientStatus::from_bits_truncate(status).contains(ClientStatus::CLIENT_ZOMBIE),
        Relaxed,
    );
    state.gone.store(true, Relaxed);
}

/// State reported by the server.
#[derive(Default)]
struct ServerState {
    gone: AtomicBool,
    /// The server goes on without this client.
    removed: AtomicBool,
    changed_rate: AtomicBool,
    /// Sample rate, Hz.
    sample_rate: AtomicU32,
    /// The handler has panicked.
    panicked: AtomicBool,
}

impl ServerState {
    /// Initial state for a server at a sample rate in Hz.
    fn at(sample_rate: u32) -> Self {
        Self {
            sample_rate: AtomicU32::new(sample_rate),
            ..Self::default()
        }
    }

    fn failure(&self) -> Option<String> {
        if self.panicked.load(Relaxed) {
            return Some("its process thread failed".into());
        }
        match (self.gone.load(Relaxed), self.removed.load(Relaxed)) {
            (true, true) => {
                return Some("the JACK server has removed Ondes, which was too slow".into());
            }
            (true, false) => return Some("the JACK server has stopped".into()),
            (false, _) => {}
        }
        let rate = self.sample_rate.load(Relaxed);
        self.changed_rate
            .load(Relaxed)
            .then(|| format!("the JACK server has switched to {rate} Hz"))
    }
}
