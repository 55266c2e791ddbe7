//! The one way through which passes of libtorch run: its exceptions, which tch makes panics, become
//! errors.
//!
//! tch's functions without the prefix `f_` unwrap what C++ throws. A panic that says that memory is
//! missing is [`OutOfMemory`]; other exceptions of libtorch are errors of one line. All other
//! panics are bugs and stay panics.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use tch::TchError;

/// Words of messages that say that memory is missing: of our bound, of libtorch, CUDA and cuBLAS,
/// of the C++ library.
const MEMORY_WORDS: [&str; 5] = [
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "bad_alloc",
    "CUBLAS_STATUS_ALLOC_FAILED",
];

/// Something needs more memory than there is.
#[derive(Clone, Debug)]
pub struct OutOfMemory {
    /// Name of what did not fit, such as "the validation".
    pub what: String,
    /// Message of the allocator.
    pub reason: String,
    /// Step that a checkpoint holds, and the checkpoint.
    pub kept: Option<(u64, PathBuf)>,
    /// The command goes on from the checkpoint with `--resume`.
    pub is_resumable: bool,
}

impl OutOfMemory {
    /// Returns the error of something whose allocator says `reason`.
    #[must_use]
    pub fn new(what: &str, reason: &str) -> Self {
        Self {
            what: what.to_owned(),
            reason: reason.to_owned(),
            kept: None,
            is_resumable: false,
        }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.reason.contains("CUDA") || self.reason.contains("CUBLAS") {
            true => "use a smaller batch, or shorter crops or windows",
            false => "use a smaller batch, or shorter crops or windows, or raise --memory",
        };
        match sizes(&self.reason) {
            Some([needed, bound]) => {
                let [needed, bound] = [needed, bound].map(|bytes| bytes / 1e9);
                write!(
                    f,
                    "out of memory in {}: its tensors need {needed:.2} GB of {bound:.2} GB; {advice}",
                    self.what
                )?;
            }
            None => write!(f, "out of memory in {}; {advice}", self.what)?,
        }
        let Some((step, path)) = &self.kept else {
            return Ok(());
        };
        match self.is_resumable {
            true => write!(
                f,
                "; {} holds step {step}, from which --resume goes on",
                path.display()
            ),
            false => write!(
                f,
                "; {} holds step {step}, whose model `ondes-train export` writes",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// Returns the sizes in the message of our bound, bytes: needed and allowed.
fn sizes(reason: &str) -> Option<[f64; 2]> {
    let (needed, rest) = reason
        .split_once("out of memory: ")?
        .1
        .split_once(" bytes of ")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some([needed.parse().ok()?, digits.parse().ok()?])
}

/// Runs something that may need too much memory; returns the allocator's message then.
///
/// # Panics
/// Panics with any other reason.
pub fn if_it_fits<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    caught(run).or_else(|panic| match message(&*panic) {
        Some(text) if is_memory(text) => Err(first_line(text)),
        _ => resume_unwind(panic),
    })
}

/// Runs passes of libtorch. Its exceptions become errors; `what` names the passes in them, such as
/// "the validation".
///
/// # Errors
/// Returns [`OutOfMemory`] if memory is missing, the first line of another exception, and what
/// `run` returns.
///
/// # Panics
/// Panics if something else than libtorch does.
pub fn guarded<R>(what: &str, run: impl FnOnce() -> anyhow::Result<R>) -> anyhow::Result<R> {
    let fault = |text: &str| match is_memory(text) {
        true => anyhow::Error::new(OutOfMemory::new(what, &first_line(text))),
        false => anyhow::anyhow!("libtorch failed in {what}: {}", first_line(text)),
    };
    match caught(run) {
        Ok(Err(error)) => match error
            .chain()
            .find_map(|cause| cause.downcast_ref::<TchError>())
        {
            Some(cause) => Err(fault(&cause.to_string())),
            None => Err(error),
        },
        Ok(result) => result,
        Err(panic) => match message(&*panic) {
            Some(text) if is_of_libtorch(text) => Err(fault(text)),
            _ => resume_unwind(panic),
        },
    }
}

/// Runs passes over up to `rows` crops at once; over fewer as long as memory is missing. Returns
/// how many fitted, too.
///
/// # Errors
/// As [`guarded`], if not even one crop fits.
pub fn with_fewer_rows<R>(
    what: &str,
    rows: usize,
    mut run: impl FnMut(usize) -> anyhow::Result<R>,
) -> anyhow::Result<(usize, R)> {
    let mut rows = rows.max(1);
    loop {
        match guarded(what, || run(rows)) {
            Err(error) if rows > 1 && error.is::<OutOfMemory>() => {
                rows = rows.div_ceil(2);
                eprintln!("out of memory in {what}: it computes {rows} at once from now on");
            }
            result => return Ok((rows, result?)),
        }
    }
}

thread_local! {
    static GUARDS: Cell<usize> = const { Cell::new(0) };
}

/// Guards on all threads: exceptions on threads of a pool reach the guard as well.
static ALL_GUARDS: AtomicUsize = AtomicUsize::new(0);

/// Runs something; exceptions of libtorch print nothing.
fn caught<R>(run: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_guarded = GUARDS.get() > 0 || ALL_GUARDS.load(Ordering::Relaxed) > 0;
            if !(is_guarded && message(info.payload()).is_some_and(is_of_libtorch)) {
                before(info);
            }
        }));
    });
    GUARDS.set(GUARDS.get() + 1);
    ALL_GUARDS.fetch_add(1, Ordering::Relaxed);
    // A panic leaves gradients off if it comes from a part without them.
    let result = tch::with_grad(|| {
        catch_unwind(AssertUnwindSafe(|| {
            let result = run();
            #[cfg(test)]
            injection::fail_if_due();
            result
        }))
    });
    GUARDS.set(GUARDS.get() - 1);
    ALL_GUARDS.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
}

fn is_memory(text: &str) -> bool {
    MEMORY_WORDS.iter().any(|words| text.contains(words))
}

/// Tells whether a text is that of an exception: as tch unwraps it, or with C++'s list of calls.
fn is_of_libtorch(text: &str) -> bool {
    is_memory(text) || text.contains("value: Torch(") || text.contains("Exception raised from")
}

/// Returns the first line of an exception's text, without tch's words around it.
fn first_line(text: &str) -> String {
    let text = text
        .split_once("Torch(\"")
        .map_or(text, |(_, exception)| exception);
    text.split("\\n")
        .next()
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches("\")")
        .to_owned()
}

/// Failures for tests.
#[cfg(test)]
pub(crate) mod injection {
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Lets memory end after so many guarded passes, once.
    pub fn fail_after(passes: u32) {
        LEFT.set(Some(passes));
    }

    pub(super) fn fail_if_due() {
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                panic!("out of memory, for a test");
            }
            left => LEFT.set(left.map(|left| left - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use tch::{Device, Kind, Tensor};

    use super::*;

    #[test]
    fn exceptions_become_errors_of_one_line() {
        let shapes = guarded("the validation", || {
            let _ = Tensor::zeros([2], (Kind::Float, Device::Cpu))
                + Tensor::zeros([3], (Kind::Float, Device::Cpu));
            Ok(())
        });
        let error = format!("{:#}", shapes.expect_err("the shapes differ"));
        assert!(
            error.starts_with("libtorch failed in the validation: The size of tensor a (2)"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        let returned = guarded("a measurement", || {
            Tensor::zeros([2], (Kind::Float, Device::Cpu))
                .f_view([3])
                .context("a view")
                .map(drop)
        });
        let error = format!("{:#}", returned.expect_err("the size differs"));
        assert!(
            error.starts_with("libtorch failed in a measurement: ") && error.lines().count() == 1,
            "{error}"
        );
        let huge = guarded("a crop", || {
            Ok(Tensor::zeros([1 << 45], (Kind::Float, Device::Cpu)))
        });
        assert!(huge.expect_err("there is not so much").is::<OutOfMemory>());
        // Other errors stay what they are, and gradients are on again.
        let other = guarded("x", || {
            tch::no_grad(|| anyhow::bail!("the file is damaged; out of memory it is not"))
        });
        assert_eq!(
            other.map(|()| 0).expect_err("an error").to_string(),
            "the file is damaged; out of memory it is not"
        );
        let _ = guarded("x", || {
            tch::no_grad(|| anyhow::Ok(Tensor::zeros([1 << 45], (Kind::Float, Device::Cpu))))
        });
        let weight = Tensor::zeros([1], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        assert!((&weight * 2.0).requires_grad());
    }

    #[test]
    fn a_bound_is_told_in_gigabytes() {
        let text = "called `Result::unwrap()` on an `Err` value: Torch(\"out of memory: 1500000000 bytes of 900000000\\n\
                    Exception raised from allocate\")";
        let error = guarded::<()>("the validation", || panic!("{text}"))
            .expect_err("it does not fit")
            .to_string();
        assert_eq!(
            error,
            "out of memory in the validation: its tensors need 1.50 GB of 0.90 GB; use a smaller batch, or shorter crops \
             or windows, or raise --memory"
        );
        let gpu = OutOfMemory::new("a step", "CUDA out of memory. Tried to allocate 2 GiB");
        assert!(!gpu.to_string().contains("--memory"));
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn bugs_stay_panics() {
        let _ = guarded::<()>("the validation", || panic!("a bug"));
    }
}
