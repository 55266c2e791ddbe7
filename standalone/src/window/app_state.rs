//! State of the app behind its window: mixer, devices, session and settings.

mod recordings;
mod sessions;
mod set_list;
mod unsaved_work;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ondes_engine::dsp::level::{amplitude_to_db, db_to_amplitude};
use ondes_engine::realtime::LoadStatus;
use ondes_player::history::Change;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::FileReference;
use ondes_player::monitor::{MeterLevel, Monitor};
use ondes_player::parameter_store::ParameterStore;
use ondes_player::product::Product;
use ondes_ui::view_model::model_list::{ModelList, marks_file};
use ondes_ui::view_model::{self, InstanceViewModel};
use ondes_ui::{FileCommand, Surroundings, ViewModel, clamp_scale, file_dialog};

use self::sessions::{PendingSession, session_name, session_path};
use self::unsaved_work::Question;
use super::autosave::Autosave;
use super::device_scan::DeviceScan;
use super::dropped_files::DroppedKind;
use super::file_dialog::{DialogPurpose, OpenDialog};
use super::mixer_history::{MixerChange, MixerSetting};
use super::recording_settings::RecordingSettings;
use super::settings::AppSettings;
use super::view::{AppCommand, AppView, ClipView, SetListEntry, TrackView};
use super::watch::Watch;
use crate::audio_app::AudioApp;
use crate::devices::AudioStatus;
use crate::io::AudioChoice;
use crate::rack::clip::Clip;
use crate::rack::fader::SILENT_DB;
use crate::rack::session_file::TrackInput;
use crate::rack::{MasterMeter, Mixer, SessionFile};
use crate::track_loader::LoadOutcome;

/// Interval of the comparison with the saved session.
const COMPARE_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of the autosave.
const AUTOSAVE_INTERVAL: Duration = Duration::from_secs(30);

/// State of the app, and the handler of the window's commands.
pub(super) struct AppState {
    /// Dropped first: it holds the app, too.
    _watch: Watch,
    app: Arc<AudioApp>,
    meter: Arc<MasterMeter>,
    folder: Option<PathBuf>,
    settings: AppSettings,
    device_scan: DeviceScan,
    autosave: Option<Autosave>,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// Session as it was saved or created; `None` until its models are loaded.
    baseline: Option<SessionFile>,
    changed: bool,
    last_comparison: Instant,
    last_autosave: Instant,
    last_activity: Instant,
    selected: Option<SelectedTrack>,
    /// Session that is being loaded.
    pending_session: Option<PendingSession>,
    /// Presets that are being loaded.
    problems: Vec<String>,
    notice: Option<String>,
    question: Option<Question>,
    /// The last run left an autosave that the user has not decided about. It is kept until then.
    offers_autosave: bool,
    /// The window closes without asking.
    quits: bool,
    dialog: OpenDialog,
    can_browse: bool,
    recording: Option<PathBuf>,
    /// Notice to show when the files of a recording are complete.
    finishing_notice: Option<String>,
    /// Recorder errors that the user has dismissed.
    dismissed: DismissedErrors,
}

/// Errors of the recorder that were dismissed.
#[derive(Default)]
struct DismissedErrors {
    error: Option<String>,
    dropped: u64,
}

/// Selected track with its panels.
struct SelectedTrack {
    slot: usize,
    instance: Arc<InstanceHandle>,
    parameters: Arc<ParameterStore>,
    view_model: InstanceViewModel,
    window: ondes_ui::Window,
}

impl SelectedTrack {
    fn close(mut self) {
        view_model::close(&mut self.view_model, &mut self.window, &*self.parameters);
    }
}

impl AppState {
    /// Restores the state of the last run from the settings in `folder`. `wake` is called from any
    /// thread when there is something new to show.
    pub fn open(folder: Option<PathBuf>, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let settings = folder.as_deref().map(AppSettings::read).unwrap_or_default();
        let autosave = folder.as_deref().and_then(Autosave::open);
        let waker = wake.clone();
        let mixer = Mixer::new(move || waker());
        let meter = mixer.meter.clone();
        let app = AudioApp::new(
            mixer,
            settings.audio.clone(),
            settings.midi.clone(),
            Box::new(|_, _| Ok(())),
        );
        let app = Arc::new(app);
        let changed = wake.clone();
        let offers_autosave = autosave.as_ref().is_some_and(Autosave::is_there);
        let now = Instant::now();
        let mut app_state = Self {
            _watch: Watch::start(app.clone(), move || changed()),
            app,
            meter,
            folder,
            settings,
            device_scan: DeviceScan::default(),
            autosave,
            wake,
            baseline: None,
            changed: false,
            last_comparison: now,
            last_autosave: now,
            last_activity: now,
            selected: None,
            pending_session: None,
            problems: Vec::new(),
            notice: None,
            question: None,
            offers_autosave,
            quits: false,
            dialog: OpenDialog::default(),
            can_browse: file_dialog::is_available(),
            recording: None,
            finishing_notice: None,
            dismissed: DismissedErrors::default(),
        };
        match app_state.settings.session.clone() {
            // Read in the background: the window opens whatever it is.
            Some(path) => {
                app_state.app.restore_file(path.clone());
                app_state.pending_session = Some(PendingSession {
                    path: Some(path),
                    recovered: false,
                    add_instrument: false,
                });
            }
            None => app_state.handle(AppCommand::AddTrack(Product::Instrument)),
        }
        app_state.rescan();
        app_state
    }

    /// Does periodic work, whether the window is visible or not.
    pub fn tick(&mut self) {
        self.device_scan.poll();
        while let Some(outcome) = self.app.outcome() {
            match outcome {
                LoadOutcome::Restored(problems) => self.finish_restore(problems),
                LoadOutcome::NotRestored(problem) => self.start_without_session(problem),
                LoadOutcome::Failed(problem) => self.problems.push(problem),
            }
        }
        if let Some(selected) = &mut self.selected {
            selected
                .view_model
                .apply_loaded_presets(&*selected.parameters);
        }
        self.apply_dialog_answer();
        self.update_recording();
        if self.baseline.is_none() || self.last_comparison.elapsed() >= COMPARE_INTERVAL {
            self.update_changed();
        }
        if self.last_autosave.elapsed() >= AUTOSAVE_INTERVAL {
            self.write_autosave();
        }
    }

    /// Returns everything to draw.
    pub fn view(&mut self) -> AppView {
        let sound = self.app.status();
        let loading = self.app.loading();
        let mixer = self.app.mixer();
        let healths: Vec<_> = mixer
            .tracks()
            .filter_map(|(_, track)| track.instance.session.health())
            .collect();
        let mut tracks = Vec::new();
        for (slot, track) in mixer.tracks() {
            let peak_db = match self
                .selected
                .as_ref()
                .filter(|selected| selected.slot == slot)
            {
                Some(selected) => max_peak_db(selected.view_model.view().mixer.output.levels),
                None => peak_db(&track.instance.monitor),
            };
            let clip = track.clip().map(|clip| ClipView {
                waveform: clip.waveform().clone(),
                position: clip.position() as f32 / clip.frames().max(1) as f32,
                length_s: clip.frames() as f32 / clip.sample_rate() as f32,
                playing: clip.is_playing(),
            });
            let progress = track.instance.status();
            let read = loading
                .iter()
                .find(|loading| loading.slot == Some(slot))
                .map(|loading| loading.name.clone());
            let sound = (progress == LoadStatus::Loading).then(|| "sound".to_owned());
            let missing = track
                .instance
                .missing_model()
                .map(|missing| missing.to_string());
            let error = missing.or(match progress {
                LoadStatus::Failed(reason) => Some(reason),
                _ => track.error().map(str::to_owned),
            });
            tracks.push(TrackView {
                slot,
                title: track.title(),
                file: track.instance.model_path(),
                product: track.instance.product,
                fader: track.fader.get(),
                peak_db,
                loading: read.or(sound),
                error,
                input: track.input().clone(),
                clip,
                midi_channels: track.midi_channels(),
            });
        }
        let recording = self.app.recording();
        let path = self.settings.session.clone();
        let mut problems = self.problems.clone();
        problems.extend(
            recording
                .error
                .clone()
                .filter(|error| self.dismissed.error.as_ref() != Some(error)),
        );
        if recording.dropped > self.dismissed.dropped {
            problems.push(format!(
                "The disk is too slow: {} frames of the recording are silence",
                recording.dropped
            ));
        }
        AppView {
            session: path.as_deref().map_or("New session".into(), session_name),
            path,
            changed: self.changed,
            recent: self.settings.recent.clone(),
            tracks,
            selected: self.selected.as_ref().map(|selected| selected.slot),
            set_list: mixer.set_list.iter().map(set_list_entry).collect(),
            can_browse: self.can_browse,
            master: mixer.master.get(),
            peaks_db: self.meter.peaks().map(amplitude_to_db),
            limiter_db: amplitude_to_db(self.meter.reduction()),
            sound,
            load: healths.iter().map(|health| health.load).sum(),
            dropouts: healths.iter().map(|health| health.dropouts).sum::<u64>() + self.app.xruns(),
            recording,
            recording_settings: self.settings.recording_settings.clone(),
            loading: self.pending_session.as_ref().map(|pending_session| {
                pending_session
                    .path
                    .as_deref()
                    .map_or("the session".into(), session_name)
            }),
            available: self.device_scan.found.clone(),
            audio: self.settings.audio.clone(),
            midi: self.settings.midi.clone(),
            ports: self.app.midi(),
            problems,
            notice: self.notice.clone(),
            prompt: self.prompt(),
        }
    }

    /// Draws the panels of the selected track into `ui`, which is the whole area.
    pub fn show(&mut self, ui: &mut egui::Ui) {
        let Some(selected) = &mut self.selected else {
            return;
        };
        let has_sound = matches!(self.app.status(), AudioStatus::Playing(_));
        selected
            .view_model
            .set_surroundings(Surroundings::App { has_sound });
        view_model::show(
            &mut selected.view_model,
            &mut selected.window,
            ui,
            &*selected.parameters,
        );
        self.apply_restored();
        let Some(selected) = &mut self.selected else {
            return;
        };
        let window = selected.instance.read_state(|state| state.window);
        if window != self.settings.window {
            self.settings.window = window;
            self.write_settings();
        }
    }

    /// Returns the scale of the window, 1 is 100 %.
    pub fn scale(&self) -> f32 {
        clamp_scale(self.settings.window.scale)
    }

    /// Returns the theme of the window.
    pub fn theme(&self) -> egui::ThemePreference {
        self.selected
            .as_ref()
            .map_or(egui::ThemePreference::System, |selected| {
                selected.view_model.view().theme
            })
    }

    /// Handles a command of the user.
    pub fn handle(&mut self, command: AppCommand) {
        let change = MixerChange::begin(&command, &self.app.mixer());
        self.handle_unrecorded(command);
        if let (Some(change), Some(selected)) = (change, &self.selected)
            && let Some(after) = change.after(&self.app.mixer())
        {
            let change_of_setting = Change {
                before: Arc::new(change.before) as _,
                after: Arc::new(after) as _,
            };
            selected
                .view_model
                .record_outside(change.label, change_of_setting);
        }
    }

    fn handle_unrecorded(&mut self, command: AppCommand) {
        if let Err(error) = self.try_handle(command) {
            self.problems.push(format!("{error:#}"));
        }
    }

    /// Restores what undo and redo in the panels want of the mixer.
    fn apply_restored(&mut self) {
        let restored = self
            .selected
            .as_mut()
            .map(|selected| selected.view_model.take_restored());
        for setting in restored.into_iter().flatten() {
            let setting = setting.downcast_ref::<MixerSetting>();
            let command = setting.and_then(|setting| setting.restore(&mut self.app.mixer()));
            if let Some(command) = command {
                self.handle_unrecorded(command);
            }
        }
    }

    fn try_handle(&mut self, command: AppCommand) -> anyhow::Result<()> {
        let needs_session = matches!(
            command,
            AppCommand::New
                | AppCommand::Open(_)
                | AppCommand::Save
                | AppCommand::SaveAs(_)
                | AppCommand::Recover
                | AppCommand::AddTrack(_)
                | AppCommand::SetInput(..)
                | AppCommand::OpenDropped(_)
        );
        anyhow::ensure!(
            !needs_session || self.pending_session.is_none(),
            "the session is still being loaded"
        );
        match command {
            AppCommand::New | AppCommand::Open(_) | AppCommand::Recover => {
                self.replace_session(command)?
            }
            AppCommand::Save => {
                let path = self
                    .settings
                    .session
                    .clone()
                    .context("the session has no name yet")?;
                self.save(&path)?;
            }
            AppCommand::SaveAs(path) => self.save(&session_path(&path))?,
            AppCommand::Quit => self.quit(),
            AppCommand::Discard => self.discard()?,
            AppCommand::Cancel => self.question = None,
            AppCommand::Dismiss => self.dismiss(),
            AppCommand::AddTrack(product) => {
                let slot = self.app.add(product)?;
                self.enable_metering();
                self.select(Some(slot));
            }
            AppCommand::RemoveTrack(slot) => self.remove_track(slot),
            AppCommand::SelectTrack(slot) => self.select(Some(slot)),
            AppCommand::RenameTrack(slot, name) => self.app.mixer().rename(slot, &name),
            AppCommand::SetFader(slot, settings) => {
                if let Some(track) = self.app.mixer().track(slot) {
                    track.fader.set(settings);
                }
            }
            AppCommand::SetInput(slot, input) => self.set_input(slot, input)?,
            AppCommand::SetMidiChannels(slot, channels) => {
                self.app.set_midi_channels(slot, channels)
            }
            AppCommand::Seek(slot, position) => {
                if let Some(clip) = self.clip(slot) {
                    clip.seek(
                        (f64::from(position.clamp(0.0, 1.0)) * clip.frames() as f64) as usize,
                    );
                }
            }
            AppCommand::SetPlaying(slot, playing) => {
                if let Some(clip) = self.clip(slot) {
                    clip.set_playing(playing);
                }
            }
            AppCommand::AddToSetList => self.add_to_set_list()?,
            AppCommand::PlayFromSetList(index) => self.play_from_set_list(index),
            AppCommand::MoveUp(index) => self.swap_in_set_list(index.checked_sub(1), index),
            AppCommand::MoveDown(index) => self.swap_in_set_list(index.checked_add(1), index),
            AppCommand::RemoveFromSetList(index) => {
                let list = &mut self.app.mixer().set_list;
                if index < list.len() {
                    list.remove(index);
                }
            }
            AppCommand::SetMaster(settings) => self.app.mixer().master.set(settings),
            AppCommand::Record(true) => self.start_recording()?,
            AppCommand::Record(false) => {
                self.app.stop_in_background();
                self.finishing_notice = self
                    .recording
                    .take()
                    .map(|path| format!("Recorded to {}", path.display()));
            }
            AppCommand::SavePreroll => self.save_preroll()?,
            AppCommand::SetRecording(recording_settings) => {
                self.settings.recording_settings = recording_settings;
                self.write_settings();
            }
            AppCommand::OpenDropped(path) => self.drop_file(path)?,
            AppCommand::OpenDialog(purpose) => {
                let session = self.settings.session.as_deref();
                self.dialog.open(
                    purpose,
                    session,
                    &self.settings.recording_settings,
                    self.wake.clone(),
                );
            }
            AppCommand::Panic => {
                self.app
                    .mixer()
                    .tracks()
                    .for_each(|(_, track)| track.instance.monitor.request_panic());
            }
            AppCommand::SetAudio(choice) => self.set_audio(choice),
            AppCommand::SetMidi(choice) => {
                self.app.choose_midi(choice.clone());
                self.settings.midi = choice;
                self.write_settings();
            }
            AppCommand::Rescan => self.rescan(),
        }
        Ok(())
    }

    /// Hides errors and notice.
    fn dismiss(&mut self) {
        self.problems.clear();
        self.notice = None;
        let status = self.app.recording();
        self.dismissed = DismissedErrors {
            error: status.error,
            dropped: status.dropped,
        };
    }

    /// Removes a track and selects the nearest one.
    fn remove_track(&mut self, slot: usize) {
        self.deselect();
        self.app.mixer().remove(slot);
        let next = self
            .app
            .mixer()
            .tracks()
            .map(|(other, _)| other)
            .min_by_key(|other| other.abs_diff(slot));
        self.select(next);
    }

    /// Switches to other audio devices; those of another sound system are listed first.
    fn set_audio(&mut self, choice: AudioChoice) {
        if choice.host != self.settings.audio.host {
            self.device_scan
                .begin(choice.host.clone(), waker(&self.wake));
        }
        self.app.choose_audio(choice.clone());
        self.settings.audio = choice;
        self.write_settings();
    }

    /// Handles the answer of a file dialog.
    fn apply_dialog_answer(&mut self) {
        let (what, path) = match self.dialog.poll() {
            Ok(Some(choice)) => choice,
            Ok(None) => return,
            Err(problem) => return self.problems.push(problem.into()),
        };
        let command = match what {
            DialogPurpose::OpenSession => AppCommand::Open(path),
            DialogPurpose::SaveSession => AppCommand::SaveAs(path),
            DialogPurpose::RecordingFolder => AppCommand::SetRecording(RecordingSettings {
                folder: Some(path),
                ..self.settings.recording_settings.clone()
            }),
            DialogPurpose::Recording(slot) => {
                let mixer = self.app.mixer();
                let looped = mixer.track(slot).map(|track| track.input().clone());
                let looped = matches!(looped, Some(TrackInput::File { looped: true, .. }));
                AppCommand::SetInput(slot, TrackInput::File { path, looped })
            }
        };
        self.handle(command);
    }

    fn set_input(&mut self, slot: usize, input: TrackInput) -> anyhow::Result<()> {
        // Input channels require a device that records them.
        if let TrackInput::Channels { first, count } = input {
            let required = (first + count) as u16;
            let mut audio = self.settings.audio.clone();
            if audio
                .input_channels
                .is_some_and(|channels| channels < required)
                || audio.input_channels.is_none() && audio.input.is_none()
            {
                audio.input_channels = Some(required.max(2));
                self.try_handle(AppCommand::SetAudio(audio))?;
            }
        }
        let mut mixer = self.app.mixer();
        let before = mixer.track(slot).map(|track| track.input().clone());
        if let (
            Some(TrackInput::File {
                path: before,
                looped: was,
            }),
            TrackInput::File { path, looped },
        ) = (&before, &input)
            && (before, !was) == (path, *looped)
        {
            mixer.set_looped(slot, *looped);
            return Ok(());
        }
        drop(mixer);
        self.app.set_input(slot, input);
        Ok(())
    }

    /// Opens a dropped file on the selected track, or on a new one.
    fn drop_file(&mut self, path: PathBuf) -> anyhow::Result<()> {
        fs::metadata(&path).with_context(|| path.display().to_string())?;
        let kind = DroppedKind::from_path(&path);
        if kind == DroppedKind::Session {
            return self.replace_session(AppCommand::Open(path));
        }
        if self.selected.is_none() {
            let product = if kind == DroppedKind::Sound {
                Product::Effect
            } else {
                Product::Instrument
            };
            self.try_handle(AppCommand::AddTrack(product))?;
        }
        let Some(selected) = &mut self.selected else {
            return Ok(());
        };
        if kind == DroppedKind::Sound {
            let slot = selected.slot;
            self.handle(AppCommand::SetInput(
                slot,
                TrackInput::File {
                    path,
                    looped: false,
                },
            ));
            return Ok(());
        }
        selected
            .view_model
            .handle_command(&*selected.parameters, FileCommand::Open(path));
        Ok(())
    }

    fn clip(&self, slot: usize) -> Option<Arc<Clip>> {
        self.app.mixer().track(slot)?.clip().cloned()
    }

    /// Enables the meters of all tracks while the window is open.
    fn enable_metering(&self) {
        self.app
            .mixer()
            .tracks()
            .for_each(|(_, track)| track.instance.monitor.set_open(true));
    }

    fn select(&mut self, slot: Option<usize>) {
        if self.selected.as_ref().map(|selected| selected.slot) == slot {
            return;
        }
        self.deselect();
        let mixer = self.app.mixer();
        let Some((slot, track)) = slot.and_then(|slot| Some((slot, mixer.track(slot)?))) else {
            return;
        };
        let (instance, parameters) = (track.instance.clone(), track.parameters.clone());
        // There is one window; its settings override those of the instance.
        instance.set_window_settings(self.settings.window);
        let models = ModelList::new(instance.product, marks_file());
        let mut view_model = InstanceViewModel::new(instance.clone(), parameters.clone(), models);
        view_model.set_surroundings(Surroundings::App { has_sound: false });
        self.selected = Some(SelectedTrack {
            slot,
            instance,
            parameters,
            view_model,
            window: ondes_ui::Window::new(),
        });
    }

    /// Closes the panels of the selected track; keys held on it are released.
    fn deselect(&mut self) {
        if let Some(selected) = self.selected.take() {
            selected.close();
        }
    }

    fn rescan(&mut self) {
        self.device_scan
            .begin(self.settings.audio.host.clone(), waker(&self.wake));
    }

    fn write_settings(&mut self) {
        if let Some(folder) = &self.folder {
            self.problems.extend(
                self.settings
                    .write(folder)
                    .err()
                    .map(|error| format!("{error:#}")),
            );
        }
    }
}

impl Drop for AppState {
    fn drop(&mut self) {
        self.deselect();
        self.write_autosave();
        if let Some(autosave) = &mut self.autosave {
            drop(autosave.finish());
        }
    }
}

fn set_list_entry(FileReference { name, path, .. }: &FileReference) -> SetListEntry {
    SetListEntry {
        name: name.clone(),
        file: path.clone(),
    }
}

fn waker(wake: &Arc<dyn Fn() + Send + Sync>) -> impl FnOnce() + Send + 'static {
    let wake = wake.clone();
    move || wake()
}

/// Reads the meter of a track whose panels are not shown, and asks to be woken when it moves.
fn peak_db(monitor: &Monitor) -> f32 {
    let mut levels = [Vec::new(), Vec::new()];
    let [input, output] = &mut levels;
    monitor.levels([input, output]);
    let [input, output] = levels.map(|levels| max_peak_db(&levels));
    // A steady noise that the meter does not show does not wake the window again and again.
    monitor.wake_on_sound(db_to_amplitude((input.max(output) + 6.0).max(SILENT_DB)));
    output
}

fn max_peak_db(levels: &[MeterLevel]) -> f32 {
    levels
        .iter()
        .map(|level| level.peak_db)
        .fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests;
