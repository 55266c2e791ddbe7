//! What a model file may ask of us. A file that asks for more is refused before anything of that size is made.

use super::{ModelError, Header, Method, Op, graph::Shapes};

/// Largest file, bytes: far above any network that could be played in real time.
pub const FILE_BYTES: usize = 2 << 30;
/// Largest program, bytes: it is held in memory.
pub const PROGRAM_BYTES: usize = 1 << 30;
/// Largest JSON header, bytes.
pub const HEADER_BYTES: usize = 8 << 20;
/// Longest name or text of one line, bytes.
pub const NAME_BYTES: usize = 256;
/// Longest description, bytes.
pub const TEXT_BYTES: usize = 64 << 10;
/// Most methods of a model.
pub const METHODS: usize = 64;
/// Most nodes of a method.
pub const NODES: usize = 4096;
/// Most controls of a model.
pub const CONTROLS: usize = 1024;
/// Most channels of a value.
pub const CHANNELS: usize = 16_384;
/// Most latents of a codec that is played: each has three controls.
pub const LATENTS: usize = 1024;
/// Longest block and largest ratio, samples.
pub const BLOCK: usize = 65_536;
/// Longest latency that a node may state, samples: ten seconds at 192 kHz.
pub const LATENCY: usize = 1_920_000;
/// Longest impulse response, samples: ten seconds at 192 kHz.
pub const TAPS: usize = 1_920_000;
/// Most values that one stream of a method may hold (histories, states, one block of every value): 64 MiB, several times
/// what the largest codecs in use need.
pub const STREAM_VALUES: usize = 16 << 20;
/// Most multiply-adds that warming up a method may take, which a core does in some seconds: ten times those of the heaviest
/// captures in use.
pub const WARM_UP_MULTIPLY_ADDS: usize = 20_000_000_000;
/// Most values that an executor may hold for all of its streams: 1 GiB.
pub const EXECUTOR_VALUES: usize = 256 << 20;
/// Sample rates, Hz.
pub const SAMPLE_RATES: std::ops::RangeInclusive<u32> = 8_000..=384_000;

pub(super) fn check_header(header: &Header) -> Result<(), ModelError> {
    if !(super::FORMAT..=super::FORMAT_COMPRESSED).contains(&header.format) {
        return Err(ModelError::Version { found: header.format.into(), supported: super::FORMAT_COMPRESSED });
    }
    if !SAMPLE_RATES.contains(&header.sample_rate) {
        return Err(ModelError::Header(format!("a sample rate of {} Hz is out of range", header.sample_rate)));
    }
    ModelError::limit("the number of methods", header.methods.len(), METHODS)?;
    ModelError::limit("the number of controls", header.controls.len(), CONTROLS)?;
    ModelError::limit("the length of the description", header.card.description.len(), TEXT_BYTES)?;
    // JSON has no words for them: a file that holds one could not be read again.
    let measured = header.card.quality.iter().flat_map(|measure| [Some(measure.value), measure.baseline]).flatten();
    let levels = header.card.levels.iter().flat_map(|levels| levels.values());
    let trained = header.card.training.iter().flat_map(|training| [training.corpus_seconds, training.validation_loss]);
    if !measured.chain(trained).chain(levels).all(f64::is_finite) {
        return Err(ModelError::Header("the card holds a NaN or an infinity".into()));
    }
    for (index, method) in header.methods.iter().enumerate() {
        if header.methods[..index].iter().any(|other| other.name == method.name) {
            return Err(ModelError::Header(format!("two methods are named {:?}", method.name)));
        }
    }
    super::variant::check(header)?;
    for (index, control) in header.controls.iter().enumerate() {
        ModelError::limit("the length of a control's name", control.name.len(), NAME_BYTES)?;
        if !control.is_sound() {
            return Err(ModelError::Header(format!("control {:?} has a range that makes no sense", control.name)));
        }
        if header.controls[..index].iter().any(|other| other.name == control.name) {
            return Err(ModelError::Header(format!("two controls are named {:?}", control.name)));
        }
    }
    Ok(())
}

pub(super) fn check_method(method: &Method, shapes: &Shapes) -> Result<(), ModelError> {
    ModelError::limit("the length of a method's name", method.name.len(), NAME_BYTES)?;
    ModelError::limit(format!("the number of nodes of method {:?}", method.name), method.nodes.len(), NODES)?;
    ModelError::limit(format!("the block of method {:?}", method.name), method.block, BLOCK)?;
    for shape in &shapes.values {
        ModelError::limit("the number of channels", shape.channels, CHANNELS)?;
    }
    for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
        ModelError::limit("the length of a node's name", node.name.len(), NAME_BYTES)?;
        if let Op::Latency { samples } = node.op {
            ModelError::limit("the latency of a node", samples, LATENCY)?;
        }
        if let Op::Convolve { taps } = node.op {
            ModelError::limit("the length of an impulse response", taps, TAPS)?;
        }
        for spec in node.op.weights(&inputs) {
            let values = spec.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
            let what = format!("the size of weight {}.{}", node.name, spec.name);
            ModelError::limit(what, values.unwrap_or(usize::MAX), FILE_BYTES / size_of::<f32>())?;
        }
    }
    ModelError::limit(
        format!("what method {:?} holds per stream", method.name),
        stream_values(method, shapes),
        STREAM_VALUES,
    )?;
    check_warm_up(method, shapes)
}

fn check_warm_up(method: &Method, shapes: &Shapes) -> Result<(), ModelError> {
    if method.warm_up == 0 {
        return Ok(());
    }
    let sounds = |op: &Op| matches!(op, Op::Harmonic | Op::FilteredNoise | Op::Noise { .. } | Op::Convolve { .. });
    if let Some(node) = method.nodes.iter().find(|node| sounds(&node.op)) {
        let reason = "makes sound of its own or is a room, and such a method cannot warm up".into();
        return Err(ModelError::Node { method: method.name.clone(), node: node.name.clone(), reason });
    }
    let nodes = method.nodes.iter().zip(shapes.node_inputs()).zip(&shapes.values[method.inputs.len()..]);
    let per_sample: f64 = nodes.map(|((node, inputs), out)| node.op.multiply_adds_per_sample(&inputs, *out)).sum();
    let samples = method.warm_up.saturating_add(method.block) as f64;
    let what = format!("the number of multiply-adds of the warm-up of method {:?}", method.name);
    ModelError::limit(what, (samples * per_sample.max(1.0)) as usize, WARM_UP_MULTIPLY_ADDS)
}

/// Values that one stream of a method holds when it is stepped block by block.
fn stream_values(method: &Method, shapes: &Shapes) -> usize {
    executor_values(method, shapes, 1, 1)
}

/// Values that an executor holds for so many streams that are stepped up to so many blocks at a time.
pub(crate) fn executor_values(method: &Method, shapes: &Shapes, streams: usize, blocks: usize) -> usize {
    let values = shapes.values.iter().map(|shape| shape.channels.saturating_mul(method.block / shape.ratio));
    let states = method.nodes.iter().zip(shapes.node_inputs()).map(|(node, inputs)| {
        let frames = match node.op {
            Op::Conv1d { kernel, dilation, .. } => (kernel - 1).saturating_mul(dilation).saturating_mul(2),
            Op::ConvTranspose1d { kernel, stride, .. } => 2 * (kernel / stride),
            Op::Delay { frames } => frames.saturating_mul(2),
            // The spectra of the response and of the past, each over twice its length.
            Op::Convolve { taps } => taps.saturating_mul(4),
            _ => 1,
        };
        frames.saturating_mul(inputs[0].channels)
    });
    // States are as long however long a step is.
    let values = values.fold(0, usize::saturating_add).saturating_mul(blocks);
    states.fold(values, usize::saturating_add).saturating_mul(streams)
}
