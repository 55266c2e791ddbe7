use ondes_training::*;
use tch::{Device, Kind, Tensor};
fn main() {
    tch::set_num_threads(1);
    let name = std::env::args().nth(1).unwrap();
    let c = config::Config::read(std::path::Path::new(&format!("training/recipes/{name}.toml"))).unwrap();
    let mut t = trainer::Trainer::new(c.clone()).unwrap();
    t.resume().unwrap();
    let m = t.model().unwrap();
    ondes_engine::model::file::write(&m, std::path::Path::new(&format!("target/snap-{name}.ondes"))).unwrap();
    let rate = evaluate::feature_rate(&m).unwrap();
    let files = dataset::hear(c.held_out.as_ref().unwrap(), &c.work.join("features"), rate).unwrap();
    let files = &files[..4];
    let base = evaluate::sawtooth::Baseline::new(files, rate);
    let scales = [4096i64, 2048, 1024, 512, 256];
    let spec = |a: &[f32], n: i64| {
        let w = Tensor::hann_window(n, (Kind::Float, Device::Cpu));
        let s = w.sum(Kind::Float);
        let w = w * 2.0 / s;
        Tensor::from_slice(a).view([1, -1]).stft(n, n / 4, n, Some(&w), false, true, true, false).abs()
    };
    let floor = 1e-4;
    let mut acc = [[0.0f64; 5]; 4];
    for (i, f) in files.iter().enumerate() {
        let r = evaluate::replay(&m, f).unwrap();
        let b = base.replay(f);
        for (x, n) in [(&r[..], "model"), (&b[..], "saw"), (f.audio(), "real")] {
            std::fs::write(format!("target/snap-{name}-{i}-{n}.f32"), bytemuck::cast_slice::<f32, u8>(x)).unwrap();
        }
        std::fs::write(format!("target/snap-{name}-{i}-pitch.f32"), bytemuck::cast_slice::<f32, u8>(f.pitch()))
            .unwrap();
        std::fs::write(format!("target/snap-{name}-{i}-loud.f32"), bytemuck::cast_slice::<f32, u8>(f.loudness()))
            .unwrap();
        for (k, x) in [&r, &b].iter().enumerate() {
            for (j, &n) in scales.iter().enumerate() {
                let (s, t) = (spec(x, n), spec(f.audio(), n));
                acc[k * 2][j] += ((&s - &t).abs().mean(Kind::Float) / t.mean(Kind::Float)).double_value(&[]);
                acc[k * 2 + 1][j] += ((s + floor).log() - (t + floor).log()).abs().mean(Kind::Float).double_value(&[]);
            }
        }
    }
    for (k, n) in ["model lin", "model log", "base lin", "base log"].iter().enumerate() {
        println!(
            "{n} {:?} {:.3}",
            acc[k].map(|x| (x / files.len() as f64 * 1000.0).round() / 1000.0),
            acc[k].iter().sum::<f64>() / 20.0
        );
    }
}
