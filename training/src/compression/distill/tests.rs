//! Students learn their teacher's features and sound.

use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use tch::{Device, Kind, Tensor};

use super::{distillation_pair, inherit, student};
use crate::loss::feature_matching::FeatureMatching;
use crate::tasks::capture::architecture::Architecture;
use crate::tasks::capture::measure::{esr, play};
use crate::tasks::capture::pair::Pair;
use crate::tasks::capture::signal::signal;

fn capture(size: &str, seed: u64) -> ondes_engine::model::Model {
    Architecture::named(size)
        .and_then(|size| size.untrained(seed, 48_000))
        .expect("a model")
}

#[test]
fn features_match_the_teacher_itself_and_projections_are_learnt() {
    let teacher = capture("lstm-6", 1);
    let input = || vec![Tensor::from_slice(&signal(30.0)[200_000..201_000]).view([1, 1, -1])];
    let same = FeatureMatching::new(&teacher, &teacher, "forward", 1.0, Device::Cpu)
        .expect("it has the method");
    let same = same.expect("they have a layer in common");
    assert_eq!(same.names().collect::<Vec<_>>(), ["layer0"]);
    let shown = |matching: &FeatureMatching,
                 model: &ondes_engine::model::Model,
                 weights: &TorchWeights| {
        let mut method = matching.with_feature_outputs(model.method("forward").expect("a method"));
        method.warm_up = 0;
        TorchGraph::new(&method, 48_000)
            .expect("it fits")
            .run(weights, &input(), 0)
            .split_off(1)
    };
    let weights = TorchWeights::new(teacher.weights(), Device::Cpu);
    let features = shown(&same, &teacher, &weights);
    let loss = same
        .loss(
            &weights,
            &input(),
            &features,
            &mut RecurrentState::default(),
        )
        .double_value(&[]);
    assert!(loss.abs() < 1e-9, "{loss}");

    // The projection of a narrower student is learnt.
    let narrow = capture("lstm-3", 2);
    let matching = FeatureMatching::new(&teacher, &narrow, "forward", 1.0, Device::Cpu)
        .unwrap()
        .expect("a layer in common");
    let mut weights = TorchWeights::new(narrow.weights(), Device::Cpu);
    weights.0.extend(matching.projections(3, Device::Cpu));
    let features = shown(&matching, &narrow, &weights);
    let name = weights
        .0
        .keys()
        .find(|name| name.starts_with("distill:"))
        .cloned()
        .expect("a matrix");
    assert_eq!(weights.0[&name].size(), [6, 3]);
    let mut matrix = weights.0[&name].set_requires_grad(true);
    let mut losses = Vec::new();
    for _ in 0..60 {
        weights.0.insert(name.clone(), matrix.shallow_clone());
        let loss = matching.loss(
            &weights,
            &input(),
            &features,
            &mut RecurrentState::default(),
        );
        losses.push(loss.double_value(&[]));
        loss.backward();
        tch::no_grad(|| {
            let step = matrix.grad() / matrix.grad().norm().clamp_min(1e-12) * 0.05;
            let _ = matrix.g_sub_(&step);
            matrix.zero_grad();
        });
    }
    assert!(
        losses.last() < losses.first().map(|first| 0.8 * first).as_ref(),
        "{:?}",
        (losses[0], losses.last())
    );
    assert!(
        weights
            .0
            .values()
            .all(|weight| weight.kind() == Kind::Float)
    );
    assert!(
        FeatureMatching::new(&teacher, &capture("nano", 1), "forward", 1.0, Device::Cpu)
            .unwrap()
            .is_none()
    );
}

#[test]
fn pairs_mix_the_teacher_with_the_device() {
    let teacher = capture("lstm-4", 5);
    let alone = distillation_pair(&teacher, None, 30.0, 0.5).expect("it plays");
    assert_eq!(alone.dry.len(), 30 * 48_000);
    assert_eq!(alone.wet, play(&teacher, &alone.dry).expect("it plays"));

    let dry = signal(30.0);
    let wet: Vec<f32> = dry.iter().map(|x| (2.0 * x).tanh()).collect();
    let pair = Pair::new(dry.clone(), wet.clone(), 48_000, "device".into());
    let taught = distillation_pair(&teacher, Some(&pair), 0.0, 0.25).expect("it plays");
    assert_eq!(taught.dry, pair.dry);
    let theirs = play(&teacher, &pair.dry).expect("it plays");
    let early = 10 * 48_000..11 * 48_000;
    let mean: Vec<f32> = early
        .clone()
        .map(|at| 0.75 * pair.wet[at] + 0.25 * theirs[at])
        .collect();
    assert!(esr(&mean, &taught.wet[early]) < 1e-9);
    // The held-out part is the device's own.
    let end = pair.wet.len() - 2 * 48_000;
    assert_eq!(taught.wet[end..], pair.wet[end..]);
    let both = distillation_pair(&teacher, Some(&pair), 30.0, 0.25).expect("it plays");
    assert_eq!(both.dry.len(), dry.len() + pair.dry.len());
    assert_ne!(both.hash, taught.hash);
}

#[test]
fn students_are_sizes_files_or_recipes() {
    let teacher = capture("lstm-8", 1);
    let small = student("lstm-3", &teacher, 4).expect("a size");
    assert_eq!(Architecture::recognize(&small).as_deref(), Some("lstm-3"));
    assert_eq!(small.header().card.name, teacher.header().card.name);
    let error = |description: &str| {
        student(description, &teacher, 0)
            .expect_err("no student")
            .to_string()
    };
    assert!(error("huge").contains("huge") && error("missing.ondes").contains("missing.ondes"));
    // A student of equal size inherits all weights.
    assert_eq!(
        inherit(&capture("lstm-8", 9), &teacher)
            .expect("a model")
            .weights(),
        teacher.weights()
    );
}
