//! Trace of the last seconds of work, for a trace viewer.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

/// Interval of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Name of the work.
    pub name: &'static str,
    /// Row in the viewer. Spans of one row are disjoint or nested.
    pub row: u32,
    /// Start in nanoseconds since an epoch that all spans share.
    pub start_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
}

impl Span {
    /// Creates a span from its start and duration.
    #[must_use]
    pub fn since(name: &'static str, row: u32, start: Instant, duration: Duration) -> Self {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let epoch = *EPOCH.get_or_init(|| start);
        let nanoseconds =
            |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = nanoseconds(start.saturating_duration_since(epoch));
        Self {
            name,
            row,
            start_ns,
            duration_ns: nanoseconds(duration),
        }
    }
}

/// The last spans; any thread may add or read, without a lock.
#[derive(Debug)]
pub struct Trace {
    spans: ArrayQueue<Span>,
}

impl Trace {
    /// Creates a trace of the last `capacity` spans, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            spans: ArrayQueue::new(capacity.max(1)),
        }
    }

    /// Adds a span, replacing the oldest one of a full trace. Lock-free; does not allocate.
    pub fn push(&self, span: Span) {
        self.spans.force_push(span);
    }

    /// Removes the spans and writes them as JSON in Chrome's trace event format, for
    /// `ui.perfetto.dev` and `chrome://tracing`. Returns their number. Writes in small pieces, so
    /// `out` should be buffered.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<usize> {
        write!(out, "{{\"traceEvents\":[")?;
        let mut written = 0;
        // Only the spans present now: others may arrive as fast as these are written.
        for span in (0..self.spans.len()).map_while(|_| self.spans.pop()) {
            let Span {
                name,
                row,
                start_ns,
                duration_ns,
            } = span;
            let separator = if written == 0 { "" } else { "," };
            write!(
                out,
                "{separator}\n{{\"name\":\"{}\",\"cat\":\"ondes\",\"ph\":\"X\",\"pid\":1,\"tid\":{row},\"ts\":{},\"dur\":{}}}",
                Escaped(name),
                Microseconds(start_ns),
                Microseconds(duration_ns),
            )?;
            written += 1;
        }
        writeln!(out, "\n]}}")?;
        Ok(written)
    }
}

impl Default for Trace {
    /// Creates a trace of 65,536 spans: tens of seconds of a worker with a few spans per block.
    fn default() -> Self {
        Self::new(1 << 16)
    }
}

/// Nanoseconds, displayed as exact microseconds.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// Text, displayed as the inside of a JSON string.
struct Escaped(&'static str);

impl fmt::Display for Escaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            '\0'..' ' => write!(f, "\\u{:04x}", u32::from(c)),
            _ => write!(f, "{c}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(trace: &Trace) -> (usize, Value) {
        let mut out = Vec::new();
        let count = trace.write_chrome(&mut out).unwrap();
        (count, serde_json::from_slice(&out).unwrap())
    }

    #[test]
    fn the_output_is_chrome_json_and_drains_the_trace() {
        let trace = Trace::default();
        assert_eq!(written(&trace), (0, json!({ "traceEvents": [] })));
        trace.push(Span {
            name: "synth",
            row: 3,
            start_ns: 1_234_567,
            duration_ns: 89_012,
        });
        trace.push(Span {
            name: "a \"b\"\\\n é",
            row: 0,
            start_ns: 5,
            duration_ns: 0,
        });
        let expected = json!({ "traceEvents": [
            { "name": "synth", "cat": "ondes", "ph": "X", "pid": 1, "tid": 3, "ts": 1_234.567, "dur": 89.012 },
            { "name": "a \"b\"\\\n é", "cat": "ondes", "ph": "X", "pid": 1, "tid": 0, "ts": 0.005, "dur": 0.0 },
        ] });
        assert_eq!(written(&trace), (2, expected));
        assert_eq!(written(&trace).0, 0);
    }

    #[test]
    fn a_full_trace_keeps_the_last_spans() {
        let trace = Trace::new(4);
        for start_ns in 0..10 {
            trace.push(Span {
                name: "step",
                row: 0,
                start_ns: start_ns * 1_000,
                duration_ns: 1,
            });
        }
        let (count, json) = written(&trace);
        let starts: Vec<_> = json["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["ts"].as_f64())
            .collect();
        assert_eq!(
            (count, starts),
            (4, vec![Some(6.0), Some(7.0), Some(8.0), Some(9.0)])
        );
    }
}
