//! Small wheels and an HTTP server for them.

use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ondes_libtorch::{Manifest, Wheel};
use sha2::{Digest, Sha256};
use zip::write::{FileOptions, ZipWriter};

/// Returns a wheel whose members hold their own names, repeated.
pub fn pack(members: &[&str]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for member in members {
        zip.start_file(*member, FileOptions::default()).unwrap();
        zip.write_all(content(member).as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns a member's content.
pub fn content(member: &str) -> String {
    member.repeat(100)
}

/// Returns a manifest of two wheels on a server, and the wheels' bytes.
pub fn manifest(server: &str) -> (Manifest, Vec<Vec<u8>>) {
    let packed = [
        pack(&[
            "torch/lib/one.so",
            "torch/lib/unwanted.so",
            "torch/include/a/b.h",
            "torch/include/c.h",
        ]),
        pack(&["nvidia/lib/two.so.13"]),
    ];
    let members = [
        vec![
            ("torch/lib/one.so", "lib/one.so"),
            ("torch/include/", "include/"),
        ],
        vec![("nvidia/lib/two.so.13", "lib/two.so.13")],
    ];
    let wheels = ["torch.whl", "nvidia.whl"]
        .iter()
        .zip(&packed)
        .zip(members)
        .map(|((file, bytes), members)| Wheel {
            url: format!("{server}/{file}"),
            sha256: Sha256::digest(bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            bytes: bytes.len() as u64,
            members: members
                .into_iter()
                .map(|(member, place)| (member.into(), place.into()))
                .collect(),
        });
    let length = content("torch/lib/one.so").len() as u64;
    let files = vec![
        ("lib/one.so".into(), Some(length)),
        ("lib/two.so.13".into(), None),
        ("include/c.h".into(), None),
    ];
    (
        Manifest {
            version: "1.2.3".into(),
            wheels: wheels.collect(),
            files,
        },
        packed.into(),
    )
}

/// File name and content.
pub type NamedBytes = (String, Vec<u8>);

/// HTTP server that records its requests.
pub struct Server {
    pub address: String,
    /// Request lines with range starts.
    pub requests: Arc<Mutex<Vec<String>>>,
    /// Closes the connection after this many body bytes.
    pub body_limit: Arc<AtomicUsize>,
    pub files: Arc<Mutex<Vec<NamedBytes>>>,
}

impl Server {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Self {
            address,
            requests: Arc::default(),
            body_limit: Arc::new(usize::MAX.into()),
            files: Arc::default(),
        };
        let (requests, body_limit, files) = (
            server.requests.clone(),
            server.body_limit.clone(),
            server.files.clone(),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The client may disconnect.
                let _ = answer(
                    stream.unwrap(),
                    &requests,
                    &body_limit,
                    &files.lock().unwrap(),
                );
            }
        });
        server
    }
}

fn answer(
    mut stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    body_limit: &AtomicUsize,
    files: &[NamedBytes],
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut request = lines.next().unwrap()?;
    let path = request
        .split(' ')
        .nth(1)
        .unwrap()
        .trim_start_matches('/')
        .to_owned();
    let mut from = 0;
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap();
            request = format!("{request} from {from}");
        }
    }
    requests.lock().unwrap().push(request);
    let Some((_, bytes)) = files.iter().find(|(name, _)| *name == path) else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    };
    let (status, body) = if from > 0 {
        ("206 Partial Contents", &bytes[from..])
    } else {
        ("200 OK", &bytes[..])
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body[..body.len().min(body_limit.load(Ordering::Relaxed))])
}
