//! Guard that flushes subnormal numbers to zero.

#![allow(unsafe_code)]

use std::marker::PhantomData;

/// Guard under which its thread treats subnormal numbers as zero, as operands and as results.
/// Recurrent networks and filters produce subnormals where a sound fades out, and many CPUs are
/// tens of times slower with them.
///
/// Sets a CPU flag on x86_64 and aarch64; does nothing elsewhere. The compiler does not know the
/// flag: computations that it does at compile time, or moves past the guard, keep their subnormals.
/// So put the guard around large calls, and let only speed depend on it.
///
/// ```
/// use ondes_kernels::{Activation, FlushToZero, Kernels};
///
/// let _flush = FlushToZero::on();
/// Kernels::detect().activate(Activation::Tanh, &mut [0.5; 64]);
/// ```
///
/// The guard stays on the thread that created it:
///
/// ```compile_fail
/// let guard = ondes_kernels::FlushToZero::on();
/// std::thread::spawn(move || drop(guard));
/// ```
#[derive(Debug)]
#[must_use = "the flag is restored when the guard is dropped"]
pub struct FlushToZero {
    /// The bits of `control::FLUSH` before.
    before: control::Register,
    not_send: PhantomData<*const ()>,
}

impl FlushToZero {
    /// Sets the flag until the guard is dropped. Guards may be nested.
    pub fn on() -> Self {
        let now = control::read();
        control::write(now | control::FLUSH);
        Self {
            before: now & control::FLUSH,
            not_send: PhantomData,
        }
    }
}

impl Drop for FlushToZero {
    fn drop(&mut self) {
        // Restores only these bits, since those of rounding and exceptions may have changed.
        control::write(control::read() & !control::FLUSH | self.before);
    }
}

/// Control and status register of SSE and AVX arithmetic.
#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(super) type Register = u32;

    /// FTZ, for results, and DAZ, for operands.
    pub(super) const FLUSH: Register = 1 << 15 | 1 << 6;

    pub(super) fn read() -> Register {
        let mut mxcsr: Register = 0;
        // SAFETY: stores the register's 32 bits to a valid address; SSE is part of x86_64. Not
        // `nomem`, so that no memory access moves past it.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    pub(super) fn write(mxcsr: Register) {
        // The compiler assumes that both bits are off: arithmetic that it moves past this may give
        // a subnormal instead of zero, or the reverse, and the safe code here allows either. Not
        // `nomem`, so that no memory access moves past it. SAFETY: loads 32 bits from a valid
        // address. They are those read before, except for FTZ and DAZ: no reserved bit is set, no
        // exception unmasked, no rounding changed.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags))
        };
    }
}

/// Control register of floating-point and NEON arithmetic.
#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub(super) type Register = u64;

    /// FZ, for operands and results.
    pub(super) const FLUSH: Register = 1 << 24;

    pub(super) fn read() -> Register {
        let fpcr: Register;
        // SAFETY: copies a register that every thread may read. Not `nomem`, so that no memory
        // access moves past it.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
        fpcr
    }

    pub(super) fn write(fpcr: Register) {
        // The compiler assumes that the bit is off: arithmetic that it moves past this may give a
        // subnormal instead of zero, or the reverse, and the safe code here allows either. Not
        // `nomem`, so that no memory access moves past it. SAFETY: the value is the one read
        // before, except for FZ: no exception is trapped, no rounding changed.
        unsafe { asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }
}

/// CPUs without a known register.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) type Register = u32;
    pub(super) const FLUSH: Register = 0;

    pub(super) fn read() -> Register {
        0
    }

    pub(super) fn write(_: Register) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Returns whether subnormal results and subnormal operands are flushed.
    #[inline(never)]
    fn flushed() -> (bool, bool) {
        let result = black_box(black_box(f32::MIN_POSITIVE) * black_box(0.5));
        let product = black_box(black_box(f32::from_bits(1)) * black_box(1e30));
        (result.to_bits() == 0, product.to_bits() == 0)
    }

    #[test]
    fn subnormals_are_zero_inside() {
        assert_eq!(flushed(), (false, false));
        let guard = FlushToZero::on();
        assert_eq!(flushed(), (true, true));
        drop(guard);
        assert_eq!(flushed(), (false, false));
    }

    #[test]
    fn nesting_restores() {
        let outer = FlushToZero::on();
        let inner = FlushToZero::on();
        drop(inner);
        assert_eq!(flushed(), (true, true));
        drop(outer);
        assert_eq!(flushed(), (false, false));
    }
}
