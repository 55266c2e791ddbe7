//! Codecs from the command line.

use ondes_engine::model::{Kind, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use serde_json::Value;

use crate::common::{make_corpus, run, succeed};

#[test]
fn a_codec_is_trained_evaluated_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_corpus(folder);
    let recipe = folder.join("codec.toml");
    let text = "name = \"Tiny codec\"\ndata = \"corpus\"\nout = \"codec.ondes\"\nwork = \"work\"\n[network]\nchannels = 4\n\
                latents = 4\n[training]\nsteps = 8\nbatch = 2\nclip_seconds = 0.2\nvalidate_every = 4\n\
                checkpoint_every = 4\nvalidation_share = 0.3\n";
    std::fs::write(&recipe, text).expect("it can be written");
    let recipe = recipe.display().to_string();
    let printed = succeed(&["codec", &recipe]);
    assert!(
        printed.contains("noise") && printed.contains("spectral distance"),
        "{printed}"
    );
    let codec = file::read(&folder.join("codec.ondes")).expect("a model");
    assert_eq!(
        (codec.header().kind, codec.header().card.name.as_str()),
        (Kind::Codec, "Tiny codec")
    );
    assert!(
        codec
            .header()
            .card
            .quality
            .iter()
            .any(|measure| measure.baseline.is_some())
    );
    // The other samples of a hop of 256 and the delay of the filter bank, 7.7 ms.
    assert_eq!(
        Pipeline::new(&codec, &PipelineOptions::default())
            .expect("it plays")
            .latency_samples(),
        367
    );

    let model = folder.join("codec.ondes").display().to_string();
    let corpus = folder.join("corpus").display().to_string();
    // What training held out, by the recipe; then the recordings as if another codec had made them.
    let measured = succeed(&["evaluate", &model, "--data", &recipe]);
    assert!(
        measured.contains("noise") && measured.contains("what was learnt"),
        "{measured}"
    );
    assert_eq!(measured.lines().nth(2), printed.lines().nth(2), "{printed}");
    let floor: Value = serde_json::from_str(&succeed(&[
        "evaluate", &corpus, "--data", &recipe, "--json",
    ]))
    .expect("JSON");
    assert_eq!(floor["model"]["spectral_distance"], 0.0, "{floor}");
    assert!(
        floor["baseline"]["spectral_distance"]
            .as_f64()
            .is_some_and(|distance| distance > 0.5),
        "{floor}"
    );
    let others = folder.join("others");
    std::fs::create_dir(&others).expect("a folder");
    let any = std::fs::read_dir(&corpus)
        .expect("a folder")
        .next()
        .expect("a recording")
        .expect("an entry")
        .path();
    std::fs::copy(any, others.join("other.wav")).expect("it can be copied");
    let output = run(&["evaluate", &others.display().to_string(), "--data", &recipe]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && error.contains("has no sound"),
        "{error}"
    );
    let further = std::fs::read_to_string(&recipe)
        .expect("a recipe")
        .replace("\"work\"", "\"further\"");
    std::fs::write(&recipe, further).expect("it can be written");
    succeed(&["codec", &recipe, "--from", &model]);

    // Without a recipe, with the sizes of the model.
    let [data, out] = ["corpus", "mine.ondes"].map(|name| folder.join(name).display().to_string());
    succeed(&[
        "codec",
        &model,
        "--data",
        &data,
        "--out",
        &out,
        "--minutes",
        "0.01",
    ]);
    let mine = file::read(&folder.join("mine.ondes")).expect("a model");
    assert_eq!(
        (mine.header().card.name.as_str(), &mine.header().methods),
        ("mine", &codec.header().methods)
    );

    let output = run(&[
        "codec",
        &recipe,
        "--from",
        &folder.join("none.ondes").display().to_string(),
    ]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && error.contains("none.ondes: "),
        "{error}"
    );
}
