//! Files dropped onto the window by the XDND protocol.

use std::path::Path;
use std::time::{Duration, Instant};

use clack_extensions::gui::{GuiApiType, GuiConfiguration, PluginGui, Window};
use ondes_engine::model::{Model, file};
use ondes_player::library::BUNDLED;
use ondes_player::parameter::{OUTPUT_GAIN, PARAMETERS};
use ondes_player::parameter_values::ParameterValue;
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::preset::store;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask, PropMode,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::host::{Host, HostEvent, INSTRUMENT, energy, json, state_content};
use crate::parent_window::{ParentWindow, display};

const SIZE: [u16; 2] = [980, 600];
/// Colours of the drop target's frame and of error messages: red, green, blue.
const ACCENT: [u8; 3] = [0x45, 0xc8, 0xbd];
const ERROR: [u8; 3] = [0xf2, 0x6a, 0x63];
/// Timestamp of the drag; must only stay the same.
const TIME: u32 = 1;

x11rb::atom_manager! {
    /// XDND atoms.
    Atoms: AtomsCookie {
        XdndActionCopy, XdndAware, XdndDrop, XdndEnter, XdndFinished, XdndLeave, XdndPosition, XdndSelection, XdndStatus,
        UriList: b"text/uri-list",
    }
}

/// The drag source's client.
struct DragSource {
    connection: RustConnection,
    window: u32,
    atoms: Atoms,
    uri: String,
}

impl DragSource {
    fn new(uri: String) -> Self {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let window = connection.generate_id().unwrap();
        let root = connection.setup().roots[screen].root;
        let (class, options) = (WindowClass::INPUT_ONLY, CreateWindowAux::new());
        connection
            .create_window(0, window, root, 0, 0, 1, 1, 0, class, 0, &options)
            .unwrap();
        let atoms = Atoms::new(&connection).unwrap().reply().unwrap();
        connection
            .set_selection_owner(window, atoms.XdndSelection, x11rb::CURRENT_TIME)
            .unwrap();
        connection.flush().unwrap();
        Self {
            connection,
            window,
            atoms,
            uri,
        }
    }

    fn is_aware(&self, target: u32) -> bool {
        let property =
            self.connection
                .get_property(false, target, self.atoms.XdndAware, AtomEnum::ATOM, 0, 1);
        property.unwrap().reply().is_ok_and(|property| {
            property
                .value32()
                .is_some_and(|mut value| value.next() == Some(5))
        })
    }

    fn send(&self, target: u32, kind: u32, data: [u32; 4]) {
        let data = [self.window, data[0], data[1], data[2], data[3]];
        let message = ClientMessageEvent::new(32, target, kind, data);
        self.connection
            .send_event(false, target, EventMask::NO_EVENT, message)
            .unwrap();
        self.connection.flush().unwrap();
    }

    /// Serves selection requests until the target answers with `kind`; returns true if it accepts.
    fn answer(&self, kind: u32) -> bool {
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < Duration::from_secs(20), "no answer");
            match self.connection.poll_for_event().unwrap() {
                Some(Event::SelectionRequest(request)) => self.send_selection(&request),
                Some(Event::ClientMessage(message)) if message.type_ == kind => {
                    return message.data.as_data32()[1] & 1 == 1;
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn send_selection(&self, request: &SelectionRequestEvent) {
        let SelectionRequestEvent {
            requestor,
            property,
            target,
            selection,
            time,
            ..
        } = *request;
        self.connection
            .change_property8(
                PropMode::REPLACE,
                requestor,
                property,
                target,
                self.uri.as_bytes(),
            )
            .unwrap();
        let response_type = SELECTION_NOTIFY_EVENT;
        let notify = SelectionNotifyEvent {
            response_type,
            sequence: 0,
            time,
            requestor,
            selection,
            target,
            property,
        };
        self.connection
            .send_event(false, requestor, EventMask::NO_EVENT, notify)
            .unwrap();
        self.connection.flush().unwrap();
    }
}

/// An instrument with an open window.
struct OpenInstrument {
    host: Host,
    frame: ParentWindow,
    gui: PluginGui,
    /// The host processes audio.
    plays: bool,
}

impl OpenInstrument {
    fn new(connection: RustConnection, screen: usize) -> Self {
        Self::in_host(
            connection,
            screen,
            Host::active_offline(INSTRUMENT, 48_000.0, 480),
            true,
        )
    }

    /// Opens the window in a host that processes audio, or does not.
    fn in_host(connection: RustConnection, screen: usize, mut host: Host, plays: bool) -> Self {
        let frame = ParentWindow::new(connection, screen, SIZE);
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
        // SAFETY: the parent window outlives the plugin's.
        unsafe { gui.set_parent(&plugin, Window::from_x11_handle(frame.id.into())) }
            .expect("the window is embedded");
        let _ = gui.show(&plugin);
        let mut open = Self {
            host,
            frame,
            gui,
            plays,
        };
        open.until("the window is drawn", |open| open.frame.colours(SIZE) > 50);
        open
    }

    /// Plays until a condition holds; fails after 30 s.
    fn until(&mut self, condition: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            assert!(
                since.elapsed() < Duration::from_secs(30),
                "not after 30 s: {condition}"
            );
            if self.plays {
                self.host.play(480, 480, &[], None);
            } else {
                self.host.call_back();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn shows(&self, colour: [u8; 3]) -> usize {
        self.frame.pixels_of(SIZE, colour)
    }

    /// Returns the model's name in a saved state.
    fn model(&mut self) -> String {
        state_content(&self.host.save())["fields"]["ondes"]["model"]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Drags a file into the centre of the window and waits for the drop target's frame.
    fn drag(&mut self, path: &Path) -> (DragSource, u32) {
        let uri = format!(
            "file://{}\r\n",
            path.display().to_string().replace(' ', "%20")
        );
        let (source, target) = (DragSource::new(uri), self.frame.children()[0]);
        assert!(source.is_aware(target));
        let (atoms, before) = (source.atoms, self.shows(ACCENT));
        source.send(target, atoms.XdndEnter, [5 << 24, atoms.UriList, 0, 0]);
        source.send(
            target,
            atoms.XdndPosition,
            [0, 450 << 16 | 280, TIME, atoms.XdndActionCopy],
        );
        assert!(
            source.answer(atoms.XdndStatus),
            "the window accepts the file"
        );
        self.until("the window is framed", |open| {
            open.shows(ACCENT) > before + usize::from(SIZE[0])
        });
        (source, target)
    }

    fn drop(&mut self, path: &Path) {
        let (source, target) = self.drag(path);
        let (atoms, framed) = (source.atoms, self.shows(ACCENT));
        source.send(target, atoms.XdndDrop, [0, TIME, 0, 0]);
        assert!(
            source.answer(atoms.XdndFinished),
            "the window took the file"
        );
        self.until("the frame is gone", |open| {
            open.shows(ACCENT) + usize::from(SIZE[0]) < framed
        });
    }
}

impl Drop for OpenInstrument {
    fn drop(&mut self) {
        self.gui.destroy(&self.host.instance.plugin_handle());
    }
}

/// Redirects the user's data and configuration folders.
fn redirect_user_folders(folder: &Path) {
    // SAFETY: the caller holds the display's lock, so no other test of this process runs, and no
    // window is open.
    unsafe {
        std::env::set_var("XDG_DATA_HOME", folder);
        std::env::set_var("XDG_CONFIG_HOME", folder);
    }
}

#[test]
fn dropped_models_and_presets_are_loaded() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    redirect_user_folders(folder.path());
    let path = folder.path().join("dropped one.ondes");
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Dropped".into();
    file::write(
        &Model::new(header, BUNDLED[2].model().weights().clone()).unwrap(),
        &path,
    )
    .unwrap();
    let mut preset = FactoryPreset::find("harp").unwrap().preset().unwrap();
    preset.name = "My Harp".into();
    let preset = store::save(folder.path(), &preset, false).unwrap();

    let mut open = OpenInstrument::new(connection, screen);
    let before = open.model();
    let (source, target) = open.drag(&path);
    let framed = open.shows(ACCENT);
    source.send(target, source.atoms.XdndLeave, [0; 4]);
    open.until("the frame is gone", |open| {
        open.shows(ACCENT) + usize::from(SIZE[0]) < framed
    });
    assert_eq!(open.model(), before, "a drag that leaves changes nothing");

    open.drop(&path);
    open.until("the model is loaded", |open| open.model() == "Dropped");
    open.drop(&preset);
    open.until("the model is loaded", |open| open.model() == "Plucked");
    assert_eq!(open.shows(ERROR), 0, "no error is shown");
}

#[test]
fn a_model_is_loaded_and_shown_while_the_host_processes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dropped.ondes");
    let mut header = BUNDLED[2].model().header().clone();
    header.card.name = "Dropped".into();
    file::write(
        &Model::new(header, BUNDLED[2].model().weights().clone()).unwrap(),
        &path,
    )
    .unwrap();
    let mut preset = FactoryPreset::find("harp").unwrap().preset().unwrap();
    let gain = -7.5;
    preset.sound.parameters.insert(
        PARAMETERS[OUTPUT_GAIN.0 as usize].id.into(),
        ParameterValue::Number(-7.5),
    );
    let preset = store::save(folder.path(), &preset, false).unwrap();
    for active in [false, true] {
        let Some((_turn, connection, screen)) = display() else {
            return;
        };
        redirect_user_folders(folder.path());
        let mut host = Host::new(INSTRUMENT);
        if active {
            host.activate(48_000.0, 480);
        }
        let mut open = OpenInstrument::in_host(connection, screen, host, false);
        let before = open.frame.pixels(SIZE);
        open.drop(&path);
        open.until("the model is loaded", |open| open.model() == "Dropped");
        // Name, card and knobs.
        let changed = |open: &OpenInstrument| {
            open.frame
                .pixels(SIZE)
                .iter()
                .zip(&before)
                .filter(|(now, before)| now != before)
                .count()
        };
        open.until("the model is shown", |open| changed(open) > 2_000);
        assert_eq!(open.shows(ERROR), 0, "no error is shown");
        // This host never calls `flush`.
        open.host
            .instance
            .access_handler(|main| main.rescans.take());
        open.drop(&preset);
        open.until("the preset's values are shown", |open| {
            (open.host.value("Output gain") - gain).abs() < 0.01
        });
        let saved = json(&open.host.save())["params"]["output_gain"]["f32"]
            .as_f64()
            .unwrap();
        assert!((saved - gain).abs() < 0.01, "{saved} dB, not {gain}");
        let is_told = |open: &OpenInstrument| {
            open.host.instance.access_handler(|main| main.rescans.get()) & 1 != 0
        };
        open.until("the host reads the values again", |open| is_told(open));
        if !active {
            open.host.activate(48_000.0, 480);
        }
        let sound = open
            .host
            .play(24_000, 480, &[(0, HostEvent::NoteOn(60, 0.8))], None);
        assert!(energy(&sound) > 1e-7, "it plays when the host does");
    }
}

#[test]
fn unsupported_files_are_reported() {
    let Some((_turn, connection, screen)) = display() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    redirect_user_folders(folder.path());
    let song = folder.path().join("song.wav");
    std::fs::write(&song, [7; 100]).unwrap();
    let mut open = OpenInstrument::new(connection, screen);
    let before = open.model();
    for path in [folder.path(), &song] {
        assert_eq!(open.shows(ERROR), 0, "no error is shown yet");
        open.drop(path);
        open.until("the error is shown", |open| open.shows(ERROR) > 40);
        assert_eq!(open.model(), before);
        // A supported file clears the message.
        let model = folder.path().join("good.ondes");
        file::write(&BUNDLED[0].model(), &model).unwrap();
        open.drop(&model);
        open.until("the error is gone", |open| open.shows(ERROR) == 0);
    }
}
