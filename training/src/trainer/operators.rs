//! Time of libtorch's operators.

use std::fmt::Write;

use serde::Serialize;

/// Operators in the table.
const SHOWN: usize = 15;

/// Calls and times of an operator in the traced steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operator {
    /// Name, such as `aten::conv1d`, or that of a GPU's kernel.
    pub name: String,
    /// Runs on the GPU.
    pub on_device: bool,
    /// Number of calls.
    pub calls: u64,
    /// Time of all calls, nanoseconds.
    pub total_ns: u64,
    /// The same without the operators that it calls, nanoseconds.
    pub self_ns: u64,
}

/// Returns a table of the operators that take longest by themselves in so many steps; empty without
/// any.
#[must_use]
pub fn table(operators: &[Operator], steps: u64) -> String {
    let mut sorted: Vec<&Operator> = operators.iter().collect();
    sorted.sort_by_key(|operator| std::cmp::Reverse(operator.self_ns));
    if sorted.is_empty() {
        return String::new();
    }
    let whole: u64 = sorted.iter().map(|operator| operator.self_ns).sum();
    let per_step = |time: u64| 1e-6 * time as f64 / steps.max(1) as f64;
    let mut text = format!(
        "{:44} {:>9} {:>9} {:>9} {:>7}\n",
        "operators, ms a step", "self", "total", "calls", "share"
    );
    for Operator {
        name,
        on_device,
        calls,
        total_ns,
        self_ns,
    } in sorted.iter().take(SHOWN)
    {
        let name: String = name.chars().take(38).collect();
        let name = if *on_device {
            format!("{name} (GPU)")
        } else {
            name
        };
        let share = 100.0 * *self_ns as f64 / whole.max(1) as f64;
        let calls = *calls as f64 / steps.max(1) as f64;
        let _ = writeln!(
            text,
            "{name:44} {:9.3} {:9.3} {calls:9.1} {share:5.1} %",
            per_step(*self_ns),
            per_step(*total_ns)
        );
    }
    if sorted.len() > SHOWN {
        let rest: u64 = sorted[SHOWN..]
            .iter()
            .map(|operator| operator.self_ns)
            .sum();
        let share = 100.0 * rest as f64 / whole.max(1) as f64;
        let name = format!("{} others", sorted.len() - SHOWN);
        let _ = writeln!(
            text,
            "{name:44} {:9.3} {:>9} {:>9} {share:5.1} %",
            per_step(rest),
            "",
            ""
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_take_longest_come_first() {
        let operator = |name: &str, self_ns: u64| Operator {
            name: name.into(),
            on_device: name == "kernel",
            calls: 10,
            total_ns: 2 * self_ns,
            self_ns,
        };
        let text = table(
            &[
                operator("aten::add", 1_000_000),
                operator("kernel", 3_000_000),
            ],
            5,
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("kernel (GPU) ")
                && lines[1].ends_with("0.600     1.200       2.0  75.0 %"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("aten::add ") && lines.len() == 3,
            "{text}"
        );
        let many: Vec<Operator> = (0..20)
            .map(|index| operator(&index.to_string(), 1_000))
            .collect();
        assert!(
            table(&many, 1)
                .lines()
                .last()
                .is_some_and(|line| line.starts_with("5 others"))
        );
        assert_eq!(table(&[], 1), "");
    }
}
