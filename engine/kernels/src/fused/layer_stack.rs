//! Layers of a convolution, its activation and a 1×1 convolution, fused.
//!
//! The intermediate stays in registers, since store-to-load latency dominates at few channels.
//! Layers of one width run in a function of their own, which has all registers for itself.

use super::buffer_view::{BufferView, StreamSignals};
use super::convolution::{Convolution, Taps, add_taps, fits, multiply_add};
use super::elementwise::Unary;
use super::window::{SignalMemory, SignalWindow};
use crate::activation::Activation;
use crate::activation::formula::{LeakyRelu, Tanh};
use crate::lanewise::Lanewise;
use crate::simd::{Kernel, LANES, Simd};

/// Consecutive layers of one width. Their data is stored in the order of use, since a layer is so
/// little work that fetching its description counts.
#[derive(Clone, Debug)]
pub(super) struct LayerStack {
    /// Channels of input and output.
    width: usize,
    layers: Vec<FusedLayer>,
    /// `[layer][single input]`
    singles: Vec<DelayedChannel>,
    /// `[layer][tap]`: delays of the layer's main input in frames.
    delays: Vec<usize>,
    /// `[layer][bias, singles, channels at delays, bias, intermediate channels][output]`
    weights: Vec<f32>,
}

/// A convolution, its activation and a 1×1 convolution.
#[derive(Clone, Copy, Debug)]
struct FusedLayer {
    /// Number of single inputs, which are summed first.
    singles: usize,
    /// Main input of the first convolution, of `width` channels.
    input: BufferView,
    /// Number of delays of the main input.
    delays: usize,
    /// Slope of a leaky ReLU below zero; `None` for tanh.
    slope: Option<f32>,
    /// Destination of the intermediate; `None` if nothing else reads it.
    intermediate: Option<BufferView>,
    /// Signal to which the intermediate is added.
    accumulate_into: Option<BufferView>,
    /// Signal that is added to the output.
    residual: Option<BufferView>,
    output: BufferView,
}

/// One channel of a signal at one delay, such as the network's input, which each layer reads.
#[derive(Clone, Copy, Debug)]
struct DelayedChannel {
    view: BufferView,
    channel: usize,
    delay: usize,
}

impl LayerStack {
    /// Returns the stack of one layer, or `None` if the convolutions are not of the fused form.
    ///
    /// The fused form has two convolutions with the same number of outputs, in one group each; the
    /// first reads any single channels and one signal of that width and ends in tanh or a leaky
    /// ReLU, the activations of published captures; the second is a 1×1 convolution of the first.
    /// Other convolutions give the same sums as a [`ConvolutionGroup`].
    ///
    /// [`ConvolutionGroup`]: super::convolution::ConvolutionGroup
    pub fn new(views: &[BufferView], convolutions: &[Convolution]) -> Option<Self> {
        let [first, second] = convolutions else {
            return None;
        };
        let (input, before) = first.taps.split_last()?;
        let singles = before.iter().flat_map(|taps| {
            let view = views[taps.view];
            let channels = 0..view.channels();
            let at_delay = move |delay| {
                channels.clone().map(move |channel| DelayedChannel {
                    view,
                    channel,
                    delay,
                })
            };
            taps.delays.iter().flat_map(move |&delay| at_delay(delay))
        });
        let singles: Vec<DelayedChannel> = singles.collect();
        let width = first.weights.outputs();
        let is_fusible = matches!(width, 2 | 3 | 4 | 6 | 8)
            && [first, second]
                .iter()
                .all(|one| one.weights.widest == width && one.weights.outputs() == width)
            && views[input.view].channels() == width
            && first.weights.inputs() == singles.len() + input.delays.len() * width
            && second.taps == [Taps::now(first.output)]
            && second.weights.inputs() == width
            && first.accumulate_into != Some(first.output)
            && first.residual.is_none()
            && second.activation.is_none()
            && second.accumulate_into.is_none();
        let slope = match first.activation {
            Some(Unary::Activation(Activation::Tanh)) => None,
            Some(Unary::Activation(Activation::LeakyRelu { slope })) => Some(slope),
            _ => return None,
        };
        let layer = FusedLayer {
            singles: singles.len(),
            input: views[input.view],
            delays: input.delays.len(),
            slope,
            intermediate: (!first.transient).then_some(views[first.output]),
            accumulate_into: first.accumulate_into.map(|view| views[view]),
            residual: second.residual.map(|view| views[view]),
            output: views[second.output],
        };
        let packed = [first, second].map(|one| [&one.weights.bias[..], &one.weights.weights]);
        is_fusible.then(|| Self {
            width,
            layers: vec![layer],
            singles,
            delays: input.delays.clone(),
            weights: packed.as_flattened().concat(),
        })
    }

    /// Returns the channels of input and output.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Appends layers of the same width.
    pub fn append(&mut self, others: Self) {
        let Self {
            width: _,
            layers,
            singles,
            delays,
            weights,
        } = others;
        self.layers.extend(layers);
        self.singles.extend(singles);
        self.delays.extend(delays);
        self.weights.extend(weights);
    }

    /// Returns the memory of the weights in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    /// Computes `frames` frames of each stream, layer by layer.
    #[inline(always)]
    pub fn run<S: Simd>(&self, s: S, streams: &mut [StreamSignals<'_>], frames: usize) {
        match (self.width, S::MANY_REGISTERS) {
            (8, true) => s.call(RunLayers::<8, 8> {
                layers: self,
                streams,
                frames,
            }),
            (8, false) => s.call(RunLayers::<8, 4> {
                layers: self,
                streams,
                frames,
            }),
            (6, true) => s.call(RunLayers::<6, 6> {
                layers: self,
                streams,
                frames,
            }),
            (6, false) => s.call(RunLayers::<6, 3> {
                layers: self,
                streams,
                frames,
            }),
            (4, _) => s.call(RunLayers::<4, 4> {
                layers: self,
                streams,
                frames,
            }),
            (3, _) => s.call(RunLayers::<3, 3> {
                layers: self,
                streams,
                frames,
            }),
            _ => s.call(RunLayers::<2, 2> {
                layers: self,
                streams,
                frames,
            }),
        }
    }
}

/// Runs layers of W channels, with O sums at a time.
struct RunLayers<'a, 'b, const W: usize, const O: usize> {
    layers: &'a LayerStack,
    streams: &'a mut [StreamSignals<'b>],
    frames: usize,
}

impl<const W: usize, const O: usize> Kernel for RunLayers<'_, '_, W, O> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            layers:
                LayerStack {
                    layers,
                    singles,
                    delays,
                    weights,
                    ..
                },
            streams,
            frames,
        } = self;
        let (mut singles, mut delays, mut weights) =
            (&singles[..], &delays[..], weights.as_chunks::<W>().0);
        for layer in layers {
            let (own_singles, own_delays, own_weights);
            (own_singles, singles) = singles.split_at(layer.singles);
            (own_delays, delays) = delays.split_at(layer.delays);
            (own_weights, weights) = weights.split_at(1 + layer.singles + layer.delays * W + 1 + W);
            let (singles, delays, weights) = (own_singles, own_delays, own_weights);
            for StreamSignals { positions, signals } in &mut *streams {
                let memory = SignalMemory::new(signals);
                let tile = LayerTile::<W, O> {
                    layer,
                    singles,
                    delays,
                    weights,
                    positions,
                    signals: memory,
                };
                let mut at = 0;
                while at < frames {
                    let left = frames - at;
                    if fits::<S>(4 * O, 4) && left > 3 * LANES {
                        tile.compute::<S, 4>(s, at);
                        at += 4 * LANES;
                    } else if fits::<S>(2 * O, 2) && left > LANES {
                        tile.compute::<S, 2>(s, at);
                        at += 2 * LANES;
                    } else {
                        tile.compute::<S, 1>(s, at);
                        at += LANES;
                    }
                }
                if let Some(intermediate) = &layer.intermediate {
                    intermediate.mirror(positions, signals, frames);
                }
                if let Some(accumulate_into) = &layer.accumulate_into {
                    accumulate_into.mirror(positions, signals, frames);
                }
                layer.output.mirror(positions, signals, frames);
            }
        }
    }
}

/// One layer with its slices of the stack.
struct LayerTile<'a, const W: usize, const O: usize> {
    layer: &'a FusedLayer,
    singles: &'a [DelayedChannel],
    delays: &'a [usize],
    /// `[bias, singles, channels at delays, bias, intermediate channels]`
    weights: &'a [[f32; W]],
    positions: &'a [usize],
    signals: SignalMemory<'a>,
}

impl<'a, const W: usize, const O: usize> LayerTile<'a, W, O> {
    /// Returns the channels of a view, `at` frames after its position.
    #[inline(always)]
    fn window<const F: usize>(&self, view: &BufferView, at: usize) -> SignalWindow<'a, W, F> {
        self.signals
            .window(view, 0, self.positions[view.buffer], at)
    }

    /// Computes outputs of the first convolution and its activation from `skip` on.
    #[inline(always)]
    fn intermediate<S: Simd, const F: usize>(
        &self,
        s: S,
        at: usize,
        skip: usize,
    ) -> [[S::V; F]; O] {
        let Self {
            layer,
            singles,
            delays,
            weights,
            positions,
            signals,
        } = *self;
        let (bias, weights) = weights.split_first().expect("a bias");
        let (single_weights, tap_weights) = weights.split_at(singles.len());
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            sums[o] = [s.splat(bias[skip + o]); F];
        }
        for (
            DelayedChannel {
                view,
                channel,
                delay,
            },
            weight,
        ) in singles.iter().zip(single_weights)
        {
            let window = signals
                .delayed::<1, F>(view, *channel, positions[view.buffer], at)
                .before(*delay);
            sums = multiply_add(s, window.load(s, 0), weight, skip, sums);
        }
        let input = signals.delayed(&layer.input, 0, positions[layer.input.buffer], at);
        sums = add_taps(s, input, delays, tap_weights, skip, sums);
        match layer.slope {
            Some(slope) => apply(s, &LeakyRelu { slope }, &mut sums),
            None => apply(s, &Tanh {}, &mut sums),
        }
        sums
    }

    /// Computes F vectors from frame `at` on.
    #[inline(always)]
    fn compute<S: Simd, const F: usize>(&self, s: S, at: usize) {
        // Unreachable instantiation; returning lets the compiler drop it.
        if !fits::<S>(O * F, F) {
            return;
        }
        let low = self.intermediate::<S, F>(s, at, 0);
        let high = if O < W {
            self.intermediate::<S, F>(s, at, O)
        } else {
            low
        };
        let mut z = [[s.splat(0.0); F]; W];
        for k in 0..W {
            z[k] = if k < O { low[k] } else { high[k - O] };
        }
        let Self {
            layer,
            singles,
            delays,
            weights,
            ..
        } = *self;
        if let Some(intermediate) = &layer.intermediate {
            let intermediate = self.window::<F>(intermediate, at);
            for o in 0..W {
                intermediate.store(s, z[o], o);
            }
        }
        // The output comes first, since the next layer waits for it.
        let output = self.window::<F>(&layer.output, at);
        #[expect(
            clippy::manual_map,
            reason = "a closure would be a function of its own, without the CPU's features"
        )]
        let residual = match &layer.residual {
            Some(residual) => Some(self.window::<F>(residual, at)),
            None => None,
        };
        let (bias, weights) = weights[1 + singles.len() + delays.len() * W..]
            .split_first()
            .expect("a second bias");
        for o in 0..W {
            let mut sums = [s.splat(bias[o]); F];
            for k in 0..W {
                let weight = s.splat(weights[k][o]);
                for f in 0..F {
                    sums[f] = s.fma(weight, z[k][f], sums[f]);
                }
            }
            if let Some(residual) = residual {
                let residual = residual.load(s, o);
                for f in 0..F {
                    sums[f] = s.add(residual[f], sums[f]);
                }
            }
            output.store(s, sums, o);
        }
        if let Some(accumulate_into) = &layer.accumulate_into {
            let accumulate_into = self.window::<F>(accumulate_into, at);
            for o in 0..W {
                let mut sums = accumulate_into.load(s, o);
                for f in 0..F {
                    sums[f] = s.add(sums[f], z[o][f]);
                }
                accumulate_into.store(s, sums, o);
            }
        }
    }
}

/// Applies an operation to each value in place.
#[inline(always)]
fn apply<S: Simd, Op: Lanewise<0, 1>, const W: usize, const F: usize>(
    s: S,
    op: &Op,
    z: &mut [[S::V; F]; W],
) {
    for row in z {
        for value in row {
            [*value] = op.apply(s, [], [*value]);
        }
    }
}
