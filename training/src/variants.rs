//! Smaller sizes of a model in its own file: put in as variants, or taken out as models of their own.

use anyhow::{Context, ensure};
use ondes_engine::model::{Kind, Method, Model, Variant, Weights};

/// The method that a variant can take the place of.
const WHOLE: &str = "forward";

/// A variant as a model of its own.
///
/// # Errors
/// When it is no model by itself.
pub fn take_out(model: &Model, variant: &Variant) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let method = model.method(&variant.method)?.clone();
    header.methods = vec![Method { name: WHOLE.into(), ..method }];
    header.variants.clear();
    let nodes = &header.methods[0].nodes;
    let own = |name: &str| name.rsplit_once('.').is_some_and(|(node, _)| nodes.iter().any(|own| own.name == node));
    let mut weights = Weights::default();
    for (name, tensor) in model.weights().iter().filter(|(name, _)| own(name)) {
        weights.insert(name, tensor.clone());
    }
    Ok(Model::new(header, weights)?)
}

/// The model with a smaller one as a variant of that name. Sizes share the way from 0 to 1 evenly, the cheapest first; a
/// variant that has the name already is replaced.
///
/// # Errors
/// When the two are no effects of equal ports and rates, or the smaller one costs no less.
pub fn put_in(whole: &Model, smaller: &Model, name: &str) -> anyhow::Result<Model> {
    let header = whole.header();
    ensure!(header.kind == Kind::Effect, "only effects hold smaller sizes of themselves");
    let rates = (smaller.header().sample_rate, header.sample_rate);
    ensure!(rates.0 == rates.1, "the smaller one is at {} Hz, the whole at {} Hz", rates.0, rates.1);
    let work = |model: &Model, method: &str| {
        model.method(method).map(|method| method.multiply_adds_per_second(header.sample_rate))
    };
    let cost = work(smaller, WHOLE).context("the smaller one")?;
    ensure!(cost < work(whole, WHOLE)?, "the smaller one costs as much as the whole");
    // Its nodes must not be taken for those of the others, whose weights they would share.
    let prefix = format!("{name}:");
    let method_name = format!("{WHOLE}.{name}");
    let mut method = smaller.method(WHOLE)?.clone();
    method.name.clone_from(&method_name);
    let ports: Vec<String> = method.inputs.iter().map(|port| port.name.clone()).collect();
    for node in &mut method.nodes {
        node.name.insert_str(0, &prefix);
        node.inputs.iter_mut().filter(|input| !ports.contains(input)).for_each(|input| input.insert_str(0, &prefix));
    }
    for port in method.outputs.iter_mut().filter(|port| !ports.contains(&port.name)) {
        port.name.insert_str(0, &prefix);
    }
    let mut all = header.clone();
    let replaced: Vec<String> =
        all.variants.iter().filter(|variant| variant.name == name).map(|variant| variant.method.clone()).collect();
    all.variants.retain(|variant| variant.name != name);
    all.methods.retain(|method| !replaced.contains(&method.name) && method.name != method_name);
    all.methods.push(method);
    all.variants.push(Variant { name: name.into(), method: method_name, up_to: 0.0 });
    let cost_of = |variant: &Variant| {
        let method = all.methods.iter().find(|method| method.name == variant.method);
        method.map_or(f64::INFINITY, |method| method.multiply_adds_per_second(header.sample_rate))
    };
    let mut ordered: Vec<(f64, Variant)> =
        all.variants.iter().map(|variant| (cost_of(variant), variant.clone())).collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = ordered.len() + 1;
    all.variants = ordered
        .into_iter()
        .enumerate()
        .map(|(place, (_, variant))| Variant { up_to: (place + 1) as f32 / steps as f32, ..variant })
        .collect();
    let used = |name: &str| {
        let node = name.rsplit_once('.').map_or(name, |(node, _)| node);
        all.methods.iter().flat_map(|method| &method.nodes).any(|own| own.name == node)
    };
    let mut weights = Weights::default();
    for (name, tensor) in whole.weights().iter().filter(|(name, _)| used(name)) {
        weights.insert(name, tensor.clone());
    }
    let own = smaller.method(WHOLE)?;
    for (weight, tensor) in smaller.weights().iter() {
        if weight.rsplit_once('.').is_some_and(|(node, _)| own.nodes.iter().any(|own| own.name == node)) {
            weights.insert(format!("{prefix}{weight}"), tensor.clone());
        }
    }
    Ok(Model::new(all, weights)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::architecture::Architecture;
    use crate::capture::measure::play;

    fn capture(size: &str, seed: u64) -> Model {
        Architecture::named(size).and_then(|size| size.untrained(seed, 48_000)).expect("a model")
    }

    #[test]
    fn sizes_find_their_places_and_come_out_as_they_went_in() {
        let (whole, middle, small) = (capture("standard", 1), capture("nano", 2), capture("lstm-3", 3));
        let both = put_in(&whole, &middle, "balanced").and_then(|both| put_in(&both, &small, "light"));
        let both = both.expect("they fit");
        let places: Vec<(&str, f32)> =
            both.header().variants.iter().map(|variant| (variant.name.as_str(), variant.up_to)).collect();
        assert_eq!(places, [("light", 1.0 / 3.0), ("balanced", 2.0 / 3.0)]);
        assert_eq!(both.parameters(), whole.parameters() + middle.parameters() + small.parameters());
        let dry: Vec<f32> = (0..2_000).map(|sample| 0.5 * (0.05 * sample as f32).sin()).collect();
        for (variant, model) in both.header().variants.iter().zip([&small, &middle]) {
            let out = take_out(&both, variant).expect("a model");
            assert_eq!(play(&out, &dry).expect("it plays"), play(model, &dry).expect("it plays"), "{}", variant.name);
        }
        assert_eq!(play(&both, &dry).expect("it plays"), play(&whole, &dry).expect("it plays"));

        // A name is taken once; what it named before is gone with all its weights.
        let other = capture("lstm-4", 4);
        let again = put_in(&both, &other, "light").expect("it fits");
        assert_eq!(again.header().variants.len(), 2);
        assert_eq!(again.parameters(), whole.parameters() + middle.parameters() + other.parameters());
        let error = put_in(&small, &whole, "light").expect_err("it is larger").to_string();
        assert!(error.contains("costs as much"), "{error}");
    }
}
