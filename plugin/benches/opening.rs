//! How long a host waits: for the first instance, until it can play, and for the first picture of its window.
//!
//! Each figure is that of a process of its own, in which nothing has been loaded before. The window needs a display.

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

    /// Says to a process what it is to measure.
    const TASK: &str = "ONDES_BENCH_OPENING";
    const SIZE: [u16; 2] = [900, 560];
    /// A window that shows as many colours has been drawn.
    const DRAWN: usize = 50;

    /// Measures what a process of ours was started for, if this is one.
    pub fn measured() -> bool {
        let Ok(task) = std::env::var(TASK) else { return false };
        let loaded = Instant::now();
        entry();
        let created = Instant::now();
        let mut host = Host::new(INSTRUMENT);
        let took = match task.as_str() {
            "load" => created - loaded,
            "create" => created.elapsed(),
            "activate" => {
                let begun = Instant::now();
                host.activate(48_000.0, 512);
                begun.elapsed()
            }
            _ => first_picture(&mut host),
        };
        println!("{}", took.as_nanos());
        true
    }

    fn first_picture(host: &mut Host) -> Duration {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let screen = &connection.setup().roots[screen];
        let id = connection.generate_id().unwrap();
        let [width, height] = SIZE;
        let (depth, root, visual) = (screen.root_depth, screen.root, screen.root_visual);
        let class = WindowClass::INPUT_OUTPUT;
        let options = CreateWindowAux::new().background_pixel(screen.black_pixel);
        connection.create_window(depth, id, root, 0, 0, width, height, 0, class, visual, &options).unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        let begun = Instant::now();
        let plugin = host.instance.plugin_handle();
        let gui: PluginGui = plugin.get_extension().unwrap();
        gui.create(&plugin, GuiConfiguration { api_type: GuiApiType::X11, is_floating: false }).unwrap();
        // SAFETY: the host's window outlives the plugin's in it.
        unsafe { gui.set_parent(&plugin, Window::from_x11_handle(id.into())) }.unwrap();
        let _ = gui.show(&plugin);
        let mut colours = std::collections::HashSet::new();
        while colours.len() <= DRAWN {
            let picture = connection.get_image(ImageFormat::Z_PIXMAP, id, 0, 0, width, height, !0).unwrap();
            let pixels = picture.reply().unwrap().data;
            colours = pixels.chunks_exact(4).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        }
        let took = begun.elapsed();
        gui.destroy(&host.instance.plugin_handle());
        took
    }

    fn opening(criterion: &mut Criterion) {
        let mut group = criterion.benchmark_group("opening");
        group.sample_size(10).measurement_time(Duration::from_secs(5));
        let tasks = ["load", "create", "activate", "window"];
        let shown = std::env::var_os("DISPLAY").is_some();
        if !shown {
            eprintln!("no display: the window is not measured");
        }
        for task in tasks.into_iter().filter(|task| shown || *task != "window") {
            group.bench_function(task, |bencher| bencher.iter_custom(|times| (0..times).map(|_| ask(task)).sum()));
        }
    }

    /// Lets a new process measure.
    fn ask(task: &str) -> Duration {
        let answer = Command::new(std::env::current_exe().unwrap()).env(TASK, task).output().unwrap();
        let text = String::from_utf8(answer.stdout).unwrap();
        let nanos = text.lines().last().and_then(|line| line.parse().ok());
        Duration::from_nanos(
            nanos.unwrap_or_else(|| panic!("{task}: {text}{}", String::from_utf8_lossy(&answer.stderr))),
        )
    }

    criterion_group!(benches, opening);
}

#[cfg(target_os = "linux")]
fn main() {
    if !linux::measured() {
        linux::benches();
        criterion::Criterion::default().configure_from_args().final_summary();
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
