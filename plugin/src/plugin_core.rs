//! The parts common to both plugins, around one [`Player`].

use std::sync::Arc;
use std::time::Duration;

use nice_plug::prelude::*;
use ondes_engine::panics::contain;
use ondes_engine::pipeline::{ControlSource, InputChannels};
use ondes_engine::realtime::{Driven, Driver, Setup, SetupError};
use ondes_player::instance::InstanceHandle;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::player::Player;
use ondes_player::product::Product;

use crate::editor::redraw::RedrawFlag;
use crate::note_events::{NoteEventDecoder, SysEx};
use crate::parameters::HostParameters;

/// Longest wait for a model during activation.
const MODEL_TIMEOUT: Duration = Duration::from_secs(20);

/// Worker latency beyond one block, in seconds, if it is not measured.
const WORKER_LATENCY_S: f64 = 0.010;

/// One instance of either plugin.
pub struct PluginCore {
    /// State shared with the window and the saved state.
    pub instance: Arc<InstanceHandle>,
    /// The host's parameters.
    pub parameters: Arc<HostParameters>,
    /// Repaints the window, which does not repaint by itself in silence.
    pub redraw: RedrawFlag,
    player: Option<Player>,
    /// The engine refused the host's sample rate: the output is the input.
    passes_through: bool,
    notes: NoteEventDecoder,
    driver: Driver,
    source: ControlSource,
    oversampling: Option<usize>,
    /// A restart was requested since the activation.
    restart_requested: bool,
    /// Configuration in which the model needed the worker. It keeps the worker's default latency,
    /// because every new measurement would give another latency and request another restart.
    worker_configuration: Option<Configuration>,
}

/// Everything that decides whether a model needs the worker.
#[derive(Clone, Copy, PartialEq)]
struct Configuration {
    setup: Setup,
    driver: Driver,
    source: ControlSource,
    oversampling: Option<usize>,
    size: f32,
    channels: InputChannels,
    has_stereo_input: bool,
}

impl PluginCore {
    /// Creates an inactive instance.
    #[must_use]
    pub fn new(product: Product) -> Self {
        let redraw = RedrawFlag::default();
        let wake = redraw.clone();
        let instance = InstanceHandle::new(product, move || wake.request());
        let parameters = Arc::new(HostParameters::new(&instance, redraw.clone()));
        instance.set_parameter_source(&parameters);
        Self {
            instance,
            parameters,
            redraw,
            player: None,
            passes_through: false,
            notes: NoteEventDecoder::default(),
            driver: Driver::Auto,
            source: product.source(),
            oversampling: None,
            restart_requested: false,
            worker_configuration: None,
        }
    }

    /// Prepares playback; `has_stereo_input` says that the input has two channels. Returns the
    /// latency in host samples; `None` if the engine refuses the host's block size, or after a
    /// panic, which is a bug. At a sample rate that the engine refuses, which the status then
    /// tells, the input passes unchanged.
    pub fn activate(
        &mut self,
        config: &BufferConfig,
        source: ControlSource,
        has_stereo_input: bool,
    ) -> Option<u32> {
        (self.player, self.passes_through) = (None, false);
        contain(|| self.start(config, source, has_stereo_input)).unwrap_or_else(|reason| {
            self.instance.audio.report_failure(reason);
            None
        })
    }

    fn start(
        &mut self,
        config: &BufferConfig,
        source: ControlSource,
        has_stereo_input: bool,
    ) -> Option<u32> {
        let sample_rate = config.sample_rate.round() as u32;
        let setup = Setup {
            sample_rate,
            max_block: config.max_buffer_size as usize,
        };
        (self.driver, self.source, self.restart_requested) =
            (self.parameters.driver(), source, false);
        self.instance.retry_missing_model();
        self.instance.retry_missing_blocks();
        self.instance.set_source(source);
        self.instance.set_stereo_input(has_stereo_input);
        self.oversampling = self.parameters.oversampling();
        self.instance.set_oversampling(self.oversampling);
        self.instance.apply_requested_variant();
        let session_controller = &self.instance.session;
        let size = self.parameters.size();
        let channels = self.parameters.input_channels();
        let (driver, oversampling) = (self.driver, self.oversampling);
        let configuration = Configuration {
            setup,
            driver,
            source,
            oversampling,
            size,
            channels,
            has_stereo_input,
        };
        let driver = if matches!(self.driver, Driver::Worker { .. })
            || self.worker_configuration == Some(configuration)
        {
            Driver::Worker {
                latency: Some(
                    setup.max_block + (WORKER_LATENCY_S * f64::from(sample_rate)) as usize,
                ),
            }
        } else {
            self.driver
        };
        session_controller.set_driver(driver);
        self.instance.rig_handover.set_driver(self.driver);
        self.instance
            .set_non_realtime(config.process_mode == ProcessMode::Offline);
        // An offline bounce must start with the project's model.
        self.instance.wait_until_loaded(MODEL_TIMEOUT);
        let session = match session_controller.activate(setup) {
            Ok(session) => session,
            Err(SetupError::Rate(_)) => {
                self.passes_through = true;
                return Some(0);
            }
            Err(SetupError::Block(_)) => return None,
        };
        if session_controller
            .health()
            .is_some_and(|health| health.driven != Driven::Inline)
        {
            self.worker_configuration = Some(configuration);
        }
        self.notes = NoteEventDecoder::default();
        let player = Player::new(
            session,
            self.instance.clone(),
            setup,
            &self.parameters.player_parameters(),
        );
        self.instance.sleep_state.set(tail_samples(&player), false);
        let latency = player.latency_samples() as u32;
        self.player = Some(player);
        Some(latency)
    }

    /// Silences the player immediately.
    pub fn reset(&mut self) {
        let parameters = self.parameters.player_parameters();
        if let Some(player) = &mut self.player {
            player.contain(|player| player.reset(&parameters));
        }
    }

    /// Plays a block. `feed_input` passes the input to the player before `output` is filled. A
    /// panic, which is a bug, silences the plugin; its window says so.
    pub fn process<P>(
        &mut self,
        context: &mut impl ProcessContext<P>,
        source: ControlSource,
        feed_input: impl FnOnce(&mut Player, &mut Buffer),
        output: &mut Buffer,
    ) -> ProcessStatus
    where
        P: Plugin<SysExMessage = SysEx>,
    {
        let Some(player) = &mut self.player else {
            return if self.passes_through {
                ProcessStatus::Normal
            } else {
                ProcessStatus::Error("not active")
            };
        };
        player.contain(|player| {
            let parameters = self.parameters.player_parameters();
            player.begin_block(&parameters);
            self.notes
                .set_settings(&parameters.midi, |kind| player.handle_event(0, kind));
            if let Some(transport) = engine_transport(context.transport()) {
                player.set_transport(transport);
            }
            let last = output.samples().saturating_sub(1);
            while let Some(event) = context.next_event() {
                // With audio as control source, notes are ignored.
                if self.source == ControlSource::Notes {
                    let offset = (event.timing() as usize).min(last);
                    self.notes
                        .decode(&event, |kind| player.handle_event(offset, kind));
                }
            }
            feed_input(player, output);
            player.process(output.as_slice());
        });
        if player.has_failed() {
            output
                .as_slice()
                .iter_mut()
                .for_each(|channel| channel.fill(0.0));
            return ProcessStatus::Normal;
        }
        let changed = player.latency_changed()
            || self.driver != self.parameters.driver()
            || self.source != source
            || self.oversampling != self.parameters.oversampling();
        if changed && !std::mem::replace(&mut self.restart_requested, true) {
            context.request_restart();
        }
        let (size, quality) = (self.parameters.size(), self.parameters.quality());
        self.instance
            .audio
            .request_variant(size, quality, self.parameters.input_channels());
        self.instance.audio.request_scene(self.parameters.scene());
        let tail = tail_samples(player);
        self.instance
            .sleep_state
            .set(tail, player.is_silent() && !changed);
        ProcessStatus::Tail(tail)
    }
}

/// Returns the tail in samples; the largest number means an endless one, in CLAP and in VST3.
fn tail_samples(player: &Player) -> u32 {
    player.tail_samples().try_into().unwrap_or(u32::MAX)
}

/// Converts the host's transport; `None` without tempo or position.
fn engine_transport(
    transport: &nice_plug::prelude::Transport,
) -> Option<ondes_engine::pipeline::Transport> {
    let (tempo, position) = (transport.tempo? as f32, transport.pos_beats()?);
    Some(ondes_engine::pipeline::Transport {
        tempo,
        position,
        playing: transport.playing,
    })
}
