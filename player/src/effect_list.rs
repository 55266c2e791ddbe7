//! Effects of an instance, before and after its model: as saved, and on their way to the audio
//! thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crossbeam_queue::ArrayQueue;
use ondes_engine::effects::blocks::{
    Arrangement, Block, BlockSettings, Blocks, MAX_BLOCKS, Side, Slot,
};
use ondes_engine::effects::{EffectKind, effect};
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};

/// Range of the level of an effect, dB.
pub const LEVELS_DB: [f32; 2] = [-24.0, 24.0];
/// Arrangements that wait for the audio thread, and that it is done with.
const WAITING: usize = 8;
const RETIRED: usize = 16;

/// An effect as saved. All fields but its id are optional in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EffectState {
    /// Id of the [kind](EffectKind::id). Unknown ones, such as of a later version, are kept and not
    /// heard.
    pub effect: String,
    /// True if it is between the input and the model, false if it is after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
    /// True if the sound passes it unchanged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// Share of the effect beside the dry sound, 0 to 1; `None` for the default of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<f32>,
    /// Level of both, dB, within [`LEVELS_DB`].
    #[serde(skip_serializing_if = "is_zero")]
    pub level: f32,
    /// Values of parameters that are not at their defaults, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f32>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

impl EffectState {
    /// Returns an effect of this kind with its defaults, after the model.
    #[must_use]
    pub fn new(kind: &EffectKind) -> Self {
        Self {
            effect: kind.id.into(),
            ..Self::default()
        }
    }

    /// Returns its kind; `None` if it is unknown.
    #[must_use]
    pub fn kind(&self) -> Option<&'static EffectKind> {
        effect(&self.effect)
    }

    /// Returns its share beside the dry sound.
    #[must_use]
    pub fn mix(&self) -> f32 {
        let default = self.kind().map_or(1.0, |kind| kind.mix);
        self.mix
            .filter(|mix| !mix.is_nan())
            .map_or(default, |mix| mix.clamp(0.0, 1.0))
    }

    /// Returns its level, dB.
    #[must_use]
    pub fn level_db(&self) -> f32 {
        match self.level.is_nan() {
            true => 0.0,
            false => self.level.clamp(LEVELS_DB[0], LEVELS_DB[1]),
        }
    }

    /// Returns the value of a parameter, by its place in the kind; in range.
    #[must_use]
    pub fn value(&self, place: usize) -> f32 {
        let Some(parameter) = self.kind().and_then(|kind| kind.parameters.get(place)) else {
            return 0.0;
        };
        let value = self.values.get(parameter.id);
        value.map_or(parameter.default, |value| parameter.nearest(*value))
    }

    /// Sets the value of a parameter, by its place in the kind.
    pub fn set_value(&mut self, place: usize, value: f32) {
        if let Some(parameter) = self.kind().and_then(|kind| kind.parameters.get(place)) {
            self.values
                .insert(parameter.id.into(), parameter.nearest(value));
        }
    }

    fn side(&self) -> Side {
        match self.before {
            true => Side::Before,
            false => Side::After,
        }
    }

    fn apply(&self, kind: &EffectKind, settings: &BlockSettings) {
        settings.set_on(!self.off);
        settings.set_mix(self.mix());
        settings.set_level_db(self.level_db());
        for place in 0..kind.parameters.len() {
            settings.set_value(place, self.value(place));
        }
    }
}

/// Hands effects over to the audio thread and takes replaced ones back, so that they are dropped
/// elsewhere.
pub struct EffectHandover {
    playing: Mutex<Playing>,
    arrival: ArrayQueue<Box<Arrangement>>,
    retired: ArrayQueue<Box<Arrangement>>,
}

/// Effects that play, or are about to.
#[derive(Default)]
struct Playing {
    /// The host's rate in Hz; `None` before playback starts.
    sample_rate: Option<u32>,
    /// In their order, those before the model and those after it.
    effects: Vec<PlayingEffect>,
    /// Numbers of blocks so far.
    numbers: u64,
}

struct PlayingEffect {
    number: u64,
    kind: &'static EffectKind,
    state: EffectState,
    settings: Arc<BlockSettings>,
    /// Its delay at the host's rate, samples.
    latency: usize,
}

impl Default for EffectHandover {
    fn default() -> Self {
        Self {
            playing: Mutex::default(),
            arrival: ArrayQueue::new(WAITING),
            retired: ArrayQueue::new(RETIRED),
        }
    }
}

impl EffectHandover {
    /// Sends effects, at most [`MAX_BLOCKS`]. Those that play already play on, wherever they are now.
    pub fn send(&self, states: &[EffectState]) {
        while self.retired.pop().is_some() {}
        let mut playing = lock(&self.playing);
        let before = playing.places();
        let new = playing.adopt(states);
        if playing.places() == before {
            return;
        }
        if playing.sample_rate.is_some() && self.arrival.is_full() {
            // Nobody plays: what waits is of no use, and the next one must not rely on it.
            while self.arrival.pop().is_some() {}
            let all = playing.arrangement(&|_| true);
            let _ = self.arrival.push(Box::new(all));
        } else if playing.sample_rate.is_some() {
            let next = playing.arrangement(&|number| new.contains(&number));
            let _ = self.arrival.push(Box::new(next));
        }
    }

    /// Returns the effects for an audio thread that starts at `sample_rate` (Hz), with blocks of at
    /// most `max_block` frames.
    #[must_use]
    pub fn start(&self, sample_rate: u32, max_block: usize) -> Blocks {
        let mut playing = lock(&self.playing);
        playing.sample_rate = Some(sample_rate);
        while self.arrival.pop().is_some() {}
        Blocks::new(playing.arrangement(&|_| true), max_block)
    }

    /// Returns the delay of all effects, host samples; 0 before playback starts.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        let playing = lock(&self.playing);
        playing.effects.iter().map(|effect| effect.latency).sum()
    }

    /// For the audio thread: begins to play an arrangement that has arrived, and takes back the one
    /// that it has replaced. Wait-free.
    pub fn exchange(&self, blocks: &mut Blocks) {
        // The audio thread is the only producer, so a queue that is not full has room.
        if !self.retired.is_full()
            && let Some(last) = blocks.take_last()
            && let Err(last) = self.retired.push(last)
        {
            std::mem::forget(last);
        }
        if blocks.is_ready()
            && let Some(next) = self.arrival.pop()
        {
            blocks.arrange(next);
        }
    }
}

impl Playing {
    /// Returns numbers and sides in their order.
    fn places(&self) -> Vec<(u64, bool)> {
        let places = self.effects.iter();
        places
            .map(|effect| (effect.number, effect.state.before))
            .collect()
    }

    /// Takes states over; returns the numbers of effects that did not play before.
    fn adopt(&mut self, states: &[EffectState]) -> Vec<u64> {
        let mut known = std::mem::take(&mut self.effects);
        let mut new = Vec::new();
        let sides = [true, false]
            .into_iter()
            .flat_map(|before| states.iter().filter(move |state| state.before == before));
        for state in sides.take(MAX_BLOCKS) {
            let Some(kind) = state.kind() else { continue };
            // An effect that is the same in all but its place has moved.
            let same = known.iter().position(|known| {
                let there = EffectState {
                    before: state.before,
                    ..known.state.clone()
                };
                there == *state
            });
            let alike = || known.iter().position(|known| known.kind.id == kind.id);
            let mut effect = match same.or_else(alike) {
                Some(place) => known.remove(place),
                None => {
                    self.numbers += 1;
                    new.push(self.numbers);
                    PlayingEffect {
                        number: self.numbers,
                        kind,
                        state: state.clone(),
                        settings: Arc::new(BlockSettings::new(kind)),
                        latency: 0,
                    }
                }
            };
            state.apply(kind, &effect.settings);
            effect.state = state.clone();
            self.effects.push(effect);
        }
        new
    }

    /// Returns the arrangement of all effects, with blocks for those that are new.
    fn arrangement(&mut self, is_new: &dyn Fn(u64) -> bool) -> Arrangement {
        let sample_rate = self.sample_rate.unwrap_or_default();
        let mut arrangement = Arrangement::default();
        for effect in &mut self.effects {
            let block = is_new(effect.number).then(|| {
                let block = Block::new(effect.kind, effect.settings.clone(), sample_rate);
                effect.latency = block.latency_samples();
                Box::new(block)
            });
            let number = effect.number;
            arrangement.sides[effect.state.side() as usize].push(Slot { number, block });
        }
        arrangement
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: &str) -> EffectState {
        EffectState::new(effect(id).expect("an effect"))
    }

    /// Plays until the last arrangement is there; returns the level of a constant sound.
    fn settle(handover: &EffectHandover, blocks: &mut Blocks) -> f32 {
        let mut last = 0.0;
        for _ in 0..200 {
            handover.exchange(blocks);
            blocks.set(120.0);
            let (mut left, mut right) = ([0.1; 64], [0.1; 64]);
            blocks.process(Side::Before, &mut left, &mut right);
            blocks.process(Side::After, &mut left, &mut right);
            last = left[63];
        }
        last
    }

    #[test]
    fn effects_are_saved_with_what_is_not_at_its_default() {
        let mut delay = state("delay");
        assert_eq!(
            serde_json::to_string(&delay).unwrap(),
            r#"{"effect":"delay"}"#
        );
        delay.set_value(0, 1e9);
        delay.set_value(99, 1.0);
        (delay.before, delay.off, delay.mix) = (true, true, Some(0.7));
        let saved = serde_json::to_string(&delay).unwrap();
        assert_eq!(
            saved,
            r#"{"effect":"delay","before":true,"off":true,"mix":0.7,"values":{"time":2000.0}}"#
        );
        assert_eq!(serde_json::from_str::<EffectState>(&saved).unwrap(), delay);
        let odd: EffectState = serde_json::from_str(
            r#"{"effect":"delay","mix":7,"level":1e9,"values":{"time":-3,"no":1}}"#,
        )
        .unwrap();
        assert_eq!((odd.mix(), odd.level_db(), odd.value(0)), (1.0, 24.0, 1.0));
    }

    #[test]
    fn effects_come_change_move_and_go_while_they_play() {
        let handover = EffectHandover::default();
        let mut quiet = state("compressor");
        quiet.level = -12.0;
        quiet.set_value(0, 0.0);
        quiet.set_value(4, 0.0);
        handover.send(std::slice::from_ref(&quiet));
        let mut blocks = handover.start(48_000, 64);
        let near = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-4, "{found}");
        near(settle(&handover, &mut blocks), 0.0251);
        let unknown = EffectState {
            effect: "from a later version".into(),
            ..EffectState::default()
        };
        handover.send(&[state("limiter"), unknown, quiet.clone()]);
        assert_eq!(blocks.latency_samples(), 0);
        near(settle(&handover, &mut blocks), 0.0251);
        assert_eq!(blocks.latency_samples(), 72);
        // A change of values is no new arrangement.
        quiet.level = -6.0;
        handover.send(&[state("limiter"), quiet.clone()]);
        assert!(handover.arrival.is_empty());
        near(settle(&handover, &mut blocks), 0.0501);
        quiet.before = true;
        handover.send(&[state("limiter"), quiet]);
        near(settle(&handover, &mut blocks), 0.0501);
        assert!(!blocks.is_empty(Side::Before));
        handover.send(&[]);
        near(settle(&handover, &mut blocks), 0.1);
        assert_eq!(blocks.latency_samples(), 0);
        assert!(blocks.is_empty(Side::Before) && blocks.is_empty(Side::After));
    }

    #[test]
    fn changes_without_an_audio_thread_are_not_lost() {
        let handover = EffectHandover::default();
        let mut blocks = handover.start(48_000, 64);
        for _ in 0..50 {
            handover.send(&[state("limiter")]);
            handover.send(&[]);
        }
        let mut quiet = state("gate");
        quiet.level = -6.0;
        handover.send(std::slice::from_ref(&quiet));
        let found = settle(&handover, &mut blocks);
        assert!((found - 0.0501).abs() < 1e-4, "{found}");
    }

    #[test]
    fn at_most_so_many_effects_play() {
        let handover = EffectHandover::default();
        handover.send(&vec![state("limiter"); 40]);
        let blocks = handover.start(48_000, 64);
        assert_eq!(blocks.latency_samples(), 72 * MAX_BLOCKS);
    }
}
