use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ondes_engine::dsp::analysis::analyse;
use ondes_engine::dsp::resample::resample;
use ondes_engine::media::{WavBits, WavWriter, read_mono};
use tch::{Device, Kind, Tensor};

use super::store::shard_paths;
use super::*;
use crate::tasks::instrument::config::Config;
use crate::tasks::instrument::network;

const RATE: FeatureRate = FeatureRate {
    sample_rate: 16_000,
    hop: 160,
};

fn options(sound: SoundFormat) -> PrepareOptions {
    PrepareOptions::new(DataFormat {
        rate: RATE,
        sound,
        high_pass: 0,
    })
}

/// Writes notes with rests between them, of other pitches for other seeds.
fn write_notes(path: &Path, rate: u32, seconds: f64, seed: u32) {
    let mut phase = 0.0;
    let note = |n: usize| {
        let (index, within) = (n / rate as usize, n % rate as usize);
        phase += (180.0 + 37.0 * ((index as u32 * 7 + seed) % 11) as f32) / rate as f32;
        if 4 * within > 3 * rate as usize {
            0.0
        } else {
            0.4 * (std::f32::consts::TAU * phase).sin()
        }
    };
    let samples: Vec<f32> = (0..(seconds * f64::from(rate)) as usize)
        .map(note)
        .collect();
    let mut writer = WavWriter::create(path, rate, 1, WavBits::Float32).expect("a file");
    writer.write(&[samples]).expect("it is written");
    writer.finish().expect("it is written");
}

/// Makes a folder with recordings of the given lengths.
fn recordings(seconds: &[f64]) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (sounds, out) = (folder.path().join("sounds"), folder.path().join("dataset"));
    fs::create_dir(&sounds).expect("a folder");
    for (index, &seconds) in seconds.iter().enumerate() {
        write_notes(
            &sounds.join(format!("{index}.wav")),
            16_000,
            seconds,
            index as u32,
        );
    }
    (folder, sounds, out)
}

fn prepared(sounds: &Path, out: &Path, options: &PrepareOptions) -> (usize, usize, usize) {
    let summary = prepare(&[sounds.to_owned()], out, options).expect("it is prepared");
    (summary.recordings, summary.analysed, summary.dropped)
}

/// Returns the columns of all recordings with their names.
fn content(out: &Path) -> Vec<(String, features::Row)> {
    let all = Recordings::open(out).expect("it opens");
    let names = all.iter().map(|recording| recording.source.name.clone());
    names
        .zip(
            all.features()
                .map(|features| features.expect("it is read").values),
        )
        .collect()
}

#[test]
fn a_second_preparation_hears_only_what_is_new_or_changed() {
    let (_folder, sounds, out) = recordings(&[1.5, 2.0, 3.2]);
    let options = options(SoundFormat::F32);
    assert_eq!(prepared(&sounds, &out, &options), (3, 3, 0));
    let before = content(&out);
    assert_eq!(prepared(&sounds, &out, &options), (3, 0, 0));
    // Another time, but the same content.
    let bytes = fs::read(sounds.join("0.wav")).expect("it is there");
    fs::write(sounds.join("0.wav"), bytes).expect("it is written");
    fs::remove_file(out.join("sources.json")).expect("it is there");
    assert_eq!(prepared(&sounds, &out, &options), (3, 0, 0));
    assert!(content(&out) == before);
    write_notes(&sounds.join("1.wav"), 16_000, 2.0, 9);
    fs::remove_file(sounds.join("2.wav")).expect("it is there");
    write_notes(&sounds.join("new.wav"), 16_000, 1.0, 5);
    assert_eq!(prepared(&sounds, &out, &options), (3, 2, 2));
    let after = content(&out);
    assert_eq!(
        after
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["0.wav", "1.wav", "new.wav"]
    );
    assert!(after[0] == before[0] && after[1] != before[1]);
    assert_eq!(after[2].1.pitch.len(), 100);
}

#[test]
fn long_recordings_are_analysed_in_pieces_as_if_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.wav");
    write_notes(&path, 22_050, 95.3, 3);
    let out = |name: &str| folder.path().join(name);
    let one = PrepareOptions {
        threads: 1,
        ..options(SoundFormat::F32)
    };
    let many = PrepareOptions {
        threads: 5,
        shard_bytes: 300_000,
        ..options(SoundFormat::F32)
    };
    prepared(folder.path(), &out("one"), &one);
    prepared(folder.path(), &out("many"), &many);
    let (first, second) = (content(&out("one")), content(&out("many")));
    assert!(shard_paths(&out("many")).expect("a folder").len() > 5);
    assert!(first == second);
    let (sound, rate) = read_mono(&path).expect("it is read");
    let mut sound = resample(&sound, rate, RATE.sample_rate).expect("it is resampled");
    sound.resize(sound.len().next_multiple_of(RATE.hop), 0.0);
    let frames = analyse(&sound, f64::from(RATE.sample_rate), RATE.hop);
    let row = &first[0].1;
    assert!(row.sound == sound);
    assert_eq!(row.pitch.len(), frames.len());
    for (index, frame) in frames.iter().enumerate() {
        assert!(
            (row.pitch[index] - frame.pitch.semitones).abs() < 1e-4,
            "frame {index}"
        );
        assert!(
            (row.loudness[index] - frame.loudness).abs() < 1e-4,
            "frame {index}"
        );
        assert_eq!(row.voiced[index] > 0.5, frame.pitch.voiced, "frame {index}");
    }
}

#[test]
fn an_interrupted_preparation_goes_on_after_the_last_shard() {
    let (_folder, sounds, out) = recordings(&[70.5, 1.0]);
    let options = PrepareOptions {
        shard_bytes: 200_000,
        ..options(SoundFormat::F32)
    };
    prepared(&sounds, &out, &options);
    let (whole, shards) = (content(&out), shard_paths(&out).expect("a folder"));
    assert!(shards.len() > 8);
    for kept in [3, 0] {
        shards[kept..]
            .iter()
            .for_each(|path| drop(fs::remove_file(path)));
        let error = Recordings::open(&out)
            .err()
            .map(|error| error.to_string())
            .expect("it is not whole");
        assert!(
            error.contains("run `ondes-train prepare` again") || kept == 0,
            "{error}"
        );
        assert_eq!(prepared(&sounds, &out, &options), (2, 2, 0));
        assert!(content(&out) == whole);
    }
    // A gap in the middle.
    fs::remove_file(&shards[4]).expect("it is there");
    assert_eq!(prepared(&sounds, &out, &options), (2, 1, 0));
    assert!(content(&out) == whole);
}

#[test]
fn damage_is_found_and_repaired() {
    let (_folder, sounds, out) = recordings(&[3.0, 4.0]);
    let options = PrepareOptions {
        check: true,
        ..options(SoundFormat::F32)
    };
    prepared(&sounds, &out, &options);
    let (whole, path) = (
        content(&out),
        shard_paths(&out).expect("a folder").remove(0),
    );
    let bytes = fs::read(&path).expect("it is there");
    for position in (0..bytes.len()).step_by(bytes.len() / 97) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        fs::write(&path, damaged).expect("it is written");
        let read = Recordings::open(&out)
            .and_then(|all| all.features().collect::<Result<Vec<_>, _>>().map(drop));
        // Nothing reads the header, which the footer repeats.
        let Err(error) = read else { continue };
        assert!(
            format!("{error:#}").starts_with(&path.display().to_string()),
            "{error:#}"
        );
        assert!(!format!("{error:#}").contains('\n'), "{error:#}");
    }
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    for damaged in [&damaged, &bytes[..bytes.len() / 2], &[][..]] {
        fs::write(&path, damaged).expect("it is written");
        assert_eq!(prepared(&sounds, &out, &options).1, 2);
        assert!(content(&out) == whole);
    }
    // While it is open.
    let all = Recordings::open(&out).expect("it opens");
    fs::File::options()
        .write(true)
        .open(shard_paths(&out).expect("a folder").remove(0))
        .expect("a file")
        .set_len(99)
        .expect("it is cut");
    let error = all
        .store
        .features(0)
        .err()
        .map(|error| format!("{error:#}"))
        .expect("it is not read");
    assert!(error.ends_with("is damaged: it ends early"), "{error}");
}

#[test]
fn sound_is_stored_in_the_chosen_format() {
    let (_folder, sounds, out) = recordings(&[2.5]);
    prepared(&sounds, &out.join("f32"), &options(SoundFormat::F32));
    let exact = content(&out.join("f32")).remove(0).1;
    for (sound, name, bound) in [
        (SoundFormat::F16, "f16", 2.5e-4),
        (SoundFormat::I16, "i16", 0.5 / 32_768.0),
    ] {
        prepared(&sounds, &out.join(name), &options(sound));
        let row = content(&out.join(name)).remove(0).1;
        let error = row
            .sound
            .iter()
            .zip(&exact.sound)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(error > 0.0 && error <= bound, "{name}: {error}");
        assert!(
            (&row.pitch, &row.loudness, &row.voiced)
                == (&exact.pitch, &exact.loudness, &exact.voiced)
        );
        let refused = prepare(
            std::slice::from_ref(&sounds),
            &out.join(name),
            &options(SoundFormat::F32),
        );
        assert!(refused.is_err_and(|error| error.to_string().contains("use another --out")));
    }
}

/// Opens the recordings with a recipe that augments.
fn dataset(folder: &Path) -> Dataset {
    augmented(
        folder,
        Augmentation {
            pitch: Some(1.0),
            ..Augmentation::default()
        },
    )
}

/// Opens the recordings with an augmentation.
fn augmented(folder: &Path, augmentation: Augmentation) -> Dataset {
    let text = "name = \"a\"\ndata = \"sounds\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
                hop = 160\n[recordings]\nhigh_pass = 0\n";
    let path = folder.join("a.toml");
    fs::write(&path, text).expect("it is written");
    let config = Config::read(&path).expect("a recipe");
    Dataset::open(&DataConfig {
        augmentation,
        ..config.data()
    })
    .expect("it opens")
}

fn equal(first: &CropBatch, second: &CropBatch) -> bool {
    first.audio == second.audio && first.pitch == second.pitch && first.loudness == second.loudness
}

#[test]
fn crops_do_not_depend_on_the_number_of_threads() {
    let (folder, _sounds, _) = recordings(&[1.0, 3.3, 2.7, 5.0]);
    let all = Augmentation {
        pitch: Some(1.0),
        gain: Some(6.0),
        equalizer: 3.0,
        noise: Some(-50.0),
        mix: 0.5,
    };
    let dataset = augmented(folder.path(), all);
    let batch = |threads: usize, step: u64| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        let batch = pool
            .install(|| dataset.batch(Subset::Training, step, 0..6, Device::Cpu))
            .expect("it is read");
        assert_eq!(batch.audio.size(), [6, 16_000]);
        assert_eq!(batch.pitch.size(), [6, 1, 100]);
        batch
    };
    for step in 0..4 {
        let (one, many) = (batch(1, step), batch(4, step));
        assert!(equal(&one, &many));
        let part = dataset
            .batch(Subset::Training, step, 2..4, Device::Cpu)
            .expect("it is read");
        assert!(part.audio == many.audio.narrow(0, 2, 2));
    }
    assert!(batch(1, 0).audio != batch(1, 1).audio);
}

#[test]
fn a_sample_of_the_recordings_is_spread_evenly() {
    let (_folder, sounds, out) = recordings(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    prepared(&sounds, &out, &options(SoundFormat::F32));
    let all = Recordings::open(&out).expect("it opens");
    let thinned = |seconds| all.thinned(seconds).indices;
    assert_eq!(
        (thinned(100.0), thinned(2.5), thinned(0.1)),
        (all.indices.clone(), vec![0, 3], vec![0])
    );
}

#[test]
fn mixed_crops_have_a_softer_one_added() {
    const ROWS: usize = 40;
    let (folder, _sounds, _) = recordings(&[3.3, 2.7, 5.0]);
    let batch = |mix, subset| {
        let dataset = augmented(
            folder.path(),
            Augmentation {
                mix,
                ..Augmentation::default()
            },
        );
        dataset
            .batch(subset, 0, 0..ROWS, Device::Cpu)
            .expect("it is read")
    };
    let (plain, mixed) = (batch(0.0, Subset::Training), batch(0.5, Subset::Training));
    let added = (&mixed.audio - &plain.audio).abs().amax([1], false);
    let added = Vec::<f32>::try_from(added).expect("one for each crop");
    let (unmixed, added): (Vec<f32>, Vec<f32>) = added.into_iter().partition(|&peak| peak == 0.0);
    assert!(
        (ROWS / 4..=3 * ROWS / 4).contains(&unmixed.len()),
        "{} of {ROWS}",
        unmixed.len()
    );
    // Notes have peaks of 0.4; the added ones are up to 12 dB softer.
    assert!(
        added.iter().all(|peak| (0.1..0.4).contains(peak)),
        "{added:?}"
    );
    assert!(
        added.iter().any(|&peak| peak < 0.2) && added.iter().any(|&peak| peak > 0.25),
        "{added:?}"
    );
    assert!(equal(
        &batch(0.0, Subset::Validation),
        &batch(1.0, Subset::Validation)
    ));
}

#[test]
fn the_loader_takes_the_crops_of_each_step_in_any_order() {
    let (folder, _sounds, _) = recordings(&[1.0, 0.4, 3.3, 5.0]);
    let dataset = Arc::new(dataset(folder.path()));
    for workers in [0, 1, 3] {
        let mut loader = Loader::new(dataset.clone(), StepRows::new(6), workers, u64::MAX);
        let check = |loader: &mut Loader<Dataset>, step: u64, rows: Range<usize>| {
            let taken = loader
                .take(step, rows.clone(), Device::Cpu)
                .expect("it is read");
            let cut = dataset
                .batch(Subset::Training, step, rows, Device::Cpu)
                .expect("it is read");
            assert!(equal(&taken, &cut), "step {step}");
        };
        for step in [0, 1, 2, 3, 9, 10, 2, 3, 100] {
            check(&mut loader, step, 0..3);
            check(&mut loader, step, 3..6);
            // A batch that does not fit into memory is cut again.
            check(&mut loader, step, 0..6);
        }
        loader.set_batch(2);
        check(&mut loader, 100, 0..2);
        loader.set_batch(9);
        (101..150).for_each(|step| check(&mut loader, step, 0..9));
        // The rows of the second of three processes.
        loader.set_batch(6);
        loader.set_process(1, 3);
        (150..155).for_each(|step| check(&mut loader, step, 2..4));
        let stats = loader.stats();
        assert!(
            stats.batches >= 50 && stats.crops >= 48 * 9 && stats.depth >= 2,
            "{stats:?}"
        );
        assert!(stats.workers == workers.max(1) || workers == 0);
    }
}

/// Numbers of steps and rows; one of them panics.
struct Numbers {
    broken: Option<RowPosition>,
}

type RowPosition = (u64, usize);

struct NumberBatch(Tensor);

impl TensorGroup for NumberBatch {
    fn map(self, change: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
        Self(change(self.0))
    }
}

impl RowSource for Numbers {
    type Row = [f32; 2];
    type Batch = NumberBatch;

    fn row(&self, step: u64, row: usize) -> anyhow::Result<[f32; 2]> {
        assert!(self.broken != Some((step, row)), "a bug in a source");
        Ok([step as f32, row as f32])
    }

    fn joined(&self, rows: &[Arc<[f32; 2]>]) -> NumberBatch {
        NumberBatch(rows::stack(rows.iter().map(|row| row.as_slice())))
    }

    fn row_bytes(&self) -> usize {
        8
    }
}

/// Takes rows and checks that they are those of the step.
fn take_numbers(loader: &mut Loader<Numbers>, step: u64, rows: Range<usize>) {
    let expected = rows
        .clone()
        .flat_map(|row| [step as f32, row as f32])
        .collect::<Vec<_>>();
    let NumberBatch(taken) = loader.take(step, rows, Device::Cpu).expect("it is cut");
    assert_eq!(
        Vec::<f32>::try_from(taken.view(-1)).expect("numbers"),
        expected,
        "step {step}"
    );
}

#[test]
fn the_last_step_of_an_epoch_has_what_is_left() {
    // 11 rows of an epoch in steps of 4; the last has none for the fourth process.
    for (process, parts) in [((0, 1), 2), ((1, 2), 1), ((3, 4), 1)] {
        let rows = StepRows {
            batch: 4,
            epoch: Some(11),
            process,
        };
        assert_eq!(
            [0, 1, 2, 3, 5].map(|step| rows.count(step)),
            [4, 4, 3, 4, 3]
        );
        for workers in [0, 1, 3] {
            for is_ahead in [false, true] {
                let mut loader =
                    Loader::new(Arc::new(Numbers { broken: None }), rows, workers, u64::MAX);
                if is_ahead {
                    loader.upload_ahead();
                }
                for step in [0, 1, 2, 3, 4, 5, 6, 20, 7, 8] {
                    let own = rows.own(step);
                    let middle = own.start + own.len() / parts;
                    if middle < own.end && parts > 1 {
                        take_numbers(&mut loader, step, own.start..middle);
                        take_numbers(&mut loader, step, middle..own.end);
                    }
                    // Again at once, as after a step that needed too much memory.
                    take_numbers(&mut loader, step, own.clone());
                    if step % 2 == 0 {
                        take_numbers(
                            &mut loader,
                            step,
                            own.start..middle.max(own.start + 1).min(own.end),
                        );
                        take_numbers(&mut loader, step, own);
                    }
                }
                assert_eq!(loader.stats().batches, 10);
            }
        }
    }
}

#[test]
fn a_queue_holds_no_more_than_its_memory() {
    // A step has 32 bytes: the current one and two more.
    let mut loader = Loader::new(Arc::new(Numbers { broken: None }), StepRows::new(4), 2, 96);
    for step in 0..200 {
        take_numbers(&mut loader, step, 0..4);
        let stats = loader.stats();
        assert!(stats.depth <= 2 && stats.ready <= 2, "{stats:?}");
    }
    loader.set_batch(1_000);
    take_numbers(&mut loader, 200, 0..1_000);
    assert_eq!(loader.stats().depth, 1, "one step in advance");
}

#[test]
fn a_panic_of_a_thread_is_an_error_of_its_step_and_no_thread_outlives_the_loader() {
    let source = Arc::new(Numbers {
        broken: Some((5, 2)),
    });
    for workers in [1, 3] {
        let mut loader = Loader::new(source.clone(), StepRows::new(4), workers, u64::MAX);
        assert_eq!(
            loader.stats().workers,
            0,
            "threads start with the first step"
        );
        (0..5).for_each(|step| take_numbers(&mut loader, step, 0..4));
        for _ in 0..2 {
            let error = loader
                .take(5, 0..4, Device::Cpu)
                .err()
                .expect("a panic")
                .to_string();
            assert_eq!(error, "a thread that cuts the data has crashed at step 5");
        }
        take_numbers(&mut loader, 6, 0..4);
        assert_eq!(loader.stats().workers, workers);
        assert!(Arc::strong_count(&source) > 1);
        drop(loader);
        assert_eq!(Arc::strong_count(&source), 1, "a thread holds the source");
    }
}

#[test]
fn rows_that_are_read_once_are_not_kept() {
    let (folder, _sounds, _) = recordings(&[3.3]);
    let dataset = dataset(folder.path());
    let recordings = dataset.recordings(Subset::Training);
    let hits = || {
        let before = dataset.reads();
        recordings
            .features()
            .for_each(|features| drop(features.expect("it is read")));
        dataset.reads().since(before).cache_hits
    };
    assert_eq!([hits(), hits()], [0, 4]);
    assert_eq!(recordings.store.without_cache(|| [hits(), hits()]), [0, 0]);
    // The memory is there again.
    hits();
    assert_eq!(hits(), 4);
}

#[test]
fn a_shard_that_is_damaged_while_training_is_told() {
    let (folder, _sounds, _) = recordings(&[2.0, 3.3]);
    let dataset = dataset(folder.path());
    dataset.recordings(Subset::Training).store.set_cache(1);
    let dataset = Arc::new(dataset);
    let mut loader = Loader::new(dataset, StepRows::new(4), 2, u64::MAX);
    loader.take(0, 0..4, Device::Cpu).expect("it is read");
    let prepared = fs::read_dir(folder.path().join("work/features"))
        .expect("a folder")
        .next()
        .expect("one")
        .expect("it");
    for path in shard_paths(&prepared.path()).expect("shards") {
        fs::File::options()
            .write(true)
            .open(path)
            .expect("a file")
            .set_len(99)
            .expect("it is cut");
    }
    let failed = (1..20)
        .find_map(|step| loader.take(step, 0..4, Device::Cpu).err())
        .expect("it is noticed");
    assert!(
        format!("{failed:#}").ends_with("is damaged: it ends early"),
        "{failed:#}"
    );
    assert!(
        loader.take(30, 0..4, Device::Cpu).is_err(),
        "it does not wait for ever"
    );
}

#[test]
fn short_recordings_are_padded_with_silence() {
    let (folder, _sounds, _) = recordings(&[0.3]);
    let batch = dataset(folder.path())
        .batch(Subset::Training, 0, 0..2, Device::Cpu)
        .expect("it is read");
    let peak = |from, samples| {
        batch
            .audio
            .narrow(1, from, samples)
            .abs()
            .max()
            .double_value(&[])
    };
    let peaks = [peak(0, 7_900), peak(8_000, 4_800), peak(13_600, 2_400)];
    assert!(
        peaks[0] < 1e-3 && peaks[1] > 0.3 && peaks[2] < 1e-3,
        "{peaks:?}"
    );
    let silent = batch.loudness.narrow(2, 0, 45).max().double_value(&[]);
    assert!((silent + 100.0).abs() < 1e-3, "{silent}");
}

/// Writes a tone of 1.5 seconds at 16 kHz.
fn write_note(path: &Path, semitone: i16) {
    let frequency = 440.0 * (f32::from(semitone - 69) / 12.0).exp2();
    let tone = |n: usize| 0.3 * (std::f32::consts::TAU * frequency * n as f32 / 16_000.0).sin();
    let mut writer = WavWriter::create(path, 16_000, 1, WavBits::Int16).expect("a file");
    writer
        .write(&[(0..24_000).map(tone).collect::<Vec<f32>>()])
        .expect("it is written");
    writer.finish().expect("it is written");
}

#[test]
fn crops_hear_onsets_and_know_the_knobs() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, semitone) in [("ah-1", 60), ("ah-2", 61), ("oh-1", 70), ("oh-2", 71)] {
        write_note(&folder.path().join(format!("{name}.wav")), semitone);
    }
    let recipe = |positions: &str| {
        let text = format!(
            "name = \"a\"\ndata = \".\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
             hop = 160\n[training]\nclip_seconds = 0.5\n[recordings]\nmatch_levels = true\n\
             [augmentation]\ngain = 20.0\n[knob.vowel]\npositions = {{ {positions} }}\n"
        );
        let path = folder.path().join("a.toml");
        fs::write(&path, text).expect("it is written");
        Config::read(&path).expect("a recipe")
    };
    let config = recipe("ah = 0.0, oh = 1.0");
    let dataset = Dataset::open(&config.data()).expect("it opens");
    let batch = dataset
        .batch(Subset::Training, 0, 0..128, Device::Cpu)
        .expect("crops");
    let instrument = network::untrained(&config).expect("an instrument");
    let [pitch, loudness, noise, vowel] = &batch.inputs(instrument.header())[..] else {
        panic!("four inputs")
    };
    assert!(
        [loudness, noise, vowel]
            .iter()
            .all(|input| input.size() == pitch.size())
    );
    assert_eq!(
        vowel.mean(Kind::Float),
        pitch.gt(65.0).to_kind(Kind::Float).mean(Kind::Float)
    );
    let (mut onsets, mut levels) = (0, Vec::new());
    for row in 0..128 {
        let values =
            |tensor: &Tensor| Vec::<f32>::try_from(tensor.get(row).view(-1)).expect("values");
        let (sound, loudness) = (values(&batch.audio), values(loudness));
        let silent = sound.iter().take_while(|sample| **sample == 0.0).count() / 160;
        assert!(
            silent <= 25
                && loudness[..silent.saturating_sub(1)]
                    .iter()
                    .all(|level| *level == -100.0)
        );
        assert!(
            loudness[silent + 2..].iter().all(|level| *level > -60.0),
            "{silent}: {loudness:?}"
        );
        onsets += usize::from(silent > 5);
        levels.push(loudness[40]);
    }
    // Half a crop's silence can precede a recording of three crops: about one in five begins before
    // it.
    assert!((8..40).contains(&onsets), "{onsets}");
    levels.sort_by(f32::total_cmp);
    assert!(
        (17.0..21.0).contains(&(levels[127] - levels[0])),
        "{levels:?}"
    );
    let loudest = |features: Features| {
        features
            .loudness()
            .iter()
            .copied()
            .fold(f32::NEG_INFINITY, f32::max)
    };
    let all: Vec<f32> = dataset
        .all()
        .features()
        .map(|features| loudest(features.expect("it is read")))
        .collect();
    assert!(
        all.iter().all(|level| (level - all[0]).abs() < 0.1),
        "{all:?}"
    );
    let error = Dataset::open(&recipe("ah = 0.0, eh = 1.0").data())
        .err()
        .map(|error| format!("{error:#}"));
    assert!(
        error
            .as_ref()
            .is_some_and(|error| error.contains("oh-1.wav: has none of")),
        "{error:?}"
    );
}

#[test]
fn whole_pitches_are_held_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let sounds = folder.path().join("sounds");
    fs::create_dir(&sounds).expect("a folder");
    for (index, semitone) in [60, 60, 62, 64, 65, 67].into_iter().enumerate() {
        write_note(&sounds.join(format!("{index}.wav")), semitone);
    }
    let config = |every: usize| {
        let text = format!(
            "name = \"a\"\ndata = \"sounds\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
             hop = 160\n[recordings]\nheld_out_pitch = {every}\nhigh_pass = 40\n"
        );
        let path = folder.path().join("a.toml");
        fs::write(&path, text).expect("it is written");
        Config::read(&path)
    };
    let dataset = Dataset::open(&config(2).expect("a recipe").data()).expect("it opens");
    let pitches = |recordings: &Recordings| -> Vec<i32> {
        recordings
            .features()
            .map(|features| features.expect("it is read").pitch()[50].round() as i32)
            .collect()
    };
    assert_eq!(pitches(dataset.measured()), [62, 65]);
    let learnt =
        [Subset::Training, Subset::Validation].map(|subset| pitches(dataset.recordings(subset)));
    assert!(
        learnt
            .iter()
            .flatten()
            .all(|pitch| ![62, 65].contains(pitch)),
        "{learnt:?}"
    );
    assert_eq!(dataset.all().indices.len(), 6);
    let text = report::DataReport::new(dataset.all())
        .expect("it is read")
        .text();
    assert!(
        text.starts_with("6 recordings, 0.1 minutes; 5 pitches from C4 to G4"),
        "{text}"
    );
    let error = Dataset::open(&config(40).expect("a recipe").data())
        .err()
        .map(|error| format!("{error:#}"));
    assert!(
        error.is_some_and(|error| error.ends_with("there are too few pitches to hold any out"))
    );
    assert!(config(1).is_err());
}

#[test]
fn settings_suit_the_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let sounds = ["notes", "phrases"].map(|name| folder.path().join(name));
    sounds
        .iter()
        .for_each(|sounds| fs::create_dir(sounds).expect("a folder"));
    for semitone in [60, 62, 64] {
        write_note(&sounds[0].join(format!("{semitone}.wav")), semitone);
        // A pitch a second.
        write_notes(
            &sounds[1].join(format!("{semitone}.wav")),
            16_000,
            4.0,
            semitone as u32,
        );
    }
    let filled = |sounds: &str, stated: &str| {
        let text = format!(
            "name = \"a\"\ndata = \"{sounds}\"\nout = \"a.ondes\"\nwork = \"work\"\n[network]\nsample_rate = 16000\n\
             hop = 160\n{stated}"
        );
        let path = folder.path().join("a.toml");
        fs::write(&path, text).expect("it is written");
        let mut config = Config::read(&path).expect("a recipe");
        config.fill().expect("the recordings are read");
        config
    };
    let settings = |config: &Config| {
        let Config {
            network,
            recordings,
            augmentation,
            ..
        } = config;
        let numbers = [
            augmentation.pitch,
            augmentation.gain,
            network.pitch_detail,
            network.room_seconds,
        ];
        (
            numbers.map(|number| number.expect("it is filled")),
            recordings.match_levels(),
        )
    };
    assert_eq!(
        settings(&filled("notes", "")),
        ([1.0, 24.0, 8.0, 0.2], true)
    );
    assert_eq!(
        settings(&filled("phrases", "")),
        ([0.0, 0.0, 40.0, 0.3], false)
    );
    let stated =
        "pitch_detail = 20.0\n[augmentation]\ngain = 3.0\n[recordings]\nmatch_levels = false\n";
    assert_eq!(
        settings(&filled("notes", stated)),
        ([1.0, 3.0, 20.0, 0.2], false)
    );
    assert_eq!(
        settings(&filled("phrases", stated)),
        ([0.0, 3.0, 20.0, 0.3], false)
    );
}

#[test]
fn a_dataset_serves_other_rates() {
    let (folder, sounds, out) = recordings(&[3.0, 1.3]);
    prepared(&sounds, &out, &options(SoundFormat::F32));
    let cache = folder.path().join("cache");
    let rate = FeatureRate { hop: 256, ..RATE };
    let again = open_folder(&out, &cache, rate, 30).expect("it is analysed again");
    let format = again.store.format();
    assert_eq!(
        (format.rate, format.high_pass),
        (rate, 0),
        "its sound is that of the dataset"
    );
    let direct = cache.join("direct");
    prepared(
        &sounds,
        &direct,
        &PrepareOptions::new(DataFormat {
            rate,
            sound: SoundFormat::F32,
            high_pass: 0,
        }),
    );
    let made = fs::read_dir(&cache)
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path()));
    let made = made.filter(|path| *path != direct).collect::<Vec<_>>();
    for ((name, own), (named, row)) in content(&made[0]).into_iter().zip(content(&direct)) {
        assert_eq!(name, named);
        // The end of a recording is padded to whole frames of both lengths.
        let frames = row.pitch.len() - 2;
        assert_eq!(own.sound[..frames * 256], row.sound[..frames * 256]);
        assert_eq!(
            (&own.pitch[..frames], &own.loudness[..frames]),
            (&row.pitch[..frames], &row.loudness[..frames])
        );
    }
    let stamp = |path: &Path| {
        fs::metadata(&shard_paths(path).expect("shards")[0])
            .expect("a file")
            .modified()
            .ok()
    };
    let before = stamp(&made[0]);
    open_folder(&out, &cache, rate, 30).expect("it is there already");
    assert_eq!(stamp(&made[0]), before);
}
