//! The parameters that a host lists, and their values as the host counts them.

use clap_sys::id::clap_id;
use ondes_player::parameter::{KnobCurve, Parameter, ParameterId, ParameterKind};
use ondes_player::product::Product;

use crate::parameters::ids_in_host_order;

/// Values as a host counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostScale {
    /// All in the parameter's unit.
    Unit,
    /// The same, but positions, 0 … 1, for parameters whose knob has a curve. For the VST3 wrapper,
    /// which passes VST3's position on in proportion: a plain value would move the curve out of
    /// saved automation.
    Position,
}

impl HostScale {
    fn is_position(self, parameter: &Parameter) -> bool {
        self == Self::Position && is_curved(parameter)
    }

    /// Returns the least and the greatest value.
    #[must_use]
    pub fn range(self, parameter: &Parameter) -> [f64; 2] {
        if self.is_position(parameter) {
            [0.0, 1.0]
        } else {
            parameter.range().map(f64::from)
        }
    }

    /// Returns the host's value for one of the table.
    #[must_use]
    pub fn host_value(self, parameter: &Parameter, value: f32) -> f64 {
        f64::from(if self.is_position(parameter) {
            parameter.normalize(value)
        } else {
            parameter.clamp(value)
        })
    }

    /// Returns the table's value for one of the host; out of range the nearest.
    #[must_use]
    pub fn table_value(self, parameter: &Parameter, value: f64) -> f32 {
        let value = value as f32;
        if self.is_position(parameter) {
            parameter.denormalize(value)
        } else {
            parameter.clamp(value)
        }
    }
}

fn is_curved(parameter: &Parameter) -> bool {
    matches!(
        parameter.kind,
        ParameterKind::Float {
            curve: KnobCurve::Skewed(_),
            ..
        }
    )
}

/// A parameter in the host's list.
#[derive(Clone, Copy, Debug)]
pub struct ListedParameter {
    /// Id for CLAP hosts.
    pub clap_id: clap_id,
    /// Number in the table.
    pub id: ParameterId,
    /// Entry of the table.
    pub parameter: &'static Parameter,
}

/// The parameters of one instance. Allocates only on construction.
pub struct ParameterList {
    /// Values as the host counts them.
    pub scale: HostScale,
    /// All, by CLAP id. A project may hold automation of one that is not listed.
    by_id: Box<[ListedParameter]>,
    /// Those that the host lists, in its order.
    listed: Box<[ListedParameter]>,
    /// Those of them that controllers can drive.
    automatable: Box<[ListedParameter]>,
}

impl ParameterList {
    /// Creates the list of a product.
    pub fn new(scale: HostScale, product: Product) -> Self {
        let all = ids_in_host_order().filter_map(|id| {
            let parameter = Parameter::get(id)?;
            Some(ListedParameter {
                clap_id: clap_id_of(parameter.id),
                id,
                parameter,
            })
        });
        let mut by_id: Box<[ListedParameter]> = all.collect();
        let listed = { by_id.iter().copied() }
            .filter(|listed| listed.parameter.applies_to(product))
            .collect::<Box<[_]>>();
        let automatable = { listed.iter().copied() }
            .filter(|listed| listed.parameter.automatable)
            .collect();
        by_id.sort_by_key(|listed| listed.clap_id);
        Self {
            scale,
            by_id,
            listed,
            automatable,
        }
    }

    /// Returns the parameters that the host lists, in its order.
    #[must_use]
    pub fn listed(&self) -> &[ListedParameter] {
        &self.listed
    }

    /// Returns those of the listed parameters that controllers can drive, in their order. A
    /// controller may also trigger what automation may not.
    #[must_use]
    pub fn automatable(&self) -> &[ListedParameter] {
        &self.automatable
    }

    /// Returns the parameter with this CLAP id, also if it is not listed.
    #[must_use]
    pub fn find(&self, clap_id: clap_id) -> Option<&ListedParameter> {
        self.by_id
            .binary_search_by_key(&clap_id, |listed| listed.clap_id)
            .ok()
            .map(|index| &self.by_id[index])
    }
}

/// Returns the id of a parameter for CLAP hosts, which saved projects hold. VST3 keeps the highest
/// bit for itself.
const fn clap_id_of(id: &str) -> clap_id {
    let (bytes, mut hash, mut index) = (id.as_bytes(), 0_u32, 0);
    while index < bytes.len() {
        hash = hash.wrapping_mul(31).wrapping_add(bytes[index] as u32);
        index += 1;
    }
    hash & !(1 << 31)
}

#[cfg(test)]
mod tests {
    use ondes_player::parameter::{GLIDE, PARAMETERS, VOICES, all};

    use super::*;

    #[test]
    fn an_effect_lists_no_parameters_of_notes_but_knows_them() {
        let effect = ParameterList::new(HostScale::Unit, Product::Effect);
        assert_eq!(effect.listed().len(), PARAMETERS.len() - 6);
        assert!(
            effect
                .listed()
                .iter()
                .all(|listed| listed.parameter.only != Some(Product::Instrument))
        );
        assert_eq!(
            effect.find(clap_id_of("voices")).map(|listed| listed.id),
            Some(VOICES)
        );
        assert!(effect.find(7).is_none());
        assert_eq!(
            ParameterList::new(HostScale::Unit, Product::Instrument)
                .listed()
                .len(),
            PARAMETERS.len() - 1
        );
    }

    #[test]
    fn values_lead_to_the_host_and_back() {
        for (_, parameter) in all() {
            let [min, max] = parameter.range();
            for scale in [HostScale::Unit, HostScale::Position] {
                let ends = [min, max].map(|end| scale.host_value(parameter, end));
                assert_eq!(ends, scale.range(parameter), "{}", parameter.id);
                for step in 0..=100 {
                    let value = parameter.denormalize(step as f32 / 100.0);
                    let host = scale.table_value(parameter, scale.host_value(parameter, value));
                    let tolerance = if parameter.steps() > 0 {
                        0.0
                    } else {
                        2e-6 * (max - min)
                    };
                    assert!(
                        (host - value).abs() <= tolerance,
                        "{}: {value}, then {host}",
                        parameter.id
                    );
                }
                assert_eq!(scale.table_value(parameter, 1e9), max, "{}", parameter.id);
            }
        }
        let glide = Parameter::get(GLIDE).unwrap();
        let [unit, position] =
            [HostScale::Unit, HostScale::Position].map(|scale| scale.host_value(glide, 500.0));
        assert!(
            unit == 500.0 && (0.5..0.7).contains(&position),
            "{position}"
        );
    }
}
