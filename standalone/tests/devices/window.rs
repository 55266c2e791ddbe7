//! The program's window on a display such as Xvfb; skipped without one.

use std::collections::HashSet;
use std::process::{Child, Command, Stdio};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, ImageFormat};
use x11rb::rust_connection::RustConnection;

use super::server::{Server, alone, wait_until};

/// The app. It is killed if the test fails: it would hold the output of the tests open.
struct App(Child);

impl Drop for App {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Finds a window by title below `parent`, at any depth.
fn find(connection: &RustConnection, parent: u32, title: &str) -> Option<u32> {
    let children = connection.query_tree(parent).ok()?.reply().ok()?.children;
    children.into_iter().find_map(|child| {
        let name = connection
            .get_property(false, child, AtomEnum::WM_NAME, AtomEnum::ANY, 0, 64)
            .ok()?
            .reply()
            .ok()?;
        if name.value == title.as_bytes() {
            Some(child)
        } else {
            find(connection, child, title)
        }
    })
}

/// Counts the colours of a window.
fn colours(connection: &RustConnection, window: u32) -> Option<usize> {
    let size = connection.get_geometry(window).ok()?.reply().ok()?;
    let image = connection
        .get_image(
            ImageFormat::Z_PIXMAP,
            window,
            0,
            0,
            size.width,
            size.height,
            !0,
        )
        .ok()?;
    Some(
        image
            .reply()
            .ok()?
            .data
            .chunks_exact(4)
            .collect::<HashSet<_>>()
            .len(),
    )
}

#[test]
fn the_window_opens_and_a_signal_closes_it() {
    if std::env::var_os("DISPLAY").is_none() {
        eprintln!("no display: the app's window is not opened");
        return;
    }
    alone("window::the_window_opens_and_a_signal_closes_it", || {
        let _server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        // A test in the background of a shell may inherit ignored signals, and so would the
        // program.
        let mut app = Command::new("env");
        app.args(["--default-signal", env!("CARGO_BIN_EXE_ondes")]);
        app.env("ONDES_CONFIG", folder.path())
            .env_remove("WAYLAND_DISPLAY");
        let mut app = App(app.stdin(Stdio::null()).spawn().unwrap());
        let (connection, screen) = x11rb::connect(None).expect("the display answers");
        let root = connection.setup().roots[screen].root;
        let drawn =
            || colours(&connection, find(&connection, root, "Ondes")?).filter(|count| *count > 50);
        wait_until("the window is drawn", || {
            assert_eq!(app.0.try_wait().unwrap(), None, "it has ended");
            drawn().is_some()
        });
        let (client, _) =
            jack::Client::new("looker", jack::ClientOptions::NO_START_SERVER).unwrap();
        wait_until("it plays", || {
            !client
                .ports(Some("^Ondes:"), None, jack::PortFlags::IS_OUTPUT)
                .is_empty()
        });
        assert!(
            Command::new("kill")
                .arg(app.0.id().to_string())
                .status()
                .unwrap()
                .success()
        );
        let mut end = None;
        wait_until("it has ended", || {
            end = app.0.try_wait().unwrap();
            end.is_some()
        });
        // Exits as after closing the window, not by the signal.
        assert_eq!(end.unwrap().code(), Some(0));
    });
}
