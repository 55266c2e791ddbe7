//! An owner that does what it is told, and remembers it.

use std::f32::consts::TAU;
use std::time::Duration;

use egui::ThemePreference;
use egui_kittest::Harness;
use ondes_engine::model::{Card, Control, Curve, Kind, Measure};
use ondes_engine::realtime::histogram::Percentiles;
use ondes_engine::realtime::{Driven, Driver, Health, Status};
use ondes_ui::{
    Command, Entry, EntryId, Knob, KnobId, Level, Macro, Midi, Missing, Model, Note, Owner, SIZE, Slot, Sound, Source,
    View, Window,
};

use super::raster::Raster;

pub const INPUT: KnobId = KnobId(100);
pub const OUTPUT: KnobId = KnobId(101);
pub const MIX: KnobId = KnobId(102);

/// Of a sound that does not change.
const RATE_HZ: f32 = 48_000.0;

pub struct Fake {
    pub status: Status,
    pub missing: Option<(String, Vec<String>)>,
    pub card: Option<Card>,
    pub playing: Option<EntryId>,
    pub controls: Vec<Control>,
    pub entries: Vec<Entry>,
    pub auditioned: Option<EntryId>,
    pub macros: Vec<Macro>,
    pub voice: Vec<Knob>,
    pub mixer: [Knob; 3],
    pub bypass: bool,
    pub slot: Slot,
    pub driver: Driver,
    pub health: Option<Health>,
    pub qualities: Vec<String>,
    pub quality: usize,
    pub input_levels: Vec<Level>,
    pub output_levels: Vec<Level>,
    pub waves: [Vec<f32>; 2],
    pub spectra: [Vec<f32>; 2],
    pub pitch_hz: Option<f32>,
    pub loudness_db: Option<f32>,
    pub notes: Vec<Note>,
    pub moving: bool,
    /// Whether it can do all that an owner may be unable to do.
    pub able: bool,
    pub scale: f32,
    pub theme: ThemePreference,
    pub sample_rate_hz: f32,
    /// What it was told.
    pub told: Vec<Command>,
}

pub fn knob(id: KnobId, name: &str, value: f32) -> Knob {
    Knob { id, name: name.into(), value, default: 0.5, steps: 0, midi: Midi::None }
}

fn control(name: &str, description: &str) -> Control {
    Control {
        name: name.into(),
        unit: "%".into(),
        min: 0.0,
        max: 100.0,
        default: 50.0,
        curve: Curve::Linear,
        description: description.into(),
    }
}

fn entry(id: u64, name: &str, author: &str, kind: Kind, source: Source) -> Entry {
    Entry {
        id: EntryId(id),
        name: name.into(),
        author: author.into(),
        kind,
        source,
        favourite: false,
        recent: false,
        quality: String::new(),
    }
}

impl Fake {
    /// Nothing is loaded, nothing sounds, nothing is there to be chosen.
    pub fn empty() -> Self {
        Self {
            status: Status::Empty,
            missing: None,
            card: None,
            playing: None,
            controls: Vec::new(),
            entries: Vec::new(),
            auditioned: None,
            macros: Vec::new(),
            voice: Vec::new(),
            mixer: [knob(INPUT, "Gain in", 0.8), knob(OUTPUT, "Gain out", 0.8), knob(MIX, "Mix", 1.0)],
            bypass: false,
            slot: Slot::A,
            driver: Driver::Auto,
            health: None,
            qualities: Vec::new(),
            quality: 0,
            input_levels: Vec::new(),
            output_levels: Vec::new(),
            waves: Default::default(),
            spectra: Default::default(),
            pitch_hz: None,
            loudness_db: None,
            notes: Vec::new(),
            moving: false,
            able: true,
            scale: 1.0,
            theme: ThemePreference::Dark,
            sample_rate_hz: RATE_HZ,
            told: Vec::new(),
        }
    }

    /// A violin that plays.
    pub fn playing() -> Self {
        let names = ["Brightness", "Bow noise", "Vibrato", "Vibrato rate", "Body", "Attack", "Room", "Air", "Detune"];
        let controls: Vec<Control> = names.iter().map(|name| control(name, "Says what it does")).collect();
        let values = [0.62, 0.2, 0.35, 0.5, 0.74, 0.1, 0.28];
        let mut macros: Vec<Macro> = (0..8)
            .map(|n| {
                let name = if n < 7 { names[n].to_owned() } else { "Macro 8".into() };
                let value = values.get(n).copied().unwrap_or_default();
                Macro { knob: knob(KnobId(n as u32), &name, value), control: (n < 7).then_some(n) }
            })
            .collect();
        macros[2].knob.midi = Midi::Controller(1);
        let mut entries = vec![
            entry(1, "Violin", "Ondes", Kind::Instrument, Source::Bundled),
            entry(2, "Cello", "Ondes", Kind::Instrument, Source::Bundled),
            entry(3, "Flute", "Ondes", Kind::Instrument, Source::Bundled),
            entry(4, "Tube amp", "Ondes", Kind::Effect, Source::Bundled),
            entry(5, "Murmur", "Ondes", Kind::Generator, Source::Bundled),
            entry(6, "Tape voice", "M. Rey", Kind::Codec, Source::User),
            entry(7, "Grandmother's piano", "M. Rey", Kind::Instrument, Source::User),
            entry(8, "Fuzz box", "M. Rey", Kind::Effect, Source::User),
        ];
        entries[3].favourite = true;
        entries[0].recent = true;
        entries[0].quality = "distance 0.41".into();
        let card = Card {
            name: "Violin".into(),
            description: "A bowed string with a wooden body.".into(),
            author: "Ondes".into(),
            quality: vec![Measure {
                name: "spectral distance".into(),
                unit: String::new(),
                value: 0.41,
                baseline: Some(1.73),
            }],
            ..Card::default()
        };
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
        let health = Health {
            driven: Driven::Worker,
            latency_samples: 412,
            latency_ms: 8.583,
            load: 0.23,
            misses: 0,
            faults: 0,
            cues_lost: 0,
            queued_samples: 256,
            steps: Percentiles {
                count: 9000,
                p50: ms(0.61),
                p95: ms(0.8),
                p99: ms(1.2),
                p999: ms(1.9),
                worst: ms(2.4),
            },
            latency_measured: Some(412),
        };
        let tone = |harmonics: usize| -> Vec<f32> {
            let sum = |n: usize| {
                (1..=harmonics).map(|h| (TAU * 440.0 * h as f32 * n as f32 / RATE_HZ).sin() / h as f32).sum::<f32>()
            };
            (0..1024).map(|n| 0.45 * sum(n)).collect()
        };
        let spectrum = |harmonics: usize, floor: f32| -> Vec<f32> {
            let bin_hz = RATE_HZ / 4096.0;
            let hump = |bin: usize, h: usize| {
                let off = (bin as f32 * bin_hz - 440.0 * h as f32) / bin_hz;
                -8.0 - 9.0 * (h as f32).log2() - 1.5 * off * off
            };
            let at = |bin: usize| (1..=harmonics).map(|h| hump(bin, h)).fold(floor - bin as f32 / 120.0, f32::max);
            (0..2049).map(at).collect()
        };
        let level = |peak_db, rms_db| Level { peak_db, rms_db };
        Self {
            status: Status::Ready,
            card: Some(card),
            playing: Some(EntryId(1)),
            controls,
            entries,
            macros,
            voice: vec![knob(KnobId(50), "Glide", 0.3), Knob { steps: 3, ..knob(KnobId(51), "Mode", 0.0) }],
            health: Some(health),
            qualities: vec!["f32".into(), "int8".into()],
            input_levels: vec![level(-18.2, -27.0), level(-20.1, -28.4)],
            output_levels: vec![level(-5.8, -14.0), level(-6.3, -14.9)],
            waves: [tone(1), tone(7)],
            spectra: [spectrum(2, -84.0), spectrum(24, -72.0)],
            pitch_hz: Some(441.8),
            loudness_db: Some(-17.3),
            notes: vec![Note { key: 57, velocity: 0.4 }, Note { key: 69, velocity: 0.9 }],
            moving: true,
            ..Self::empty()
        }
    }

    pub fn knobs(&mut self) -> impl Iterator<Item = &mut Knob> {
        self.macros.iter_mut().map(|one| &mut one.knob).chain(&mut self.voice).chain(&mut self.mixer)
    }

    /// Where a knob stands.
    pub fn value(&mut self, id: KnobId) -> f32 {
        self.knobs().find(|knob| knob.id == id).expect("a knob").value
    }

    fn obey(&mut self, command: Command) {
        match &command {
            Command::Set(id, value) => {
                if let Some(knob) = self.knobs().find(|knob| knob.id == *id) {
                    knob.value = *value;
                }
            }
            Command::Bind(index, control) => {
                self.macros[*index].control = *control;
                if let Some(control) = control {
                    self.macros[*index].knob.name = self.controls[*control].name.clone();
                }
            }
            Command::Load(id) => self.playing = Some(*id),
            Command::Audition(id) => self.auditioned = *id,
            Command::Favourite(id, on) => {
                if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) {
                    entry.favourite = *on;
                }
            }
            Command::Recall(slot) => self.slot = *slot,
            Command::Bypass(on) => self.bypass = *on,
            Command::Drive(driver) => self.driver = *driver,
            Command::Scale(scale) => self.scale = *scale,
            Command::Theme(theme) => self.theme = *theme,
            Command::Retry => self.missing = None,
            _ => {}
        }
        self.told.push(command);
    }
}

impl Owner for Fake {
    fn view(&self) -> View<'_> {
        View {
            status: &self.status,
            missing: self.missing.as_ref().map(|(name, looked)| Missing { name, looked }),
            model: self.card.as_ref().map(|card| Model {
                entry: self.playing,
                card,
                kind: Kind::Instrument,
                controls: &self.controls,
            }),
            entries: &self.entries,
            auditioned: self.auditioned,
            macros: &self.macros,
            voice: &self.voice,
            input_gain: &self.mixer[0],
            output_gain: &self.mixer[1],
            mix: &self.mixer[2],
            bypass: self.bypass,
            slot: self.slot,
            sample_rate_hz: self.sample_rate_hz,
            driver: self.driver,
            health: self.health,
            qualities: &self.qualities,
            quality: self.quality,
            input: Sound { levels: &self.input_levels, wave: &self.waves[0], spectrum_db: &self.spectra[0] },
            output: Sound { levels: &self.output_levels, wave: &self.waves[1], spectrum_db: &self.spectra[1] },
            pitch_hz: self.pitch_hz,
            loudness_db: self.loudness_db,
            notes: &self.notes,
            moving: self.moving,
            can_learn: self.able,
            can_locate: self.able,
            can_time: self.able,
            scale: self.scale,
            theme: self.theme,
        }
    }

    fn text(&self, knob: KnobId, value: f32) -> String {
        match knob {
            INPUT | OUTPUT => format!("{:+.1} dB", value * 60.0 - 48.0),
            _ => format!("{:.0} %", 100.0 * value),
        }
    }

    fn parse(&self, knob: KnobId, text: &str) -> Option<f32> {
        let number = |unit: &str| text.trim_end_matches(unit).trim().parse::<f32>().ok();
        match knob {
            INPUT | OUTPUT => number("dB").map(|db| (db + 48.0) / 60.0),
            _ => number("%").map(|percent| percent / 100.0),
        }
    }
}

/// A window and its owner.
pub struct Desktop {
    pub window: Window,
    pub owner: Fake,
}

impl Desktop {
    /// What the owner was told since it was last asked.
    pub fn told(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.owner.told)
    }
}

pub type Test = Harness<'static, Desktop>;

/// A window of the default size, drawn a few times so that it has settled.
pub fn open(owner: Fake) -> Test {
    let scale = owner.scale;
    let desktop = Desktop { window: Window::new(), owner };
    let mut test = Harness::builder()
        .with_size(egui::Vec2::from(SIZE) * scale)
        .with_max_steps(16)
        .with_step_dt(1.0 / 60.0)
        .with_render_cursor(false)
        .renderer(Raster::default())
        .build_ui_state(
            |ui, desktop: &mut Desktop| {
                // The harness leaves a margin, a plugin's window has none.
                let all = egui::UiBuilder::new().max_rect(ui.ctx().content_rect());
                let mut ui = ui.new_child(all);
                for command in desktop.window.show(&mut ui, &desktop.owner) {
                    desktop.owner.obey(command);
                }
            },
            desktop,
        );
    test.run_steps(4);
    test
}
