//! From the nodes of a method to passes over rows.
//!
//! What can be one pass becomes one: a convolution sums other convolutions into the same registers and adds a residual at
//! its end; activations and sums happen where their input lies; a layer's second convolution follows its first a few frames
//! at a time. In the end passes become steps, which know what they read and write by its place in one list.

use std::borrow::Cow;

use ondes_kernels::{Binary, Convolution, Place, Step, Steps, TapWeights, Taps, Unary};

use super::home::Home;
use super::place::{List, Looked, View};
use crate::model::graph::Shapes;
use crate::model::{Method, Op, Weights};

/// A convolution with all that happens in its pass.
struct Convolve {
    weights: TapWeights,
    /// What is read, in the order of the weights.
    taps: Vec<Looked>,
    add: Option<View>,
    to: View,
    /// An activation of what comes out.
    then: Option<Unary>,
    /// Where what comes out is added as well.
    onto: Option<View>,
    /// Whether nobody looks at what comes out but the second of its pass.
    passed_on: bool,
}

impl Convolve {
    /// What it changes.
    fn targets(&self) -> impl Iterator<Item = View> {
        [Some(self.to), self.onto].into_iter().flatten()
    }

    /// Whether it reads nothing that the other one changes but at the same frame.
    fn reads_along(&self, other: &Self) -> bool {
        let changed = |looked: &Looked| other.targets().any(|view| view.home == looked.view.home);
        self.taps.iter().all(|looked| looked.delays == [0] || !changed(looked))
    }

    fn find(self, list: &mut List) -> Convolution {
        let Self { weights, taps, add, to, then, onto, passed_on } = self;
        let mut find = |view| list.find(view);
        let taps = taps.into_iter().map(|Looked { view, delays }| Taps { place: find(view), delays }).collect();
        let (to, add, onto) = (find(to), add.map(&mut find), onto.map(&mut find));
        Convolution { weights, taps, add, to, then, onto, passed_on }
    }
}

/// What becomes a step.
enum Pass {
    Convolve {
        first: Box<Convolve>,
        /// Done along with it, a few frames at a time.
        second: Option<Box<Convolve>>,
    },
    Unary {
        operation: Unary,
        at: View,
    },
    Binary {
        operation: Binary,
        x: View,
        at: View,
    },
}

impl Pass {
    /// The convolutions in it.
    fn convolutions(&self) -> impl Iterator<Item = &Convolve> {
        let (first, second) = match self {
            Self::Convolve { first, second } => (Some(first), second.as_ref()),
            Self::Unary { .. } | Self::Binary { .. } => (None, None),
        };
        first.into_iter().chain(second).map(AsRef::as_ref)
    }

    /// What it changes.
    fn targets(&self) -> impl Iterator<Item = View> {
        let other = match *self {
            Self::Unary { at, .. } | Self::Binary { at, .. } => Some(at),
            Self::Convolve { .. } => None,
        };
        self.convolutions().flat_map(Convolve::targets).chain(other)
    }

    /// Whether it looks at a home.
    fn reads(&self, home: usize) -> bool {
        let convolved = self.convolutions().flat_map(|convolve| {
            let Convolve { taps, add, onto, .. } = convolve;
            taps.iter().map(|looked| looked.view).chain(*add).chain(*onto)
        });
        let others = match *self {
            Self::Unary { at, .. } => [Some(at), None],
            Self::Binary { operation: Binary::Copy, x, .. } => [Some(x), None],
            Self::Binary { x, at, .. } => [Some(x), Some(at)],
            Self::Convolve { .. } => [None, None],
        };
        convolved.chain(others.into_iter().flatten()).any(|view| view.home == home)
    }

    /// Whether it looks at a home or changes it.
    fn touches(&self, home: usize) -> bool {
        self.reads(home) || self.targets().any(|view| view.home == home)
    }

    fn find(self, list: &mut List) -> Step {
        match self {
            Self::Convolve { first, second } => {
                Step::Convolve([Some(first), second].into_iter().flatten().map(|one| one.find(list)).collect())
            }
            Self::Unary { operation, at } => Step::Unary { operation, at: list.find(at) },
            Self::Binary { operation, x, at } => Step::Binary { operation, x: list.find(x), at: list.find(at) },
        }
    }
}

/// A method as steps.
pub struct Network {
    pub steps: Steps,
    pub homes: Vec<Home>,
    /// For each input port.
    pub inputs: Vec<Place>,
    pub output: Place,
    /// Values of all homes.
    pub length: usize,
}

/// A convolution before it has a place.
struct Convolved<'a> {
    /// The value that it reads.
    value: usize,
    inputs: usize,
    kernel: usize,
    dilation: usize,
    groups: usize,
    weight: Cow<'a, [f32]>,
    bias: Cow<'a, [f32]>,
}

/// What makes a value, before it has a place.
enum Work<'a> {
    Convolve {
        parts: Vec<Convolved<'a>>,
        add: Option<usize>,
        to: usize,
    },
    Unary {
        operation: Unary,
        x: usize,
        to: usize,
    },
    /// All of `x` in their order.
    Fold {
        operation: Binary,
        x: Vec<usize>,
        to: usize,
    },
}

impl Work<'_> {
    fn reads(&self) -> Vec<usize> {
        match self {
            Self::Convolve { parts, add, .. } => parts.iter().map(|part| part.value).chain(*add).collect(),
            Self::Unary { x, .. } => vec![*x],
            Self::Fold { x, .. } => x.clone(),
        }
    }

    fn makes(&self) -> usize {
        match *self {
            Self::Convolve { to, .. } | Self::Unary { to, .. } | Self::Fold { to, .. } => to,
        }
    }
}

/// More multiply-adds by zero than this, and a grouped convolution is not worth being run as a whole one.
const DENSE: usize = 4096;

fn unary(op: &Op) -> Option<Unary> {
    Some(match *op {
        Op::Activation(activation) => Unary::Activation(activation),
        Op::Affine { scale, offset } => Unary::ScaleOffset { scale, offset },
        _ => return None,
    })
}

impl Network {
    /// The passes of a method, where all of it is at the rate of sound and made of ops that have one, for chunks of so many frames at
    /// most.
    pub fn new(method: &Method, shapes: &Shapes, weights: &Weights, chunk: usize) -> Option<Self> {
        if method.outputs.len() != 1 || method.nodes.is_empty() || shapes.values.iter().any(|shape| shape.ratio != 1) {
            return None;
        }
        let works = lower(method, shapes, weights)?;
        Some(place(works, &parts(method, shapes), method.inputs.len(), shapes, chunk))
    }
}

/// How often each value is looked at, by nodes and from outside.
fn readers(shapes: &Shapes) -> Vec<usize> {
    let mut readers = vec![0; shapes.values.len()];
    shapes.reads.iter().flatten().chain(&shapes.shown).for_each(|&value| readers[value] += 1);
    readers
}

/// For each value that is part of another: which one, and from which channel on.
fn parts(method: &Method, shapes: &Shapes) -> Vec<Option<(usize, usize)>> {
    let nodes = method.nodes.iter().zip(&shapes.reads).map(|(node, reads)| match node.op {
        Op::Split { start, .. } => Some((reads[0], start)),
        _ => None,
    });
    std::iter::repeat_n(None, method.inputs.len()).chain(nodes).collect()
}

/// What makes each value, where there is a pass for each.
fn lower<'a>(method: &'a Method, shapes: &Shapes, weights: &'a Weights) -> Option<Vec<Work<'a>>> {
    let readers = readers(shapes);
    let ports = method.inputs.len();
    let mut works: Vec<Work<'a>> = Vec::new();
    for (index, node) in method.nodes.iter().enumerate() {
        let (reads, to) = (&shapes.reads[index], ports + index);
        let inputs = shapes.values[reads[0]].channels;
        let weight = |parameter: &str| weights.get(&node.name, parameter).floats();
        let part = |kernel, dilation, groups| Convolved {
            value: reads[0],
            inputs,
            kernel,
            dilation,
            groups,
            weight: weight("weight"),
            bias: weight("bias"),
        };
        match node.op {
            Op::Conv1d { outputs, kernel, stride: 1, dilation, groups } => {
                if groups > 1 && inputs * outputs * kernel > DENSE {
                    return None;
                }
                works.push(Work::Convolve { parts: vec![part(kernel, dilation, groups)], add: None, to });
            }
            Op::Linear { .. } => works.push(Work::Convolve { parts: vec![part(1, 1, 1)], add: None, to }),
            Op::Add => {
                let mut parts = Vec::new();
                let mut others = Vec::new();
                for &value in reads {
                    // A convolution that is only read here is summed here.
                    let own = works.iter().position(
                        |work| matches!(work, Work::Convolve { add: None, to, .. } if *to == value && readers[value] == 1),
                    );
                    match own.map(|own| works.remove(own)) {
                        Some(Work::Convolve { parts: own, .. }) => parts.extend(own),
                        _ => others.push(value),
                    }
                }
                // What was made last comes last: by then the sum of all else is there.
                parts.sort_by_key(|part| part.kernel);
                match (parts.is_empty(), others.len()) {
                    (true, _) => works.push(Work::Fold { operation: Binary::Add, x: others, to }),
                    (false, 0 | 1) => works.push(Work::Convolve { parts, add: others.pop(), to }),
                    // Two values or more beside a convolution: not worth a pass of its own kind.
                    (false, _) => return None,
                }
            }
            Op::Multiply if shapes.values[reads[1]].channels == inputs => {
                works.push(Work::Fold { operation: Binary::Multiply, x: reads.clone(), to });
            }
            Op::Split { .. } => {}
            ref op => works.push(Work::Unary { operation: unary(op)?, x: reads[0], to }),
        }
    }
    Some(works)
}

/// Gives each value a home and turns works into passes.
fn place(
    works: Vec<Work<'_>>,
    parts_of: &[Option<(usize, usize)>],
    ports: usize,
    shapes: &Shapes,
    chunk: usize,
) -> Network {
    let count = shapes.values.len();
    // A part lies where its whole lies.
    let whole = |mut value: usize| {
        let mut first = 0;
        while let Some((of, start)) = parts_of[value] {
            first += start;
            value = of;
        }
        (value, first)
    };
    let mut reach = vec![0; count];
    // When each value is looked at for the last time: the index of a work, or none that there is.
    let mut last = vec![0; count];
    for (index, work) in works.iter().enumerate() {
        work.reads().into_iter().for_each(|value| last[whole(value).0] = index);
        if let Work::Convolve { parts, .. } = work {
            for part in parts {
                let value = whole(part.value).0;
                reach[value] = reach[value].max((part.kernel - 1) * part.dilation);
            }
        }
    }
    shapes.shown.iter().for_each(|&value| last[whole(value).0] = usize::MAX);

    // Where a work changes what it reads, both values share a home, if nobody looks at the old one later.
    let mut shares: Vec<usize> = (0..count).collect();
    let mut firsts: Vec<usize> = vec![0; works.len()];
    for (index, work) in works.iter().enumerate().rev() {
        let candidates = match work {
            Work::Convolve { .. } => continue,
            Work::Unary { x, .. } => vec![*x],
            Work::Fold { x, .. } => x.clone(),
        };
        let free = |&value: &usize| {
            parts_of[value].is_none()
                && value >= ports
                && reach[value] == 0
                && last[value] == index
                && shares[value] == value
                && candidates.iter().filter(|&&other| whole(other).0 == value).count() == 1
        };
        if let Some(position) = candidates.iter().position(free) {
            shares[candidates[position]] = shares[work.makes()];
            firsts[index] = position;
        }
    }
    let owner = |value: usize| {
        let (value, first) = whole(value);
        (shares[value], first)
    };

    // Homes with a past are kept for good; the others are handed on when nobody looks at them any more.
    let mut ends = vec![0; count];
    (0..count).for_each(|value| ends[shares[value]] = ends[shares[value]].max(last[value]));
    let mut homes: Vec<Home> = Vec::new();
    let mut length = 0;
    let mut home_of = vec![usize::MAX; count];
    let mut idle: Vec<usize> = Vec::new();
    let mut busy: Vec<(usize, usize)> = Vec::new();
    let mut settle = |owner: usize, now: usize, home_of: &mut Vec<usize>| {
        if home_of[owner] != usize::MAX {
            return;
        }
        let channels = shapes.values[owner].channels;
        busy.retain(|&(home, end)| {
            let over = end < now;
            if over {
                idle.push(home);
            }
            !over
        });
        let reused = (reach[owner] == 0)
            .then(|| idle.iter().rposition(|&home: &usize| homes[home].channels == channels))
            .flatten()
            .map(|position| idle.remove(position));
        let home = reused.unwrap_or_else(|| {
            let home = Home::new(length, channels, reach[owner], chunk);
            length += home.length();
            homes.push(home);
            homes.len() - 1
        });
        if reach[owner] == 0 {
            busy.push((home, ends[owner]));
        }
        home_of[owner] = home;
    };
    // Ports are filled before anything runs.
    (0..ports).for_each(|port| settle(shares[port], 0, &mut home_of));
    for (index, work) in works.iter().enumerate() {
        settle(owner(work.makes()).0, index, &mut home_of);
    }

    let view = |value: usize| {
        let (owner, first) = owner(value);
        View { home: home_of[owner], first, channels: shapes.values[value].channels }
    };
    let mut passes = Vec::new();
    for (work, first) in works.into_iter().zip(firsts) {
        match work {
            Work::Convolve { parts, add, to } => {
                let first = convolution(&parts, add.map(view), view(to), &view);
                passes.push(Pass::Convolve { first: first.into(), second: None });
            }
            Work::Unary { operation, x, to } => {
                if shares[x] != shares[to] {
                    passes.push(Pass::Binary { operation: Binary::Copy, x: view(x), at: view(to) });
                }
                passes.push(Pass::Unary { operation, at: view(to) });
            }
            Work::Fold { operation, x, to } => {
                if shares[x[first]] != shares[to] {
                    passes.push(Pass::Binary { operation: Binary::Copy, x: view(x[first]), at: view(to) });
                }
                for (_, &other) in x.iter().enumerate().filter(|&(position, _)| position != first) {
                    passes.push(Pass::Binary { operation, x: view(other), at: view(to) });
                }
            }
        }
    }
    let mut passes = gather(gather(passes, join), pair);
    pass_on(&mut passes, &homes, view(shapes.shown[0]));
    let mut list = List::default();
    let steps: Vec<Step> = passes.into_iter().map(|pass| pass.find(&mut list)).collect();
    let steps = Steps::new(list.places(&homes), steps);
    let inputs = (0..ports).map(|port| view(port).place(&homes)).collect();
    let output = view(shapes.shown[0]).place(&homes);
    Network { steps, inputs, output, length, homes }
}

/// Makes a pass part of one before it, if nothing between them is in the way; else gives it back.
fn join(before: &mut [Pass], pass: Pass) -> Option<Pass> {
    match pass {
        // An activation of what a convolution makes.
        Pass::Unary { operation, at } => {
            if let Some(Pass::Convolve { first, second: None }) = before.last_mut()
                && let Convolve { to, then: then @ None, onto: None, .. } = &mut **first
                && *to == at
            {
                *then = Some(operation);
                return None;
            }
        }
        // A sum to which a convolution is added.
        Pass::Binary { operation: Binary::Add, x, at } => {
            let changes = |pass: &Pass| pass.targets().any(|view| view.home == x.home);
            let made = before.iter_mut().rev().find(|pass| changes(pass) || pass.touches(at.home));
            if let Some(Pass::Convolve { first, second: None }) = made
                && let Convolve { to, onto: onto @ None, taps, .. } = &mut **first
                && *to == x
                && taps.iter().all(|looked| looked.view.home != at.home)
            {
                *onto = Some(at);
                return None;
            }
        }
        _ => {}
    }
    Some(pass)
}

/// Makes a convolution the second of the pass before it, if it can be done along with that; else gives its pass back.
fn pair(before: &mut [Pass], pass: Pass) -> Option<Pass> {
    match (before.last_mut(), pass) {
        (Some(Pass::Convolve { first, second: second @ None }), Pass::Convolve { first: next, second: None })
            if first.reads_along(&next) && next.reads_along(first) =>
        {
            *second = Some(next);
            None
        }
        (_, pass) => Some(pass),
    }
}

/// Finds out what need not be stored, since only the second convolution of a pass looks at what the first makes.
fn pass_on(passes: &mut [Pass], homes: &[Home], output: View) {
    for index in 0..passes.len() {
        let (pass, later) = passes[index..].split_first_mut().expect("it is one of them");
        let Pass::Convolve { first, second: Some(second) } = pass else { continue };
        let View { home, .. } = first.to;
        let next = later.iter().find(|pass| pass.touches(home));
        let looked_at = next.map_or(output.home == home, |next| next.reads(home));
        first.passed_on = !looked_at && !homes[home].has_past() && second.add.is_none_or(|add| add.home != home);
    }
}

/// The passes that are left where each may become part of those before it.
fn gather(passes: Vec<Pass>, into: impl Fn(&mut [Pass], Pass) -> Option<Pass>) -> Vec<Pass> {
    passes.into_iter().fold(Vec::new(), |mut gathered, pass| {
        if let Some(pass) = into(&mut gathered, pass) {
            gathered.push(pass);
        }
        gathered
    })
}

fn convolution(parts: &[Convolved<'_>], add: Option<View>, to: View, view: &impl Fn(usize) -> View) -> Convolve {
    let mut taps = Vec::new();
    // Of each input of the sum: its part, its tap and its channel.
    let mut inputs = Vec::new();
    for part in parts {
        let view = view(part.value);
        taps.push(Looked { view, delays: (0..part.kernel).rev().map(|tap| tap * part.dilation).collect() });
        for tap in 0..part.kernel {
            inputs.extend((0..part.inputs).map(|channel| (part, tap, channel)));
        }
    }
    let bias: Vec<f32> = (0..to.channels).map(|output| parts.iter().map(|part| part.bias[output]).sum()).collect();
    let weights = TapWeights::new(inputs.len(), &bias, |output, input| {
        let (part, tap, channel) = inputs[input];
        let (group_inputs, group_outputs) = (part.inputs / part.groups, to.channels / part.groups);
        let inside = output / group_outputs == channel / group_inputs;
        let at = (output * group_inputs + channel % group_inputs) * part.kernel + tap;
        if inside { part.weight[at] } else { 0.0 }
    });
    Convolve { weights, taps, add, to, then: None, onto: None, passed_on: false }
}

#[cfg(test)]
mod tests;
