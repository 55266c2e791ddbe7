//! Flags made from the parameter table.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use ondes_player::parameter::{
    BEND_RANGE, BLOCK_DC, CHANNELS, GATE, MPE, OUTPUT_LEVEL, OVERSAMPLING, Parameter, ParameterId,
    ParameterKind, REVERB, REVERB_TIME, SIZE, TONE, TONE_GAINS,
};

use crate::argument_parsers::number_in;

/// Parameters that are flags of `ondes render`. A flag has the name, range, default, choices and
/// help of its parameter.
const FLAGS: [ParameterId; 14] = [
    GATE,
    TONE_GAINS[0],
    TONE_GAINS[1],
    TONE_GAINS[2],
    TONE,
    BLOCK_DC,
    REVERB,
    REVERB_TIME,
    CHANNELS,
    OVERSAMPLING,
    SIZE,
    OUTPUT_LEVEL,
    BEND_RANGE,
    MPE,
];

/// Values of the flags that are given.
#[derive(Clone, Debug, Default)]
pub struct ParameterArguments {
    values: Vec<(ParameterId, f32)>,
}

impl ParameterArguments {
    /// Returns the value of a flag; `None` if it is not given.
    pub fn given(&self, id: ParameterId) -> Option<f32> {
        self.values
            .iter()
            .find(|(given, _)| *given == id)
            .map(|(_, value)| *value)
    }

    /// Returns the value of a flag, or the parameter's default.
    pub fn value(&self, id: ParameterId) -> f32 {
        self.given(id)
            .or_else(|| Parameter::get(id).map(Parameter::default))
            .unwrap_or_default()
    }
}

impl Args for ParameterArguments {
    fn augment_args(command: Command) -> Command {
        FLAGS
            .into_iter()
            .filter_map(Parameter::get)
            .fold(command, |command, parameter| command.arg(flag(parameter)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ParameterArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value = |id| {
            let parameter = Parameter::get(id)?;
            let value = match parameter.kind {
                ParameterKind::Switch => {
                    f32::from(u8::from(*matches.get_one::<bool>(parameter.id)?))
                }
                _ => *matches.get_one::<f32>(parameter.id)?,
            };
            Some((id, value))
        };
        Ok(Self {
            values: FLAGS.into_iter().filter_map(value).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the flag of a parameter.
fn flag(parameter: &'static Parameter) -> Arg {
    // A command has static names; it is built once.
    let name: &'static str = parameter.id.replace('_', "-").leak();
    let flag = Arg::new(parameter.id).long(name);
    // Notes do not pass the gate.
    let flag = if Parameter::find(parameter.id) == Some(GATE) {
        flag.conflicts_with("midi")
    } else {
        flag
    };
    match parameter.kind {
        ParameterKind::Float { .. } | ParameterKind::Integer { .. } => {
            let [min, max] = parameter.range();
            let unit = unit(parameter);
            let space = if unit.is_empty() { "" } else { " " };
            let default = match parameter.format(parameter.default()) {
                text if text.chars().all(char::is_alphabetic) => text.to_lowercase(),
                _ => parameter.default().to_string(),
            };
            flag.help(format!(
                "{}, {min} to {max}{space}{unit} [default: {default}]",
                parameter.tooltip
            ))
            .value_name(match unit.as_str() {
                "" => "SHARE",
                "s" => "S",
                "st" => "SEMITONES",
                _ => "DB",
            })
            .allow_negative_numbers(true)
            .value_parser(number_in(min..=max))
        }
        ParameterKind::Switch => flag.help(parameter.tooltip).action(ArgAction::SetTrue),
        ParameterKind::Choice(choices) => {
            let options = choices.ids.iter().map(|id| {
                let option = PossibleValue::new(spelling(id));
                if spelling(id) == *id {
                    option
                } else {
                    option.alias(*id)
                }
            });
            let index = move |given: String| {
                let is_given = |id: &&'static str| **id == given || spelling(id) == given;
                choices.ids.iter().position(is_given).unwrap_or_default() as f32
            };
            flag.help(format!(
                "{} [default: {}]",
                parameter.tooltip,
                spelling(choices.ids[0])
            ))
            .value_name("CHOICE")
            .value_parser(PossibleValuesParser::new(options).map(index))
        }
    }
}

/// Returns the command line's spelling of an option's id, which stays accepted.
fn spelling(id: &'static str) -> &'static str {
    match id {
        "normalised" => "normalized",
        factor => factor.strip_suffix('x').unwrap_or(factor),
    }
}

/// Returns the unit of a parameter's values; empty for shares, which are shown in percent but given
/// as 0 to 1.
fn unit(parameter: &Parameter) -> String {
    let [_, max] = parameter.range();
    let text = parameter.format(max) + parameter.unit;
    let unit = text.trim_start_matches(|sign: char| sign.is_ascii_digit() || "+-. ".contains(sign));
    unit.replace('%', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<ParameterArguments, Error> {
        // The gate's flag refers to this one.
        let command = Command::new("render")
            .no_binary_name(true)
            .arg(Arg::new("midi").long("midi"));
        let matches = ParameterArguments::augment_args(command).try_get_matches_from(arguments)?;
        ParameterArguments::from_arg_matches(&matches)
    }

    #[test]
    fn flags_take_the_values_of_their_parameters() {
        let arguments = [
            "--gate",
            "-60",
            "--block-dc",
            "--tone",
            "before",
            "--oversampling",
            "4",
            "--size",
            "0.5",
        ];
        let given = parsed(&arguments).unwrap();
        let values = [GATE, BLOCK_DC, TONE, OVERSAMPLING, SIZE].map(|id| given.value(id));
        assert_eq!(values, [-60.0, 1.0, 1.0, 3.0, 0.5]);
        assert_eq!(
            (given.given(TONE_GAINS[0]), given.value(TONE_GAINS[0])),
            (None, 0.0)
        );
        for level in ["normalized", "normalised"] {
            assert_eq!(
                parsed(&["--output-level", level])
                    .unwrap()
                    .value(OUTPUT_LEVEL),
                1.0,
                "{level}"
            );
        }
        assert_eq!(
            parsed(&["--oversampling", "2x"])
                .unwrap()
                .value(OVERSAMPLING),
            2.0
        );
    }

    #[test]
    fn flags_keep_to_the_ranges_of_their_parameters() {
        for (flag, wrong) in [
            ("--gate", "-91"),
            ("--treble", "13"),
            ("--size", "NaN"),
            ("--oversampling", "3"),
        ] {
            assert!(parsed(&[flag, wrong]).is_err(), "{flag} {wrong}");
        }
        let message = parsed(&["--bass", "loud"]).unwrap_err().to_string();
        assert!(
            message.contains("expected a number from -12 to 12"),
            "{message}"
        );
    }
}
