//! Ends a process that hangs, and keeps its position in a file, so that the next one knows what the
//! last one read.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::{CPU_LIMIT, Options};

/// Longest wait for one file, whatever else the machine does.
const WALL_LIMIT: Duration = Duration::from_secs(300);

/// Watches the thread that created it.
pub struct Watchdog {
    current: Arc<Mutex<Option<Entry>>>,
    progress: Option<(PathBuf, Mutex<File>)>,
    interrupted: Option<(String, u64)>,
    seed: u64,
}

/// File that is being read.
struct Entry {
    description: String,
    started: Instant,
    processor_time: Duration,
}

impl Watchdog {
    pub fn start(options: &Options) -> Self {
        let interrupted = options.progress.as_ref().and_then(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            let (name, index) = text.lines().next()?.split_once(' ')?;
            Some((name.to_owned(), index.trim().parse().ok()?))
        });
        let progress = options.progress.as_ref().map(|path| {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path);
            (
                path.clone(),
                Mutex::new(file.expect("the position can be kept")),
            )
        });
        let current = Arc::new(Mutex::new(None));
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let watched = Arc::downgrade(&current);
        std::thread::spawn(move || watch(&watched, &thread.display().to_string()));
        Self {
            current,
            progress,
            interrupted,
            seed: options.seed,
        }
    }

    /// Returns the format and index that an earlier process did not survive.
    pub fn interrupted(&self) -> Option<(&str, u64)> {
        self.interrupted
            .as_ref()
            .map(|(name, index)| (name.as_str(), *index))
    }

    pub fn enter(&self, format: &str, index: u64) {
        if let Some((_, file)) = &self.progress {
            let mut file = file.lock().expect("not poisoned");
            let line = format!("{format} {index:<20}\n");
            file.seek(SeekFrom::Start(0))
                .and_then(|_| file.write_all(line.as_bytes()))
                .expect("the position is kept");
        }
        let description = format!("{format}, file {index} of seed {}", self.seed);
        let entry = Entry {
            description,
            started: Instant::now(),
            processor_time: processor_time(),
        };
        *self.current.lock().expect("not poisoned") = Some(entry);
    }

    pub fn leave(&self) {
        *self.current.lock().expect("not poisoned") = None;
    }

    /// Forgets the position.
    pub fn finish(&self) {
        if let Some((path, _)) = &self.progress {
            std::fs::remove_file(path).expect("the position can be forgotten");
        }
    }
}

/// Ends the process if a file takes too long.
fn watch(current: &Weak<Mutex<Option<Entry>>>, thread: &str) {
    while let Some(current) = current.upgrade() {
        if let Some(Entry {
            description,
            started,
            processor_time,
        }) = &*current.lock().expect("not poisoned")
        {
            let spent = time_of(thread)
                .map_or(started.elapsed(), |now| now.saturating_sub(*processor_time));
            if spent > CPU_LIMIT || started.elapsed() > WALL_LIMIT {
                eprintln!("fuzz: {description}: no end after {spent:.0?}");
                std::process::abort();
            }
        }
        drop(current);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the processor time of this thread; of no use where the system does not tell.
pub fn processor_time() -> Duration {
    time_of("thread-self").unwrap_or_default()
}

/// Returns the processor time of a thread, by its path below `/proc`.
fn time_of(thread: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split(' ')
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}
