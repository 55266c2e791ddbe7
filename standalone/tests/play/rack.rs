//! The rack, driven directly: mixing, and changes while it plays.

use std::sync::Arc;
use std::time::Instant;

use ondes::io::{Callback, MidiMessage};
use ondes::rack::fader::FaderSettings;
use ondes::rack::session_file::TrackInput;
use ondes::rack::{Mixer, Rack};
use ondes_engine::dsp::level::{db_to_amplitude, peak};
use ondes_engine::dsp::limiter::CEILING;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::realtime::{LoadStatus, Setup};
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::parameter::{BYPASS, CHANNELS, DRIVER, Parameter, TRANSPOSE};
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;

use crate::common;
use crate::program::tone;
use crate::server::{RATE, wait_until};

const BLOCK: usize = 256;

pub fn message(bytes: &[u8]) -> MidiMessage {
    MidiMessage::new(Instant::now(), bytes).unwrap()
}

/// Mixer and rack, driven as by a device.
pub struct Hands {
    pub mixer: Mixer,
    rack: Option<Rack>,
}

/// Stereo block.
pub struct Block([Vec<f32>; 2]);

impl Block {
    pub fn play(&mut self, rack: &mut Rack) {
        let [left, right] = &mut self.0;
        rack.process(&[], &mut [left, right]);
    }
}

impl Hands {
    /// Creates a mixer with `tracks` instruments that play in the callback.
    pub fn new(tracks: usize) -> Self {
        let mut mixer = Mixer::new(|| {});
        for place in 0..tracks {
            assert_eq!(mixer.add(Product::Instrument).unwrap(), place);
            mixer
                .track(place)
                .unwrap()
                .parameters
                .set_value(DRIVER, 1.0);
        }
        Self { mixer, rack: None }
    }

    pub fn open(&mut self) {
        let setup = Setup {
            sample_rate: RATE,
            max_block: BLOCK,
        };
        self.rack = Some(self.mixer.open(setup, None, Vec::new()).unwrap());
    }

    pub fn rack(&mut self) -> &mut Rack {
        self.rack.as_mut().unwrap()
    }

    pub fn block(&self) -> Block {
        Block([vec![0.0; BLOCK], vec![0.0; BLOCK]])
    }

    /// Plays blocks; returns `[channel][frame]`.
    pub fn play(&mut self, blocks: usize) -> [Vec<f32>; 2] {
        let mut block = self.block();
        let mut all = [Vec::new(), Vec::new()];
        for _ in 0..blocks {
            block.play(self.rack());
            all.iter_mut()
                .zip(&block.0)
                .for_each(|(all, channel)| all.extend_from_slice(channel));
        }
        all
    }

    fn set_fader(&mut self, place: usize, settings: FaderSettings) {
        self.mixer.track(place).unwrap().fader.set(settings);
    }
}

fn note(at: u64, key: u8) -> (u64, EventKind) {
    (
        at,
        EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.7,
        },
    )
}

/// Plays half a second of tracks that hold a note each, with these faders.
fn chord(keys: &[u8], settings: &[FaderSettings]) -> [Vec<f32>; 2] {
    let mut hands = Hands::new(keys.len());
    for (place, (key, settings)) in keys.iter().zip(settings).enumerate() {
        hands.set_fader(place, *settings);
        hands.mixer.set_score(place, vec![note(1_000, *key)]);
    }
    hands.open();
    hands.play(94)
}

fn assert_near(found: &[f32], wanted: impl Iterator<Item = f32>) {
    let worst = found
        .iter()
        .zip(wanted)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert!(worst < 1e-6, "{worst}");
}

#[test]
fn a_track_plays_its_pipeline_with_the_reported_latency() {
    let model = BUNDLED[0].model();
    let options = PipelineOptions {
        sample_rate: RATE,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(&model, &options).unwrap();
    // From the first sample on.
    let score = [
        note(0, 57),
        (
            9_001,
            EventKind::NoteOff {
                channel: 0,
                key: 57,
                velocity: 0.0,
            },
        ),
        note(9_100, 62),
    ];
    for (at, kind) in score {
        pipeline.handle(Event { at, kind }).unwrap();
    }
    let mut wanted = [(); 2].map(|()| vec![0.0; 94 * BLOCK]);
    let [left, right] = &mut wanted;
    for (left, right) in left.chunks_mut(100).zip(right.chunks_mut(100)) {
        pipeline.process_stereo([&[]; 2], [left, right]);
    }
    let mut hands = Hands::new(1);
    hands.mixer.set_score(0, score.to_vec());
    hands.open();
    let played = hands.play(94);
    let late = hands.rack().latency_samples() - pipeline.latency_samples();
    for (played, wanted) in played.iter().zip(&wanted) {
        assert!(late > 0 && peak(wanted) > 0.05 && peak(wanted) < CEILING);
        assert_eq!(
            (peak(&played[..late]), &played[late..]),
            (0.0, &wanted[..wanted.len() - late])
        );
    }
    let health = hands
        .mixer
        .track(0)
        .unwrap()
        .instance
        .session
        .health()
        .unwrap();
    assert_eq!(health.latency_samples, pipeline.latency_samples());
}

#[test]
fn tracks_are_added_by_their_faders() {
    let plain = FaderSettings {
        level_db: -6.0,
        ..FaderSettings::default()
    };
    let (a, b) = (chord(&[57], &[plain]), chord(&[64], &[plain]));
    assert!(peak(&a[0]) > 0.02 && a[0] != a[1]);
    let settings = [
        plain,
        FaderSettings {
            level_db: -12.0,
            pan: 0.5,
            ..plain
        },
    ];
    let both = chord(&[57, 64], &settings);
    let half = db_to_amplitude(-6.0);
    let sides = [
        (0.75 * std::f32::consts::FRAC_PI_2).cos(),
        (0.75 * std::f32::consts::FRAC_PI_2).sin(),
    ];
    for ((both, a), (b, side)) in both.iter().zip(&a).zip(b.iter().zip(sides)) {
        let gain = half * std::f32::consts::SQRT_2 * side;
        assert_near(both, a.iter().zip(b).map(|(a, b)| a + gain * b));
    }
}

#[test]
fn mute_silences_and_solo_silences_the_others() {
    let plain = FaderSettings {
        level_db: -6.0,
        ..FaderSettings::default()
    };
    let (mute, solo) = (
        FaderSettings {
            mute: true,
            ..plain
        },
        FaderSettings {
            solo: true,
            ..plain
        },
    );
    let (a, b) = (chord(&[57], &[plain]), chord(&[64], &[plain]));
    assert_near(&chord(&[57, 64], &[mute, plain])[0], b[0].iter().copied());
    assert_near(&chord(&[57, 64], &[solo, plain])[1], a[1].iter().copied());
    assert_eq!(
        peak(&chord(&[57, 64], &[plain, FaderSettings { mute: true, ..solo }])[0]),
        0.0
    );
    let all = chord(&[57, 64], &[solo, solo]);
    assert_near(&all[0], a[0].iter().zip(&b[0]).map(|(a, b)| a + b));
}

#[test]
fn a_loud_mix_stays_below_the_ceiling() {
    let loud = FaderSettings {
        level_db: 12.0,
        ..FaderSettings::default()
    };
    let [left, _] = chord(&[45, 45, 45, 45], &[loud; 4]);
    assert!(
        peak(&left) <= 1.0001 * CEILING && peak(&left) > 0.9 * CEILING,
        "{}",
        peak(&left)
    );
}

#[test]
fn tracks_come_and_go_while_it_plays() {
    let mut hands = Hands::new(1);
    hands.open();
    hands.rack().receive_midi(0, &message(&[0x90, 57, 90]));
    assert!(peak(&hands.play(50)[0]) > 0.02);
    let place = hands.mixer.add(Product::Instrument).unwrap();
    hands.play(1);
    hands.rack().receive_midi(7, &message(&[0x90, 64, 90]));
    hands.play(50);
    let gone = Arc::downgrade(&hands.mixer.track(0).unwrap().instance);
    hands.mixer.remove(0);
    assert!(peak(&hands.play(50)[0]) > 0.02, "the other one plays on");
    hands.mixer.tick();
    assert!(
        gone.upgrade().is_none(),
        "nothing is left of what was removed"
    );
    hands.mixer.remove(place);
    hands.play(2);
    assert_eq!(peak(&hands.play(50)[0]), 0.0);
    // As many tracks as possible and one more, three times.
    for _ in 0..3 {
        (0..16).for_each(|place| assert_eq!(hands.mixer.add(Product::Instrument).unwrap(), place));
        assert!(
            hands
                .mixer
                .add(Product::Instrument)
                .unwrap_err()
                .to_string()
                .contains("16")
        );
        hands.play(1);
        (0..16).for_each(|place| hands.mixer.remove(place));
        hands.play(1);
        hands.mixer.tick();
    }
    assert_eq!(hands.mixer.tracks().count(), 0);
}

#[test]
fn a_rebuilt_strip_continues_its_score() {
    let folder = tempfile::tempdir().unwrap();
    let mut hands = Hands::new(2);
    hands
        .mixer
        .set_score(0, vec![note(0, 57), note(30_000, 60)]);
    let path = tone(folder.path(), 0.0, 2.0);
    hands
        .mixer
        .set_input(
            1,
            TrackInput::File {
                path,
                looped: false,
            },
        )
        .unwrap();
    hands.open();
    hands.play(50);
    let place = hands.mixer.track(1).unwrap().clip().unwrap().position();
    assert_eq!(place, 50 * BLOCK);
    (0..2).for_each(|place| hands.mixer.set_midi_channels(place, 1).unwrap());
    hands.play(60);
    assert_eq!(
        hands.mixer.track(1).unwrap().clip().unwrap().position(),
        110 * BLOCK
    );
    // Playing continues as before.
    assert!(peak(&hands.play(1)[0]) > 0.02);
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn subnormal_numbers_are_flushed_to_silence() {
    let mut hands = Hands::new(1);
    hands
        .mixer
        .set_input(0, TrackInput::Channels { first: 0, count: 2 })
        .unwrap();
    hands
        .mixer
        .track(0)
        .unwrap()
        .parameters
        .set_value(BYPASS, 1.0);
    hands.open();
    // The limiter and the model still hold earlier sound.
    let blocks = hands.rack().latency_samples() / BLOCK + 2;
    let mut play = |sample: f32| {
        let mut output = [[1.0; BLOCK]; 2];
        for _ in 0..blocks {
            let input = [[sample; BLOCK]; 2];
            let [left, right] = &mut output;
            hands
                .rack()
                .process(&[&input[0], &input[1]], &mut [left, right]);
        }
        output.map(|channel| peak(&channel))
    };
    assert!(play(f32::MIN_POSITIVE)[0] >= f32::MIN_POSITIVE);
    assert_eq!(play(1e-39), [0.0; 2]);
}

/// Plays two tracks of notes while the first one is changed in the middle of a note.
fn renewed(change: impl FnOnce(&mut Hands)) -> [Vec<f32>; 2] {
    let mut hands = Hands::new(2);
    hands.open();
    hands.rack().receive_midi(0, &message(&[0x90, 57, 90]));
    hands.rack().receive_midi(0, &message(&[0xE0, 0, 80]));
    let mut sound = hands.play(60);
    change(&mut hands);
    sound
        .iter_mut()
        .zip(hands.play(200))
        .for_each(|(sound, more)| sound.extend(more));
    sound
}

#[test]
fn held_notes_continue_when_a_track_is_rerouted() {
    let plain = renewed(|_| {});
    assert!(peak(&plain[0][259 * BLOCK..]) > 0.02);
    // Another input, and another MIDI channel in addition to the playing one.
    assert_eq!(
        renewed(|hands| hands
            .mixer
            .set_input(0, TrackInput::Channels { first: 0, count: 1 })
            .unwrap()),
        plain
    );
    assert_eq!(
        renewed(|hands| hands.mixer.set_midi_channels(0, 3).unwrap()),
        plain
    );
    // A note on a channel that is no longer received ends; the other track's continues.
    let ended = renewed(|hands| hands.mixer.set_midi_channels(0, 2).unwrap());
    let other = renewed(|hands| hands.mixer.remove(0));
    assert_eq!(ended[0][..60 * BLOCK], plain[0][..60 * BLOCK]);
    let differ: Vec<f32> = ended[0]
        .iter()
        .zip(&other[0])
        .skip(240 * BLOCK)
        .map(|(a, b)| a - b)
        .collect();
    // Except for the tail of its room.
    assert!(peak(&differ) < 1e-4 && peak(&ended[0][240 * BLOCK..]) > 0.01 && ended != plain);
}

#[test]
fn tracks_of_different_latency_are_aligned() {
    let folder = tempfile::tempdir().unwrap();
    // Dry sound only: a click through a slow and a fast track.
    let click = |slow: bool, fast: bool| {
        let mut hands = Hands::new(2);
        let path = folder.path().join("click.wav");
        let sound: Vec<f32> = (0..20_000)
            .map(|n| if n == 5_000 { 0.5 } else { 0.0 })
            .collect();
        let mut writer = WavWriter::create(&path, RATE, 1, WavBits::Float32).unwrap();
        writer.write(&[sound]).unwrap();
        writer.finish().unwrap();
        for (place, heard) in [slow, fast].into_iter().enumerate() {
            let input = TrackInput::File {
                path: path.clone(),
                looped: false,
            };
            hands.mixer.set_input(place, input).unwrap();
            let track = hands.mixer.track(place).unwrap();
            track.parameters.set_value(BYPASS, 1.0);
            track
                .parameters
                .set_value(DRIVER, if place == 0 { 2.0 } else { 1.0 });
            track.fader.set(FaderSettings {
                mute: !heard,
                ..FaderSettings::default()
            });
        }
        hands.open();
        let [left, _] = hands.play(300);
        let health = |place: usize| {
            hands
                .mixer
                .track(place)
                .unwrap()
                .instance
                .session
                .health()
                .unwrap()
                .latency_samples
        };
        let (slow, fast) = (health(0), health(1));
        assert!(slow > fast, "{slow} {fast}");
        let late = hands.rack().latency_samples();
        assert_eq!(
            left.iter().position(|sample| *sample != 0.0),
            Some(5_000 + late)
        );
        assert!(late > slow && left[5_001 + late..].iter().all(|sample| *sample == 0.0));
        left[5_000 + late]
    };
    assert_eq!([click(true, false), click(false, true)], [0.5; 2]);
    assert!(
        (click(true, true) - CEILING).abs() < 1e-4,
        "both at once are too loud"
    );
}

#[test]
fn program_changes_select_from_the_set_list() {
    let mut hands = Hands::new(2);
    let references = BUNDLED
        .iter()
        .map(|bundled| FileReference::to(&bundled.model(), None));
    hands.mixer.set_list = references.collect();
    hands.open();
    (0..2).for_each(|place| hands.mixer.set_midi_channels(place, 1 << place).unwrap());
    let hash = |hands: &Hands, place: usize| {
        hands
            .mixer
            .track(place)
            .unwrap()
            .instance
            .model()
            .unwrap()
            .content_hash()
            .to_owned()
    };
    let bundled = |number: usize| BUNDLED[number].model().content_hash().to_owned();
    // The second one has no program 99 either.
    hands.rack().receive_midi(0, &message(&[0xC0, 99]));
    hands.rack().receive_midi(0, &message(&[0xC0, 2]));
    hands.play(1);
    hands.mixer.tick();
    wait_until("it is chosen", || hash(&hands, 0) == bundled(2));
    assert_eq!(hash(&hands, 1), bundled(0), "it hears another channel");
    hands.rack().receive_midi(0, &message(&[0xC1, 1]));
    hands.play(1);
    hands.mixer.tick();
    wait_until("it is chosen", || hash(&hands, 1) == bundled(1));
    assert_eq!(hash(&hands, 0), bundled(2));
}

#[test]
fn a_parameter_learns_the_controller_that_is_moved() {
    let mut hands = Hands::new(2);
    hands.open();
    let track = |hands: &Hands, place: usize| {
        let track = hands.mixer.track(place).unwrap();
        (track.instance.clone(), track.parameters.clone())
    };
    let (shared, panel) = track(&hands, 0);
    let id = Parameter::get(TRANSPOSE).unwrap().id;
    assert!(shared.midi_bindings.learn(id));
    for (value, wanted) in [(127, 24.0), (0, -24.0)] {
        hands.rack().receive_midi(0, &message(&[0xB3, 20, value]));
        hands.play(1);
        assert_eq!(panel.value(TRANSPOSE), Some(wanted));
    }
    hands.rack().receive_midi(0, &message(&[0xB3, 21, 64]));
    hands.play(1);
    assert_eq!(panel.value(TRANSPOSE), Some(-24.0));
    assert_eq!(
        track(&hands, 1).1.value(TRANSPOSE),
        Some(0.0),
        "the other one has learnt nothing"
    );
}

/// Plays a recording through an effect on a track, with a choice of channels; `[channel][frame]`.
fn through_an_effect(path: &std::path::Path, channels: f32) -> [Vec<f32>; 2] {
    let mut mixer = Mixer::new(|| {});
    mixer.add(Product::Effect).unwrap();
    mixer
        .set_input(
            0,
            TrackInput::File {
                path: path.into(),
                looped: false,
            },
        )
        .unwrap();
    let track = mixer.track(0).unwrap();
    track.parameters.set_value(DRIVER, 1.0);
    track.parameters.set_value(CHANNELS, channels);
    // Independent of the load of this machine.
    track.instance.set_non_realtime(true);
    track.instance.apply_requested_variant();
    track.fader.set(FaderSettings {
        level_db: -24.0,
        ..FaderSettings::default()
    });
    let mut hands = Hands { mixer, rack: None };
    hands.open();
    hands.play(100)
}

#[test]
fn effects_on_tracks_are_stereo() {
    let folder = tempfile::tempdir().unwrap();
    let sounds = [
        common::tone(220.0, 0.6, RATE),
        common::tone(331.0, 0.6, RATE),
    ]
    .map(Iterator::collect::<Vec<f32>>);
    let write = |name: &str, channels: &[&[f32]]| {
        let path = folder.path().join(name);
        let mut writer = WavWriter::create(&path, RATE, channels.len(), WavBits::Float32).unwrap();
        writer.write(channels).unwrap();
        writer.finish().unwrap();
        path
    };
    let [left, right] = &sounds;
    let both = write("both.wav", &[left, right]);
    let [alone_left, alone_right] = [("left.wav", left), ("right.wav", right)]
        .map(|(name, sound)| through_an_effect(&write(name, &[sound]), 0.0));
    assert!(
        alone_left[0] == alone_left[1]
            && alone_left[0] != alone_right[0]
            && peak(&alone_left[0]) > 1e-3
    );
    let stereo = through_an_effect(&both, 0.0);
    assert!(stereo[0] == alone_left[0] && stereo[1] == alone_right[0]);
    let mono = through_an_effect(&both, 1.0);
    assert!(mono[0] == mono[1] && mono[0] != stereo[0]);
    assert!(through_an_effect(&both, 2.0) == alone_left);
}

#[test]
fn a_panic_silences_its_track_alone() {
    let mut hands = Hands::new(2);
    hands
        .mixer
        .set_input(0, TrackInput::Channels { first: 0, count: 1 })
        .unwrap();
    hands.open();
    hands.rack().receive_midi(0, &message(&[0x90, 57, 100]));
    hands.play(20);
    assert_eq!(
        hands.mixer.track(0).unwrap().instance.status(),
        LoadStatus::Ready
    );
    // A device whose input is shorter than its output would be a bug.
    let mut output = [[0.0; BLOCK], [0.0; BLOCK]];
    let [left, right] = &mut output;
    hands.rack().process(&[&[0.5; 10]], &mut [left, right]);
    let status = |track: usize| hands.mixer.track(track).unwrap().instance.status();
    assert!(
        matches!(status(0), LoadStatus::Failed(reason) if reason.starts_with("internal error: "))
    );
    assert_eq!(status(1), LoadStatus::Ready);
    hands.set_fader(
        1,
        FaderSettings {
            mute: true,
            ..FaderSettings::default()
        },
    );
    hands.play(20);
    assert!(peak(&hands.play(20)[0]) == 0.0, "the first track is silent");
    hands.set_fader(1, FaderSettings::default());
    assert!(peak(&hands.play(20)[0]) > 1e-3, "the second one plays on");
}
