//! Variants: the same model in smaller sizes, for machines or moments that cannot afford the whole of it.

use serde::{Deserialize, Serialize};

use super::{ModelError, Header, Kind, limits};

/// A method that can take the place of an effect's `forward` or an instrument's `synth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name to show.
    pub name: String,
    /// Its method, with the ports of the whole.
    pub method: String,
    /// The method that takes the place of an instrument's `room`, where it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// A size below 1 takes the first variant that it is below of, else the whole.
    pub up_to: f32,
}

impl Header {
    /// The method that variants take the place of; none where the kind knows no sizes.
    #[must_use]
    pub fn base_method_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Effect => Some("forward"),
            Kind::Instrument => Some("synth"),
            _ => None,
        }
    }

    /// The header without variants, and without the methods that only they have.
    #[must_use]
    pub fn without_variants(&self) -> Self {
        let mut header = self.clone();
        let variants = std::mem::take(&mut header.variants);
        let is_theirs =
            |name: &String| variants.iter().any(|own| own.method == *name || own.room.as_ref() == Some(name));
        header.methods.retain(|method| !is_theirs(&method.name));
        header
    }

    /// The variant that plays at a size from 0 to 1; none where the whole does, as it always does at 1.
    #[must_use]
    pub fn variant(&self, size: f32) -> Option<&Variant> {
        self.variants.iter().find(|variant| size < variant.up_to.min(1.0))
    }

    /// The sizes that play in turn from 1 down, the whole and then each variant that a size leads to: one size for each.
    #[must_use]
    pub fn sizes(&self) -> Vec<f32> {
        let below = |place: usize| if place == 0 { 0.0 } else { self.variants[place - 1].up_to.max(0.0) };
        let reached = |(place, variant): (usize, &Variant)| {
            let size = below(place);
            (size < variant.up_to.min(1.0)).then_some(size)
        };
        let variants = self.variants.iter().enumerate().rev();
        std::iter::once(1.0).chain(variants.filter_map(reached)).collect()
    }
}

/// An error unless each variant has a method like the whole's, and they are in the order of their sizes.
pub(super) fn check(header: &Header) -> Result<(), ModelError> {
    ModelError::limit("the number of variants", header.variants.len(), limits::METHODS)?;
    let error = |variant: &Variant, reason: &str| Err(ModelError::Header(format!("variant {:?} {reason}", variant.name)));
    let mut above = f32::NEG_INFINITY;
    for variant in &header.variants {
        ModelError::limit("the length of a variant's name", variant.name.len(), limits::NAME_BYTES)?;
        let whole = header.base_method_name().and_then(|whole| header.method(whole));
        let Some((method, whole)) = header.method(&variant.method).zip(whole) else {
            return error(variant, "names a method that is not there, or there is no whole");
        };
        if variant.room.as_ref().is_some_and(|room| header.method(room).is_none()) {
            return error(variant, "names a room that is not there");
        }
        if (&method.inputs, method.outputs.len()) != (&whole.inputs, whole.outputs.len()) {
            return error(variant, "has other ports than the whole");
        }
        let pairs = method.outputs.iter().zip(&whole.outputs);
        if pairs.into_iter().any(|(a, b)| (a.channels, a.ratio) != (b.channels, b.ratio)) {
            return error(variant, "has other ports than the whole");
        }
        if !(variant.up_to.is_finite() && variant.up_to > above) {
            return error(variant, "is not above the one before it");
        }
        above = variant.up_to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Card, FORMAT};

    #[test]
    fn a_size_takes_the_first_variant_that_it_is_below_of() {
        let variant =
            |name: &str, up_to| Variant { name: name.into(), method: format!("forward.{name}"), room: None, up_to };
        let header = Header {
            format: FORMAT,
            kind: Kind::Effect,
            sample_rate: 48_000,
            methods: Vec::new(),
            controls: Vec::new(),
            variants: vec![variant("nano", 0.0), variant("lite", 0.5), variant("odd", 7.0)],
            performance: None,
            card: Card::default(),
        };
        let chosen = |size| header.variant(size).map(|variant| variant.name.as_str());
        assert_eq!([-0.1, 0.0, 0.49].map(chosen), [Some("nano"), Some("lite"), Some("lite")]);
        assert_eq!([0.5, 0.99, 1.0, f32::NAN].map(chosen), [Some("odd"), Some("odd"), None, None]);
        // No size from 0 to 1 leads to the smallest.
        assert_eq!(header.sizes(), [1.0, 0.5, 0.0]);
        assert_eq!(header.sizes().into_iter().map(chosen).collect::<Vec<_>>(), [None, Some("odd"), Some("lite")]);
    }
}
