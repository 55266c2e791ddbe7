//! Throughput of each variant, compared with a plain loop in the same run.

use std::f64::consts::TAU;
use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use half::f16;
use ondes_kernels::{
    Activation, Columns, HarmonicFrame, Int8Columns, Int8Matrix, Kernels, PackedMatrix,
    int8_frame_width,
};

fn values(len: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

fn each_variant(group: &mut BenchmarkGroup<'_, WallTime>, mut work: impl FnMut(Kernels)) {
    for kernels in Kernels::available() {
        group.bench_function(kernels.name(), |bencher| bencher.iter(|| work(kernels)));
    }
}

/// Matrix product, counted in multiply-adds.
struct Product {
    name: &'static str,
    outputs: usize,
    taps: usize,
    inputs: usize,
    columns: usize,
}

const PRODUCTS: [Product; 8] = [
    // A GRU's weights: one voice, eight voices, a batch.
    Product {
        name: "dense 576x384, 1 column",
        outputs: 576,
        taps: 1,
        inputs: 384,
        columns: 1,
    },
    Product {
        name: "dense 576x384, 8 columns",
        outputs: 576,
        taps: 1,
        inputs: 384,
        columns: 8,
    },
    Product {
        name: "dense 576x384, 64 columns",
        outputs: 576,
        taps: 1,
        inputs: 384,
        columns: 64,
    },
    // Weights that exceed the caches of a core, as in a large codec.
    Product {
        name: "dense 6144x1024, 1 column",
        outputs: 6144,
        taps: 1,
        inputs: 1024,
        columns: 1,
    },
    Product {
        name: "convolution 512x(3x512), 32 columns",
        outputs: 512,
        taps: 3,
        inputs: 512,
        columns: 32,
    },
    // Weights that fit into the nearest cache.
    Product {
        name: "dense 96x64, 1 column",
        outputs: 96,
        taps: 1,
        inputs: 64,
        columns: 1,
    },
    // A convolution over frames, and one of few channels as in an amplifier capture, both with a
    // dilation of two.
    Product {
        name: "convolution 64x(3x64), 256 columns",
        outputs: 64,
        taps: 3,
        inputs: 64,
        columns: 256,
    },
    Product {
        name: "convolution 16x(3x8), 256 columns",
        outputs: 16,
        taps: 3,
        inputs: 8,
        columns: 256,
    },
];

fn matmul(criterion: &mut Criterion) {
    for Product {
        name,
        outputs,
        taps,
        inputs,
        columns,
    } in PRODUCTS
    {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(
            (outputs * taps * inputs * columns) as u64,
        ));
        let depth = taps * inputs;
        let weights = values(outputs * depth);
        let bias = values(outputs);
        let packed = PackedMatrix::new(
            outputs,
            taps,
            inputs,
            |o, t, i| weights[o * depth + t * inputs + i],
            Some(&bias),
        );
        let tap_stride = 2 * inputs;
        let stride = if taps == 1 { depth } else { inputs };
        let data = values((columns - 1) * stride + (taps - 1) * tap_stride + inputs);
        let mut y = vec![0.0; columns * outputs];
        group.bench_function("plain loop", |bencher| {
            bencher.iter(|| {
                let data = black_box(&data[..]);
                for (column, y) in y.chunks_exact_mut(outputs).enumerate() {
                    for (output, y) in y.iter_mut().enumerate() {
                        *y = bias[output];
                        for tap in 0..taps {
                            let w = &weights[output * depth + tap * inputs..][..inputs];
                            let x = &data[column * stride + tap * tap_stride..][..inputs];
                            *y += w.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
                        }
                    }
                }
                black_box(&mut y);
            });
        });
        each_variant(&mut group, |kernels| {
            let columns = Columns {
                data: black_box(&data),
                count: columns,
                stride,
                tap_stride,
            };
            kernels.matmul(&packed, columns, black_box(&mut y), outputs);
        });
        // The same with weights in half precision.
        let half =
            |o: usize, t: usize, i: usize| f16::from_f32(weights[o * depth + t * inputs + i]);
        let packed = PackedMatrix::new_f16(outputs, taps, inputs, half, Some(&bias));
        for kernels in Kernels::available() {
            group.bench_function(format!("f16 {}", kernels.name()), |bencher| {
                bencher.iter(|| {
                    let columns = Columns {
                        data: black_box(&data),
                        count: columns,
                        stride,
                        tap_stride,
                    };
                    kernels.matmul(&packed, columns, black_box(&mut y), outputs);
                });
            });
        }
        // The same in eight bits, with the quantization of the frames.
        let (scales, width) = (vec![0.01; outputs], int8_frame_width(inputs));
        let byte =
            |o: usize, t: usize, i: usize| (100.0 * weights[o * depth + t * inputs + i]) as i8;
        let packed = Int8Matrix::new(outputs, taps, inputs, byte, &scales, &bias);
        let frames = columns + 2 * (taps - 1);
        let x = values(frames * inputs);
        let (mut codes, mut frame_scales) = (vec![0; frames * width], vec![0.0; frames]);
        for kernels in Kernels::available_for_int8() {
            group.bench_function(format!("int8 {}", kernels.int8_name()), |bencher| {
                bencher.iter(|| {
                    let past = 2 * (taps - 1);
                    let (new_codes, new_scales) =
                        (&mut codes[past * width..], &mut frame_scales[past..]);
                    kernels.quantize(
                        black_box(&x[past * inputs..]),
                        inputs,
                        new_codes,
                        new_scales,
                    );
                    let (codes, scales) = (&codes[..], &frame_scales[..]);
                    let x = Int8Columns {
                        codes,
                        scales,
                        width,
                        first: 0,
                        count: columns,
                        stride: 1,
                        tap_stride: 2,
                    };
                    kernels.int8_matmul(&packed, x, black_box(&mut y), outputs);
                });
            });
        }
        group.finish();
    }
}

fn harmonics(criterion: &mut Criterion) {
    for count in [100, 16, 1] {
        let mut group = criterion.benchmark_group(format!("{count} harmonics, 192 samples"));
        group.throughput(Throughput::Elements(count as u64 * 192));
        let (start, end) = (vec![0.01; count], vec![0.02; count]);
        let frame = HarmonicFrame {
            phase: 0.3,
            step_start: 0.004,
            step_end: 0.0041,
            start: &start,
            end: &end,
        };
        let mut out = [0.0f32; 192];
        group.bench_function("plain loop", |bencher| {
            bencher.iter(|| {
                let frame = black_box(frame);
                for (n, out) in out.iter_mut().enumerate() {
                    let t = (n + 1) as f64;
                    let phase = frame.phase
                        + t * frame.step_start
                        + (frame.step_end - frame.step_start) * t * t / 384.0;
                    let angle = ((phase - phase.round()) * TAU) as f32;
                    let time = t as f32 / 192.0;
                    *out = 0.0;
                    for (h, (start, end)) in frame.start.iter().zip(frame.end).enumerate() {
                        *out += (start + (end - start) * time) * ((h + 1) as f32 * angle).sin();
                    }
                }
                black_box(&mut out);
            });
        });
        each_variant(&mut group, |kernels| {
            kernels.harmonics(black_box(frame), black_box(&mut out))
        });
        group.finish();
    }
}

/// Activation, and its formula with the standard library.
type Case = (Activation, fn(f32) -> f32);

const ACTIVATIONS: [Case; 3] = [
    (Activation::Tanh, f32::tanh),
    (Activation::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    (Activation::ExpSigmoid, |x| {
        2.0 * (1.0 / (1.0 + (-x).exp())).powf(std::f32::consts::LN_10) + 1e-7
    }),
];

fn activations(criterion: &mut Criterion) {
    for (activation, plain) in ACTIVATIONS {
        let mut group = criterion.benchmark_group(format!("{activation:?}, 256 values"));
        group.throughput(Throughput::Elements(256));
        let x: Vec<f32> = values(256).iter().map(|x| 4.0 * x).collect();
        let mut y = x.clone();
        group.bench_function("plain loop", |bencher| {
            bencher.iter(|| {
                y.copy_from_slice(black_box(&x));
                y.iter_mut().for_each(|y| *y = plain(*y));
                black_box(&mut y);
            });
        });
        each_variant(&mut group, |kernels| {
            y.copy_from_slice(black_box(&x));
            kernels.activate(activation, black_box(&mut y));
        });
        group.finish();
    }
}

fn white_noise(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("white noise, 192 samples");
    group.throughput(Throughput::Elements(192));
    let mut out = [0.0f32; 192];
    each_variant(&mut group, |kernels| {
        kernels.white_noise(black_box(7), black_box(99), black_box(&mut out))
    });
    group.finish();
}

/// Measures the products of a convolution in the frequency domain, as of a room.
fn complex_multiply_add(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("complex products, 16 blocks of 200");
    group.throughput(Throughput::Elements(16 * 200));
    let (a, b) = (values(16 * 400), values(16 * 400));
    let mut sum = vec![0.0f32; 400];
    group.bench_function("plain loop", |bencher| {
        bencher.iter(|| {
            let (a, b) = (black_box(&a), black_box(&b));
            sum.fill(0.0);
            for (a, b) in a.chunks_exact(400).zip(b.chunks_exact(400)) {
                for ((sum, a), b) in sum
                    .chunks_exact_mut(2)
                    .zip(a.chunks_exact(2))
                    .zip(b.chunks_exact(2))
                {
                    sum[0] += a[0] * b[0] - a[1] * b[1];
                    sum[1] += a[0] * b[1] + a[1] * b[0];
                }
            }
            black_box(&mut sum);
        });
    });
    each_variant(&mut group, |kernels| {
        sum.fill(0.0);
        kernels.complex_multiply_add(black_box(&mut sum), black_box(&a), black_box(&b));
    });
    group.finish();
}

fn real_bins(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("real bins, 95 pairs");
    group.throughput(Throughput::Elements(190));
    let (mut near, mut far, twiddles) = (values(190), values(190), values(190));
    each_variant(&mut group, |kernels| {
        // The results are the next inputs; this keeps them finite and normal.
        near[0] = 1.0;
        kernels.real_bins(
            black_box(&mut near),
            black_box(&mut far),
            black_box(&twiddles),
            0.5,
        );
    });
    group.finish();
}

criterion_group!(
    benches,
    matmul,
    harmonics,
    activations,
    white_noise,
    complex_multiply_add,
    real_bins
);
criterion_main!(benches);
