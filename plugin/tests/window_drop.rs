//! Files that are dropped onto the window, as a file manager does it on X11. Needs a display.

#![cfg(target_os = "linux")]

mod frame;
mod host;

use std::path::Path;
use std::time::{Duration, Instant};

use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};
use frame::{Frame, display};
use host::{Host, INSTRUMENT, content};
use ondes_engine::model::{Model, file};
use ondes_processor::library::BUNDLED;
use ondes_processor::preset::factory::Factory;
use ondes_processor::preset::store;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, SELECTION_NOTIFY_EVENT,
    SelectionNotifyEvent, SelectionRequestEvent, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

const SIZE: [u16; 2] = [900, 560];
/// What the window draws in where files would land, and what it says that something is wrong in: red, green and blue.
const ACCENT: [u8; 3] = [0x45, 0xc8, 0xbd];
const BAD: [u8; 3] = [0xf2, 0x6a, 0x63];
/// When the drag happens; only that it stays the same matters.
const TIME: u32 = 1;

x11rb::atom_manager! {
    /// The words of drag and drop.
    Atoms: AtomsCookie {
        XdndActionCopy, XdndAware, XdndDrop, XdndEnter, XdndFinished, XdndLeave, XdndPosition, XdndSelection, XdndStatus,
        UriList: b"text/uri-list",
    }
}

/// Whoever drags a file.
struct Source {
    connection: RustConnection,
    window: u32,
    atoms: Atoms,
    uri: String,
}

impl Source {
    fn new(uri: String) -> Self {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let window = connection.generate_id().unwrap();
        let root = connection.setup().roots[screen].root;
        let (class, options) = (WindowClass::INPUT_ONLY, CreateWindowAux::new());
        connection.create_window(0, window, root, 0, 0, 1, 1, 0, class, 0, &options).unwrap();
        let atoms = Atoms::new(&connection).unwrap().reply().unwrap();
        connection.set_selection_owner(window, atoms.XdndSelection, x11rb::CURRENT_TIME).unwrap();
        connection.flush().unwrap();
        Self { connection, window, atoms, uri }
    }

    fn is_aware(&self, target: u32) -> bool {
        let property = self.connection.get_property(false, target, self.atoms.XdndAware, AtomEnum::ATOM, 0, 1);
        property
            .unwrap()
            .reply()
            .is_ok_and(|property| property.value32().is_some_and(|mut value| value.next() == Some(5)))
    }

    fn send(&self, target: u32, kind: u32, data: [u32; 4]) {
        let data = [self.window, data[0], data[1], data[2], data[3]];
        let message = ClientMessageEvent::new(32, target, kind, data);
        self.connection.send_event(false, target, EventMask::NO_EVENT, message).unwrap();
        self.connection.flush().unwrap();
    }

    /// Hands out what is dragged, until the target answers with this; gives whether it takes it.
    fn answer(&self, kind: u32) -> bool {
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < Duration::from_secs(20), "no answer");
            match self.connection.poll_for_event().unwrap() {
                Some(Event::SelectionRequest(request)) => self.give(&request),
                Some(Event::ClientMessage(message)) if message.type_ == kind => {
                    return message.data.as_data32()[1] & 1 == 1;
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn give(&self, request: &SelectionRequestEvent) {
        let SelectionRequestEvent { requestor, property, target, selection, time, .. } = *request;
        self.connection.change_property8(PropMode::REPLACE, requestor, property, target, self.uri.as_bytes()).unwrap();
        let response_type = SELECTION_NOTIFY_EVENT;
        let notify = SelectionNotifyEvent { response_type, sequence: 0, time, requestor, selection, target, property };
        self.connection.send_event(false, requestor, EventMask::NO_EVENT, notify).unwrap();
        self.connection.flush().unwrap();
    }
}

/// An instrument with its window open.
struct Open {
    host: Host,
    frame: Frame,
    gui: PluginGui,
}

impl Open {
    fn new(connection: RustConnection, screen: usize) -> Self {
        let mut host = Host::active(INSTRUMENT, 48_000.0, 480);
        let frame = Frame::new(connection, screen, SIZE);
        let plugin = host.instance.plugin_handle();
        let gui: PluginGui = plugin.get_extension().expect("a window");
        gui.create(&plugin, GuiConfiguration { api_type: GuiApiType::X11, is_floating: false }).expect("it is made");
        // SAFETY: the frame outlives the window in it.
        unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }.expect("it is embedded");
        let _ = gui.show(&plugin);
        let mut open = Self { host, frame, gui };
        open.until("it is drawn", |open| open.frame.colours(SIZE) > 50);
        open
    }

    /// Plays on until something has come true; a machine may be slow, but not for ever.
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            assert!(since.elapsed() < Duration::from_secs(30), "not so: {what}");
            self.host.play(480, 480, &[], None);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn shows(&self, colour: [u8; 3]) -> usize {
        self.frame.pixels_of(SIZE, colour)
    }

    /// Name of the model that a project would have.
    fn model(&mut self) -> String {
        content(&self.host.save())["fields"]["ondes"]["model"]["name"].as_str().unwrap().to_owned()
    }

    /// Drags a file into the middle of the window, where it is shown that it would be taken.
    fn drag(&mut self, path: &Path) -> (Source, u32) {
        let uri = format!("file://{}\r\n", path.display().to_string().replace(' ', "%20"));
        let (source, target) = (Source::new(uri), self.frame.children()[0]);
        assert!(source.is_aware(target));
        let (atoms, before) = (source.atoms, self.shows(ACCENT));
        source.send(target, atoms.XdndEnter, [5 << 24, atoms.UriList, 0, 0]);
        source.send(target, atoms.XdndPosition, [0, 450 << 16 | 280, TIME, atoms.XdndActionCopy]);
        assert!(source.answer(atoms.XdndStatus), "it would take the file");
        self.until("the window is framed", |open| open.shows(ACCENT) > before + usize::from(SIZE[0]));
        (source, target)
    }

    fn drop(&mut self, path: &Path) {
        let (source, target) = self.drag(path);
        let (atoms, framed) = (source.atoms, self.shows(ACCENT));
        source.send(target, atoms.XdndDrop, [0, TIME, 0, 0]);
        assert!(source.answer(atoms.XdndFinished), "it has taken the file");
        self.until("the frame is gone", |open| open.shows(ACCENT) + usize::from(SIZE[0]) < framed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.gui.destroy(&self.host.instance.plugin_handle());
    }
}

/// What is dropped here is not to be in the user's own lists.
fn keep_to(folder: &Path) {
    // SAFETY: whoever calls this holds the display, so that no other test runs, and no window is open.
    unsafe {
        std::env::set_var("XDG_DATA_HOME", folder);
        std::env::set_var("XDG_CONFIG_HOME", folder);
    }
}

#[test]
fn models_and_presets_that_are_dropped_are_played() {
    let Some((_turn, connection, screen)) = display() else { return };
    let folder = tempfile::tempdir().unwrap();
    keep_to(folder.path());
    let path = folder.path().join("dropped one.ondes");
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Dropped".into();
    file::write(&Model::new(header, BUNDLED[2].model().weights().clone()).unwrap(), &path).unwrap();
    let mut preset = Factory::of("harp").unwrap().preset().unwrap();
    preset.name = "My Harp".into();
    let preset = store::save(folder.path(), &preset, false).unwrap();

    let mut open = Open::new(connection, screen);
    let before = open.model();
    let (source, target) = open.drag(&path);
    let framed = open.shows(ACCENT);
    source.send(target, source.atoms.XdndLeave, [0; 4]);
    open.until("the frame is gone", |open| open.shows(ACCENT) + usize::from(SIZE[0]) < framed);
    assert_eq!(open.model(), before, "it was taken away again");

    open.drop(&path);
    open.until("it plays", |open| open.model() == "Dropped");
    open.drop(&preset);
    open.until("it plays", |open| open.model() == "Plucked");
    assert_eq!(open.shows(BAD), 0, "nothing went wrong");
}

#[test]
fn what_cannot_be_played_is_said() {
    let Some((_turn, connection, screen)) = display() else { return };
    let folder = tempfile::tempdir().unwrap();
    keep_to(folder.path());
    let song = folder.path().join("song.wav");
    std::fs::write(&song, [7; 100]).unwrap();
    let mut open = Open::new(connection, screen);
    let before = open.model();
    for path in [folder.path(), &song] {
        assert_eq!(open.shows(BAD), 0, "nothing is wrong yet");
        open.drop(path);
        open.until("it is said", |open| open.shows(BAD) > 40);
        assert_eq!(open.model(), before);
        // What can be played takes the message away.
        let model = folder.path().join("good.ondes");
        file::write(&BUNDLED[0].model(), &model).unwrap();
        open.drop(&model);
        open.until("nothing is wrong", |open| open.shows(BAD) == 0);
    }
}
