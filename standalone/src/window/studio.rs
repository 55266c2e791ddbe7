//! What the window shows and what becomes of what the user does there: the rig, the session and the app's settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ondes_engine::realtime::Status as ModelStatus;
use ondes_instance::desk::entries::{Entries, marks_file};
use ondes_instance::desk::{self, Desk};
use ondes_instance::library::Reference;
use ondes_instance::panel::Panel;
use ondes_instance::preset::Product;
use ondes_instance::shared::Shared;
use ondes_instance::state::Look;
use ondes_ui::{Level, Owner};

use super::inventory::Scan;
use super::settings::{Settings, folder};
use super::unsaved::Unsaved;
use super::view::{ClipView, Command, Question, TrackView, View};
use crate::devices::Status;
use crate::rack::clip::Clip;
use crate::rack::saved::Input;
use crate::rack::{Console, Meter, SessionFile};
use crate::record::{Format, take_name};
use crate::rig::Rig;

/// Ending of sessions.
const ENDING: &str = "ondes-session";
/// How often it is seen whether there is something to be saved.
const COMPARE: Duration = Duration::from_secs(2);
/// How often a copy is kept of what is not saved.
const KEEP: Duration = Duration::from_secs(30);
/// How often rings are emptied and strips renewed.
const TICK: Duration = Duration::from_millis(100);
/// Places of a recording's outline.
const OUTLINE: usize = 512;

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
    ticked: Instant,
    selected: Option<Selected>,
    /// Outlines of recordings, by what they are outlines of.
    outlines: Vec<(Arc<Clip>, Arc<[f32]>)>,
    errands: Vec<JoinHandle<()>>,
    problems: Vec<String>,
    news: Option<String>,
    question: Option<Question>,
    /// What is done when the question is answered.
    pending: Option<Command>,
    recording: Option<PathBuf>,
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
    /// Goes on where the app ended last. `wake` is called, from any thread, when there is something new to be seen.
    pub fn open(wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let folder = folder();
        let settings = folder.as_deref().map(Settings::read).unwrap_or_default();
        let unsaved = folder.as_deref().and_then(Unsaved::open);
        let waker = wake.clone();
        let mut console = Console::new(move || waker());
        let mut problems = Vec::new();
        let mut session = settings.session.clone();
        match session.as_deref().map(SessionFile::read) {
            Some(Ok(file)) => problems.extend(console.restore(&file)),
            Some(Err(error)) => {
                problems.push(format!("{error:#}"));
                session = None;
            }
            None => {}
        }
        if session.is_none() {
            problems.extend(console.add(Product::Instrument).err().map(|error| format!("{error:#}")));
        }
        let first = console.tracks().next().map(|(place, _)| place);
        let meter = console.meter.clone();
        let rig = Rig::new(console, settings.audio.clone(), settings.midi.clone(), Box::new(|_, _| Ok(())));
        let question = unsaved.as_ref().filter(|unsaved| unsaved.is_there()).map(|_| Question::Recover);
        let now = Instant::now();
        let mut studio = Self {
            rig,
            meter,
            folder,
            settings: Settings { session, ..settings },
            scan: Scan::default(),
            unsaved,
            wake,
            baseline: None,
            changed: false,
            compared: now,
            kept: now,
            ticked: now,
            selected: None,
            outlines: Vec::new(),
            errands: Vec::new(),
            problems,
            news: None,
            question,
            pending: None,
            recording: None,
        };
        studio.watch_tracks();
        studio.select(first);
        studio.rescan();
        studio
    }

    /// Does what has to be done now and then, seen or not.
    pub fn tick(&mut self) {
        self.scan.poll();
        self.errands.retain(|errand| !errand.is_finished());
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            self.rig.console().tick();
        }
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
        let rate = if let Status::Playing(opened) = &sound { opened.sample_rate } else { 48_000 };
        let console = self.rig.console();
        let healths: Vec<_> = console.tracks().filter_map(|(_, track)| track.shared.remote.health()).collect();
        self.outlines
            .retain(|(clip, _)| console.tracks().any(|(_, track)| track.clip().is_some_and(|c| Arc::ptr_eq(c, clip))));
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
                outline: outline(&mut self.outlines, clip),
                place: clip.place() as f32 / clip.frames().max(1) as f32,
                length_s: clip.frames() as f32 / rate as f32,
                playing: clip.is_playing(),
            });
            let missing = track.shared.missing().map(|missing| missing.to_string());
            let fault = missing.or(match track.shared.progress() {
                ModelStatus::Failed(reason) => Some(reason),
                _ => None,
            });
            tracks.push(TrackView {
                place,
                title: track.title(),
                product: track.shared.product,
                mix: track.mix.get(),
                peak_db,
                fault,
                input: track.input().clone(),
                clip,
                midi_channels: track.midi_channels(),
            });
        }
        let recording = self.rig.recording();
        let path = self.settings.session.clone();
        let mut problems = self.problems.clone();
        problems.extend(recording.error.clone());
        if recording.dropped > 0 {
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
            master: console.master.get(),
            peaks_db: self.meter.peaks().map(decibels),
            limiter_db: decibels(self.meter.reduction()),
            sound,
            load: healths.iter().map(|health| health.load).sum(),
            misses: healths.iter().map(|health| health.misses).sum::<u64>() + self.rig.xruns(),
            recording,
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
                self.restore(&session, path);
                // It is not what the file has: until it is saved, it is to be kept.
                (self.baseline, self.changed) = (Some(SessionFile::default()), true);
            }
            Command::Cancel => (self.question, self.pending) = (None, None),
            Command::Dismiss => {
                self.problems.clear();
                self.news = None;
            }
            Command::Add(product) => {
                let place = self.rig.console().add(product)?;
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
            Command::Channels(place, channels) => self.rig.console().set_midi_channels(place, channels)?,
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
                    let find = move || reference.find().map_err(|missing| missing.to_string());
                    self.errands.push(selected.shared.fetch(false, find));
                }
            }
            Command::Raise(index) => {
                let list = &mut self.rig.console().set_list;
                if (1..list.len()).contains(&index) {
                    list.swap(index - 1, index);
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
                let path = self.take()?;
                self.rig.record(&path, Vec::new(), Format::Float32, false)?;
                (self.recording, self.news) = (Some(path), None);
            }
            Command::Record(false) => {
                let status = self.rig.stop();
                let path = self.recording.take().filter(|_| status.error.is_none());
                self.news = path.map(|path| format!("Recorded to {}", path.display()));
            }
            Command::SavePast => {
                let path = self.take()?;
                self.rig.save_past(&path, Format::Float32)?;
                self.news = Some(format!("Saved the last 30 s to {}", path.display()));
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
                self.restore(&session, Some(path));
            }
            _ => {
                self.restore(&SessionFile::default(), None);
                self.attempt(Command::Add(Product::Instrument))?;
            }
        }
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.clear();
        }
        Ok(())
    }

    /// Goes to a session; devices stay as they are, since it may be of another machine.
    fn restore(&mut self, session: &SessionFile, path: Option<PathBuf>) {
        self.release();
        let problems = self.rig.console().restore(session);
        self.problems.extend(problems);
        (self.baseline, self.changed) = (None, false);
        self.settings.opened(path.as_deref());
        self.remember();
        self.watch_tracks();
        let first = self.rig.console().tracks().next().map(|(place, _)| place);
        self.select(first);
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
        if let (Some(clip), Input::File { path, looped }) =
            (console.track(place).and_then(|track| track.clip()), &input)
            && clip.path() == path
        {
            // It plays on where it is.
            let (at, playing) = (clip.place(), clip.is_playing());
            let looped = *looped;
            console.set_input(place, input)?;
            if let Some(clip) = console.track(place).and_then(|track| track.clip()) {
                clip.seek(at);
                clip.set_looped(looped);
                clip.set_playing(playing);
            }
            return Ok(());
        }
        console.set_input(place, input)
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

    /// A path for a recording that begins now.
    fn take(&self) -> anyhow::Result<PathBuf> {
        let folder =
            dirs::audio_dir().or_else(dirs::home_dir).context("there is no folder for recordings")?.join("Ondes");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let title = self.settings.session.as_deref().map_or("Ondes".into(), name);
        Ok(take_name(&folder, &title, Format::Float32))
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
        for errand in self.errands.drain(..) {
            // It has said what there is to be said.
            drop(errand.join());
        }
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
    if path.extension().is_none_or(|ending| ending != ENDING) {
        path.as_mut_os_string().push(format!(".{ENDING}"));
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

/// The largest samples along a recording; found once.
fn outline(known: &mut Vec<(Arc<Clip>, Arc<[f32]>)>, clip: &Arc<Clip>) -> Arc<[f32]> {
    if let Some((_, outline)) = known.iter().find(|(other, _)| Arc::ptr_eq(other, clip)) {
        return outline.clone();
    }
    let [left, right] = clip.channels();
    let length = left.len().div_ceil(OUTLINE).max(1);
    let largest = |samples: &[f32]| samples.iter().fold(0.0_f32, |top, sample| top.max(sample.abs()));
    let parts = left.chunks(length).zip(right.chunks(length));
    let outline: Arc<[f32]> = parts.map(|(left, right)| largest(left).max(largest(right)).min(1.0)).collect();
    known.push((clip.clone(), outline.clone()));
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_file_among_the_documents() {
        assert_eq!(named(Path::new("/stage/one")), Path::new("/stage/one.ondes-session"));
        assert_eq!(named(Path::new("/stage/v1.2")), Path::new("/stage/v1.2.ondes-session"));
        assert_eq!(named(Path::new("/stage/a.ondes-session")), Path::new("/stage/a.ondes-session"));
        assert!(named(Path::new("one")).ends_with("Ondes/one.ondes-session"));
        assert_eq!(name(Path::new("/stage/a.ondes-session")), "a");
    }
}
