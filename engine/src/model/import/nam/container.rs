//! SlimmableContainer: a capture in several sizes, each a complete model.

use super::{metadata, method};
use crate::model::import::field::Field;
use crate::model::import::graph_builder::BuiltMethod;
use crate::model::{ModelError, Variant};

/// Returns the largest model of a container.
pub(super) fn largest<'a>(root: &Field<'a>) -> Option<Field<'a>> {
    root.find("config")?
        .find("submodels")?
        .items()
        .ok()?
        .pop()?
        .find("model")
}

/// Returns a method for each size, and the variants of all but the largest.
pub(super) fn methods(
    root: &Field<'_>,
    notes: &mut Vec<String>,
) -> Result<(Vec<BuiltMethod>, Vec<Variant>), ModelError> {
    let list = root.need("config")?.need("submodels")?;
    let submodels = list.items()?;
    let Some((largest, smaller)) = submodels.split_last() else {
        return Err(list.error("is empty"));
    };
    let rate = super::rate(root)?;
    let mut methods = Vec::new();
    let mut variants = Vec::new();
    for submodel in &submodels {
        let inner = submodel.need("model")?;
        super::check_version(&inner, notes)?;
        if inner.find("sample_rate").is_some() && super::rate(&inner)? != rate {
            return Err(inner
                .need("sample_rate")?
                .error(&format!("expected {rate} Hz, the rate of the container")));
        }
    }
    notes.dedup();
    methods.push(method(&largest.need("model")?, "forward")?);
    for (index, submodel) in smaller.iter().enumerate() {
        let name = if smaller.len() == 1 {
            "lite".to_owned()
        } else {
            format!("size{}", index + 1)
        };
        let chosen = format!("forward.{name}");
        methods.push(method(&submodel.need("model")?, &chosen)?);
        let levels = metadata::levels(&submodel.need("model")?);
        variants.push(Variant {
            name,
            method: chosen,
            room: None,
            up_to: submodel.need("max_value")?.finite()?,
            levels,
        });
    }
    Ok((methods, variants))
}
