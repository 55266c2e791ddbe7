//! The rack as everybody but its audio thread sees it: tracks are made, loaded, saved and removed here.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::bail;
use arrayvec::ArrayVec;
use ondes_engine::instrument::EventKind;
use ondes_engine::model::file;
use ondes_engine::realtime::Setup;
use ondes_processor::library::Reference;
use ondes_processor::preset::Product;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::clip::Clip;
use super::master::Master;
use super::mix::{Mix, Settings};
use super::plan::{self, Finished, Made, Part, Plan};
use super::saved::{Input, SessionFile};
use super::track::{Track, latency_samples};
use super::{Change, Meter, Rack, Retired, TRACKS};
use crate::devices::{ClockFollower, MidiReceiver};
use crate::record::Tap;

/// A strip is not joined anew more often: a latency that is never the same must not keep it busy.
const RENEWAL: Duration = Duration::from_secs(2);
/// Changes and programs that may wait for the other half.
const WAITING: usize = 64;

/// What joins the two halves while the sound is open.
struct Line {
    setup: Setup,
    changes: HeapProd<Change>,
    retired: HeapCons<Retired>,
    programs: HeapCons<(u8, u8)>,
}

/// All tracks, and the master.
pub struct Console {
    tracks: [Option<Track>; TRACKS],
    /// The fader after all.
    pub master: Arc<Mix>,
    /// What is heard of the master.
    pub meter: Arc<Meter>,
    /// Models that MIDI programs choose, in order.
    pub set_list: Vec<Reference>,
    line: Option<Line>,
    /// Nobody hears it while it is made.
    offline: bool,
    wake: Arc<dyn Fn() + Send + Sync>,
    errands: Vec<JoinHandle<()>>,
    /// Plans so far.
    plans: u64,
}

impl Console {
    /// A console without tracks. `wake` is called, from any thread, when there is something new to be seen; it must not wait.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            tracks: [const { None }; TRACKS],
            master: Arc::default(),
            meter: Arc::default(),
            set_list: Vec::new(),
            line: None,
            offline: false,
            wake: Arc::new(wake),
            errands: Vec::new(),
            plans: 0,
        }
    }

    /// A console for what nobody hears while it is made: models take the caller's time, however long, and nothing is ever late.
    #[must_use]
    pub fn offline() -> Self {
        let mut console = Self::new(|| {});
        console.offline = true;
        console
    }

    /// The track in that place.
    #[must_use]
    pub fn track(&self, place: usize) -> Option<&Track> {
        self.tracks.get(place)?.as_ref()
    }

    /// All tracks with their places.
    pub fn tracks(&self) -> impl Iterator<Item = (usize, &Track)> {
        self.tracks.iter().enumerate().filter_map(|(place, track)| Some((place, track.as_ref()?)))
    }

    /// Gives the track in that place another name; an empty one is its model's.
    pub fn rename(&mut self, place: usize, name: &str) {
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            name.trim().clone_into(&mut track.name);
        }
    }

    /// Adds a track that plays the first of the bundled models. Gives its place.
    ///
    /// # Errors
    /// When there is no place left, or the model cannot be played.
    pub fn add(&mut self, product: Product) -> anyhow::Result<usize> {
        let place = self.place(product)?;
        self.renew(place)?;
        Ok(place)
    }

    /// Adds a track that is silent until its strip is made. Gives its place.
    ///
    /// # Errors
    /// When there is no place left.
    pub fn place(&mut self, product: Product) -> anyhow::Result<usize> {
        let Some(place) = self.tracks.iter().position(Option::is_none) else {
            bail!("there are no more than {TRACKS} tracks");
        };
        self.tracks[place] = Some(Track::new(product, &self.wake));
        Ok(place)
    }

    /// Removes a track.
    pub fn remove(&mut self, place: usize) {
        if let Some(track) = self.tracks.get_mut(place) {
            *track = None;
            self.send(Change::Clear(place));
        }
    }

    /// Lets a track listen to something else.
    ///
    /// # Errors
    /// When the recording cannot be read; then everything stays as it is.
    pub fn set_input(&mut self, place: usize, input: Input) -> anyhow::Result<()> {
        let clip = self.sample_rate().map(|rate| plan::read(&input, rate)).transpose()?.flatten();
        self.take_input(place, input, clip);
        self.renew(place)
    }

    /// The same with the recording already read, for a strip that is made later.
    pub(crate) fn take_input(&mut self, place: usize, input: Input, clip: Option<Arc<Clip>>) {
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            (track.input, track.clip, track.fault) = (input, clip, None);
        }
    }

    /// Lets a track's recording begin again at its end, or not; it plays on where it is.
    pub fn set_looped(&mut self, place: usize, again: bool) {
        let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) else { return };
        if let Input::File { looped, .. } = &mut track.input {
            *looped = again;
        }
        if let Some(clip) = &track.clip {
            clip.set_looped(again);
        }
    }

    /// Lets a track hear those MIDI channels, one bit each.
    ///
    /// # Errors
    /// When the model cannot be played.
    pub fn set_midi_channels(&mut self, place: usize, channels: u16) -> anyhow::Result<()> {
        self.take_midi_channels(place, channels);
        self.renew(place)
    }

    /// The same for a strip that is made later.
    pub(crate) fn take_midi_channels(&mut self, place: usize, channels: u16) {
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            track.midi_channels = channels;
        }
    }

    /// Hz; none while the sound is not open.
    #[must_use]
    pub fn sample_rate(&self) -> Option<u32> {
        self.line.as_ref().map(|line| line.setup.sample_rate)
    }

    /// Things for a track to play, in order, at samples from the start of the sound.
    pub fn set_score(&mut self, place: usize, score: Vec<(u64, EventKind)>) {
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            track.score = score;
        }
    }

    /// Begins the sound: makes the audio thread's half for that host. `taps` are the master's and those of the tracks.
    ///
    /// # Errors
    /// When a track's model cannot be played for that host.
    pub fn open(&mut self, setup: Setup, midi: Option<MidiReceiver>, taps: Vec<Tap>) -> anyhow::Result<Rack> {
        let (mut rack, plans) = self.begin(setup, midi, taps);
        for plan in plans {
            if let Some(finished) = plan.make()? {
                self.seat(&mut rack, finished);
            }
        }
        Ok(rack)
    }

    /// The audio thread's half without any strip, and plans for those. [`Console::seat`] puts them in before the sound begins.
    pub fn begin(&mut self, setup: Setup, midi: Option<MidiReceiver>, taps: Vec<Tap>) -> (Rack, Vec<Plan>) {
        let (changes, incoming) = HeapRb::new(WAITING).split();
        // Room for all strips that there can be at a time.
        let (retiring, retired) = HeapRb::new(WAITING + TRACKS).split();
        let (choosing, programs) = HeapRb::new(WAITING).split();
        self.line = Some(Line { setup, changes, retired, programs });
        self.meter.restart();
        let rack = Rack {
            strips: [const { None }; TRACKS],
            changes: incoming,
            retired: retiring,
            midi,
            messages: ArrayVec::new(),
            clock_follower: ClockFollower::new(),
            programs: choosing,
            master: Master::new(self.master.clone(), self.meter.clone(), setup.sample_rate, setup.max_block),
            slowest: 0,
            meter: self.meter.clone(),
            taps,
            clock: 0,
            sample_rate: setup.sample_rate,
        };
        // What plays there now ends with the sound before.
        self.tracks.iter_mut().flatten().for_each(|track| track.made = None);
        let plans = (0..TRACKS).filter_map(|place| self.plan(place)).collect();
        (rack, plans)
    }

    /// Puts a strip into a rack that does not play yet.
    pub fn seat(&mut self, rack: &mut Rack, finished: Finished) {
        if let Some((place, Part::Strip(strip))) = self.accept(finished) {
            rack.strips[place] = Some(strip);
            // Nothing was heard before: there is nothing to be faded.
            rack.settle();
        }
    }

    /// Puts what was made into the sound, where nothing else was planned meanwhile.
    pub fn install(&mut self, finished: Finished) {
        match self.accept(finished) {
            Some((place, Part::Strip(strip))) => self.send(Change::Put(place, strip)),
            Some((place, Part::Wiring(wiring))) => self.send(Change::Wire(place, wiring)),
            None => {}
        }
    }

    fn accept(&mut self, finished: Finished) -> Option<(usize, Part)> {
        let Finished { place, number, made, clip, fault, part } = finished;
        let track = self.tracks.get_mut(place).and_then(Option::as_mut)?;
        if track.latest.load(Relaxed) != number {
            return None;
        }
        (track.made, track.clip, track.fault) = (Some((made, Instant::now())), clip, fault);
        Some((place, part))
    }

    /// How a track is to play in the sound that is open; none where there is no track or no sound.
    pub fn plan(&mut self, place: usize) -> Option<Plan> {
        let setup = self.line.as_ref()?.setup;
        let track = self.tracks.get_mut(place)?.as_mut()?;
        self.plans += 1;
        track.latest.store(self.plans, Relaxed);
        Some(Plan {
            place,
            number: self.plans,
            latest: track.latest.clone(),
            turn: track.turn.clone(),
            setup,
            offline: self.offline,
            plays: track.made.map(|(made, _)| made.latency),
            shared: track.shared.clone(),
            panel: track.panel.clone(),
            mix: track.mix.clone(),
            input: track.input.clone(),
            clip: track.clip.clone(),
            midi_channels: track.midi_channels,
            score: track.score.clone(),
            meter: self.meter.clone(),
        })
    }

    /// Lets a track play as it is wanted now. A strip that plays already plays on: notes that are held stay.
    fn renew(&mut self, place: usize) -> anyhow::Result<()> {
        if let Some(finished) = self.plan(place).map(Plan::make).transpose()?.flatten() {
            self.install(finished);
        }
        Ok(())
    }

    fn send(&mut self, change: Change) {
        if let Some(line) = &mut self.line {
            // So that there is room for what makes way.
            while line.retired.try_pop().is_some() {}
            // Where nobody takes changes any more there is no sound to be changed.
            drop(line.changes.try_push(change));
        }
    }

    /// Does what has to be done now and then, best ten times a second, and renews the tracks that [`Console::due`] names.
    pub fn tick(&mut self) {
        for place in self.due() {
            // What cannot be played says so in its status; what played plays on.
            drop(self.renew(place));
        }
    }

    /// Drops what is not played any more, loads what MIDI programs chose, and gives the places of tracks whose driver or latency
    /// has changed: they are to be renewed.
    pub fn due(&mut self) -> Vec<usize> {
        self.errands.retain(|errand| !errand.is_finished());
        let mut programs = ArrayVec::<(u8, u8), WAITING>::new();
        let Some(line) = &mut self.line else { return Vec::new() };
        while line.retired.try_pop().is_some() {}
        programs.extend(std::iter::from_fn(|| line.programs.try_pop()).take(WAITING));
        for (channel, program) in programs {
            self.choose(channel, usize::from(program));
        }
        let mut due = Vec::new();
        for (place, track) in self.tracks.iter_mut().enumerate() {
            let Some((track, (made, when))) = track.as_mut().and_then(|track| Some((&*track, track.made?))) else {
                continue;
            };
            let latency = latency_samples(&track.shared).unwrap_or(made.latency);
            let wanted = Made::wanted(&track.panel, self.offline, latency);
            if wanted != made && when.elapsed() > RENEWAL {
                due.push(place);
            }
        }
        for place in &due {
            if let Some((_, when)) = self.tracks[*place].as_mut().and_then(|track| track.made.as_mut()) {
                // It is not due again while it is being renewed.
                *when = Instant::now();
            }
        }
        due
    }

    /// Begins to load a model on a track; its name is what those read who wait for it.
    pub fn fetch(&mut self, place: usize, reference: Reference) {
        let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) else { return };
        track.coming.clone_from(&reference.name);
        let find = move || reference.find().map_err(|missing| missing.to_string());
        self.errands.push(track.shared.fetch(false, find));
    }

    /// Begins to load the model of a file on a track.
    pub fn fetch_file(&mut self, place: usize, path: PathBuf) {
        let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) else { return };
        track.coming = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let find = move || match file::read(&path) {
            Ok(model) => Ok((Arc::new(model), Some(path))),
            Err(error) => Err(error.to_string()),
        };
        self.errands.push(track.shared.fetch(false, find));
    }

    /// Plays the model of that number in the set list on all tracks that hear that MIDI channel.
    fn choose(&mut self, channel: u8, program: usize) {
        let Some(reference) = self.set_list.get(program).cloned() else { return };
        let heard = |(_, track): &(usize, &Track)| track.midi_channels >> channel & 1 == 1;
        let places: Vec<usize> = self.tracks().filter(heard).map(|(place, _)| place).collect();
        places.into_iter().for_each(|place| self.fetch(place, reference.clone()));
    }

    /// Everything that a session file keeps of it.
    #[must_use]
    pub fn saved(&self) -> SessionFile {
        let tracks = self.tracks().map(|(_, track)| track.saved()).collect();
        let mut session = SessionFile::default();
        (session.master, session.tracks) = (self.master.get(), tracks);
        session.set_list.clone_from(&self.set_list);
        session
    }

    /// Goes to what a session file has kept. A model or recording that is missing leaves its track silent, and is named in what
    /// this gives: one line each.
    pub fn restore(&mut self, session: &SessionFile) -> Vec<String> {
        let mut problems = self.replace(Restored::read(session, &self.waker()));
        for place in 0..TRACKS {
            problems.extend(self.renew(place).err().map(|error| format!("{error:#}")));
            problems.extend(self.track(place).and_then(|track| track.fault.clone()));
        }
        problems
    }

    /// Goes to what was read of a session, without strips yet. Gives what is wrong with it, one line each.
    pub fn replace(&mut self, restored: Restored) -> Vec<String> {
        (0..TRACKS).for_each(|place| self.remove(place));
        self.master.set(restored.master);
        self.set_list = restored.set_list;
        self.tracks.iter_mut().zip(restored.tracks).for_each(|(place, track)| *place = Some(track));
        restored.problems
    }

    /// What the user should know of the models that play, one line for each that there is something to say of.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let notice = |(place, track): (usize, &Track)| Some(format!("track {}: {}", place + 1, track.shared.notice()?));
        self.tracks().filter_map(notice).collect()
    }

    /// What is called when there is something new to be seen.
    #[must_use]
    pub fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.wake.clone()
    }
}

/// A session that was read: tracks that wait for their places.
pub struct Restored {
    tracks: Vec<Track>,
    master: Settings,
    set_list: Vec<Reference>,
    problems: Vec<String>,
}

impl Restored {
    /// Finds what a session file has kept: reads its models, which may take its time.
    #[must_use]
    pub fn read(session: &SessionFile, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let tracks: Vec<Track> = session.tracks.iter().take(TRACKS).map(|saved| Track::restored(saved, wake)).collect();
        let missing = tracks.iter().filter_map(|track| track.shared.missing());
        let mut problems: Vec<String> = missing.map(|missing| missing.to_string()).collect();
        if session.tracks.len() > TRACKS {
            problems.push(format!("only the first {TRACKS} of {} tracks are played", session.tracks.len()));
        }
        Self { tracks, master: session.master, set_list: session.set_list.clone(), problems }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        for errand in self.errands.drain(..) {
            // It has said what there is to be said.
            drop(errand.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::realtime::Status;
    use ondes_processor::parameter::DRIVER;

    use super::*;
    use crate::devices::{Callback, MidiMessage};

    #[test]
    fn a_track_is_renewed_for_another_driver_and_its_latency_never_for_nothing_and_plays_on() {
        let mut latencies = Vec::new();
        for driver in [1.0, 2.0] {
            let mut console = Console::new(|| {});
            console.add(Product::Instrument).unwrap();
            // However busy this machine is.
            console.track(0).unwrap().shared.remote.set_patient(true);
            let mut rack = console.open(Setup { sample_rate: 44_100, max_block: 512 }, None, Vec::new()).unwrap();
            rack.hear(0, &MidiMessage::new(Instant::now(), &[0x90, 57, 100]).unwrap());
            let mut play = |blocks: usize| {
                let peaks = (0..blocks).map(|_| {
                    let mut block = [[0.0_f32; 512]; 2];
                    let [left, right] = &mut block;
                    rack.process(&[], &mut [left, right]);
                    // The loader asks what is played, and has to come to a word.
                    std::thread::sleep(Duration::from_micros(500));
                    block[0].iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()))
                });
                peaks.fold(f32::INFINITY, f32::min)
            };
            play(40);
            console.track(0).unwrap().panel.put(DRIVER, driver);
            let mut renewals = Vec::new();
            for round in 0..10 {
                // As if time went by.
                let track = console.tracks[0].as_mut().unwrap();
                let (made, when) = track.made.unwrap();
                track.made = Some((made, when.checked_sub(2 * RENEWAL).unwrap()));
                let before = track.made.unwrap().1;
                console.tick();
                if console.tracks[0].as_ref().unwrap().made.unwrap().1 != before {
                    renewals.push(round);
                }
                let least = play(60);
                assert!(least > 0.01, "the note goes on: {least}");
                while console.track(0).unwrap().shared.remote.status() == Status::Loading {
                    play(1);
                }
            }
            let late = latency_samples(&console.track(0).unwrap().shared).unwrap();
            let master = Master::new(Arc::default(), Arc::default(), 44_100, 64);
            assert_eq!(rack.latency_samples(), late + master.latency_samples());
            latencies.push(late);
            assert_eq!(renewals.first(), Some(&0), "driver {driver}");
            assert!(renewals.len() <= 2 && renewals.last() < Some(&5), "driver {driver}: {renewals:?}");
        }
        assert!(latencies[1] > latencies[0], "a worker takes its time");
    }
}
