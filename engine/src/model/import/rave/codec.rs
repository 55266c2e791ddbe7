//! The whole of a RAVE export: bands, encoder, latents, decoder, bands.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, ensure};
use ondes_engine::model::{Card, Distribution, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Weights};

use super::archive::Array;
use super::module::{Module, TorchFile};
use super::sketch::{Signal, Sketch};

/// The rate of RAVE's configurations, for exports that do not say theirs, Hz.
const USUAL_RATE: i64 = 44_100;
/// Name of the node and of the port that latents are seen at.
const LATENTS: &str = "latents";

/// A model that was imported, and what was noticed.
pub struct ImportedModel {
    /// The codec, with the methods `encode`, `decode` and `forward`.
    pub model: Model,
    /// What it is.
    pub shape: Shape,
    /// What it has that is left out, or was assumed.
    pub notes: Vec<String>,
}

/// What was recovered of a model's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `RAVE v1`, `RAVE v2` or `RAVE v3`; BRAVE is a RAVE v1.
    pub architecture: &'static str,
    /// Bands of its filter bank; 1 for none.
    pub bands: usize,
    /// Strides of the encoder.
    pub ratios: Vec<usize>,
    /// Channels of the encoder's first layer.
    pub capacity: usize,
    /// Latents that are seen, the most telling ones of all.
    pub latents: usize,
    /// All latents; those that are not seen are noise.
    pub all_latents: usize,
    /// Filters look into the past only.
    pub causal: bool,
    /// It was exported to be streamed.
    pub streaming: bool,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ratios: Vec<String> = self.ratios.iter().map(usize::to_string).collect();
        write!(
            f,
            "{}, {} bands, ratios {}, capacity {}, {} of {} latents, {} filters, {} export",
            self.architecture,
            self.bands,
            ratios.join("\u{b7}"),
            self.capacity,
            self.latents,
            self.all_latents,
            if self.causal { "causal" } else { "centred" },
            if self.streaming { "streaming" } else { "offline" },
        )
    }
}

/// Imports a RAVE export; `name` goes onto its card.
///
/// # Errors
/// One line that names the file and what in it is not understood.
pub fn import(path: &Path, name: &str) -> anyhow::Result<ImportedModel> {
    read(path, name).with_context(|| path.display().to_string())
}

fn read(path: &Path, name: &str) -> anyhow::Result<ImportedModel> {
    let file = TorchFile::open(path)?;
    let root = file.root();
    let mut notes = Vec::new();
    check(&root, &mut notes)?;
    let rate = root.maybe_int("sr").unwrap_or_else(|| {
        notes.push(format!("it does not say its rate: {USUAL_RATE} Hz is assumed"));
        USUAL_RATE
    });
    let rate = u32::try_from(rate).map_err(|_| root.error(format_args!("a rate of {rate} Hz")))?;
    let bank = bank(&root)?;
    let encoder = root.child("encoder")?;
    let first = match &bank {
        Some(bank) => bank.child("forward_conv")?,
        None => encoder.child("encoder")?.child("net")?.child("0")?,
    };
    let streaming = first.class() == "CachedConv1d";
    let causal = match first.maybe_pair("_pad") {
        Some((_, right)) => right == 0,
        None => first.count("cumulative_delay")? == 0,
    };
    let mut sketch = Sketch::new(causal);

    let input = Signal { name: "in".into(), channels: 1, ratio: 1, late: 0 };
    let (latents, bands) = sketch.encode(&root, bank.as_ref(), &input)?;
    let capacity = sketch.nodes.iter().find_map(|node| match node.op {
        Op::Conv1d { outputs, .. } if node.name.starts_with("encoder.") => Some(outputs),
        _ => None,
    });
    let ratios = sketch.strides.split_off(usize::from(bank.is_some()).min(sketch.strides.len()));
    let down = std::mem::take(&mut sketch.nodes);
    let all_latents = root.tensor("latent_mean")?.data.len();
    let seen = Signal { late: 0, ..latents.clone() };
    let output = sketch.decode(&root, bank.as_ref(), &seen, all_latents)?;
    let up = std::mem::take(&mut sketch.nodes);

    let shape = Shape {
        architecture: architecture(&encoder, &down)?,
        bands,
        ratios,
        capacity: capacity.unwrap_or(0),
        latents: latents.channels,
        all_latents,
        causal,
        streaming,
    };
    // A block of an even number of frames of the bank.
    let block = if latents.ratio.is_multiple_of(2 * bands) { latents.ratio } else { 2 * latents.ratio };
    let port = |signal: &Signal| Port { name: signal.name.clone(), channels: signal.channels, ratio: signal.ratio };
    let method = |name: &str, from: &Signal, to: &Signal, nodes: Vec<Node>| Method {
        name: name.into(),
        block,
        warm_up: 0,
        inputs: vec![port(from)],
        outputs: vec![port(to)],
        nodes,
    };
    let whole = down.iter().chain(&up).cloned().collect();
    let methods = vec![
        method("encode", &input, &latents, down),
        method("decode", &seen, &output, up),
        method("forward", &input, &output, whole),
    ];
    let card = Card { name: name.to_owned(), description: description(path, &shape)?, ..Card::default() };
    let model = model(rate, methods, card, sketch.weights)?;
    Ok(ImportedModel { model, shape, notes })
}

/// Makes sure that nothing is in use that is not played here.
fn check(root: &Module<'_>, notes: &mut Vec<String>) -> anyhow::Result<()> {
    for name in ["pqmf", "encoder", "decoder"] {
        ensure!(root.maybe_child(name).is_some(), root.error(format_args!("it has no module {name:?}: it is no RAVE")));
    }
    for name in ["resampler", "spectrogram"] {
        ensure!(root.maybe_child(name).is_none(), root.error(format_args!("a {name} is not supported")));
    }
    for name in ["input_mode", "output_mode"] {
        let mode = root.maybe_text(name).unwrap_or("pqmf");
        ensure!(mode == "pqmf", root.error(format_args!("an {name} of {mode:?} is not supported")));
    }
    let channels = root.maybe_int("n_channels").unwrap_or(1);
    ensure!(channels == 1, root.error(format_args!("models of {channels} channels are not supported")));
    if root.is_set("stereo") || root.maybe_int("target_channels").unwrap_or(1) > 1 {
        notes.push("one of its output channels is played: they differ by noise only".into());
    }
    if root.is_set("_has_prior") {
        notes.push("its prior is left out".into());
    }
    Ok(())
}

/// The filter bank, where it is one.
fn bank<'a>(root: &Module<'a>) -> anyhow::Result<Option<Module<'a>>> {
    let bank = root.child("pqmf")?;
    ensure!(bank.class() == "CachedPQMF", bank.error("this kind of filter bank is not known"));
    Ok((bank.maybe_int("n_band") != Some(1)).then_some(bank))
}

fn architecture(encoder: &Module<'_>, nodes: &[Node]) -> anyhow::Result<&'static str> {
    let inner = encoder.child("encoder")?;
    Ok(match inner.class() {
        "Encoder" => "RAVE v1",
        _ if nodes.iter().any(|node| node.op == Op::Snake) => "RAVE v3",
        _ => "RAVE v2",
    })
}

impl Sketch {
    /// From sound to latents. Gives them and the number of bands.
    fn encode(
        &mut self,
        root: &Module<'_>,
        bank: Option<&Module<'_>>,
        input: &Signal,
    ) -> anyhow::Result<(Signal, usize)> {
        let mut signal = input.clone();
        if let Some(bank) = bank {
            signal = self.convolution(&bank.child("forward_conv")?, &signal, None)?;
            signal = self.alike("pqmf.forward", &[&signal], Op::Unmirror)?;
        }
        let bands = signal.channels;
        let encoder = root.child("encoder")?;
        ensure!(encoder.class() == "VariationalEncoder", encoder.error("this kind of encoder is not supported"));
        let signal = self.module(&encoder, &signal)?;
        let (pca, mean) = (root.tensor("latent_pca")?, root.tensor("latent_mean")?);
        let all = mean.data.len();
        ensure!(
            all > 0 && mean.shape == [all] && pca.shape == [all, all],
            root.error(format_args!("latent_pca and latent_mean have the shapes {:?} and {:?}", pca.shape, mean.shape))
        );
        ensure!(
            signal.channels == 2 * all,
            encoder.error(format_args!("it makes {} values for {all} latents", signal.channels))
        );
        // Means and deviations of the latents, of which a sample is taken (Kingma & Welling, ICLR 2014).
        let means = self.split("encoder.mean", &signal, 0, all)?;
        let scale = self.split("encoder.scale", &signal, all, all)?;
        let scale = self.alike("encoder.scale.softplus", &[&scale], Op::Softplus)?;
        let deviation = self.alike("encoder.deviation", &[&scale], Op::Affine { scale: 1.0, offset: 1e-4 })?;
        let noise = self.normal("encoder.noise", &means, all)?;
        let drawn = self.alike("encoder.drawn", &[&noise, &deviation], Op::Multiply)?;
        let sample = self.alike("encoder.sample", &[&drawn, &means], Op::Add)?;

        let seen = root.tensor("encode_params")?.data.get(2).map_or(0, |&count| count as usize);
        ensure!((1..=all).contains(&seen), root.error(format_args!("encode_params asks for {seen} of {all} latents")));
        let weight = pca.data[..seen * all].to_vec();
        let product = |row: &[f32]| row.iter().zip(&mean.data).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let bias = weight.chunks_exact(all).map(|row| -product(row) as f32).collect();
        let turned = self.widened("latent_pca", &sample, seen, Op::Linear { outputs: seen })?;
        self.weight("latent_pca", "weight", Array::new(&[seen, all], weight))?;
        self.weight("latent_pca", "bias", Array::new(&[seen], bias))?;
        let latents = self.alike(LATENTS, &[&turned], Op::Latency { samples: turned.late })?;
        Ok((latents, bands))
    }

    /// From latents to sound.
    fn decode(
        &mut self,
        root: &Module<'_>,
        bank: Option<&Module<'_>>,
        latents: &Signal,
        all: usize,
    ) -> anyhow::Result<Signal> {
        let mut signal = latents.clone();
        if latents.channels < all {
            let left = all - latents.channels;
            let noise = self.normal("decoder.noise", latents, left)?;
            self.node("decoder.all_latents", &[latents, &noise], Op::Concat)?;
            signal = Signal { name: "decoder.all_latents".into(), channels: all, ..signal };
        }
        let (pca, mean) = (root.tensor("latent_pca")?, root.tensor("latent_mean")?);
        let turned = (0..all * all).map(|index| pca.data[index % all * all + index / all]).collect();
        signal = self.widened("latent_pca.back", &signal, all, Op::Linear { outputs: all })?;
        self.weight("latent_pca.back", "weight", Array::new(&[all, all], turned))?;
        self.weight("latent_pca.back", "bias", mean)?;
        signal = self.module(&root.child("decoder")?, &signal)?;
        if let Some(bank) = bank {
            signal = self.synthesis(bank, &signal)?;
        }
        ensure!(
            (signal.channels, signal.ratio) == (1, 1),
            root.error(format_args!("it ends in {} channels, one frame for {} samples", signal.channels, signal.ratio))
        );
        self.alike("out", &[&signal], Op::Latency { samples: signal.late })
    }

    fn normal(&mut self, name: &str, input: &Signal, channels: usize) -> anyhow::Result<Signal> {
        let number = self.noise_number();
        self.widened(name, input, channels, Op::Noise { channels, distribution: Distribution::Normal, number })
    }

    /// From bands to sound: the bank's filters make the samples of a frame, the last one first.
    fn synthesis(&mut self, bank: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        let factor = input.channels;
        let upright = self.alike("pqmf.inverse", &[input], Op::Unmirror)?;
        let filters = bank.child("inverse_conv")?;
        let mut bands = self.convolution_with(&filters, &upright, |[weight, bias]| {
            let row = weight.data.len() / bias.data.len();
            let rows = weight.data.chunks_exact(row).rev().flatten();
            weight.data = rows.map(|value| value * factor as f32).collect();
            bias.data.reverse();
            bias.data.iter_mut().for_each(|value| *value *= factor as f32);
            Ok(())
        })?;
        ensure!(
            bands.channels == factor && bands.ratio.is_multiple_of(factor),
            filters.error(format_args!("it makes {} samples of {factor} bands", bands.channels))
        );
        self.node("pqmf.samples", &[&bands], Op::Interleave { factor })?;
        bands.ratio /= factor;
        Ok(Signal { name: "pqmf.samples".into(), channels: 1, ..bands })
    }
}

fn description(path: &Path, shape: &Shape) -> anyhow::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        };
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(format!("{shape}; imported from {name}, BLAKE3 {}.", hasher.finalize().to_hex()))
}

fn model(rate: u32, methods: Vec<Method>, card: Card, weights: Weights) -> anyhow::Result<Model> {
    let header = Header {
        format: FORMAT,
        kind: Kind::Codec,
        sample_rate: rate,
        methods,
        controls: Vec::new(),
        variants: Vec::new(),
        performance: None,
        card,
    };
    Ok(Model::new(header, weights)?)
}
