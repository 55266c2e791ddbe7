//! Upper bounds on what a model file may request; larger requests are refused before anything is
//! allocated.

/// Largest file, bytes; far above any network that plays in real time.
pub const FILE_BYTES: usize = 2 << 30;
/// Largest program, bytes; programs are held in memory.
pub const PROGRAM_BYTES: usize = 1 << 30;
/// Largest JSON header, bytes.
pub const HEADER_BYTES: usize = 8 << 20;
/// Longest name or one-line text, bytes.
pub const NAME_BYTES: usize = 256;
/// Longest description, bytes.
pub const TEXT_BYTES: usize = 64 << 10;
/// Largest number of methods.
pub const METHODS: usize = 64;
/// Largest number of nodes of a method.
pub const NODES: usize = 4096;
/// Largest number of controls.
pub const CONTROLS: usize = 1024;
/// Largest number of channels of a value.
pub const CHANNELS: usize = 16_384;
/// Largest number of latents of a codec; each has three controls.
pub const LATENTS: usize = 1024;
/// Longest block and largest ratio, samples.
pub const BLOCK: usize = 65_536;
/// Longest latency that a node may declare, samples: ten seconds at 192 kHz.
pub const LATENCY: usize = 1_920_000;
/// Largest number of magnitudes that shape a channel of noise.
pub const NOISE_BANDS: usize = 2048;
/// Most recorded attacks.
pub const ATTACKS: usize = 4096;
/// Longest impulse response, samples: ten seconds at 192 kHz.
pub const TAPS: usize = 1_920_000;
/// Most values in one stream of a method (histories, states and one block of every signal): 64 MiB,
/// several times what the largest known codecs need.
pub const STREAM_VALUES: usize = 16 << 20;
/// Most multiply-adds of a warm-up, a few seconds on one core: ten times those of the heaviest
/// known captures.
pub const WARM_UP_MULTIPLY_ADDS: usize = 20_000_000_000;
/// Most values in all streams of an executor: 1 GiB.
pub const EXECUTOR_VALUES: usize = 256 << 20;
/// Entries of a codebook: an index is exact in `f32`.
pub const CODES: usize = 1 << 16;
/// Samples of all channels of a sound that a program takes: more than 40 s of mono at 48 kHz.
pub const SOUND_VALUES: usize = 2 << 20;
/// Factors by which an effect's network can be oversampled.
pub const OVERSAMPLINGS: [usize; 4] = [1, 2, 4, 8];
/// Supported sample rates, Hz.
pub const SAMPLE_RATES: std::ops::RangeInclusive<u32> = 8_000..=384_000;
