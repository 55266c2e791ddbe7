//! Start-up times in a host: loading the shared object, creating and activating an instance, first
//! frame of the window.
//!
//! Each sample runs in a new process, so that nothing is loaded before. The window needs a display.

#[cfg(target_os = "linux")]
#[path = "../tests/host/mod.rs"]
mod host;

#[cfg(target_os = "linux")]
mod linux {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};
    use criterion::{Criterion, criterion_group};
    use x11rb::connection::Connection;
    use x11rb::protocol::xproto::{ConnectionExt, CreateWindowAux, ImageFormat, WindowClass};

    use crate::host::{Host, INSTRUMENT, entry};

    /// Environment variable that tells the child process what to measure.
    const TASK: &str = "ONDES_BENCH_STARTUP";
    const SIZE: [u16; 2] = [980, 600];
    /// Number of colours from which on the window counts as drawn.
    const MIN_COLOURS: usize = 50;

    /// Runs the measurement if this is a child process; returns false in the parent.
    pub fn run_child() -> bool {
        let Ok(task) = std::env::var(TASK) else {
            return false;
        };
        let start = Instant::now();
        entry();
        let loaded = Instant::now();
        let mut host = Host::new(INSTRUMENT);
        let elapsed = match task.as_str() {
            "load" => loaded - start,
            "create" => loaded.elapsed(),
            "activate" => {
                let start = Instant::now();
                host.activate(48_000.0, 512);
                start.elapsed()
            }
            _ => first_frame(&mut host),
        };
        println!("{}", elapsed.as_nanos());
        true
    }

    fn first_frame(host: &mut Host) -> Duration {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let screen = &connection.setup().roots[screen];
        let id = connection.generate_id().unwrap();
        let [width, height] = SIZE;
        let (depth, root, visual) = (screen.root_depth, screen.root, screen.root_visual);
        let class = WindowClass::INPUT_OUTPUT;
        let options = CreateWindowAux::new().background_pixel(screen.black_pixel);
        connection
            .create_window(
                depth, id, root, 0, 0, width, height, 0, class, visual, &options,
            )
            .unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        let start = Instant::now();
        let plugin = host.instance.plugin_handle();
        let gui: PluginGui = plugin.get_extension().unwrap();
        gui.create(
            &plugin,
            GuiConfiguration {
                api_type: GuiApiType::X11,
                is_floating: false,
            },
        )
        .unwrap();
        // SAFETY: the host's window outlives the plugin's.
        unsafe { gui.set_parent(&plugin, Window::from_x11_handle(id.into())) }.unwrap();
        let _ = gui.show(&plugin);
        let mut colours = std::collections::HashSet::new();
        while colours.len() <= MIN_COLOURS {
            let picture = connection
                .get_image(ImageFormat::Z_PIXMAP, id, 0, 0, width, height, !0)
                .unwrap();
            let pixels = picture.reply().unwrap().data;
            colours = pixels
                .chunks_exact(4)
                .map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect();
        }
        let elapsed = start.elapsed();
        gui.destroy(&host.instance.plugin_handle());
        elapsed
    }

    fn startup(criterion: &mut Criterion) {
        let mut group = criterion.benchmark_group("startup");
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(5));
        let tasks = ["load", "create", "activate", "window"];
        let has_display = std::env::var_os("DISPLAY").is_some();
        if !has_display {
            eprintln!("no display; skipping the window");
        }
        for task in tasks
            .into_iter()
            .filter(|task| has_display || *task != "window")
        {
            group.bench_function(task, |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| run_in_child(task)).sum())
            });
        }
    }

    /// Runs one measurement in a new process.
    fn run_in_child(task: &str) -> Duration {
        let output = Command::new(std::env::current_exe().unwrap())
            .env(TASK, task)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let nanos = text.lines().last().and_then(|line| line.parse().ok());
        Duration::from_nanos(
            nanos.unwrap_or_else(|| {
                panic!("{task}: {text}{}", String::from_utf8_lossy(&output.stderr))
            }),
        )
    }

    criterion_group!(benches, startup);
}

#[cfg(target_os = "linux")]
fn main() {
    if !linux::run_child() {
        linux::benches();
        criterion::Criterion::default()
            .configure_from_args()
            .final_summary();
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
