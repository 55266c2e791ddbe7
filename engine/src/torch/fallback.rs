//! A device that fails is left for another executor, which stands by.

use crate::executor::{self, Execute};
use crate::model::{Method, Port};

use super::library::TorchError;
use super::runner::Runner;

/// From what was heard last to what is heard then, seconds: as long as a model that is late fades.
const CROSS_FADE_S: f64 = 0.005;

/// An executor that may fail.
pub(crate) trait TryExecute: Execute {
    /// Computes the step.
    ///
    /// # Errors
    /// [`TorchError`], in one line; the inputs are as they were.
    fn try_run(&mut self) -> Result<(), TorchError>;
}

impl TryExecute for Runner {
    fn try_run(&mut self) -> Result<(), TorchError> {
        Runner::try_run(self)
    }
}

/// An executor on a device, and one that takes over when the device fails. That one begins in silence: what was heard before is
/// gone with the device. The last frame of each stream is held and cross-faded into what it gives.
pub(crate) struct Fallback<T = Runner> {
    first: Option<T>,
    spare: Box<dyn Execute>,
    method: Method,
    /// Samples of the cross-fade.
    fade: usize,
    active: Vec<usize>,
    blocks: usize,
    /// `[port][stream][channel]`: the last frame that the device gave.
    last: Vec<Vec<f32>>,
    /// `[stream]`: samples of the cross-fade that are over.
    faded: Vec<usize>,
    /// `[port]`: what is given during the cross-fade.
    mixed: Vec<Vec<f32>>,
    is_mixed: bool,
    /// Why the device was left.
    reason: String,
}

impl<T: TryExecute> Fallback<T> {
    /// Both are of that method, for as many streams and blocks; `sample_rate` is that of the sound, Hz.
    pub fn new(
        first: T,
        spare: Box<dyn Execute>,
        method: &Method,
        sample_rate: u32,
        streams: usize,
        blocks: usize,
    ) -> Self {
        let each = |values: &dyn Fn(&Port) -> usize| -> Vec<Vec<f32>> {
            method.outputs.iter().map(|port| vec![0.0; values(port)]).collect()
        };
        Self {
            fade: (CROSS_FADE_S * f64::from(sample_rate)).ceil() as usize,
            last: each(&|port| port.channels * streams),
            mixed: each(&|port| port.channels * (method.block / port.ratio) * blocks * streams),
            first: Some(first),
            spare,
            method: method.clone(),
            active: Vec::with_capacity(streams),
            blocks: 0,
            faded: vec![0; streams],
            is_mixed: false,
            reason: String::new(),
        }
    }

    fn at_work(&mut self) -> &mut dyn Execute {
        match &mut self.first {
            Some(first) => first,
            None => &mut *self.spare,
        }
    }

    /// Keeps the last frames, to fade from.
    fn keep(&mut self) {
        let Some(first) = &self.first else { return };
        for (number, (port, last)) in self.method.outputs.iter().zip(&mut self.last).enumerate() {
            let of_stream = port.channels * (self.method.block / port.ratio) * self.blocks;
            for (&stream, values) in self.active.iter().zip(first.output(number).chunks_exact(of_stream)) {
                last[stream * port.channels..][..port.channels].copy_from_slice(&values[of_stream - port.channels..]);
            }
        }
    }

    /// Leaves the device; the spare gets what it was given.
    fn leave(&mut self, error: &TorchError) {
        let Some(mut first) = self.first.take() else { return };
        self.reason = format!("{} failed ({error})", first.name());
        self.spare.begin(&self.active, self.blocks);
        for port in 0..self.method.inputs.len() {
            self.spare.input(port).copy_from_slice(first.input(port));
        }
        executor::notice(&format!("{}; {} plays on", self.reason, self.spare.name()));
    }

    /// Mixes what is held with what the spare gives.
    fn mix(&mut self) {
        self.is_mixed = self.active.iter().any(|&stream| self.faded[stream] < self.fade);
        if !self.is_mixed {
            return;
        }
        for (number, port) in self.method.outputs.iter().enumerate() {
            let of_stream = port.channels * (self.method.block / port.ratio) * self.blocks;
            let given = self.spare.output(number).chunks_exact(of_stream);
            for ((&stream, given), mixed) in
                self.active.iter().zip(given).zip(self.mixed[number].chunks_exact_mut(of_stream))
            {
                let last = &self.last[number][stream * port.channels..][..port.channels];
                let frames = given.chunks_exact(port.channels).zip(mixed.chunks_exact_mut(port.channels));
                for (frame, (given, mixed)) in frames.enumerate() {
                    let over = self.faded[stream] + (frame + 1) * port.ratio;
                    let share = (over as f32 / self.fade as f32).min(1.0);
                    for ((mixed, given), last) in mixed.iter_mut().zip(given).zip(last) {
                        *mixed = last + share * (given - last);
                    }
                }
            }
        }
        for &stream in &self.active {
            self.faded[stream] += self.blocks * self.method.block;
        }
    }
}

impl<T: TryExecute> Execute for Fallback<T> {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
        self.at_work().begin(streams, blocks);
    }

    fn input(&mut self, port: usize) -> &mut [f32] {
        self.at_work().input(port)
    }

    fn run(&mut self) {
        if let Some(first) = &mut self.first {
            match first.try_run() {
                Ok(()) => return self.keep(),
                Err(error) => self.leave(&error),
            }
        }
        self.spare.run();
        self.mix();
    }

    fn output(&self, port: usize) -> &[f32] {
        let there = self.first.as_ref().map_or(self.spare.output(port), |first| first.output(port));
        if self.is_mixed { &self.mixed[port][..there.len()] } else { there }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        if let Some(first) = &mut self.first {
            first.seed(stream, seed);
        }
        self.spare.seed(stream, seed);
        for (last, port) in self.last.iter_mut().zip(&self.method.outputs) {
            last[stream * port.channels..][..port.channels].fill(0.0);
        }
        // What begins in silence has nothing to fade from.
        self.faded[stream] = if self.first.is_some() { 0 } else { self.fade };
    }

    fn bytes(&self) -> usize {
        let kept: usize = self.last.iter().chain(&self.mixed).map(Vec::len).sum();
        self.first.as_ref().map_or(0, |first| first.bytes()) + self.spare.bytes() + kept * size_of::<f32>()
    }

    fn name(&self) -> String {
        match &self.first {
            Some(first) => first.name(),
            None => format!("{}, since {}", self.spare.name(), self.reason),
        }
    }

    fn may_allocate(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its input times a gain, plus the number of steps since the seed, and fails at a step.
    struct Double {
        gain: f32,
        fails_at: usize,
        steps: usize,
        active: usize,
        values: Vec<f32>,
        given: Vec<f32>,
    }

    const BLOCK: usize = 64;
    const RATE: u32 = 48_000;
    const FADE: usize = 240;

    fn double(gain: f32, fails_at: usize) -> Double {
        let room = || vec![0.0; 3 * BLOCK];
        Double { gain, fails_at, steps: 0, active: 0, values: room(), given: room() }
    }

    impl TryExecute for Double {
        fn try_run(&mut self) -> Result<(), TorchError> {
            if self.steps == self.fails_at {
                return Err(TorchError::Program("CUDA error: out of memory".into()));
            }
            self.run();
            Ok(())
        }
    }

    impl Execute for Double {
        fn begin(&mut self, streams: &[usize], blocks: usize) {
            self.active = streams.len() * blocks * BLOCK;
        }

        fn input(&mut self, _port: usize) -> &mut [f32] {
            &mut self.values[..self.active]
        }

        fn run(&mut self) {
            self.steps += 1;
            for (given, value) in self.given.iter_mut().zip(&self.values) {
                *given = self.gain * value;
            }
        }

        fn output(&self, _port: usize) -> &[f32] {
            &self.given[..self.active]
        }

        fn seed(&mut self, _stream: usize, _seed: u64) {
            self.steps = 0;
        }

        fn bytes(&self) -> usize {
            1_000
        }

        fn name(&self) -> String {
            format!("double {}", self.gain)
        }

        fn may_allocate(&self) -> bool {
            false
        }
    }

    fn method() -> Method {
        let port = || Port { name: "audio".into(), channels: 1, ratio: 1 };
        Method {
            name: "forward".into(),
            block: BLOCK,
            warm_up: 0,
            inputs: vec![port()],
            outputs: vec![port()],
            nodes: Vec::new(),
        }
    }

    fn step(fallback: &mut Fallback<Double>, streams: &[usize]) -> Vec<Vec<f32>> {
        fallback.begin(streams, 1);
        fallback.input(0).fill(1.0);
        fallback.run();
        fallback.output(0).chunks(BLOCK).map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn the_spare_takes_over_without_a_step() {
        let mut fallback = Fallback::new(double(1.0, 3), Box::new(double(-1.0, 99)), &method(), RATE, 3, 1);
        assert!(fallback.may_allocate() && fallback.bytes() > 2_000);
        drop(executor::noticed());
        // Stream 2 never played on the device; stream 1 rests when it fails.
        let mut heard: [Vec<f32>; 3] = Default::default();
        for streams in [&[0, 1][..], &[1, 0], &[0, 1], &[0], &[0], &[2, 0, 1], &[2, 0, 1], &[2, 0, 1], &[2, 0, 1]] {
            for (&stream, sound) in streams.iter().zip(step(&mut fallback, streams)) {
                heard[stream].extend(sound);
            }
        }
        for (stream, sound) in heard.iter().enumerate().take(2) {
            assert!(sound[..3 * BLOCK].iter().all(|sample| *sample == 1.0), "{stream}");
            assert!(
                sound[3 * BLOCK..].windows(2).all(|pair| (pair[1] - pair[0]).abs() < 2.01 / FADE as f32),
                "{stream}"
            );
            assert!((sound[3 * BLOCK] - 1.0).abs() < 0.01, "{stream}: {}", sound[3 * BLOCK]);
            let after = &sound[3 * BLOCK + FADE..];
            assert!(!after.is_empty() && after.iter().all(|sample| *sample == -1.0), "{stream}");
        }
        assert!(heard[2][0].abs() < 0.01 && heard[2][FADE] == -1.0, "from silence");
        let said = "double 1 failed (CUDA error: out of memory)";
        assert_eq!(executor::noticed().unwrap(), format!("{said}; double -1 plays on"));
        assert_eq!(executor::noticed(), None);
        assert_eq!(fallback.name(), format!("double -1, since {said}"));
    }

    #[test]
    fn who_begins_anew_after_the_failure_begins_at_once() {
        let mut fallback = Fallback::new(double(1.0, 1), Box::new(double(-1.0, 99)), &method(), RATE, 1, 1);
        for _ in 0..2 {
            step(&mut fallback, &[0]);
        }
        fallback.seed(0, 5);
        assert!(step(&mut fallback, &[0])[0].iter().all(|sample| *sample == -1.0));
    }

    #[test]
    fn without_a_failure_nothing_is_changed() {
        let mut fallback = Fallback::new(double(0.5, 99), Box::new(double(-1.0, 99)), &method(), RATE, 1, 1);
        for _ in 0..5 {
            assert!(step(&mut fallback, &[0])[0].iter().all(|sample| *sample == 0.5));
        }
        assert_eq!(fallback.name(), "double 0.5");
    }
}
