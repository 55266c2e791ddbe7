//! Turning and binding knobs.

use ondes_player::parameter::Parameter;
use ondes_player::parameter_source::ParameterSetter;

use super::InstanceViewModel;
use crate::command::KnobCommand;

impl InstanceViewModel {
    pub(super) fn handle_knob(&mut self, setter: &impl ParameterSetter, command: KnobCommand) {
        match command {
            KnobCommand::BeginGesture(id) => {
                self.gesture_begins(id);
                if Parameter::get(id).is_some() {
                    setter.begin_gesture(id);
                }
            }
            KnobCommand::Set(_, position) if !position.is_finite() => {}
            KnobCommand::Set(id, position) => {
                let position = position.clamp(0.0, 1.0);
                self.gesture_moves(id, position);
                if Parameter::get(id).is_some() {
                    setter.set_normalized(id, position);
                } else {
                    // Latent knobs are not among the host's parameters.
                    self.instance.set_latent_knob(id, position);
                }
            }
            KnobCommand::EndGesture(id) => {
                if Parameter::get(id).is_some() {
                    setter.end_gesture(id);
                }
                self.gesture_ends(id);
            }
            KnobCommand::SetParameter(id, value) => self.set_parameter(setter, id, value),
            KnobCommand::LearnMidi(id) => {
                if let Some(parameter) = Parameter::get(id) {
                    self.learning_begins();
                    self.instance.midi_bindings.learn(parameter.id);
                }
            }
            KnobCommand::ForgetMidi(id) => {
                if let Some(parameter) = Parameter::get(id) {
                    self.record_change("MIDI controller", |this| {
                        this.instance.midi_bindings.forget(parameter.id);
                    });
                }
            }
            KnobCommand::BindMacro(index, control) => {
                let controls = self.instance.controls();
                let control = control.map(|index| controls.all().get(index));
                if self.instance.model().is_some() && control != Some(None) {
                    let name = control.flatten().map(|control| control.name.as_str());
                    self.record_change(format!("Binding of macro {}", index + 1), |this| {
                        this.instance.bind_macro(index, name);
                    });
                }
            }
            KnobCommand::SetPad(horizontal, vertical) => {
                if let Some(ids) = self.saved_id(horizontal).zip(self.saved_id(vertical)) {
                    self.record_change("Knobs of the pad", |this| {
                        this.instance.set_pad(ids.into());
                    });
                }
            }
        }
    }
}
