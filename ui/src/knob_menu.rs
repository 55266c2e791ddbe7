//! The menu, the MIDI mark and the tooltip that all kinds of knobs have.

use egui::{Button, Id, Key, Modifiers, Painter, Popup, Pos2, Response, SetOpenCommand, Ui};
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::parameter::ParameterId;

use crate::command::KnobCommand;
use crate::frame::Frame;
use crate::knob_gesture::set_knob;
use crate::theme::{self, Palette};
use crate::view::Knob;

/// Marks a knob that a MIDI controller turns, or that is learning one.
pub(crate) fn midi_mark(painter: &Painter, at: Pos2, midi: Option<MidiBinding>, palette: &Palette) {
    if let Some(MidiBinding::Learning | MidiBinding::Controller(_)) = midi {
        let ink = if midi == Some(MidiBinding::Learning) {
            palette.error
        } else {
            palette.accent
        };
        painter.circle_filled(at, 3.0, ink);
    }
}

/// Returns the hint about a MIDI controller.
pub(crate) fn midi_hint(midi: MidiBinding) -> Option<String> {
    match midi {
        MidiBinding::None => None,
        MidiBinding::Learning => Some("Move a MIDI controller".to_owned()),
        MidiBinding::Controller(number) => Some(format!("MIDI controller {number}")),
    }
}

/// Shows what the knob does, and its MIDI controller.
pub(crate) fn show_tooltip(response: Response, knob: &Knob) {
    let midi = knob.midi.and_then(midi_hint);
    let what = if knob.tooltip.is_empty() {
        &knob.name
    } else {
        &knob.tooltip
    };
    let lines: Vec<&str> = std::iter::once(what.as_str())
        .chain(midi.as_deref())
        .collect();
    response.on_hover_text(lines.join("\n"));
}

/// Shows a context menu, opened by the secondary mouse button, the menu key or Shift+F10.
pub(crate) fn context_menu(ui: &Ui, response: &Response, content: impl FnOnce(&mut Ui)) {
    // Opened by a key, the menu appears at the knob instead of the pointer.
    let by_key = response.id.with("menu by key");
    let called = response.has_focus()
        && ui.input_mut(|input| {
            input.consume_key(Modifiers::NONE, Key::Menu)
                || input.consume_key(Modifiers::SHIFT, Key::F10)
        });
    if called || response.secondary_clicked() {
        ui.data_mut(|data| data.insert_temp(by_key, called));
    }
    let mut popup = Popup::context_menu(response);
    if called {
        popup = popup.open_memory(SetOpenCommand::Bool(true));
    }
    let opened_by_key = ui.data(|data| data.get_temp(by_key) == Some(true));
    if opened_by_key {
        popup = popup.anchor(response.rect);
    }
    popup.show(|ui| theme::short_menu(ui, content));
    if opened_by_key && !Popup::is_id_open(ui.ctx(), Popup::default_response_id(response)) {
        // The keyboard focus returns to the knob.
        ui.data_mut(|data| data.remove_temp::<bool>(by_key));
        response.request_focus();
    }
}

/// Adds the entries that the menus of all knobs have. `widget` is the knob's id, `text` its value
/// if it can be typed.
pub(crate) fn standard_menu(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    widget: Id,
    text: Option<&str>,
) {
    let first = theme::item(ui, Button::new("Reset"));
    if ui.memory(|memory| memory.focused().is_none_or(|id| id == widget)) {
        first.request_focus();
    }
    if first.clicked() {
        set_knob(knob, knob.default, &mut frame.commands);
    }
    if let Some(text) = text
        && theme::item(ui, Button::new("Type a value")).clicked()
    {
        frame.gestures.begin_text_entry(knob.id, text.to_owned());
    }
    if let Some(midi) = knob.midi {
        midi_item(ui, frame, knob.id, midi);
    }
}

/// Adds the entry that learns a MIDI controller, or forgets it.
pub(crate) fn midi_item(ui: &mut Ui, frame: &mut Frame<'_>, id: ParameterId, midi: MidiBinding) {
    let (label, command) = match midi {
        MidiBinding::None => ("MIDI learn".to_owned(), KnobCommand::LearnMidi(id)),
        MidiBinding::Learning => ("Stop MIDI learn".to_owned(), KnobCommand::ForgetMidi(id)),
        MidiBinding::Controller(number) => (
            format!("Forget MIDI controller {number}"),
            KnobCommand::ForgetMidi(id),
        ),
    };
    if theme::item(ui, Button::new(label)).clicked() {
        frame.push(command);
    }
}
