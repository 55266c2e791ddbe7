//! The parameter table as documentation.

use crate::parameter::{PARAMETERS, Parameter, ParameterKind};

/// Returns the parameter table as a Markdown table, for the documentation.
#[must_use]
pub fn markdown_table() -> String {
    let mut table =
        "| id | label | group | values | default | automatable | description |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for parameter in PARAMETERS {
        let text = |value| parameter.format(value) + parameter.unit;
        let values = match parameter.kind {
            ParameterKind::Choice(choices) => {
                let options = choices
                    .ids
                    .iter()
                    .zip(choices.names)
                    .map(|(id, name)| format!("`{id}` {name}"));
                options.collect::<Vec<_>>().join(", ")
            }
            ParameterKind::Switch => "Off, On".into(),
            _ => parameter.range().map(text).join(" … "),
        };
        let Parameter {
            id,
            label,
            group,
            tooltip,
            ..
        } = parameter;
        let automatable = match (parameter.is_host_automatable(), parameter.automatable) {
            (true, _) => "yes",
            (false, true) => "by MIDI only",
            (false, false) => "no",
        };
        let default = text(parameter.default());
        table += &format!(
            "| `{id}` | {label} | {group} | {values} | {default} | {automatable} | {tooltip} |\n"
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::PARAMETER_COUNT;

    #[test]
    fn every_parameter_is_documented() {
        let table = markdown_table();
        assert_eq!(table.lines().count(), PARAMETER_COUNT + 2);
        for parameter in PARAMETERS {
            assert!(
                !parameter.tooltip.is_empty() && !parameter.tooltip.ends_with('.'),
                "{}",
                parameter.id
            );
        }
        let glide = "| `glide` | Glide | Voice | Model default … 2000 ms | Model default | yes | ";
        assert!(table.contains(glide), "{table}");
        let driver = "| `driver` | Processing | Processing | `auto` Automatic, `inline` Audio thread, `worker` Background |";
        assert!(
            table.contains(driver)
                && table.contains("| Off | by MIDI only | Silence everything at once |")
        );
    }
}
