//! Bars for a drum kit in four beats: a feel that stays, strokes that vary from bar to bar, and
//! fills.

use rand::RngExt;

use super::kit::Part;

/// Beats of a bar.
pub const BEATS: usize = 4;
/// Steps of a beat and of a bar: sixteenths.
const STEPS_OF_BEAT: usize = 4;
const STEPS: usize = BEATS * STEPS_OF_BEAT;
/// Bars after which a fill is likely.
const PHRASE: usize = 4;
/// Deviation of a stroke from its time, seconds, and from its strength.
const LOOSE_S: f64 = 0.004;
const UNEVEN: f64 = 0.07;
/// Largest delay of every second sixteenth, in sixteenths: at a third they are triplets.
const MAX_SWING: f64 = 1.0 / 3.0;

/// One stroke.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Time, seconds.
    pub at_s: f64,
    /// Part that is struck.
    pub part: Part,
    /// From 0 to 1.
    pub strength: f64,
}

/// Some bars of one feel.
#[derive(Debug, Clone)]
pub struct Groove {
    /// Beats a minute.
    pub tempo: f64,
    /// In order of time.
    pub strokes: Vec<Stroke>,
}

/// Rhythm of the hi-hat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hat {
    Quarters,
    Eighths,
    Sixteenths,
    OffBeats,
}

/// Properties that stay the same in a groove.
struct Feel {
    /// Chance of each step of a bar for kick and snare; 1 is always.
    kick: [f64; STEPS],
    snare: [f64; STEPS],
    /// The snare's main strokes are struck on the rim.
    is_on_rim: bool,
    /// Chance of a soft stroke of the snare at a step between.
    ghosts: f64,
    hat: Hat,
    /// Chance of an open hi-hat at an off-beat.
    open: f64,
    /// The hi-hat is played half open.
    is_loose: bool,
    /// Delay of every second sixteenth, in sixteenths.
    swing: f64,
    /// Strength of the main strokes.
    strength: f64,
}

/// Kicks and main strokes of the snare, a character for each sixteenth: `x` always, `o` often, `.`
/// sometimes.
const KICKS: [&str; 8] = [
    "x       x       ",
    "x      .x .     ",
    "x  o    x o     ",
    "x     o . x    .",
    "x   x   x   x   ",
    "x  x  o   o  .  ",
    "x         x  o  ",
    "x o   .  .o     ",
];
const SNARES: [&str; 5] = [
    "    x       x   ",
    "    x       x   ",
    "        x       ",
    "    x  .    x  .",
    "    x     .  o  ",
];

fn chances(steps: &str) -> [f64; STEPS] {
    let mut chances = [0.0; STEPS];
    for (chance, step) in chances.iter_mut().zip(steps.chars()) {
        *chance = match step {
            'x' => 1.0,
            'o' => 0.7,
            '.' => 0.3,
            _ => 0.0,
        };
    }
    chances
}

impl Feel {
    fn draw(tempo: f64, random: &mut impl RngExt) -> Self {
        let mut choose = |from: &[&'static str]| chances(from[random.random_range(0..from.len())]);
        let (kick, snare) = (choose(&KICKS), choose(&SNARES));
        let hats = [
            Hat::Quarters,
            Hat::Eighths,
            Hat::Eighths,
            Hat::Sixteenths,
            Hat::OffBeats,
        ];
        let hat = match hats[random.random_range(0..hats.len())] {
            // Nobody plays these so fast with one hand.
            Hat::Sixteenths if tempo > 125.0 => Hat::Eighths,
            hat => hat,
        };
        Self {
            kick,
            snare,
            is_on_rim: random.random_bool(0.12),
            ghosts: if random.random_bool(0.5) {
                random.random_range(0.05..0.45)
            } else {
                0.0
            },
            hat,
            open: if random.random_bool(0.5) {
                random.random_range(0.05..0.5)
            } else {
                0.0
            },
            is_loose: random.random_bool(0.15),
            swing: if random.random_bool(0.4) {
                random.random_range(0.0..MAX_SWING)
            } else {
                0.0
            },
            strength: random.random_range(0.55..0.95),
        }
    }
}

/// Writes strokes of a bar.
struct Writer<'a, R, F> {
    strokes: Vec<Stroke>,
    bar: usize,
    step_s: f64,
    swing: f64,
    has: F,
    random: &'a mut R,
}

impl<R: RngExt, F: Fn(Part) -> bool> Writer<'_, R, F> {
    fn chance(&mut self, chance: f64) -> bool {
        self.random.random_bool(chance.clamp(0.0, 1.0))
    }

    /// Writes a stroke, if the kit has the part.
    fn stroke(&mut self, step: usize, part: Part, strength: f64) {
        if !(self.has)(part) {
            return;
        }
        let late = if step % 2 == 1 { self.swing } else { 0.0 };
        let mut around = |deviation: f64| {
            (self.random.random_range(-1.0..1.0) + self.random.random_range(-1.0..1.0)) * deviation
        };
        let (loose, uneven) = (around(LOOSE_S), around(UNEVEN));
        let at_s = ((self.bar * STEPS + step) as f64 + late) * self.step_s + loose;
        self.strokes.push(Stroke {
            at_s: at_s.max(0.0),
            part,
            strength: (strength + uneven).clamp(0.0, 1.0),
        });
    }

    fn hat(&mut self, feel: &Feel, step: usize) {
        let (is_beat, is_eighth) = (step.is_multiple_of(STEPS_OF_BEAT), step.is_multiple_of(2));
        let is_played = match feel.hat {
            Hat::Quarters => is_beat,
            Hat::Eighths => is_eighth,
            Hat::Sixteenths => true,
            Hat::OffBeats => is_eighth && !is_beat,
        };
        if !is_played {
            return;
        }
        let accent = if is_beat || feel.hat == Hat::OffBeats {
            0.0
        } else {
            -0.25
        };
        let is_open = is_eighth && !is_beat && self.chance(feel.open);
        let part = match (is_open, feel.is_loose) {
            (true, _) if (self.has)(Part::OpenHat) => Part::OpenHat,
            (_, true) if (self.has)(Part::HalfOpenHat) => Part::HalfOpenHat,
            _ => Part::ClosedHat,
        };
        self.stroke(step, part, feel.strength + accent);
    }

    fn steps(&mut self, feel: &Feel, steps: std::ops::Range<usize>) {
        for step in steps {
            let is_beat = step.is_multiple_of(STEPS_OF_BEAT);
            if self.chance(feel.kick[step]) {
                self.stroke(
                    step,
                    Part::Kick,
                    feel.strength - if is_beat { 0.0 } else { 0.15 },
                );
            }
            let is_rim = feel.is_on_rim && (self.has)(Part::SideStick);
            if self.chance(feel.snare[step]) {
                let part = if is_rim { Part::SideStick } else { Part::Snare };
                self.stroke(step, part, feel.strength);
            } else if !is_beat && self.chance(feel.ghosts * if step % 2 == 1 { 1.0 } else { 0.4 }) {
                self.stroke(step, Part::Snare, 0.1);
            }
            self.hat(feel, step);
        }
        if feel.hat == Hat::OffBeats {
            for beat in [1, 3] {
                self.stroke(beat * STEPS_OF_BEAT, Part::FootHat, feel.strength);
            }
        }
    }

    /// Writes a fill that begins at a step: strokes around the kit, growing towards the end.
    fn fill(&mut self, feel: &Feel, start: usize) {
        let toms = [Part::Snare, Part::HighTom, Part::MidTom, Part::LowTom];
        let busy = self.random.random_range(0.55..1.0);
        for step in start..STEPS {
            let place = (step - start) as f64 / (STEPS - start) as f64;
            if step.is_multiple_of(2) || self.chance(busy) {
                let wanted = toms[((place * toms.len() as f64) as usize
                    + usize::from(self.chance(0.2)))
                .min(toms.len() - 1)];
                let part = if (self.has)(wanted) {
                    wanted
                } else {
                    Part::Snare
                };
                self.stroke(step, part, feel.strength - 0.3 + 0.3 * place);
            }
            if step.is_multiple_of(STEPS_OF_BEAT) {
                self.stroke(step, Part::Kick, feel.strength - 0.1);
            }
        }
    }
}

impl Groove {
    /// Composes `bars` bars at a tempo, beats a minute, of the parts that the kit `has`.
    pub fn compose(
        tempo: f64,
        bars: usize,
        has: impl Fn(Part) -> bool,
        random: &mut impl RngExt,
    ) -> Self {
        let feel = Feel::draw(tempo, random);
        let step_s = 60.0 / tempo / STEPS_OF_BEAT as f64;
        let mut writer = Writer {
            strokes: Vec::new(),
            bar: 0,
            step_s,
            swing: feel.swing,
            has,
            random,
        };
        for bar in 0..bars {
            writer.bar = bar;
            let is_last = bar % PHRASE == PHRASE - 1;
            let fill = if is_last && writer.chance(0.8) {
                [8, 12, 12, 14][writer.random.random_range(0..4)]
            } else {
                STEPS
            };
            writer.steps(&feel, 0..fill);
            writer.fill(&feel, fill);
            if bar % PHRASE == 0 && bar > 0 {
                // After a fill, the first beat is struck with the hi-hat open.
                writer.stroke(0, Part::OpenHat, 1.0);
            }
        }
        let mut strokes = writer.strokes;
        strokes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Self { tempo, strokes }
    }
}
