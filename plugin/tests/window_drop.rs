//! A file that is dropped onto the window, as a file manager does it on X11. Needs a display.

#![cfg(target_os = "linux")]

mod frame;
mod host;

use std::time::{Duration, Instant};

use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};
use frame::{Frame, display};
use host::{Host, INSTRUMENT, content};
use ondes_engine::model::{Model, file};
use ondes_instance::library::BUNDLED;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, SELECTION_NOTIFY_EVENT,
    SelectionNotifyEvent, SelectionRequestEvent, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

const SIZE: [u16; 2] = [900, 560];
/// When the drag happens; only that it stays the same matters.
const TIME: u32 = 1;

x11rb::atom_manager! {
    /// The words of drag and drop.
    Atoms: AtomsCookie {
        XdndActionCopy, XdndAware, XdndDrop, XdndEnter, XdndFinished, XdndPosition, XdndSelection, XdndStatus,
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

#[test]
#[ignore = "egui-baseview 0.9.0 takes drops but does not hand them on to egui"]
fn a_model_that_is_dropped_is_played() {
    let Some((_turn, connection, screen)) = display() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dropped one.ondes");
    let mut header = BUNDLED[1].model().header().clone();
    header.card.name = "Dropped".into();
    file::write(&Model::new(header, BUNDLED[1].model().weights().clone()).unwrap(), &path).unwrap();

    let mut host = Host::active(INSTRUMENT, 48_000.0, 480);
    let frame = Frame::new(connection, screen, SIZE);
    let plugin = host.instance.plugin_handle();
    let gui: PluginGui = plugin.get_extension().expect("a window");
    gui.create(&plugin, GuiConfiguration { api_type: GuiApiType::X11, is_floating: false }).expect("it is made");
    // SAFETY: the frame outlives the window in it.
    unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }.expect("it is embedded");
    let _ = gui.show(&plugin);
    let since = Instant::now();
    while frame.colours(SIZE) <= 50 {
        assert!(since.elapsed() < Duration::from_secs(60), "it is not drawn");
        host.play(480, 480, &[], None);
        std::thread::sleep(Duration::from_millis(10));
    }

    let uri = format!("file://{}\r\n", path.display().to_string().replace(' ', "%20"));
    let (source, target) = (Source::new(uri), frame.children()[0]);
    assert!(source.is_aware(target));
    let atoms = source.atoms;
    source.send(target, atoms.XdndEnter, [5 << 24, atoms.UriList, 0, 0]);
    source.send(target, atoms.XdndPosition, [0, 450 << 16 | 280, TIME, atoms.XdndActionCopy]);
    assert!(source.answer(atoms.XdndStatus), "it would take the file");
    source.send(target, atoms.XdndDrop, [0, TIME, 0, 0]);
    assert!(source.answer(atoms.XdndFinished), "it has taken the file");

    let since = Instant::now();
    while content(&host.save())["fields"]["ondes"]["model"]["name"] != "Dropped" {
        assert!(since.elapsed() < Duration::from_secs(20), "it does not play");
        host.play(480, 480, &[], None);
        std::thread::sleep(Duration::from_millis(10));
    }
    let plugin = host.instance.plugin_handle();
    gui.destroy(&plugin);
}
