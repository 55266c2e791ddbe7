//! The device agrees with the native executor, in f32 and, within their precision, in f16 and bf16.

use ondes_engine::executor::{Device, Precision};
use ondes_engine::model::{Model, file};
use ondes_tests::audio_models::{untrained_codec, untrained_effect};
use ondes_tests::bundled_file;
use ondes_tests::torchscript::models::streaming;

use crate::report::Report;
use crate::stepping::{inputs, prepare, program, relative_rms, step};

/// Relative RMS tolerances: f32 for sums of some hundred products in another order; f16 and bf16
/// for rounding to 11 and 8 bits in a capture with high gain.
const BOUNDS: [(Precision, f64); 3] = [
    (Precision::F32, 1e-4),
    (Precision::F16, 2e-2),
    (Precision::Bf16, 8e-2),
];
const STREAMS: [usize; 2] = [0, 1];
const BLOCKS: usize = 50;
/// Bundled captures; instruments run on the native executor only.
const CAPTURES: [&str; 3] = ["overdrive", "triode", "fuzz"];

/// Compares all methods of effects and codecs, and a program with itself in f32 on the CPU.
pub fn check(device: Device, report: &mut Report) -> Result<(), String> {
    let bounds = BOUNDS
        .map(|(precision, bound)| format!("{bound:e} in {precision}"))
        .join(", ");
    report.section(
        "Parity",
        &format!(
            "Our own code and libtorch (of a program: libtorch in f32 on the CPU), on noise: relative RMS of the difference, at most {bounds}."
        ),
        &["model", "method", "precision", "difference", "agrees"],
    );
    let mut models = vec![
        ("untrained effect".to_owned(), untrained_effect(1)),
        ("untrained codec".into(), untrained_codec(1)),
    ];
    for capture in CAPTURES {
        let model = file::read(&bundled_file(capture)).map_err(|error| error.to_string())?;
        models.push((capture.into(), model));
    }
    models.push((
        "program: convolutions, 32 channels".into(),
        program(&streaming(32, 1))?,
    ));
    for (name, model) in &models {
        for method in &model.header().methods {
            let reference = model.program().map(|_| (Device::Cpu, Precision::F32));
            let reference = output(model, &method.name, reference)?;
            for (precision, bound) in BOUNDS {
                let difference = relative_rms(
                    &output(model, &method.name, Some((device, precision)))?,
                    &reference,
                );
                let cells = [
                    name.clone(),
                    method.name.clone(),
                    precision.to_string(),
                    format!("{difference:.1e}"),
                ];
                report.check(&cells, difference <= bound);
            }
        }
    }
    Ok(())
}

/// Runs a method on noise, on the device or on the native executor.
fn output(
    model: &Model,
    method: &str,
    there: Option<(Device, Precision)>,
) -> Result<Vec<f32>, String> {
    let facts = model.method(method).map_err(|fault| fault.to_string())?;
    let given: Vec<_> = STREAMS
        .iter()
        .map(|&stream| inputs(facts, stream, BLOCKS))
        .collect();
    let mut executor = prepare(model, method, there, STREAMS.len(), BLOCKS)?;
    // Twice, so that the second step starts from the state after the first.
    step(&mut executor, &STREAMS, BLOCKS, &given);
    Ok(step(&mut executor, &STREAMS, BLOCKS, &given).concat())
}
