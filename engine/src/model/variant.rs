//! Variants: smaller versions of a model for slow machines.

use serde::{Deserialize, Serialize};

use super::{Header, Kind, Levels};

/// Method that can replace an effect's `forward` or an instrument's `synth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Display name.
    pub name: String,
    /// Name of its method, which has the ports of the base method.
    pub method: String,
    /// Name of the method that replaces an instrument's `room`, if the variant has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Upper bound of the sizes that select this variant: a size below 1 selects the first variant
    /// with a larger bound.
    pub up_to: f32,
    /// Its own calibration levels and loudness, where they are not those on the model's card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
}

impl Header {
    /// Returns the name of the method that variants replace: `forward` of effects, `synth` of
    /// instruments, `None` for other kinds.
    #[must_use]
    pub fn base_method_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Effect => Some("forward"),
            Kind::Instrument => Some("synth"),
            _ => None,
        }
    }

    /// Returns the header without variants and the methods that only they use.
    #[must_use]
    pub fn without_variants(&self) -> Self {
        let mut header = self.clone();
        let variants = std::mem::take(&mut header.variants);
        let is_theirs = |name: &String| {
            variants
                .iter()
                .any(|own| own.method == *name || own.room.as_ref() == Some(name))
        };
        header.methods.retain(|method| !is_theirs(&method.name));
        header
    }

    /// Returns the variant that plays at `size`, 0 to 1; `None` for the base method, which always
    /// plays at 1.
    #[must_use]
    pub fn variant(&self, size: f32) -> Option<&Variant> {
        self.variants
            .iter()
            .find(|variant| size < variant.up_to.min(1.0))
    }

    /// Returns the known levels of what plays at `size`, 0 to 1: those of the variant, or else of
    /// the card.
    #[must_use]
    pub fn levels(&self, size: f32) -> Levels {
        let own = self
            .variant(size)
            .and_then(|variant| variant.levels)
            .unwrap_or_default();
        own.or(self.card.levels.unwrap_or_default())
    }

    /// Returns one size for each selectable method, from 1 (the base method) down through the
    /// variants.
    #[must_use]
    pub fn sizes(&self) -> Vec<f32> {
        let below = |index: usize| {
            if index == 0 {
                0.0
            } else {
                self.variants[index - 1].up_to.max(0.0)
            }
        };
        let reached = |(index, variant): (usize, &Variant)| {
            let size = below(index);
            (size < variant.up_to.min(1.0)).then_some(size)
        };
        let variants = self.variants.iter().enumerate().rev();
        std::iter::once(1.0)
            .chain(variants.filter_map(reached))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Card, FORMAT};

    #[test]
    fn a_size_selects_the_first_variant_with_a_larger_bound() {
        let variant = |name: &str, up_to| Variant {
            name: name.into(),
            method: format!("forward.{name}"),
            room: None,
            up_to,
            levels: None,
        };
        let header = Header {
            format: FORMAT,
            kind: Kind::Effect,
            sample_rate: 48_000,
            methods: Vec::new(),
            controls: Vec::new(),
            variants: vec![
                variant("nano", 0.0),
                variant("lite", 0.5),
                variant("odd", 7.0),
            ],
            oversampling: 1,
            performance: None,
            card: Card::default(),
        };
        let chosen = |size| header.variant(size).map(|variant| variant.name.as_str());
        assert_eq!(
            [-0.1, 0.0, 0.49].map(chosen),
            [Some("nano"), Some("lite"), Some("lite")]
        );
        assert_eq!(
            [0.5, 0.99, 1.0, f32::NAN].map(chosen),
            [Some("odd"), Some("odd"), None, None]
        );
        // No size from 0 to 1 selects the smallest.
        assert_eq!(header.sizes(), [1.0, 0.5, 0.0]);
        assert_eq!(
            header.sizes().into_iter().map(chosen).collect::<Vec<_>>(),
            [None, Some("odd"), Some("lite")]
        );
    }
}
