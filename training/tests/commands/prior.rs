//! Generators from the command line.

use ondes_engine::model::{Kind, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_training::tasks::codec::{CodecConfig, network};

use crate::common::{make_corpus, run, succeed};

#[test]
fn a_generator_is_trained_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let text = "name = \"Tiny codec\"\ndata = \"corpus\"\nout = \"codec.ondes\"\nwork = \"work\"\n[network]\nchannels = 4\n\
                latents = 4\n";
    std::fs::write(folder.join("codec.toml"), text).expect("it can be written");
    let codec =
        network::untrained(&CodecConfig::read(&folder.join("codec.toml")).expect("a recipe"))
            .expect("a codec");
    file::write(&codec, &folder.join("codec.ondes")).expect("it can be written");

    let recipe = folder.join("prior.toml");
    let text = "name = \"Tiny generator\"\ncodec = \"codec.ondes\"\ndata = \"corpus\"\nout = \"new/prior.ondes\"\n\
                work = \"work\"\n[network]\nunits = 8\nlayers = 2\ncomponents = 2\ngroup = 4\n[training]\nsteps = 8\n\
                batch = 2\nvalidate_every = 4\ncheckpoint_every = 4\nvalidation_share = 0.3\n";
    std::fs::write(&recipe, text).expect("it can be written");
    let recipe = recipe.display().to_string();
    let printed = succeed(&["prior", &recipe]);
    assert!(
        printed.contains("log-likelihood") && printed.contains("without memory"),
        "{printed}"
    );
    let path = folder.join("new/prior.ondes");
    let generator = file::read(&path).expect("a model");
    let card = &generator.header().card;
    assert_eq!(
        (generator.header().kind, card.name.as_str()),
        (Kind::Generator, "Tiny generator")
    );
    assert!(
        card.quality
            .iter()
            .all(|measure| measure.baseline.is_some())
            && card.training.is_some()
    );
    let mut sound = vec![0.0; 48_000];
    Pipeline::new(&generator, &PipelineOptions::default())
        .expect("it plays")
        .process(&[], &mut sound);
    assert!(sound.iter().any(|sample| *sample != 0.0));

    let longer = std::fs::read_to_string(folder.join("prior.toml"))
        .expect("a recipe")
        .replace("steps = 8", "steps = 12");
    std::fs::write(folder.join("prior.toml"), longer).expect("it can be written");
    succeed(&["prior", &recipe, "--resume"]);
    assert_eq!(
        file::read(&path).expect("a model").header().methods,
        generator.header().methods
    );

    succeed(&["prior", &recipe, "--from", &path.display().to_string()]);

    // Without a recipe.
    let [codec, data, out] =
        ["codec.ondes", "corpus", "mine.ondes"].map(|name| folder.join(name).display().to_string());
    succeed(&[
        "prior",
        &codec,
        "--data",
        &data,
        "--out",
        &out,
        "--minutes",
        "0.01",
    ]);
    let generator = file::read(&folder.join("mine.ondes")).expect("a model");
    // Frames of 256 samples at 48 kHz, four at once.
    let block = generator.method("prior").expect("a prior").block;
    assert_eq!(
        (generator.header().card.name.as_str(), block),
        ("mine", 1024)
    );
    let output = run(&["prior", &codec, "--data", &data]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2)
            && error.contains("codec.ondes: a model in place of a recipe needs --out"),
        "{error}"
    );

    for (argument, expected) in [
        ("none.ondes", "none.ondes: "),
        ("codec.ondes", "codec.ondes: "),
    ] {
        let output = run(&[
            "prior",
            &recipe,
            "--from",
            &folder.join(argument).display().to_string(),
        ]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = error.trim_end().lines().last().unwrap_or_default();
        assert!(
            output.status.code() == Some(2) && last.contains(expected),
            "{error}"
        );
    }
}
