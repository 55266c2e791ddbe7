use ondes_kernels::TapWeights;

use super::*;

fn range(buffer: usize) -> ChannelRange {
    ChannelRange {
        buffer,
        first: 0,
        channels: 1,
    }
}

/// A convolution from one buffer to another.
fn convolve(from: usize, to: usize) -> FusedConvolution {
    FusedConvolution {
        weights: TapWeights::new(1, &[0.0], |_, _| 1.0),
        taps: vec![TapSource {
            range: range(from),
            delays: vec![0],
        }],
        residual: None,
        output: range(to),
        activation: None,
        accumulate_into: None,
        transient: false,
    }
}

fn pass(first: FusedConvolution, second: Option<FusedConvolution>) -> FusedPass {
    FusedPass::Convolution {
        first: first.into(),
        second: second.map(Box::new),
    }
}

/// Returns whether a pass that convolves buffer 0 into 1 and then `second` stores buffer 1, if
/// `later` passes follow.
fn is_stored(second: FusedConvolution, later: Vec<FusedPass>, reach: usize, output: usize) -> bool {
    let buffers = [0, reach, 0, 0].map(|reach| SignalBuffer::new(0, 1, reach, 64));
    let mut passes = vec![pass(convolve(0, 1), Some(second))];
    passes.extend(later);
    mark_transient(&mut passes, &buffers, range(output));
    let FusedPass::Convolution { first, .. } = &passes[0] else {
        panic!("it was a convolution")
    };
    !first.transient
}

#[test]
fn an_intermediate_is_stored_if_it_is_read_later() {
    let second = || convolve(1, 2);
    assert!(!is_stored(second(), Vec::new(), 0, 2));
    assert!(is_stored(second(), Vec::new(), 0, 1), "it is the output");
    assert!(is_stored(second(), Vec::new(), 5, 2), "its past is read");
    assert!(
        is_stored(
            FusedConvolution {
                residual: Some(range(1)),
                ..second()
            },
            Vec::new(),
            0,
            2
        ),
        "it is a residual"
    );
    let reads = || pass(convolve(1, 3), None);
    let writes = || pass(convolve(0, 1), None);
    assert!(is_stored(second(), vec![reads()], 0, 2));
    assert!(is_stored(second(), vec![reads(), writes()], 0, 2));
    assert!(
        !is_stored(second(), vec![writes(), reads()], 0, 2),
        "by then it is another signal"
    );
    let adds = || FusedPass::Binary {
        operation: Binary::Add,
        operand: range(2),
        in_out: range(1),
    };
    assert!(is_stored(second(), vec![adds()], 0, 2));
    let copies = || FusedPass::Binary {
        operation: Binary::Copy,
        operand: range(2),
        in_out: range(1),
    };
    assert!(!is_stored(second(), vec![copies(), reads()], 0, 2));
}
