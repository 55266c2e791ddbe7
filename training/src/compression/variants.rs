//! Variants: smaller sizes of a model in the same file.

use anyhow::{Context, ensure};
use ondes_engine::model::{Header, Method, Model, Variant, Weights};

/// Name of an instrument's method after the voices.
const ROOM: &str = "room";

/// Returns a variant as a model of its own.
///
/// # Errors
/// Returns an error if that model is invalid.
pub fn extract(model: &Model, variant: &Variant) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let base_method = base_method_name(&header)?;
    let room = header
        .method(variant.room.as_deref().unwrap_or(ROOM))
        .map(|room| renamed(room, ROOM));
    header.methods = std::iter::once(renamed(model.method(&variant.method)?, base_method))
        .chain(room)
        .collect();
    header.variants.clear();
    let weights = weights_of(model.weights(), &header.methods);
    Ok(Model::new(header, weights)?.with_attacks(model.attacks().cloned())?)
}

/// Returns the model without its variants; one that can have none as it is.
///
/// # Errors
/// Returns an error if the rest is no valid model, which is a bug.
pub fn without_variants(model: &Model) -> anyhow::Result<Model> {
    // Codecs and generators have none.
    if model.header().base_method_name().is_none() {
        return Ok(model.clone());
    }
    let header = model.header().without_variants();
    let weights = weights_of(model.weights(), &header.methods);
    Ok(Model::new(header, weights)?.with_attacks(model.attacks().cloned())?)
}

/// Adds `smaller` to the model `base` as a variant, or replaces the variant of that name. Variants
/// divide the size range from 0 to 1 evenly, the cheapest first.
///
/// # Errors
/// Returns an error if kind, sample rate or ports differ, the kind has no variants, or `smaller` is
/// not cheaper.
pub fn insert(base: &Model, smaller: &Model, name: &str) -> anyhow::Result<Model> {
    let header = base.header();
    let base_method = base_method_name(header)?;
    ensure!(
        smaller.header().kind == header.kind,
        "the smaller model is of another kind than the base model"
    );
    let rates = (smaller.header().sample_rate, header.sample_rate);
    ensure!(
        rates.0 == rates.1,
        "the smaller model has a sample rate of {} Hz, the base model {} Hz",
        rates.0,
        rates.1
    );
    let cost = |method: &Method| method.multiply_adds_per_second(header.sample_rate);
    let method = smaller.method(base_method).context("the smaller model")?;
    ensure!(
        cost(method) < cost(base.method(base_method)?),
        "the smaller model costs as much as the base model"
    );
    let rooms = [base, smaller].map(|model| model.header().method(ROOM));
    ensure!(
        rooms[0].is_some() == rooms[1].is_some(),
        "only one of the two models has a room"
    );
    // A room equal to the base model's is shared.
    let own_room = rooms[1].filter(|room| {
        let weights = |model: &Model| weights_of(model.weights(), std::slice::from_ref(*room));
        rooms[0] != Some(*room) || weights(base) != weights(smaller)
    });

    let mut all = header.clone();
    let replaced: Vec<Variant> = all
        .variants
        .extract_if(.., |variant| variant.name == name)
        .collect();
    all.methods.retain(|method| {
        let names = replaced
            .iter()
            .flat_map(|old| std::iter::once(&old.method).chain(&old.room));
        !names.into_iter().any(|old| *old == method.name)
    });
    let variant = Variant {
        name: name.into(),
        method: format!("{base_method}.{name}"),
        room: own_room.map(|_| format!("{ROOM}.{name}")),
        up_to: 0.0,
        levels: smaller.header().card.levels,
    };
    let prefix = format!("{name}:");
    all.methods
        .push(prefixed(&renamed(method, &variant.method), &prefix));
    all.methods.extend(
        own_room
            .zip(variant.room.as_ref())
            .map(|(room, name)| prefixed(&renamed(room, name), &prefix)),
    );
    all.variants.push(variant);
    let variant_cost = |variant: &Variant| all.method(&variant.method).map_or(f64::INFINITY, cost);
    let mut ordered: Vec<(f64, Variant)> = all
        .variants
        .iter()
        .map(|variant| (variant_cost(variant), variant.clone()))
        .collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = ordered.len() + 1;
    let ranged = |(index, (_, variant))| Variant {
        up_to: (index + 1) as f32 / steps as f32,
        ..variant
    };
    all.variants = ordered.into_iter().enumerate().map(ranged).collect();

    let mut weights = weights_of(base.weights(), &all.methods);
    let added: Vec<Method> = std::iter::once(method).chain(own_room).cloned().collect();
    for (weight, tensor) in weights_of(smaller.weights(), &added).iter() {
        weights.insert(format!("{prefix}{weight}"), tensor.clone());
    }
    Ok(Model::new(all, weights)?.with_attacks(base.attacks().cloned())?)
}

/// Returns the name of the method that variants replace.
fn base_method_name(header: &Header) -> anyhow::Result<&'static str> {
    header
        .base_method_name()
        .context("only effects and instruments have variants")
}

/// Returns a method under another name.
fn renamed(method: &Method, name: &str) -> Method {
    Method {
        name: name.into(),
        ..method.clone()
    }
}

/// Prefixes the names of a method's nodes, so that they do not share weights with other methods.
fn prefixed(method: &Method, prefix: &str) -> Method {
    let mut method = method.clone();
    let ports: Vec<String> = method.inputs.iter().map(|port| port.name.clone()).collect();
    for node in &mut method.nodes {
        node.name.insert_str(0, prefix);
        node.inputs
            .iter_mut()
            .filter(|input| !ports.contains(input))
            .for_each(|input| input.insert_str(0, prefix));
    }
    for port in method
        .outputs
        .iter_mut()
        .filter(|port| !ports.contains(&port.name))
    {
        port.name.insert_str(0, prefix);
    }
    method
}

/// Selects the weights of some methods.
fn weights_of(weights: &Weights, methods: &[Method]) -> Weights {
    let mut selected = Weights::default();
    weights
        .used_by(methods)
        .for_each(|(name, tensor)| selected.insert(name, tensor.clone()));
    selected
}

#[cfg(test)]
mod tests {
    use ondes_engine::instrument::{Event, EventKind};
    use ondes_engine::pipeline::{Pipeline, PipelineOptions};

    use super::*;
    use crate::tasks::capture::architecture::Architecture;
    use crate::tasks::capture::measure::play;
    use crate::tasks::instrument::network::untrained;

    fn capture(size: &str, seed: u64) -> Model {
        Architecture::named(size)
            .and_then(|size| size.untrained(seed, 48_000))
            .expect("a model")
    }

    #[test]
    fn variants_are_ordered_by_cost_and_extracted_unchanged() {
        let (base, middle, small) = (
            capture("standard", 1),
            capture("nano", 2),
            capture("lstm-3", 3),
        );
        let both =
            insert(&base, &middle, "balanced").and_then(|both| insert(&both, &small, "light"));
        let both = both.expect("they fit");
        let places: Vec<(&str, f32)> = both
            .header()
            .variants
            .iter()
            .map(|variant| (variant.name.as_str(), variant.up_to))
            .collect();
        assert_eq!(places, [("light", 1.0 / 3.0), ("balanced", 2.0 / 3.0)]);
        assert_eq!(
            both.parameters(),
            base.parameters() + middle.parameters() + small.parameters()
        );
        let dry: Vec<f32> = (0..2_000)
            .map(|sample| 0.5 * (0.05 * sample as f32).sin())
            .collect();
        for (variant, model) in both.header().variants.iter().zip([&small, &middle]) {
            let out = extract(&both, variant).expect("a model");
            assert_eq!(
                play(&out, &dry).expect("a playable model"),
                play(model, &dry).expect("a playable model"),
                "{}",
                variant.name
            );
        }
        assert_eq!(
            play(&both, &dry).expect("a playable model"),
            play(&base, &dry).expect("a playable model")
        );
        let alone = without_variants(&both).expect("a model");
        assert_eq!(alone, base);
        // The base hash does not depend on the variants.
        assert_eq!(
            (both.base_hash(), base.base_hash()),
            (base.content_hash(), base.content_hash())
        );
        assert_ne!(both.content_hash(), base.content_hash());

        // A variant of the same name is replaced with all its weights.
        let other = capture("lstm-4", 4);
        let again = insert(&both, &other, "light").expect("it fits");
        assert_eq!(again.header().variants.len(), 2);
        assert_eq!(
            again.parameters(),
            base.parameters() + middle.parameters() + other.parameters()
        );
        let error = insert(&small, &base, "light")
            .expect_err("it is larger")
            .to_string();
        assert!(error.contains("costs as much"), "{error}");
    }

    #[test]
    fn an_instrument_variant_keeps_a_different_room() {
        let model = |units: usize, seed: u64| {
            let config = format!(
                "name = \"A\"\ndata = \"\"\nout = \"\"\nwork = \"\"\nseed = {seed}\n[network]\nrecurrent_units = {units}\n"
            );
            untrained(&toml::from_str(&config).expect("a configuration")).expect("a model")
        };
        let (base, small) = (model(24, 1), model(8, 2));
        let both = insert(&base, &small, "light").expect("it fits");
        assert_eq!(
            both.header().variants[0].room.as_deref(),
            Some("room.light")
        );
        let out = extract(&both, &both.header().variants[0]).expect("a model");
        assert_eq!(
            (&out.header().methods[0].name, out.parameters()),
            (&"synth".to_owned(), small.parameters())
        );
        let sound = |model: &Model, size| {
            let mut pipeline = Pipeline::new(
                model,
                &PipelineOptions {
                    size,
                    ..PipelineOptions::default()
                },
            )
            .expect("a playable model");
            let kind = EventKind::NoteOn {
                channel: 0,
                key: 60,
                velocity: 0.8,
            };
            pipeline
                .handle(Event { at: 0, kind })
                .expect("there is room");
            let mut sound = vec![0.0; 4_800];
            pipeline.process(&[], &mut sound);
            sound
        };
        let light = sound(&small, 1.0);
        assert!(light.iter().any(|sample| *sample != 0.0));
        assert_eq!(sound(&both, 0.3), light);
        assert_eq!(sound(&out, 1.0), light);
        assert_eq!(sound(&both, 1.0), sound(&base, 1.0));
        // A replaced variant's room is removed too.
        let again = insert(&both, &model(6, 3), "light").expect("it fits");
        assert_eq!(again.header().methods.len(), 4);

        let mut header = small.header().clone();
        header.methods.truncate(1);
        let dry = Model::new(
            header,
            weights_of(small.weights(), &small.header().methods[..1]),
        )
        .expect("a model");
        let error = insert(&base, &dry, "light")
            .expect_err("it has no room")
            .to_string();
        assert!(error.contains("room"), "{error}");
        // An equal room is shared.
        let mut weights = small.weights().clone();
        for (name, tensor) in weights_of(base.weights(), &base.header().methods[1..]).iter() {
            weights.insert(name, tensor.clone());
        }
        let alike = Model::new(small.header().clone(), weights).expect("a model");
        let both = insert(&base, &alike, "light").expect("it fits");
        assert_eq!(
            (
                both.header().variants[0].room.as_ref(),
                both.header().methods.len()
            ),
            (None, 3)
        );
        assert_eq!(sound(&both, 0.0), sound(&alike, 1.0));
    }
}
