//! MIDI clock: tempo and position of another machine, 24 messages per quarter note.

/// Clock messages per quarter note.
const TICKS_PER_BEAT: f64 = 24.0;

/// Clock messages per unit of the song position, a sixteenth note.
const TICKS_PER_SIXTEENTH: u32 = 6;

/// Plausible tempos, quarter notes per minute. Beyond them the clock has stopped or is disturbed.
const TEMPO_BPM: std::ops::RangeInclusive<f64> = 15.0..=600.0;

/// Bandwidth of the smoothing loop, per message: follows a change of tempo within two beats, while
/// a jitter of milliseconds moves the tempo by far less than one quarter note per minute.
const BANDWIDTH: f64 = 0.02;

/// Follows a MIDI clock; neither waits nor allocates.
///
/// Times are in seconds on any monotonic clock, such as frames played divided by the sample rate.
///
/// A second-order delay-locked loop after F. Adriaensen, "Using a DLL to filter time" (2005).
#[derive(Clone, Debug, Default)]
pub struct ClockFollower {
    playing: bool,
    /// Clock messages since the start of the song.
    ticks: u32,
    tick_estimate: Option<TickEstimate>,
}

#[derive(Clone, Copy, Debug)]
struct TickEstimate {
    /// Estimated time of the last message.
    last: f64,
    /// Time between messages, seconds; unknown after the first.
    period: Option<f64>,
}

impl ClockFollower {
    /// Creates a follower without a tempo.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles clock, start, continue, stop and song position that arrived at `seconds`; ignores
    /// other messages.
    pub fn handle_message(&mut self, seconds: f64, message: &[u8]) {
        match *message {
            [0xF8] => self.tick(seconds),
            [0xFA] => (self.ticks, self.playing) = (0, true),
            [0xFB] => self.playing = true,
            [0xFC] => self.playing = false,
            [0xF2, low, high] => {
                self.ticks =
                    (u32::from(high & 0x7F) << 7 | u32::from(low & 0x7F)) * TICKS_PER_SIXTEENTH;
            }
            _ => {}
        }
    }

    /// Returns whether the song is playing.
    pub fn is_playing(&self) -> bool {
        self.playing
    }

    /// Returns the smoothed tempo in quarter notes per minute; `None` before the second clock
    /// message and after the clock has stopped.
    pub fn tempo_bpm(&self) -> Option<f64> {
        self.tick_estimate?.period.map(tempo)
    }

    /// Returns the song position at `seconds` in quarter notes. Interpolates between messages, but
    /// not past the next one.
    pub fn position_beats(&self, seconds: f64) -> f64 {
        let Some(done) = self.ticks.checked_sub(1).filter(|_| self.playing) else {
            return f64::from(self.ticks) / TICKS_PER_BEAT;
        };
        let since = match self.tick_estimate {
            Some(TickEstimate {
                last,
                period: Some(period),
            }) => ((seconds - last) / period).clamp(0.0, 1.0),
            _ => 0.0,
        };
        (f64::from(done) + since) / TICKS_PER_BEAT
    }

    fn tick(&mut self, seconds: f64) {
        if self.playing {
            self.ticks = self.ticks.saturating_add(1);
        }
        self.tick_estimate = Some(match self.tick_estimate {
            Some(tick_estimate) => tick_estimate.next(seconds),
            None => TickEstimate {
                last: seconds,
                period: None,
            },
        });
    }
}

impl TickEstimate {
    fn next(self, seconds: f64) -> Self {
        let restarted = Self {
            last: seconds,
            period: None,
        };
        let Some(period) = self.period else {
            let period = seconds - self.last;
            return if is_plausible(period) {
                Self {
                    last: seconds,
                    period: Some(period),
                }
            } else {
                restarted
            };
        };
        let late = seconds - (self.last + period);
        // Too far off for jitter: the clock was stopped or its tempo jumped.
        if late.abs() > 2.0 * period {
            return restarted;
        }
        let omega = std::f64::consts::TAU * BANDWIDTH;
        let last = self.last + period + std::f64::consts::SQRT_2 * omega * late;
        let period = period + omega * omega * late;
        if is_plausible(period) {
            Self {
                last,
                period: Some(period),
            }
        } else {
            restarted
        }
    }
}

fn tempo(period: f64) -> f64 {
    60.0 / (period * TICKS_PER_BEAT)
}

fn is_plausible(period: f64) -> bool {
    period > 0.0 && TEMPO_BPM.contains(&tempo(period))
}

#[cfg(test)]
mod tests {
    use ondes_engine::random::Lcg;

    use super::*;

    fn noise() -> impl FnMut() -> f64 {
        let mut random = Lcg::new(7);
        move || random.next_signed()
    }

    /// Runs a clock for some ticks with a jitter in seconds; returns the time of the next tick.
    fn run(clock: &mut ClockFollower, start: f64, ticks: usize, bpm: f64, jitter: f64) -> f64 {
        let mut noise = noise();
        let period = 60.0 / bpm / 24.0;
        for tick in 0..ticks {
            clock.handle_message(start + tick as f64 * period + jitter * noise(), &[0xF8]);
        }
        start + ticks as f64 * period
    }

    #[test]
    fn tempo_is_found_at_once_and_jitter_is_smoothed() {
        for bpm in [40.0, 120.0, 299.0] {
            let mut clock = ClockFollower::new();
            assert_eq!(clock.tempo_bpm(), None);
            run(&mut clock, 5.0, 2, bpm, 0.0);
            assert!((clock.tempo_bpm().unwrap() - bpm).abs() < 1e-6);
            let mut clock = ClockFollower::new();
            run(&mut clock, 5.0, 24 * 16, bpm, 1e-3);
            let error = (clock.tempo_bpm().unwrap() - bpm).abs() / bpm;
            assert!(error < 0.01, "{bpm}: {error}");
        }
    }

    #[test]
    fn a_change_of_tempo_is_followed_within_two_beats() {
        let mut clock = ClockFollower::new();
        let now = run(&mut clock, 0.0, 24 * 8, 120.0, 0.0);
        run(&mut clock, now, 24 * 2, 132.0, 0.0);
        assert!(
            (clock.tempo_bpm().unwrap() - 132.0).abs() < 1.5,
            "{:?}",
            clock.tempo_bpm()
        );
    }

    #[test]
    fn the_first_message_after_start_is_the_first_beat() {
        let mut clock = ClockFollower::new();
        // Clocks also run before the start.
        let now = run(&mut clock, 0.0, 10, 120.0, 0.0);
        assert_eq!(
            (clock.is_playing(), clock.position_beats(now)),
            (false, 0.0)
        );
        clock.handle_message(now - 0.01, &[0xFA]);
        assert_eq!((clock.is_playing(), clock.position_beats(now)), (true, 0.0));
        let end = run(&mut clock, now, 24 * 4, 120.0, 0.0);
        // 4 beats in 2 s, interpolated in between.
        assert!((clock.position_beats(end) - 4.0).abs() < 1e-9);
        let half_a_tick = 60.0 / 120.0 / 24.0 / 2.0;
        assert!((clock.position_beats(end - half_a_tick) - (4.0 - 0.5 / 24.0)).abs() < 1e-9);
        // The position waits for the next message.
        assert!((clock.position_beats(end + 1.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn stop_continue_and_song_position() {
        let mut clock = ClockFollower::new();
        clock.handle_message(0.0, &[0xFA]);
        let now = run(&mut clock, 0.0, 48, 120.0, 0.0);
        clock.handle_message(now, &[0xFC]);
        assert_eq!(
            (clock.is_playing(), clock.position_beats(now)),
            (false, 2.0)
        );
        let now = run(&mut clock, now, 48, 120.0, 0.0);
        assert_eq!(
            clock.position_beats(now),
            2.0,
            "the clock runs, the song does not"
        );
        // Sixteenth 16 + 128 × 1 is beat 36.
        clock.handle_message(now, &[0xF2, 16, 1]);
        assert_eq!(clock.position_beats(now), 36.0);
        clock.handle_message(now, &[0xFB]);
        run(&mut clock, now, 1, 120.0, 0.0);
        assert_eq!(clock.position_beats(now), 36.0);
        assert!(clock.is_playing());
    }

    #[test]
    fn a_pause_of_the_clock_is_not_a_slow_tempo() {
        let mut clock = ClockFollower::new();
        let now = run(&mut clock, 0.0, 100, 120.0, 0.0);
        clock.handle_message(now + 3.0, &[0xF8]);
        assert_eq!(clock.tempo_bpm(), None);
        run(&mut clock, now + 3.0 + 0.025, 5, 100.0, 0.0);
        assert!((clock.tempo_bpm().unwrap() - 100.0).abs() < 1.0);
        // Times that stand still or run backwards do no harm.
        for time in [1.0, 1.0, 0.5, f64::NAN, 2.0] {
            clock.handle_message(time, &[0xF8]);
            assert!(clock.tempo_bpm().is_none_or(f64::is_finite));
        }
    }
}
