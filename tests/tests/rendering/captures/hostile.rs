//! Damaged and altered files give an error or a model that plays, never a panic, a hang or a huge allocation.

use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::model::import;
use ondes_engine::native::Executor;
use serde_json::Value;

use super::generate::Generator;

/// Number of files per format.
const FILES: u64 = 10_000;

/// Reads damaged files of a format; plays one in `every` of those that are accepted.
fn check(make: impl Fn(&mut Generator) -> Value) {
    let mut generator = Generator::new(99);
    let small: Vec<Value> = (0..20).map(|seed| make(&mut Generator::new(seed))).collect();
    let clean: Vec<String> = small.iter().map(Value::to_string).collect();
    let (mut read, mut refused) = (0, 0);
    for index in 0..FILES {
        let of = index as usize % small.len();
        let bytes = if index % 2 == 0 {
            generator.mutated(clean[of].as_bytes())
        } else {
            generator.twisted(&small[of]).to_string().into_bytes()
        };
        let started = Instant::now();
        match import::parse(&bytes) {
            Err(fault) => {
                let message = fault.to_string();
                assert!(!message.contains('\n') && message.len() < 600, "one line: {message}");
                refused += 1;
            }
            Ok(import::ImportedModel { model, .. }) => {
                read += 1;
                if read % 50 == 0 {
                    let block = model.method("forward").expect("it is an effect").block;
                    // One that would hold too much is refused here.
                    if let Ok(mut executor) = Executor::new(&model, "forward", Kernels::detect(), 1, 64 / block) {
                        executor.begin(&[0], 64 / block);
                        executor.run();
                    }
                }
            }
        }
        assert!(started.elapsed().as_secs() < 20, "it hangs");
    }
    assert!(read > 100 && refused > 1_000, "{read} read, {refused} refused");
}

#[test]
fn wavenets() {
    check(|generator| generator.wavenet(1));
}

#[test]
fn other_architectures() {
    check(|generator| generator.convnet());
    check(|generator| generator.lstm_of(4, 2));
    check(|generator| generator.linear(20));
}

#[test]
fn containers() {
    check(|generator| generator.container(2));
}

#[test]
fn aida_x_and_rtneural() {
    check(Generator::keras);
}

#[test]
fn proteus() {
    check(Generator::proteus);
}
