//! Where all parameters stand, whoever holds them, and who turns them.

use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driver, Quality};
use ondes_ui::KnobId;

use crate::choice;
use crate::parameter::{DRIVER, OVERSAMPLING, PLAYED_BY, Parameter, QUALITY, SIZE};
use crate::player::Knobs;

/// Where everything stands. Wait-free for all threads.
pub trait Board: Send + Sync {
    /// Where everything stands for the audio thread, with what a host adds to what the user has set.
    fn knobs(&self) -> Knobs;

    /// The value of the parameter of that number as the user has set it; none where there is no such parameter.
    fn value(&self, knob: KnobId) -> Option<f32>;

    /// The same as the position of its knob, 0 … 1.
    fn normalized(&self, knob: KnobId) -> Option<f32> {
        Some(Parameter::of(knob)?.position(self.value(knob)?))
    }

    /// Where the model is to run.
    fn driver(&self) -> Driver {
        choice::driver(self.value(DRIVER).unwrap_or_default())
    }

    /// At how many times its rate an effect's network is to run: 1, 2 or 4.
    fn oversampling(&self) -> usize {
        choice::oversampling(self.value(OVERSAMPLING).unwrap_or_default())
    }

    /// In which size a model with variants is to play at most, 0 … 1.
    fn size(&self) -> f32 {
        self.value(SIZE).unwrap_or(1.0)
    }

    /// How much of a model with variants is to play.
    fn quality(&self) -> Quality {
        choice::quality(self.value(QUALITY).unwrap_or_default())
    }

    /// What is to play the model.
    fn source(&self) -> Source {
        choice::source(self.value(PLAYED_BY).unwrap_or_default())
    }
}

/// Who turns parameters, so that whoever holds them learns of it.
pub trait Setter {
    /// A gesture begins.
    fn begin(&self, knob: KnobId);
    /// The knob goes there, 0 … 1; one that stands at steps only goes to the nearest.
    fn set(&self, knob: KnobId, position: f32);
    /// The gesture ends.
    fn end(&self, knob: KnobId);
}
