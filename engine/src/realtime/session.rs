//! The audio thread's half of a session: the function that a host calls for every block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringbuf::HeapProd;
use ringbuf::traits::{Observer, Producer};

use super::audio_callback;
use super::callback_load::CallbackLoad;
use super::history::InputHistoryWriter;
use super::inline_model::HostBlock;
use super::model_instance::{ModelInstance, OUTPUT_LIMIT};
use super::session_input::{BlockInput, first_samples, mix};
use super::session_link::SessionLink;
use super::snapshot::{MAX_CHANGED_CONTROLS, RECENT_COMMANDS};
use crate::instrument::{Event, EventKind, PerformanceState, controller};
use crate::model::Levels;
use crate::pipeline::{Action, ControlId, TimedCommand, Transport};

/// Duration of the cross-fade from one model to another, in seconds.
const CROSS_FADE_S: f64 = 0.020;

/// An action within a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCommand {
    /// Sample of the block at which it happens.
    pub offset: usize,
    /// Note, control change or transport change.
    pub action: Action,
}

/// A model in a host: takes blocks of any size with commands at any sample, and returns audio.
///
/// This half belongs to the audio thread; [`SessionController`](super::SessionController) is the
/// other one and has an example. Nothing here allocates, frees, locks or waits, with two
/// exceptions: [`SessionController::set_non_realtime`](super::SessionController::set_non_realtime)
/// makes it wait for the worker, and a model whose code panics in the callback prints its message,
/// once.
pub struct Session {
    link: Arc<SessionLink>,
    history: [InputHistoryWriter; 2],
    now: u64,
    current: Option<Box<ModelInstance>>,
    /// Another instance that takes over, and how many samples of its cross-fade are done.
    next: Option<(Box<ModelInstance>, usize)>,
    /// `[sample of the cross-fade]`: gain of the next instance.
    cross_fade: Box<[f32]>,
    retired: HeapProd<Box<ModelInstance>>,
    performance: PerformanceState,
    changed_controls: Vec<(ControlId, f32)>,
    /// Model that they were changed on.
    changed_on: Option<u64>,
    transport: Option<(u64, Transport)>,
    recent: Box<[TimedCommand]>,
    /// Number of commands so far.
    commands: u64,
    /// Left and right input; a mono input is on both sides.
    input: [Vec<f32>; 2],
    /// Their mean.
    mono: Vec<f32>,
    /// `[channel]`: output of the current and of the next instance.
    sound: [[Vec<f32>; 2]; 2],
    /// The channels of the last block may differ.
    is_stereo: bool,
    callback_load: CallbackLoad,
}

impl Session {
    /// Creates the audio thread's half; `None` if the link already has one.
    pub(super) fn new(
        link: Arc<SessionLink>,
        retired: HeapProd<Box<ModelInstance>>,
        instance: Option<Box<ModelInstance>>,
    ) -> Option<Self> {
        let fade = (CROSS_FADE_S * f64::from(link.setup.sample_rate))
            .ceil()
            .max(1.0) as usize;
        let gain =
            |n: usize| (0.5 - 0.5 * (std::f64::consts::PI * n as f64 / fade as f64).cos()) as f32;
        let unused = TimedCommand {
            at: 0,
            action: Action::Control {
                id: ControlId::new(""),
                value: 0.0,
            },
        };
        let block = || vec![0.0; link.setup.max_block];
        let session = Self {
            history: link.history.writers()?,
            now: 0,
            next: None,
            cross_fade: (1..=fade).map(gain).collect(),
            retired,
            performance: PerformanceState::new(),
            changed_controls: Vec::with_capacity(MAX_CHANGED_CONTROLS),
            changed_on: instance.as_ref().map(|instance| instance.model),
            transport: None,
            recent: vec![unused; RECENT_COMMANDS].into(),
            commands: 0,
            input: [block(), block()],
            mono: block(),
            sound: [[block(), block()], [block(), block()]],
            is_stereo: false,
            callback_load: CallbackLoad::new(link.setup.sample_rate),
            current: instance,
            link,
        };
        session.publish_instance();
        Some(session)
    }

    /// Returns the delay from a command or an input sample to its effect at the output, in host
    /// samples. It changes only when another model or another driver has taken over.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.current
            .as_ref()
            .map_or(0, |instance| instance.latency_samples())
    }

    /// Returns the model that is heard, or is fading in, by its number from
    /// [`SessionController::load`](super::SessionController::load); `None` without a model.
    #[must_use]
    pub fn active_model(&self) -> Option<u64> {
        self.active().map(|instance| instance.model)
    }

    /// Returns true once after another model has begun to be built. From then on it gets all changes
    /// of controls, so that its controls are right if all of them are sent again.
    pub fn take_building(&mut self) -> bool {
        // Checked with a load first: most blocks need not write.
        let is_building = &self.link.is_building;
        is_building.load(Ordering::Relaxed) && is_building.swap(false, Ordering::Acquire)
    }

    /// Returns the levels of the model, or of its variant, that is heard or is fading in; `None`
    /// without a model.
    #[must_use]
    pub fn active_levels(&self) -> Option<Levels> {
        self.active().map(|instance| instance.levels)
    }

    fn active(&self) -> Option<&ModelInstance> {
        let fading_in = self
            .next
            .as_ref()
            .filter(|(_, faded)| *faded > 0)
            .map(|(instance, _)| instance);
        fading_in
            .or(self.current.as_ref())
            .map(|instance| &**instance)
    }

    /// Returns how long the output continues after all input has ended, in host samples, without
    /// the latency.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.current
            .as_ref()
            .map_or(0, |instance| instance.tail_samples())
    }

    /// Returns true while the host renders offline.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.link.non_realtime.load(Ordering::Relaxed)
    }

    /// Returns whether the output's channels may have differed in the last block: a stereo model
    /// was heard.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.is_stereo
    }

    /// Processes a block: `input[channel][frame]` and `output[channel][frame]`, left and right
    /// first. No input channel counts as silence, a single one is on both sides, and further ones
    /// are ignored. A mono model fills all output channels with the same samples, a stereo model
    /// the first two, and a single one with their mean; further ones are silent. Commands come in
    /// the order of their offsets. Without output channels the session advances by the input
    /// length.
    ///
    /// # Panics
    /// Panics if channels differ in length.
    pub fn process(
        &mut self,
        commands: &[BlockCommand],
        input: &[&[f32]],
        output: &mut [&mut [f32]],
    ) {
        audio_callback::enter(|| {
            let output_frames = output.first().map(|channel| channel.len());
            let frames = output_frames
                .or(input.first().map(|channel| channel.len()))
                .unwrap_or(0);
            assert!(
                input.iter().all(|channel| channel.len() == frames),
                "input and output must be equally long"
            );
            assert!(
                output.iter().all(|channel| channel.len() == frames),
                "all channels must be equally long"
            );
            self.link
                .callback_load
                .store(self.callback_load.next(frames).to_bits(), Ordering::Relaxed);
            let mut commands = commands;
            let mut start = 0;
            while start < frames {
                let end = frames.min(start + self.link.setup.max_block);
                // The last piece takes all that is left, also commands beyond the block.
                let due = if end == frames {
                    commands.len()
                } else {
                    commands.partition_point(|command| command.offset < end)
                };
                let (now, later) = commands.split_at(due);
                self.record_input(input, start, end);
                self.play_block(now, start, end - start);
                self.copy_output(output, start, end);
                (commands, start) = (later, end);
            }
            // Hosts send blocks without samples to deliver commands alone.
            if frames == 0 {
                commands.iter().for_each(|command| {
                    self.handle(TimedCommand {
                        at: self.now,
                        action: command.action,
                    })
                });
            }
        });
    }

    /// Ends all notes at once, on all channels, and resets all controllers.
    pub fn reset(&mut self) {
        audio_callback::enter(|| {
            for channel in 0..16 {
                for number in [controller::ALL_SOUND_OFF, controller::RESET] {
                    let kind = EventKind::Controller {
                        channel,
                        number,
                        value: 0.0,
                    };
                    self.handle(TimedCommand {
                        at: self.now,
                        action: Action::Play(kind),
                    });
                }
            }
        });
    }

    /// Keeps both sides of the input and their mean.
    fn record_input(&mut self, input: &[&[f32]], start: usize, end: usize) {
        let length = end - start;
        let sides = first_samples(&mut self.input, length);
        match input {
            [] => sides.into_iter().for_each(|side| side.fill(0.0)),
            [one] => sides
                .into_iter()
                .for_each(|side| copy_valid(&one[start..end], side)),
            [left, right, ..] => {
                sides
                    .into_iter()
                    .zip([left, right])
                    .for_each(|(side, channel)| {
                        copy_valid(&channel[start..end], side);
                    })
            }
        }
        let mono = &mut self.mono[..length];
        mono.copy_from_slice(&self.input[0][..length]);
        if input.len() > 1 {
            mix(mono, &self.input[1]);
        }
        for (history, side) in self.history.iter_mut().zip(&self.input) {
            history.push(&side[..length]);
        }
    }

    /// Copies what was played to the output.
    fn copy_output(&self, output: &mut [&mut [f32]], start: usize, end: usize) {
        let [left, right] = self.sound[0].each_ref().map(|side| &side[..end - start]);
        match output {
            [one] if self.is_stereo => {
                let one = &mut one[start..end];
                one.copy_from_slice(left);
                mix(one, right);
            }
            [first, second, others @ ..] if self.is_stereo => {
                first[start..end].copy_from_slice(left);
                second[start..end].copy_from_slice(right);
                others
                    .iter_mut()
                    .for_each(|channel| channel[start..end].fill(0.0));
            }
            channels => channels
                .iter_mut()
                .for_each(|channel| channel[start..end].copy_from_slice(left)),
        }
    }

    /// Plays a block of the recorded input into `self.sound[0]`.
    fn play_block(&mut self, commands: &[BlockCommand], start: usize, length: usize) {
        self.answer_snapshot_request();
        self.adopt_arrival();
        for command in commands {
            let offset = command.offset.saturating_sub(start).min(length - 1);
            self.handle(TimedCommand {
                at: self.now + offset as u64,
                action: command.action,
            });
        }
        let [mut sound, mut next_sound] = self
            .sound
            .each_mut()
            .map(|sides| first_samples(sides, length));
        let [left, right] = self.input.each_ref().map(|side| &side[..length]);
        let block = HostBlock {
            at: self.now,
            input: BlockInput {
                left,
                right,
                mono: &self.mono[..length],
            },
            history: &self.link.history,
            non_realtime: self.link.non_realtime.load(Ordering::Relaxed),
        };
        match &mut self.current {
            Some(instance) => {
                let [left, right] = &mut sound;
                instance.play(&block, [left, right]);
            }
            None => sound.iter_mut().for_each(|side| side.fill(0.0)),
        }
        let (mut is_faded, mut failed_unheard) = (false, false);
        if let Some((next, faded)) = &mut self.next {
            let [left, right] = &mut next_sound;
            let keeps_up = next.play(&block, [left, right]);
            failed_unheard = next.has_failed && *faded == 0;
            // A cross-fade that has begun goes on: a late instance fades itself out.
            if !failed_unheard && (keeps_up || *faded > 0) {
                for (sound, next_sound) in sound.iter_mut().zip(&next_sound) {
                    let gains = self.cross_fade[*faded..]
                        .iter()
                        .copied()
                        .chain(std::iter::repeat(1.0));
                    for ((old, new), gain) in sound.iter_mut().zip(&**next_sound).zip(gains) {
                        *old += gain * (new - *old);
                    }
                }
                *faded = (*faded + length).min(self.cross_fade.len());
                is_faded = *faded == self.cross_fade.len();
            }
        }
        let heard_next = self
            .next
            .as_ref()
            .filter(|(_, faded)| *faded > 0)
            .map(|(next, _)| next);
        self.is_stereo = self
            .current
            .iter()
            .chain(heard_next)
            .any(|instance| instance.is_stereo());
        self.now += length as u64;
        self.link.commands.store(self.commands, Ordering::Relaxed);
        self.link.now.store(self.now, Ordering::Release);
        if is_faded {
            self.finish_cross_fade();
        }
        self.report_failure(failed_unheard);
    }

    /// Publishes the failure of the newest instance; one that failed before it was heard is
    /// retired, and the current one plays on.
    fn report_failure(&mut self, failed_unheard: bool) {
        if failed_unheard && let Some((next, _)) = self.next.take() {
            self.link
                .failed_instance
                .store(next.number, Ordering::Relaxed);
            self.retire(next);
            return;
        }
        let newest = self
            .next
            .as_ref()
            .map(|(next, _)| next)
            .or(self.current.as_ref());
        if let Some(instance) = newest.filter(|instance| instance.has_failed) {
            self.link
                .failed_instance
                .store(instance.number, Ordering::Relaxed);
        }
    }

    /// Makes the next instance the current one.
    fn finish_cross_fade(&mut self) {
        if let Some((next, _)) = self.next.take() {
            if let Some(old) = self.current.replace(next) {
                self.retire(old);
            }
            self.publish_instance();
        }
    }

    /// Returns an instance to the controller, which frees it.
    fn retire(&mut self, instance: Box<ModelInstance>) {
        // Cannot be full: `adopt_arrival` requires two free slots. Dropping would free memory on
        // the audio thread.
        if let Err(instance) = self.retired.try_push(instance) {
            std::mem::forget(instance);
        }
    }

    /// Publishes the current instance and its latency.
    fn publish_instance(&self) {
        let number = self.current.as_ref().map_or(0, |instance| instance.number);
        self.link.active_instance.store(number, Ordering::Relaxed);
        self.link
            .latency
            .store(self.latency_samples(), Ordering::Relaxed);
    }

    /// Takes an instance that is ready, and sends it the commands since it was built.
    fn adopt_arrival(&mut self) {
        // A newer instance replaces one that was never heard, since that may be too slow ever to
        // be. Room for both.
        let is_fading = self.next.as_ref().is_some_and(|(_, faded)| *faded > 0);
        if is_fading || self.retired.vacant_len() < 2 {
            return;
        }
        let Some(mut instance) = self.link.arrival.take() else {
            return;
        };
        if !instance.has_session_state && self.commands > 0 {
            // It was built while this thread stood still, so it lacks held notes and controls; the
            // controller builds it again.
            return self.retire(instance);
        }
        if let Some((unheard, _)) = self.next.take() {
            self.retire(unheard);
        }
        let new = self
            .commands
            .saturating_sub(instance.next_command)
            .min(self.recent.len() as u64);
        let is_other_model = self.changed_on.replace(instance.model) != Some(instance.model);
        if is_other_model {
            self.changed_controls.clear();
        }
        for count in self.commands - new..self.commands {
            let command = self.recent[count as usize % self.recent.len()];
            if is_other_model {
                self.record_control(command.action);
            }
            self.count_lost(instance.handle(command));
        }
        self.next = Some((instance, 0));
    }

    /// Sends a command to all instances, and keeps it for those to come.
    fn handle(&mut self, command: TimedCommand) {
        match command.action {
            Action::Play(kind) => self.performance.record(&Event {
                at: command.at,
                kind,
            }),
            Action::Control { .. } => self.record_control(command.action),
            Action::Transport(transport) => self.transport = Some((command.at, transport)),
        }
        let index = self.commands as usize % self.recent.len();
        self.recent[index] = command;
        self.commands += 1;
        let accepted = self
            .current
            .as_mut()
            .is_none_or(|instance| instance.handle(command));
        let next_accepted = self
            .next
            .as_mut()
            .is_none_or(|(instance, _)| instance.handle(command));
        self.count_lost(accepted);
        self.count_lost(next_accepted);
    }

    /// Keeps the value of a control.
    fn record_control(&mut self, action: Action) {
        let Action::Control { id, value } = action else {
            return;
        };
        match self
            .changed_controls
            .iter()
            .position(|(changed, _)| *changed == id)
        {
            Some(index) => self.changed_controls[index].1 = value,
            None if self.changed_controls.len() < MAX_CHANGED_CONTROLS => {
                self.changed_controls.push((id, value))
            }
            None => {}
        }
    }

    fn count_lost(&self, accepted: bool) {
        if !accepted {
            self.link.commands_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Fills a requested snapshot.
    fn answer_snapshot_request(&mut self) {
        let Some(mut snapshot) = self.link.snapshot_request.take() else {
            return;
        };
        snapshot.now = self.now;
        snapshot.performance.copy_from(&self.performance);
        snapshot.changed_controls.clear();
        snapshot
            .changed_controls
            .extend_from_slice(&self.changed_controls);
        (snapshot.model, snapshot.transport) = (self.changed_on, self.transport);
        snapshot.commands = self.commands;
        snapshot.recent.clear();
        let kept = self.commands.min(self.recent.len() as u64);
        for count in self.commands - kept..self.commands {
            snapshot
                .recent
                .push(self.recent[count as usize % self.recent.len()]);
        }
        // The reply slot is empty: the loader asks again only after taking the reply. Dropping
        // would free memory.
        if let Some(unread) = self.link.snapshot_reply.swap(Some(snapshot)) {
            std::mem::forget(unread);
        }
    }
}

/// Copies samples, limited to the range of sound; non-finite ones count as silence.
fn copy_valid(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = if from.is_finite() {
            from.clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT)
        } else {
            0.0
        };
    }
}
