//! The parameter list that hosts see. Saved automation refers to the ids, so that only additions at
//! the end are allowed.

use clack_extensions::params::{ParamInfoBuffer, ParamInfoFlags, PluginParams};

use crate::host::{EFFECT, Host, INSTRUMENT};

/// `id | name | module | range | default | flags` for each parameter, in the host's order, after
/// each plugin's id.
const EXPECTED: &str = include_str!("../host_parameters.txt");

#[test]
fn hosts_see_the_same_parameters_as_before() {
    let mut listed = Vec::new();
    for id in [INSTRUMENT, EFFECT] {
        listed.push(id.to_owned());
        let mut host = Host::new(id);
        let plugin = host.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        for index in 0..params.count(&plugin) {
            let mut buffer = ParamInfoBuffer::new();
            let info = params.get_info(&plugin, index, &mut buffer).unwrap();
            let [name, module] = [info.name, info.module].map(String::from_utf8_lossy);
            // Macros are named after the control that they are bound to.
            let name = if module == "Macros" { "*".into() } else { name };
            let (min, max, default) = (info.min_value, info.max_value, info.default_value);
            let flags = [
                (ParamInfoFlags::IS_STEPPED, "stepped"),
                (ParamInfoFlags::IS_ENUM, "enum"),
                (ParamInfoFlags::IS_BYPASS, "bypass"),
                (ParamInfoFlags::IS_AUTOMATABLE, "automatable"),
                (ParamInfoFlags::IS_HIDDEN, "hidden"),
                (ParamInfoFlags::IS_READONLY, "read-only"),
            ];
            let flags: Vec<_> = flags
                .into_iter()
                .filter(|(flag, _)| info.flags.contains(*flag))
                .map(|(_, name)| name)
                .collect();
            let line = format!(
                "{} | {name} | {module} | {min}..{max} | {default:.4} | {}",
                info.id.get(),
                flags.join(" ")
            );
            listed.push(line.trim_end().to_owned());
        }
    }
    assert_eq!(listed, EXPECTED.lines().collect::<Vec<_>>());
}
