use ondes_kernels::TapWeights;

use super::*;

fn view(home: usize) -> View {
    View { home, first: 0, channels: 1 }
}

/// A convolution from one home to another.
fn convolve(from: usize, to: usize) -> Convolve {
    let taps = vec![Looked { view: view(from), delays: vec![0] }];
    let weights = TapWeights::new(1, &[0.0], |_, _| 1.0);
    Convolve { weights, taps, add: None, to: view(to), then: None, onto: None, passed_on: false }
}

fn pass(first: Convolve, second: Option<Convolve>) -> Pass {
    Pass::Convolve { first: first.into(), second: second.map(Box::new) }
}

/// Whether what goes from home 0 by way of home 1 to home 2 is stored in home 1, when these passes follow.
fn is_stored(second: Convolve, later: Vec<Pass>, reach: usize, output: usize) -> bool {
    let homes = [0, reach, 0, 0].map(|reach| Home::new(0, 1, reach, 64));
    let mut passes = vec![pass(convolve(0, 1), Some(second))];
    passes.extend(later);
    pass_on(&mut passes, &homes, view(output));
    let Pass::Convolve { first, .. } = &passes[0] else { panic!("it was a convolution") };
    !first.passed_on
}

#[test]
fn what_somebody_looks_at_later_is_stored() {
    let second = || convolve(1, 2);
    assert!(!is_stored(second(), Vec::new(), 0, 2));
    assert!(is_stored(second(), Vec::new(), 0, 1), "it is what comes out");
    assert!(is_stored(second(), Vec::new(), 5, 2), "its past is looked at");
    assert!(is_stored(Convolve { add: Some(view(1)), ..second() }, Vec::new(), 0, 2), "it is a residual");
    let reads = || pass(convolve(1, 3), None);
    let writes = || pass(convolve(0, 1), None);
    assert!(is_stored(second(), vec![reads()], 0, 2));
    assert!(is_stored(second(), vec![reads(), writes()], 0, 2));
    assert!(!is_stored(second(), vec![writes(), reads()], 0, 2), "by then it is another signal");
    let adds = || Pass::Binary { operation: Binary::Add, x: view(2), at: view(1) };
    assert!(is_stored(second(), vec![adds()], 0, 2));
    let copies = || Pass::Binary { operation: Binary::Copy, x: view(2), at: view(1) };
    assert!(!is_stored(second(), vec![copies(), reads()], 0, 2));
}
