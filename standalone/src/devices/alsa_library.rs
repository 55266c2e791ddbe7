//! ALSA's library, opened when it is needed: without it, the program only lacks ALSA's devices and
//! ports.
//!
//! Cargo's configuration keeps the crate `alsa-sys` from linking the library
//! (`.cargo/config.toml`). Each function that is used is defined here, as a jump to an address in a
//! table.

#![allow(unsafe_code)]

use std::arch::global_asm;
use std::ffi::c_void;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Library;

/// The library, of all versions since 2002.
const FILE: &str = "libasound.so.2";
/// Reason to be shown where it is missing.
pub(super) const MISSING: &str = "ALSA's library, libasound.so.2, is not installed";

/// Makes ALSA usable on this thread, as far as it is installed, and keeps it from printing to
/// standard error. To be called on each thread before its first use.
pub(super) fn prepare() {
    if is_installed() {
        // Lasts as long as the thread. If it cannot be set, ALSA prints its messages.
        drop(alsa::Output::local_error_handler());
    }
}

/// Returns whether the library is installed; opens it the first time.
pub(super) fn is_installed() -> bool {
    static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(open);
    LIBRARY.is_some()
}

/// Opens the library and enters its functions into the table. A function that it lacks keeps
/// failing.
fn open() -> Option<Library> {
    // SAFETY: ALSA's library does nothing when it is loaded.
    let library = unsafe { Library::new(FILE) }.ok()?;
    for (name, address) in FUNCTIONS.iter().zip(&ADDRESSES) {
        // SAFETY: it is only called with the arguments that `alsa-sys` declares for it.
        if let Ok(function) = unsafe { library.get::<*mut c_void>(name.as_bytes()) } {
            address.store(*function, Ordering::Release);
        }
    }
    Some(library)
}

/// Stands for each function until the library is open: it fails with "no such device".
extern "C" fn fail() -> isize {
    -(libc::ENODEV as isize)
}

/// Returns the index of a function in the table.
const fn index(name: &str) -> usize {
    let mut index = 0;
    while !is_equal(FUNCTIONS[index], name) {
        index += 1;
    }
    index
}

const fn is_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Addresses of the functions, in the order of [`FUNCTIONS`].
static ADDRESSES: [AtomicPtr<c_void>; FUNCTIONS.len()] =
    [const { AtomicPtr::new(fail as *mut c_void) }; FUNCTIONS.len()];

macro_rules! forward {
    ($($name:literal),* $(,)?) => {
        /// The functions that are used; a missing one is an error of the linker.
        const FUNCTIONS: &[&str] = &[$($name),*];

        $(
            #[cfg(target_arch = "x86_64")]
            global_asm!(
                concat!(".globl ", $name),
                concat!(".type ", $name, ",@function"),
                concat!($name, ":"),
                "jmp qword ptr [rip + {addresses} + {offset}]",
                addresses = sym ADDRESSES,
                offset = const size_of::<AtomicPtr<c_void>>() * index($name),
            );
            #[cfg(target_arch = "aarch64")]
            global_asm!(
                concat!(".globl ", $name),
                concat!(".type ", $name, ",@function"),
                concat!($name, ":"),
                "adrp x16, {addresses} + {offset}",
                "ldr x16, [x16, :lo12:{addresses} + {offset}]",
                "br x16",
                addresses = sym ADDRESSES,
                offset = const size_of::<AtomicPtr<c_void>>() * index($name),
            );
        )*
    };
}

forward!(
    "snd_card_next",
    "snd_config_update",
    "snd_config_update_free_global",
    "snd_ctl_card_info",
    "snd_ctl_card_info_free",
    "snd_ctl_card_info_get_name",
    "snd_ctl_card_info_malloc",
    "snd_ctl_close",
    "snd_ctl_open",
    "snd_ctl_pcm_info",
    "snd_ctl_pcm_next_device",
    "snd_device_name_free_hint",
    "snd_device_name_get_hint",
    "snd_device_name_hint",
    "snd_lib_error_set_local",
    "snd_midi_event_decode",
    "snd_midi_event_free",
    "snd_midi_event_new",
    "snd_midi_event_no_status",
    "snd_output_buffer_open",
    "snd_output_close",
    "snd_output_putc",
    "snd_output_puts",
    "snd_output_vprintf",
    "snd_pcm_avail_delay",
    "snd_pcm_bytes_to_frames",
    "snd_pcm_close",
    "snd_pcm_format_physical_width",
    "snd_pcm_get_params",
    "snd_pcm_hw_params",
    "snd_pcm_hw_params_any",
    "snd_pcm_hw_params_can_resume",
    "snd_pcm_hw_params_copy",
    "snd_pcm_hw_params_current",
    "snd_pcm_hw_params_free",
    "snd_pcm_hw_params_get_buffer_size_max",
    "snd_pcm_hw_params_get_channels_max",
    "snd_pcm_hw_params_get_channels_min",
    "snd_pcm_hw_params_get_period_size",
    "snd_pcm_hw_params_get_period_size_max",
    "snd_pcm_hw_params_get_period_size_min",
    "snd_pcm_hw_params_get_rate_max",
    "snd_pcm_hw_params_get_rate_min",
    "snd_pcm_hw_params_malloc",
    "snd_pcm_hw_params_set_access",
    "snd_pcm_hw_params_set_buffer_size_near",
    "snd_pcm_hw_params_set_channels",
    "snd_pcm_hw_params_set_format",
    "snd_pcm_hw_params_set_period_size_near",
    "snd_pcm_hw_params_set_rate",
    "snd_pcm_hw_params_supports_audio_ts_type",
    "snd_pcm_hw_params_test_channels",
    "snd_pcm_hw_params_test_format",
    "snd_pcm_hw_params_test_rate",
    "snd_pcm_info",
    "snd_pcm_info_free",
    "snd_pcm_info_get_name",
    "snd_pcm_info_get_stream",
    "snd_pcm_info_malloc",
    "snd_pcm_info_set_device",
    "snd_pcm_info_set_stream",
    "snd_pcm_info_set_subdevice",
    "snd_pcm_open",
    "snd_pcm_pause",
    "snd_pcm_poll_descriptors",
    "snd_pcm_poll_descriptors_count",
    "snd_pcm_poll_descriptors_revents",
    "snd_pcm_prepare",
    "snd_pcm_readi",
    "snd_pcm_resume",
    "snd_pcm_start",
    "snd_pcm_state",
    "snd_pcm_status",
    "snd_pcm_status_get_audio_htstamp",
    "snd_pcm_status_get_htstamp",
    "snd_pcm_status_get_state",
    "snd_pcm_status_get_trigger_htstamp",
    "snd_pcm_status_set_audio_htstamp_config",
    "snd_pcm_status_sizeof",
    "snd_pcm_sw_params",
    "snd_pcm_sw_params_current",
    "snd_pcm_sw_params_free",
    "snd_pcm_sw_params_malloc",
    "snd_pcm_sw_params_set_avail_min",
    "snd_pcm_sw_params_set_start_threshold",
    "snd_pcm_sw_params_set_tstamp_mode",
    "snd_pcm_sw_params_set_tstamp_type",
    "snd_pcm_writei",
    "snd_seq_alloc_named_queue",
    "snd_seq_client_id",
    "snd_seq_client_info_free",
    "snd_seq_client_info_get_client",
    "snd_seq_client_info_get_name",
    "snd_seq_client_info_malloc",
    "snd_seq_client_info_set_client",
    "snd_seq_close",
    "snd_seq_control_queue",
    "snd_seq_create_port",
    "snd_seq_delete_port",
    "snd_seq_drain_output",
    "snd_seq_event_input",
    "snd_seq_event_input_pending",
    "snd_seq_free_queue",
    "snd_seq_get_any_client_info",
    "snd_seq_get_any_port_info",
    "snd_seq_open",
    "snd_seq_poll_descriptors",
    "snd_seq_poll_descriptors_count",
    "snd_seq_port_info_free",
    "snd_seq_port_info_get_capability",
    "snd_seq_port_info_get_client",
    "snd_seq_port_info_get_name",
    "snd_seq_port_info_get_port",
    "snd_seq_port_info_get_type",
    "snd_seq_port_info_malloc",
    "snd_seq_port_info_set_capability",
    "snd_seq_port_info_set_client",
    "snd_seq_port_info_set_midi_channels",
    "snd_seq_port_info_set_name",
    "snd_seq_port_info_set_port",
    "snd_seq_port_info_set_timestamp_queue",
    "snd_seq_port_info_set_timestamp_real",
    "snd_seq_port_info_set_timestamping",
    "snd_seq_port_info_set_type",
    "snd_seq_port_info_sizeof",
    "snd_seq_port_subscribe_free",
    "snd_seq_port_subscribe_get_dest",
    "snd_seq_port_subscribe_get_sender",
    "snd_seq_port_subscribe_malloc",
    "snd_seq_port_subscribe_set_dest",
    "snd_seq_port_subscribe_set_sender",
    "snd_seq_port_subscribe_sizeof",
    "snd_seq_query_next_client",
    "snd_seq_query_next_port",
    "snd_seq_queue_tempo_free",
    "snd_seq_queue_tempo_malloc",
    "snd_seq_queue_tempo_set_ppq",
    "snd_seq_queue_tempo_set_tempo",
    "snd_seq_queue_tempo_sizeof",
    "snd_seq_set_client_name",
    "snd_seq_set_queue_tempo",
    "snd_seq_subscribe_port",
    "snd_seq_unsubscribe_port",
);
