//! Portamento: glides from the pitch of the previous note.

use super::event::controller;

/// Time of a glide over [`REFERENCE_SEMITONES`], s, at values of controller 5, as measured on
/// synthesizers of the GS and XG kind; interpolated between them.
const TIMES_S: [(f64, f64); 15] = [
    (0.0, 0.0),
    (1.0, 0.006),
    (2.0, 0.023),
    (4.0, 0.05),
    (8.0, 0.11),
    (16.0, 0.25),
    (32.0, 0.5),
    (64.0, 2.06),
    (80.0, 4.2),
    (96.0, 8.4),
    (112.0, 19.5),
    (116.0, 26.7),
    (120.0, 40.0),
    (124.0, 80.0),
    (127.0, 480.0),
];
/// Interval of the measured glides; others take a time in proportion.
const REFERENCE_SEMITONES: f64 = 36.0;

/// Portamento of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Portamento {
    is_on: bool,
    /// Controllers 5 and 37, 0 to 1.
    time: f64,
    time_fine: f64,
    /// Key from which the next note glides.
    source: Option<u8>,
    /// Pitch of the last note, semitones.
    last_pitch: Option<f64>,
}

impl Portamento {
    /// Applies a controller of portamento; ignores others.
    pub(super) fn controller(&mut self, number: u8, value: f64) {
        match number {
            controller::PORTAMENTO => self.is_on = value >= 0.5,
            controller::PORTAMENTO_TIME => (self.time, self.time_fine) = (value, 0.0),
            controller::PORTAMENTO_TIME_FINE => self.time_fine = value,
            controller::PORTAMENTO_CONTROL => {
                self.source = Some((127.0 * value).round() as u8 & 127)
            }
            _ => {}
        }
    }

    /// Switches portamento off; the time stays.
    pub(super) fn switch_off(&mut self) {
        (self.is_on, self.source) = (false, None);
    }

    /// Returns whether notes glide.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Takes the key from which the next note glides, if there is one.
    pub(super) fn take_source(&mut self) -> Option<u8> {
        self.source.take()
    }

    /// Records the pitch of a new note. Returns that of the one before, if the new one glides from
    /// it.
    pub(super) fn next_pitch(&mut self, pitch: f64) -> Option<f64> {
        self.last_pitch.replace(pitch).filter(|_| self.is_on)
    }

    /// Returns the time of a glide over an interval, ms.
    pub(super) fn glide_ms(&self, semitones: f64) -> f32 {
        let value = (127.0 * self.time + self.time_fine).min(127.0);
        let upper = TIMES_S
            .partition_point(|(at, _)| *at < value)
            .clamp(1, TIMES_S.len() - 1);
        let ((low, low_s), (high, high_s)) = (TIMES_S[upper - 1], TIMES_S[upper]);
        let seconds = low_s + (high_s - low_s) * (value - low) / (high - low);
        (1e3 * seconds * semitones.abs() / REFERENCE_SEMITONES) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glides_take_the_measured_times() {
        let mut portamento = Portamento::default();
        assert_eq!(portamento.glide_ms(36.0), 0.0);
        portamento.controller(controller::PORTAMENTO_TIME, 80.0 / 127.0);
        assert!((portamento.glide_ms(36.0) - 4_200.0).abs() < 0.1);
        assert!((portamento.glide_ms(-12.0) - 1_400.0).abs() < 0.1);
        portamento.controller(controller::PORTAMENTO_TIME_FINE, 1.0);
        assert!((portamento.glide_ms(36.0) - 4_200.0 - 4_200.0 / 16.0).abs() < 1.0);
        portamento.controller(controller::PORTAMENTO_TIME, 1.0);
        assert!((portamento.glide_ms(36.0) - 480_000.0).abs() < 1.0);
    }

    #[test]
    fn notes_glide_from_the_previous_one_while_it_is_on() {
        let mut portamento = Portamento::default();
        assert_eq!(portamento.next_pitch(60.0), None);
        portamento.controller(controller::PORTAMENTO, 1.0);
        assert_eq!(portamento.next_pitch(62.0), Some(60.0));
        portamento.controller(controller::PORTAMENTO_CONTROL, 48.0 / 127.0);
        assert_eq!(
            (portamento.take_source(), portamento.take_source()),
            (Some(48), None)
        );
        portamento.switch_off();
        assert_eq!(portamento.next_pitch(64.0), None);
    }
}
