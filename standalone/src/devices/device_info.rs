//! Sound systems and devices, and how they are found by name.

use serde::Serialize;

/// Sound system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AudioHost {
    /// Name: "ALSA", "JACK", "CoreAudio" …
    pub name: String,
    /// Usable now; JACK needs a running server.
    pub available: bool,
    /// Used by default.
    pub default: bool,
}

/// Audio device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AudioDevice {
    /// Identifier, stable across restarts.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// Output capabilities, if it has outputs.
    pub output: Option<DirectionInfo>,
    /// Input capabilities, if it has inputs.
    pub input: Option<DirectionInfo>,
}

/// Capabilities of a device in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectionInfo {
    /// Largest number of channels; 0 if the device is busy.
    pub channels: u16,
    /// Supported common sample rates in Hz, ascending; empty if the device is busy.
    pub sample_rates: Vec<u32>,
    /// Used by default.
    pub default: bool,
}

/// Finds a device by identifier or name, otherwise by a part that only one has. `names` are pairs
/// of identifier and name; `what` is a plural for the error.
pub(super) fn find(names: &[(String, String)], wanted: &str, what: &str) -> Result<usize, String> {
    let lower = wanted.to_lowercase();
    let is = |name: &String| name.to_lowercase() == lower;
    let has = |name: &String| name.to_lowercase().contains(&lower);
    if let Some(index) = names
        .iter()
        .position(|(id, _)| is(id))
        .or_else(|| names.iter().position(|(_, name)| is(name)))
    {
        return Ok(index);
    }
    let mut parts = (0..names.len()).filter(|&index| has(&names[index].0) || has(&names[index].1));
    match (parts.next(), parts.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!(
            "{wanted:?} matches several {what}; give more of the name"
        )),
        _ => {
            let ids: Vec<&str> = names.iter().map(|(id, _)| id.as_str()).collect();
            let available = if ids.is_empty() {
                "none".to_owned()
            } else {
                ids.join(", ")
            };
            Err(format!(
                "{wanted:?} is not among the {what}; available: {available}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_device_is_found_by_identifier_name_or_part() {
        let names = [
            ("hw:0", "Babyface"),
            ("hw:1", "USB Audio"),
            ("usb audio", "Other"),
            ("hw:10", "HDMI"),
        ];
        let names = names.map(|(id, name)| (id.to_owned(), name.to_owned()));
        let find = |wanted| super::find(&names, wanted, "outputs of ALSA");
        assert_eq!(find("HW:1"), Ok(1));
        assert_eq!(find("babyface"), Ok(0));
        assert_eq!(find("USB audio"), Ok(2));
        assert_eq!(find("hdm"), Ok(3));
        assert_eq!(
            find("hw:"),
            Err("\"hw:\" matches several outputs of ALSA; give more of the name".into())
        );
        let unknown =
            "\"x\" is not among the outputs of ALSA; available: hw:0, hw:1, usb audio, hw:10";
        assert_eq!(find("x"), Err(unknown.into()));
        assert_eq!(
            super::find(&[], "x", "inputs"),
            Err("\"x\" is not among the inputs; available: none".into())
        );
    }
}
