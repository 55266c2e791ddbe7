//! States as bytes: what CLAP passes as streams.

use std::ffi::c_void;
use std::ptr;

use clap_sys::ext::state::clap_plugin_state;
use clap_sys::plugin::clap_plugin;
use clap_sys::stream::{clap_istream, clap_ostream};

use super::guarded;

/// The largest state that is taken, bytes: both slots with a model and a cabinet embedded, and room beside.
const LARGEST: usize = 256 << 20;

/// What a plugin saves; none where it does not.
///
/// # Safety
/// The functions are the plugin's, which is alive, and this is its main thread.
pub unsafe fn saved(plugin: *const clap_plugin, functions: &clap_plugin_state) -> Option<Vec<u8>> {
    let mut saved: Vec<u8> = Vec::new();
    let into = clap_ostream { ctx: ptr::from_mut(&mut saved).cast(), write: Some(write) };
    // SAFETY: the stream lives longer than the call.
    unsafe { functions.save?(plugin, &raw const into) }.then_some(saved)
}

/// Gives a plugin a state. Returns whether it takes it.
///
/// # Safety
/// As of [`saved`].
pub unsafe fn load(plugin: *const clap_plugin, functions: &clap_plugin_state, mut state: &[u8]) -> bool {
    let from = clap_istream { ctx: ptr::from_mut(&mut state).cast(), read: Some(read) };
    // SAFETY: the stream lives longer than the call.
    functions.load.is_some_and(|load| unsafe { load(plugin, &raw const from) })
}

/// All that a host's stream holds; none where that is more than any state. Some hosts fail at the end instead of giving nothing;
/// whether something is missing the state itself tells.
///
/// # Safety
/// The stream is null or a host's, valid during the call.
pub unsafe fn all_of(stream: *const clap_istream) -> Option<Vec<u8>> {
    // SAFETY: the caller's.
    let read = unsafe { stream.as_ref() }?.read?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while bytes.len() <= LARGEST {
        // SAFETY: there is room for that many bytes.
        let count = unsafe { read(stream, piece.as_mut_ptr().cast(), piece.len() as u64) };
        match usize::try_from(count) {
            Ok(0) | Err(_) => return Some(bytes),
            Ok(count) => bytes.extend_from_slice(piece.get(..count)?),
        }
    }
    None
}

/// Adds to a vector of bytes.
unsafe extern "C" fn write(stream: *const clap_ostream, from: *const c_void, size: u64) -> i64 {
    let Ok(length) = usize::try_from(size) else { return -1 };
    // SAFETY: only `saved` makes such streams, around a vector; the plugin gives that many bytes.
    let (bytes, from) = unsafe {
        if from.is_null() || length == 0 {
            return 0;
        }
        (&mut *(*stream).ctx.cast::<Vec<u8>>(), std::slice::from_raw_parts(from.cast::<u8>(), length))
    };
    guarded(-1, || {
        bytes.extend_from_slice(from);
        length as i64
    })
}

/// Takes from the front of a slice.
unsafe extern "C" fn read(stream: *const clap_istream, to: *mut c_void, size: u64) -> i64 {
    // SAFETY: only `load` makes such streams, around a slice.
    let left = unsafe { &mut *(*stream).ctx.cast::<&[u8]>() };
    let length = left.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    let (now, later) = left.split_at(length);
    // SAFETY: the plugin has room for that many bytes, which are not these.
    unsafe { ptr::copy_nonoverlapping(now.as_ptr(), to.cast(), length) };
    *left = later;
    length as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives three bytes at a time, then nothing.
    unsafe extern "C" fn crumbs(stream: *const clap_istream, to: *mut c_void, size: u64) -> i64 {
        // SAFETY: as `read`.
        unsafe { read(stream, to, size.min(3)) }
    }
    /// The same, but it fails where there is nothing.
    unsafe extern "C" fn abrupt(stream: *const clap_istream, to: *mut c_void, size: u64) -> i64 {
        // SAFETY: as `read`.
        match unsafe { crumbs(stream, to, size) } {
            0 => -1,
            count => count,
        }
    }

    #[test]
    fn a_stream_is_read_to_its_end_in_whatever_pieces_it_comes() {
        let bytes: Vec<u8> = (0..200).collect();
        for read in [crumbs as unsafe extern "C" fn(_, _, _) -> _, abrupt] {
            let mut left = bytes.as_slice();
            let stream = clap_istream { ctx: ptr::from_mut(&mut left).cast(), read: Some(read) };
            // SAFETY: stream and slice live longer than the calls.
            unsafe {
                assert_eq!(all_of(&raw const stream).as_ref(), Some(&bytes));
                assert_eq!(all_of(&raw const stream), Some(Vec::new()));
            }
        }
        // SAFETY: null is allowed.
        unsafe { assert_eq!(all_of(ptr::null()), None) };
    }
}
