//! TorchScript models that tests play.

use rand::RngExt;

use super::{Class, Value};

/// Rows of streaming buffers, as in cached convolutions exported for nn~.
pub const ROWS: usize = 64;

fn weight(shape: &[usize], bound: f32, random: &mut impl RngExt) -> Value {
    Value::Weight(
        shape.into(),
        (0..shape.iter().product())
            .map(|_| random.random_range(-bound..bound))
            .collect(),
    )
}

fn cache(shape: &[usize]) -> Value {
    Value::Buffer(shape.into(), vec![0.0; shape.iter().product()])
}

/// Effect of cached causal convolutions, one channel to one: kernels of 3, dilated by 1, 4 and 16,
/// `channels` wide. Each row of its caches belongs to one session.
#[must_use]
pub fn streaming(channels: usize, seed: u64) -> Class {
    let mut random = crate::seeded_rng(seed);
    let bound = (1.0 / (3.0 * channels as f32)).sqrt();
    let mut class = Class::default().with("first", weight(&[channels, 1, 3], 0.6, &mut random));
    let mut body = vec!["y = x".to_owned()];
    for (name, dilation, inputs) in [
        ("first", 1, 1),
        ("second", 4, channels),
        ("third", 16, channels),
    ] {
        let cached = 2 * dilation;
        if name != "first" {
            class = class.with(
                name,
                weight(&[channels, channels, 3], 2.0 * bound, &mut random),
            );
        }
        class = class.with(&format!("{name}_cache"), cache(&[ROWS, inputs, cached]));
        body.push(format!(
            "held = torch.slice(self.{name}_cache, 0, 0, torch.size(x, 0))"
        ));
        body.push("whole = torch.cat([held, y], 2)".into());
        body.push(format!(
            "held = torch.copy_(held, torch.slice(whole, 2, -{cached}))"
        ));
        body.push(format!(
            "y = torch.tanh(torch.conv1d(whole, self.{name}, None, [1], [0], [{dilation}]))"
        ));
    }
    class = class.with("last", weight(&[1, channels, 1], bound, &mut random));
    body.push("return torch.conv1d(y, self.last)".into());
    let body: Vec<&str> = body.iter().map(String::as_str).collect();
    class.nn("forward", [1, 1, 1, 1], &body)
}

/// Codec with `latents` latents at `ratio`: each latent is the mean of a frame, and decoding holds
/// it. With `prior` it also generates sinusoidal latents, at a speed given by its input.
#[must_use]
pub fn codec(latents: u32, ratio: u32, prior: bool) -> Class {
    let mean = format!("return torch.expand(torch.avg_pool1d(x, [{ratio}]), [-1, {latents}, -1])");
    let hold = format!("return torch.repeat_interleave(torch.mean(x, [1], True), {ratio}, 2)");
    let class = Class::default()
        .with("sampling_rate", Value::Int(48_000))
        .nn("encode", [1, 1, latents, ratio], &[&mean])
        .nn("decode", [latents, ratio, 1, 1], &[&hold]);
    if !prior {
        return class;
    }
    let turn = [
        "held = torch.slice(self.phase, 0, 0, torch.size(x, 0))",
        "temperature = torch.div(torch.softplus(x), 0.6931471805599453)",
        "whole = torch.add(torch.cumsum(torch.mul(temperature, 0.1), 2), held)",
        "held = torch.copy_(held, torch.slice(whole, 2, -1))",
        &format!("return torch.expand(torch.sin(whole), [-1, {latents}, -1])"),
    ];
    class
        .with("phase", cache(&[ROWS, 1, 1]))
        .nn("prior", [1, ratio, latents, ratio], &turn)
}

/// Codec as [`codec`] whose prior listens, as those of `msprior` do: while the attribute `listen`
/// is true, it returns the latents that it is given; afterwards it repeats the last of them. A
/// further output is its certainty.
#[must_use]
pub fn listening_codec(latents: u32, ratio: u32) -> Class {
    codec(latents, ratio, false)
        .with("listen", Value::Bool(true))
        .with("listen_params", Value::Buffer(vec![1], vec![0.0]))
        .with("last", cache(&[ROWS, latents as usize, 1]))
        .method("get_attributes() -> List[str]", &["return [\"listen\"]"])
        .method("get_listen() -> bool", &["return self.listen"])
        .method(
            "set_listen(listen: bool) -> int",
            &["self.listen = listen", "return 0"],
        )
        .nn(
            "prior",
            [latents, ratio, latents + 1, ratio],
            &[
                "certainty = torch.ones_like(torch.slice(x, 1, 0, 1))",
                "last = torch.slice(self.last, 0, 0, torch.size(x, 0))",
                "if self.listen:",
                "  last = torch.copy_(last, torch.slice(x, 2, -1))",
                "  return torch.cat([x, certainty], 1)",
                "repeated = torch.expand(last, [-1, -1, torch.size(x, 2)])",
                "return torch.cat([repeated, certainty], 1)",
            ],
        )
}

/// Effect with attributes of every type, with getters and setters as nn~ expects: `gain` (float),
/// `steps` (int), `mute` (bool), `range` (two floats), `name` (str), `table` (tensor) and `source`
/// (buffer). The output is `gain · steps + range[0]` times the input plus `range[1]` and the mean
/// of the source, or silence: if it is muted, or the name is "silent". The name cannot be "loud".
#[must_use]
pub fn attributes() -> Class {
    let names = ["gain", "steps", "mute", "range", "name", "table", "source"];
    let codes: [&[f32]; 7] = [&[2.0], &[1.0], &[0.0], &[2.0, 2.0], &[3.0], &[4.0], &[5.0]];
    let mut class = Class::default();
    for (name, codes) in names.iter().zip(codes) {
        class = class.with(
            &format!("{name}_params"),
            Value::Buffer(vec![codes.len()], codes.to_vec()),
        );
    }
    class
        .with("gain", Value::Float(0.5))
        .with("steps", Value::Int(2))
        .with("mute", Value::Bool(false))
        .with("low", Value::Float(0.0))
        .with("high", Value::Float(0.0))
        .with("name", Value::Text("plain".into()))
        .with("sound", Value::Buffer(vec![1, 1], vec![0.0]))
        .with("forward_input_labels", Value::Texts(vec!["dry".into()]))
        .with("forward_output_labels", Value::Texts(vec!["wet".into()]))
        .method("get_methods() -> List[str]", &["return [\"forward\"]"])
        .method(
            "get_attributes() -> List[str]",
            &["return [\"none\", \"gain\", \"steps\", \"mute\", \"range\", \"name\", \"table\", \"source\"]"],
        )
        // As nn-tilde 1.6 declares it.
        .method("set_sample_rate(sample_rate: Optional[int]) -> None", &["return None"])
        .method("get_gain() -> Tuple[float]", &["return (self.gain,)"])
        .method("get_steps() -> List[int]", &["return [self.steps]"])
        .method("get_mute() -> Tuple[bool]", &["return (self.mute,)"])
        .method("get_range() -> Tuple[float, float]", &["return (self.low, self.high)"])
        .method("get_name() -> Tuple[str]", &["return (self.name,)"])
        .method("set_gain(gain: float) -> int", &["self.gain = gain", "return 0"])
        .method(
            "set_steps(steps: int) -> int",
            &["if torch.gt(steps, 8):", "  return -1", "self.steps = steps", "return 0"],
        )
        .method("set_mute(mute: bool) -> int", &["self.mute = mute", "return 0"])
        .method("set_range(low: float, high: float) -> int", &["self.low = low", "self.high = high", "return 0"])
        .method(
            "set_name(name: str) -> int",
            &["if torch.eq(name, \"loud\"):", "  return -1", "self.name = name", "return 0"],
        )
        // As nn-tilde 1.6 declares it.
        .method(
            "set_buffer_attribute(buffer_name: str, buffer: Tensor, sr: int) -> int",
            &["if torch.ne(buffer_name, \"source#0\"):", "  return -1", "self.sound = buffer", "return 0"],
        )
        .nn(
            "forward",
            [1, 1, 1, 1],
            &[
                "if torch.__or__(self.mute, torch.eq(self.name, \"silent\")):",
                "  return torch.zeros_like(x)",
                "factor = torch.add(torch.mul(self.gain, self.steps), self.low)",
                "offset = torch.add(torch.mean(self.sound), self.high)",
                "return torch.add(torch.mul(x, factor), offset)",
            ],
        )
}

/// Effect that outputs the number of its steps. It counts them for all sessions together, so that
/// sessions cannot share it.
#[must_use]
pub fn counter() -> Class {
    Class::default().with("count", Value::Int(0)).nn(
        "forward",
        [1, 1, 1, 1],
        &[
            "self.count = torch.add(self.count, 1)",
            "return torch.add(torch.mul(x, 0.), self.count)",
        ],
    )
}

/// Effect whose `forward` converts frames from one ratio to another: each output value is that of
/// the last input frame before it.
#[must_use]
pub fn ratios(inputs: u32, ratio_in: u32, outputs: u32, ratio_out: u32) -> Class {
    let mean = "y = torch.mean(x, [1], True)".to_owned();
    let pace = if ratio_out >= ratio_in {
        let step = ratio_out / ratio_in;
        format!(
            "y = torch.slice(y, 2, {}, 9223372036854775807, {step})",
            step - 1
        )
    } else {
        format!(
            "y = torch.repeat_interleave(y, {}, 2)",
            ratio_in / ratio_out
        )
    };
    let wide = format!("return torch.expand(y, [-1, {outputs}, -1])");
    Class::default().nn(
        "forward",
        [inputs, ratio_in, outputs, ratio_out],
        &[&mean, &pace, &wide],
    )
}

/// Stereo effect for Neutone with a delay of one sample: the input times the first parameter plus
/// the third. With `old`, all metadata values are strings, as older exporters wrote them.
#[must_use]
pub fn neutone(old: bool) -> Class {
    let parameters = if old {
        r#""p1": { "name": "Drive", "description": "How much", "used": "True", "default_value": "0.5", "type": "knob" },
            "p2": { "name": "", "description": "", "used": "False", "default_value": "0.0", "type": "knob" },
            "p3": { "name": "Bias", "description": "", "used": "True", "default_value": "0.0", "type": "knob" }"#
    } else {
        r#""p1": { "name": "Drive", "description": "How much", "used": true, "default_value": 0.5, "type": "continuous" },
            "p2": { "name": "", "description": "", "used": false, "default_value": 0.0, "type": "continuous" },
            "p3": { "name": "Bias", "description": "", "used": true, "default_value": 0.0, "type": "continuous" }"#
    };
    Class::default()
        .file(
            "metadata.json",
            &format!(
                r#"{{ "model_name": "Late", "model_authors": ["A", "B"], "model_short_description": "A sample late.",
            "neutone_parameters": {{ {parameters} }} }}"#
            ),
        )
        .with("block", Value::Int(0))
        .with("held", Value::Buffer(vec![2, 1], vec![0.0; 2]))
        .method("set_daw_sample_rate_and_buffer_size(rate: int, block: int) -> None", &["self.block = block"])
        .method("reset() -> None", &["held = self.held.zero_()"])
        .method("get_native_sample_rates() -> List[int]", &["return [32000]"])
        .method("get_native_buffer_sizes() -> List[int]", &["return [128]"])
        .method("calc_buffering_delay_samples() -> int", &["return 0"])
        .method("calc_model_delay_samples() -> int", &["return 1"])
        .method(
            "forward(x: Tensor, params: Tensor) -> Tensor",
            &[
                "assert x.size(1) == self.block",
                "whole = torch.cat([self.held, x], 1)",
                "held = self.held.copy_(whole[:, -1:])",
                "return whole[:, :-1] * params[0:1] + params[2:3]",
            ],
        )
}
