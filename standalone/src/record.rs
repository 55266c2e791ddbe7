//! Records what is played: the master, single tracks, or all of them in sync.
//!
//! An audio callback pushes its sound into [`Tap`]s. One thread ([`writer`]) reads them, keeps the
//! last seconds of every tap in memory ([`history`]) and writes the files of a recording
//! ([`take`]). So a recording can start in the past, with a pre-roll, or save the past without
//! having been started.
//!
//! - All taps use the same sample clock; the files of one recording start and end at the same
//!   sample. Missing sound (the disk was too slow for longer than the rings last, or a tap was not
//!   pushed) is silence of the same length; dropped frames are counted in
//!   [`RecordingStatus::dropped`].
//! - Every file ([`RecordingFormat`]) is complete at every moment: a killed process loses less than
//!   a second. A full disk or a removed folder ends the recording, with one line in
//!   [`RecordingStatus::error`]; playing continues and another recording can start.
//! - No file is overwritten; [`take_name`] and [`take_names`] find unused names.
//!
//! ```no_run
//! use ondes::record::{Recorder, RecorderSetup, RecordingFormat, take_name};
//!
//! let setup = RecorderSetup { sample_rate: 48_000, channels: vec![2], ..RecorderSetup::default() };
//! let (mut recorder, mut taps) = Recorder::new(&setup)?;
//! // In the audio callback: the number of the first frame, and the channels.
//! let mut master = taps.remove(0);
//! master.push(0, &[&[0.0; 64], &[0.0; 64]]);
//! // On any other thread.
//! let path = take_name("Music".as_ref(), "Ondes", RecordingFormat::Flac);
//! recorder.start([(0, path)], RecordingFormat::Flac, true)?;
//! recorder.stop();
//! assert_eq!(recorder.wait().error, None);
//! # Ok::<(), ondes::record::RecordError>(())
//! ```

mod disk_sync;
mod error;
mod file_names;
mod format;
mod history;
mod recorder;
mod take;
mod tap_reader;
mod writer;

pub use crate::io::Tap;
pub use error::RecordError;
pub use file_names::{take_name, take_names};
pub use format::RecordingFormat;
pub use recorder::{Recorder, RecorderSetup, RecordingStatus};
