//! What both plugins do for a host, around one [`Player`].

use std::sync::Arc;
use std::time::Duration;

use nice_plug::prelude::*;
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driven, Driver, Setup};
use ondes_processor::board::Board;
use ondes_processor::player::Player;
use ondes_processor::preset::Product;
use ondes_processor::shared::Shared;

use crate::editor::wake::Wake;
use crate::notes::Notes;
use crate::parameters::Parameters;

/// How long a host may wait for a model before it plays without.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time that the worker has beyond a block, seconds, where it is not measured.
const WORKER_S: f64 = 0.010;

/// One instance of either plugin, as its host holds it.
pub struct Rig {
    /// What a window may know.
    pub shared: Arc<Shared>,
    /// What the host automates.
    pub parameters: Arc<Parameters>,
    /// Wakes the window where it sleeps because nothing sounds.
    pub wake: Wake,
    player: Option<Player>,
    notes: Notes,
    driver: Driver,
    source: Source,
    oversampling: usize,
    /// The host was asked to begin anew.
    asked: bool,
    /// How the host played when the model turned out to need the worker. A new measurement would give another latency, and
    /// the host would have to begin anew for it again and again.
    needs_worker: Option<(Setup, Driver, Source, usize, f32)>,
}

impl Rig {
    /// A new instance.
    #[must_use]
    pub fn new(product: Product) -> Self {
        let wake = Wake::default();
        let waking = wake.clone();
        let shared = Shared::new(product, move || waking.request());
        let parameters = Arc::new(Parameters::new(&shared));
        shared.listen_to(&parameters);
        Self {
            shared,
            parameters,
            wake,
            player: None,
            notes: Notes::default(),
            driver: Driver::Auto,
            source: product.source(),
            oversampling: 1,
            asked: false,
            needs_worker: None,
        }
    }

    /// Makes everything ready to play; gives the latency in host samples, or none where the host cannot be played for.
    pub fn activate(&mut self, config: &BufferConfig, source: Source) -> Option<u32> {
        self.player = None;
        let sample_rate = config.sample_rate.round() as u32;
        let setup = Setup { sample_rate, max_block: config.max_buffer_size as usize };
        (self.driver, self.source, self.asked) = (self.parameters.driver(), source, false);
        self.shared.retry();
        self.shared.set_source(source);
        self.oversampling = self.parameters.oversampling();
        self.shared.set_oversampling(self.oversampling);
        self.shared.settle();
        let remote = &self.shared.remote;
        let place = (setup, self.driver, source, self.oversampling, self.parameters.size());
        let driver = if matches!(self.driver, Driver::Worker { .. }) || self.needs_worker == Some(place) {
            Driver::Worker { latency: Some(setup.max_block + (WORKER_S * f64::from(sample_rate)) as usize) }
        } else {
            self.driver
        };
        remote.set_driver(driver);
        remote.set_patient(config.process_mode == ProcessMode::Offline);
        // A bounce begins with the model that it was saved with.
        self.shared.wait(PATIENCE);
        let session = remote.activate(setup).ok()?;
        if remote.health().is_some_and(|health| health.driven != Driven::Inline) {
            self.needs_worker = Some(place);
        }
        self.notes = Notes::default();
        let player = Player::new(session, self.shared.clone(), setup, &self.parameters.knobs());
        self.shared.rest.tell(player.tail_samples() as u32, false);
        let latency = player.latency_samples() as u32;
        self.player = Some(player);
        Some(latency)
    }

    /// Silence at once.
    pub fn reset(&mut self) {
        let knobs = self.parameters.knobs();
        if let Some(player) = &mut self.player {
            player.reset(&knobs);
        }
    }

    /// Plays a block. `input` tells the player what to listen to, before `output` is filled.
    pub fn process<P>(
        &mut self,
        context: &mut impl ProcessContext<P>,
        source: Source,
        input: impl FnOnce(&mut Player, &mut Buffer),
        output: &mut Buffer,
    ) -> ProcessStatus
    where
        P: Plugin<SysExMessage = ()>,
    {
        let Some(player) = &mut self.player else { return ProcessStatus::Error("not active") };
        player.begin(&self.parameters.knobs());
        if let Some(song) = song(context.transport()) {
            player.follow(song);
        }
        let last = output.samples().saturating_sub(1);
        while let Some(event) = context.next_event() {
            // What is played by a sound does not listen to notes.
            if self.source == Source::Notes {
                let offset = (event.timing() as usize).min(last);
                self.notes.read(&event, |kind| player.play(offset, kind));
            }
        }
        input(player, output);
        player.finish(output.as_slice());
        let changed = player.is_stale()
            || self.driver != self.parameters.driver()
            || self.source != source
            || self.oversampling != self.parameters.oversampling();
        if changed && !std::mem::replace(&mut self.asked, true) {
            context.request_restart();
        }
        self.shared.want(self.parameters.size(), self.parameters.quality());
        let tail = player.tail_samples() as u32;
        self.shared.rest.tell(tail, player.is_resting() && !changed);
        ProcessStatus::Tail(tail)
    }
}

/// Where the host is in its song, as far as it tells.
fn song(transport: &nice_plug::prelude::Transport) -> Option<ondes_engine::pipeline::Transport> {
    let (tempo, position) = (transport.tempo? as f32, transport.pos_beats()?);
    Some(ondes_engine::pipeline::Transport { tempo, position, playing: transport.playing })
}
