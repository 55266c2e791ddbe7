//! Converts between byte buffers and CLAP's state streams.

use std::ffi::c_void;
use std::ptr;

use clap_sys::ext::state::clap_plugin_state;
use clap_sys::plugin::clap_plugin;
use clap_sys::stream::{clap_istream, clap_ostream};

use super::catch_panic;

/// Largest accepted state in bytes; holds an embedded model and cabinet in both compare slots.
const MAX_STATE_BYTES: usize = 256 << 20;

/// Saves a plugin's state to a buffer; `None` if the plugin fails.
///
/// # Safety
/// The functions are the plugin's, which is alive, and this is its main thread.
pub unsafe fn save(plugin: *const clap_plugin, functions: &clap_plugin_state) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let stream = clap_ostream {
        ctx: ptr::from_mut(&mut bytes).cast(),
        write: Some(write),
    };
    // SAFETY: the stream lives longer than the call.
    unsafe { functions.save?(plugin, &raw const stream) }.then_some(bytes)
}

/// Loads a state into a plugin; returns false if the plugin refuses it.
///
/// # Safety
/// As for [`save`].
pub unsafe fn load(
    plugin: *const clap_plugin,
    functions: &clap_plugin_state,
    mut state: &[u8],
) -> bool {
    let stream = clap_istream {
        ctx: ptr::from_mut(&mut state).cast(),
        read: Some(read),
    };
    // SAFETY: the stream lives longer than the call.
    functions
        .load
        .is_some_and(|load| unsafe { load(plugin, &raw const stream) })
}

/// Writes all bytes to a host's stream; returns false if it does not take them.
///
/// # Safety
/// The stream is null or a host's, valid during the call.
pub unsafe fn write_all(stream: *const clap_ostream, mut bytes: &[u8]) -> bool {
    // SAFETY: guaranteed by the caller.
    let Some(write) = unsafe { stream.as_ref() }.and_then(|stream| stream.write) else {
        return false;
    };
    while !bytes.is_empty() {
        // SAFETY: there are that many bytes.
        let count = unsafe { write(stream, bytes.as_ptr().cast(), bytes.len() as u64) };
        match usize::try_from(count)
            .ok()
            .and_then(|count| bytes.get(count..))
            .filter(|_| count > 0)
        {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    true
}

/// Reads a host's stream to its end; `None` beyond [`MAX_STATE_BYTES`]. An error counts as the end,
/// since some hosts return one there; a truncated state fails to parse.
///
/// # Safety
/// The stream is null or a host's, valid during the call.
pub unsafe fn read_all(stream: *const clap_istream) -> Option<Vec<u8>> {
    // SAFETY: guaranteed by the caller.
    let read = unsafe { stream.as_ref() }?.read?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    while bytes.len() <= MAX_STATE_BYTES {
        // SAFETY: there is room for that many bytes.
        let count = unsafe { read(stream, chunk.as_mut_ptr().cast(), chunk.len() as u64) };
        match usize::try_from(count) {
            Ok(0) | Err(_) => return Some(bytes),
            Ok(count) => bytes.extend_from_slice(chunk.get(..count)?),
        }
    }
    None
}

/// Appends to the vector behind the stream.
unsafe extern "C" fn write(stream: *const clap_ostream, from: *const c_void, size: u64) -> i64 {
    let Ok(length) = usize::try_from(size) else {
        return -1;
    };
    // SAFETY: only `save` creates such streams, around a vector; the plugin passes that many bytes.
    let (bytes, from) = unsafe {
        if from.is_null() || length == 0 {
            return 0;
        }
        (
            &mut *(*stream).ctx.cast::<Vec<u8>>(),
            std::slice::from_raw_parts(from.cast::<u8>(), length),
        )
    };
    catch_panic(-1, || {
        bytes.extend_from_slice(from);
        length as i64
    })
}

/// Takes from the front of the slice behind the stream.
unsafe extern "C" fn read(stream: *const clap_istream, to: *mut c_void, size: u64) -> i64 {
    // SAFETY: only `load` creates such streams, around a slice.
    let rest = unsafe { &mut *(*stream).ctx.cast::<&[u8]>() };
    let length = rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    let (taken, remaining) = rest.split_at(length);
    // SAFETY: the plugin has room for that many bytes in a buffer of its own.
    unsafe { ptr::copy_nonoverlapping(taken.as_ptr(), to.cast(), length) };
    *rest = remaining;
    length as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three bytes at a time.
    unsafe extern "C" fn read_slowly(
        stream: *const clap_istream,
        to: *mut c_void,
        size: u64,
    ) -> i64 {
        // SAFETY: as `read`.
        unsafe { read(stream, to, size.min(3)) }
    }
    /// As [`read_slowly`], but returns an error at the end.
    unsafe extern "C" fn fail_at_end(
        stream: *const clap_istream,
        to: *mut c_void,
        size: u64,
    ) -> i64 {
        // SAFETY: as `read`.
        match unsafe { read_slowly(stream, to, size) } {
            0 => -1,
            count => count,
        }
    }

    #[test]
    fn a_stream_is_read_to_its_end_in_chunks_of_any_size() {
        let bytes: Vec<u8> = (0..200).collect();
        for read in [
            read_slowly as unsafe extern "C" fn(_, _, _) -> _,
            fail_at_end,
        ] {
            let mut left = bytes.as_slice();
            let stream = clap_istream {
                ctx: ptr::from_mut(&mut left).cast(),
                read: Some(read),
            };
            // SAFETY: stream and slice live longer than the calls.
            unsafe {
                assert_eq!(read_all(&raw const stream).as_ref(), Some(&bytes));
                assert_eq!(read_all(&raw const stream), Some(Vec::new()));
            }
        }
        // SAFETY: null is allowed.
        unsafe { assert_eq!(read_all(ptr::null()), None) };
    }
}
