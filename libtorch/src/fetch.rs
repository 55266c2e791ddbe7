//! Fetching a wheel, and knowing it by its hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::recipe::Wheel;
use crate::{Error, Progress, Work};

/// Who is asked has to answer within this; how long the bytes then take depends on the line.
const ANSWER: Duration = Duration::from_secs(60);
const PIECE: usize = 1 << 16;

/// Fetches wheels.
pub(crate) fn agent() -> Agent {
    // As the system has it: certificates that an administrator has added count, too, and so does a proxy of the environment.
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(ANSWER))
        .timeout_recv_response(Some(ANSWER))
        .http_status_as_error(false)
        .build()
        .into()
}

/// Fetches a wheel into a file. Where the file has its beginning already, only the rest is asked for.
///
/// # Errors
/// [`Error::Network`] where nobody answers, or with something else, [`Error::File`] where it cannot be written.
pub(crate) fn fetch(
    agent: &Agent,
    wheel: &Wheel,
    path: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Error> {
    let network = |reason: String| Error::Network { url: wheel.url.clone(), reason };
    let have = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if have == wheel.bytes {
        return Ok(());
    }
    let have = if have < wheel.bytes { have } else { 0 };
    let mut request = agent.get(&wheel.url);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let response = request.call().map_err(|error| network(one_line(&error.to_string())))?;
    let goes_on = match response.status().as_u16() {
        200 => false,
        206 => true,
        status => return Err(network(format!("the answer is {status}"))),
    };
    let mut done = if goes_on { have } else { 0 };
    let file = OpenOptions::new().create(true).append(goes_on).write(true).truncate(!goes_on).open(path);
    let mut file = file.map_err(Error::at(path))?;
    let mut body = response.into_body().into_reader();
    let mut piece = vec![0; PIECE];
    loop {
        let count = match body.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(network(one_line(&error.to_string()))),
        };
        if count == 0 {
            break;
        }
        file.write_all(&piece[..count]).map_err(Error::at(path))?;
        done += count as u64;
        if done > wheel.bytes {
            return Err(network(format!("it is longer than the {} bytes that are published", wheel.bytes)));
        }
        progress(Progress { work: Work::Fetching, wheel: wheel.file(), done, all: wheel.bytes });
    }
    if done < wheel.bytes {
        return Err(network(format!("it ended after {done} of {} bytes; run this again to go on", wheel.bytes)));
    }
    Ok(())
}

/// Sees whether a file is the wheel that was published.
///
/// # Errors
/// [`Error::Length`] and [`Error::Hash`] where it is not, [`Error::File`] where it cannot be read.
pub(crate) fn check(wheel: &Wheel, path: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), Error> {
    let at = Error::at(path);
    let mut file = File::open(path).map_err(&at)?;
    let found = file.metadata().map_err(&at)?.len();
    if found != wheel.bytes {
        return Err(Error::Length { path: path.into(), found, expected: wheel.bytes });
    }
    let (mut hash, mut piece, mut done) = (Sha256::new(), vec![0; PIECE], 0);
    loop {
        let count = file.read(&mut piece).map_err(&at)?;
        if count == 0 {
            break;
        }
        hash.update(&piece[..count]);
        done += count as u64;
        progress(Progress { work: Work::Checking, wheel: wheel.file(), done, all: wheel.bytes });
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != wheel.sha256 {
        return Err(Error::Hash { path: path.into(), found, expected: wheel.sha256.clone() });
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
