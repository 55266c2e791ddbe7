//! A host's X11 window that a plugin's window is embedded in.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use ondes_engine::sync::lock;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConfigureWindowAux, ConnectionExt, CreateWindowAux, ImageFormat, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// The host's window.
pub struct ParentWindow {
    connection: RustConnection,
    pub id: u32,
}

impl ParentWindow {
    pub fn new(connection: RustConnection, screen: usize, [width, height]: [u16; 2]) -> Self {
        let id = connection.generate_id().unwrap();
        let screen = &connection.setup().roots[screen];
        let (depth, root, visual) = (screen.root_depth, screen.root, screen.root_visual);
        let options = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let class = WindowClass::INPUT_OUTPUT;
        connection
            .create_window(
                depth, id, root, 0, 0, width, height, 0, class, visual, &options,
            )
            .unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        Self { connection, id }
    }

    pub fn resize(&self, [width, height]: [u16; 2]) {
        let size = ConfigureWindowAux::new()
            .width(u32::from(width))
            .height(u32::from(height));
        self.connection.configure_window(self.id, &size).unwrap();
        self.connection.flush().unwrap();
    }

    /// Returns the number of distinct colours.
    pub fn colours(&self, size: [u16; 2]) -> usize {
        self.pixels(size).into_iter().collect::<HashSet<_>>().len()
    }

    /// Returns the number of pixels of a colour (red, green, blue), with a tolerance of 4 per
    /// channel.
    pub fn pixels_of(&self, size: [u16; 2], colour: [u8; 3]) -> usize {
        let near = |pixel: &[u8; 3]| {
            pixel
                .iter()
                .zip(colour)
                .all(|(one, other)| one.abs_diff(other) <= 4)
        };
        self.pixels(size).iter().filter(|pixel| near(pixel)).count()
    }

    /// Returns the pixels row by row: red, green, blue.
    pub fn pixels(&self, [width, height]: [u16; 2]) -> Vec<[u8; 3]> {
        let all =
            self.connection
                .get_image(ImageFormat::Z_PIXMAP, self.id, 0, 0, width, height, !0);
        let bytes = all.unwrap().reply().unwrap().data;
        bytes
            .chunks_exact(4)
            .map(|pixel| [pixel[2], pixel[1], pixel[0]])
            .collect()
    }

    /// Returns the child windows.
    pub fn children(&self) -> Vec<u32> {
        self.connection
            .query_tree(self.id)
            .unwrap()
            .reply()
            .unwrap()
            .children
    }

    /// Returns the size of the first child window.
    pub fn child_size(&self) -> Option<[u16; 2]> {
        // The child may disappear between the two requests.
        let geometry = self
            .connection
            .get_geometry(*self.children().first()?)
            .unwrap()
            .reply()
            .ok()?;
        Some([geometry.width, geometry.height])
    }
}

/// Connects to the display, if there is one, and locks it: windows would cover each other.
pub fn display() -> Option<(MutexGuard<'static, ()>, RustConnection, usize)> {
    static LOCK: Mutex<()> = Mutex::new(());
    if std::env::var_os("DISPLAY").is_none() {
        eprintln!("no display; the window tests do nothing");
        return None;
    }
    let guard = lock(&LOCK);
    let (connection, screen) = x11rb::connect(None).expect("the X server accepts the connection");
    Some((guard, connection, screen))
}
