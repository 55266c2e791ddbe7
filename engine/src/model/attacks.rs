//! Recorded attacks: how notes of an instrument begin.
//!
//! A network forms the held part of a note well and its first tenth of a second less well: the
//! scratch of a bow, the breath before a tone. A model may therefore hold the beginnings of the
//! notes that it has learnt from; each plays at the onset of a note, and fades into the network.

use std::sync::Arc;

use super::{Header, ModelError, Tensor, limits};

/// Names of the tensors in a model file.
pub(super) const SOUNDS: &str = "attacks.sounds";
pub(super) const NOTES: &str = "attacks.notes";
/// Columns of [`NOTES`] before the positions of controls.
const COLUMNS: usize = 4;
/// Longest attack, seconds.
const LONGEST_S: f64 = 1.0;
/// Length of the fade from an attack into the network, at its end, seconds.
pub const FADE_S: f64 = 0.04;

/// One recorded attack.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// Pitch in semitones: MIDI note number, 69 is 440 Hz.
    pub pitch: f32,
    /// [Peak level](crate::instrument::Performance::peak_db) of the notes that it fits as it is,
    /// dB(A).
    pub level_db: f32,
    /// Phase of the network's oscillator at its first sample with which the network goes on where
    /// it ends, in cycles.
    pub phase: f32,
    /// Correlation with the network where they fade into each other, 0 to 1.
    pub likeness: f32,
    /// Positions of the controls that feed inputs of the method `synth` besides pitch and loudness,
    /// in the order of these.
    pub controls: Vec<f32>,
    /// Samples at the model's rate, as many as all others have; without the model's
    /// [gain](crate::instrument::Performance::gain_db).
    pub sound: Vec<f32>,
}

impl Attack {
    /// Returns the speed at which it has another pitch in semitones.
    pub(crate) fn speed(&self, pitch: f32) -> f32 {
        ((pitch - self.pitch) / 12.0).exp2()
    }
}

/// The recorded attacks of an instrument.
#[derive(Clone, Debug, PartialEq)]
pub struct Attacks {
    /// `[attack][sample]`
    pub(super) sounds: Tensor,
    /// `[attack][column]`
    pub(super) notes: Tensor,
}

impl Attacks {
    /// Stores attacks of one length, their sounds in 16 bits.
    ///
    /// # Errors
    /// Returns [`ModelError`] if there are none, lengths or numbers of controls differ, or a sample
    /// is too loud.
    pub fn new(attacks: &[Attack]) -> Result<Self, ModelError> {
        let error = |reason: &str| ModelError::Header(format!("attacks: {reason}"));
        let first = attacks.first().ok_or_else(|| error("there are none"))?;
        let (samples, controls) = (first.sound.len(), first.controls.len());
        let is_alike =
            |attack: &Attack| (attack.sound.len(), attack.controls.len()) == (samples, controls);
        if !attacks.iter().all(is_alike) {
            return Err(error("they differ in length or number of controls"));
        }
        let sounds = attacks.iter().flat_map(|attack| attack.sound.clone());
        let notes = attacks.iter().flat_map(|attack| {
            let own = [attack.pitch, attack.level_db, attack.phase, attack.likeness];
            own.into_iter().chain(attack.controls.clone())
        });
        let sounds = Tensor::new(&[attacks.len(), samples], sounds.collect());
        Ok(Self {
            sounds: sounds.to_16_bit(super::Storage::F16)?,
            notes: Tensor::new(&[attacks.len(), COLUMNS + controls], notes.collect()),
        })
    }

    /// Returns the attacks.
    pub fn iter(&self) -> impl Iterator<Item = Attack> + '_ {
        let (sounds, notes) = (self.sounds.floats(), self.notes.floats());
        let (samples, columns) = (self.sounds.shape()[1], self.notes.shape()[1]);
        (0..self.len()).map(move |index| {
            let note = &notes[index * columns..][..columns];
            Attack {
                pitch: note[0],
                level_db: note[1],
                phase: note[2],
                likeness: note[3],
                controls: note[COLUMNS..].to_vec(),
                sound: sounds[index * samples..][..samples].to_vec(),
            }
        })
    }

    /// Returns the number of attacks.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.sounds.shape()[0]
    }

    /// Returns the length of each in samples at the model's rate.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.sounds.shape()[1]
    }

    /// Checks that they fit a model.
    pub(super) fn check(&self, header: &Header) -> Result<(), ModelError> {
        let error = |reason: String| Err(ModelError::Header(format!("attacks: {reason}")));
        let synth = header
            .performance
            .and_then(|_| header.method("synth"))
            .map(|synth| synth.inputs.len());
        let Some(inputs) = synth else {
            return error("only instruments have them".into());
        };
        let (&[count, samples], &[notes, columns]) = (self.sounds.shape(), self.notes.shape())
        else {
            return error("are no tables".into());
        };
        if count == 0 || count != notes || columns + 2 != COLUMNS + inputs {
            return error(format!(
                "{count} sounds, {notes} notes of {columns} columns, for {inputs} inputs"
            ));
        }
        ModelError::limit("the number of attacks", count, limits::ATTACKS)?;
        let longest = (LONGEST_S * f64::from(header.sample_rate)) as usize;
        ModelError::limit("the length of an attack", samples, longest)?;
        for tensor in [&self.sounds, &self.notes] {
            if let Some(reason) = tensor.values().invalid_reason(tensor.shape()) {
                return error(reason.into());
            }
        }
        let is_valid = |note: &[f32]| {
            (-84.0..=180.0).contains(&note[0])
                && (-200.0..=60.0).contains(&note[1])
                && (0.0..=1.0).contains(&note[3])
        };
        if samples < 2 || !self.notes.floats().chunks_exact(columns).all(is_valid) {
            return error("a pitch, level, likeness or length is out of range".into());
        }
        Ok(())
    }

    /// Returns names and tensors as in a model file.
    pub(super) fn tensors(&self) -> [(&'static str, &Tensor); 2] {
        [(NOTES, &self.notes), (SOUNDS, &self.sounds)]
    }
}

impl super::Model {
    /// Returns the recorded attacks, if the model has any.
    #[must_use]
    pub fn attacks(&self) -> Option<&Arc<Attacks>> {
        self.attacks.as_ref()
    }

    /// Returns the model with other recorded attacks, or none.
    ///
    /// # Errors
    /// Returns [`ModelError`] if it is no instrument, or they do not fit it.
    pub fn with_attacks(mut self, attacks: Option<Arc<Attacks>>) -> Result<Self, ModelError> {
        if attacks == self.attacks {
            return Ok(self);
        }
        if let Some(attacks) = &attacks {
            attacks.check(&self.header)?;
        }
        self.identity = super::Identity::new(&self.header, &self.weights, attacks.as_deref())?;
        self.attacks = attacks;
        Ok(self)
    }

    /// Returns the model with another header; weights and attacks stay.
    ///
    /// # Errors
    /// Returns [`ModelError`] if they do not fit.
    pub fn with_header(&self, header: Header) -> Result<Self, ModelError> {
        Self::new(header, self.weights.clone())?.with_attacks(self.attacks.clone())
    }
}
