//! Feature-wise modulation: the condition scales and shifts every channel (Perez et al., AAAI
//! 2018).

use crate::model::import::field::Field;
use crate::model::import::graph_builder::{Conv, ConvWeights, GraphBuilder};
use crate::model::import::weight_reader::WeightReader;
use crate::model::{ModelError, Op};

/// Points of a layer that can be modulated, in the order of their weights.
pub(super) const FILM_POSITIONS: [&str; 8] = [
    "conv_pre_film",
    "conv_post_film",
    "input_mixin_pre_film",
    "input_mixin_post_film",
    "activation_pre_film",
    "activation_post_film",
    "layer1x1_post_film",
    "head1x1_post_film",
];

/// Configuration of the modulation at one point.
#[derive(Clone, Copy)]
pub(super) struct FilmConfig {
    shift: bool,
    groups: usize,
}

impl FilmConfig {
    /// Reads the configuration; `None` if the point is not modulated.
    pub fn read(array: &Field<'_>, place: &str) -> Result<Option<Self>, ModelError> {
        let Some(field) = array.find(place) else {
            return Ok(None);
        };
        let active = if field.is_object() {
            field.find("active")
        } else {
            Some(field.clone())
        };
        if !active.map_or(Ok(false), |active| active.flag())? {
            return Ok(None);
        }
        Ok(Some(Self {
            shift: field.find("shift").map_or(Ok(true), |shift| shift.flag())?,
            groups: field
                .find("groups")
                .map_or(Ok(1), |groups| groups.count())?,
        }))
    }

    /// Reads the weights that modulate `channels` channels by a condition of `condition` channels.
    pub fn take(
        self,
        weights: &mut WeightReader<'_>,
        place: &str,
        condition: usize,
        channels: usize,
    ) -> Result<FilmWeights, ModelError> {
        let outputs = if self.shift {
            channels.saturating_mul(2)
        } else {
            channels
        };
        let conv = Conv {
            groups: self.groups,
            ..Conv::pointwise(condition, outputs)
        };
        Ok(FilmWeights {
            conv: weights.conv(place, conv)?,
            shift: self.shift,
        })
    }
}

/// Modulation with its weights.
pub(super) struct FilmWeights {
    conv: ConvWeights,
    shift: bool,
}

impl FilmWeights {
    /// Adds the modulation's nodes after `input`; the last one is called `name`.
    pub fn add(
        self,
        builder: &mut GraphBuilder,
        name: &str,
        input: &str,
        condition: &str,
    ) -> Result<String, ModelError> {
        let modulation = builder.conv(&format!("{name}_condition"), condition, self.conv)?;
        builder.node(
            name,
            &[input, &modulation],
            if self.shift { Op::Film } else { Op::Multiply },
        )
    }
}
