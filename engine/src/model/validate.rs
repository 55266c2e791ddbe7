//! Checks that a header and its methods are consistent and within the [limits](super::limits).

use super::graph::Shapes;
use super::{FORMAT, FORMAT_COMPRESSED, Header, Method, ModelError, Node, Variant, limits};

/// Checks names, ranges, variants and counts of a header; methods are checked by [`check_method`].
pub(super) fn check_header(header: &Header) -> Result<(), ModelError> {
    if !(FORMAT..=FORMAT_COMPRESSED).contains(&header.format) {
        return Err(ModelError::Version {
            found: header.format.into(),
            supported: FORMAT_COMPRESSED,
        });
    }
    if !limits::SAMPLE_RATES.contains(&header.sample_rate) {
        return Err(ModelError::Header(format!(
            "sample rate {} Hz is out of range: {} to {} Hz are supported",
            header.sample_rate,
            limits::SAMPLE_RATES.start(),
            limits::SAMPLE_RATES.end()
        )));
    }
    if !limits::OVERSAMPLINGS.contains(&header.oversampling) {
        return Err(ModelError::Header(format!(
            "oversampling factor {} is not supported; allowed: 1, 2, 4, 8",
            header.oversampling
        )));
    }
    ModelError::limit(
        "the number of methods",
        header.methods.len(),
        limits::METHODS,
    )?;
    ModelError::limit(
        "the number of controls",
        header.controls.len(),
        limits::CONTROLS,
    )?;
    ModelError::limit(
        "the length of the description",
        header.card.description.len(),
        limits::TEXT_BYTES,
    )?;
    // JSON cannot represent NaN and infinity, but numbers that overflow.
    let measured = header
        .card
        .quality
        .iter()
        .flat_map(|measure| [Some(measure.value), measure.baseline])
        .flatten();
    let levels = header
        .variants
        .iter()
        .filter_map(|variant| variant.levels.as_ref())
        .chain(&header.card.levels);
    let levels = levels.flat_map(|levels| levels.values());
    let trained = header
        .card
        .training
        .iter()
        .flat_map(|training| [training.corpus_seconds, training.validation_loss]);
    if !measured
        .chain(trained)
        .chain(levels)
        .all(|value| (value as f32).is_finite())
    {
        return Err(ModelError::Header(
            "the card contains a NaN, an infinity or a number beyond 32 bits".into(),
        ));
    }
    if header
        .performance
        .as_ref()
        .is_some_and(|performance| !performance.is_finite())
    {
        return Err(ModelError::Header(
            "the performance settings contain a NaN or an infinity".into(),
        ));
    }
    for (index, method) in header.methods.iter().enumerate() {
        if header.methods[..index]
            .iter()
            .any(|other| other.name == method.name)
        {
            return Err(ModelError::Header(format!(
                "two methods are named {:?}",
                method.name
            )));
        }
    }
    check_variants(header)?;
    for (index, control) in header.controls.iter().enumerate() {
        ModelError::limit(
            "the length of a control's name",
            control.name.len(),
            limits::NAME_BYTES,
        )?;
        if !control.is_valid() {
            return Err(ModelError::Header(format!(
                "control {:?} has an invalid range: {} to {}, default {}",
                control.name, control.min, control.max, control.default
            )));
        }
        if header.controls[..index]
            .iter()
            .any(|other| other.name == control.name)
        {
            return Err(ModelError::Header(format!(
                "two controls are named {:?}",
                control.name
            )));
        }
    }
    Ok(())
}

/// Checks the sizes of a method whose shapes are known, before anything is allocated for it.
pub(super) fn check_method(method: &Method, shapes: &Shapes) -> Result<(), ModelError> {
    ModelError::limit(
        "the length of a method's name",
        method.name.len(),
        limits::NAME_BYTES,
    )?;
    ModelError::limit(
        format!("the number of nodes of method {:?}", method.name),
        method.nodes.len(),
        limits::NODES,
    )?;
    ModelError::limit(
        format!("the block of method {:?}", method.name),
        method.block,
        limits::BLOCK,
    )?;
    for shape in &shapes.values {
        ModelError::limit("the number of channels", shape.channels, limits::CHANNELS)?;
    }
    for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
        ModelError::limit(
            "the length of a node's name",
            node.name.len(),
            limits::NAME_BYTES,
        )?;
        node.op.operation().check_limits()?;
        for spec in node.op.weights(&inputs) {
            let values = spec
                .shape
                .iter()
                .try_fold(1_usize, |product, &extent| product.checked_mul(extent));
            let what = format!("the size of weight {}.{}", node.name, spec.name);
            ModelError::limit(
                what,
                values.unwrap_or(usize::MAX),
                limits::FILE_BYTES / size_of::<f32>(),
            )?;
        }
    }
    ModelError::limit(
        format!(
            "the number of values per stream of method {:?}",
            method.name
        ),
        method.held_values(shapes, 1, 1),
        limits::STREAM_VALUES,
    )?;
    check_warm_up(method, shapes)
}

/// Returns an error if a warm-up is too long or a node cannot be warmed up by silence.
fn check_warm_up(method: &Method, shapes: &Shapes) -> Result<(), ModelError> {
    if method.warm_up == 0 {
        return Ok(());
    }
    if let Some(input) = method.fed_back().next() {
        let (name, port) = (&method.name, &method.inputs[input].name);
        return Err(ModelError::Header(format!(
            "method {name:?}: has a warm-up, and the input {port:?}, which is fed back"
        )));
    }
    let is_excluded = |node: &&Node| !node.op.operation().can_warm_up();
    if let Some(node) = method.nodes.iter().find(is_excluded) {
        let reason =
            "generates sound, has attention or is a long convolution, and such a method cannot have a warm-up".into();
        return Err(ModelError::Node {
            method: method.name.clone(),
            node: node.name.clone(),
            reason,
        });
    }
    let nodes = method
        .nodes
        .iter()
        .zip(shapes.node_inputs())
        .zip(&shapes.values[method.inputs.len()..]);
    let per_sample: f64 = nodes
        .map(|((node, inputs), out)| node.op.multiply_adds_per_sample(&inputs, *out))
        .sum();
    let samples = method.warm_up.saturating_add(method.block) as f64;
    let what = format!(
        "the number of multiply-adds of the warm-up of method {:?}",
        method.name
    );
    ModelError::limit(
        what,
        (samples * per_sample.max(1.0)) as usize,
        limits::WARM_UP_MULTIPLY_ADDS,
    )
}

/// Returns an error unless each variant has a method with the ports of the base method, in
/// ascending order of size.
fn check_variants(header: &Header) -> Result<(), ModelError> {
    ModelError::limit(
        "the number of variants",
        header.variants.len(),
        limits::METHODS,
    )?;
    let error = |variant: &Variant, reason: &str| {
        Err(ModelError::Header(format!(
            "variant {:?} {reason}",
            variant.name
        )))
    };
    let mut above = f32::NEG_INFINITY;
    for variant in &header.variants {
        ModelError::limit(
            "the length of a variant's name",
            variant.name.len(),
            limits::NAME_BYTES,
        )?;
        let base = header
            .base_method_name()
            .and_then(|name| header.method(name));
        let Some((method, base)) = header.method(&variant.method).zip(base) else {
            return error(
                variant,
                "names a missing method, or the model has no base method",
            );
        };
        if variant
            .room
            .as_ref()
            .is_some_and(|room| header.method(room).is_none())
        {
            return error(variant, "names a missing room method");
        }
        if (&method.inputs, method.outputs.len()) != (&base.inputs, base.outputs.len()) {
            return error(variant, "has other ports than the base method");
        }
        let pairs = method.outputs.iter().zip(&base.outputs);
        if pairs
            .into_iter()
            .any(|(a, b)| (a.channels, a.ratio) != (b.channels, b.ratio))
        {
            return error(variant, "has other ports than the base method");
        }
        if !(variant.up_to.is_finite() && variant.up_to > above) {
            return error(
                variant,
                "must have a finite bound above that of the variant before it",
            );
        }
        above = variant.up_to;
    }
    Ok(())
}
