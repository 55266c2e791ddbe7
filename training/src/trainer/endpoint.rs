//! Metrics of a run over HTTP, in the OpenMetrics format that Prometheus and Grafana read:
//! `--metrics`.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::anyhow;
use ondes_engine::sync::lock;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Response, Server};

use super::log_line::LogLine;

/// Default port; that of Prometheus exporters for single processes is any above 9100.
const PORT: u16 = 9464;
/// Type of OpenMetrics texts.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Number = Gauge<f64, AtomicU64>;

/// Value of a metric in a line of the log, if it has one.
type Value = fn(&LogLine) -> Option<f64>;

/// Name, which ends with the unit, description and value of each metric.
const METRICS: [(&str, &str, Value); 15] = [
    ("step", "Steps that are done", |line| Some(line.step as f64)),
    ("loss", "Training loss, mean over the last steps", |line| {
        line.loss
    }),
    ("validation_loss", "Last validation loss", |line| {
        line.validation
    }),
    ("learning_rate", "Learning rate", |line| line.rate),
    (
        "gradient_norm",
        "Norm of the gradient before clipping",
        |line| line.gradient,
    ),
    ("step_seconds", "Mean duration of a step", |line| {
        line.seconds
    }),
    ("rows_per_second", "Crops or windows per second", |line| {
        line.rows_per_second
    }),
    (
        "data_wait_ratio",
        "Share of a step spent waiting for data",
        |line| line.data_wait,
    ),
    ("memory_bytes", "Resident memory", |line| {
        Some(line.system?.memory as f64)
    }),
    ("memory_peak_bytes", "Largest resident memory", |line| {
        Some(line.system?.memory_peak as f64)
    }),
    ("cpu_cores", "Cores kept busy", |line| {
        Some(line.system?.cores)
    }),
    ("loader_queue_steps", "Batches ready in the queue", |line| {
        Some(line.loader?.ready as f64)
    }),
    ("loader_workers", "Threads that read data", |line| {
        Some(line.loader?.workers as f64)
    }),
    (
        "loader_read_bytes",
        "Bytes read from disk, compressed",
        |line| Some(line.loader?.reads.bytes as f64),
    ),
    (
        "loader_batch_p99_seconds",
        "Time to make a batch, 99th percentile",
        |line| Some(line.loader?.latency[2]),
    ),
];

/// Server of the metrics; ends when it is dropped.
pub struct Endpoint {
    gauges: [Number; METRICS.len()],
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Starts to serve.
    ///
    /// # Errors
    /// Returns an error if the address is in use or not this machine's.
    pub fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let mut registry = Registry::with_prefix("ondes_train");
        let gauges = METRICS.map(|(name, description, _)| {
            let gauge = Number::default();
            gauge.set(f64::NAN);
            registry.register(name, description, gauge.clone());
            gauge
        });
        let server =
            Server::http(address).map_err(|error| anyhow!("--metrics {address}: {error}"))?;
        let server = Arc::new(server);
        let thread = std::thread::spawn({
            let (server, registry) = (server.clone(), Mutex::new(registry));
            move || serve(&server, &registry)
        });
        Ok(Self {
            gauges,
            server,
            thread: Some(thread),
        })
    }

    /// Returns the address, with the port that the system chose for port 0.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.server_addr().to_ip()
    }

    /// Replaces the values that a line of the log has.
    pub fn publish(&self, line: &LogLine) {
        for (gauge, (_, _, value)) in self.gauges.iter().zip(METRICS) {
            if let Some(value) = value(line) {
                gauge.set(value);
            }
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.unblock();
        self.thread
            .take()
            .into_iter()
            .for_each(|thread| drop(thread.join()));
    }
}

/// Answers requests until the server is unblocked.
fn serve(server: &Server, registry: &Mutex<Registry>) {
    while let Ok(request) = server.recv() {
        let mut text = String::new();
        let done = encode(&mut text, &lock(registry));
        let response = match (request.url(), done) {
            ("/metrics" | "/", Ok(())) => Response::from_string(text),
            ("/metrics" | "/", Err(_)) => Response::from_string("").with_status_code(500),
            _ => Response::from_string("the metrics are at /metrics\n").with_status_code(404),
        };
        let header = Header::from_bytes("Content-Type", CONTENT_TYPE);
        // A client that has gone is no failure of the run.
        drop(match header {
            Ok(header) => request.respond(response.with_header(header)),
            Err(()) => request.respond(response),
        });
    }
}

/// Parses an address such as `127.0.0.1:9464`, an IP address or a port; without an address it is
/// the loopback.
///
/// # Errors
/// Returns what is allowed.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let loopback = std::net::IpAddr::from([127, 0, 0, 1]);
    let port = |text: &str| text.parse::<u16>().ok();
    let address = text
        .parse()
        .ok()
        .or_else(|| port(text).map(|port| SocketAddr::new(loopback, port)));
    let address = address.or_else(|| text.parse().ok().map(|ip| SocketAddr::new(ip, PORT)));
    address
        .ok_or_else(|| "must be an address and a port such as 127.0.0.1:9464, or a port".to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it is served");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        .expect("it is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn values_of_the_log_are_served() {
        let endpoint = Endpoint::new(parse_address("0").expect("a port")).expect("a free port");
        let address = endpoint.address().expect("an address");
        assert!(address.ip().is_loopback());
        endpoint.publish(&LogLine {
            step: 70,
            loss: Some(0.25),
            ..LogLine::default()
        });
        endpoint.publish(&LogLine {
            step: 80,
            validation: Some(0.5),
            ..LogLine::default()
        });
        let text = get(address, "/metrics");
        assert!(
            text.starts_with("HTTP/1.1 200") && text.contains(CONTENT_TYPE),
            "{text}"
        );
        for line in [
            "ondes_train_step 80.0",
            "ondes_train_loss 0.25",
            "ondes_train_validation_loss 0.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(get(address, "/other").starts_with("HTTP/1.1 404"));
        assert!(
            Endpoint::new(address)
                .err()
                .is_some_and(|error| error.to_string().contains("in use"))
        );
    }

    #[test]
    fn addresses_are_of_the_loopback_unless_told_otherwise() {
        let parsed = |text: &str| parse_address(text).map(|address| address.to_string());
        assert_eq!(parsed("9464").as_deref(), Ok("127.0.0.1:9464"));
        assert_eq!(parsed("0.0.0.0").as_deref(), Ok("0.0.0.0:9464"));
        assert_eq!(parsed("[::1]:80").as_deref(), Ok("[::1]:80"));
        assert!(parsed("grafana").is_err());
    }
}
