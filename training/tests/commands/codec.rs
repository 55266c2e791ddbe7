//! Codecs from the command line.

use ondes_engine::model::{Kind, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

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
    assert!(printed.contains("noise") && printed.contains("spectral distance"), "{printed}");
    let codec = file::read(&folder.join("codec.ondes")).expect("a model");
    assert_eq!((codec.header().kind, codec.header().card.name.as_str()), (Kind::Codec, "Tiny codec"));
    assert!(codec.header().card.quality.iter().any(|measure| measure.baseline.is_some()));
    // The other samples of a hop of 256 and the delay of the filter bank, 7.7 ms.
    assert_eq!(Pipeline::new(&codec, &PipelineOptions::default()).expect("it plays").latency_samples(), 367);

    let model = folder.join("codec.ondes").display().to_string();
    let corpus = folder.join("corpus").display().to_string();
    let measured = succeed(&["evaluate", &model, "--data", &corpus]);
    assert!(measured.contains("noise"), "{measured}");
    let further = std::fs::read_to_string(&recipe).expect("a recipe").replace("\"work\"", "\"further\"");
    std::fs::write(&recipe, further).expect("it can be written");
    succeed(&["codec", &recipe, "--from", &model]);

    let output = run(&["codec", &recipe, "--from", &folder.join("none.ondes").display().to_string()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("none.ondes: "), "{error}");
}
