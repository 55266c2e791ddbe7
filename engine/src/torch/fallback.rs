//! Replaces an executor whose device has failed by a spare one.

use super::error::TorchError;
use super::runner::TorchExecutor;
use crate::executor::{Execute, MethodExecutor, push_warning};
use crate::model::{Method, Port};

/// Cross-fade from the last output of the device, in seconds: as long as that of a late model.
const CROSS_FADE_S: f64 = 0.005;

/// An executor that may fail.
pub(crate) trait FallibleExecute: Execute {
    /// Computes the step.
    ///
    /// # Errors
    /// Returns [`TorchError`], one line, if the device fails; the inputs are unchanged.
    fn try_run(&mut self) -> Result<(), TorchError>;
}

impl FallibleExecute for TorchExecutor {
    fn try_run(&mut self) -> Result<(), TorchError> {
        TorchExecutor::try_run(self)
    }
}

/// An executor on a device, and a spare that takes over when the device fails. The spare starts
/// from silence, since the state is lost with the device; the last frame of each stream is held and
/// cross-faded into its output.
pub(crate) struct FallbackExecutor<T = TorchExecutor> {
    /// `None` after a failure.
    primary: Option<T>,
    spare: MethodExecutor,
    method: Method,
    /// Samples of the cross-fade.
    fade: usize,
    active: Vec<usize>,
    blocks: usize,
    /// `[port][stream][channel]`: the last frame from the device.
    last: Vec<Vec<f32>>,
    /// `[stream]`: samples of the cross-fade that are done.
    faded: Vec<usize>,
    /// `[port]`: output during the cross-fade.
    mixed: Vec<Vec<f32>>,
    is_mixed: bool,
    /// Reason of the failure.
    reason: String,
}

impl<T: FallibleExecute> FallbackExecutor<T> {
    /// Combines two executors of the same method, for as many streams and blocks; `sample_rate` is
    /// in Hz.
    pub fn new(
        primary: T,
        spare: MethodExecutor,
        method: &Method,
        sample_rate: u32,
        streams: usize,
        blocks: usize,
    ) -> Self {
        let per_port = |values: &dyn Fn(&Port) -> usize| -> Vec<Vec<f32>> {
            method
                .outputs
                .iter()
                .map(|port| vec![0.0; values(port)])
                .collect()
        };
        Self {
            fade: (CROSS_FADE_S * f64::from(sample_rate)).ceil() as usize,
            last: per_port(&|port| port.channels * streams),
            mixed: per_port(&|port| port.channels * (method.block / port.ratio) * blocks * streams),
            primary: Some(primary),
            spare,
            method: method.clone(),
            active: Vec::with_capacity(streams),
            blocks: 0,
            faded: vec![0; streams],
            is_mixed: false,
            reason: String::new(),
        }
    }

    /// Returns the number of values that a stream has at a port in this step.
    fn stream_values(method: &Method, port: &Port, blocks: usize) -> usize {
        port.channels * (method.block / port.ratio) * blocks
    }

    /// Stores the last frames, to fade from.
    fn store_last_frames(&mut self) {
        let Some(primary) = &self.primary else { return };
        for (index, (port, last)) in self.method.outputs.iter().zip(&mut self.last).enumerate() {
            let length = Self::stream_values(&self.method, port, self.blocks);
            for (&stream, values) in self
                .active
                .iter()
                .zip(primary.output(index).chunks_exact(length))
            {
                last[stream * port.channels..][..port.channels]
                    .copy_from_slice(&values[length - port.channels..]);
            }
        }
    }

    /// Drops the failed executor and gives its input to the spare.
    fn switch_to_spare(&mut self, error: &TorchError) {
        let Some(mut primary) = self.primary.take() else {
            return;
        };
        self.reason = format!("{} failed ({error})", primary.name());
        self.spare.begin(&self.active, self.blocks);
        for port in 0..self.method.inputs.len() {
            self.spare.input(port).copy_from_slice(primary.input(port));
        }
        push_warning(&format!(
            "{}; running on {}",
            self.reason,
            self.spare.name()
        ));
    }

    /// Cross-fades from the stored frames to the spare's output.
    fn mix(&mut self) {
        self.is_mixed = self
            .active
            .iter()
            .any(|&stream| self.faded[stream] < self.fade);
        if !self.is_mixed {
            return;
        }
        for (index, port) in self.method.outputs.iter().enumerate() {
            let length = Self::stream_values(&self.method, port, self.blocks);
            let output = self.spare.output(index).chunks_exact(length);
            for ((&stream, output), mixed) in self
                .active
                .iter()
                .zip(output)
                .zip(self.mixed[index].chunks_exact_mut(length))
            {
                let last = &self.last[index][stream * port.channels..][..port.channels];
                let frames = output
                    .chunks_exact(port.channels)
                    .zip(mixed.chunks_exact_mut(port.channels));
                for (frame, (output, mixed)) in frames.enumerate() {
                    let faded = self.faded[stream] + (frame + 1) * port.ratio;
                    let share = (faded as f32 / self.fade as f32).min(1.0);
                    for ((mixed, output), last) in mixed.iter_mut().zip(output).zip(last) {
                        *mixed = last + share * (output - last);
                    }
                }
            }
        }
        for &stream in &self.active {
            self.faded[stream] += self.blocks * self.method.block;
        }
    }
}

impl<T: FallibleExecute> Execute for FallbackExecutor<T> {
    fn begin(&mut self, streams: &[usize], blocks: usize) {
        self.active.clear();
        self.active.extend_from_slice(streams);
        self.blocks = blocks;
        match &mut self.primary {
            Some(primary) => primary.begin(streams, blocks),
            None => self.spare.begin(streams, blocks),
        }
    }

    fn input(&mut self, port: usize) -> &mut [f32] {
        match &mut self.primary {
            Some(primary) => primary.input(port),
            None => self.spare.input(port),
        }
    }

    fn run(&mut self) {
        if let Some(primary) = &mut self.primary {
            match primary.try_run() {
                Ok(()) => return self.store_last_frames(),
                Err(error) => self.switch_to_spare(&error),
            }
        }
        self.spare.run();
        self.mix();
    }

    fn output(&self, port: usize) -> &[f32] {
        let output = self
            .primary
            .as_ref()
            .map_or(self.spare.output(port), |primary| primary.output(port));
        if self.is_mixed {
            &self.mixed[port][..output.len()]
        } else {
            output
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        if let Some(primary) = &mut self.primary {
            primary.seed(stream, seed);
        }
        self.spare.seed(stream, seed);
        for (last, port) in self.last.iter_mut().zip(&self.method.outputs) {
            last[stream * port.channels..][..port.channels].fill(0.0);
        }
        // A stream that starts on the spare has nothing to fade from.
        self.faded[stream] = if self.primary.is_some() { 0 } else { self.fade };
    }

    fn bytes(&self) -> usize {
        let buffers: usize = self.last.iter().chain(&self.mixed).map(Vec::len).sum();
        self.primary.as_ref().map_or(0, |primary| primary.bytes())
            + self.spare.bytes()
            + buffers * size_of::<f32>()
    }

    fn name(&self) -> String {
        match &self.primary {
            Some(primary) => primary.name(),
            None => format!("{}, since {}", self.spare.name(), self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::take_warning;

    /// Multiplies its input by a gain, and fails at a step since the seed.
    struct FakeExecutor {
        gain: f32,
        fails_at: usize,
        steps: usize,
        active: usize,
        values: Vec<f32>,
        output: Vec<f32>,
    }

    const BLOCK: usize = 64;
    const RATE: u32 = 48_000;
    const FADE: usize = 240;

    fn fake(gain: f32, fails_at: usize) -> FakeExecutor {
        let buffer = || vec![0.0; 3 * BLOCK];
        FakeExecutor {
            gain,
            fails_at,
            steps: 0,
            active: 0,
            values: buffer(),
            output: buffer(),
        }
    }

    impl FallibleExecute for FakeExecutor {
        fn try_run(&mut self) -> Result<(), TorchError> {
            if self.steps == self.fails_at {
                return Err(TorchError::Program("CUDA error: out of memory".into()));
            }
            self.run();
            Ok(())
        }
    }

    impl Execute for FakeExecutor {
        fn begin(&mut self, streams: &[usize], blocks: usize) {
            self.active = streams.len() * blocks * BLOCK;
        }

        fn input(&mut self, _port: usize) -> &mut [f32] {
            &mut self.values[..self.active]
        }

        fn run(&mut self) {
            self.steps += 1;
            for (output, value) in self.output.iter_mut().zip(&self.values) {
                *output = self.gain * value;
            }
        }

        fn output(&self, _port: usize) -> &[f32] {
            &self.output[..self.active]
        }

        fn seed(&mut self, _stream: usize, _seed: u64) {
            self.steps = 0;
        }

        fn bytes(&self) -> usize {
            1_000
        }

        fn name(&self) -> String {
            format!("fake {}", self.gain)
        }
    }

    fn method() -> Method {
        let port = || Port {
            name: "audio".into(),
            channels: 1,
            ratio: 1,
        };
        Method {
            name: "forward".into(),
            block: BLOCK,
            warm_up: 0,
            inputs: vec![port()],
            outputs: vec![port()],
            nodes: Vec::new(),
        }
    }

    /// Returns an executor whose spare inverts its input.
    fn fallback(primary: FakeExecutor, streams: usize) -> FallbackExecutor<FakeExecutor> {
        let spare = Box::new(fake(-1.0, 99));
        FallbackExecutor::new(primary, spare, &method(), RATE, streams, 1)
    }

    fn step(fallback: &mut FallbackExecutor<FakeExecutor>, streams: &[usize]) -> Vec<Vec<f32>> {
        fallback.begin(streams, 1);
        fallback.input(0).fill(1.0);
        fallback.run();
        fallback
            .output(0)
            .chunks(BLOCK)
            .map(<[f32]>::to_vec)
            .collect()
    }

    #[test]
    fn the_spare_takes_over_without_a_step() {
        let mut fallback = fallback(fake(1.0, 3), 3);
        assert!(fallback.bytes() > 2_000);
        drop(take_warning());
        // Stream 2 never ran on the device; stream 1 is inactive when it fails.
        let mut outputs: [Vec<f32>; 3] = Default::default();
        for streams in [
            &[0, 1][..],
            &[1, 0],
            &[0, 1],
            &[0],
            &[0],
            &[2, 0, 1],
            &[2, 0, 1],
            &[2, 0, 1],
            &[2, 0, 1],
        ] {
            for (&stream, sound) in streams.iter().zip(step(&mut fallback, streams)) {
                outputs[stream].extend(sound);
            }
        }
        for (stream, sound) in outputs.iter().enumerate().take(2) {
            assert!(
                sound[..3 * BLOCK].iter().all(|sample| *sample == 1.0),
                "{stream}"
            );
            assert!(
                sound[3 * BLOCK..]
                    .windows(2)
                    .all(|pair| (pair[1] - pair[0]).abs() < 2.01 / FADE as f32),
                "{stream}"
            );
            assert!(
                (sound[3 * BLOCK] - 1.0).abs() < 0.01,
                "{stream}: {}",
                sound[3 * BLOCK]
            );
            let after = &sound[3 * BLOCK + FADE..];
            assert!(
                !after.is_empty() && after.iter().all(|sample| *sample == -1.0),
                "{stream}"
            );
        }
        assert!(
            outputs[2][0].abs() < 0.01 && outputs[2][FADE] == -1.0,
            "from silence"
        );
        let reason = "fake 1 failed (CUDA error: out of memory)";
        assert_eq!(
            take_warning().unwrap(),
            format!("{reason}; running on fake -1")
        );
        assert_eq!(take_warning(), None);
        assert_eq!(fallback.name(), format!("fake -1, since {reason}"));
    }

    #[test]
    fn a_stream_that_starts_after_the_failure_is_not_faded() {
        let mut fallback = fallback(fake(1.0, 1), 1);
        for _ in 0..2 {
            step(&mut fallback, &[0]);
        }
        fallback.seed(0, 5);
        assert!(
            step(&mut fallback, &[0])[0]
                .iter()
                .all(|sample| *sample == -1.0)
        );
    }

    #[test]
    fn without_a_failure_the_output_is_the_device_s() {
        let mut fallback = fallback(fake(0.5, 99), 1);
        for _ in 0..5 {
            assert!(
                step(&mut fallback, &[0])[0]
                    .iter()
                    .all(|sample| *sample == 0.5)
            );
        }
        assert_eq!(fallback.name(), "fake 0.5");
    }
}
