//! Mutated files: each format that a user opens is read from files that are damaged or made to do
//! harm.
//!
//! A crate lists the [`Format`]s that it reads and passes them to [`run`] in a test. By default
//! that reads a fixed sequence of files; `cargo xtask fuzz` runs the same tests with other seeds
//! and for longer ([`Options`]). A file is a fault if reading it panics, takes longer than
//! [`CPU_LIMIT`], holds more than [`MEMORY_LIMIT`] bytes, or gives an error that is not one line.
//! Each faulty file is saved in `target/fuzz`. Files that were faulty once are kept in
//! `tests/damaged/FORMAT` and are read first, and mutated, in every run.

mod mutation;
mod options;
mod watchdog;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

pub use mutation::Syntax;
pub use options::Options;

use crate::allocation::limited;
use crate::documentation::checkout;
use crate::seeded_rng;
use watchdog::Watchdog;

/// Most processor time that reading one file may take.
pub const CPU_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes that reading one file may hold at once.
pub const MEMORY_LIMIT: usize = 256 << 20;
/// Bytes above which allocations fail, so that a fault does not take the whole machine's memory.
const FAILING_ALLOCATION: usize = 2 << 30;
/// Longest error message, bytes.
const LONGEST_MESSAGE: usize = 1_000;
/// Faults of one kind that are saved.
const SAVED_FAULTS: usize = 3;

/// Reads a file as a user would; the error is the message that the user sees.
type Read<'a> = dyn FnMut(&[u8]) -> Result<(), String> + 'a;

/// Format of files.
pub struct Format<'a> {
    name: &'static str,
    syntax: Syntax,
    seeds: Vec<Vec<u8>>,
    read: Box<Read<'a>>,
}

impl<'a> Format<'a> {
    /// Creates a format from valid files and a function that reads a file as a user would; its
    /// error is the message that the user sees. The files of `tests/damaged/NAME` are added.
    pub fn new(
        name: &'static str,
        syntax: Syntax,
        mut seeds: Vec<Vec<u8>>,
        read: impl FnMut(&[u8]) -> Result<(), String> + 'a,
    ) -> Self {
        seeds.extend(files(&checkout().join("tests/damaged").join(name), ""));
        Self {
            name,
            syntax,
            seeds,
            read: Box::new(read),
        }
    }

    /// Returns file `index` of a sequence: first the seeds as they are, then mutations.
    fn file(&self, seed: u64, index: u64) -> Vec<u8> {
        let whole = usize::try_from(index)
            .ok()
            .and_then(|index| self.seeds.get(index));
        let name = self.name.bytes().fold(seed, |hash, byte| {
            hash.wrapping_mul(0x0100_0193) ^ u64::from(byte)
        });
        let mut random = seeded_rng(name ^ index.wrapping_mul(ondes_engine::random::GOLDEN_GAMMA));
        whole
            .cloned()
            .unwrap_or_else(|| mutation::mutate(self.syntax, &self.seeds, &mut random))
    }

    /// Reads a file; returns the fault, if any.
    fn check(&mut self, file: &[u8]) -> Option<String> {
        let read = || catch_unwind(AssertUnwindSafe(|| (self.read)(file)));
        READING.set(true);
        let (result, bytes) = limited(FAILING_ALLOCATION, read);
        READING.set(false);
        match result {
            Err(_) => Some(format!("panic: {}", PANIC.take())),
            Ok(_) if bytes > MEMORY_LIMIT => {
                Some(format!("it holds over {} MB", MEMORY_LIMIT >> 20))
            }
            Ok(Err(message)) if message.contains('\n') || message.len() > LONGEST_MESSAGE => {
                Some(format!("the message is not one short line: {message:.300}"))
            }
            // The watchdog ends a process that takes too long.
            Ok(_) => None,
        }
    }
}

/// Returns the contents of the files in a folder whose names end with `ending`, sorted by name;
/// none if there is no such folder.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn files(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry of the folder").path())
        .collect();
    paths.retain(|path| path.is_file() && path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("the file can be read"))
        .collect()
}

thread_local! {
    /// True while this thread reads a file.
    static READING: Cell<bool> = const { Cell::new(false) };
    /// Message and location of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps messages of panics of a thread that reads a file, instead of printing them.
fn keep_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if READING.get() {
            PANIC.set(panic.to_string().replace('\n', " "));
        } else {
            before(panic);
        }
    }));
}

/// Reads files of all formats in turn; see [`Options::from_environment`]. The program should use
/// [`CountingAllocator`](crate::allocation::CountingAllocator); otherwise memory is not limited.
///
/// # Panics
/// If a file is faulty, or the program is not a test.
pub fn run(mut formats: Vec<Format>, inputs_per_format: u64) {
    let options = Options::from_environment();
    formats.retain(|format| {
        options
            .format
            .as_deref()
            .is_none_or(|wanted| wanted == format.name)
    });
    if formats.is_empty() {
        return println!("fuzz: none of these formats are read here");
    }
    keep_panics();
    let mut faults = Faults {
        options: &options,
        found: BTreeMap::new(),
    };
    if let Some(path) = &options.file {
        let file = std::fs::read(path).expect("the file can be read");
        for format in &mut formats {
            let fault = format.check(&file);
            println!(
                "{}: {}",
                format.name,
                fault.as_deref().unwrap_or("no fault")
            );
            faults.add(format.name, "", &file, fault);
        }
        return faults.finish();
    }
    let watchdog = Watchdog::start(&options);
    let mut first = 0;
    if let Some((name, index)) = watchdog.interrupted() {
        first = index;
        if let Some(format) = formats.iter().find(|format| format.name == name) {
            let file = format.file(options.seed, index);
            faults.add(
                format.name,
                &index.to_string(),
                &file,
                Some("the process ended".into()),
            );
        }
    }
    let started = Instant::now();
    let inputs = options.inputs.map_or(inputs_per_format, |inputs| {
        inputs.div_ceil(formats.len() as u64)
    });
    let is_over = |index: u64| match options.minutes {
        Some(minutes) => started.elapsed().as_secs_f64() > 60.0 * minutes,
        None => index >= inputs,
    };
    let mut index = first;
    while !is_over(index) {
        for format in &mut formats {
            if watchdog
                .interrupted()
                .is_some_and(|(name, last)| last == index && name == format.name)
            {
                continue;
            }
            let file = format.file(options.seed, index);
            watchdog.enter(format.name, index);
            let fault = format.check(&file);
            watchdog.leave();
            faults.add(format.name, &index.to_string(), &file, fault);
        }
        index += 1;
        if index.is_multiple_of(10_000) {
            println!(
                "fuzz: {} files of each of {} formats, {:.0?}",
                index,
                formats.len(),
                started.elapsed()
            );
        }
    }
    watchdog.finish();
    let names: Vec<&str> = formats.iter().map(|format| format.name).collect();
    println!(
        "fuzz: {} files of each of {}, {:.1?}",
        index - first,
        names.join(", "),
        started.elapsed()
    );
    faults.finish();
}

/// Faults that were found.
struct Faults<'a> {
    options: &'a Options,
    /// Number by format and message.
    found: BTreeMap<String, usize>,
}

impl Faults<'_> {
    fn add(&mut self, format: &str, index: &str, file: &[u8], fault: Option<String>) {
        let Some(fault) = fault else { return };
        let count = self.found.entry(format!("{format}: {fault}")).or_default();
        *count += 1;
        if *count > SAVED_FAULTS || index.is_empty() {
            return;
        }
        let folder = checkout().join("target/fuzz");
        let path = folder.join(format!("{format}-{}-{index}", self.options.seed));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, file))
            .expect("the file can be saved");
        println!(
            "{format}: {fault}; again: cargo xtask fuzz --format {format} --file {}",
            path.display()
        );
    }

    fn finish(self) {
        let list: Vec<String> = self
            .found
            .iter()
            .map(|(fault, count)| format!("{count} × {fault}"))
            .collect();
        assert!(
            list.is_empty(),
            "faulty files, saved in target/fuzz:\n{}",
            list.join("\n")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::CountingAllocator;
    use crate::torchscript::models;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn faults_are_found() {
        keep_panics();
        let mut format = Format::new(
            "planted",
            Syntax::Text,
            vec![b"a".to_vec()],
            |file| match file {
                b"panic" => panic!("on\npurpose"),
                b"memory" => {
                    drop(vec![1_u8; MEMORY_LIMIT + 1]);
                    Ok(())
                }
                b"lines" => Err("two\nlines".into()),
                b"refused" => Err("one line".into()),
                _ => Ok(()),
            },
        );
        let mut fault = |file: &[u8]| format.check(file).unwrap_or_default();
        assert!(fault(b"panic").contains("on purpose"));
        assert!(
            fault(b"memory").contains("256 MB") && fault(b"lines").contains("not one short line")
        );
        assert_eq!([fault(b"refused"), fault(b"good")], ["", ""]);
    }

    #[test]
    fn files_are_repeatable_and_differ() {
        let archive = models::counter().bytes();
        let document = br#"{ "list": [1, 2.5, "x"], "inner": "{\"a\": 1}" }"#.to_vec();
        for (syntax, seed) in [
            (Syntax::Zip, archive),
            (Syntax::Json, document),
            (Syntax::Binary, vec![7; 40]),
        ] {
            let format = || Format::new("planted", syntax, vec![seed.clone()], |_| Ok(()));
            let files = |run: u64| {
                (0..200)
                    .map(|index| format().file(run, index))
                    .collect::<Vec<_>>()
            };
            let first = files(1);
            assert_eq!((&first[0], &first), (&seed, &files(1)));
            assert!(first != files(2));
            let distinct: std::collections::BTreeSet<_> = first.iter().collect();
            assert!(distinct.len() > 100, "{syntax:?}: {} files", distinct.len());
            // What is known of the structure is kept in many of them.
            let is_whole = |file: &&Vec<u8>| match syntax {
                Syntax::Zip => zip::ZipArchive::new(std::io::Cursor::new(file)).is_ok(),
                Syntax::Json => serde_json::from_slice::<serde_json::Value>(file).is_ok(),
                _ => true,
            };
            assert!(first.iter().filter(is_whole).count() > 40, "{syntax:?}");
        }
    }
}
