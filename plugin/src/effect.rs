//! **Ondes FX**: the input plays the model, by its pitch and loudness.

use std::sync::Arc;

use nice_plug::prelude::*;
use ondes_engine::pipeline::Source;
use ondes_processor::preset::Product;

use crate::clap::shell::Introduce;
use crate::editor::Editor;
use crate::preset::state;
use crate::rig::Rig;

/// The effect.
pub struct OndesFx {
    rig: Rig,
}

impl Default for OndesFx {
    fn default() -> Self {
        Self { rig: Rig::new(Product::Effect) }
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
            ..AudioIOLayout::const_default()
        },
        AudioIOLayout {
            main_input_channels: NonZeroU32::new(1),
            main_output_channels: NonZeroU32::new(1),
            ..AudioIOLayout::const_default()
        },
    ];
    // For controllers that turn parameters.
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
        let latency = self.rig.activate(config, Source::Sound);
        latency.map(|samples| context.set_latency_samples(samples)).is_some()
    }

    fn reset(&mut self) {
        self.rig.reset();
    }

    fn process(
        &mut self,
        buffer: &mut Buffer,
        _aux: &mut AuxiliaryBuffers,
        context: &mut impl ProcessContext<Self>,
    ) -> ProcessStatus {
        // The framework has put the input where the output goes.
        self.rig.process(context, Source::Sound, |player, both| player.listen(both.as_slice_immutable()), buffer)
    }
}

impl ClapPlugin for OndesFx {
    const CLAP_ID: &'static str = Product::Effect.id();
    const CLAP_DESCRIPTION: Option<&'static str> = Some("Neural networks as effects");
    const CLAP_MANUAL_URL: Option<&'static str> = None;
    const CLAP_SUPPORT_URL: Option<&'static str> = None;
    const CLAP_FEATURES: &'static [ClapFeature] = &[ClapFeature::AudioEffect, ClapFeature::Stereo];
}
