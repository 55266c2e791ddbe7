//! The mixer: adds, loads, saves and removes tracks, on any thread but the audio thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::bail;
use arrayvec::ArrayVec;
use ondes_engine::instrument::{EventKind, MidiSettings};
use ondes_engine::realtime::Setup;
use ondes_player::library::FileReference;
use ondes_player::parameter::SCENE;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;
use ondes_player::programs::{MidiBanks, ProgramNumber};
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::scene::SCENES;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::changes::{RackChange, RetiredPart};
use super::clip::Clip;
use super::fader::{Fader, FaderSettings};
use super::master::Master;
use super::meter::MasterMeter;
use super::model_request::ModelRequest;
use super::rack_callback::Rack;
use super::session_file::{SessionFile, TrackInput};
use super::strip_plan::{self, BuiltPart, BuiltPlan, StripConfig, StripPlan, latency_samples};
use super::track::{TRACKS, Track};
use crate::io::{ClockFollower, MidiReceiver, Tap};

/// Shortest time between two rebuilds of a track: an unsteady latency must not keep the loader
/// busy.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
/// Capacity of the queues to and from the audio thread.
const QUEUE_CAPACITY: usize = 64;

/// Queues to and from the audio thread, while devices are open.
struct RackLink {
    setup: Setup,
    changes: HeapProd<RackChange>,
    retired: HeapCons<RetiredPart>,
    programs: HeapCons<(u8, ProgramNumber)>,
}

/// All tracks, and the master.
pub struct Mixer {
    tracks: [Option<Track>; TRACKS],
    /// Fader of the master.
    pub master: Arc<Fader>,
    /// Meter of the master.
    pub meter: Arc<MasterMeter>,
    /// Models that MIDI program changes select, in order.
    pub set_list: Vec<FileReference>,
    link: Option<RackLink>,
    /// Renders offline: models may take any time.
    offline: bool,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// Models to be loaded, the newest request of each track, the oldest first.
    requests: VecDeque<ModelRequest>,
    /// Number of the last plan.
    plans: u64,
}

impl Mixer {
    /// Creates a mixer without tracks. `wake` is called from any thread when there is something new
    /// to show; it must not block.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            tracks: [const { None }; TRACKS],
            master: Arc::default(),
            meter: Arc::default(),
            set_list: Vec::new(),
            link: None,
            offline: false,
            wake: Arc::new(wake),
            requests: VecDeque::new(),
            plans: 0,
        }
    }

    /// Creates a mixer for offline rendering: models run on the caller's thread and are waited for.
    #[must_use]
    pub fn offline() -> Self {
        let mut mixer = Self::new(|| {});
        mixer.offline = true;
        mixer
    }

    /// Returns the track in a slot.
    #[must_use]
    pub fn track(&self, slot: usize) -> Option<&Track> {
        self.tracks.get(slot)?.as_ref()
    }

    /// Iterates over all tracks with their slots.
    pub fn tracks(&self) -> impl Iterator<Item = (usize, &Track)> {
        self.tracks
            .iter()
            .enumerate()
            .filter_map(|(slot, track)| Some((slot, track.as_ref()?)))
    }

    /// Renames the track in a slot; with an empty name it shows its model's.
    pub fn rename(&mut self, slot: usize, name: &str) {
        if let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) {
            name.trim().clone_into(&mut track.name);
        }
    }

    /// Adds a track that plays its initial model and builds it. Returns its slot.
    ///
    /// # Errors
    /// Returns an error if all slots are taken or the model cannot be played.
    pub fn add(&mut self, product: Product) -> anyhow::Result<usize> {
        let slot = self.add_silent(product)?;
        self.renew(slot)?;
        Ok(slot)
    }

    /// Adds a track that is silent until its strip is built. Returns its slot.
    ///
    /// # Errors
    /// Returns an error if all slots are taken.
    pub fn add_silent(&mut self, product: Product) -> anyhow::Result<usize> {
        let Some(slot) = self.tracks.iter().position(Option::is_none) else {
            bail!("all {TRACKS} tracks are in use");
        };
        self.tracks[slot] = Some(Track::new(product, &self.wake));
        Ok(slot)
    }

    /// Removes a track.
    pub fn remove(&mut self, slot: usize) {
        if let Some(track) = self.tracks.get_mut(slot) {
            *track = None;
            self.requests.retain(|request| request.slot() != slot);
            self.send(RackChange::Remove(slot));
        }
    }

    /// Changes the input of a track.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read; the input then stays as it is.
    pub fn set_input(&mut self, slot: usize, input: TrackInput) -> anyhow::Result<()> {
        let clip = self
            .sample_rate()
            .map(|rate| strip_plan::read(&input, rate))
            .transpose()?
            .flatten();
        self.store_input(slot, input, clip);
        self.renew(slot)
    }

    /// Stores an input whose recording was read already, for the next strip.
    pub(crate) fn store_input(&mut self, slot: usize, input: TrackInput, clip: Option<Arc<Clip>>) {
        if let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) {
            (track.input, track.clip, track.error) = (input, clip, None);
        }
    }

    /// Loops the recording of a track, or plays it once; the position stays.
    pub fn set_looped(&mut self, slot: usize, again: bool) {
        let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if let TrackInput::File { looped, .. } = &mut track.input {
            *looped = again;
        }
        if let Some(clip) = &track.clip {
            clip.set_looped(again);
        }
    }

    /// Sets the MIDI channels of a track, one bit per channel.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn set_midi_channels(&mut self, slot: usize, channels: u16) -> anyhow::Result<()> {
        self.store_midi_channels(slot, channels);
        self.renew(slot)
    }

    /// Stores the MIDI channels for the next strip.
    pub(crate) fn store_midi_channels(&mut self, slot: usize, channels: u16) {
        if let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) {
            track.midi_channels = channels;
        }
    }

    /// Returns the sample rate in Hz; `None` while no devices are open.
    #[must_use]
    pub fn sample_rate(&self) -> Option<u32> {
        self.link.as_ref().map(|link| link.setup.sample_rate)
    }

    /// Sets the events for a track to play, in order, each with its sample after the start.
    pub fn set_score(&mut self, slot: usize, score: Vec<(u64, EventKind)>) {
        if let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) {
            track.score = score;
        }
    }

    /// Schedules a score on all tracks: `score` returns it for the settings of a track.
    ///
    /// # Errors
    /// Returns the first error of `score`.
    pub fn set_scores(
        &mut self,
        mut score: impl FnMut(&MidiSettings) -> anyhow::Result<Vec<(u64, EventKind)>>,
    ) -> anyhow::Result<()> {
        for track in self.tracks.iter_mut().flatten() {
            track.score = score(&track.parameters.player_parameters().midi)?;
        }
        Ok(())
    }

    /// Creates the audio thread's half with all strips. `taps` are the master's and those of the
    /// tracks.
    ///
    /// # Errors
    /// Returns an error if a track's model cannot be played.
    pub fn open(
        &mut self,
        setup: Setup,
        midi: Option<MidiReceiver>,
        taps: Vec<Tap>,
    ) -> anyhow::Result<Rack> {
        let (mut rack, plans) = self.open_empty(setup, midi, taps);
        for plan in plans {
            if let Some(finished) = plan.build()? {
                self.insert(&mut rack, finished);
            }
        }
        Ok(rack)
    }

    /// Creates the audio thread's half without strips, and a plan for each; [`Mixer::insert`] adds
    /// the built strips before the sound starts.
    pub fn open_empty(
        &mut self,
        setup: Setup,
        midi: Option<MidiReceiver>,
        taps: Vec<Tap>,
    ) -> (Rack, Vec<StripPlan>) {
        let (changes, incoming) = HeapRb::new(QUEUE_CAPACITY).split();
        // Room for all strips of a rack.
        let (retiring, retired) = HeapRb::new(QUEUE_CAPACITY + TRACKS).split();
        let (choosing, programs) = HeapRb::new(QUEUE_CAPACITY).split();
        self.link = Some(RackLink {
            setup,
            changes,
            retired,
            programs,
        });
        self.meter.restart();
        let rack = Rack {
            strips: [const { None }; TRACKS],
            changes: incoming,
            retired: retiring,
            midi,
            messages: ArrayVec::new(),
            clock_follower: ClockFollower::new(),
            programs: choosing,
            banks: MidiBanks::default(),
            master: Master::new(
                self.master.clone(),
                self.meter.clone(),
                setup.sample_rate,
                setup.max_block,
            ),
            tracks_latency: 0,
            meter: self.meter.clone(),
            taps,
            clock: 0,
            sample_rate: setup.sample_rate,
        };
        // The strips so far end with the old rack.
        self.tracks
            .iter_mut()
            .flatten()
            .for_each(|track| track.installed = None);
        let plans = (0..TRACKS).filter_map(|slot| self.plan(slot)).collect();
        (rack, plans)
    }

    /// Puts a built strip into a rack that does not play yet.
    pub fn insert(&mut self, rack: &mut Rack, finished: BuiltPlan) {
        if let Some((slot, BuiltPart::Strip(strip))) = self.accept(finished) {
            rack.strips[slot] = Some(strip);
            // Nothing was heard before, so nothing has to be faded.
            rack.finish_fades();
        }
    }

    /// Sends a built part to the audio thread, unless the track was planned anew in the meantime.
    pub fn install(&mut self, finished: BuiltPlan) {
        match self.accept(finished) {
            Some((slot, BuiltPart::Strip(strip))) => self.send(RackChange::Install(slot, strip)),
            Some((slot, BuiltPart::StripRouting(routing))) => {
                self.send(RackChange::Route(slot, routing))
            }
            None => {}
        }
    }

    /// Reports why the strip of a track cannot be built; the track is silent.
    #[cfg(feature = "devices")]
    pub(crate) fn fail(&mut self, slot: usize, reason: String) {
        if let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) {
            (track.installed, track.error) = (None, Some(reason));
            (self.wake)();
        }
    }

    fn accept(&mut self, finished: BuiltPlan) -> Option<(usize, BuiltPart)> {
        let BuiltPlan {
            slot,
            number,
            config,
            clip,
            input_error,
            part,
        } = finished;
        let track = self.tracks.get_mut(slot).and_then(Option::as_mut)?;
        if track.latest_plan.load(Relaxed) != number {
            return None;
        }
        (track.installed, track.clip, track.error) =
            (Some((config, Instant::now())), clip, input_error);
        Some((slot, part))
    }

    /// Returns a plan for the strip of a track; `None` without a track or without open devices.
    pub fn plan(&mut self, slot: usize) -> Option<StripPlan> {
        let setup = self.link.as_ref()?.setup;
        let track = self.tracks.get_mut(slot)?.as_mut()?;
        self.plans += 1;
        track.latest_plan.store(self.plans, Relaxed);
        Some(StripPlan {
            slot,
            number: self.plans,
            latest_plan: track.latest_plan.clone(),
            build_lock: track.build_lock.clone(),
            setup,
            offline: self.offline,
            playing_latency: track.installed.map(|(config, _)| config.latency),
            instance: track.instance.clone(),
            parameters: track.parameters.clone(),
            fader: track.fader.clone(),
            input: track.input.clone(),
            clip: track.clip.clone(),
            midi_channels: track.midi_channels,
            score: track.score.clone(),
            meter: self.meter.clone(),
        })
    }

    /// Builds and installs what a track needs. A strip that plays keeps playing, held notes
    /// included.
    fn renew(&mut self, slot: usize) -> anyhow::Result<()> {
        if let Some(finished) = self.plan(slot).map(StripPlan::build).transpose()?.flatten() {
            self.install(finished);
        }
        Ok(())
    }

    fn send(&mut self, change: RackChange) {
        if let Some(link) = &mut self.link {
            // Makes room for what the change replaces.
            while link.retired.try_pop().is_some() {}
            // Without a rack there is nothing to change.
            drop(link.changes.try_push(change));
        }
    }

    /// Does periodic work, best ten times a second: rebuilds the tracks of
    /// [`Mixer::tracks_to_renew`] and loads the models of [`Mixer::next_request`].
    pub fn tick(&mut self) {
        for slot in self.tracks_to_renew() {
            // A failing model reports it in its status; the old strip keeps playing.
            drop(self.renew(slot));
        }
        while let Some(request) = self.next_request() {
            request.load();
        }
    }

    /// Drops replaced parts, follows MIDI program changes and scenes, and returns the slots of tracks
    /// whose driver or latency has changed.
    pub fn tracks_to_renew(&mut self) -> Vec<usize> {
        let mut programs = ArrayVec::<(u8, ProgramNumber), QUEUE_CAPACITY>::new();
        if let Some(link) = &mut self.link {
            while link.retired.try_pop().is_some() {}
            programs.extend(std::iter::from_fn(|| link.programs.try_pop()).take(QUEUE_CAPACITY));
        }
        for (channel, number) in programs {
            self.handle_program_change(channel, number);
        }
        for (_, track) in self.tracks() {
            let parameters = &*track.parameters;
            track.instance.follow_program(parameters, parameters);
            track
                .instance
                .follow_scene(&*track.parameters, &*track.parameters);
        }
        if self.link.is_none() {
            return Vec::new();
        }
        let mut tracks_to_renew = Vec::new();
        for (slot, track) in self.tracks.iter_mut().enumerate() {
            let Some((track, (config, when))) = track
                .as_mut()
                .and_then(|track| Some((&*track, track.installed?)))
            else {
                continue;
            };
            let latency = latency_samples(&track.instance).unwrap_or(config.latency);
            let requested = StripConfig::requested(&track.parameters, self.offline, latency);
            if requested != config && when.elapsed() > MIN_RENEWAL_INTERVAL {
                tracks_to_renew.push(slot);
            }
        }
        for slot in &tracks_to_renew {
            if let Some((_, when)) = self.tracks[*slot]
                .as_mut()
                .and_then(|track| track.installed.as_mut())
            {
                // Keeps the track from being returned again while it is rebuilt.
                *when = Instant::now();
            }
        }
        tracks_to_renew
    }

    /// Requests another model for a track; see [`Mixer::next_request`].
    pub fn request_model(&mut self, slot: usize, reference: FileReference) {
        let Some(track) = self.tracks.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let request = ModelRequest::new(slot, track.instance.clone(), reference);
        match self.requests.iter_mut().find(|other| other.slot() == slot) {
            Some(other) => *other = request,
            None => self.requests.push_back(request),
        }
    }

    /// Returns the oldest request for a model. Of several requests for a track only the newest
    /// counts.
    pub fn next_request(&mut self) -> Option<ModelRequest> {
        self.requests.pop_front()
    }

    /// Goes to what the tracks that receive the MIDI channel have chosen for it, to a scene on those
    /// that have scenes only, and requests a model of the set list on the others.
    fn handle_program_change(&mut self, channel: u8, number: ProgramNumber) {
        let receives = |(_, track): &(usize, &Track)| track.midi_channels >> channel & 1 == 1;
        let has_scenes = |track: &Track| track.instance.read_state(|state| state.scenes.are_used());
        let (with_programs, others): (Vec<_>, Vec<_>) = self
            .tracks()
            .filter(receives)
            .partition(|(_, track)| track.instance.audio.has_programs());
        for (_, track) in with_programs {
            track.instance.audio.request_program(number);
        }
        let (with_scenes, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, track)| has_scenes(track));
        let program = usize::from(number.program);
        if program < SCENES {
            for (_, track) in with_scenes {
                track.parameters.set_value(SCENE, program as f32 + 1.0);
            }
        }
        let Some(reference) = self.set_list.get(program).cloned() else {
            return;
        };
        let slots: Vec<usize> = others.into_iter().map(|(slot, _)| slot).collect();
        slots
            .into_iter()
            .for_each(|slot| self.request_model(slot, reference.clone()));
    }

    /// Returns the session without its devices.
    #[must_use]
    pub fn saved(&self) -> SessionFile {
        let tracks = self.tracks().map(|(_, track)| track.saved()).collect();
        let mut session = SessionFile::default();
        (session.master, session.tracks) = (self.master.get(), tracks);
        session.set_list.clone_from(&self.set_list);
        session
    }

    /// Restores a session. Returns one line per problem; a track whose model or recording is
    /// missing is silent.
    pub fn restore(&mut self, session: &SessionFile) -> Vec<String> {
        let mut problems = self.replace(LoadedSession::read(session, &self.waker()));
        for slot in 0..TRACKS {
            problems.extend(self.renew(slot).err().map(|error| format!("{error:#}")));
            problems.extend(self.track(slot).and_then(|track| track.error.clone()));
        }
        problems
    }

    /// Replaces all tracks by those of a session, without strips yet. Returns one line per problem.
    pub fn replace(&mut self, restored: LoadedSession) -> Vec<String> {
        (0..TRACKS).for_each(|slot| self.remove(slot));
        self.master.set(restored.master);
        self.set_list = restored.set_list;
        self.tracks
            .iter_mut()
            .zip(restored.tracks)
            .for_each(|(slot, track)| *slot = Some(track));
        restored.problems
    }

    /// Returns the warnings about the models that play, one line each.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let notice = |(slot, track): (usize, &Track)| {
            Some(format!("track {}: {}", slot + 1, track.instance.notice()?))
        };
        self.tracks().filter_map(notice).collect()
    }

    /// Returns the callback that announces something new to show.
    #[must_use]
    pub fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.wake.clone()
    }
}

/// Session whose models are loaded, ready for [`Mixer::replace`].
pub struct LoadedSession {
    tracks: Vec<Track>,
    master: FaderSettings,
    set_list: Vec<FileReference>,
    problems: Vec<String>,
}

impl LoadedSession {
    /// Loads the models of a session; slow.
    #[must_use]
    pub fn read(session: &SessionFile, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let tracks: Vec<Track> = session
            .tracks
            .iter()
            .take(TRACKS)
            .map(|saved| Track::restored(saved, wake))
            .collect();
        // A program that may not run is no problem of the session: somebody is asked.
        let missing = tracks
            .iter()
            .filter_map(|track| track.instance.missing_model());
        let missing = missing.filter(|missing| missing.program.is_none());
        let mut problems: Vec<String> = missing.map(|missing| missing.to_string()).collect();
        let cabinets = tracks
            .iter()
            .filter_map(|track| track.instance.missing_cabinet());
        problems.extend(cabinets.map(|missing| missing.describe("cabinet")));
        for track in &tracks {
            let blocks = track.instance.blocks();
            let missing = blocks.iter().filter_map(BlockState::missing);
            problems.extend(missing.map(str::to_owned));
        }
        problems.extend(
            tracks
                .iter()
                .filter_map(|track| track.instance.tuning_problem()),
        );
        if session.tracks.len() > TRACKS {
            problems.push(format!(
                "only the first {TRACKS} of {} tracks are played",
                session.tracks.len()
            ));
        }
        Self {
            tracks,
            master: session.master,
            set_list: session.set_list.clone(),
            problems,
        }
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::realtime::LoadStatus;
    use ondes_player::library::BUNDLED;
    use ondes_player::parameter::DRIVER;
    use ondes_player::programs::{ProgramChange, ProgramChoice};

    use super::*;
    use crate::io::{Callback, MidiMessage};
    use ondes_engine::dsp::level::peak;

    #[test]
    fn program_changes_choose_scenes_where_there_are_some() {
        let mut mixer = Mixer::new(|| {});
        for slot in 0..2 {
            mixer.add_silent(Product::Instrument).unwrap();
            let track = mixer.track(slot).unwrap();
            track.parameters.set_value(SCENE, 2.0);
            track
                .instance
                .follow_scene(&*track.parameters, &*track.parameters);
        }
        mixer.add_silent(Product::Instrument).unwrap();
        mixer.set_list = vec![FileReference::to(&BUNDLED[1].model(), None)];
        mixer.tracks[1].as_mut().unwrap().midi_channels = 0;
        mixer.handle_program_change(0, ProgramNumber::default());
        mixer.tracks_to_renew();
        for (slot, expected) in [(0, 0), (1, 1), (2, 0)] {
            let track = mixer.track(slot).unwrap();
            assert_eq!(track.instance.scenes().active, expected, "track {slot}");
        }
        let request = mixer.next_request().unwrap();
        assert_eq!(request.slot(), 2);
        assert!(mixer.next_request().is_none());
        // What a track has chosen for program changes goes first.
        let program = ProgramChange {
            number: ProgramNumber::default(),
            choice: ProgramChoice::Scene(5),
        };
        mixer.track(0).unwrap().instance.set_programs(vec![program]);
        mixer.handle_program_change(0, ProgramNumber::default());
        mixer.tracks_to_renew();
        let track = mixer.track(0).unwrap();
        assert_eq!(track.instance.scenes().active, 4);
    }

    #[test]
    fn only_the_newest_program_change_of_a_track_is_loaded() {
        let mut mixer = Mixer::new(|| {});
        (0..8).for_each(|slot| assert_eq!(mixer.add_silent(Product::Instrument).unwrap(), slot));
        mixer.set_list = BUNDLED[..3]
            .iter()
            .map(|bundled| FileReference::to(&bundled.model(), None))
            .collect();
        let number = |program| ProgramNumber { bank: 0, program };
        (0..375_u16).for_each(|change| {
            let program = number((change % 3) as u8);
            mixer.handle_program_change((change % 16) as u8, program);
        });
        let superseded = ModelRequest::new(
            7,
            mixer.track(7).unwrap().instance.clone(),
            mixer.set_list[0].clone(),
        );
        mixer.handle_program_change(9, number(2));
        mixer.remove(3);
        let requests: Vec<_> = std::iter::from_fn(|| mixer.next_request()).collect();
        assert_eq!(
            requests.iter().map(ModelRequest::slot).collect::<Vec<_>>(),
            [0, 1, 2, 4, 5, 6, 7]
        );
        requests.into_iter().for_each(ModelRequest::load);
        superseded.load();
        assert!(
            mixer
                .tracks()
                .all(|(_, track)| track.title() == BUNDLED[2].name)
        );
        // The session builds its network on a thread of its own.
        mixer
            .tracks()
            .for_each(|(_, track)| track.instance.wait_until_loaded(Duration::from_secs(20)));
        assert!(
            mixer
                .tracks()
                .all(|(_, track)| track.instance.status() != LoadStatus::Loading)
        );
    }

    #[test]
    fn a_track_is_rebuilt_once_per_change_and_keeps_playing() {
        let mut latencies = Vec::new();
        for driver in [1.0, 2.0] {
            let mut mixer = Mixer::new(|| {});
            mixer.add(Product::Instrument).unwrap();
            // Independent of the load of this machine.
            mixer
                .track(0)
                .unwrap()
                .instance
                .session
                .set_non_realtime(true);
            let mut rack = mixer
                .open(
                    Setup {
                        sample_rate: 44_100,
                        max_block: 512,
                    },
                    None,
                    Vec::new(),
                )
                .unwrap();
            rack.receive_midi(
                0,
                &MidiMessage::new(Instant::now(), &[0x90, 57, 100]).unwrap(),
            );
            let mut play = |blocks: usize| {
                let peaks = (0..blocks).map(|_| {
                    let mut block = [[0.0_f32; 512]; 2];
                    let [left, right] = &mut block;
                    rack.process(&[], &mut [left, right]);
                    // Lets the loader of the model run.
                    std::thread::sleep(Duration::from_micros(500));
                    peak(&block[0])
                });
                peaks.fold(f32::INFINITY, f32::min)
            };
            play(40);
            mixer.track(0).unwrap().parameters.set_value(DRIVER, driver);
            let mut renewals = Vec::new();
            for round in 0..10 {
                // Simulates that time has passed.
                let track = mixer.tracks[0].as_mut().unwrap();
                let (config, when) = track.installed.unwrap();
                track.installed =
                    Some((config, when.checked_sub(2 * MIN_RENEWAL_INTERVAL).unwrap()));
                let before = track.installed.unwrap().1;
                mixer.tick();
                if mixer.tracks[0].as_ref().unwrap().installed.unwrap().1 != before {
                    renewals.push(round);
                }
                let least = play(60);
                assert!(least > 0.01, "the note goes on: {least}");
                while mixer.track(0).unwrap().instance.session.status() == LoadStatus::Loading {
                    play(1);
                }
            }
            let late = latency_samples(&mixer.track(0).unwrap().instance).unwrap();
            let master = Master::new(Arc::default(), Arc::default(), 44_100, 64);
            assert_eq!(rack.latency_samples(), late + master.latency_samples());
            latencies.push(late);
            assert_eq!(renewals.first(), Some(&0), "driver {driver}");
            assert!(
                renewals.len() <= 2 && renewals.last() < Some(&5),
                "driver {driver}: {renewals:?}"
            );
        }
        assert!(latencies[1] > latencies[0], "a worker takes its time");
    }
}
