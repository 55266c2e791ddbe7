//! Bars of a song, and input ports that recall what a method has put out some bars before.

use super::{Method, ModelError, Port};

/// Ending, with a number of bars after it, of the name of an input port that receives what an
/// output of its own method was before that many bars: `NAME.bars_before.2`.
///
/// It holds `NAME` in the two blocks after that moment, then the share of its own block that lay
/// before the moment, then 1; all are 0 if that was before the first block, or so long ago that it
/// is forgotten. What bars are, the input [`BARS`] tells.
pub const BARS_BEFORE: &str = ".bars_before.";
/// Most bars of [`BARS_BEFORE`].
pub const MAX_BARS_BEFORE: usize = 8;
/// Input port of the position in four bars of the song, 0 to 4.
pub const BARS: &str = "bars";
/// Beats of a bar.
pub const BAR_BEATS: f64 = 4.0;
/// Slowest tempo at which all bars are remembered that a method or a loop asks for, beats a minute;
/// at a slower one fewer are.
pub const SLOWEST_REMEMBERED: f64 = 40.0;

/// Input port that receives an output of some bars before ([`BARS_BEFORE`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Index of the input port.
    pub input: usize,
    /// Index of the output port.
    pub output: usize,
    /// Bars.
    pub bars: usize,
}

impl Recall {
    /// Returns the channels of the input for those of the output.
    #[must_use]
    pub const fn channels(output: usize) -> usize {
        output.saturating_mul(2).saturating_add(2)
    }
}

impl Method {
    /// Returns the input ports that receive an output of some bars before.
    pub fn recalls(&self) -> impl Iterator<Item = Recall> + '_ {
        self.inputs.iter().enumerate().filter_map(|(input, port)| {
            let (name, bars) = port.name.rsplit_once(BARS_BEFORE)?;
            let output = self.outputs.iter().position(|output| output.name == name)?;
            Some(Recall {
                input,
                output,
                bars: bars.parse().ok()?,
            })
        })
    }

    /// Returns an error unless the ports that recall fit what they recall.
    pub(super) fn check_recalls(&self) -> Result<(), ModelError> {
        self.recalls()
            .try_for_each(|recall| self.check_recall(recall))
    }

    fn check_recall(&self, recall: Recall) -> Result<(), ModelError> {
        let (input, output) = (&self.inputs[recall.input], &self.outputs[recall.output]);
        let error = |reason: String| {
            Err(ModelError::Header(format!(
                "method {:?}: input {:?} {reason}",
                self.name, input.name
            )))
        };
        if self.name != "prior" {
            return error("recalls bars, which only the method \"prior\" can".into());
        }
        if !(1..=MAX_BARS_BEFORE).contains(&recall.bars) {
            return error(format!(
                "recalls {} bars; 1 to {MAX_BARS_BEFORE} are allowed",
                recall.bars
            ));
        }
        let is_one_a_block = |port: &Port| port.ratio == self.block;
        if input.channels != Recall::channels(output.channels)
            || !is_one_a_block(input)
            || !is_one_a_block(output)
        {
            return error(format!(
                "has {} channels at ratio {}, the output that it recalls {} at {}; it needs twice as many and two more, and both \
                 one frame a block",
                input.channels, input.ratio, output.channels, output.ratio
            ));
        }
        match self.inputs.iter().find(|port| port.name == BARS) {
            Some(bars) if bars.channels == 1 && is_one_a_block(bars) => Ok(()),
            _ => error(format!(
                "needs an input {BARS:?} with one channel and one frame a block"
            )),
        }
    }
}
