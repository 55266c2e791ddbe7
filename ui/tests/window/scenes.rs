//! Scenes: view models with data.

use std::f32::consts::TAU;
use std::path::PathBuf;
use std::time::Duration;

use egui::ThemePreference;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::model::{Card, Control, Curve, Kind, Measure};
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::histogram::Percentiles;
use ondes_engine::realtime::{Driven, Health, LoadStatus};
use ondes_player::compare_slots::CompareSlot;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::monitor::MeterLevel;
use ondes_player::parameter::ParameterId;
use ondes_player::preset::list::PresetId;
use ondes_player::product::Product;
use ondes_ui::{
    EntryOrigin, Knob, LatentRow, MacroKnob, ModelEntry, ModelEntryId, PresetEntry, SoundingNote,
    Surroundings, TunerView,
};

use super::fake::{CABINETS, Fake, INPUT, MIX, OUTPUT};

/// Sample rate of the static signals.
const RATE_HZ: f32 = 48_000.0;

pub fn knob(id: ParameterId, name: &str, value: f32) -> Knob {
    Knob {
        id,
        name: name.into(),
        value,
        default: 0.5,
        steps: 0,
        choices: Vec::new(),
        tooltip: String::new(),
        midi: Some(MidiBinding::None),
    }
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

fn entry(id: u64, name: &str, author: &str, kind: Kind, origin: EntryOrigin) -> ModelEntry {
    ModelEntry {
        id: ModelEntryId(id),
        name: name.into(),
        author: author.into(),
        kind,
        origin,
        favourite: false,
        recent: None,
        about: format!("What {name} is, said in a sentence"),
        quality: String::new(),
        path: (origin == EntryOrigin::User)
            .then(|| format!("/home/ana/models/{name}.ondes").into()),
    }
}

fn voice() -> Vec<Knob> {
    let choices = ["Poly", "Mono", "Legato"].map(str::to_owned).to_vec();
    vec![
        knob(ParameterId(50), "Glide", 0.3),
        Knob {
            steps: 3,
            ..knob(ParameterId(51), "Mode", 0.0)
        },
        Knob {
            steps: 3,
            choices,
            default: 0.0,
            ..knob(ParameterId(52), "Voices", 0.5)
        },
    ]
}

fn presets() -> Vec<PresetEntry> {
    let preset = |id, name: &str, about: &str, origin| PresetEntry {
        id: PresetId(id),
        name: name.into(),
        about: about.into(),
        origin,
        path: (origin == EntryOrigin::User)
            .then(|| format!("/home/ana/presets/{name}.ondes-preset").into()),
        problem: None,
    };
    let mut presets = vec![
        preset(
            1,
            "Concert hall",
            "Ondes · warm, wide",
            EntryOrigin::Bundled,
        ),
        preset(2, "Close bow", "Ondes · dry, breathy", EntryOrigin::Bundled),
        preset(3, "Far away", "Ondes · dark", EntryOrigin::Bundled),
        preset(4, "My evening strings", "Ana · slow", EntryOrigin::User),
        preset(5, "Old bell choir", "Ana", EntryOrigin::User),
    ];
    presets[4].problem = Some("its model is missing".into());
    presets
}

impl Fake {
    /// An empty view model.
    pub fn empty() -> Self {
        Self {
            status: LoadStatus::Empty,
            missing: None,
            untrusted: None,
            blocks: Vec::new(),
            problems: Vec::new(),
            peaks: Vec::new(),
            activities: Vec::new(),
            programs: Vec::new(),
            branches: Default::default(),
            scenes: Default::default(),
            asks_for_consent: false,
            notice: None,
            hint: None,
            product: Product::Instrument,
            surroundings: Surroundings::Host,
            model_path: None,
            kind: Kind::Instrument,
            undo: None,
            redo: None,
            card: None,
            playing: None,
            controls: Vec::new(),
            models: Vec::new(),
            auditioned: None,
            macros: Vec::new(),
            voice: Vec::new(),
            mixer: [
                knob(INPUT, "Gain in", 0.8),
                knob(OUTPUT, "Gain out", 0.8),
                knob(MIX, "Mix", 1.0),
            ],
            bypass: false,
            slot: CompareSlot::A,
            driver: 0,
            resampling: Resampling::default(),
            executor: None,
            native_supported: true,
            devices: None,
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
            tuner: TunerView {
                available: false,
                open: false,
                mute: false,
                reference_hz: 440.0,
                pitch_hz: None,
            },
            embed: false,
            embed_problem: None,
            presets: Vec::new(),
            preset: None,
            preset_changed: false,
            latents: Vec::new(),
            chain: Vec::new(),
            tuning: None,
            remark: None,
            cabinet: None,
            automatic_cabinet: false,
            cabinets: Vec::new(),
            cabinet_missing: None,
            pad: (ParameterId(0), ParameterId(1)),
            control_source: None,
            follows_side_chain: None,
            moving: false,
            able: true,
            scale: 1.0,
            theme: ThemePreference::Dark,
            sample_rate_hz: RATE_HZ,
            commands: Vec::new(),
        }
    }

    /// A violin being played.
    pub fn playing() -> Self {
        let names = [
            "Brightness",
            "Bow noise",
            "Vibrato",
            "Vibrato rate",
            "Body",
            "Attack",
            "Room",
            "Air",
            "Detune",
        ];
        let controls: Vec<Control> = names
            .iter()
            .map(|name| control(name, "Says what it does"))
            .collect();
        let values = [0.62, 0.2, 0.35, 0.5, 0.74, 0.1, 0.28];
        let mut macros: Vec<MacroKnob> = (0..8)
            .map(|n| {
                let name = if n < 7 {
                    names[n].to_owned()
                } else {
                    "Macro 8".into()
                };
                let value = values.get(n).copied().unwrap_or_default();
                MacroKnob {
                    knob: knob(ParameterId(n as u32), &name, value),
                    control: (n < 7).then_some(n),
                    turns: n < 7,
                }
            })
            .collect();
        macros[2].knob.midi = Some(MidiBinding::Controller(1));
        let mut entries = vec![
            entry(1, "Violin", "Ondes", Kind::Instrument, EntryOrigin::Bundled),
            entry(2, "Cello", "Ondes", Kind::Instrument, EntryOrigin::Bundled),
            entry(3, "Flute", "Ondes", Kind::Instrument, EntryOrigin::Bundled),
            entry(4, "Tube amp", "Ondes", Kind::Effect, EntryOrigin::Bundled),
            entry(5, "Murmur", "Ondes", Kind::Generator, EntryOrigin::Bundled),
            entry(6, "Tape voice", "M. Rey", Kind::Codec, EntryOrigin::User),
            entry(
                7,
                "Grandmother's piano",
                "M. Rey",
                Kind::Instrument,
                EntryOrigin::User,
            ),
            entry(8, "Fuzz box", "M. Rey", Kind::Effect, EntryOrigin::User),
        ];
        entries[3].favourite = true;
        entries[0].recent = Some(0);
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
            dropouts: 0,
            invalid_blocks: 0,
            invalid_output: None,
            commands_lost: 0,
            queued_samples: 256,
            inference_time: Percentiles {
                count: 9000,
                p50: ms(0.61),
                p95: ms(0.8),
                p99: ms(1.2),
                p999: ms(1.9),
                worst: ms(2.4),
            },
        };
        let tone = |harmonics: usize| -> Vec<f32> {
            let sum = |n: usize| {
                (1..=harmonics)
                    .map(|h| (TAU * 440.0 * h as f32 * n as f32 / RATE_HZ).sin() / h as f32)
                    .sum::<f32>()
            };
            (0..1024).map(|n| 0.45 * sum(n)).collect()
        };
        let spectrum = |harmonics: usize, floor: f32| -> Vec<f32> {
            let bin_hz = RATE_HZ / 4096.0;
            let hump = |bin: usize, h: usize| {
                let off = (bin as f32 * bin_hz - 440.0 * h as f32) / bin_hz;
                -8.0 - 9.0 * (h as f32).log2() - 1.5 * off * off
            };
            let at = |bin: usize| {
                (1..=harmonics)
                    .map(|h| hump(bin, h))
                    .fold(floor - bin as f32 / 120.0, f32::max)
            };
            (0..2049).map(at).collect()
        };
        let level = |peak_db, rms_db| MeterLevel { peak_db, rms_db };
        Self {
            status: LoadStatus::Ready,
            undo: Some("Vibrato".into()),
            card: Some(card),
            playing: Some(ModelEntryId(1)),
            controls,
            models: entries,
            macros,
            voice: voice(),
            presets: presets(),
            preset: Some(PresetId(2)),
            preset_changed: true,
            embed: false,
            pad: (ParameterId(0), ParameterId(4)),
            control_source: Some(ControlSource::Notes),
            follows_side_chain: None,
            health: Some(health),
            qualities: ["Full", "Balanced", "Light", "Auto: lite"]
                .map(Into::into)
                .into(),
            input_levels: vec![level(-18.2, -27.0), level(-20.1, -28.4)],
            output_levels: vec![level(-5.8, -14.0), level(-6.3, -14.9)],
            waves: [tone(1), tone(7)],
            spectra: [spectrum(2, -84.0), spectrum(24, -72.0)],
            pitch_hz: Some(441.8),
            loudness_db: Some(-17.3),
            notes: vec![
                SoundingNote {
                    key: 57,
                    velocity: 0.4,
                },
                SoundingNote {
                    key: 69,
                    velocity: 0.9,
                },
            ],
            moving: true,
            ..Self::empty()
        }
    }

    /// An amplifier with its signal chain.
    pub fn amplifying() -> Self {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let one = |n: u32, name: &str, value: f32| knob(ParameterId(300 + n), name, value);
        let of = |n: u32, name: &str, choices: &[&str], value: f32| Knob {
            steps: choices.len() as u32,
            choices: names(choices),
            default: 0.0,
            ..one(n, name, value)
        };
        let chain = vec![
            one(0, "Gate", 0.4),
            one(1, "Bass", 0.5),
            one(2, "Middle", 0.62),
            one(3, "Treble", 0.7),
            of(4, "Tone", &["After", "Before"], 0.0),
            Knob {
                default: 1.0,
                ..one(5, "Cabinet", 1.0)
            },
            of(6, "Block DC", &["Off", "On"], 1.0),
            of(7, "Oversampling", &["1×", "2×", "4×"], 0.5),
            Knob {
                default: 1.0,
                ..one(8, "Size: lite", 0.3)
            },
            Knob {
                default: 0.0,
                ..one(9, "Interface level", 0.65)
            },
            of(
                10,
                "Output level",
                &["Raw", "Normalised", "Calibrated"],
                0.5,
            ),
        ];
        let files = ["Blue open back", "Four twelves", "Room mike"];
        let cabinets: Vec<PathBuf> = files
            .iter()
            .map(|name| format!("{CABINETS}/{name}.wav").into())
            .collect();
        let cabinet = cabinets.get(1).cloned();
        let remark = Some("Levels are unchanged: the model states no loudness.".to_owned());
        Self {
            product: Product::Effect,
            kind: Kind::Effect,
            card: Some(Card {
                name: "Tube amp".into(),
                description: "The first valve of an amplifier, driven hard, with its tone stack."
                    .into(),
                author: "Ondes".into(),
                ..Card::default()
            }),
            playing: Some(ModelEntryId(4)),
            controls: Vec::new(),
            chain,
            remark,
            cabinet,
            cabinets,
            control_source: None,
            follows_side_chain: None,
            able: true,
            notes: Vec::new(),
            tuner: TunerView {
                available: true,
                ..Self::empty().tuner
            },
            ..Self::playing()
        }
    }

    /// An amplifier with the tuner open: a low E that is flat.
    pub fn tuning() -> Self {
        let tuner = TunerView {
            available: true,
            open: true,
            mute: false,
            reference_hz: 440.0,
            pitch_hz: Some(82.0),
        };
        Self {
            tuner,
            ..Self::amplifying()
        }
    }

    /// A codec with changed latents.
    pub fn bending() -> Self {
        let latents = (1..=8)
            .map(|n| {
                let part = |what: &str, number: u32, value: f32, default: f32| Knob {
                    default,
                    ..knob(
                        ParameterId(10 * n + 200 + number),
                        &format!("Latent {n} {what}"),
                        value,
                    )
                };
                let spread = (n as f32 * 1.7).sin();
                LatentRow {
                    name: format!("Latent {n}"),
                    scale: part("scale", 0, 0.5 + 0.3 * spread * spread, 0.5),
                    offset: part("offset", 1, 0.5 + 0.2 * spread, 0.5),
                    hold: Knob {
                        steps: 2,
                        ..part("hold", 2, if n == 3 { 1.0 } else { 0.0 }, 0.0)
                    },
                    value: spread,
                }
            })
            .collect();
        Self {
            latents,
            pad: (ParameterId(211), ParameterId(0)),
            ..Self::playing()
        }
    }
}
