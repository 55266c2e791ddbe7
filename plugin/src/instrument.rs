//! **Ondes**: notes in, sound out. A second input may play it instead, by its pitch and loudness.

use std::sync::Arc;

use nice_plug::prelude::*;
use ondes_engine::pipeline::Source;

use crate::clap::shell::Introduce;
use crate::editor::Editor;
use crate::parameters::Parameters;
use crate::rig::Rig;

/// What plays the instrument; changing it makes the host restart the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
enum Drive {
    #[id = "notes"]
    #[name = "Notes"]
    Notes,
    #[id = "input"]
    #[name = "Side-chain"]
    Input,
}

impl From<Drive> for Source {
    fn from(drive: Drive) -> Self {
        match drive {
            Drive::Notes => Self::Notes,
            Drive::Input => Self::Sound,
        }
    }
}

#[derive(Params)]
struct InstrumentParameters {
    #[nested]
    common: Arc<Parameters>,
    #[id = "source"]
    source: EnumParam<Drive>,
}

/// The instrument.
pub struct Ondes {
    rig: Rig,
    parameters: Arc<InstrumentParameters>,
}

impl Default for Ondes {
    fn default() -> Self {
        let rig = Rig::new(Source::Notes);
        let source = EnumParam::new("Played by", Drive::Notes).non_automatable();
        let parameters = Arc::new(InstrumentParameters { common: rig.parameters.clone(), source });
        Self { rig, parameters }
    }
}

impl Plugin for Ondes {
    const NAME: &'static str = "Ondes";
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
        self.parameters.clone()
    }

    fn editor(&mut self, _: AsyncExecutor<Self>) -> Option<Editor> {
        Some(Editor::new(&self.rig.shared, &self.rig.parameters))
    }

    fn activate(
        &mut self,
        _layout: &AudioIOLayout,
        config: &BufferConfig,
        context: &mut impl ActivateContext<Self>,
    ) -> bool {
        let latency = self.rig.activate(config, self.parameters.source.value().into());
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
        let source = self.parameters.source.value().into();
        let side_chain = aux.inputs.first().filter(|_| source == Source::Sound);
        let listen = |player: &mut crate::player::Player, _: &mut Buffer| {
            if let Some(side_chain) = side_chain {
                player.listen(side_chain.as_slice_immutable());
            }
        };
        self.rig.process(context, source, listen, buffer)
    }
}

impl ClapPlugin for Ondes {
    const CLAP_ID: &'static str = "org.ondes.instrument";
    const CLAP_DESCRIPTION: Option<&'static str> = Some("Neural networks as instruments");
    const CLAP_MANUAL_URL: Option<&'static str> = None;
    const CLAP_SUPPORT_URL: Option<&'static str> = None;
    const CLAP_FEATURES: &'static [ClapFeature] =
        &[ClapFeature::Instrument, ClapFeature::Synthesizer, ClapFeature::Stereo];
}
