//! What the window shows and what becomes of what the user does there: the rig, the session and the app's settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ondes_engine::realtime::Status as ModelStatus;
use ondes_processor::desk::entries::{Entries, marks_file};
use ondes_processor::desk::setting::recall;
use ondes_processor::desk::{self, Desk};
use ondes_processor::dialog;
use ondes_processor::library::Reference;
use ondes_processor::panel::Panel;
use ondes_processor::preset::Product;
use ondes_processor::shared::Shared;
use ondes_processor::state::Look;
use ondes_ui::{Level, Owner};

use super::browse::{Browse, Browser};
use super::dropped::{Arrival, Kind};
use super::inventory::Scan;
use super::settings::Settings;
use super::takes::{Files, Takes};
use super::unsaved::Unsaved;
use super::view::{ClipView, Command, Question, TrackView, View};
use crate::loader::Outcome;
use crate::rack::clip::Clip;
use crate::rack::saved::{self, Input};
use crate::rack::{Console, Meter, SessionFile};
use crate::rig::Rig;

/// How often it is seen whether there is something to be saved.
const COMPARE: Duration = Duration::from_secs(2);
/// How often a copy is kept of what is not saved.
const KEEP: Duration = Duration::from_secs(30);

/// The app behind its window.
pub(super) struct Studio {
    rig: Rig,
    meter: Arc<Meter>,
    folder: Option<PathBuf>,
    settings: Settings,
    scan: Scan,
    unsaved: Option<Unsaved>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// The session as it was saved or begun; none until its models are loaded.
    baseline: Option<SessionFile>,
    changed: bool,
    compared: Instant,
    kept: Instant,
    selected: Option<Selected>,
    /// The session that is being loaded.
    coming: Option<Coming>,
    /// Presets that are being read.
    arrivals: Vec<Arrival>,
    problems: Vec<String>,
    news: Option<String>,
    question: Option<Question>,
    /// What is done when the question is answered.
    pending: Option<Command>,
    browser: Browser,
    can_browse: bool,
    recording: Option<PathBuf>,
    /// What is said when the files of a recording are complete.
    writing: Option<String>,
    /// What the recorder said and the user has read.
    read: Read,
}

/// What of the recorder's troubles was dismissed.
#[derive(Default)]
struct Read {
    error: Option<String>,
    dropped: u64,
}

/// A session that is being loaded.
struct Coming {
    path: Option<PathBuf>,
    /// It is not what the file has: until it is saved, it is to be kept.
    recovered: bool,
    /// It begins with an instrument.
    fresh: bool,
}

/// The track that is chosen, and its panels.
struct Selected {
    place: usize,
    shared: Arc<Shared>,
    panel: Arc<Panel>,
    desk: Desk,
    window: ondes_ui::Window,
}

impl Selected {
    fn close(mut self) {
        desk::close(&mut self.desk, &mut self.window, &*self.panel);
    }
}

impl Studio {
    /// Goes on where the app ended last, by what is remembered in that folder. `wake` is called, from any thread, when there is
    /// something new to be seen.
    pub fn open(folder: Option<PathBuf>, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let settings = folder.as_deref().map(Settings::read).unwrap_or_default();
        let unsaved = folder.as_deref().and_then(Unsaved::open);
        let waker = wake.clone();
        let console = Console::new(move || waker());
        let meter = console.meter.clone();
        let rig = Rig::new(console, settings.audio.clone(), settings.midi.clone(), Box::new(|_, _| Ok(())));
        let question = unsaved.as_ref().filter(|unsaved| unsaved.is_there()).map(|_| Question::Recover);
        let now = Instant::now();
        let mut studio = Self {
            rig,
            meter,
            folder,
            settings,
            scan: Scan::default(),
            unsaved,
            wake,
            baseline: None,
            changed: false,
            compared: now,
            kept: now,
            selected: None,
            coming: None,
            arrivals: Vec::new(),
            problems: Vec::new(),
            news: None,
            question,
            pending: None,
            browser: Browser::default(),
            can_browse: dialog::is_available(),
            recording: None,
            writing: None,
            read: Read::default(),
        };
        let last = studio.settings.session.clone();
        match last.as_deref().map(SessionFile::read) {
            Some(Ok(session)) => studio.restore(session, Coming { path: last, recovered: false, fresh: false }),
            failed => {
                studio.problems.extend(failed.and_then(Result::err).map(|error| format!("{error:#}")));
                studio.settings.session = None;
                studio.obey(Command::Add(Product::Instrument));
            }
        }
        studio.rescan();
        studio
    }

    /// Does what has to be done now and then, seen or not.
    pub fn tick(&mut self) {
        self.scan.poll();
        while let Some(outcome) = self.rig.outcome() {
            match outcome {
                Outcome::Restored(problems) => self.arrive(problems),
                Outcome::Failed(problem) => self.problems.push(problem),
            }
        }
        self.take_presets();
        self.take_choice();
        self.follow_recording();
        if self.compared.elapsed() >= COMPARE {
            self.compare();
        }
        // What was not saved last time is not overwritten before the user has decided about it.
        if self.kept.elapsed() >= KEEP && self.question != Some(Question::Recover) {
            self.keep();
        }
    }

    /// Sees whether the session is as it was saved.
    fn compare(&mut self) {
        self.compared = Instant::now();
        if self.coming.is_some() || !self.rig.loading().is_empty() {
            return;
        }
        let console = self.rig.console();
        let loading = console.tracks().any(|(_, track)| track.shared.progress() == ModelStatus::Loading);
        if loading {
            return;
        }
        let now = kept(&console);
        drop(console);
        match &self.baseline {
            Some(baseline) => self.changed = *baseline != now,
            None => self.baseline = Some(now),
        }
    }

    fn keep(&mut self) {
        self.kept = Instant::now();
        self.compare();
        let session = self.session();
        let Some(unsaved) = &mut self.unsaved else { return };
        if self.changed {
            self.problems.extend(unsaved.write(session, self.settings.session.clone()));
        } else if unsaved.is_there() {
            unsaved.clear();
        }
    }

    /// The session with the devices that it is played on.
    fn session(&self) -> SessionFile {
        let mut session = kept(&self.rig.console());
        (session.audio, session.midi) = (self.settings.audio.clone(), self.settings.midi.clone());
        session
    }

    /// Everything to draw, as it is now.
    pub fn view(&mut self) -> View {
        let sound = self.rig.status();
        let loading = self.rig.loading();
        let console = self.rig.console();
        let healths: Vec<_> = console.tracks().filter_map(|(_, track)| track.shared.remote.health()).collect();
        let mut tracks = Vec::new();
        for (place, track) in console.tracks() {
            let peak_db = match self.selected.as_ref().filter(|selected| selected.place == place) {
                Some(selected) => loudest(selected.desk.view().output.levels),
                None => {
                    let mut levels = [Vec::new(), Vec::new()];
                    let [input, output] = &mut levels;
                    track.shared.monitor.levels([input, output]);
                    loudest(&levels[1])
                }
            };
            let clip = track.clip().map(|clip| ClipView {
                outline: clip.outline().clone(),
                place: clip.place() as f32 / clip.frames().max(1) as f32,
                length_s: clip.frames() as f32 / clip.sample_rate() as f32,
                playing: clip.is_playing(),
            });
            let progress = track.shared.progress();
            let read = loading.iter().find(|loading| loading.place == Some(place)).map(|loading| loading.name.clone());
            let preset = self.arrivals.iter().find(|arrival| Arc::ptr_eq(&arrival.shared, &track.shared));
            let preset = preset.map(|arrival| arrival.name.clone());
            let model = (progress == ModelStatus::Loading).then(|| track.coming().to_owned());
            let missing = track.shared.missing().map(|missing| missing.to_string());
            let fault = missing.or(match progress {
                ModelStatus::Failed(reason) => Some(reason),
                _ => track.fault().map(str::to_owned),
            });
            tracks.push(TrackView {
                place,
                title: track.title(),
                product: track.shared.product,
                mix: track.mix.get(),
                peak_db,
                loading: read.or(preset).or(model),
                fault,
                input: track.input().clone(),
                clip,
                midi_channels: track.midi_channels(),
            });
        }
        let recording = self.rig.recording();
        let path = self.settings.session.clone();
        let mut problems = self.problems.clone();
        problems.extend(recording.error.clone().filter(|error| self.read.error.as_ref() != Some(error)));
        if recording.dropped > self.read.dropped {
            problems.push(format!("The disk is too slow: {} frames of the recording are silence", recording.dropped));
        }
        View {
            session: path.as_deref().map_or("New session".into(), name),
            path,
            changed: self.changed,
            recent: self.settings.recent.clone(),
            tracks,
            selected: self.selected.as_ref().map(|selected| selected.place),
            set_list: console.set_list.iter().map(|reference| reference.name.clone()).collect(),
            can_browse: self.can_browse,
            master: console.master.get(),
            peaks_db: self.meter.peaks().map(decibels),
            limiter_db: decibels(self.meter.reduction()),
            sound,
            load: healths.iter().map(|health| health.load).sum(),
            misses: healths.iter().map(|health| health.misses).sum::<u64>() + self.rig.xruns(),
            recording,
            takes: self.settings.takes.clone(),
            loading: self.coming.as_ref().map(|coming| coming.path.as_deref().map_or("the session".into(), name)),
            inventory: self.scan.found.clone(),
            audio: self.settings.audio.clone(),
            midi: self.settings.midi.clone(),
            ports: self.rig.midi(),
            problems,
            news: self.news.clone(),
            question: self.question,
        }
    }

    /// Draws the instrument of the track that is chosen into `ui`, which is all of it.
    pub fn show(&mut self, ui: &mut egui::Ui) {
        let Some(selected) = &mut self.selected else { return };
        desk::show(&mut selected.desk, &mut selected.window, ui, &*selected.panel);
        let look = selected.shared.look();
        if look != self.settings.look {
            self.settings.look = look;
            self.remember();
        }
    }

    /// How the window looks.
    pub fn theme(&self) -> egui::ThemePreference {
        self.selected.as_ref().map_or(egui::ThemePreference::System, |selected| selected.desk.view().theme)
    }

    /// Does what the user wants.
    pub fn obey(&mut self, command: Command) {
        if let Err(error) = self.attempt(command) {
            self.problems.push(format!("{error:#}"));
        }
    }

    fn attempt(&mut self, command: Command) -> anyhow::Result<()> {
        let touches = matches!(
            command,
            Command::New
                | Command::Open(_)
                | Command::Save
                | Command::SaveAs(_)
                | Command::Recover
                | Command::Add(_)
                | Command::Listen(..)
                | Command::Drop(_)
        );
        anyhow::ensure!(!touches || self.coming.is_none(), "the session is still being loaded");
        match command {
            Command::New | Command::Open(_) => return self.leave(command),
            Command::Save => match self.settings.session.clone() {
                Some(path) => self.save(&path)?,
                None => anyhow::bail!("the session has no name yet"),
            },
            Command::SaveAs(path) => self.save(&named(&path))?,
            Command::Discard => {
                let question = self.question.take();
                if question == Some(Question::Recover)
                    && let Some(unsaved) = &mut self.unsaved
                {
                    unsaved.clear();
                }
                if let Some(command) = self.pending.take() {
                    self.begin(command)?;
                }
            }
            Command::Recover => {
                self.question = None;
                let unsaved = self.unsaved.as_ref().context("another window has it")?;
                let (session, path) = unsaved.read()?;
                self.restore(session, Coming { path, recovered: true, fresh: false });
            }
            Command::Cancel => (self.question, self.pending) = (None, None),
            Command::Dismiss => {
                self.problems.clear();
                self.news = None;
                let status = self.rig.recording();
                self.read = Read { error: status.error, dropped: status.dropped };
            }
            Command::Add(product) => {
                let place = self.rig.add(product)?;
                self.watch_tracks();
                self.select(Some(place));
            }
            Command::Remove(place) => {
                self.release();
                self.rig.console().remove(place);
                let next =
                    self.rig.console().tracks().map(|(other, _)| other).min_by_key(|other| other.abs_diff(place));
                self.select(next);
            }
            Command::Select(place) => self.select(Some(place)),
            Command::Rename(place, name) => self.rig.console().rename(place, &name),
            Command::Mix(place, settings) => {
                if let Some(track) = self.rig.console().track(place) {
                    track.mix.set(settings);
                }
            }
            Command::Listen(place, input) => self.listen(place, input)?,
            Command::Channels(place, channels) => self.rig.set_midi_channels(place, channels),
            Command::Seek(place, part) => {
                if let Some(clip) = self.clip(place) {
                    clip.seek((f64::from(part.clamp(0.0, 1.0)) * clip.frames() as f64) as usize);
                }
            }
            Command::Roll(place, playing) => {
                if let Some(clip) = self.clip(place) {
                    clip.set_playing(playing);
                }
            }
            Command::Keep => {
                let Some(selected) = &self.selected else { return Ok(()) };
                selected.shared.model().context("the track has no model yet")?;
                let reference = selected.shared.saved().model;
                self.rig.console().set_list.push(Reference { embedded: None, ..reference });
            }
            Command::Call(index) => {
                let reference = self.rig.console().set_list.get(index).cloned();
                if let Some((reference, selected)) = reference.zip(self.selected.as_ref()) {
                    self.rig.console().fetch(selected.place, reference);
                }
            }
            Command::Raise(index) => {
                let list = &mut self.rig.console().set_list;
                if (1..list.len()).contains(&index) {
                    list.swap(index - 1, index);
                }
            }
            Command::Lower(index) => {
                let list = &mut self.rig.console().set_list;
                if index + 1 < list.len() {
                    list.swap(index, index + 1);
                }
            }
            Command::Forget(index) => {
                let list = &mut self.rig.console().set_list;
                if index < list.len() {
                    list.remove(index);
                }
            }
            Command::Master(settings) => self.rig.console().master.set(settings),
            Command::Record(true) => {
                let Files { master, tracks } = self.files()?;
                self.rig.record(&master, tracks, self.settings.takes.format, false)?;
                (self.recording, self.news, self.read) = (Some(master), None, Read::default());
            }
            Command::Record(false) => {
                self.rig.end();
                self.writing = self.recording.take().map(|path| format!("Recorded to {}", path.display()));
            }
            Command::SavePast => {
                let Files { master, tracks } = self.files()?;
                self.rig.save_past(&master, tracks, self.settings.takes.format)?;
                self.read.error = None;
                self.writing = Some(format!("Saved the last 30 s to {}", master.display()));
            }
            Command::Takes(takes) => {
                self.settings.takes = takes;
                self.remember();
            }
            Command::Drop(path) => self.drop_file(path)?,
            Command::Browse(what) => {
                let session = self.settings.session.as_deref();
                self.browser.open(what, session, &self.settings.takes, self.wake.clone());
            }
            Command::Panic => {
                self.rig.console().tracks().for_each(|(_, track)| track.shared.monitor.panic());
            }
            Command::Audio(choice) => {
                if choice.host != self.settings.audio.host {
                    self.scan.begin(choice.host.clone(), waker(&self.wake));
                }
                self.rig.choose_audio(choice.clone());
                self.settings.audio = choice;
                self.remember();
            }
            Command::Midi(choice) => {
                self.rig.choose_midi(choice.clone());
                self.settings.midi = choice;
                self.remember();
            }
            Command::Rescan => self.rescan(),
        }
        Ok(())
    }

    /// Does what a dialog was opened for, once there is an answer.
    fn take_choice(&mut self) {
        let (what, path) = match self.browser.poll() {
            Ok(Some(choice)) => choice,
            Ok(None) => return,
            Err(problem) => return self.problems.push(problem.into()),
        };
        let command = match what {
            Browse::Session => Command::Open(path),
            Browse::Place => Command::SaveAs(path),
            Browse::Takes => Command::Takes(Takes { folder: Some(path), ..self.settings.takes.clone() }),
            Browse::Recording(place) => {
                let console = self.rig.console();
                let looped = console.track(place).map(|track| track.input().clone());
                let looped = matches!(looped, Some(Input::File { looped: true, .. }));
                Command::Listen(place, Input::File { path, looped })
            }
        };
        self.obey(command);
    }

    /// Leaves the session for another, unless something would be lost.
    fn leave(&mut self, to: Command) -> anyhow::Result<()> {
        self.compare();
        if !self.changed {
            return self.begin(to);
        }
        (self.question, self.pending) = (Some(Question::Unsaved), Some(to));
        Ok(())
    }

    fn begin(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Open(path) => {
                let path = named(&path);
                let session = SessionFile::read(&path)?;
                self.restore(session, Coming { path: Some(path), recovered: false, fresh: false });
            }
            _ => self.restore(SessionFile::default(), Coming { path: None, recovered: false, fresh: true }),
        }
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.clear();
        }
        Ok(())
    }

    /// Goes to a session by and by; devices stay as they are, since it may be of another machine.
    fn restore(&mut self, session: SessionFile, coming: Coming) {
        self.release();
        self.coming = Some(coming);
        self.rig.restore(session);
    }

    /// The session is there.
    fn arrive(&mut self, problems: Vec<String>) {
        let Some(Coming { path, recovered, fresh }) = self.coming.take() else { return };
        self.release();
        self.problems.extend(problems);
        (self.baseline, self.changed) = (recovered.then(SessionFile::default), recovered);
        if self.settings.session != path || path.is_none() {
            self.settings.opened(path.as_deref());
            self.remember();
        }
        self.watch_tracks();
        let first = self.rig.console().tracks().next().map(|(place, _)| place);
        self.select(first);
        if fresh {
            self.obey(Command::Add(Product::Instrument));
        }
    }

    fn save(&mut self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        self.session().write(path)?;
        (self.baseline, self.changed) = (Some(kept(&self.rig.console())), false);
        self.settings.opened(Some(path));
        self.remember();
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.clear();
        }
        if self.question == Some(Question::Unsaved) {
            self.question = None;
            if let Some(command) = self.pending.take() {
                self.begin(command)?;
            }
        }
        Ok(())
    }

    fn listen(&mut self, place: usize, input: Input) -> anyhow::Result<()> {
        // Channels can only be heard where the devices record them.
        if let Input::Channels { first, count } = input {
            let wanted = (first + count) as u16;
            let mut audio = self.settings.audio.clone();
            if audio.input_channels.is_some_and(|channels| channels < wanted)
                || audio.input_channels.is_none() && audio.input.is_none()
            {
                audio.input_channels = Some(wanted.max(2));
                self.attempt(Command::Audio(audio))?;
            }
        }
        let mut console = self.rig.console();
        let before = console.track(place).map(|track| track.input().clone());
        if let (Some(Input::File { path: before, looped: was }), Input::File { path, looped }) = (&before, &input)
            && (before, !was) == (path, *looped)
        {
            console.set_looped(place, *looped);
            return Ok(());
        }
        drop(console);
        self.rig.listen(place, input);
        Ok(())
    }

    /// Opens a file for the track that is chosen, or for a new one.
    fn drop_file(&mut self, path: PathBuf) -> anyhow::Result<()> {
        fs::metadata(&path).with_context(|| path.display().to_string())?;
        let kind = Kind::of(&path);
        if kind == Kind::Session {
            return self.leave(Command::Open(path));
        }
        if self.selected.is_none() {
            let product = if kind == Kind::Sound { Product::Effect } else { Product::Instrument };
            self.attempt(Command::Add(product))?;
        }
        let Some(selected) = &self.selected else { return Ok(()) };
        let place = selected.place;
        match kind {
            Kind::Sound => self.listen(place, Input::File { path, looped: false })?,
            Kind::Preset => {
                let arrival = Arrival::begin(selected.shared.clone(), &path, waker(&self.wake));
                self.arrivals.push(arrival);
            }
            Kind::Session | Kind::Model => self.rig.console().fetch_file(place, path),
        }
        Ok(())
    }

    /// Plays presets that were read since.
    fn take_presets(&mut self) {
        for arrival in self.arrivals.extract_if(.., |arrival| arrival.is_there()) {
            match self.selected.as_mut().filter(|selected| Arc::ptr_eq(&selected.shared, &arrival.shared)) {
                Some(selected) => {
                    if let Some(setting) = arrival.take() {
                        recall(&mut selected.desk, &*selected.panel, setting);
                    }
                }
                // Another track was chosen meanwhile: that was the user's last word.
                None => arrival.give_up(),
            }
        }
    }

    /// Says that a recording is complete, and ends one that has failed.
    fn follow_recording(&mut self) {
        if self.recording.is_none() && self.writing.is_none() {
            return;
        }
        let status = self.rig.recording();
        if self.recording.is_some() && status.recording.is_none() && status.error.is_some() {
            self.rig.end();
            self.recording = None;
        }
        if status.finishing == 0
            && let Some(news) = self.writing.take()
        {
            self.news = Some(news).filter(|_| status.error.is_none());
        }
    }

    fn clip(&self, place: usize) -> Option<Arc<Clip>> {
        self.rig.console().track(place)?.clip().cloned()
    }

    /// All tracks are metered while the window is open.
    fn watch_tracks(&self) {
        self.rig.console().tracks().for_each(|(_, track)| track.shared.monitor.set_open(true));
    }

    fn select(&mut self, place: Option<usize>) {
        if self.selected.as_ref().map(|selected| selected.place) == place {
            return;
        }
        self.release();
        let console = self.rig.console();
        let Some((place, track)) = place.and_then(|place| Some((place, console.track(place)?))) else { return };
        let (shared, panel) = (track.shared.clone(), track.panel.clone());
        // The window is one, whatever an instance has saved about it.
        shared.set_look(self.settings.look);
        let desk = Desk::new(shared.clone(), panel.clone(), Entries::new(marks_file()));
        self.selected = Some(Selected { place, shared, panel, desk, window: ondes_ui::Window::new() });
    }

    /// Lets go of the track that is chosen: keys that are held on it end.
    fn release(&mut self) {
        if let Some(selected) = self.selected.take() {
            selected.close();
        }
    }

    fn rescan(&mut self) {
        self.scan.begin(self.settings.audio.host.clone(), waker(&self.wake));
    }

    fn remember(&mut self) {
        if let Some(folder) = &self.folder {
            self.problems.extend(self.settings.write(folder).err().map(|error| format!("{error:#}")));
        }
    }

    /// Files for a recording that begins now.
    fn files(&self) -> anyhow::Result<Files> {
        let title = self.settings.session.as_deref().map_or("Ondes".into(), name);
        let tracks: Vec<_> = self.rig.console().tracks().map(|(place, track)| (place, track.title())).collect();
        self.settings.takes.files(&title, &tracks)
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        self.release();
        if self.question != Some(Question::Recover) {
            self.keep();
        }
        if let Some(unsaved) = &mut self.unsaved {
            drop(unsaved.finish());
        }
        self.arrivals.drain(..).for_each(Arrival::give_up);
    }
}

/// What a session keeps of a console; how the window looks is the app's own matter.
fn kept(console: &Console) -> SessionFile {
    let mut session = console.saved();
    session.tracks.iter_mut().for_each(|track| track.selection.look = Look::default());
    session
}

fn waker(wake: &Arc<dyn Fn() + Send + Sync>) -> impl FnOnce() + Send + 'static {
    let wake = wake.clone();
    move || wake()
}

/// A session's name.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The path that was typed: with the ending of sessions, and among the user's documents where no folder is named.
fn named(typed: &Path) -> PathBuf {
    let mut path = typed.to_owned();
    if path.extension().is_none_or(|ending| ending != saved::ENDING) {
        path.as_mut_os_string().push(format!(".{}", saved::ENDING));
    }
    match dirs::document_dir().or_else(dirs::home_dir) {
        Some(documents) if path.is_relative() => documents.join("Ondes").join(path),
        _ => path,
    }
}

fn decibels(gain: f32) -> f32 {
    20.0 * gain.log10()
}

fn loudest(levels: &[Level]) -> f32 {
    levels.iter().map(|level| level.peak_db).fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests;
