//! Assignment of a method's values to signal buffers.

use super::channel_range::ChannelRange;
use super::lowering::LoweredOp;
use super::signal_buffer::SignalBuffer;
use crate::model::Method;
use crate::model::graph::Shapes;
use crate::ops::RowPass;

/// Buffers of a network, and the channel range of each value in them.
pub struct Layout {
    pub buffers: Vec<SignalBuffer>,
    /// Values of all buffers together.
    pub length: usize,
    splits: Splits,
    sharing: Sharing,
    /// `[value]`: the buffer of a value that owns one.
    buffer_of: Vec<usize>,
    /// `[value]`
    channels: Vec<usize>,
}

impl Layout {
    /// Assigns buffers for chunks of up to `chunk` frames.
    pub fn new(method: &Method, shapes: &Shapes, ops: &[LoweredOp<'_>], chunk: usize) -> Self {
        let count = shapes.values.len();
        let ports = method.inputs.len();
        let splits = Splits::new(method, shapes);
        let usage = Usage::new(shapes, ops, &splits);
        let sharing = Sharing::new(ops, ports, &splits, &usage);
        let mut last_use = vec![0; count];
        for value in 0..count {
            let owner = sharing.owner[value];
            last_use[owner] = last_use[owner].max(usage.last_use[value]);
        }
        let channels: Vec<usize> = shapes.values.iter().map(|shape| shape.channels).collect();
        let mut allocator = Allocator {
            chunk,
            ..Allocator::default()
        };
        let mut buffer_of = vec![usize::MAX; count];
        // Ports are filled before the first operation runs.
        let ports = (0..ports).map(|port| (0, sharing.owner[port]));
        let outputs = ops.iter().enumerate().map(|(index, op)| {
            let (whole, _) = splits.whole(op.output());
            (index, sharing.owner[whole])
        });
        for (index, owner) in ports.chain(outputs) {
            if buffer_of[owner] == usize::MAX {
                buffer_of[owner] =
                    allocator.allocate(index, last_use[owner], channels[owner], usage.reach[owner]);
            }
        }
        Self {
            buffers: allocator.buffers,
            length: allocator.length,
            splits,
            sharing,
            buffer_of,
            channels,
        }
    }

    /// Returns the channel range of a value.
    pub fn range(&self, value: usize) -> ChannelRange {
        let (whole, first) = self.splits.whole(value);
        let buffer = self.buffer_of[self.sharing.owner[whole]];
        ChannelRange {
            buffer,
            first,
            channels: self.channels[value],
        }
    }

    /// Returns whether the value `input` is overwritten by the value `output`, so that no copy is
    /// needed.
    pub fn is_in_place(&self, input: usize, output: usize) -> bool {
        self.sharing.owner[input] == self.sharing.owner[output]
    }

    /// Returns the index of the input that becomes the output of an operation; the first if none is
    /// overwritten.
    pub fn initial_input(&self, op: usize) -> usize {
        self.sharing.initial_input[op]
    }
}

/// `[value]`: the value that it is a channel range of, and the first channel; `None` for a value of
/// its own.
struct Splits(Vec<Option<(usize, usize)>>);

impl Splits {
    fn new(method: &Method, shapes: &Shapes) -> Self {
        let nodes = method.nodes.iter().zip(&shapes.reads).map(|(node, reads)| {
            match node.op.operation().row_pass() {
                Some(RowPass::Range { start }) => Some((reads[0], start)),
                _ => None,
            }
        });
        Self(
            std::iter::repeat_n(None, method.inputs.len())
                .chain(nodes)
                .collect(),
        )
    }

    /// Returns the value that holds a value's channels, and the first of them there.
    fn whole(&self, mut value: usize) -> (usize, usize) {
        let mut first = 0;
        while let Some((whole, start)) = self.0[value] {
            first += start;
            value = whole;
        }
        (value, first)
    }

    fn is_part(&self, value: usize) -> bool {
        self.0[value].is_some()
    }
}

/// Use of each value, and of its channel ranges.
struct Usage {
    /// `[value]`: longest delay at which it is read, in frames.
    reach: Vec<usize>,
    /// `[value]`: index of the last operation that reads it; `usize::MAX` for outputs.
    last_use: Vec<usize>,
}

impl Usage {
    fn new(shapes: &Shapes, ops: &[LoweredOp<'_>], splits: &Splits) -> Self {
        let count = shapes.values.len();
        let mut usage = Self {
            reach: vec![0; count],
            last_use: vec![0; count],
        };
        for (index, op) in ops.iter().enumerate() {
            op.inputs()
                .into_iter()
                .for_each(|value| usage.last_use[splits.whole(value).0] = index);
            if let LoweredOp::Convolution { parts, .. } = op {
                for part in parts {
                    let reach = &mut usage.reach[splits.whole(part.value).0];
                    *reach = (*reach).max((part.kernel - 1) * part.dilation);
                }
            }
        }
        shapes
            .shown
            .iter()
            .for_each(|&value| usage.last_use[splits.whole(value).0] = usize::MAX);
        usage
    }
}

/// Values that share a buffer, because an operation overwrites its input.
struct Sharing {
    /// `[value]`: the value whose buffer it uses.
    owner: Vec<usize>,
    /// `[op]`: index of the input that is overwritten; 0 if none is.
    initial_input: Vec<usize>,
}

impl Sharing {
    /// Lets each operation overwrite an input that has no past, is read by nothing later and only
    /// once by the operation.
    fn new(ops: &[LoweredOp<'_>], ports: usize, splits: &Splits, usage: &Usage) -> Self {
        let mut owner: Vec<usize> = (0..usage.reach.len()).collect();
        let mut initial_input = vec![0; ops.len()];
        for (index, op) in ops.iter().enumerate().rev() {
            let inputs = match op {
                LoweredOp::Convolution { .. } => continue,
                LoweredOp::Unary { .. } | LoweredOp::Fold { .. } => op.inputs(),
            };
            let is_free = |&value: &usize| {
                !splits.is_part(value)
                    && value >= ports
                    && usage.reach[value] == 0
                    && usage.last_use[value] == index
                    && owner[value] == value
                    && inputs
                        .iter()
                        .filter(|&&other| splits.whole(other).0 == value)
                        .count()
                        == 1
            };
            if let Some(position) = inputs.iter().position(is_free) {
                owner[inputs[position]] = owner[op.output()];
                initial_input[index] = position;
            }
        }
        Self {
            owner,
            initial_input,
        }
    }
}

/// Allocates buffers. Those with a past are kept; the others are reused after the last operation
/// that reads them.
#[derive(Default)]
struct Allocator {
    chunk: usize,
    buffers: Vec<SignalBuffer>,
    length: usize,
    idle: Vec<usize>,
    /// Buffers in use, and the last operation that reads each.
    busy: Vec<(usize, usize)>,
}

impl Allocator {
    /// Returns the buffer for a value that operation `index` computes and operation `last_use`
    /// reads last.
    fn allocate(&mut self, index: usize, last_use: usize, channels: usize, reach: usize) -> usize {
        let Self {
            chunk,
            buffers,
            length,
            idle,
            busy,
        } = self;
        busy.retain(|&(buffer, last_use)| {
            let is_done = last_use < index;
            if is_done {
                idle.push(buffer);
            }
            !is_done
        });
        if reach == 0
            && let Some(position) = idle
                .iter()
                .rposition(|&buffer| buffers[buffer].channels == channels)
        {
            let buffer = idle.remove(position);
            busy.push((buffer, last_use));
            return buffer;
        }
        let buffer = SignalBuffer::new(*length, channels, reach, *chunk);
        *length += buffer.length();
        buffers.push(buffer);
        if reach == 0 {
            busy.push((buffers.len() - 1, last_use));
        }
        buffers.len() - 1
    }
}
