//! Models as blocks: their parameters, and how they are built.

use std::sync::Arc;

use ondes_engine::effects::{Effect, EffectParameter};
use ondes_engine::model::{Curve, Kind, Model};
use ondes_engine::pipeline::{ControlId, InputChannels, PipelineOptions, controls};
use ondes_engine::realtime::{Driver, LoadStatus, PlayableModel, SessionController, Setup};
use ondes_engine::rig::model_effect::ModelEffect;

use crate::model_controls::label;

/// Ids of the parameters that all models have, besides their controls.
const GAIN: &str = "model.gain";
const CHANNELS: &str = "model.channels";
const OVERSAMPLING: &str = "model.oversampling";
const SIZE: &str = "model.size";
/// Factors of oversampling, in the order of their names; `None` for that of the model.
const FACTORS: [Option<usize>; 5] = [None, Some(1), Some(2), Some(4), Some(8)];

/// Returns the parameters of a model in a block: the gain before it, its controls, and how it is
/// built.
///
/// # Errors
/// Returns the reason, one line, if it does not process sound.
pub(super) fn parameters(model: &Model) -> Result<Vec<EffectParameter>, String> {
    let header = model.header();
    if matches!(header.kind, Kind::Instrument | Kind::Generator) {
        let kind = match header.kind {
            Kind::Instrument => "an instrument",
            _ => "a generator",
        };
        let name = &header.card.name;
        return Err(format!(
            "“{name}” is {kind}: it makes sound, and a block processes sound"
        ));
    }
    let gain = EffectParameter::new(GAIN, "Input", " dB", [-24.0, 24.0], 0.0);
    let mut all = vec![gain];
    all.extend(controls(header).into_iter().map(|control| EffectParameter {
        name: label(&control.name).into(),
        id: control.name.into(),
        unit: match control.unit.as_str() {
            "" => "".into(),
            unit => format!(" {unit}").into(),
        },
        range: [control.min, control.max],
        default: control.default,
        is_logarithmic: control.curve == Curve::Logarithmic,
        options: &[],
        is_trigger: false,
    }));
    all.push(EffectParameter::choice(
        CHANNELS,
        "Channels",
        &["Stereo", "Mono"],
    ));
    if header.kind == Kind::Effect {
        let names = &["Automatic", "1×", "2×", "4×", "8×"];
        all.push(EffectParameter::choice(OVERSAMPLING, "Oversampling", names));
    }
    if header.sizes().len() > 1 {
        all.push(EffectParameter::new(SIZE, "Size", "", [0.0, 1.0], 1.0));
    }
    Ok(all)
}

/// Returns whether a model is built anew for another value, so that no macro can turn it.
pub(super) fn is_built_with(parameter: &EffectParameter) -> bool {
    [CHANNELS, OVERSAMPLING, SIZE].contains(&&*parameter.id)
}

/// A model that plays in a block.
pub(super) struct ModelBlock {
    model: Arc<Model>,
    parameters: Arc<[EffectParameter]>,
    controller: SessionController,
    /// Choices with which it was built last.
    built: Option<Build>,
}

/// Choices with which a model is built.
#[derive(Clone, Copy, PartialEq)]
struct Build {
    channels: InputChannels,
    oversampling: Option<usize>,
    size: f32,
}

impl ModelBlock {
    /// Creates a block of a model with its [`parameters`].
    pub(super) fn new(model: Arc<Model>, parameters: Arc<[EffectParameter]>) -> Self {
        Self {
            model,
            parameters,
            controller: SessionController::new(),
            built: None,
        }
    }

    /// Builds the model, on another thread, if these values ask for another build than before; the
    /// one that plays is cross-faded.
    pub(super) fn set(&mut self, values: &[f32]) {
        let value = |id: &str| {
            let place = self.parameters.iter().position(|found| found.id == id)?;
            values.get(place).copied()
        };
        let build = Build {
            channels: match value(CHANNELS) {
                Some(1.0) => InputChannels::Mono,
                _ => InputChannels::Stereo,
            },
            oversampling: value(OVERSAMPLING).and_then(|place| FACTORS[place as usize]),
            size: value(SIZE).unwrap_or(1.0),
        };
        let header = self.model.header();
        let is_same = self.built.is_some_and(|built| {
            let variant = header.variant(built.size) == header.variant(build.size);
            let others = Build {
                size: build.size,
                ..built
            };
            variant && others == build
        });
        if is_same {
            return;
        }
        self.built = Some(build);
        let options = PipelineOptions {
            channels: build.channels,
            oversampling: build.oversampling,
            size: build.size,
            allow_fallback: true,
            ..PipelineOptions::default()
        };
        let model = self.model.clone();
        let create = move || Ok(Arc::new(PlayableModel::new(model, options)?) as Arc<_>);
        let values = values.get(1..).unwrap_or_default().iter().copied();
        let controls: Vec<_> = self.controls().into_iter().zip(values).collect();
        self.controller.load(Box::new(create), &controls);
    }

    /// Returns the ids of the controls, whose values follow that of the gain.
    fn controls(&self) -> Vec<ControlId> {
        let controls = controls(self.model.header());
        let ids = controls.iter().map(|control| ControlId::new(&control.name));
        ids.collect()
    }

    /// Returns the effect for an audio thread with this setup; an earlier one is disconnected.
    /// Waits until the model that was loaded last is built.
    pub(super) fn effect(&self, setup: Setup) -> Option<Box<dyn Effect>> {
        let session = self.controller.activate(setup).ok()?;
        Some(Box::new(ModelEffect::new(session, self.controls(), setup)))
    }

    /// Returns its delay, samples of the host.
    pub(super) fn latency_samples(&self) -> usize {
        let health = self.controller.health();
        health.map_or(0, |health| health.latency_samples)
    }

    /// Returns whether the model is still being read or built.
    pub(super) fn is_loading(&self) -> bool {
        self.controller.status() == LoadStatus::Loading
    }

    /// Returns why it is not heard as it should be, if so; one line.
    pub(super) fn problem(&self) -> Option<String> {
        match self.controller.status() {
            LoadStatus::Failed(reason) => Some(reason),
            _ => self.controller.warning(),
        }
    }

    /// Sets the driver; the model goes on with it.
    pub(super) fn set_driver(&self, driver: Driver) {
        self.controller.set_driver(driver);
    }

    /// Declares that the host does not play in real time.
    pub(super) fn set_non_realtime(&self, non_realtime: bool) {
        self.controller.set_non_realtime(non_realtime);
    }
}
