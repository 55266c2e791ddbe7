//! What a window shows of an instance, for [`ondes_ui`]'s panels.
//!
//! In reading order: a [`Desk`] is what the panels show, [`commands`] what becomes of what the user does, `files` where that is
//! with a file. [`monitor`] is what the audio thread shows and [`spectrum`] a picture of it, [`entries`] the list of models,
//! [`presets`] that of presets, [`latents`] the rows of a codec's, [`cabinets`] the impulse responses that stand around a model,
//! [`devices`] where libtorch can compute. A [`setting`] is all that is heard, and [`compare`] the slots A and B for two of them.
//! Everything but the monitor and the slots is made when the window opens and gone when it closes.

pub mod cabinets;
pub mod commands;
pub mod compare;
pub mod devices;
pub mod entries;
mod files;
pub mod latents;
pub mod monitor;
pub mod presets;
pub mod setting;
pub mod spectrum;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use egui::ThemePreference;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{Followed, Source};
use ondes_engine::realtime::{Health, Quality, Status};
use ondes_engine::wish::Wish;
use ondes_ui::{Browse, Chain, EntryId, Knob, KnobId, Level, Macro, Midi, Note, Owner, Running, Sound, View, Window};

use self::cabinets::Cabinets;
use self::devices::Devices;
use self::entries::{Entries, Origin};
use self::latents::Latents;
use self::presets::Presets;
use self::spectrum::{SAMPLES, Spectrum};
use crate::board::{Board, Setter};
use crate::choice;
use crate::dialog::{self, Dialog};
use crate::library::{self, Missing, Reference};
use crate::macros::MACROS;
use crate::parameter::{
    BLOCK_DC, BYPASS, CABINET, GATE, GLIDE, INPUT_GAIN, INTERFACE_LEVEL, MIX, MODE, OUTPUT_GAIN, OUTPUT_LEVEL,
    OVERSAMPLING, PARAMETERS, Parameter, QUALITY, SIZE, TONE, TONE_GAINS, TRANSPOSE, TUNE, VOICES,
};
use crate::preset::{Product, store};
use crate::shared::Shared;
use crate::state::{Look, Theme};

/// Why a model cannot be saved with a project.
const TOO_LARGE: &str = "The model is larger than 16 MB.";
/// Why nothing else is to be chosen for an instrument.
const OWN_CODE: &str = "An instrument is run by our own code.";
/// Samples of the wave that is given to the window.
const WAVE: usize = 2048;
/// A host that has not played for so long does not play.
const PAUSE: Duration = Duration::from_millis(500);

/// An instance as it was when this was last refreshed, with all that only its window needs.
pub struct Desk {
    shared: Arc<Shared>,
    board: Arc<dyn Board>,
    entries: Entries,
    presets: Presets,
    cabinets: Cabinets,
    devices: Devices,
    /// What is auditioned, and since when it is heard.
    auditioned: Option<(EntryId, Instant)>,
    /// Readers of files that are under way.
    errands: Vec<JoinHandle<()>>,
    /// A dialog that is open, and what for.
    dialog: Option<(Browse, Dialog)>,
    can_browse: bool,
    /// What the user should know, until they have read it.
    hint: Option<&'static str>,
    /// What is to be counted as loaded lately, once it is read.
    loading: Option<Origin>,
    status: Status,
    missing: Option<Missing>,
    notice: Option<String>,
    model: Option<Arc<Model>>,
    macros: Vec<Macro>,
    latents: Latents,
    voice: Vec<Knob>,
    chain: Vec<Knob>,
    /// What the user should know of those.
    remark: Option<String>,
    cabinet: Option<Reference>,
    missing_cabinet: Option<Missing>,
    mixer: [Knob; 3],
    running: Wish,
    health: Option<Health>,
    /// How much of a model with variants may play, as it is offered; empty where there is no choice.
    qualities: Vec<String>,
    followed: Option<Followed>,
    input: Side,
    output: Side,
    spectrum: Spectrum,
    notes: Vec<Note>,
    heard: (usize, Instant),
    moving: bool,
    look: Look,
}

struct Side {
    levels: Vec<Level>,
    samples: Vec<f32>,
    spectrum_db: Vec<f32>,
}

impl Side {
    fn new() -> Self {
        Self { levels: Vec::new(), samples: vec![0.0; SAMPLES], spectrum_db: Vec::new() }
    }

    fn sound(&self) -> Sound<'_> {
        let wave = &self.samples[SAMPLES - WAVE..];
        Sound { levels: &self.levels, wave, spectrum_db: &self.spectrum_db }
    }
}

impl Desk {
    /// A desk for an instance, whose parameters stand on that board.
    #[must_use]
    pub fn new(shared: Arc<Shared>, board: Arc<dyn Board>, entries: Entries) -> Self {
        // A sound that plays the model has neither keys nor voices.
        let suits = |parameter: &Parameter| shared.product == Product::Instrument || !parameter.notes_only;
        let knob = |id| Parameter::of(id).map(|parameter| parameter.knob(id, parameter.default()));
        let voice = [TRANSPOSE, TUNE, MODE, GLIDE, VOICES];
        let voice = voice.into_iter().filter(|id| Parameter::of(*id).is_some_and(suits)).filter_map(knob).collect();
        let mixer = [INPUT_GAIN, OUTPUT_GAIN, MIX].map(|id| PARAMETERS[id.0 as usize].knob(id, 0.0));
        let heard = (shared.monitor.heard(), Instant::now());
        let presets = Presets::new(shared.product, store::folders());
        let mut desk = Self {
            shared,
            board,
            entries,
            presets,
            cabinets: Cabinets::of_user(),
            devices: Devices::default(),
            auditioned: None,
            errands: Vec::new(),
            dialog: None,
            can_browse: dialog::is_available(),
            hint: None,
            loading: None,
            status: Status::Empty,
            missing: None,
            notice: None,
            model: None,
            macros: Vec::new(),
            latents: Latents::default(),
            voice,
            chain: Vec::new(),
            remark: None,
            cabinet: None,
            missing_cabinet: None,
            mixer,
            running: Wish::default(),
            health: None,
            qualities: Vec::new(),
            followed: None,
            input: Side::new(),
            output: Side::new(),
            spectrum: Spectrum::new(),
            notes: Vec::new(),
            heard,
            moving: false,
            look: Look::default(),
        };
        desk.refresh();
        desk
    }

    /// Looks at everything again. Gives when it should be looked at once more though nothing sounds.
    pub fn refresh(&mut self) -> Option<Duration> {
        files::answered(self);
        let shared = &self.shared;
        let scanning = self.entries.poll() | self.presets.poll() | self.cabinets.poll() | self.devices.poll();
        self.errands.retain(|errand| !errand.is_finished());
        self.status = match &self.presets.problem {
            Some(problem) => Status::Failed(problem.clone()),
            None => shared.progress(),
        };
        (self.missing, self.model, self.look) = (shared.missing(), shared.model(), shared.look());
        (self.notice, self.running) = (shared.notice(), shared.running());
        (self.cabinet, self.missing_cabinet) = (shared.cabinet_reference(), shared.missing_cabinet());
        (self.health, self.followed) = (shared.remote.health(), shared.remote.followed());
        self.qualities = self.qualities();
        if !shared.is_brief() && self.errands.is_empty() {
            self.auditioned = None;
        }
        if self.errands.is_empty()
            && let Some(origin) = self.loading.take()
            && !matches!(self.status, Status::Failed(_))
        {
            self.entries.set_recent(&origin);
        }
        self.turn();
        self.listen();
        let busy = scanning || !self.errands.is_empty() || self.status == Status::Loading;
        let busy = busy.then_some(Duration::from_millis(50));
        let busy = busy.or(self.dialog.as_ref().map(|_| Duration::from_millis(100)));
        let busy = busy.or(self.shared.controllers.is_learning().then_some(Duration::from_millis(100)));
        busy.or(self.auditioned.map(|_| Duration::from_millis(200)))
    }

    fn turn(&mut self) {
        (self.chain, self.remark) = (self.around(), self.remark());
        let controllers = &self.shared.controllers;
        let midi = |knob| Parameter::of(knob).map_or(Midi::None, |parameter| controllers.binding(parameter.id));
        for knob in self.voice.iter_mut().chain(&mut self.chain).chain(&mut self.mixer) {
            knob.value = self.board.normalized(knob.id).unwrap_or(knob.default);
            knob.midi = midi(knob.id);
        }
        self.latents.refresh(&self.shared);
        let controls = self.latents.controls().all();
        self.macros.clear();
        for index in 0..MACROS {
            let id = KnobId(index as u32);
            let Some((parameter, value)) = Parameter::of(id).zip(self.board.value(id)) else { continue };
            let mut knob = Knob { midi: midi(id), ..parameter.knob(id, value) };
            let name = self.shared.bound(index);
            let control = name.as_ref().and_then(|name| controls.iter().position(|control| control.name == *name));
            if let Some(name) = name {
                knob.name = name;
            }
            self.macros.push(Macro { knob, control });
        }
    }

    fn listen(&mut self) {
        let monitor = &self.shared.monitor;
        let now = (monitor.heard(), Instant::now());
        if now.0 != self.heard.0 {
            self.heard = now;
        }
        let Self { input, output, .. } = self;
        monitor.levels([&mut input.levels, &mut output.levels]);
        monitor.waves([&mut input.samples, &mut output.samples]);
        let sounds = |side: &Side| side.samples.iter().any(|sample| sample.abs() > 1e-5);
        self.moving = self.heard.1.elapsed() < PAUSE && (sounds(input) || sounds(output));
        if !self.moving {
            monitor.sleep();
        }
        for side in [input, output] {
            self.spectrum.of(&side.samples, &mut side.spectrum_db);
        }
        self.notes.clear();
        self.notes.extend(monitor.notes().map(|(key, velocity)| Note { key, velocity }));
    }

    /// The entry of what is played.
    #[must_use]
    pub fn playing(&self) -> Option<EntryId> {
        self.entries.with_hash(self.model.as_ref()?.content_hash())
    }
}

impl Owner for Desk {
    fn view(&self) -> View<'_> {
        let [input_gain, output_gain, mix] = &self.mixer;
        let source = self.board.source();
        let model = self.model.as_deref().map(|model| {
            let header = model.header();
            let controls = self.latents.controls().all();
            ondes_ui::Model { entry: self.playing(), card: &header.card, kind: header.kind, controls }
        });
        // What is no instrument plays what comes in.
        let is_played = self.model.as_ref().is_none_or(|model| model.header().kind == Kind::Instrument);
        View {
            status: &self.status,
            missing: self.missing.as_ref().map(|Missing { name, looked }| ondes_ui::Missing { name, looked }),
            notice: self.hint.or(self.notice.as_deref()),
            model,
            entries: &self.entries.list,
            auditioned: self.auditioned.map(|(id, _)| id),
            embed: self.model.as_ref().map(|_| self.shared.embedding()),
            embed_problem: self.model.as_ref().filter(|model| !library::may_travel(model)).map(|_| TOO_LARGE),
            presets: &self.presets.shown,
            preset: self.presets.current,
            changed: self.presets.changed(&*self.board, &self.shared),
            can_save_presets: self.presets.can_save(),
            macros: &self.macros,
            voice: &self.voice,
            latents: &self.latents.rows,
            chain: Some(Chain {
                knobs: &self.chain,
                remark: self.remark.as_deref(),
                cabinet: self.cabinet.as_ref().map(|cabinet| cabinet.name.as_str()),
                path: self.cabinet.as_ref().and_then(|cabinet| cabinet.path.as_deref()),
                missing: self
                    .missing_cabinet
                    .as_ref()
                    .map(|Missing { name, looked }| ondes_ui::Missing { name, looked }),
                cabinets: &self.cabinets.list,
                folder: self.cabinets.folder(),
                takes_sounds: self.takes_sounds(),
            }),
            pad: Some(self.pad()),
            input_gain,
            output_gain,
            mix,
            bypass: self.board.value(BYPASS).is_some_and(|value| value > 0.5),
            slot: self.shared.compare.slot(),
            sample_rate_hz: self.shared.monitor.rate_hz(),
            driver: self.board.driver(),
            running: self.running(),
            health: self.health,
            qualities: &self.qualities,
            quality: self.board.value(QUALITY).unwrap_or_default() as usize,
            input: self.input.sound(),
            output: self.output.sound(),
            pitch_hz: self
                .followed
                .and_then(|followed| followed.pitch)
                .map(|pitch| 440.0 * ((pitch - 69.0) / 12.0).exp2()),
            loudness_db: self.followed.map(|followed| followed.loudness_db),
            notes: &self.notes,
            played_by: (is_played && self.shared.product == Product::Instrument).then_some(match source {
                Source::Notes => ondes_ui::PlayedBy::Notes,
                Source::Sound => ondes_ui::PlayedBy::Input,
            }),
            can_play: is_played && source == Source::Notes,
            keys_on_start: false,
            moving: self.moving,
            can_learn: true,
            can_browse: self.can_browse,
            can_time: false,
            scale: self.look.scale,
            theme: match self.look.theme {
                Theme::Dark => ThemePreference::Dark,
                Theme::Light => ThemePreference::Light,
                Theme::System => ThemePreference::System,
            },
        }
    }

    fn text(&self, knob: KnobId, value: f32) -> String {
        let Some(text) = self.shared.text(knob, value) else { return String::new() };
        // The knob says already what it turns.
        let bound = self.macros.get(knob.0 as usize).filter(|one| one.knob.id == knob && one.control.is_some());
        bound
            .and_then(|one| text.strip_prefix(one.knob.name.as_str()))
            .map_or(text.clone(), |rest| rest.trim().to_owned())
    }

    fn parse(&self, knob: KnobId, text: &str) -> Option<f32> {
        self.shared.parse(knob, text)
    }
}

impl Desk {
    /// How much of a model with variants may play, with the one that the load has chosen; none where there is no choice.
    fn qualities(&self) -> Vec<String> {
        if self.model.as_ref().is_none_or(|model| model.header().variants.is_empty()) {
            return Vec::new();
        }
        let variant = self.shared.remote.variant();
        let name = |(place, name): (usize, &&str)| match &variant {
            Some(variant) if choice::quality(place as f32) == Quality::Auto => format!("{name}: {variant}"),
            _ => (*name).to_owned(),
        };
        choice::QUALITIES.names.iter().enumerate().map(name).collect()
    }

    /// What runs the network, where there is one.
    fn running(&self) -> Option<Running<'_>> {
        let model = self.model.as_ref()?;
        let devices = if self.is_instrument() { ondes_ui::Devices::None(OWN_CODE) } else { self.devices.shown() };
        Some(Running { wish: self.running, natively: model.program().is_none(), devices })
    }

    fn look_for_devices(&mut self) {
        if !self.is_instrument() {
            self.devices.look();
        }
    }

    /// What can be turned around the model.
    fn around(&self) -> Vec<Knob> {
        let header = self.model.as_ref().map(|model| model.header());
        let [bass, middle, treble] = TONE_GAINS;
        let all =
            [GATE, bass, middle, treble, TONE, CABINET, BLOCK_DC, OVERSAMPLING, SIZE, INTERFACE_LEVEL, OUTPUT_LEVEL];
        let suits = |knob: &KnobId| match *knob {
            // Nothing comes to an instrument that notes play.
            GATE | TONE => self.takes_sounds(),
            OVERSAMPLING | INTERFACE_LEVEL | OUTPUT_LEVEL => self.is_effect(),
            SIZE => header.is_some_and(|header| !header.variants.is_empty()),
            _ => true,
        };
        let knob = |id| {
            let mut knob = Parameter::of(id).map(|parameter| parameter.knob(id, parameter.default()))?;
            if id == BLOCK_DC {
                knob.choices = ["Off", "On"].map(str::to_owned).to_vec();
            }
            if id == SIZE {
                let variant = header.and_then(|header| header.variant(self.board.size()));
                knob.name = format!("Size: {}", variant.map_or("whole", |variant| variant.name.as_str()));
            }
            Some(knob)
        };
        all.into_iter().filter(suits).filter_map(knob).collect()
    }

    /// What of the levels that were asked for the model does not tell.
    fn remark(&self) -> Option<String> {
        let model = self.model.as_ref().filter(|_| self.is_effect())?;
        let levels = model.header().card.levels.unwrap_or_default();
        let untold: Vec<&str> = self.board.knobs().calibration.untold(levels).collect();
        (!untold.is_empty()).then(|| format!("Levels stay as they are: {}.", untold.join(", ")))
    }

    fn is_instrument(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.header().kind == Kind::Instrument)
    }

    fn is_effect(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.header().kind == Kind::Effect)
    }

    /// Whether a sound comes in here: one that is dropped is a cabinet's.
    fn takes_sounds(&self) -> bool {
        self.shared.product == Product::Effect || self.shared.hears_input()
    }

    /// What the pad turns, across and up.
    fn pad(&self) -> (KnobId, KnobId) {
        let knob = |id: &str| Parameter::named(id).or_else(|| self.latents.controls().knob(id));
        let chosen = self.shared.pad().and_then(|[across, up]| Some((knob(&across)?, knob(&up)?)));
        chosen.unwrap_or((KnobId(0), KnobId(1)))
    }

    /// What a project knows that knob by: the id of its parameter, or the name of the latent's control.
    fn id_of(&self, knob: KnobId) -> Option<String> {
        let bend = || Some(self.latents.controls().bend(knob)?.name.clone());
        Parameter::of(knob).map(|parameter| parameter.id.to_owned()).or_else(bend)
    }
}

/// Draws one frame of a desk's window into `ui`, which is all of it, and does what the user did there. Another frame is
/// asked for where something is under way.
pub fn show(desk: &mut Desk, window: &mut Window, ui: &mut egui::Ui, setter: &impl Setter) {
    let again = desk.refresh();
    commands::tick(desk);
    presets::tick(desk, setter);
    let commands = window.show(ui, desk);
    if !commands.is_empty() {
        ui.ctx().request_repaint();
    }
    let asked = !commands.is_empty();
    commands.into_iter().for_each(|command| commands::obey(desk, setter, command));
    if asked {
        // Where the host lets the instance sleep, nobody would take the keys.
        desk.shared.rest.wake();
    }
    if let Some(again) = again {
        ui.ctx().request_repaint_after(again);
    }
}

/// Ends what is going on in a desk's window, which goes away: gestures, and keys that are held.
pub fn close(desk: &mut Desk, window: &mut Window, setter: &impl Setter) {
    window.close().into_iter().for_each(|end| commands::obey(desk, setter, end));
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.shared.is_brief() || self.auditioned.is_some() {
            self.shared.come_back();
        }
        // This code may be unloaded after this.
        for errand in self.errands.drain(..) {
            let _ = errand.join();
        }
    }
}
