//! The streams in which a host saves and loads states.

use clap_sys::stream::{clap_istream, clap_ostream};

use crate::clap::c_interface::Functions;

/// Stream of a host that is loaded from.
pub(super) type InputStream<'a> = Functions<'a, clap_istream>;
/// Stream of a host that is saved to.
pub(super) type OutputStream<'a> = Functions<'a, clap_ostream>;

/// Largest accepted state in bytes; holds an embedded model and cabinet in both compare slots.
const MAX_STATE_BYTES: usize = 256 << 20;

/// Writes all bytes; returns false if the host does not take them.
pub(super) fn write_all(stream: OutputStream<'_>, mut bytes: &[u8]) -> bool {
    let Some(write) = stream.write else {
        return false;
    };
    while !bytes.is_empty() {
        // SAFETY: the function is this stream's, and there are that many bytes.
        let count = unsafe { write(stream.as_ptr(), bytes.as_ptr().cast(), bytes.len() as u64) };
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

/// Reads to the end; `None` beyond [`MAX_STATE_BYTES`]. An error counts as the end, since some
/// hosts return one there; a truncated state fails to parse.
pub(super) fn read_all(stream: InputStream<'_>) -> Option<Vec<u8>> {
    let read = stream.read?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    while bytes.len() <= MAX_STATE_BYTES {
        let (to, room) = (chunk.as_mut_ptr().cast(), chunk.len() as u64);
        // SAFETY: the function is this stream's, and there is room for that many bytes.
        match usize::try_from(unsafe { read(stream.as_ptr(), to, room) }) {
            Ok(0) | Err(_) => return Some(bytes),
            Ok(count) => bytes.extend_from_slice(chunk.get(..count)?),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;
    use crate::clap::c_interface::FromHost;

    /// Returns three bytes at a time.
    unsafe extern "C" fn read_slowly(
        stream: *const clap_istream,
        to: *mut c_void,
        size: u64,
    ) -> i64 {
        // SAFETY: the stream below is around a slice, and there is room for that many bytes.
        unsafe {
            let rest = &mut *(*stream).ctx.cast::<&[u8]>();
            let (taken, left) = rest.split_at(rest.len().min(size.min(3) as usize));
            taken.as_ptr().copy_to(to.cast(), taken.len());
            *rest = left;
            taken.len() as i64
        }
    }
    /// As [`read_slowly`], but returns an error at the end.
    unsafe extern "C" fn fail_at_end(
        stream: *const clap_istream,
        to: *mut c_void,
        size: u64,
    ) -> i64 {
        // SAFETY: as above.
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
                ctx: (&raw mut left).cast(),
                read: Some(read),
            };
            // SAFETY: stream and slice live longer than the calls.
            let stream = unsafe { InputStream::from_host(&raw const stream) }.unwrap();
            assert_eq!(read_all(stream).as_ref(), Some(&bytes));
            assert_eq!(read_all(stream), Some(Vec::new()));
        }
    }
}
