//! The window in a host's window. Needs a display, such as Xvfb gives; where there is none, nothing is tried.

#![cfg(target_os = "linux")]

mod frame;
mod host;

use std::time::{Duration, Instant};

use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};
use frame::{Frame, display};
use host::{Do, EFFECT, Host, INSTRUMENT, with_selection};

const BLOCK: usize = 480;

/// Plays on for so long in real time, as a host with an open window.
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

/// Plays on until something has come true; a machine may be slow, but not for ever.
fn play_until(host: &mut Host, input: &[f32], mut is_so: impl FnMut(&mut Host) -> bool) {
    let since = Instant::now();
    while !is_so(host) {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not come true");
        play(host, 100, input);
    }
}

#[test]
fn the_window_opens_draws_and_closes_again_and_again() {
    let Some((_turn, connection, screen)) = display() else { return };
    let size = [900, 560];
    let frame = Frame::new(connection, screen, size);
    let sine: Vec<f32> = (0..BLOCK).map(|n| 0.3 * (n as f32 * std::f32::consts::TAU / 160.0).sin()).collect();
    for (id, picture) in [(INSTRUMENT, "instrument"), (EFFECT, "effect")] {
        let mut host = Host::active(id, 48_000.0, BLOCK as u32);
        for _ in 0..2 {
            let began = Instant::now();
            let plugin = host.instance.plugin_handle();
            let gui: PluginGui = plugin.get_extension().expect("a window");
            let how = GuiConfiguration { api_type: GuiApiType::X11, is_floating: false };
            gui.create(&plugin, how).expect("it is made");
            let wanted = gui.get_size(&plugin).expect("it has a size");
            assert_eq!([wanted.width, wanted.height], size.map(u32::from));
            // SAFETY: the frame outlives the window in it.
            unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }.expect("it is embedded");
            let _ = gui.show(&plugin);
            println!("{picture}: open after {:?}", began.elapsed());
            host.block(BLOCK, &[(0, Do::On(57, 0.8)), (0, Do::On(64, 0.5))], Some(&sine));
            play_until(&mut host, &sine, |_| frame.colours(size) > 50);
            if let Some(folder) = std::env::var_os("ONDES_PICTURES") {
                let to = std::path::Path::new(&folder).join(format!("window-{picture}.png"));
                let done = std::process::Command::new("import").args(["-window", "root"]).arg(to).status();
                assert!(done.is_ok_and(|status| status.success()));
            }
            host.block(BLOCK, &[(0, Do::Off(57)), (0, Do::Off(64))], Some(&sine));
            let plugin = host.instance.plugin_handle();
            gui.destroy(&plugin);
            play(&mut host, 100, &sine);
        }
    }
}

#[test]
fn the_size_is_kept_with_the_project() {
    let Some((_turn, connection, screen)) = display() else { return };
    let mut host = Host::active(INSTRUMENT, 48_000.0, BLOCK as u32);
    let look = |scale: f32| serde_json::json!({ "scale": scale, "theme": "light" });
    let saved = host.save();
    assert!(host.load(&with_selection(&saved, |selection| selection["look"] = look(1.25))));
    let frame = Frame::new(connection, screen, [1125, 700]);
    let plugin = host.instance.plugin_handle();
    let gui: PluginGui = plugin.get_extension().expect("a window");
    gui.create(&plugin, GuiConfiguration { api_type: GuiApiType::X11, is_floating: false }).expect("it is made");
    let wanted = gui.get_size(&plugin).expect("it has a size");
    assert_eq!([wanted.width, wanted.height], [1125, 700]);
    // SAFETY: the frame outlives the window in it.
    unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }.expect("it is embedded");
    let _ = gui.show(&plugin);
    let silence = [0.0; BLOCK];
    play_until(&mut host, &silence, |_| frame.colours([1125, 700]) > 50);
    // A project that is loaded into an open window changes it too, and the host is asked for room.
    assert!(host.load(&with_selection(&saved, |selection| selection["look"] = look(0.75))));
    host.block(BLOCK, &[(0, Do::On(60, 0.8))], None);
    let mut asked = None;
    play_until(&mut host, &silence, |host| {
        asked = host.instance.access_shared_handler(|shared| *shared.size.lock().unwrap());
        asked.is_some()
    });
    let asked = asked.expect("the host is asked");
    assert_eq!([asked.width, asked.height], [675, 420]);
    frame.resize([675, 420]);
    let plugin = host.instance.plugin_handle();
    gui.set_size(&plugin, asked).expect("it takes the size");
    play_until(&mut host, &silence, |_| frame.colours([675, 420]) > 50);
    let plugin = host.instance.plugin_handle();
    gui.destroy(&plugin);
}
