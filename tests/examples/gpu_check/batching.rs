//! Sessions in a batch equal sessions alone.

use ondes_engine::executor::{Device, Precision};
use ondes_engine::model::Model;
use ondes_tests::audio_models::untrained_effect;
use ondes_tests::torchscript::models::{counter, streaming};

use crate::report::Report;
use crate::stepping::{inputs, prepare, program, relative_rms, step};

const SESSIONS: [usize; 4] = [1, 2, 8, 32];
const STEPS: usize = 8;
/// Tolerance: libraries sum in another order for another batch size.
const BOUND: f64 = 1e-5;

/// Compares batches to sessions alone.
pub fn check(device: Device, report: &mut Report) -> Result<(), String> {
    report.section(
        "Batches",
        &format!(
            "Sessions that are stepped as one batch, in changing order, against each of them alone, {STEPS} steps: relative RMS of the \
             largest difference, at most {BOUND:e}."
        ),
        &["model", "sessions", "difference", "equal"],
    );
    let models = [
        ("graph: untrained effect", untrained_effect(1)),
        (
            "program: convolutions, 32 channels",
            program(&streaming(32, 1))?,
        ),
        (
            "program: a counter, copied for each session",
            program(&counter())?,
        ),
    ];
    for (name, model) in &models {
        for sessions in SESSIONS {
            let difference = difference(model, device, sessions)?;
            let cells = [
                (*name).to_owned(),
                sessions.to_string(),
                format!("{difference:.1e}"),
            ];
            report.check(&cells, difference <= BOUND);
        }
    }
    Ok(())
}

fn difference(model: &Model, device: Device, sessions: usize) -> Result<f64, String> {
    let method = model.method("forward").map_err(|fault| fault.to_string())?;
    let there = Some((device, Precision::F32));
    let mut batch = prepare(model, "forward", there, sessions, 1)?;
    let mut alone = Vec::new();
    for _ in 0..sessions {
        alone.push(prepare(model, "forward", there, 1, 1)?);
    }
    let mut largest: f64 = 0.0;
    for number in 0..STEPS {
        // Another order in each step, sometimes with streams left out.
        let mut streams: Vec<usize> = (0..sessions)
            .filter(|stream| number == 0 || (stream + number) % 5 > 0)
            .collect();
        let turn = number % streams.len().max(1);
        streams.rotate_left(turn);
        if streams.is_empty() {
            continue;
        }
        let given: Vec<_> = streams
            .iter()
            .map(|&stream| inputs(method, 1_000 * number + stream, 1))
            .collect();
        let together = step(&mut batch, &streams, 1, &given);
        for ((&stream, given), together) in streams.iter().zip(given).zip(together) {
            let single = step(&mut alone[stream], &[0], 1, &[given]);
            largest = largest.max(relative_rms(&together, &single[0]));
        }
    }
    Ok(largest)
}
