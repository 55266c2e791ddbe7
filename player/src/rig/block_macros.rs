//! Settings of blocks that macros turn.

use std::borrow::Cow;

use ondes_engine::effects::EffectParameter;
use ondes_engine::model::KnobRange;
use ondes_engine::rig::blocks::{BlockSetting, LEVELS_DB};

use super::block_state::BlockState;
use super::model_block;
use crate::macros::MACRO_COUNT;
use crate::model_controls;

/// Ids of the settings that all blocks have, beside the ids of their parameters.
pub const ON: &str = "block.on";
/// The share beside the dry sound.
pub const MIX: &str = "block.mix";
/// The level of both.
pub const LEVEL: &str = "block.level";

/// A setting that a macro turns, as it is shown.
#[derive(Clone, Debug)]
pub struct MacroTarget {
    /// The setting; its name has that of the block before it.
    pub parameter: EffectParameter,
    /// Value that the setting has while the macro is in the middle.
    pub value: f32,
}

impl MacroTarget {
    /// Returns the range of the macro.
    #[must_use]
    pub fn range(&self) -> KnobRange {
        self.parameter.knob_range().centred_at(self.value)
    }

    /// Formats the value at a position of the macro, 0 to 1, with its unit.
    #[must_use]
    pub fn format(&self, position: f32) -> String {
        let EffectParameter { unit, options, .. } = &self.parameter;
        let value = self.range().value(position);
        match options.get(value.round() as usize) {
            Some(option) => (*option).to_owned(),
            None => model_controls::format_number(value, unit.trim_start()),
        }
    }

    /// Returns the position of the macro for a typed value; the name before it and the unit after
    /// it are optional.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<f32> {
        let text = text.trim();
        let text = text.strip_prefix(&*self.parameter.name).unwrap_or(text);
        let mut options = self.parameter.options.iter();
        let option = options.position(|option| option.eq_ignore_ascii_case(text.trim()));
        let value = option.map(|option| option as f32);
        let value = value.or_else(|| model_controls::parse_number(text))?;
        Some(self.range().position(value))
    }
}

impl BlockState {
    /// Returns the number, from 0, of the macro that turns a setting: [`ON`], [`MIX`], [`LEVEL`] or
    /// the id of a parameter.
    #[must_use]
    pub fn macro_of(&self, setting: &str) -> Option<usize> {
        let number = self.macros.get(setting)?.checked_sub(1)?;
        (number < MACRO_COUNT).then_some(number)
    }

    /// Lets a macro turn a setting, or none.
    pub fn turn_by(&mut self, setting: &str, number: Option<usize>) {
        match number {
            Some(number) => drop(self.macros.insert(setting.to_owned(), number + 1)),
            None => drop(self.macros.remove(setting)),
        }
    }

    /// Returns the parameter of the share beside the dry sound.
    #[must_use]
    pub fn mix_parameter(&self) -> EffectParameter {
        let default = self.kind().map_or(1.0, |kind| kind.mix);
        EffectParameter::new(MIX, "Mix", "", [0.0, 1.0], default)
    }

    /// Returns the parameter of the level.
    #[must_use]
    pub fn level_parameter(&self) -> EffectParameter {
        EffectParameter::new(LEVEL, "Level", " dB", LEVELS_DB, 0.0)
    }

    /// Returns the settings that macros can turn, with their values. What a model is built with is
    /// not among them.
    pub fn turnable(&self) -> impl Iterator<Item = (BlockSetting, MacroTarget)> {
        let kind = self.kind();
        let name = self.name();
        let named = move |parameter: EffectParameter| EffectParameter {
            name: Cow::Owned(format!("{name} {}", parameter.name.to_lowercase())),
            ..parameter
        };
        let on = EffectParameter::choice(ON, "On", &["off", "on"]);
        let common = [
            (BlockSetting::On, on, f32::from(u8::from(!self.off))),
            (BlockSetting::Mix, self.mix_parameter(), self.mix()),
            (BlockSetting::Level, self.level_parameter(), self.level_db()),
        ];
        let parameters = kind.map_or(&[][..], |kind| kind.parameters);
        let own = parameters
            .iter()
            .enumerate()
            .filter(|(_, parameter)| !model_block::is_built_with(parameter))
            .map(|(place, parameter)| {
                (
                    BlockSetting::Value(place),
                    parameter.clone(),
                    self.value(parameter),
                )
            });
        common
            .into_iter()
            .chain(own)
            .map(move |(setting, parameter, value)| {
                let parameter = named(parameter);
                (setting, MacroTarget { parameter, value })
            })
    }

    /// Returns the first setting that a macro turns, by its number from 0.
    #[must_use]
    pub fn turned_by(&self, number: usize) -> Option<MacroTarget> {
        if self.macros.is_empty() {
            return None;
        }
        let mut all = self.turnable().map(|(_, target)| target);
        all.find(|target| self.macro_of(&target.parameter.id) == Some(number))
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::effects::effect;

    use super::*;

    #[test]
    fn macros_are_saved_with_the_block_and_named_after_what_they_turn() {
        let mut delay = BlockState::of_effect(effect("delay").unwrap());
        delay.turn_by("time", Some(2));
        delay.turn_by(ON, Some(7));
        let saved = serde_json::to_string(&delay).unwrap();
        assert_eq!(
            saved,
            r#"{"block":"delay","macros":{"block.on":8,"time":3}}"#
        );
        let read: BlockState = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, delay);
        let target = read.turned_by(2).unwrap();
        assert_eq!(
            (&*target.parameter.name, target.range().value(1.0)),
            ("Delay time", 2_000.0)
        );
        assert_eq!(&*read.turned_by(7).unwrap().parameter.name, "Delay on");
        assert!(read.turned_by(0).is_none());
        delay.turn_by("time", None);
        assert!(delay.turned_by(2).is_none());
        let hostile: BlockState =
            serde_json::from_str(r#"{"block":"delay","macros":{"time":99,"mix":0,"x":1}}"#)
                .unwrap();
        assert!((0..MACRO_COUNT).all(|number| hostile.turned_by(number).is_none()));
    }
}
