//! Downloads a wheel and verifies its hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::manifest::Wheel;
use crate::{Error, InstallProgress, InstallStep};

/// Limit for connecting and for the response header. The body has no limit.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Read buffer size, bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Returns an HTTP client with the system's certificates and the environment's proxy.
pub(crate) fn agent() -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(RESPONSE_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .http_status_as_error(false)
        .build()
        .into()
}

/// Downloads a wheel to `path`. Resumes a partial file with a range request.
///
/// # Errors
/// Returns [`Error::Network`] if the request fails or the length differs from the published one,
/// [`Error::File`] if the file cannot be written.
pub(crate) fn download(
    agent: &Agent,
    wheel: &Wheel,
    path: &Path,
    progress: &mut dyn FnMut(InstallProgress<'_>),
) -> Result<(), Error> {
    let network = |reason: String| Error::Network {
        url: wheel.url.clone(),
        reason,
    };
    let existing = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if existing == wheel.bytes {
        return Ok(());
    }
    let existing = if existing < wheel.bytes { existing } else { 0 };
    let mut request = agent.get(&wheel.url);
    if existing > 0 {
        request = request.header("Range", format!("bytes={existing}-"));
    }
    let response = request
        .call()
        .map_err(|error| network(one_line(&error.to_string())))?;
    let resumed = match response.status().as_u16() {
        200 => false,
        206 => true,
        status => {
            return Err(network(format!(
                "HTTP status {status}; expected 200 or 206"
            )));
        }
    };
    let mut done = if resumed { existing } else { 0 };
    let file = OpenOptions::new()
        .create(true)
        .append(resumed)
        .write(true)
        .truncate(!resumed)
        .open(path);
    let mut file = file.map_err(Error::at(path))?;
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = match body.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(network(one_line(&error.to_string()))),
        };
        if count == 0 {
            break;
        }
        file.write_all(&buffer[..count]).map_err(Error::at(path))?;
        done += count as u64;
        if done > wheel.bytes {
            return Err(network(format!(
                "longer than the published {} bytes",
                wheel.bytes
            )));
        }
        progress(InstallProgress {
            step: InstallStep::Downloading,
            wheel: wheel.file(),
            done_bytes: done,
            total_bytes: wheel.bytes,
        });
    }
    if done < wheel.bytes {
        return Err(network(format!(
            "connection closed after {done} of {} bytes; run this again to resume",
            wheel.bytes
        )));
    }
    Ok(())
}

/// Compares a file's length and SHA-256 with the published ones.
///
/// # Errors
/// Returns [`Error::Length`] or [`Error::Hash`] if they differ, [`Error::File`] if the file cannot
/// be read.
pub(crate) fn verify(
    wheel: &Wheel,
    path: &Path,
    progress: &mut dyn FnMut(InstallProgress<'_>),
) -> Result<(), Error> {
    let at = Error::at(path);
    let mut file = File::open(path).map_err(&at)?;
    let found = file.metadata().map_err(&at)?.len();
    if found != wheel.bytes {
        return Err(Error::Length {
            path: path.into(),
            found,
            expected: wheel.bytes,
        });
    }
    let (mut hash, mut buffer, mut done) = (Sha256::new(), vec![0; BUFFER_BYTES], 0);
    loop {
        let count = file.read(&mut buffer).map_err(&at)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        done += count as u64;
        progress(InstallProgress {
            step: InstallStep::Verifying,
            wheel: wheel.file(),
            done_bytes: done,
            total_bytes: wheel.bytes,
        });
    }
    let found: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found != wheel.sha256 {
        return Err(Error::Hash {
            path: path.into(),
            found,
            expected: wheel.sha256.clone(),
        });
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
