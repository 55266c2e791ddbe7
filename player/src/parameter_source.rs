//! Reading and changing the parameters of an instance, whoever stores them: the host's plugin
//! framework or a [`ParameterStore`](crate::parameter_store::ParameterStore).

use ondes_engine::pipeline::{ControlSource, InputChannels};
use ondes_engine::realtime::{Driver, Quality};

use crate::choice;
use crate::parameter::{
    CHANNELS, CONTROL_INPUT, DRIVER, OVERSAMPLING, Parameter, ParameterId, QUALITY, SCENE, SIZE,
    SOURCE,
};
use crate::player_parameters::PlayerParameters;

/// Current parameter values. Wait-free on all threads.
pub trait ParameterSource: Send + Sync {
    /// Returns all values for the audio thread, including the host's modulation.
    fn player_parameters(&self) -> PlayerParameters;

    /// Returns a value without modulation; `None` if there is no such parameter.
    fn value(&self, id: ParameterId) -> Option<f32>;

    /// Returns the normalized value, 0 … 1.
    fn normalized(&self, id: ParameterId) -> Option<f32> {
        Some(Parameter::get(id)?.normalize(self.value(id)?))
    }

    /// Returns the requested driver.
    fn driver(&self) -> Driver {
        choice::driver(self.value(DRIVER).unwrap_or_default())
    }

    /// Returns the oversampling factor of an effect's network: 1, 2, 4 or 8; `None` for that of the
    /// model.
    fn oversampling(&self) -> Option<usize> {
        choice::oversampling(self.value(OVERSAMPLING).unwrap_or_default())
    }

    /// Returns the channels of a stereo input to process.
    fn input_channels(&self) -> InputChannels {
        choice::channels(self.value(CHANNELS).unwrap_or_default())
    }

    /// Returns the largest variant that may be used, 0 … 1.
    fn size(&self) -> f32 {
        self.value(SIZE).unwrap_or(1.0)
    }

    /// Returns the requested quality of a model with variants.
    fn quality(&self) -> Quality {
        choice::quality(self.value(QUALITY).unwrap_or_default())
    }

    /// Returns the requested scene, from 0.
    fn scene(&self) -> usize {
        (self.value(SCENE).unwrap_or_default() as usize).saturating_sub(1)
    }

    /// Returns whether the side-chain of an effect controls its instrument, rather than the track.
    fn follows_side_chain(&self) -> bool {
        self.value(CONTROL_INPUT).unwrap_or_default() > 0.5
    }

    /// Returns the model's control source.
    fn control_source(&self) -> ControlSource {
        choice::source(self.value(SOURCE).unwrap_or_default())
    }
}

/// Changes parameters in gestures, so that a host records them and undoes each in one step.
pub trait ParameterSetter {
    /// Begins a gesture.
    fn begin_gesture(&self, id: ParameterId);
    /// Sets the normalized value, 0 … 1; rounded to the nearest step.
    fn set_normalized(&self, id: ParameterId, position: f32);
    /// Ends the gesture.
    fn end_gesture(&self, id: ParameterId);
}
