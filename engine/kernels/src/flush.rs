//! Subnormal numbers as zero.

#![allow(unsafe_code)]

use std::marker::PhantomData;

/// While this lives, its thread computes with zero in place of subnormal numbers, as operands and as results: where a sound
/// fades out, recurrent networks and filters end in subnormals, with which many CPUs are tens of times slower.
///
/// A setting of the CPU on x86_64 and aarch64; elsewhere nothing changes. The compiler is not told: what it computes
/// beforehand, or moves past the guard, keeps its subnormals. So put the guard around calls of substance, and let nothing
/// but speed depend on it.
///
/// It belongs to the thread that made it:
///
/// ```compile_fail
/// let guard = ondes_kernels::FlushToZero::on();
/// std::thread::spawn(move || drop(guard));
/// ```
#[derive(Debug)]
#[must_use = "it ends where it is dropped"]
pub struct FlushToZero {
    /// The bits of `control::FLUSH` as they were.
    before: control::Register,
    not_send: PhantomData<*const ()>,
}

impl FlushToZero {
    /// From now on, until this is dropped. May be nested.
    pub fn on() -> Self {
        let now = control::read();
        control::write(now | control::FLUSH);
        Self { before: now & control::FLUSH, not_send: PhantomData }
    }
}

impl Drop for FlushToZero {
    fn drop(&mut self) {
        // Only its own bits: those of rounding and exceptions may have changed since.
        control::write(control::read() & !control::FLUSH | self.before);
    }
}

/// The control and status register of SSE and AVX arithmetic.
#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(super) type Register = u32;

    /// FTZ, for results, and DAZ, for operands.
    pub(super) const FLUSH: Register = 1 << 15 | 1 << 6;

    pub(super) fn read() -> Register {
        let mut mxcsr: Register = 0;
        // SAFETY: stores the register's 32 bits to a valid place; SSE, which has it, is part of x86_64. Not `nomem`, so
        // that no memory access moves past it.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    pub(super) fn write(mxcsr: Register) {
        // The compiler takes both bits for off; arithmetic it moves past this gives a subnormal where it could give zero, or
        // the reverse, and safe code here holds for either. Not `nomem`, so that no memory access moves past it.
        // SAFETY: loads 32 bits from a valid place. They are those of the register before, where only FTZ and DAZ may
        // differ: no reserved bit is set, no exception unmasked, no rounding changed.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }
}

/// The control register of floating-point and NEON arithmetic.
#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub(super) type Register = u64;

    /// FZ, for operands and results.
    pub(super) const FLUSH: Register = 1 << 24;

    pub(super) fn read() -> Register {
        let fpcr: Register;
        // SAFETY: copies a register that every thread may read. Not `nomem`, so that no memory access moves past it.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
        fpcr
    }

    pub(super) fn write(fpcr: Register) {
        // The compiler takes the bit for off; arithmetic it moves past this gives a subnormal where it could give zero, or
        // the reverse, and safe code here holds for either. Not `nomem`, so that no memory access moves past it.
        // SAFETY: the value is that of the register before, where only FZ may differ: no exception is trapped, no
        // rounding changed.
        unsafe { asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }
}

/// No such register, or none that we know.
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

    /// Whether a subnormal result and a subnormal operand count as zero.
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
