//! TorchScript functions that nodes call, as methods of the exported module.
//!
//! Values are `[batch, channels, frames]`. A state has more rows than a batch; a call reads and
//! replaces those of its batch in place, so that hosts can load and save the rows of their streams.

use super::torchscript::Class;

/// Function with its signature and the lines of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    signature: &'static str,
    body: &'static str,
}

impl Function {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.signature.split('(').next().unwrap_or_default()
    }

    /// Adds the function to a module.
    pub fn add_to(self, class: Class) -> Class {
        let lines: Vec<&str> = self.body.lines().collect();
        class.method(self.signature, &lines)
    }
}

/// All functions; a module has those that its nodes call.
pub(super) const FUNCTIONS: [Function; 12] = [
    WITH_PAST,
    ROWS,
    SET_ROWS,
    SPREAD,
    HARMONIC,
    FILTERED_NOISE,
    SHAPED_NOISE,
    CONVOLVE,
    FLIP_ODD_BANDS,
    NEAREST_CODES,
    CODE_SUM,
    ATTENTION,
];

/// Returns the input behind the frames before it, and keeps as many for the next call.
pub(super) const WITH_PAST: Function = Function {
    signature: "with_past(x: Tensor, state: Tensor) -> Tensor",
    body: "\
past = torch.slice(state, 0, 0, torch.size(x, 0))
whole = torch.cat([past, x], 2)
past = torch.copy_(past, torch.slice(whole, 2, torch.size(x, 2)))
return whole",
};

/// Returns the rows of a recurrent state, `[1, batch, hidden]`.
pub(super) const ROWS: Function = Function {
    signature: "rows(x: Tensor, state: Tensor) -> Tensor",
    body: "\
rows = torch.slice(state, 0, 0, torch.size(x, 0))
return torch.contiguous(torch.transpose(rows, 0, 1))",
};

/// Replaces the rows of a recurrent state by `[1, batch, hidden]`.
pub(super) const SET_ROWS: Function = Function {
    signature: "set_rows(state: Tensor, rows: Tensor) -> Tensor",
    body: "return torch.copy_(torch.slice(state, 0, 0, torch.size(rows, 1)), torch.transpose(rows, 0, 1))",
};

/// Sets all rows of a state to the first.
pub(super) const SPREAD: Function = Function {
    signature: "spread(state: Tensor) -> Tensor",
    body: "return torch.copy_(state, torch.clone(torch.slice(state, 0, 0, 1)))",
};

/// [`Op::Harmonic`](crate::model::Op::Harmonic). Phase in cycles and step in cycles per sample are
/// 64-bit floats; a step below zero is that of a stream that has not begun.
pub(super) const HARMONIC: Function = Function {
    signature: "harmonic(pitch: Tensor, amplitude: Tensor, distribution: Tensor, phase: Tensor, step: Tensor, \
                levels: Tensor, hop: int, sample_rate: float) -> Tensor",
    body: "\
batch = torch.size(pitch, 0)
last_phase = torch.slice(phase, 0, 0, batch)
last_step = torch.slice(step, 0, 0, batch)
last_levels = torch.slice(levels, 0, 0, batch)
semitones = torch.clamp(torch.nan_to_num(torch.to(pitch, 7), 0.), -84., 180.)
ends = torch.exp2((semitones - 69.) / 12.) * (440. / sample_rate)
first = torch.where(torch.lt(last_step, 0.), torch.slice(ends, 2, 0, 1), last_step)
starts = torch.cat([first, torch.slice(ends, 2, 0, -1)], 2)
phases = torch.cumsum((starts + ends) * (0.5 * hop), 2) + last_phase
begins = torch.unsqueeze(torch.cat([last_phase, torch.slice(phases, 2, 0, -1)], 2), 3)
t = torch.cumsum(torch.new_ones(ends, [1, 1, 1, hop]), 3)
turns = begins + t * torch.unsqueeze(starts, 3) + t * t * torch.unsqueeze(ends - starts, 3) * (0.5 / hop)
turns = torch.to(turns - torch.round(turns), 6)
order = torch.cumsum(torch.new_ones(distribution, [1, torch.size(distribution, 1), 1]), 1)
sines = torch.sin(torch.frac(turns * torch.unsqueeze(order, 3)) * 6.283185307179586)
audible = distribution * torch.to(torch.lt(order * ends, 0.5), 6)
after = audible * (amplitude / torch.clamp_min(torch.sum(audible, [1], True), 1e-12))
before = torch.cat([last_levels, torch.slice(after, 2, 0, -1)], 2)
ramp = torch.to(t / hop, 6)
sound = torch.sum(sines * (torch.unsqueeze(before, 3) + torch.unsqueeze(after - before, 3) * ramp), [1], True)
ended = torch.slice(phases, 2, -1)
last_phase = torch.copy_(last_phase, ended - torch.floor(ended))
last_step = torch.copy_(last_step, torch.slice(ends, 2, -1))
last_levels = torch.copy_(last_levels, torch.slice(after, 2, -1))
return torch.reshape(sound, [batch, 1, -1])",
};

/// [`Op::FilteredNoise`](crate::model::Op::FilteredNoise). `response` is `[bin][band]`,
/// `tail [fft − hop]`.
pub(super) const FILTERED_NOISE: Function = Function {
    signature: "filtered_noise(magnitudes: Tensor, response: Tensor, tail: Tensor, hop: int, lead: int, fft: int) -> \
                Tensor",
    body: "\
frames = torch.size(magnitudes, 2)
white = torch.uniform_(torch.new_empty(magnitudes, [torch.size(magnitudes, 0), frames, hop]), -1., 1.)
white = torch.constant_pad_nd(white, [lead, fft - lead - hop])
gains = torch.matmul(torch.transpose(magnitudes, 1, 2), torch.t(response))
filtered = torch.transpose(torch.fft_irfft(torch.fft_rfft(white, fft) * gains, fft), 1, 2)
length = frames * hop
sum = torch.col2im(filtered, [1, length - hop + fft], [1, fft], [1, 1], [0, 0], [1, hop])
last = torch.slice(tail, 0, 0, torch.size(magnitudes, 0))
sum = torch.squeeze(sum, 2) + torch.constant_pad_nd(last, [0, length])
last = torch.copy_(last, torch.slice(sum, 2, length))
return torch.slice(sum, 2, 0, length)",
};

/// [`Op::ShapedNoise`](crate::model::Op::ShapedNoise). `taps` is `[delay][band]`.
pub(super) const SHAPED_NOISE: Function = Function {
    signature: "shaped_noise(magnitudes: Tensor, noise: Tensor, taps: Tensor) -> Tensor",
    body: "\
hop = torch.size(taps, 0)
batch = torch.size(noise, 0)
frames = torch.size(noise, 2)
bands = torch.reshape(torch.transpose(magnitudes, 1, 2), [batch, frames, -1, torch.size(taps, 1)])
white = torch.reshape(torch.transpose(noise, 1, 2), [batch, frames, -1, hop])
response = torch.fft_rfft(torch.matmul(bands, torch.t(taps)), 2 * hop)
sound = torch.slice(torch.fft_irfft(response * torch.fft_rfft(white, 2 * hop), 2 * hop), 3, 0, hop)
return torch.reshape(torch.permute(sound, [0, 2, 1, 3]), [batch, -1, frames * hop])",
};

/// Convolution of `whole`, which begins with the `taps − 1` samples before, with `impulse [taps]`.
pub(super) const CONVOLVE: Function = Function {
    signature: "convolve(whole: Tensor, impulse: Tensor) -> Tensor",
    body: "\
length = torch.size(whole, 2)
product = torch.fft_rfft(whole, length) * torch.fft_rfft(impulse, length)
return torch.slice(torch.fft_irfft(product, length), 2, torch.size(impulse, 0) - 1)",
};

/// [`Op::FlipOddBands`](crate::model::Op::FlipOddBands).
pub(super) const FLIP_ODD_BANDS: Function = Function {
    signature: "flip_odd_bands(x: Tensor) -> Tensor",
    body: "\
even_band = torch.remainder(torch.cumsum(torch.new_ones(x, [1, torch.size(x, 1), 1]), 1), 2)
first_frame = torch.remainder(torch.cumsum(torch.new_ones(x, [1, 1, torch.size(x, 2)]), 2), 2)
return x * (1. - 2. * (1. - even_band) * first_frame)",
};

/// [`Op::NearestCodes`](crate::model::Op::NearestCodes).
pub(super) const NEAREST_CODES: Function = Function {
    signature: "nearest_codes(x: Tensor, codebook: Tensor) -> Tensor",
    body: "\
rest = torch.transpose(x, 1, 2)
codes = torch.new_empty(x, [torch.size(x, 0), 0, torch.size(x, 2)])
for book in range(torch.size(codebook, 0)):
  entries = torch.select(codebook, 0, book)
  scores = torch.matmul(rest, torch.t(entries)) - 0.5 * torch.sum(entries * entries, [1])
  nearest = torch.argmax(scores, -1)
  rest = rest - torch.embedding(entries, nearest)
  codes = torch.cat([codes, torch.to(torch.unsqueeze(nearest, 1), 6)], 1)
return codes",
};

/// [`Op::Attention`](crate::model::Op::Attention); `keys` and `values` begin with the frames
/// before.
pub(super) const ATTENTION: Function = Function {
    signature: "attention(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor",
    body: "\
batch = torch.size(query, 0)
frames = torch.size(query, 2)
all = torch.size(keys, 2)
heads = torch.size(position, 0)
window = torch.size(position, 1)
width = torch.floordiv(torch.size(query, 1), heads)
queries = torch.transpose(torch.reshape(query, [batch, heads, width, frames]), 2, 3)
scores = torch.matmul(queries, torch.reshape(keys, [batch, heads, width, all])) * torch.pow(width, -0.5)
frame = torch.cumsum(torch.new_ones(query, [frames, 1]), 0)
distance = frame - torch.cumsum(torch.new_ones(query, [1, all]), 1) + (window - 1.)
index = torch.to(torch.clamp(distance, 0., window - 1.), 4)
bias = torch.reshape(torch.index_select(position, 1, torch.reshape(index, [-1])), [heads, frames, all])
outside = torch.logical_or(torch.lt(distance, 0.), torch.ge(distance, window))
shares = torch.softmax(torch.masked_fill(scores + bias, outside, -1e+30), -1)
sums = torch.matmul(torch.reshape(values, [batch, heads, width, all]), torch.transpose(shares, 2, 3))
return torch.reshape(sums, [batch, -1, frames])",
};

/// [`Op::CodeSum`](crate::model::Op::CodeSum).
pub(super) const CODE_SUM: Function = Function {
    signature: "code_sum(x: Tensor, codebook: Tensor) -> Tensor",
    body: "\
codes = torch.to(torch.clamp(torch.nan_to_num(x, 0.), 0., torch.size(codebook, 1) - 1.), 4)
sum = torch.embedding(torch.select(codebook, 0, 0), torch.select(codes, 1, 0))
for book in range(1, torch.size(codebook, 0)):
  sum = sum + torch.embedding(torch.select(codebook, 0, book), torch.select(codes, 1, book))
return torch.transpose(sum, 1, 2)",
};
