//! **Ondes**: notes in, sound out. A second input may play it instead, by its pitch and loudness; effects and codecs play what
//! comes in there.

use std::sync::Arc;

use nice_plug::prelude::*;
use ondes_engine::pipeline::Source;
use ondes_processor::board::Board;
use ondes_processor::player::Player;
use ondes_processor::preset::Product;

use crate::clap::shell::Introduce;
use crate::editor::Editor;
use crate::preset::state;
use crate::rig::Rig;

/// The instrument.
pub struct Ondes {
    rig: Rig,
}

impl Default for Ondes {
    fn default() -> Self {
        Self { rig: Rig::new(Product::Instrument) }
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
    const SAMPLE_ACCURATE_AUTOMATION: bool = true;

    type Editor = Editor;
    type SysExMessage = ();
    type BackgroundTask = Introduce;

    fn task_executor(&mut self) -> TaskExecutor<Self> {
        Introduce::answer(&self.rig.shared)
    }

    fn params(&self) -> Arc<dyn Params> {
        self.rig.parameters.clone()
    }

    fn filter_state(state: &mut PluginState) {
        state::tidy(state);
    }

    fn editor(&mut self, _: AsyncExecutor<Self>) -> Option<Editor> {
        Some(Editor::new(&self.rig))
    }

    fn activate(
        &mut self,
        _layout: &AudioIOLayout,
        config: &BufferConfig,
        context: &mut impl ActivateContext<Self>,
    ) -> bool {
        let latency = self.rig.activate(config, self.rig.parameters.source());
        latency.map(|samples| context.set_latency_samples(samples)).is_some()
    }

    fn reset(&mut self) {
        self.rig.reset();
    }

    fn process(
        &mut self,
        buffer: &mut Buffer,
        aux: &mut AuxiliaryBuffers,
        context: &mut impl ProcessContext<Self>,
    ) -> ProcessStatus {
        let source = self.rig.parameters.source();
        let hears = source == Source::Sound || self.rig.shared.hears_input();
        let side_chain = aux.inputs.first().filter(|_| hears);
        let listen = |player: &mut Player, _: &mut Buffer| {
            if let Some(side_chain) = side_chain {
                player.listen(side_chain.as_slice_immutable());
            }
        };
        self.rig.process(context, source, listen, buffer)
    }
}

impl ClapPlugin for Ondes {
    const CLAP_ID: &'static str = Product::Instrument.id();
    const CLAP_DESCRIPTION: Option<&'static str> = Some("Neural networks as instruments");
    const CLAP_MANUAL_URL: Option<&'static str> = None;
    const CLAP_SUPPORT_URL: Option<&'static str> = None;
    const CLAP_FEATURES: &'static [ClapFeature] =
        &[ClapFeature::Instrument, ClapFeature::Synthesizer, ClapFeature::Stereo];
}
