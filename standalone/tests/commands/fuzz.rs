//! Mutated presets and sessions give an error or play.

use ondes::io::Callback;
use ondes::rack::session_file::TrackInput;
use ondes::rack::{Mixer, SessionFile};
use ondes_engine::realtime::Setup;
use ondes_player::library::{BUNDLED, FileReference};
use ondes_player::preset;
use ondes_player::product::Product;
use ondes_tests::allocation::CountingAllocator;
use ondes_tests::documentation::checkout;
use ondes_tests::fuzz::{Format, Syntax, files, run};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Files of each format that a normal run reads.
const INPUTS: u64 = 1_500;
/// One in so many sessions that are read is played, since building its models takes long.
const PLAYED: usize = 32;

#[test]
fn mutated_files_give_an_error_or_play() {
    run(vec![presets(), sessions()], INPUTS);
}

fn presets() -> Format<'static> {
    let seeds = files(&checkout().join("assets/presets"), ".ondes-preset");
    Format::new("preset", Syntax::Json, seeds, |bytes| {
        let preset = preset::file::parse(bytes).map_err(|error| error.to_string())?;
        let again = preset::file::serialize(&preset).map_err(|error| error.to_string())?;
        assert_eq!(
            preset::file::parse(&again).expect("what is written can be read"),
            preset
        );
        Ok(())
    })
}

/// Returns a session with all that the bundled one does not have.
fn full_session() -> Vec<u8> {
    let mut mixer = Mixer::offline();
    for product in [Product::Effect, Product::Instrument] {
        let slot = mixer.add_silent(product).expect("there is room");
        mixer.rename(slot, "Lead");
        mixer.set_midi_channels(slot, 3).expect("it is stored");
    }
    mixer
        .set_input(0, TrackInput::Channels { first: 0, count: 2 })
        .expect("it is stored");
    mixer
        .set_input(
            1,
            TrackInput::File {
                path: "none.wav".into(),
                looped: true,
            },
        )
        .expect("it is stored");
    mixer.set_list = BUNDLED
        .iter()
        .map(|bundled| FileReference::to(&bundled.model(), None))
        .collect();
    serde_json::to_vec(&mixer.saved()).expect("a session is JSON")
}

fn sessions() -> Format<'static> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seeds = files(&checkout().join("assets/demo"), ".ondes-session");
    seeds.push(full_session());
    Format::new("session", Syntax::Json, seeds, move |bytes| {
        let path = folder.path().join("a.ondes-session");
        std::fs::write(&path, bytes).expect("the file is written");
        let session = SessionFile::read(&path).map_err(|error| format!("{error:#}"))?;
        session.write(&path).map_err(|error| format!("{error:#}"))?;
        assert_eq!(
            SessionFile::read(&path).expect("what is written can be read"),
            session
        );
        if bytes
            .iter()
            .map(|&byte| usize::from(byte))
            .sum::<usize>()
            .is_multiple_of(PLAYED)
        {
            play(&session)?;
        }
        Ok(())
    })
}

fn play(session: &SessionFile) -> Result<(), String> {
    let mut mixer = Mixer::offline();
    let problems = mixer.restore(session);
    assert!(
        problems.iter().all(|problem| problem.lines().count() == 1),
        "{problems:?}"
    );
    let setup = Setup {
        sample_rate: 48_000,
        max_block: 256,
    };
    let mut rack = mixer
        .open(setup, None, Vec::new())
        .map_err(|error| format!("{error:#}"))?;
    let input = [[0.5; 256]; 2];
    for _ in 0..4 {
        let mut output = [[f32::NAN; 256]; 2];
        let [left, right] = &mut output;
        rack.process(&[&input[0], &input[1]], &mut [left, right]);
        assert!(
            output.iter().flatten().all(|sample| sample.abs() <= 1.001),
            "it plays beyond the ceiling"
        );
    }
    Ok(())
}
