//! The sound systems and devices that there are.

use serde::Serialize;

#[cfg(target_os = "linux")]
use super::jack;
use super::system;

/// A sound system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// What it is called: "ALSA", "JACK", "CoreAudio" …
    pub name: String,
    /// Whether it can be used now; JACK needs a server that runs.
    pub available: bool,
    /// Whether it is taken when none is asked for.
    pub default: bool,
}

/// A device that plays, records or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// What identifies it, also after a restart.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// How it plays, if it does.
    pub output: Option<Side>,
    /// How it records, if it does.
    pub input: Option<Side>,
}

/// One direction of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The most channels; 0 where the device is busy and does not tell.
    pub channels: u16,
    /// Sample rates in use that it knows, Hz, ascending; empty where the device is busy and does not tell.
    pub sample_rates: Vec<u32>,
    /// Whether it is taken when none is asked for.
    pub default: bool,
}

/// How a host is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostKind {
    System(cpal::HostId),
    #[cfg(target_os = "linux")]
    Jack,
}

impl HostKind {
    fn all() -> Vec<Self> {
        let system = cpal::ALL_HOSTS.iter().copied().map(Self::System);
        #[cfg(target_os = "linux")]
        let system = system.chain([Self::Jack]);
        system.collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::System(host) => host.name(),
            #[cfg(target_os = "linux")]
            Self::Jack => jack::HOST,
        }
    }

    fn is_available(self) -> bool {
        match self {
            Self::System(host) => cpal::host_from_id(host).is_ok(),
            #[cfg(target_os = "linux")]
            Self::Jack => jack::is_running(),
        }
    }

    fn default() -> Self {
        #[cfg(target_os = "linux")]
        if jack::is_running() {
            // Its server has the sound card: the system's own way to it would be blocked.
            return Self::Jack;
        }
        Self::System(cpal::default_host().id())
    }
}

/// The sound systems that this program knows here.
pub fn hosts() -> Vec<Host> {
    super::quiet::hush();
    let default = HostKind::default();
    let describe =
        |kind: HostKind| Host { name: kind.name().into(), available: kind.is_available(), default: kind == default };
    HostKind::all().into_iter().map(describe).collect()
}

/// The devices of a host, or of the one that is taken when none is asked for. Devices that cannot be opened are left out,
/// but not those that are busy.
///
/// # Errors
/// One line, when there is no such host or it cannot be used.
pub fn devices(host: Option<&str>) -> Result<Vec<Device>, String> {
    super::quiet::hush();
    match find_host(host)? {
        HostKind::System(host) => system::devices(host),
        #[cfg(target_os = "linux")]
        HostKind::Jack => jack::devices(),
    }
}

pub(super) fn find_host(name: Option<&str>) -> Result<HostKind, String> {
    let Some(name) = name else { return Ok(HostKind::default()) };
    let kinds = HostKind::all();
    let found = kinds.iter().find(|kind| kind.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        format!("no sound system is called {name:?} here; there is: {}", names.join(", "))
    })
}

/// Which of several things is meant by a name: the one with that identifier or name, else the only one whose name has it in
/// it. `names` gives identifier and name of each, `what` is plural, for the error.
pub(super) fn find(names: &[(String, String)], wanted: &str, what: &str) -> Result<usize, String> {
    let lower = wanted.to_lowercase();
    let is = |name: &String| name.to_lowercase() == lower;
    let has = |name: &String| name.to_lowercase().contains(&lower);
    if let Some(index) = names.iter().position(|(id, _)| is(id)).or_else(|| names.iter().position(|(_, name)| is(name)))
    {
        return Ok(index);
    }
    let mut parts = (0..names.len()).filter(|&index| has(&names[index].0) || has(&names[index].1));
    match (parts.next(), parts.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!("{wanted:?} is part of the names of several {what}")),
        _ => {
            let ids: Vec<&str> = names.iter().map(|(id, _)| id.as_str()).collect();
            let there_is =
                if ids.is_empty() { "there are none".into() } else { format!("there is: {}", ids.join(", ")) };
            Err(format!("{wanted:?} is none of the {what}; {there_is}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_identifier_name_or_part() {
        let names = [("hw:0", "Babyface"), ("hw:1", "USB Audio"), ("usb audio", "Other"), ("hw:10", "HDMI")];
        let names = names.map(|(id, name)| (id.to_owned(), name.to_owned()));
        let find = |wanted| super::find(&names, wanted, "outputs of ALSA");
        assert_eq!(find("HW:1"), Ok(1));
        assert_eq!(find("babyface"), Ok(0));
        assert_eq!(find("USB audio"), Ok(2));
        assert_eq!(find("hdm"), Ok(3));
        assert_eq!(find("hw:"), Err("\"hw:\" is part of the names of several outputs of ALSA".into()));
        let unknown = "\"x\" is none of the outputs of ALSA; there is: hw:0, hw:1, usb audio, hw:10";
        assert_eq!(find("x"), Err(unknown.into()));
        assert_eq!(super::find(&[], "x", "inputs"), Err("\"x\" is none of the inputs; there are none".into()));
    }

    #[test]
    fn one_host_is_the_default_and_others_are_named() {
        let hosts = hosts();
        assert_eq!(hosts.iter().filter(|host| host.default).count(), 1);
        for host in &hosts {
            assert!(find_host(Some(&host.name.to_lowercase())).is_ok());
        }
        let error = find_host(Some("OSS/2")).unwrap_err();
        assert!(error.contains("OSS/2") && error.contains(&hosts[0].name) && !error.contains('\n'), "{error}");
    }
}
