//! The window of the CLAP.

use std::time::{Duration, Instant};

use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, with_selection};
use crate::parent_window::{ParentWindow, display};

const BLOCK: usize = 480;

/// Plays for `millis` in real time.
fn play(host: &mut Host, millis: u64, input: &[f32]) {
    let since = Instant::now();
    let mut blocks = 0;
    while since.elapsed() < Duration::from_millis(millis) {
        host.block(BLOCK, &[], Some(input));
        blocks += 1;
        let due = Duration::from_secs_f64(blocks as f64 * BLOCK as f64 / 48_000.0);
        std::thread::sleep(due.saturating_sub(since.elapsed()));
    }
}

/// Plays until a condition holds; fails after 60 s.
fn play_until(host: &mut Host, input: &[f32], mut is_so: impl FnMut(&mut Host) -> bool) {
    let since = Instant::now();
    while !is_so(host) {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "the condition does not hold after 60 s"
        );
        play(host, 100, input);
    }
}

#[test]
fn the_window_opens_draws_and_closes_repeatedly() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let size = [980, 600];
    let frame = ParentWindow::new(connection, screen, size);
    let sine: Vec<f32> = (0..BLOCK)
        .map(|n| 0.3 * (n as f32 * std::f32::consts::TAU / 160.0).sin())
        .collect();
    for (id, picture) in [(INSTRUMENT, "instrument"), (EFFECT, "effect")] {
        let mut host = Host::active_offline(id, 48_000.0, BLOCK as u32);
        for _ in 0..2 {
            let began = Instant::now();
            let plugin = host.instance.plugin_handle();
            let gui: PluginGui = plugin.get_extension().expect("a window");
            let how = GuiConfiguration {
                api_type: GuiApiType::X11,
                is_floating: false,
            };
            gui.create(&plugin, how).expect("the window is created");
            let size_hint = gui.get_size(&plugin).expect("the window has a size");
            assert_eq!([size_hint.width, size_hint.height], size.map(u32::from));
            // Ardour shows a window long after it has created it.
            host.block(BLOCK, &[(0, HostEvent::SetParameter("Mix", 0.5))], None);
            play(&mut host, 100, &sine);
            let plugin = host.instance.plugin_handle();
            // SAFETY: the parent window outlives the plugin's.
            unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }
                .expect("the window is embedded");
            let _ = gui.show(&plugin);
            println!("{picture}: open after {:?}", began.elapsed());
            host.block(
                BLOCK,
                &[
                    (0, HostEvent::NoteOn(57, 0.8)),
                    (0, HostEvent::NoteOn(64, 0.5)),
                ],
                Some(&sine),
            );
            play_until(&mut host, &sine, |_| frame.colours(size) > 50);
            if let Some(folder) = std::env::var_os("ONDES_PICTURES") {
                let to = std::path::Path::new(&folder).join(format!("window-{picture}.png"));
                let done = std::process::Command::new("import")
                    .args(["-window", "root"])
                    .arg(to)
                    .status();
                assert!(done.is_ok_and(|status| status.success()));
            }
            host.block(
                BLOCK,
                &[(0, HostEvent::NoteOff(57)), (0, HostEvent::NoteOff(64))],
                Some(&sine),
            );
            let plugin = host.instance.plugin_handle();
            gui.destroy(&plugin);
            play(&mut host, 100, &sine);
        }
    }
}

/// Takes the pictures of the documentation into the folder `ONDES_PICTURES`; the display must have
/// 1960 × 1200 pixels.
#[test]
fn pictures_at_all_scales() {
    let Some(folder) = std::env::var_os("ONDES_PICTURES") else {
        return;
    };
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let frame = ParentWindow::new(connection, screen, [980, 600]);
    let sine: Vec<f32> = (0..BLOCK)
        .map(|n| 0.3 * (n as f32 * std::f32::consts::TAU / 160.0).sin())
        .collect();
    for (id, picture) in [(INSTRUMENT, "plugin"), (EFFECT, "plugin-effect")] {
        for percent in [75, 100, 150, 200] {
            let mut host = Host::active_offline(id, 48_000.0, BLOCK as u32);
            let look = serde_json::json!({ "scale": f64::from(percent) / 100.0, "theme": "dark" });
            let state = with_selection(&host.save(), |selection| selection["look"] = look);
            assert!(host.load(&state));
            let size = [980, 600].map(|side: u32| (side * percent / 100) as u16);
            frame.resize(size);
            let plugin = host.instance.plugin_handle();
            let gui: PluginGui = plugin.get_extension().expect("a window");
            gui.create(
                &plugin,
                GuiConfiguration {
                    api_type: GuiApiType::X11,
                    is_floating: false,
                },
            )
            .expect("a window");
            // SAFETY: the parent window outlives the plugin's.
            unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }
                .expect("it is embedded");
            let _ = gui.show(&plugin);
            host.block(
                BLOCK,
                &[
                    (0, HostEvent::NoteOn(57, 0.8)),
                    (0, HostEvent::NoteOn(64, 0.5)),
                ],
                Some(&sine),
            );
            play_until(&mut host, &sine, |_| frame.colours(size) > 50);
            play(&mut host, 1000, &sine);
            let name = if percent == 100 {
                picture.to_owned()
            } else {
                format!("{picture}-{percent}")
            };
            let to = std::path::Path::new(&folder).join(format!("{name}.png"));
            let window = frame.id.to_string();
            let done = std::process::Command::new("import")
                .args(["-window", &window])
                .arg(to)
                .status();
            assert!(done.is_ok_and(|status| status.success()));
            let plugin = host.instance.plugin_handle();
            gui.destroy(&plugin);
        }
    }
}

#[test]
fn the_window_size_is_saved_with_the_project() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let mut host = Host::active_offline(INSTRUMENT, 48_000.0, BLOCK as u32);
    let look = |scale: f32| serde_json::json!({ "scale": scale, "theme": "light" });
    let saved = host.save();
    assert!(host.load(&with_selection(&saved, |selection| selection["look"] = look(1.25))));
    let frame = ParentWindow::new(connection, screen, [1225, 750]);
    let plugin = host.instance.plugin_handle();
    let gui: PluginGui = plugin.get_extension().expect("a window");
    gui.create(
        &plugin,
        GuiConfiguration {
            api_type: GuiApiType::X11,
            is_floating: false,
        },
    )
    .expect("the window is created");
    let size_hint = gui.get_size(&plugin).expect("the window has a size");
    assert_eq!([size_hint.width, size_hint.height], [1225, 750]);
    // SAFETY: the parent window outlives the plugin's.
    unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }
        .expect("the window is embedded");
    let _ = gui.show(&plugin);
    let silence = [0.0; BLOCK];
    play_until(&mut host, &silence, |_| frame.colours([1225, 750]) > 50);
    // A state load while the window is open requests the new size from the host.
    assert!(host.load(&with_selection(&saved, |selection| selection["look"] = look(0.75))));
    host.block(BLOCK, &[(0, HostEvent::NoteOn(60, 0.8))], None);
    let mut asked = None;
    play_until(&mut host, &silence, |host| {
        asked = host
            .instance
            .access_shared_handler(|shared| *shared.size.lock().unwrap());
        asked.is_some()
    });
    let asked = asked.expect("the host is asked");
    assert_eq!([asked.width, asked.height], [735, 450]);
    frame.resize([735, 450]);
    let plugin = host.instance.plugin_handle();
    gui.set_size(&plugin, asked)
        .expect("the window accepts the size");
    play_until(&mut host, &silence, |_| frame.colours([735, 450]) > 50);
    let plugin = host.instance.plugin_handle();
    gui.destroy(&plugin);
}
