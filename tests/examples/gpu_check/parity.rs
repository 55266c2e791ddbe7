//! The device computes what our own code computes.

use ondes_engine::executor::Device;
use ondes_engine::model::{Model, file};
use ondes_tests::bundled_file;
use ondes_tests::through::{untrained_codec, untrained_effect};

use crate::report::Report;
use crate::stepping::{inputs, prepare, relative_rms, step};

/// Relative RMS of the difference: what f32 leaves of networks that sum up some hundred products in another order.
const BOUND: f64 = 1e-4;
const STREAMS: [usize; 2] = [0, 1];
const BLOCKS: usize = 50;
/// The bundled captures; instruments are run by our own code alone.
const CAPTURES: [&str; 3] = ["overdrive", "triode", "fuzz"];

/// Compares all methods of effects and codecs that there are.
pub fn check(device: Device, report: &mut Report) -> Result<(), String> {
    report.section(
        "Parity",
        &format!("Our own code and libtorch, on noise: relative RMS of the difference, at most {BOUND:e}."),
        &["model", "method", "difference", "agrees"],
    );
    let mut models =
        vec![("untrained effect".to_owned(), untrained_effect(1)), ("untrained codec".into(), untrained_codec(1))];
    for capture in CAPTURES {
        let model = file::read(&bundled_file(capture)).map_err(|error| error.to_string())?;
        models.push((capture.into(), model));
    }
    for (name, model) in &models {
        for method in &model.header().methods {
            let difference = difference(model, &method.name, device)?;
            let cells = [name.clone(), method.name.clone(), format!("{difference:.1e}")];
            report.check(&cells, difference <= BOUND);
        }
    }
    Ok(())
}

fn difference(model: &Model, method: &str, device: Device) -> Result<f64, String> {
    let facts = model.method(method).map_err(|fault| fault.to_string())?;
    let given: Vec<_> = STREAMS.iter().map(|&stream| inputs(facts, stream, BLOCKS)).collect();
    let run = |device| {
        let mut executor = prepare(model, method, device, STREAMS.len(), BLOCKS)?;
        // Twice: the second step begins with what the first has left.
        step(&mut *executor, &STREAMS, BLOCKS, &given);
        Ok::<_, String>(step(&mut *executor, &STREAMS, BLOCKS, &given).concat())
    };
    Ok(relative_rms(&run(Some(device))?, &run(None)?))
}
