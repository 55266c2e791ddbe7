//! Blocks on their way to the audio thread and back.

use std::sync::{Arc, Mutex};

use crossbeam_queue::ArrayQueue;
use ondes_engine::Kernels;
use ondes_engine::chain::ImpulseFile;
use ondes_engine::dsp::cabinet::Cabinet;
use ondes_engine::effects::{Activity, Effect, EffectKind, effect};
use ondes_engine::realtime::{Driver, Setup};
use ondes_engine::rig::blocks::{
    Arrangement, Block, BlockSetting, BlockSettings, Blocks, MAX_BLOCKS, Slot,
};
use ondes_engine::rig::branches::{BranchSettings, Lane, lag};
use ondes_engine::rig::response_effect::ResponseEffect;
use ondes_engine::sync::lock;

use super::block_state::{BlockState, Content};
use super::branch_state::BranchState;
use super::model_block::ModelBlock;

/// Arrangements that wait for the audio thread, and that it is done with.
const WAITING: usize = 8;
const RETIRED: usize = 16;
/// Longest lag between branches that is looked for, s.
const ALIGNED_S: f64 = 0.02;

/// Hands blocks over to the audio thread and takes replaced ones back, so that they are dropped
/// elsewhere.
pub struct RigHandover {
    playing: Mutex<Playing>,
    branches: Arc<[BranchSettings; 2]>,
    arrival: ArrayQueue<Box<Arrangement>>,
    retired: ArrayQueue<Box<Arrangement>>,
}

/// Blocks that play, or are about to.
#[derive(Default)]
struct Playing {
    /// The host; `None` before playback starts.
    setup: Option<Setup>,
    /// In their order, those before the model and those after it.
    blocks: Vec<PlayingBlock>,
    /// Numbers of blocks so far.
    numbers: u64,
    driver: Driver,
    non_realtime: bool,
}

struct PlayingBlock {
    number: u64,
    source: Source,
    state: BlockState,
    lane: Lane,
    settings: Arc<BlockSettings>,
    /// Its delay at the host's rate, samples; that of a model is its own.
    latency: usize,
}

/// Origin of a block's effect.
enum Source {
    Effect(&'static EffectKind),
    Model(ModelBlock),
    Response(Arc<ImpulseFile>),
}

impl Default for RigHandover {
    fn default() -> Self {
        Self {
            playing: Mutex::default(),
            branches: Arc::default(),
            arrival: ArrayQueue::new(WAITING),
            retired: ArrayQueue::new(RETIRED),
        }
    }
}

impl RigHandover {
    /// Sends blocks, at most [`MAX_BLOCKS`]. Those that play already play on, wherever they are now.
    /// A model is built on another thread; until then the sound passes it.
    pub fn send(&self, states: &[BlockState]) {
        while self.retired.pop().is_some() {}
        let mut playing = lock(&self.playing);
        let before = playing.places();
        let new = playing.adopt(states);
        if playing.places() != before && playing.setup.is_some() {
            // A full queue means that nobody plays: the next arrangement replaces those that wait, and
            // must not rely on them.
            let is_stuck = self.arrival.is_full();
            while is_stuck && self.arrival.pop().is_some() {}
            let next = playing.arrangement(&|number| is_stuck || new.contains(&number));
            let _ = self.arrival.push(Box::new(next));
        }
        playing.build_models();
    }

    /// Sets how the branches are mixed.
    pub fn set_branches(&self, branches: &[BranchState; 2]) {
        for (branch, settings) in branches.iter().zip(&*self.branches) {
            branch.apply(settings);
        }
    }

    /// Returns the branches with delays and polarity by which they fit each other, as far as what was
    /// heard last tells; `None` if they were too soft or too different.
    #[must_use]
    pub fn aligned(&self, branches: [BranchState; 2]) -> Option<[BranchState; 2]> {
        let rate = f64::from(lock(&self.playing).setup?.sample_rate);
        let lag = lag(&self.branches, (ALIGNED_S * rate) as usize)?;
        let mut aligned = branches.map(BranchState::valid);
        aligned[0].delay += (1e3 * lag.samples as f64 / rate) as f32;
        let least = aligned[0].delay.min(aligned[1].delay);
        for branch in &mut aligned {
            branch.delay -= least;
        }
        // Polarity is applied at the mix, after what is compared.
        aligned[1].inverted = aligned[0].inverted != lag.opposite;
        Some(aligned.map(BranchState::valid))
    }

    /// Returns the blocks for an audio thread that starts with this setup. Builds the models that have
    /// been loaded.
    #[must_use]
    pub fn start(&self, setup: Setup) -> Blocks {
        let mut playing = lock(&self.playing);
        playing.setup = Some(setup);
        while self.arrival.pop().is_some() {}
        let arrangement = playing.arrangement(&|_| true);
        Blocks::new(arrangement, self.branches.clone(), setup)
    }

    /// Returns the delay of all blocks, host samples, as
    /// [`Blocks::latency_samples`] has it; 0 before playback starts.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        let playing = lock(&self.playing);
        let of_lane = |lane| {
            let blocks = playing.blocks.iter().filter(|block| block.lane == lane);
            blocks.map(PlayingBlock::latency_samples).sum::<usize>()
        };
        of_lane(Lane::Whole) + of_lane(Lane::First).max(of_lane(Lane::Second))
    }

    /// Returns the peak of a block's output, linear; 0 if it does not play.
    #[must_use]
    pub fn peak(&self, state: &BlockState) -> f32 {
        let playing = lock(&self.playing);
        let block = playing.blocks.iter().find(|block| block.state == *state);
        block.map_or(0.0, |block| block.settings.peak())
    }

    /// Returns what the effect of a block is doing, if it tells.
    #[must_use]
    pub fn activity(&self, state: &BlockState) -> Option<Activity> {
        let playing = lock(&self.playing);
        let block = playing.blocks.iter().find(|block| block.state == *state);
        block?.settings.activity()
    }

    /// Returns why the model of a block is not heard as it should be, if so; one line.
    #[must_use]
    pub fn problem(&self, state: &BlockState) -> Option<String> {
        let playing = lock(&self.playing);
        let block = playing.blocks.iter().find(|block| block.state == *state)?;
        match &block.source {
            Source::Model(model) => model.problem(),
            Source::Effect(_) | Source::Response(_) => None,
        }
    }

    /// Returns whether a model is still being built.
    pub(crate) fn is_loading(&self) -> bool {
        lock(&self.playing).models().any(ModelBlock::is_loading)
    }

    /// Sets the driver of models.
    pub fn set_driver(&self, driver: Driver) {
        let mut playing = lock(&self.playing);
        playing.driver = driver;
        playing.models().for_each(|model| model.set_driver(driver));
    }

    /// Declares that the host does not play in real time, as in a bounce: models are waited for.
    pub(crate) fn set_non_realtime(&self, non_realtime: bool) {
        let mut playing = lock(&self.playing);
        playing.non_realtime = non_realtime;
        let models = playing.models();
        models.for_each(|model| model.set_non_realtime(non_realtime));
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
    /// Returns numbers, sides and ways in their order.
    fn places(&self) -> Vec<(u64, bool, Lane)> {
        let places = self.blocks.iter();
        places
            .map(|block| (block.number, block.state.before, block.lane))
            .collect()
    }

    fn models(&self) -> impl Iterator<Item = &ModelBlock> {
        self.blocks.iter().filter_map(|block| match &block.source {
            Source::Model(model) => Some(model),
            Source::Effect(_) | Source::Response(_) => None,
        })
    }

    /// Takes states over; returns the numbers of blocks that did not play before.
    fn adopt(&mut self, states: &[BlockState]) -> Vec<u64> {
        let mut known = std::mem::take(&mut self.blocks);
        let mut new = Vec::new();
        let mut section = BranchSection::default();
        let sides = [true, false]
            .into_iter()
            .flat_map(|before| states.iter().filter(move |state| state.before == before));
        let known_kinds = sides.filter(|state| state.kind().is_some());
        for state in known_kinds.take(MAX_BLOCKS) {
            // A block that is the same in all but its place has moved.
            let same = known.iter().position(|known| {
                let there = BlockState {
                    before: state.before,
                    branch: state.branch,
                    ..known.state.clone()
                };
                there == *state
            });
            let alike = || known.iter().position(|known| known.state.is_same_as(state));
            let mut block = match same.or_else(alike) {
                Some(place) => known.remove(place),
                None => {
                    let Some(source) = Source::new(state) else {
                        continue;
                    };
                    if let Source::Model(model) = &source {
                        model.set_driver(self.driver);
                        model.set_non_realtime(self.non_realtime);
                    }
                    self.numbers += 1;
                    new.push(self.numbers);
                    PlayingBlock {
                        number: self.numbers,
                        source,
                        state: state.clone(),
                        lane: Lane::Whole,
                        settings: Arc::new(BlockSettings::new(
                            state.mix(),
                            state.kind().map_or(&[][..], |kind| kind.parameters),
                            &state.all_values(),
                        )),
                        latency: 0,
                    }
                }
            };
            block.apply(state);
            block.lane = section.lane(state);
            self.blocks.push(block);
        }
        new
    }

    /// Returns the arrangement of all blocks, with those that are new.
    fn arrangement(&mut self, is_new: &dyn Fn(u64) -> bool) -> Arrangement {
        let mut arrangement = Arrangement::default();
        let Some(setup) = self.setup else {
            return arrangement;
        };
        for block in &mut self.blocks {
            let played = is_new(block.number)
                .then(|| block.source.effect(setup))
                .flatten()
                .map(|effect| {
                    block.latency = effect.latency_samples();
                    let settings = block.settings.clone();
                    Box::new(Block::new(effect, settings, setup.sample_rate))
                });
            arrangement.sides[block.state.side() as usize].push(Slot {
                number: block.number,
                lane: block.lane,
                block: played,
            });
        }
        arrangement
    }

    /// Begins to build the models that are new, or are to be built otherwise.
    fn build_models(&mut self) {
        for block in &mut self.blocks {
            if let Source::Model(model) = &mut block.source {
                model.set(&block.state.all_values());
            }
        }
    }
}

/// The only split of a rig.
#[derive(Default)]
struct BranchSection {
    /// Side of the split, once there was one.
    before: Option<bool>,
    is_over: bool,
}

impl BranchSection {
    /// Returns the way of the next block: in a branch only between the split and its mix.
    fn lane(&mut self, state: &BlockState) -> Lane {
        let lane = state.lane();
        let is_there = self.before.is_some();
        self.is_over |= is_there && (lane == Lane::Whole || self.before != Some(state.before));
        if self.is_over || lane == Lane::Whole {
            return Lane::Whole;
        }
        self.before = Some(state.before);
        lane
    }
}

impl PlayingBlock {
    fn latency_samples(&self) -> usize {
        match &self.source {
            Source::Model(model) => model.latency_samples(),
            Source::Effect(_) | Source::Response(_) => self.latency,
        }
    }

    fn apply(&mut self, state: &BlockState) {
        for (place, value) in state.all_values().into_iter().enumerate() {
            self.settings.set(BlockSetting::Value(place), value);
        }
        for (setting, target) in state.turnable() {
            self.settings.set(setting, target.value);
            let number = state.macro_of(&target.parameter.id);
            self.settings.turn_by(setting, number);
        }
        self.state = state.clone();
    }
}

impl Source {
    /// Returns what a block is made of; `None` if it is unknown or missing.
    fn new(state: &BlockState) -> Option<Self> {
        match &state.content {
            Content::Model(model, parameters) => Some(Self::Model(ModelBlock::new(
                model.clone(),
                parameters.clone(),
            ))),
            Content::Response(file) => Some(Self::Response(file.clone())),
            Content::Unread => effect(&state.block).map(Self::Effect),
            Content::Missing(_) => None,
        }
    }

    /// Makes it play with this setup; `None` if that cannot be.
    fn effect(&self, setup: Setup) -> Option<Box<dyn Effect>> {
        match self {
            Self::Effect(kind) => Some((kind.new)(setup.sample_rate)),
            Self::Model(model) => model.effect(setup),
            Self::Response(file) => {
                let cabinet = Cabinet::new(&file.response, setup.sample_rate, Kernels::detect());
                let cabinet = cabinet.unwrap_or_default();
                Some(Box::new(ResponseEffect::new(cabinet, setup.max_block)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::rig::blocks::Side;

    use super::super::branch_state::Branch;
    use super::*;

    const SETUP: Setup = Setup {
        sample_rate: 48_000,
        max_block: 64,
    };

    fn state(id: &str) -> BlockState {
        BlockState::of_effect(effect(id).expect("an effect"))
    }

    /// Plays until the last arrangement is there; returns the level of a constant sound.
    fn settle(handover: &RigHandover, blocks: &mut Blocks) -> f32 {
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
    fn effects_come_change_move_and_go_while_they_play() {
        let handover = RigHandover::default();
        let mut quiet = state("compressor");
        quiet.level = -12.0;
        for parameter in ["threshold", "gain"] {
            quiet.values.insert(parameter.into(), 0.0);
        }
        handover.send(std::slice::from_ref(&quiet));
        let mut blocks = handover.start(SETUP);
        let near = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-4, "{found}");
        near(settle(&handover, &mut blocks), 0.0251);
        let unknown = BlockState {
            block: "from a later version".into(),
            ..BlockState::default()
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
        let handover = RigHandover::default();
        let mut blocks = handover.start(SETUP);
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
        let handover = RigHandover::default();
        handover.send(&vec![state("limiter"); 40]);
        let blocks = handover.start(SETUP);
        assert_eq!(blocks.latency_samples(), 72 * MAX_BLOCKS);
    }

    #[test]
    fn there_is_one_split() {
        let at = |before, branch| BlockState {
            before,
            branch,
            ..state("limiter")
        };
        let (a, b) = (Some(Branch::A), Some(Branch::B));
        let states = [
            at(true, None),
            at(true, a),
            at(true, b),
            at(true, None),
            at(true, b),
            at(false, a),
        ];
        let mut playing = Playing::default();
        playing.adopt(&states);
        let lanes: Vec<Lane> = playing.blocks.iter().map(|block| block.lane).collect();
        let (whole, first, second) = (Lane::Whole, Lane::First, Lane::Second);
        assert_eq!(lanes, [whole, first, second, whole, whole, whole]);

        let handover = RigHandover::default();
        handover.send(&states[1..3]);
        let mut blocks = handover.start(SETUP);
        assert_eq!(
            (blocks.latency_samples(), handover.latency_samples()),
            (72, 72)
        );
        let near = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-4, "{found}");
        near(settle(&handover, &mut blocks), 0.1);
        let inverted = BranchState {
            level: -12.0412,
            inverted: true,
            ..BranchState::default()
        };
        handover.set_branches(&[BranchState::default(), inverted]);
        near(settle(&handover, &mut blocks), 0.025);
        handover.send(&[]);
        near(settle(&handover, &mut blocks), 0.1);
        assert!(blocks.is_empty(Side::Before));
    }
}
