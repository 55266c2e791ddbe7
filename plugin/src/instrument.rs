//! **Ondes**: the instrument. Played by notes, or by pitch and loudness of its side-chain; effect
//! and codec models process the side-chain.

use std::sync::Arc;

use nice_plug::prelude::*;
use ondes_engine::pipeline::ControlSource;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::player::Player;
use ondes_player::product::Product;

use crate::clap::framework::RequestInstance;
use crate::editor::Editor;
use crate::note_events::SysEx;
use crate::plugin_core::PluginCore;

/// The instrument.
pub struct Ondes {
    core: PluginCore,
}

impl Default for Ondes {
    fn default() -> Self {
        Self {
            core: PluginCore::new(Product::Instrument),
        }
    }
}

impl Plugin for Ondes {
    const NAME: &'static str = Product::Instrument.name();
    const VENDOR: &'static str = crate::VENDOR;
    const URL: &'static str = "";
    const EMAIL: &'static str = "";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const AUDIO_IO_LAYOUTS: &'static [AudioIOLayout] = &[
        AudioIOLayout {
            main_input_channels: None,
            main_output_channels: NonZeroU32::new(2),
            aux_input_ports: &[new_nonzero_u32(2)],
            ..AudioIOLayout::const_default()
        },
        AudioIOLayout {
            main_input_channels: None,
            main_output_channels: NonZeroU32::new(2),
            aux_input_ports: &[new_nonzero_u32(1)],
            ..AudioIOLayout::const_default()
        },
    ];
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
        let is_stereo = layout
            .aux_input_ports
            .first()
            .is_some_and(|channels| channels.get() > 1);
        let latency = self
            .core
            .activate(config, self.core.parameters.control_source(), is_stereo);
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
        let source = self.core.parameters.control_source();
        let uses_side_chain =
            source == ControlSource::AudioInput || self.core.instance.audio.uses_audio_input();
        let side_chain = aux.inputs.first().filter(|_| uses_side_chain);
        let feed = |player: &mut Player, _: &mut Buffer| {
            if let Some(side_chain) = side_chain {
                player.set_input(side_chain.as_slice_immutable());
            }
        };
        self.core.process(context, source, feed, buffer)
    }
}

impl ClapPlugin for Ondes {
    const CLAP_ID: &'static str = Product::Instrument.id();
    const CLAP_DESCRIPTION: Option<&'static str> = Some("Neural networks as instruments");
    const CLAP_MANUAL_URL: Option<&'static str> = None;
    const CLAP_SUPPORT_URL: Option<&'static str> = None;
    const CLAP_FEATURES: &'static [ClapFeature] = &[
        ClapFeature::Instrument,
        ClapFeature::Synthesizer,
        ClapFeature::Stereo,
    ];
}
