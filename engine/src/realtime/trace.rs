//! What was done when, over the last seconds: for a look at it in a trace viewer.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

/// Something that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it was.
    pub name: &'static str,
    /// Which row it is shown in. Spans of one row do not overlap, or lie one within the other.
    pub lane: u32,
    /// When it began, in nanoseconds since any time that is the same for all spans.
    pub start_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
}

impl Span {
    /// Something that began at `begun` and took so long.
    #[must_use]
    pub fn since(name: &'static str, lane: u32, begun: Instant, taken: Duration) -> Self {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let epoch = *EPOCH.get_or_init(|| begun);
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = nanoseconds(begun.saturating_duration_since(epoch));
        Self { name, lane, start_ns, duration_ns: nanoseconds(taken) }
    }
}

/// The last spans. Any thread may add to them or read them, without a lock.
#[derive(Debug)]
pub struct Trace {
    spans: ArrayQueue<Span>,
}

impl Trace {
    /// Keeps the last `capacity` spans, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { spans: ArrayQueue::new(capacity.max(1)) }
    }

    /// Adds a span, in place of the oldest where there is no room. Lock-free; does not allocate.
    pub fn push(&self, span: Span) {
        self.spans.force_push(span);
    }

    /// Takes the spans out and writes them as JSON in Chrome's trace event format, which `ui.perfetto.dev` and
    /// `chrome://tracing` show. Returns how many there were. Writes in small pieces: `out` should be buffered.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<usize> {
        write!(out, "{{\"traceEvents\":[")?;
        let mut written = 0;
        // Those of now: where spans come as fast as they are written, there would be no end to them.
        for span in (0..self.spans.len()).map_while(|_| self.spans.pop()) {
            let Span { name, lane, start_ns, duration_ns } = span;
            let separator = if written == 0 { "" } else { "," };
            write!(
                out,
                "{separator}\n{{\"name\":\"{}\",\"cat\":\"ondes\",\"ph\":\"X\",\"pid\":1,\"tid\":{lane},\"ts\":{},\"dur\":{}}}",
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
    /// Room for 65,536 spans: tens of seconds of a worker with a few spans per block.
    fn default() -> Self {
        Self::new(1 << 16)
    }
}

/// Nanoseconds, shown as microseconds without loss.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// The inside of a JSON string.
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
    fn is_chrome_json_and_drained() {
        let trace = Trace::default();
        assert_eq!(written(&trace), (0, json!({ "traceEvents": [] })));
        trace.push(Span { name: "synth", lane: 3, start_ns: 1_234_567, duration_ns: 89_012 });
        trace.push(Span { name: "a \"b\"\\\n é", lane: 0, start_ns: 5, duration_ns: 0 });
        let expected = json!({ "traceEvents": [
            { "name": "synth", "cat": "ondes", "ph": "X", "pid": 1, "tid": 3, "ts": 1_234.567, "dur": 89.012 },
            { "name": "a \"b\"\\\n é", "cat": "ondes", "ph": "X", "pid": 1, "tid": 0, "ts": 0.005, "dur": 0.0 },
        ] });
        assert_eq!(written(&trace), (2, expected));
        assert_eq!(written(&trace).0, 0);
    }

    #[test]
    fn the_last_spans_stay() {
        let trace = Trace::new(4);
        for start_ns in 0..10 {
            trace.push(Span { name: "step", lane: 0, start_ns: start_ns * 1_000, duration_ns: 1 });
        }
        let (count, json) = written(&trace);
        let starts: Vec<_> = json["traceEvents"].as_array().unwrap().iter().map(|event| event["ts"].as_f64()).collect();
        assert_eq!((count, starts), (4, vec![Some(6.0), Some(7.0), Some(8.0), Some(9.0)]));
    }
}
