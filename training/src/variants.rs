//! Smaller sizes of a model in its own file: put in as variants, or taken out as models of their own.

use anyhow::{Context, ensure};
use ondes_engine::model::{Header, Method, Model, Variant, Weights};

/// The method around an instrument's voices.
const ROOM: &str = "room";

/// A variant as a model of its own.
///
/// # Errors
/// When it is no model by itself.
pub fn take_out(model: &Model, variant: &Variant) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let whole = whole(&header)?;
    let room = header.method(variant.room.as_deref().unwrap_or(ROOM)).map(|room| named(room, ROOM));
    header.methods = std::iter::once(named(model.method(&variant.method)?, whole)).chain(room).collect();
    header.variants.clear();
    let weights = used(model.weights(), &header.methods);
    Ok(Model::new(header, weights)?)
}

/// The model without its smaller sizes.
///
/// # Errors
/// When it is no effect or instrument.
pub fn alone(model: &Model) -> anyhow::Result<Model> {
    whole(model.header())?;
    let header = model.header().without_variants();
    let weights = used(model.weights(), &header.methods);
    Ok(Model::new(header, weights)?)
}

/// The model with a smaller one as a variant of that name. Sizes share the way from 0 to 1 evenly, the cheapest first; a
/// variant that has the name already is replaced.
///
/// # Errors
/// When the two are no models of one kind with equal ports and rates, of a kind that knows sizes, or the smaller one costs no
/// less.
pub fn put_in(whole: &Model, smaller: &Model, name: &str) -> anyhow::Result<Model> {
    let header = whole.header();
    let entry = self::whole(header)?;
    ensure!(smaller.header().kind == header.kind, "the smaller one is of another kind");
    let rates = (smaller.header().sample_rate, header.sample_rate);
    ensure!(rates.0 == rates.1, "the smaller one is at {} Hz, the whole at {} Hz", rates.0, rates.1);
    let work = |method: &Method| method.multiply_adds_per_second(header.sample_rate);
    let method = smaller.method(entry).context("the smaller one")?;
    ensure!(work(method) < work(whole.method(entry)?), "the smaller one costs as much as the whole");
    let rooms = [whole, smaller].map(|model| model.header().method(ROOM));
    ensure!(rooms[0].is_some() == rooms[1].is_some(), "only one of the two has a room");
    // One that is the same is there already.
    let own_room = rooms[1].filter(|room| {
        let weights = |model: &Model| used(model.weights(), std::slice::from_ref(*room));
        rooms[0] != Some(*room) || weights(whole) != weights(smaller)
    });

    let mut all = header.clone();
    let replaced: Vec<Variant> = all.variants.extract_if(.., |variant| variant.name == name).collect();
    all.methods.retain(|method| {
        let names = replaced.iter().flat_map(|old| std::iter::once(&old.method).chain(&old.room));
        !names.into_iter().any(|old| *old == method.name)
    });
    let variant = Variant {
        name: name.into(),
        method: format!("{entry}.{name}"),
        room: own_room.map(|_| format!("{ROOM}.{name}")),
        up_to: 0.0,
    };
    let prefix = format!("{name}:");
    all.methods.push(prefixed(&named(method, &variant.method), &prefix));
    all.methods.extend(own_room.zip(variant.room.as_ref()).map(|(room, name)| prefixed(&named(room, name), &prefix)));
    all.variants.push(variant);
    let cost = |variant: &Variant| all.method(&variant.method).map_or(f64::INFINITY, work);
    let mut ordered: Vec<(f64, Variant)> =
        all.variants.iter().map(|variant| (cost(variant), variant.clone())).collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = ordered.len() + 1;
    let place = |(place, (_, variant))| Variant { up_to: (place + 1) as f32 / steps as f32, ..variant };
    all.variants = ordered.into_iter().enumerate().map(place).collect();

    let mut weights = used(whole.weights(), &all.methods);
    let brought: Vec<Method> = std::iter::once(method).chain(own_room).cloned().collect();
    for (weight, tensor) in used(smaller.weights(), &brought).iter() {
        weights.insert(format!("{prefix}{weight}"), tensor.clone());
    }
    Ok(Model::new(all, weights)?)
}

/// The method that variants take the place of.
fn whole(header: &Header) -> anyhow::Result<&'static str> {
    header.base_method_name().context("only effects and instruments hold smaller sizes of themselves")
}

/// A method by another name.
fn named(method: &Method, name: &str) -> Method {
    Method { name: name.into(), ..method.clone() }
}

/// A method whose nodes are not taken for those of others, whose weights they would share.
fn prefixed(method: &Method, prefix: &str) -> Method {
    let mut method = method.clone();
    let ports: Vec<String> = method.inputs.iter().map(|port| port.name.clone()).collect();
    for node in &mut method.nodes {
        node.name.insert_str(0, prefix);
        node.inputs.iter_mut().filter(|input| !ports.contains(input)).for_each(|input| input.insert_str(0, prefix));
    }
    for port in method.outputs.iter_mut().filter(|port| !ports.contains(&port.name)) {
        port.name.insert_str(0, prefix);
    }
    method
}

/// The weights of those methods.
fn used(weights: &Weights, methods: &[Method]) -> Weights {
    let mut used = Weights::default();
    weights.used_by(methods).for_each(|(name, tensor)| used.insert(name, tensor.clone()));
    used
}

#[cfg(test)]
mod tests {
    use ondes_engine::instrument::{Event, EventKind};
    use ondes_engine::pipeline::{Pipeline, PipelineOptions};

    use super::*;
    use crate::capture::architecture::Architecture;
    use crate::capture::measure::play;
    use crate::network::untrained;

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
        let alone = alone(&both).expect("a model");
        assert_eq!(alone, whole);
        // Whatever sizes it holds, it is known by the whole.
        assert_eq!((both.base_hash(), whole.base_hash()), (whole.content_hash(), whole.content_hash()));
        assert_ne!(both.content_hash(), whole.content_hash());

        // A name is taken once; what it named before is gone with all its weights.
        let other = capture("lstm-4", 4);
        let again = put_in(&both, &other, "light").expect("it fits");
        assert_eq!(again.header().variants.len(), 2);
        assert_eq!(again.parameters(), whole.parameters() + middle.parameters() + other.parameters());
        let error = put_in(&small, &whole, "light").expect_err("it is larger").to_string();
        assert!(error.contains("costs as much"), "{error}");
    }

    #[test]
    fn an_instrument_brings_its_room_where_it_has_another() {
        let model = |units: usize, seed: u64| {
            let config = format!(
                "name = \"A\"\ndata = \"\"\nout = \"\"\nwork = \"\"\nseed = {seed}\n[network]\nrecurrent_units = {units}\n"
            );
            untrained(&toml::from_str(&config).expect("a configuration")).expect("a model")
        };
        let (whole, small) = (model(24, 1), model(8, 2));
        let both = put_in(&whole, &small, "light").expect("it fits");
        assert_eq!(both.header().variants[0].room.as_deref(), Some("room.light"));
        let out = take_out(&both, &both.header().variants[0]).expect("a model");
        assert_eq!((&out.header().methods[0].name, out.parameters()), (&"synth".to_owned(), small.parameters()));
        let sound = |model: &Model, size| {
            let mut pipeline =
                Pipeline::new(model, &PipelineOptions { size, ..PipelineOptions::default() }).expect("it plays");
            let kind = EventKind::NoteOn { channel: 0, key: 60, velocity: 0.8 };
            pipeline.handle(Event { at: 0, kind }).expect("there is room");
            let mut sound = vec![0.0; 4_800];
            pipeline.process(&[], &mut sound);
            sound
        };
        let light = sound(&small, 1.0);
        assert!(light.iter().any(|sample| *sample != 0.0));
        assert_eq!(sound(&both, 0.3), light);
        assert_eq!(sound(&out, 1.0), light);
        assert_eq!(sound(&both, 1.0), sound(&whole, 1.0));
        // Put in again, what was there before is gone with its room.
        let again = put_in(&both, &model(6, 3), "light").expect("it fits");
        assert_eq!(again.header().methods.len(), 4);

        let mut header = small.header().clone();
        header.methods.truncate(1);
        let dry = Model::new(header, used(small.weights(), &small.header().methods[..1])).expect("a model");
        let error = put_in(&whole, &dry, "light").expect_err("it has no room").to_string();
        assert!(error.contains("room"), "{error}");
        // The same room is shared.
        let mut weights = small.weights().clone();
        for (name, tensor) in used(whole.weights(), &whole.header().methods[1..]).iter() {
            weights.insert(name, tensor.clone());
        }
        let alike = Model::new(small.header().clone(), weights).expect("a model");
        let both = put_in(&whole, &alike, "light").expect("it fits");
        assert_eq!((both.header().variants[0].room.as_ref(), both.header().methods.len()), (None, 3));
        assert_eq!(sound(&both, 0.0), sound(&alike, 1.0));
    }
}
