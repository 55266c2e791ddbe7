//! A convolution, its activation and a 1×1 convolution of what comes out, with no way through memory between them: where
//! channels are few, it is that way which a layer waits for. For the same reason layers of one width run in a loop of their own,
//! which has all registers for itself.

use super::convolve::{Convolution, Taps, add_taps, multiply_add, sums_at_once};
use super::each::Unary;
use super::places::Place;
use super::window::{Signals, Window};
use crate::activation::Activation;
use crate::activation::formula::{LeakyRelu, Tanh};
use crate::lanewise::Lanewise;
use crate::simd::{Kernel, LANES, Simd};

/// Layers of one width, one after the other. All that they need lies in the order in which they need it, since a layer is so
/// little work that what leads to it counts.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    /// Channels that go in and come out.
    width: usize,
    layers: Vec<Layer>,
    rows: Vec<Row>,
    /// At which the first convolutions look at their signals, in frames.
    delays: Vec<usize>,
    /// `[layer][bias, rows, channels at delays, bias, channels between][output]`
    weights: Vec<f32>,
}

/// What one of them does.
#[derive(Clone, Copy, Debug)]
struct Layer {
    /// Rows that the first convolution adds first.
    rows: usize,
    /// The signal that it looks at.
    from: Place,
    /// At how many delays.
    delays: usize,
    /// The slope below zero of a leaky ReLU; none for tanh.
    slope: Option<f32>,
    /// Where that goes which is between the convolutions, if anybody else looks at it.
    between: Option<Place>,
    /// Where that is added which is between the convolutions.
    onto: Option<Place>,
    /// A residual.
    add: Option<Place>,
    to: Place,
}

/// One channel of a signal at one delay, such as the input of the network, which each layer hears.
#[derive(Clone, Copy, Debug)]
struct Row {
    place: Place,
    channel: usize,
    delay: usize,
}

impl Layers {
    /// One layer, of two convolutions that are one group of equally many outputs, few enough: the first of any rows and of one
    /// signal of as many channels, the second a 1×1 convolution of the first. None if they are something else.
    pub fn new(places: &[Place], convolutions: &[Convolution]) -> Option<Self> {
        let [first, second] = convolutions else { return None };
        let (from, before) = first.taps.split_last()?;
        let rows = before.iter().flat_map(|taps| {
            let place = places[taps.place];
            let channels = 0..place.channels();
            let row = move |delay| channels.clone().map(move |channel| Row { place, channel, delay });
            taps.delays.iter().flat_map(move |&delay| row(delay))
        });
        let rows: Vec<Row> = rows.collect();
        let width = first.weights.outputs();
        let follows = matches!(width, 2 | 3 | 4 | 6 | 8)
            && [first, second].iter().all(|one| one.weights.widest == width && one.weights.outputs() == width)
            && places[from.place].channels() == width
            && first.weights.inputs() == rows.len() + from.delays.len() * width
            && second.taps == [Taps::now(first.to)]
            && second.weights.inputs() == width
            && first.onto != Some(first.to)
            && first.add.is_none()
            && second.then.is_none()
            && second.onto.is_none();
        let slope = match first.then {
            Some(Unary::Activation(Activation::Tanh)) => None,
            Some(Unary::Activation(Activation::LeakyRelu { slope })) => Some(slope),
            _ => return None,
        };
        let layer = Layer {
            rows: rows.len(),
            from: places[from.place],
            delays: from.delays.len(),
            slope,
            between: (!first.passed_on).then_some(places[first.to]),
            onto: first.onto.map(|onto| places[onto]),
            add: second.add.map(|add| places[add]),
            to: places[second.to],
        };
        let packed = [first, second].map(|one| [&one.weights.bias[..], &one.weights.weights]);
        follows.then(|| Self {
            width,
            layers: vec![layer],
            rows,
            delays: from.delays.clone(),
            weights: packed.as_flattened().concat(),
        })
    }

    /// Channels that go in and come out.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Adds others of the same width behind these.
    pub fn append(&mut self, others: Self) {
        let Self { width: _, layers, rows, delays, weights } = others;
        self.layers.extend(layers);
        self.rows.extend(rows);
        self.delays.extend(delays);
        self.weights.extend(weights);
    }

    /// Memory that the weights take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    /// Computes so many frames, where each signal stands `now`.
    #[inline(always)]
    pub fn run<S: Simd>(&self, s: S, now: &[usize], signals: &mut [f32], frames: usize) {
        match (self.width, S::MANY_REGISTERS) {
            (8, true) => s.call(Run::<8, 8> { layers: self, now, signals, frames }),
            (8, false) => s.call(Run::<8, 4> { layers: self, now, signals, frames }),
            (6, true) => s.call(Run::<6, 6> { layers: self, now, signals, frames }),
            (6, false) => s.call(Run::<6, 3> { layers: self, now, signals, frames }),
            (4, _) => s.call(Run::<4, 4> { layers: self, now, signals, frames }),
            (3, _) => s.call(Run::<3, 3> { layers: self, now, signals, frames }),
            _ => s.call(Run::<2, 2> { layers: self, now, signals, frames }),
        }
    }
}

/// Layers of W channels, of which O are summed at a time.
struct Run<'a, const W: usize, const O: usize> {
    layers: &'a Layers,
    now: &'a [usize],
    signals: &'a mut [f32],
    frames: usize,
}

impl<const W: usize, const O: usize> Kernel for Run<'_, W, O> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { layers: Layers { layers, rows, delays, weights, .. }, now, signals, frames } = self;
        let (mut rows, mut delays, mut weights) = (&rows[..], &delays[..], weights.as_chunks::<W>().0);
        for layer in layers {
            let (own_rows, own_delays, own_weights);
            (own_rows, rows) = rows.split_at(layer.rows);
            (own_delays, delays) = delays.split_at(layer.delays);
            (own_weights, weights) = weights.split_at(1 + layer.rows + layer.delays * W + 1 + W);
            let (rows, delays, weights) = (own_rows, own_delays, own_weights);
            let pass = Pass::<W, O> { layer, rows, delays, weights, now, signals: Signals::of(signals) };
            let mut at = 0;
            while at < frames {
                let left = frames - at;
                if 4 * O <= sums_at_once::<S>() && left > 3 * LANES {
                    pass.compute::<S, 4>(s, at);
                    at += 4 * LANES;
                } else if 2 * O <= sums_at_once::<S>() && left > LANES {
                    pass.compute::<S, 2>(s, at);
                    at += 2 * LANES;
                } else {
                    pass.compute::<S, 1>(s, at);
                    at += LANES;
                }
            }
            if let Some(between) = &layer.between {
                between.close(now, signals, frames);
            }
            if let Some(onto) = &layer.onto {
                onto.close(now, signals, frames);
            }
            layer.to.close(now, signals, frames);
        }
    }
}

/// One layer.
struct Pass<'a, const W: usize, const O: usize> {
    layer: &'a Layer,
    rows: &'a [Row],
    delays: &'a [usize],
    /// `[bias, rows, channels at delays, bias, channels between]`
    weights: &'a [[f32; W]],
    now: &'a [usize],
    signals: Signals<'a>,
}

impl<'a, const W: usize, const O: usize> Pass<'a, W, O> {
    /// The channels of a place.
    #[inline(always)]
    fn window<const F: usize>(&self, place: &Place, at: usize) -> Window<'a, W, F> {
        self.signals.window(place, 0, self.now[place.signal], at)
    }

    /// Outputs of the first convolution from `skip` on.
    #[inline(always)]
    fn sums<S: Simd, const F: usize>(&self, s: S, at: usize, skip: usize) -> [[S::V; F]; O] {
        let Self { layer, rows, delays, weights, now, signals } = *self;
        let (bias, weights) = weights.split_first().expect("a bias");
        let (of_rows, of_taps) = weights.split_at(rows.len());
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            sums[o] = [s.splat(bias[skip + o]); F];
        }
        for (Row { place, channel, delay }, weight) in rows.iter().zip(of_rows) {
            let window = signals.past::<1, F>(place, *channel, now[place.signal], at).before(*delay);
            sums = multiply_add(s, window.load(s, 0), weight, skip, sums);
        }
        let from = signals.past(&layer.from, 0, now[layer.from.signal], at);
        sums = add_taps(s, from, delays, of_taps, skip, sums);
        match layer.slope {
            Some(slope) => apply(s, &LeakyRelu { slope }, &mut sums),
            None => apply(s, &Tanh {}, &mut sums),
        }
        sums
    }

    /// F vectors from frame `at` on.
    #[inline(always)]
    fn compute<S: Simd, const F: usize>(&self, s: S, at: usize) {
        // More are never asked for, so there need not be code for them.
        if O * F > sums_at_once::<S>() {
            return;
        }
        let low = self.sums::<S, F>(s, at, 0);
        let high = if O < W { self.sums::<S, F>(s, at, O) } else { low };
        let mut z = [[s.splat(0.0); F]; W];
        for k in 0..W {
            z[k] = if k < O { low[k] } else { high[k - O] };
        }
        let Self { layer, rows, delays, weights, .. } = *self;
        if let Some(between) = &layer.between {
            let between = self.window::<F>(between, at);
            for o in 0..W {
                between.store(s, z[o], o);
            }
        }
        // What the next layer waits for comes first.
        let to = self.window::<F>(&layer.to, at);
        #[expect(clippy::manual_map, reason = "a closure would be a function of its own, without the CPU's features")]
        let add = match &layer.add {
            Some(add) => Some(self.window::<F>(add, at)),
            None => None,
        };
        let (bias, weights) = weights[1 + rows.len() + delays.len() * W..].split_first().expect("a second bias");
        for o in 0..W {
            let mut sums = [s.splat(bias[o]); F];
            for k in 0..W {
                let weight = s.splat(weights[k][o]);
                for f in 0..F {
                    sums[f] = s.fma(weight, z[k][f], sums[f]);
                }
            }
            if let Some(add) = add {
                let residual = add.load(s, o);
                for f in 0..F {
                    sums[f] = s.add(residual[f], sums[f]);
                }
            }
            to.store(s, sums, o);
        }
        if let Some(onto) = &layer.onto {
            let onto = self.window::<F>(onto, at);
            for o in 0..W {
                let mut sums = onto.load(s, o);
                for f in 0..F {
                    sums[f] = s.add(sums[f], z[o][f]);
                }
                onto.store(s, sums, o);
            }
        }
    }
}

#[inline(always)]
fn apply<S: Simd, Op: Lanewise<0, 1>, const W: usize, const F: usize>(s: S, op: &Op, z: &mut [[S::V; F]; W]) {
    for row in z {
        for value in row {
            [*value] = op.apply(s, [], [*value]);
        }
    }
}
