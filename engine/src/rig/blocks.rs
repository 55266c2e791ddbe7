//! Blocks one after the other, before and after a model.
//!
//! Another thread arranges them while they play: it sends an [`Arrangement`] that names all blocks in
//! their order, and brings those that are new. A block that goes or moves fades out where it is, and
//! fades in at its new place, while all others play on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crossbeam_utils::atomic::AtomicCell;
use ondes_kernels::FlushToZero;

use super::branches::{BranchMixer, BranchSettings, Lane};
use crate::dsp::delay_line::DelayLine;
use crate::dsp::level::{db_to_amplitude, peak};
use crate::dsp::ramp::Ramp;
use crate::effects::{Activity, CHANGE_S, Effect, EffectParameter};
use crate::model::{Curve, KnobRange};
use crate::pipeline::{ENDLESS, Transport};
use crate::realtime::Setup;

/// Fall of a block's peak, dB per second.
const FALL_DB: f32 = -60.0;
/// Most blocks of an arrangement.
pub const MAX_BLOCKS: usize = 16;
/// Number of macros: knobs of the host that can turn settings of blocks.
pub const MACROS: usize = 8;
/// Range of the level of a block, dB.
pub const LEVELS_DB: [f32; 2] = [-24.0, 24.0];
/// Number of a macro that there is not.
const NO_MACRO: u8 = u8::MAX;
/// State of an effect that shows none.
const NO_STATE: u8 = u8::MAX;

/// Place of a block relative to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Between the input and the model.
    Before,
    /// Between the model and the output.
    After,
}

/// A setting of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSetting {
    /// 1 if the block is on, 0 if the sound passes it unchanged.
    On,
    /// Share of the effect beside the dry sound, 0 to 1.
    Mix,
    /// Level of both, dB, within [`LEVELS_DB`].
    Level,
    /// A parameter, by its place among those of the kind.
    Value(usize),
}

/// Value of a setting, and what turns it.
#[derive(Debug)]
struct TurnedValue {
    value: AtomicCell<f32>,
    /// Number of the macro that turns it, or [`NO_MACRO`].
    by: AtomicU8,
    range: KnobRange,
}

impl TurnedValue {
    fn new(value: f32, range: KnobRange) -> Self {
        Self {
            value: AtomicCell::new(value),
            by: AtomicU8::new(NO_MACRO),
            range,
        }
    }

    /// Returns the value with these positions of the macros; a macro in the middle changes nothing.
    fn played(&self, macros: &[f32; MACROS]) -> f32 {
        let own = self.value.load();
        let Some(position) = macros.get(usize::from(self.by.load(Relaxed))) else {
            return own;
        };
        let value = self.range.centred_at(own).value(*position);
        match self.range.curve {
            Curve::Steps => value.round(),
            Curve::Linear | Curve::Logarithmic => value,
        }
    }
}

/// Settings of a block, which one thread changes while another one plays it.
#[derive(Debug)]
pub struct BlockSettings {
    on: TurnedValue,
    mix: TurnedValue,
    level_db: TurnedValue,
    values: Box<[TurnedValue]>,
    /// Level of the block's output, which the thread that plays it tells.
    heard: AtomicCell<f32>,
    /// State and position of its effect, likewise; [`NO_STATE`] if it shows none.
    state: AtomicU8,
    position: AtomicCell<f32>,
}

impl BlockSettings {
    /// Creates the settings of a block that is on, with a mix and the values of its parameters.
    #[must_use]
    pub fn new(mix: f32, parameters: &[EffectParameter], values: &[f32]) -> Self {
        let range = |min, max, curve| KnobRange {
            min,
            centre: min,
            max,
            curve,
        };
        let values = parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| TurnedValue::new(*value, parameter.knob_range()));
        let [quietest, loudest] = LEVELS_DB;
        Self {
            on: TurnedValue::new(1.0, range(0.0, 1.0, Curve::Steps)),
            mix: TurnedValue::new(mix, range(0.0, 1.0, Curve::Linear)),
            level_db: TurnedValue::new(0.0, range(quietest, loudest, Curve::Linear)),
            values: values.collect(),
            heard: AtomicCell::new(0.0),
            state: AtomicU8::new(NO_STATE),
            position: AtomicCell::new(0.0),
        }
    }

    fn turned(&self, setting: BlockSetting) -> Option<&TurnedValue> {
        match setting {
            BlockSetting::On => Some(&self.on),
            BlockSetting::Mix => Some(&self.mix),
            BlockSetting::Level => Some(&self.level_db),
            BlockSetting::Value(place) => self.values.get(place),
        }
    }

    /// Returns the peak of the block's output, which falls by 60 dB a second.
    #[must_use]
    pub fn peak(&self) -> f32 {
        self.heard.load()
    }

    /// Returns what the effect is doing, if it tells.
    #[must_use]
    pub fn activity(&self) -> Option<Activity> {
        let state = Some(self.state.load(Relaxed)).filter(|state| *state != NO_STATE)?;
        let position = self.position.load();
        Some(Activity { state, position })
    }

    /// Sets a setting, which is in range. A setting that the block has not is ignored.
    pub fn set(&self, setting: BlockSetting, value: f32) {
        if let Some(turned) = self.turned(setting) {
            turned.value.store(value);
        }
    }

    /// Lets a macro turn a setting, by its number from 0, or none. In the middle it leaves the value
    /// that is set; either half covers the way to one end of the range.
    pub fn turn_by(&self, setting: BlockSetting, number: Option<usize>) {
        let known = number.filter(|number| *number < MACROS);
        if let Some(turned) = self.turned(setting) {
            let by = known.map_or(NO_MACRO, |number| number as u8);
            turned.by.store(by, Relaxed);
        }
    }
}

/// An effect with its mix and level.
pub struct Block {
    settings: Arc<BlockSettings>,
    effect: Box<dyn Effect>,
    /// Values and tempo that the effect has; no tempo before the first.
    values: Vec<f32>,
    tempo: f32,
    wet: Ramp,
    dry: Ramp,
    /// Share of the sound that goes into the effect: an echo would begin as suddenly as its input.
    into: Ramp,
    /// Delay of the dry sound by the latency of the effect, and the share of it: a block that comes
    /// or goes is not yet, or no more, late.
    delays: [DelayLine; 2],
    latency: usize,
    late: Ramp,
    /// Samples until a block that was asleep is heard: its effect is late.
    waits: usize,
    /// It fades out, to go or to move.
    leaves: bool,
    /// Samples for which a block that was turned off still sounds.
    rings: usize,
    /// Nothing of the effect is heard, and nothing is in it.
    sleeps: bool,
    sample_rate: u32,
}

impl Block {
    /// Creates a block of an effect for this sample rate in Hz.
    #[must_use]
    pub fn new(effect: Box<dyn Effect>, settings: Arc<BlockSettings>, sample_rate: u32) -> Self {
        let latency = effect.latency_samples();
        let delay = DelayLine::new(latency);
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate);
        Self {
            values: settings
                .values
                .iter()
                .map(|value| value.value.load())
                .collect(),
            tempo: f32::NAN,
            settings,
            effect,
            wet: ramp(0.0),
            dry: ramp(1.0),
            into: ramp(0.0),
            delays: [delay.clone(), delay],
            latency,
            waits: latency,
            late: ramp(0.0),
            leaves: false,
            rings: 0,
            sleeps: true,
            sample_rate,
        }
    }

    /// Returns the delay of the effect, samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.effect.latency_samples()
    }

    /// Takes the settings over.
    fn set(&mut self, tempo: f32, macros: &[f32; MACROS]) {
        let mut is_new = tempo.to_bits() != self.tempo.to_bits();
        self.tempo = tempo;
        for (value, shared) in self.values.iter_mut().zip(&self.settings.values) {
            let shared = shared.played(macros);
            is_new |= shared.to_bits() != value.to_bits();
            *value = shared;
        }
        if is_new {
            self.effect.set(&self.values, tempo);
        }
        let mix = self.settings.mix.played(macros);
        let level = db_to_amplitude(self.settings.level_db.played(macros));
        let on = self.settings.on.played(macros) != 0.0 && !self.leaves;
        if on {
            self.rings = self.effect.tail_samples();
        }
        // What is turned off gets no more sound, and rings on.
        let is_over = self.rings == 0 && self.into.settled() == Some(0.0);
        match on {
            true => self.wet.set_target(mix * level),
            false if self.leaves || is_over => self.wet.set_target(0.0),
            false => {}
        }
        self.into.set_target(f32::from(u8::from(on)));
        self.dry
            .set_target(if on { (1.0 - mix) * level } else { 1.0 });
        self.late.set_target(f32::from(u8::from(!self.leaves)));
    }

    /// Completes all changes and forgets all sound.
    fn reset(&mut self) {
        for ramp in [&mut self.wet, &mut self.dry, &mut self.into, &mut self.late] {
            ramp.finish();
        }
        (self.waits, self.rings) = (0, 0);
        self.effect.reset();
        self.delays.iter_mut().for_each(DelayLine::reset);
    }

    /// Returns whether a block that leaves is no longer heard.
    fn has_left(&self) -> bool {
        let ramps = [&self.wet, &self.dry, &self.late].map(Ramp::settled);
        self.leaves && ramps == [Some(0.0), Some(1.0), Some(0.0)]
    }

    fn process(&mut self, sound: [&mut [f32]; 2], dry: [&mut [f32]; 2]) {
        let [left, right] = sound;
        self.play([&mut *left, &mut *right], dry);
        let fallen = FALL_DB * left.len() as f32 / self.sample_rate as f32;
        let held = self.settings.heard.load() * db_to_amplitude(fallen);
        let peak = peak(left).max(peak(right));
        self.settings.heard.store(held.max(peak));
        if let Some(activity) = self.effect.activity() {
            self.settings.position.store(activity.position);
            self.settings.state.store(activity.state, Relaxed);
        }
    }

    fn play(&mut self, sound: [&mut [f32]; 2], dry: [&mut [f32]; 2]) {
        let silent = self.wet.settled() == Some(0.0);
        let latency = self.latency;
        if silent && !self.sleeps {
            self.effect.reset();
        }
        if silent {
            self.into.jump(0.0);
            self.waits = latency;
        }
        self.sleeps = silent;
        if silent && latency == 0 && self.dry.settled() == Some(1.0) {
            self.late.finish();
            return;
        }
        let [left, right] = sound;
        let [dry_left, dry_right] = dry;
        let ramps = [&self.wet, &self.dry, &self.late].map(Ramp::settled);
        let steady = match ramps {
            [Some(wet), Some(dry), Some(1.0)] if self.waits == 0 && !silent => Some((wet, dry)),
            _ => None,
        };
        let needs_dry = latency > 0 || steady.is_none_or(|(_, dry)| dry != 0.0);
        if needs_dry {
            dry_left.copy_from_slice(left);
            dry_right.copy_from_slice(right);
        }
        if !silent {
            if self.into.settled() != Some(1.0) {
                for (left, right) in left.iter_mut().zip(&mut *right) {
                    let into = self.into.advance();
                    *left *= into;
                    *right *= into;
                }
            }
            self.effect.process(left, right);
            if self.into.settled() == Some(0.0) && self.effect.tail_samples() != ENDLESS {
                self.rings = self.rings.saturating_sub(left.len());
            }
        }
        let channels = [(left, dry_left), (right, dry_right)];
        if let Some((wet_gain, dry_gain)) = steady {
            // Most of the time nothing changes; the same samples as below come out.
            for ((wet, dry), delay) in channels.into_iter().zip(&mut self.delays) {
                if latency > 0 {
                    for dry in &mut *dry {
                        delay.push(*dry);
                        *dry = delay.at(latency);
                    }
                }
                if dry_gain != 0.0 {
                    for (wet, dry) in wet.iter_mut().zip(dry) {
                        *wet = wet_gain * *wet + dry_gain * *dry;
                    }
                } else if wet_gain != 1.0 {
                    wet.iter_mut().for_each(|wet| *wet *= wet_gain);
                }
            }
            return;
        }
        let ramps = (self.wet, self.dry, self.late, self.waits);
        for ((wet, dry), delay) in channels.into_iter().zip(&mut self.delays) {
            (self.wet, self.dry, self.late, self.waits) = ramps;
            for (wet, dry) in wet.iter_mut().zip(dry) {
                let late = self.late.advance();
                if latency > 0 {
                    delay.push(*dry);
                    // Rounding must not change a sound that is only late.
                    *dry = late * delay.at(latency) + (1.0 - late) * *dry;
                }
                if self.waits > 0 && !silent {
                    self.waits -= 1;
                    *wet = *dry;
                    continue;
                }
                let through = self.wet.advance() * *wet;
                let through = if silent { 0.0 } else { through };
                *wet = through + self.dry.advance() * *dry;
            }
        }
    }
}

/// Place of a block: its number, and the block itself if it is new.
pub struct Slot {
    /// Number of the block; no other one ever has it.
    pub number: u64,
    /// Its way.
    pub lane: Lane,
    /// The block, unless it plays already.
    pub block: Option<Box<Block>>,
}

/// All blocks in their order.
#[derive(Default)]
pub struct Arrangement {
    /// Blocks before and after the model.
    pub sides: [Vec<Slot>; 2],
}

impl Arrangement {
    fn blocks(&mut self) -> impl Iterator<Item = (u64, &mut Block)> {
        let slots = self.sides.iter_mut().flatten();
        slots.filter_map(|slot| Some((slot.number, &mut **slot.block.as_mut()?)))
    }

    /// Returns what is in branches: side, number and way.
    fn branched(&self) -> impl Iterator<Item = (usize, u64, Lane)> {
        let sides = self.sides.iter().enumerate();
        sides.flat_map(|(side, slots)| {
            let branched = slots.iter().filter(|slot| slot.lane != Lane::Whole);
            branched.map(move |slot| (side, slot.number, slot.lane))
        })
    }

    /// Returns the latency of each branch, or in all.
    fn latencies(&self, lane: Lane) -> usize {
        let slots = self.sides.iter().flatten().filter(|slot| slot.lane == lane);
        let blocks = slots.filter_map(|slot| slot.block.as_ref());
        blocks.map(|block| block.latency_samples()).sum()
    }

    /// Returns where a block is: side and place.
    fn find(&self, number: u64) -> Option<(usize, usize)> {
        let on_side = |side: usize| {
            let place = self.sides[side]
                .iter()
                .position(|slot| slot.number == number);
            Some((side, place?))
        };
        on_side(0).or_else(|| on_side(1))
    }
}

/// Plays an arrangement. Allocates only when it is made.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ondes_engine::effects::effect;
/// use ondes_engine::realtime::Setup;
/// use ondes_engine::rig::blocks::{Arrangement, Block, BlockSettings, Blocks, BlockSetting, Side, Slot};
/// use ondes_engine::rig::branches::Lane;
///
/// let kind = effect("delay").unwrap();
/// let settings = Arc::new(BlockSettings::new(kind.mix, kind.parameters, &kind.defaults()));
/// let block = Box::new(Block::new((kind.new)(48_000), settings.clone(), 48_000));
/// let slot = Slot { number: 1, lane: Lane::Whole, block: Some(block) };
/// let setup = Setup { sample_rate: 48_000, max_block: 64 };
/// let arrangement = Arrangement { sides: [vec![], vec![slot]] };
/// let mut blocks = Blocks::new(arrangement, Arc::default(), setup);
/// settings.set(BlockSetting::Mix, 0.5);
/// let (mut left, mut right) = ([0.1; 64], [0.1; 64]);
/// blocks.set(120.0);
/// blocks.process(Side::After, &mut left, &mut right);
/// ```
pub struct Blocks {
    now: Box<Arrangement>,
    /// The next one, while blocks that it has not, or elsewhere, fade out.
    next: Option<Box<Arrangement>>,
    /// The last one, to be dropped on another thread.
    last: Option<Box<Arrangement>>,
    /// `[channel][frame]`
    dry: [Vec<f32>; 2],
    /// Settings of the branches.
    branches: Arc<[BranchSettings; 2]>,
    mixer: BranchMixer,
    /// The branches fade out, to be others.
    branches_leave: bool,
    /// `[channel][frame]`: sound of the second branch.
    second: [Vec<f32>; 2],
    /// Positions of the macros, 0 to 1.
    macros: [f32; MACROS],
}

impl Blocks {
    /// Creates a player of an arrangement of new blocks. Only neighbours on one side may be in
    /// branches.
    #[must_use]
    pub fn new(arrangement: Arrangement, branches: Arc<[BranchSettings; 2]>, setup: Setup) -> Self {
        let block = || vec![0.0; setup.max_block];
        let mut blocks = Self {
            now: Box::new(arrangement),
            next: None,
            last: None,
            dry: [block(), block()],
            branches,
            mixer: BranchMixer::new(setup.sample_rate),
            branches_leave: false,
            second: [block(), block()],
            macros: [KnobRange::CENTRE; MACROS],
        };
        blocks.set(120.0);
        blocks.reset();
        blocks
    }

    /// Sets the positions of the macros, 0 to 1, from the next [`set`](Self::set) on.
    pub fn turn(&mut self, macros: [f32; MACROS]) {
        self.macros = macros;
    }

    /// Returns whether the next arrangement can be taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.next.is_none() && self.last.is_none()
    }

    /// Takes an arrangement, to be played as soon as what it changes has faded out.
    ///
    /// # Panics
    /// If it is not [ready](Self::is_ready).
    pub fn arrange(&mut self, next: Box<Arrangement>) {
        assert!(self.is_ready(), "one arrangement at a time");
        self.branches_leave = !self.now.branched().eq(next.branched());
        let mut first = [0, 0];
        for (side, slots) in self.now.sides.iter_mut().enumerate() {
            for slot in slots {
                let there = next.find(slot.number).filter(|there| there.0 == side);
                let stays = there.filter(|(_, place)| *place >= first[side]);
                if let Some((_, place)) = stays {
                    first[side] = place + 1;
                }
                let is_branched = slot.lane != Lane::Whole
                    || there
                        .is_some_and(|(side, place)| next.sides[side][place].lane != Lane::Whole);
                if let Some(block) = &mut slot.block {
                    block.leaves = stays.is_none() || self.branches_leave && is_branched;
                }
            }
        }
        self.next = Some(next);
    }

    /// Returns an arrangement that is no longer needed, to be dropped on another thread.
    pub fn take_last(&mut self) -> Option<Box<Arrangement>> {
        self.last.take()
    }

    /// Begins a block with the present settings and the tempo of the song, quarter notes a minute.
    pub fn set(&mut self, tempo: f32) {
        if self.next.is_some()
            && self
                .now
                .blocks()
                .all(|(_, block)| !block.leaves || block.has_left())
            && (!self.branches_leave || self.mixer.is_through())
            && let Some(mut next) = self.next.take()
        {
            for slot in next.sides.iter_mut().flatten() {
                if slot.block.is_none()
                    && let Some((side, place)) = self.now.find(slot.number)
                {
                    slot.block = self.now.sides[side][place].block.take();
                }
            }
            self.last = Some(std::mem::replace(&mut self.now, next));
            self.now
                .blocks()
                .for_each(|(_, block)| block.leaves = false);
            self.branches_leave = false;
        }
        let is_branched = self.now.branched().next().is_some() && !self.branches_leave;
        let latencies = [Lane::First, Lane::Second].map(|lane| self.now.latencies(lane));
        self.mixer
            .set(is_branched.then_some((&*self.branches, latencies)));
        let macros = &self.macros;
        self.now
            .blocks()
            .for_each(|(_, block)| block.set(tempo, macros));
    }

    /// Takes over where the song is at the next sample.
    pub fn follow(&mut self, song: &Transport) {
        let blocks = self.now.blocks();
        blocks.for_each(|(_, block)| block.effect.follow(song));
    }

    /// Completes changes of settings, and forgets all sound.
    pub fn reset(&mut self) {
        self.now.blocks().for_each(|(_, block)| block.reset());
        self.mixer.reset();
    }

    /// Lets a side rest that no sound comes to, in place of [`process`](Self::process): what goes or
    /// moves there is silent anyway.
    pub fn rest(&mut self, side: Side) {
        let slots = self.now.sides[side as usize].iter_mut();
        let leaving = slots.filter_map(|slot| slot.block.as_mut());
        leaving
            .filter(|block| block.leaves && !block.has_left())
            .for_each(|block| block.reset());
        let is_here = |(branched, ..): (usize, u64, Lane)| branched == side as usize;
        if self.branches_leave && self.now.branched().any(is_here) {
            self.mixer.reset();
        }
    }

    /// Processes the sound on one side of the model, at most a block.
    pub fn process(&mut self, side: Side, left: &mut [f32], right: &mut [f32]) {
        let slots = &mut self.now.sides[side as usize];
        if slots.is_empty() {
            return;
        }
        let _flush = FlushToZero::on();
        let frames = left.len();
        let dry = &mut self.dry;
        let [second_left, second_right] = self.second.each_mut().map(|side| &mut side[..frames]);
        let mut is_split = false;
        for slot in slots {
            let is_whole = slot.lane == Lane::Whole;
            if is_split && is_whole {
                self.mixer.mix(
                    &self.branches,
                    [&mut *left, &mut *right],
                    [second_left, second_right],
                );
            } else if !is_split && !is_whole {
                second_left.copy_from_slice(left);
                second_right.copy_from_slice(right);
            }
            is_split = !is_whole;
            let Some(block) = &mut slot.block else {
                continue;
            };
            let sound = match slot.lane {
                Lane::Second => [&mut *second_left, &mut *second_right],
                Lane::Whole | Lane::First => [&mut *left, &mut *right],
            };
            block.process(sound, dry.each_mut().map(|side| &mut side[..frames]));
        }
        if is_split {
            self.mixer.mix(
                &self.branches,
                [&mut *left, &mut *right],
                [second_left, second_right],
            );
        }
    }

    /// Returns whether there are no blocks on a side.
    #[must_use]
    pub fn is_empty(&self, side: Side) -> bool {
        self.now.sides[side as usize].is_empty()
    }

    /// Returns the delay of all blocks, samples, whether they are on or off: of two branches that of
    /// the longer one.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        let [whole, first, second] =
            [Lane::Whole, Lane::First, Lane::Second].map(|lane| self.now.latencies(lane));
        whole + first.max(second)
    }

    /// Returns how long they sound after their input has ended, samples.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        let slots = self.now.sides.iter().flatten();
        let blocks = slots.filter_map(|slot| slot.block.as_ref());
        blocks.fold(0, |sum: usize, block| {
            sum.saturating_add(block.effect.tail_samples())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsp::level::max_step;
    use crate::effects::tests::sine;
    use crate::effects::{EFFECTS, effect};
    use crate::random::SplitMix64;

    const RATE: u32 = 48_000;

    fn slot(number: u64, id: &str) -> (Slot, Arc<BlockSettings>) {
        let kind = effect(id).unwrap();
        let settings = Arc::new(BlockSettings::new(
            kind.mix,
            kind.parameters,
            &kind.defaults(),
        ));
        let block = Some(Box::new(Block::new(
            (kind.new)(RATE),
            settings.clone(),
            RATE,
        )));
        let lane = Lane::Whole;
        (
            Slot {
                number,
                lane,
                block,
            },
            settings,
        )
    }

    fn new(arrangement: Arrangement) -> Blocks {
        let setup = Setup {
            sample_rate: RATE,
            max_block: 64,
        };
        Blocks::new(arrangement, Arc::default(), setup)
    }

    fn known(number: u64) -> Slot {
        Slot {
            number,
            lane: Lane::Whole,
            block: None,
        }
    }

    fn play(blocks: &mut Blocks, sound: &[f32]) -> Vec<f32> {
        let (mut left, mut right) = (sound.to_vec(), sound.to_vec());
        for (left, right) in left.chunks_mut(64).zip(right.chunks_mut(64)) {
            blocks.set(120.0);
            blocks.process(Side::Before, left, right);
            blocks.process(Side::After, left, right);
        }
        left
    }

    #[test]
    fn blocks_play_as_the_effects_by_hand() {
        let ids = ["compressor", "chorus", "delay", "limiter"];
        let slots: Vec<_> = (1..)
            .zip(ids)
            .map(|(number, id)| slot(number, id).0)
            .collect();
        let mut blocks = new(Arrangement {
            sides: [vec![], slots],
        });
        assert_eq!(blocks.latency_samples(), 72);
        let sound = sine(220.0, -10.0, 0.5);
        let heard = play(&mut blocks, &sound);
        let mut expected = [sound.clone(), sound];
        for id in ids {
            let kind = effect(id).unwrap();
            let [left, right] = &expected;
            let wet = crate::effects::tests::play(kind, &kind.defaults(), [left, right]);
            for (dry, wet) in expected.iter_mut().zip(wet) {
                for (dry, wet) in dry.iter_mut().zip(wet) {
                    *dry = kind.mix * wet + (1.0 - kind.mix) * *dry;
                }
            }
        }
        assert!(heard == expected[0]);
    }

    #[test]
    fn what_is_off_changes_no_sample_and_keeps_the_latency() {
        let (limiter, limits) = slot(1, "limiter");
        let (delay, echoes) = slot(2, "delay");
        limits.set(BlockSetting::On, 0.0);
        echoes.set(BlockSetting::On, 0.0);
        let sides = [vec![limiter], vec![delay]];
        let mut blocks = new(Arrangement { sides });
        let sound = sine(220.0, -10.0, 0.1);
        let heard = play(&mut blocks, &sound);
        assert!(heard[72..] == sound[..sound.len() - 72]);
    }

    #[test]
    fn blocks_come_and_go_without_a_click_and_play_on_when_others_move() {
        let mut random = SplitMix64::new(7);
        let mut below = |count: usize| (random.next_u64() % count as u64) as usize;
        let mut blocks = new(Arrangement::default());
        // A period has 800 samples.
        let period = sine(60.0, -20.0, 1.0 / 60.0);
        let (mut order, mut settings, mut next) = ([vec![], vec![]], Vec::new(), 1);
        // Effects that keep the sine smooth.
        let smooth = [
            "compressor",
            "equalizer",
            "chorus",
            "tremolo",
            "delay",
            "limiter",
            "reverb",
        ];
        let mut loudest = 0.0_f32;
        for edit in 0..3_000 {
            let side = below(2);
            let mut new = None;
            match below(4) {
                0 if order[0].len() + order[1].len() < 6 => {
                    let id = smooth[below(smooth.len())];
                    let (slot, own) = slot(next, id);
                    let place = below(order[side].len() + 1);
                    order[side].insert(place, next);
                    settings.push((next, own));
                    new = Some(slot);
                    next += 1;
                }
                1 if !order[side].is_empty() => {
                    let place = below(order[side].len());
                    let gone: u64 = order[side].remove(place);
                    settings.retain(|(number, _)| *number != gone);
                }
                2 if !order[side].is_empty() => {
                    let place = below(order[side].len());
                    let moved = order[side].remove(place);
                    let to = below(order[1 - side].len() + 1);
                    order[1 - side].insert(to, moved);
                }
                _ => {
                    if let Some((_, settings)) = settings.first() {
                        settings.set(BlockSetting::On, (edit % 2) as f32);
                    }
                }
            }
            let mut arrangement = Arrangement {
                sides: [0, 1].map(|side: usize| order[side].iter().copied().map(known).collect()),
            };
            if let Some(new) = new {
                let (side, place) = arrangement.find(new.number).unwrap();
                arrangement.sides[side][place] = new;
            }
            while !blocks.is_ready() {
                drop(blocks.take_last());
                if !blocks.is_ready() {
                    play(&mut blocks, &period);
                }
            }
            blocks.arrange(Box::new(arrangement));
            let heard = play(&mut blocks, &period.repeat(6));
            assert!(heard.iter().all(|sample| sample.is_finite()));
            let step = max_step(&heard);
            loudest = loudest.max(peak(&heard));
            assert!(
                step < 0.04 * loudest.max(0.1) + 0.01,
                "edit {edit}: a step of {step}, {order:?}"
            );
        }
        assert!(next > 300 && loudest > 0.1);
    }

    #[test]
    fn all_effects_can_be_blocks() {
        for (number, kind) in (1..).zip(EFFECTS) {
            let sides = [vec![], vec![slot(number, kind.id).0]];
            let mut blocks = new(Arrangement { sides });
            let heard = play(&mut blocks, &sine(220.0, -10.0, 0.2));
            assert!(peak(&heard) > 0.01, "{}", kind.id);
            assert!(blocks.tail_samples() < 60 * RATE as usize);
        }
    }

    #[test]
    fn what_is_turned_off_rings_on_and_then_sleeps() {
        let (slot, settings) = slot(1, "delay");
        settings.set(BlockSetting::Mix, 0.5);
        let sides = [vec![], vec![slot]];
        let mut blocks = new(Arrangement { sides });
        let sound = sine(220.0, -10.0, 0.25);
        play(&mut blocks, &sound);
        settings.set(BlockSetting::On, 0.0);
        let silence = vec![0.0; RATE as usize];
        let echoes = play(&mut blocks, &silence);
        // Its echo comes after 0.35 s, and others after it; new sound has none.
        assert!(peak(&echoes[4_000..]) > 0.05, "{}", peak(&echoes[4_000..]));
        assert!(max_step(&echoes) < 0.02);
        for _ in 0..30 {
            play(&mut blocks, &silence);
        }
        let slot = blocks.now.sides[1][0].block.as_ref().unwrap();
        assert!(slot.sleeps);
        assert_eq!(play(&mut blocks, &sound), sound);
    }

    fn branched(number: u64, id: &str, lane: Lane) -> (Slot, Arc<BlockSettings>) {
        let (slot, settings) = slot(number, id);
        (Slot { lane, ..slot }, settings)
    }

    #[test]
    fn branches_are_played_side_by_side_and_aligned() {
        let sound = sine(220.0, -10.0, 0.5);
        // A gate that is open and a limiter that only delays, at half the level each.
        let (first, quiet) = branched(1, "gate", Lane::First);
        quiet.set(BlockSetting::Level, -6.0);
        let (second, late) = branched(2, "limiter", Lane::Second);
        late.set(BlockSetting::Level, -20.0);
        let (last, _) = slot(3, "tremolo");
        let sides = [vec![], vec![first, second, last]];
        let mut blocks = new(Arrangement { sides });
        assert_eq!(blocks.latency_samples(), 72);
        let heard = play(&mut blocks, &sound);
        let share = 0.5 * (db_to_amplitude(-6.0) + db_to_amplitude(-20.0));
        let mut whole: Vec<f32> = std::iter::repeat_n(0.0, 72)
            .chain(sound.iter().map(|sample| share * sample))
            .take(sound.len())
            .collect();
        let mut other = whole.clone();
        let kind = effect("tremolo").unwrap();
        let mut tremolo = (kind.new)(RATE);
        tremolo.set(&kind.defaults(), 120.0);
        tremolo.reset();
        tremolo.process(&mut whole, &mut other);
        let far = heard.iter().zip(&whole).map(|(a, b)| (a - b).abs());
        // The gate takes a moment to open.
        let error = far.skip(4_800).fold(0.0, f32::max);
        assert!(error < 2e-3, "{error}");
    }

    #[test]
    fn blocks_go_to_branches_and_back_without_a_click() {
        let (one, _) = slot(1, "compressor");
        let (two, level) = slot(2, "limiter");
        level.set(BlockSetting::Level, -6.0);
        let mut blocks = new(Arrangement {
            sides: [vec![], vec![one, two]],
        });
        let sound = sine(220.0, -20.0, 0.2);
        let mut heard = play(&mut blocks, &sound);
        let ways = [
            [Lane::First, Lane::Second],
            [Lane::Whole, Lane::Second],
            [Lane::Second, Lane::Second],
            [Lane::Whole, Lane::Whole],
        ];
        for [one, two] in ways {
            let sides = [
                vec![],
                vec![
                    Slot {
                        lane: one,
                        ..known(1)
                    },
                    Slot {
                        lane: two,
                        ..known(2)
                    },
                ],
            ];
            blocks.arrange(Box::new(Arrangement { sides }));
            heard.extend(play(&mut blocks, &sound));
            assert!(blocks.take_last().is_some(), "it does not arrive");
        }
        let limit = 1.5 * max_step(&sound);
        let step = max_step(&heard);
        assert!(step < limit, "a step of {step}, at most {limit}");
    }

    #[test]
    fn blocks_leave_a_side_that_no_sound_comes_to() {
        let (one, _) = branched(1, "delay", Lane::Second);
        let mut blocks = new(Arrangement {
            sides: [vec![one], vec![]],
        });
        blocks.arrange(Box::default());
        for _ in 0..2 {
            blocks.rest(Side::Before);
            blocks.set(120.0);
        }
        assert!(blocks.take_last().is_some() && blocks.is_empty(Side::Before));
    }

    #[test]
    fn macros_turn_what_they_are_bound_to() {
        let (slot, settings) = slot(1, "limiter");
        let sides = [vec![], vec![slot]];
        let mut blocks = new(Arrangement { sides });
        let sound = sine(220.0, -30.0, 0.5);
        let level = |blocks: &mut Blocks, position: f32| {
            blocks.turn([position; MACROS]);
            peak(&play(blocks, &sound)[12_000..])
        };
        let own = level(&mut blocks, 1.0);
        // Its gain goes from where it stands, in the middle, to 24 dB.
        settings.set(BlockSetting::Value(0), 6.0);
        settings.turn_by(BlockSetting::Value(0), Some(3));
        for (position, expected_db) in [(0.5, 6.0), (0.75, 15.0), (1.0, 24.0), (0.0, 0.0)] {
            let heard = level(&mut blocks, position) / own;
            let far = heard / db_to_amplitude(expected_db);
            assert!((far - 1.0).abs() < 0.02, "{position}: {far}");
        }
        settings.turn_by(BlockSetting::Value(0), None);
        settings.set(BlockSetting::Value(0), 0.0);
        settings.turn_by(BlockSetting::Level, Some(0));
        let quiet = level(&mut blocks, 0.0) / own;
        assert!((quiet / db_to_amplitude(-24.0) - 1.0).abs() < 0.02);
        // A pedal that is up or down turns the block off and on, whichever it is.
        settings.turn_by(BlockSetting::Level, None);
        settings.set(BlockSetting::Value(0), 12.0);
        settings.turn_by(BlockSetting::On, Some(7));
        for own_state in [0.0, 1.0] {
            settings.set(BlockSetting::On, own_state);
            assert!((level(&mut blocks, 0.0) / own - 1.0).abs() < 0.01);
            assert!(level(&mut blocks, 1.0) / own > 3.0);
        }
        // There is no such macro, and no such setting.
        settings.turn_by(BlockSetting::On, Some(99));
        settings.turn_by(BlockSetting::Value(99), Some(0));
        settings.set(BlockSetting::Value(99), 1.0);
    }
}
