//! The rack as everybody but its audio thread sees it: tracks are made, loaded, saved and removed here.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use arrayvec::ArrayVec;
use ondes_engine::instrument::EventKind;
use ondes_engine::pipeline::Source;
use ondes_engine::realtime::{Driver, Setup, Status};
use ondes_instance::board::Board;
use ondes_instance::library::Reference;
use ondes_instance::panel::Panel;
use ondes_instance::player::Player;
use ondes_instance::preset::Product;
use ondes_instance::shared::Shared;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::clip::Clip;
use super::limiter::Limiter;
use super::mix::Mix;
use super::saved::{Input, SavedTrack, SessionFile};
use super::strip::{Feed, Parts, Strip};
use super::{Change, Meter, Rack, TRACKS};
use crate::devices::{ClockFollower, MidiReceiver};
use crate::record::Tap;

/// How long a model that is being read may hold up the start of the sound.
const PATIENCE: Duration = Duration::from_secs(5);
/// A strip is not made anew more often: a latency that is never the same must not keep it from playing.
const RENEWAL: Duration = Duration::from_secs(2);
/// Changes and programs that may wait for the other half.
const WAITING: usize = 64;
/// All sixteen MIDI channels.
pub const ALL_CHANNELS: u16 = u16::MAX;

/// One track.
pub struct Track {
    /// Its name; its model's where nobody has given it one.
    pub name: String,
    /// Its instance.
    pub shared: Arc<Shared>,
    /// Its parameters.
    pub panel: Arc<Panel>,
    /// Its fader.
    pub mix: Arc<Mix>,
    /// What it listens to.
    input: Input,
    clip: Option<Arc<Clip>>,
    midi_channels: u16,
    /// All of it, also what is played already.
    score: Vec<(u64, EventKind)>,
    /// How its strip was made, and when.
    made: Option<(Made, Instant)>,
}

/// What makes another strip necessary when it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Made {
    driver: Driver,
    source: Source,
    latency: usize,
}

impl Track {
    fn new(product: Product, wake: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let wake = wake.clone();
        let shared = Shared::new(product, move || wake());
        let panel = Arc::new(Panel::new(product));
        panel.offer(&shared.controllers);
        shared.listen_to(&panel);
        Self {
            name: String::new(),
            shared,
            panel,
            mix: Arc::default(),
            input: Input::default(),
            clip: None,
            midi_channels: ALL_CHANNELS,
            score: Vec::new(),
            made: None,
        }
    }

    /// What it listens to.
    #[must_use]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The recording that it listens to.
    #[must_use]
    pub fn clip(&self) -> Option<&Arc<Clip>> {
        self.clip.as_ref()
    }

    /// MIDI channels that it hears, one bit each.
    #[must_use]
    pub fn midi_channels(&self) -> u16 {
        self.midi_channels
    }

    /// The name to show.
    #[must_use]
    pub fn title(&self) -> String {
        let model = || self.shared.model().map(|model| model.header().card.name.clone());
        if self.name.is_empty() { model().unwrap_or_default() } else { self.name.clone() }
    }

    fn saved(&self) -> SavedTrack {
        SavedTrack {
            name: self.name.clone(),
            product: self.shared.product,
            parameters: self.panel.saved(),
            selection: self.shared.saved(),
            mix: self.mix.get(),
            input: self.input.clone(),
            midi_channels: self.midi_channels,
        }
    }
}

/// What joins the two halves while the sound is open.
struct Line {
    setup: Setup,
    changes: HeapProd<Change>,
    retired: HeapCons<Box<Strip>>,
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
    wake: Arc<dyn Fn() + Send + Sync>,
    errands: Vec<JoinHandle<()>>,
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
            wake: Arc::new(wake),
            errands: Vec::new(),
        }
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
        let Some(place) = self.tracks.iter().position(Option::is_none) else {
            bail!("there are no more than {TRACKS} tracks");
        };
        let mut track = Track::new(product, &self.wake);
        if product == Product::Effect {
            track.input = Input::Channels { first: 0, count: 1 };
        }
        self.tracks[place] = Some(track);
        self.renew(place)?;
        Ok(place)
    }

    /// Removes a track.
    pub fn remove(&mut self, place: usize) {
        if let Some(track) = self.tracks.get_mut(place) {
            *track = None;
            self.send(place, None);
        }
    }

    /// Lets a track listen to something else.
    ///
    /// # Errors
    /// When the recording cannot be read; then everything stays as it is.
    pub fn set_input(&mut self, place: usize, input: Input) -> anyhow::Result<()> {
        let rate = self.line.as_ref().map(|line| line.setup.sample_rate);
        let clip = rate.map(|rate| clip(&input, rate)).transpose()?.flatten();
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            (track.input, track.clip) = (input, clip);
        }
        self.renew(place)
    }

    /// Lets a track hear those MIDI channels, one bit each.
    ///
    /// # Errors
    /// When the model cannot be played.
    pub fn set_midi_channels(&mut self, place: usize, channels: u16) -> anyhow::Result<()> {
        if let Some(track) = self.tracks.get_mut(place).and_then(Option::as_mut) {
            track.midi_channels = channels;
        }
        self.renew(place)
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
    /// When a track's model or recording cannot be played for that host.
    pub fn open(&mut self, setup: Setup, midi: Option<MidiReceiver>, taps: Vec<Tap>) -> anyhow::Result<Rack> {
        let (changes, incoming) = HeapRb::new(WAITING).split();
        // Room for all strips that there can be at a time.
        let (retiring, retired) = HeapRb::new(WAITING + TRACKS).split();
        let (choosing, programs) = HeapRb::new(WAITING).split();
        self.line = Some(Line { setup, changes, retired, programs });
        self.meter.restart();
        let mut strips = [const { None }; TRACKS];
        for (place, strip) in strips.iter_mut().enumerate() {
            *strip = self.strip(place)?;
            // Nothing was heard before: there is nothing to be faded.
            strip.iter_mut().for_each(|strip| strip.settle());
        }
        let block = || vec![0.0; setup.max_block];
        Ok(Rack {
            strips,
            changes: incoming,
            retired: retiring,
            midi,
            messages: ArrayVec::new(),
            clock_follower: ClockFollower::new(),
            programs: choosing,
            mix: [block(), block()],
            master: self.master.clone(),
            master_gains: self.master.get().gains(),
            limiter: Limiter::new(setup.sample_rate),
            meter: self.meter.clone(),
            taps,
            clock: 0,
            sample_rate: setup.sample_rate,
        })
    }

    /// Makes the strip of a track for the sound that is open.
    fn strip(&mut self, place: usize) -> anyhow::Result<Option<Box<Strip>>> {
        let Some(setup) = self.line.as_ref().map(|line| line.setup) else { return Ok(None) };
        let Some(track) = self.tracks[place].as_mut() else { return Ok(None) };
        let (driver, source) = (track.panel.driver(), track.panel.source());
        track.shared.set_source(source);
        track.shared.remote.set_driver(driver);
        track.shared.wait(PATIENCE);
        let session = track.shared.remote.activate(setup).with_context(|| format!("track {}", place + 1))?;
        let player = Player::new(session, track.shared.clone(), setup, &track.panel.knobs());
        track.made = Some((Made { driver, source, latency: player.latency_samples() }, Instant::now()));
        // A recording at another rate than before is read again; where it stands it goes on.
        let old = track.clip.take();
        track.clip = match old {
            Some(old) if track.input.is_file(old.path()) && old.sample_rate() == setup.sample_rate => Some(old),
            old => {
                let new = clip(&track.input, setup.sample_rate)?;
                if let (Some(new), Some(old)) = (&new, old.filter(|old| track.input.is_file(old.path()))) {
                    new.go_on_from(&old);
                }
                new
            }
        };
        // A strip that takes over from another one does not play again what was played; wheels and pedals stand where they stood.
        let now = self.meter.frames();
        let to_come = |(at, kind): &&(u64, EventKind)| {
            *at >= now || !matches!(kind, EventKind::NoteOn { .. } | EventKind::NoteOff { .. })
        };
        let feed = match (&track.input, &track.clip) {
            (_, Some(clip)) => Feed::Clip(clip.clone()),
            (Input::Channels { first, count }, _) => Feed::Channels(*first, *count),
            _ => Feed::Nothing,
        };
        let parts = Parts {
            player,
            shared: track.shared.clone(),
            panel: track.panel.clone(),
            mix: track.mix.clone(),
            feed,
            source,
            midi_channels: track.midi_channels,
            score: track.score.iter().filter(to_come).copied().collect(),
        };
        Ok(Some(Box::new(Strip::new(parts, setup.max_block))))
    }

    /// Makes a track's strip anew.
    fn renew(&mut self, place: usize) -> anyhow::Result<()> {
        let strip = self.strip(place)?;
        if strip.is_some() {
            self.send(place, strip);
        }
        Ok(())
    }

    fn send(&mut self, place: usize, strip: Option<Box<Strip>>) {
        if let Some(line) = &mut self.line {
            // Where nobody takes changes any more there is no sound to be changed.
            drop(line.changes.try_push(Change { place, strip }));
        }
    }

    /// Does what has to be done now and then, best ten times a second: drops what is not played any more, renews strips whose driver
    /// or latency has changed, loads what MIDI programs chose.
    pub fn tick(&mut self) {
        self.errands.retain(|errand| !errand.is_finished());
        let mut programs = ArrayVec::<(u8, u8), WAITING>::new();
        if let Some(line) = &mut self.line {
            while line.retired.try_pop().is_some() {}
            programs.extend(std::iter::from_fn(|| line.programs.try_pop()).take(WAITING));
        }
        for (channel, program) in programs {
            self.choose(channel, usize::from(program));
        }
        for place in 0..TRACKS {
            let Some(track) = self.track(place) else { continue };
            let Some((made, when)) = track.made.filter(|_| self.line.is_some()) else { continue };
            let latency = match (track.shared.remote.status(), track.shared.remote.health()) {
                (Status::Ready, Some(health)) => health.latency_samples,
                _ => made.latency,
            };
            let wanted = Made { driver: track.panel.driver(), source: track.panel.source(), latency };
            if wanted != made && when.elapsed() > RENEWAL {
                // What cannot be played says so in its status; the old strip plays on.
                drop(self.renew(place));
            }
        }
    }

    /// Plays the model of that number in the set list on all tracks that hear that MIDI channel.
    fn choose(&mut self, channel: u8, program: usize) {
        let Some(reference) = self.set_list.get(program).cloned() else { return };
        let heard = |track: &&Track| track.midi_channels >> channel & 1 == 1;
        let errands: Vec<JoinHandle<()>> = (self.tracks.iter().flatten().filter(heard))
            .map(|track| {
                let reference = reference.clone();
                track.shared.fetch(false, move || reference.find().map_err(|missing| missing.to_string()))
            })
            .collect();
        self.errands.extend(errands);
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
        let mut problems = Vec::new();
        (0..TRACKS).for_each(|place| self.remove(place));
        self.master.set(session.master);
        self.set_list.clone_from(&session.set_list);
        for (place, saved) in session.tracks.iter().take(TRACKS).enumerate() {
            let mut track = Track::new(saved.product, &self.wake);
            track.name.clone_from(&saved.name);
            track.panel.restore(&saved.parameters);
            track.shared.restore(saved.selection.clone());
            track.mix.set(saved.mix);
            (track.input, track.midi_channels) = (saved.input.clone(), saved.midi_channels);
            problems.extend(track.shared.missing().map(|missing| missing.to_string()));
            self.tracks[place] = Some(track);
            if let Err(error) = self.renew(place) {
                problems.push(format!("{error:#}"));
                if let Some(track) = &mut self.tracks[place] {
                    // A recording that cannot be read is not tried again and again.
                    track.input = Input::Nothing;
                }
                problems.extend(self.renew(place).err().map(|error| format!("{error:#}")));
            }
        }
        if session.tracks.len() > TRACKS {
            problems.push(format!("only the first {TRACKS} of {} tracks are played", session.tracks.len()));
        }
        problems
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

/// The recording of an input that has one.
fn clip(input: &Input, sample_rate: u32) -> anyhow::Result<Option<Arc<Clip>>> {
    let Input::File { path, looped } = input else { return Ok(None) };
    let clip = Clip::read(Path::new(path), sample_rate)?;
    clip.set_looped(*looped);
    Ok(Some(Arc::new(clip)))
}

#[cfg(test)]
mod tests {
    use ondes_instance::parameter::DRIVER;

    use super::*;
    use crate::devices::Callback;

    #[test]
    fn a_strip_is_renewed_once_for_another_driver_and_never_for_nothing() {
        for driver in [1.0, 2.0] {
            let mut console = Console::new(|| {});
            console.add(Product::Instrument).unwrap();
            let mut rack = console.open(Setup { sample_rate: 44_100, max_block: 64 }, None, Vec::new()).unwrap();
            console.track(0).unwrap().panel.put(DRIVER, driver);
            let mut renewals = 0;
            for _ in 0..20 {
                // As if time went by.
                let track = console.tracks[0].as_mut().unwrap();
                let (made, when) = track.made.unwrap();
                track.made = Some((made, when.checked_sub(2 * RENEWAL).unwrap()));
                let before = track.made.unwrap().1;
                console.tick();
                renewals += usize::from(console.tracks[0].as_ref().unwrap().made.unwrap().1 != before);
                console.track(0).unwrap().shared.wait(PATIENCE);
                rack.process(&[], &mut [&mut [0.0; 64], &mut [0.0; 64]]);
            }
            assert_eq!(renewals, 1, "driver {driver}");
        }
    }
}
