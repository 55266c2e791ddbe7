//! The available sound systems and devices.

use super::device_info::{AudioDevice, AudioHost};
#[cfg(target_os = "linux")]
use super::jack;
use super::system;

/// Interface to a sound system.
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
            Self::System(host) => system::open_host(host).is_ok(),
            #[cfg(target_os = "linux")]
            Self::Jack => jack::is_running(),
        }
    }

    fn default() -> Self {
        #[cfg(target_os = "linux")]
        if jack::is_running() {
            // Its server occupies the sound card, so the system's own interface would be blocked.
            return Self::Jack;
        }
        // cpal's own choice opens it, and panics where that fails.
        #[cfg(target_os = "linux")]
        let system = cpal::HostId::Alsa;
        #[cfg(not(target_os = "linux"))]
        let system = cpal::default_host().id();
        Self::System(system)
    }
}

/// Returns the sound systems of this platform.
pub fn hosts() -> Vec<AudioHost> {
    super::prepare_thread();
    let default = HostKind::default();
    let describe = |kind: HostKind| AudioHost {
        name: kind.name().into(),
        available: kind.is_available(),
        default: kind == default,
    };
    HostKind::all().into_iter().map(describe).collect()
}

/// Returns the devices of a sound system, by default of the preferred one. Devices that cannot be
/// opened are left out, unless they are busy.
///
/// # Errors
/// Returns a one-line error if there is no such sound system or it cannot be used.
pub fn devices(host: Option<&str>) -> Result<Vec<AudioDevice>, String> {
    super::prepare_thread();
    match find_host(host)? {
        HostKind::System(host) => system::devices(host),
        #[cfg(target_os = "linux")]
        HostKind::Jack => jack::devices(),
    }
}

pub(super) fn find_host(name: Option<&str>) -> Result<HostKind, String> {
    let Some(name) = name else {
        return Ok(HostKind::default());
    };
    let kinds = HostKind::all();
    let found = kinds
        .iter()
        .find(|kind| kind.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        format!(
            "unknown sound system {name:?}; available: {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_the_default_and_errors_list_all() {
        let hosts = hosts();
        assert_eq!(hosts.iter().filter(|host| host.default).count(), 1);
        for host in &hosts {
            assert!(find_host(Some(&host.name.to_lowercase())).is_ok());
        }
        let error = find_host(Some("OSS/2")).unwrap_err();
        assert!(
            error.contains("OSS/2") && error.contains(&hosts[0].name) && !error.contains('\n'),
            "{error}"
        );
    }
}
