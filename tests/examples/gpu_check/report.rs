//! Report in Markdown.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use ondes_engine::executor::Device;
use ondes_engine::torch::LIBTORCH_VERSION;

/// Sections with tables, and the number of checks and failures.
pub struct Report {
    text: String,
    checks: usize,
    failures: usize,
}

impl Report {
    /// Creates a report about a device.
    pub fn new(device: Device) -> Self {
        let mut text = format!("# libtorch on {device}\n\n");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "`cargo xtask gpu-check --device {device}`, Ondes {}, libtorch {LIBTORCH_VERSION}, where nothing else is said in f32 without TF32. {}, {} threads{}.",
            env!("CARGO_PKG_VERSION"),
            processor(),
            std::thread::available_parallelism().map_or(1, usize::from),
            gpu(device)
                .map(|gpu| format!("; {gpu}"))
                .unwrap_or_default()
        );
        Self {
            text,
            checks: 0,
            failures: 0,
        }
    }

    /// Starts a section with an introduction and column headings.
    pub fn section(&mut self, title: &str, about: &str, columns: &[&str]) {
        println!("{title}");
        let rule = vec!["---"; columns.len()].join("|");
        let _ = write!(
            self.text,
            "\n## {title}\n\n{about}\n\n| {} |\n|{rule}|\n",
            columns.join(" | ")
        );
    }

    /// Adds a row of figures.
    pub fn row(&mut self, cells: &[String]) {
        println!("  {}", cells.join("  "));
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    /// Adds a row for a check; the last column says whether it passed.
    pub fn check(&mut self, cells: &[String], passed: bool) {
        self.checks += 1;
        self.failures += usize::from(!passed);
        let verdict = if passed { "yes" } else { "**no**" };
        self.row(&[cells, &[verdict.to_owned()]].concat());
    }

    /// Returns the number of checks.
    pub fn checks(&self) -> usize {
        self.checks
    }

    /// Returns the number of failed checks.
    pub fn failures(&self) -> usize {
        self.failures
    }

    /// Writes the report; creates its folder.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, &self.text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Returns the name of the processor.
fn processor() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(
        || "A processor without a name".into(),
        |(_, name)| name.trim().into(),
    )
}

/// Returns name, driver and memory of a GPU, if `nvidia-smi` reports them.
fn gpu(device: Device) -> Option<String> {
    let Device::Cuda(number) = device else {
        return None;
    };
    let mut tool = Command::new("nvidia-smi");
    tool.args([
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ])
    .arg(format!("--id={number}"));
    let output = tool
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .replace(',', ", "),
    )
}
