//! A view model that carries out commands and records them.

use std::path::{Path, PathBuf};

use egui::ThemePreference;
use egui_kittest::Harness;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::effects::Activity;
use ondes_engine::executor::{Device, ExecutorSelection};
use ondes_engine::model::{Card, Control, Kind};
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::{Health, LoadStatus};
use ondes_player::cabinet::bundled::BUNDLED;
use ondes_player::choice;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::library::MissingFile;
use ondes_player::midi_bindings::MidiBinding;
use ondes_player::monitor::MeterLevel;
use ondes_player::parameter::{BYPASS, CONTROL_INPUT, DRIVER, ParameterId, SOURCE};
use ondes_player::preset::list::PresetId;
use ondes_player::product::Product;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::branch_state::BranchState;
use ondes_player::rig::scene::Scenes;
use ondes_player::trust::UntrustedProgram;
use ondes_ui::{
    CabinetCommand, ChainView, DisplayCommand, EngineCommand, EngineView, ExecutorDevices,
    ExecutorView, FileCommand, HistoryCommand, HistoryView, Knob, KnobCommand, KnobsView,
    LatentRow, MacroKnob, MessagesView, MixerView, ModelCommand, ModelEntry, ModelEntryId,
    ModelView, ModelsView, PlayCommand, PlayView, PresetCommand, PresetEntry, PresetsView,
    RigCommand, RigView, SIZE, SignalView, SoundingNote, Surroundings, TunerCommand, TunerView,
    TuningView, ViewModel, Window, WindowCommand, WindowView,
};

use super::raster::Raster;

/// Folder of the fake's impulse responses.
pub const CABINETS: &str = "/home/ana/cabinets";

pub const INPUT: ParameterId = ParameterId(100);
pub const OUTPUT: ParameterId = ParameterId(101);
pub const MIX: ParameterId = ParameterId(102);

pub struct Fake {
    pub status: LoadStatus,
    pub missing: Option<MissingFile>,
    pub untrusted: Option<UntrustedProgram>,
    pub asks_for_consent: bool,
    pub notice: Option<String>,
    pub hint: Option<String>,
    pub product: Product,
    pub surroundings: Surroundings,
    pub model_path: Option<PathBuf>,
    pub kind: Kind,
    pub undo: Option<String>,
    pub redo: Option<String>,
    pub card: Option<Card>,
    pub playing: Option<ModelEntryId>,
    pub controls: Vec<Control>,
    pub models: Vec<ModelEntry>,
    pub auditioned: Option<ModelEntryId>,
    pub macros: Vec<MacroKnob>,
    pub voice: Vec<Knob>,
    pub mixer: [Knob; 3],
    pub bypass: bool,
    pub slot: CompareSlot,
    pub driver: usize,
    pub resampling: Resampling,
    pub executor: Option<ExecutorSelection>,
    pub native_supported: bool,
    /// Devices of libtorch, or why there are none, once searched for.
    pub devices: Option<Result<Vec<Device>, String>>,
    pub health: Option<Health>,
    pub qualities: Vec<String>,
    pub quality: usize,
    pub input_levels: Vec<MeterLevel>,
    pub output_levels: Vec<MeterLevel>,
    pub waves: [Vec<f32>; 2],
    pub spectra: [Vec<f32>; 2],
    pub pitch_hz: Option<f32>,
    pub loudness_db: Option<f32>,
    pub notes: Vec<SoundingNote>,
    pub tuner: TunerView,
    pub embed: bool,
    pub embed_problem: Option<String>,
    pub presets: Vec<PresetEntry>,
    pub preset: Option<PresetId>,
    pub preset_changed: bool,
    pub latents: Vec<LatentRow>,
    pub chain: Vec<Knob>,
    pub blocks: Vec<BlockState>,
    pub problems: Vec<Option<String>>,
    pub peaks: Vec<f32>,
    pub activities: Vec<Option<Activity>>,
    pub programs: Vec<(ProgramNumber, String)>,
    pub branches: [BranchState; 2],
    pub scenes: Scenes,
    pub tuning: Option<String>,
    pub remark: Option<String>,
    pub cabinet: Option<PathBuf>,
    pub automatic_cabinet: bool,
    pub cabinets: Vec<PathBuf>,
    pub cabinet_missing: Option<MissingFile>,
    pub pad: (ParameterId, ParameterId),
    pub control_source: Option<ControlSource>,
    pub follows_side_chain: Option<bool>,
    pub moving: bool,
    /// True if optional actions are available.
    pub able: bool,
    pub scale: f32,
    pub theme: ThemePreference,
    pub sample_rate_hz: f32,
    /// Commands received.
    pub commands: Vec<WindowCommand>,
}

impl Fake {
    pub fn knobs(&mut self) -> impl Iterator<Item = &mut Knob> {
        let latents = self
            .latents
            .iter_mut()
            .flat_map(|latent| [&mut latent.scale, &mut latent.offset, &mut latent.hold]);
        let macros = self.macros.iter_mut().map(|one| &mut one.knob);
        macros
            .chain(&mut self.voice)
            .chain(&mut self.chain)
            .chain(&mut self.mixer)
            .chain(latents)
    }

    /// Returns the position of a knob.
    pub fn value(&mut self, id: ParameterId) -> f32 {
        self.knobs()
            .find(|knob| knob.id == id)
            .expect("a knob")
            .value
    }

    fn handle_command(&mut self, command: WindowCommand) {
        match &command {
            WindowCommand::Knob(KnobCommand::Set(id, value)) => {
                if let Some(knob) = self.knobs().find(|knob| knob.id == *id) {
                    knob.value = *value;
                }
            }
            WindowCommand::Knob(KnobCommand::SetParameter(id, value)) => match *id {
                BYPASS => self.bypass = *value == 1.0,
                DRIVER => self.driver = *value as usize,
                SOURCE => self.control_source = Some(choice::source(*value)),
                CONTROL_INPUT => self.follows_side_chain = Some(*value == 1.0),
                _ => {}
            },
            WindowCommand::Knob(KnobCommand::BindMacro(index, control)) => {
                self.macros[*index].control = *control;
                if let Some(control) = control {
                    self.macros[*index].knob.name = self.controls[*control].name.clone();
                }
            }
            WindowCommand::Knob(KnobCommand::SetPad(x, y)) => self.pad = (*x, *y),
            WindowCommand::Model(ModelCommand::Load(id)) => self.playing = Some(*id),
            WindowCommand::Model(ModelCommand::Audition(id)) => self.auditioned = *id,
            WindowCommand::Model(ModelCommand::Favourite(id, on)) => {
                if let Some(entry) = self.models.iter_mut().find(|entry| entry.id == *id) {
                    entry.favourite = *on;
                }
            }
            WindowCommand::Model(ModelCommand::Embed(on)) => self.embed = *on,
            WindowCommand::File(FileCommand::Retry) => {
                (self.missing, self.cabinet_missing) = (None, None)
            }
            WindowCommand::File(FileCommand::AskProgram) => self.asks_for_consent = true,
            WindowCommand::File(FileCommand::AnswerProgram(run)) => {
                self.asks_for_consent = false;
                self.untrusted = self.untrusted.take().filter(|_| !run);
            }
            WindowCommand::Preset(PresetCommand::Load(id)) => {
                (self.preset, self.preset_changed) = (Some(*id), false)
            }
            WindowCommand::Preset(PresetCommand::Delete(id)) => {
                self.presets.retain(|preset| preset.id != *id)
            }
            WindowCommand::Cabinet(CabinetCommand::Load(path)) => {
                (self.cabinet, self.cabinet_missing) = (Some(path.clone()), None)
            }
            WindowCommand::Cabinet(CabinetCommand::LoadBundled(index)) => {
                self.cabinet = Some(BUNDLED[*index].name.into())
            }
            WindowCommand::Cabinet(CabinetCommand::Remove) => {
                (self.cabinet, self.cabinet_missing) = (None, None)
            }
            WindowCommand::Cabinet(CabinetCommand::Automatic) => self.automatic_cabinet = true,
            WindowCommand::Rig(RigCommand::Change(blocks)) => {
                self.blocks.clone_from(blocks);
            }
            WindowCommand::Play(PlayCommand::RemoveTuning) => self.tuning = None,
            WindowCommand::History(HistoryCommand::RecallSlot(slot)) => self.slot = *slot,
            WindowCommand::Tuner(TunerCommand::Open(open)) => self.tuner.open = *open,
            WindowCommand::Tuner(TunerCommand::Mute(mute)) => self.tuner.mute = *mute,
            WindowCommand::Tuner(TunerCommand::SetReference(hz)) => self.tuner.reference_hz = *hz,
            WindowCommand::Engine(EngineCommand::SetResampling(one)) => self.resampling = *one,
            WindowCommand::Engine(EngineCommand::SetExecutor(one)) => self.executor = Some(*one),
            WindowCommand::Display(DisplayCommand::Dismiss) if self.notice.is_some() => {
                self.notice = None
            }
            WindowCommand::Display(DisplayCommand::Dismiss) => self.hint = None,
            WindowCommand::Display(DisplayCommand::SetScale(scale)) => self.scale = *scale,
            WindowCommand::Display(DisplayCommand::SetTheme(theme)) => self.theme = *theme,
            _ => {}
        }
        self.commands.push(command);
    }
}

impl ViewModel for Fake {
    fn view(&self) -> WindowView<'_> {
        WindowView {
            product: self.product,
            surroundings: self.surroundings,
            messages: MessagesView {
                status: &self.status,
                missing: self.missing.as_ref(),
                untrusted: self.untrusted.as_ref(),
                asks_for_consent: self.asks_for_consent,
                notice: self.notice.as_deref(),
                hint: self.hint.as_deref(),
            },
            history: HistoryView {
                undo: self.undo.as_deref(),
                redo: self.redo.as_deref(),
                slot: self.slot,
            },
            model: self.card.as_ref().map(|card| ModelView {
                entry: self.playing,
                path: self.model_path.as_deref(),
                card,
                kind: self.kind,
                controls: &self.controls,
                embed: self.embed,
                embed_problem: self.embed_problem.as_deref(),
            }),
            models: ModelsView {
                list: &self.models,
                auditioned: self.auditioned,
            },
            presets: PresetsView {
                list: &self.presets,
                current: self.preset,
                name: self
                    .presets
                    .iter()
                    .find(|one| Some(one.id) == self.preset)
                    .map(|one| one.name.as_str()),
                changed: self.preset_changed,
                can_save: self.able,
            },
            knobs: KnobsView {
                macros: &self.macros,
                voice: &self.voice,
                tuning: self.tuning.as_deref().map(|name| TuningView {
                    name,
                    problem: None,
                }),
                latents: &self.latents,
                pad: self.pad,
            },
            rig: RigView {
                blocks: &self.blocks,
                problems: &self.problems,
                peaks: &self.peaks,
                activities: &self.activities,
                branches: self.branches,
                scenes: &self.scenes,
                programs: &self.programs,
                scene_midi: [
                    MidiBinding::None,
                    MidiBinding::None,
                    MidiBinding::Controller(82),
                ],
            },
            chain: ChainView {
                knobs: &self.chain,
                remark: self.remark.as_deref(),
                cabinet: self
                    .cabinet
                    .as_deref()
                    .and_then(Path::file_stem)
                    .and_then(|name| name.to_str()),
                path: self.cabinet.as_deref().filter(|path| path.is_absolute()),
                automatic: self.automatic_cabinet,
                missing: self.cabinet_missing.as_ref(),
                cabinets: &self.cabinets,
                folder: Some(Path::new(CABINETS)),
                accepts_audio_files: true,
            },
            mixer: MixerView {
                input_gain: &self.mixer[0],
                output_gain: &self.mixer[1],
                mix: &self.mixer[2],
                bypass: self.bypass,
                input: SignalView {
                    levels: &self.input_levels,
                    wave: &self.waves[0],
                    spectrum_db: &self.spectra[0],
                },
                output: SignalView {
                    levels: &self.output_levels,
                    wave: &self.waves[1],
                    spectrum_db: &self.spectra[1],
                },
                sample_rate_hz: self.sample_rate_hz,
            },
            play: PlayView {
                pitch_hz: self.pitch_hz,
                loudness_db: self.loudness_db,
                notes: &self.notes,
                control_source: self.control_source,
                follows_side_chain: self.follows_side_chain,
                can_play: self.able && self.kind == Kind::Instrument,
            },
            tuner: self.tuner,
            engine: EngineView {
                driver: self.driver,
                resampling: self.resampling,
                executor: self.executor.map(|selection| ExecutorView {
                    selection,
                    native_supported: self.native_supported,
                    devices: match &self.devices {
                        None => ExecutorDevices::Unknown,
                        Some(Ok(devices)) => ExecutorDevices::Available(devices),
                        Some(Err(reason)) => ExecutorDevices::Unavailable(reason),
                    },
                }),
                program: None,
                health: self.health,
                qualities: &self.qualities,
                quality: self.quality,
            },
            moving: self.moving,
            can_browse: self.able,
            scale: self.scale,
            theme: self.theme,
        }
    }

    fn format_value(&self, knob: ParameterId, value: f32) -> String {
        match knob {
            INPUT | OUTPUT => format!("{:+.1} dB", value * 60.0 - 48.0),
            _ => format!("{:.0} %", 100.0 * value),
        }
    }

    fn parse_value(&self, knob: ParameterId, text: &str) -> Option<f32> {
        let number = |unit: &str| text.trim_end_matches(unit).trim().parse::<f32>().ok();
        match knob {
            INPUT | OUTPUT => number("dB").map(|db| (db + 48.0) / 60.0),
            _ => number("%").map(|percent| percent / 100.0),
        }
    }
}

/// A window and its view model.
pub struct Desktop {
    pub window: Window,
    pub model: Fake,
}

impl Desktop {
    /// Returns the commands since the last call.
    pub fn commands(&mut self) -> Vec<WindowCommand> {
        std::mem::take(&mut self.model.commands)
    }
}

pub type Test = Harness<'static, Desktop>;

/// Opens a window of the default size and draws a few frames.
pub fn open(model: Fake) -> Test {
    let size = egui::Vec2::from(SIZE) * model.scale;
    open_in(model, size)
}

/// Opens a window of a size in pixels and draws a few frames.
pub fn open_in(model: Fake, size: egui::Vec2) -> Test {
    let desktop = Desktop {
        window: Window::new(),
        model,
    };
    let mut test = Harness::builder()
        .with_size(size)
        .with_max_steps(16)
        .with_step_dt(1.0 / 60.0)
        .with_render_cursor(false)
        .renderer(Raster::default())
        .build_ui_state(
            |ui, desktop: &mut Desktop| {
                // Removes the harness's margin; a plugin's window has none.
                let all = egui::UiBuilder::new().max_rect(ui.ctx().content_rect());
                let mut ui = ui.new_child(all);
                for command in desktop.window.show(&mut ui, &desktop.model) {
                    desktop.model.handle_command(command);
                }
            },
            desktop,
        );
    test.run_steps(4);
    test
}
