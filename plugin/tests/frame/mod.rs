//! A host's own window on the display, for a plugin's window to be in.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt, CreateWindowAux, ImageFormat, WindowClass};
use x11rb::rust_connection::RustConnection;

/// A host's own window.
pub struct Frame {
    connection: RustConnection,
    pub id: u32,
}

impl Frame {
    pub fn new(connection: RustConnection, screen: usize, [width, height]: [u16; 2]) -> Self {
        let id = connection.generate_id().unwrap();
        let screen = &connection.setup().roots[screen];
        let (depth, root, visual) = (screen.root_depth, screen.root, screen.root_visual);
        let options = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(depth, id, root, 0, 0, width, height, 0, class, visual, &options).unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        Self { connection, id }
    }

    pub fn resize(&self, [width, height]: [u16; 2]) {
        let size = ConfigureWindowAux::new().width(u32::from(width)).height(u32::from(height));
        self.connection.configure_window(self.id, &size).unwrap();
        self.connection.flush().unwrap();
    }

    /// How many colours are to be seen in it.
    pub fn colours(&self, size: [u16; 2]) -> usize {
        self.pixels(size).into_iter().collect::<HashSet<_>>().len()
    }

    /// How many pixels of it have that colour, as near as one can see: red, green and blue.
    pub fn pixels_of(&self, size: [u16; 2], colour: [u8; 3]) -> usize {
        let near = |pixel: &[u8; 3]| pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) <= 4);
        self.pixels(size).iter().filter(|pixel| near(pixel)).count()
    }

    /// `[pixel]`, row by row: red, green and blue.
    fn pixels(&self, [width, height]: [u16; 2]) -> Vec<[u8; 3]> {
        let all = self.connection.get_image(ImageFormat::Z_PIXMAP, self.id, 0, 0, width, height, !0);
        let bytes = all.unwrap().reply().unwrap().data;
        bytes.chunks_exact(4).map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect()
    }

    /// The windows in it.
    pub fn children(&self) -> Vec<u32> {
        self.connection.query_tree(self.id).unwrap().reply().unwrap().children
    }

    /// The size of the first window in it.
    pub fn child_size(&self) -> Option<[u16; 2]> {
        // It may be gone by the time that it is asked.
        let geometry = self.connection.get_geometry(*self.children().first()?).unwrap().reply().ok()?;
        Some([geometry.width, geometry.height])
    }
}

/// The display, where there is one; one test at a time, since windows cover each other.
pub fn display() -> Option<(MutexGuard<'static, ()>, RustConnection, usize)> {
    static TURN: Mutex<()> = Mutex::new(());
    if std::env::var_os("DISPLAY").is_none() {
        eprintln!("no display: the plugin's window is not opened");
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (connection, screen) = x11rb::connect(None).expect("the display answers");
    Some((turn, connection, screen))
}
