//! **Ondes FX**: the effect. Its input is processed by effect and codec models, or plays an
//! instrument model by pitch and loudness; so does its side-chain.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nice_plug::prelude::*;
use ondes_engine::pipeline::ControlSource;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::player::Player;
use ondes_player::product::Product;

use crate::clap::framework::RequestInstance;
use crate::editor::Editor;
use crate::note_events::SysEx;
use crate::plugin_core::PluginCore;

/// The effect.
pub struct OndesFx {
    core: PluginCore,
    /// Channels of the main input.
    inputs: usize,
}

impl Default for OndesFx {
    fn default() -> Self {
        let core = PluginCore::new(Product::Effect);
        core.instance.has_side_chain.store(true, Relaxed);
        Self { core, inputs: 2 }
    }
}

impl Plugin for OndesFx {
    const NAME: &'static str = Product::Effect.name();
    const VENDOR: &'static str = crate::VENDOR;
    const URL: &'static str = "";
    const EMAIL: &'static str = "";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const AUDIO_IO_LAYOUTS: &'static [AudioIOLayout] = &[
        AudioIOLayout {
            main_input_channels: NonZeroU32::new(2),
            main_output_channels: NonZeroU32::new(2),
            aux_input_ports: &[new_nonzero_u32(2)],
            ..AudioIOLayout::const_default()
        },
        AudioIOLayout {
            main_input_channels: NonZeroU32::new(1),
            main_output_channels: NonZeroU32::new(1),
            aux_input_ports: &[new_nonzero_u32(1)],
            ..AudioIOLayout::const_default()
        },
        AudioIOLayout {
            main_input_channels: NonZeroU32::new(1),
            main_output_channels: NonZeroU32::new(2),
            aux_input_ports: &[new_nonzero_u32(1)],
            ..AudioIOLayout::const_default()
        },
    ];
    // For MIDI learn.
    const MIDI_INPUT: MidiConfig = MidiConfig::MidiCCs;

    type Editor = Editor;
    type SysExMessage = SysEx;
    type BackgroundTask = RequestInstance;

    fn task_executor(&mut self) -> TaskExecutor<Self> {
        RequestInstance::executor(&self.core)
    }

    fn params(&self) -> Arc<dyn Params> {
        self.core.parameters.clone()
    }

    fn editor(&mut self, _: AsyncExecutor<Self>) -> Option<Editor> {
        Some(Editor::new(&self.core))
    }

    fn activate(
        &mut self,
        layout: &AudioIOLayout,
        config: &BufferConfig,
        context: &mut impl ActivateContext<Self>,
    ) -> bool {
        self.inputs = layout
            .main_input_channels
            .map_or(0, |channels| channels.get() as usize);
        let latency = self
            .core
            .activate(config, ControlSource::AudioInput, self.inputs > 1);
        latency
            .map(|samples| context.set_latency_samples(samples))
            .is_some()
    }

    fn reset(&mut self) {
        self.core.reset();
    }

    fn process(
        &mut self,
        buffer: &mut Buffer,
        aux: &mut AuxiliaryBuffers,
        context: &mut impl ProcessContext<Self>,
    ) -> ProcessStatus {
        // Effect and codec models always process the track.
        let follows = self.core.parameters.follows_side_chain()
            && !self.core.instance.audio.uses_audio_input();
        let side_chain = aux.inputs.first().filter(|_| follows);
        let inputs = self.inputs;
        // The framework processes in place: the buffer holds the input in its first channels.
        let feed = |player: &mut Player, both: &mut Buffer| {
            let both = both.as_slice_immutable();
            let track = &both[..both.len().min(inputs)];
            match side_chain {
                Some(side_chain) => {
                    player.set_input(side_chain.as_slice_immutable());
                    player.set_track(track);
                }
                None => player.set_input(track),
            }
        };
        self.core
            .process(context, ControlSource::AudioInput, feed, buffer)
    }
}

impl ClapPlugin for OndesFx {
    const CLAP_ID: &'static str = Product::Effect.id();
    const CLAP_DESCRIPTION: Option<&'static str> = Some("Neural networks as effects");
    const CLAP_MANUAL_URL: Option<&'static str> = None;
    const CLAP_SUPPORT_URL: Option<&'static str> = None;
    const CLAP_FEATURES: &'static [ClapFeature] = &[ClapFeature::AudioEffect, ClapFeature::Stereo];
}
