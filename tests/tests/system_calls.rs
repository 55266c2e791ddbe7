//! The audio thread asks nothing of the system, except to wake the worker.
//!
//! Seccomp shows it: a thread that makes any other call dies, and its process with it. So each scene is played by a process of
//! its own, which is this test once more.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[test]
fn playing_makes_no_system_calls() {
    eprintln!("not shown here: seccomp, which shows it, is Linux's, on x86-64 and AArch64");
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::collections::BTreeMap;
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::panic::{set_hook, take_hook};
    use std::process::{Command, ExitStatus, exit};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread::{scope, sleep};
    use std::time::{Duration, Instant};

    use ondes_engine::model::file;
    use ondes_engine::pipeline::{PipelineOptions, Source};
    use ondes_engine::realtime::{Maker, Patch, Remote, Setup};
    use ondes_tests::through::{untrained_codec, untrained_effect};
    use ondes_tests::traffic::{Marked, Player, Poor, swap};
    use ondes_tests::{bundled_models, untrained_instrument};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter,
    };

    /// The variable that tells a child what to play.
    const SCENE: &str = "ONDES_SYSTEM_CALLS";
    /// How a child ends that has played to the end. No test runner ends like this by itself.
    const PLAYED: i32 = 42;
    /// How one ends that may not have a filter.
    const REFUSED: i32 = 43;
    /// Blocks to play and models to swap, at least.
    const BLOCKS: usize = 10_000;
    const SWAPS: usize = 12;
    const SETUP: Setup = Setup { sample_rate: 48_000, max_block: 128 };

    /// What a thread does that may wake others and nothing else.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Scene {
        /// Looks at the clock.
        Clock,
        /// Plays; looking at the clock is a system call here, and allowed.
        PlayWithClock,
        /// Plays.
        Play,
        /// Plays a model that takes a nap in each block.
        Sleep,
        /// Plays a model that writes to a file in each block.
        Write,
    }

    const SCENES: [Scene; 5] = [Scene::Clock, Scene::PlayWithClock, Scene::Play, Scene::Sleep, Scene::Write];

    /// The test that plays a scene: in a child it does not come back.
    #[test]
    fn scene() {
        let Ok(name) = env::var(SCENE) else { return };
        // Whoever panics would be waited for, or would wait, for ever.
        let say = take_hook();
        set_hook(Box::new(move |panic| {
            say(panic);
            exit(1);
        }));
        match SCENES.into_iter().find(|scene| format!("{scene:?}") == name) {
            Some(Scene::Clock) => look_at_the_clock(),
            Some(scene) => play(scene),
            None => panic!("there is no scene {name}"),
        }
    }

    /// How a child ends that plays a scene; none where there are no filters.
    fn end_of(scene: Scene) -> Option<ExitStatus> {
        let mut child = Command::new(env::current_exe().expect("there is a test"));
        child.args(["linux::scene", "--exact", "--nocapture"]).env(SCENE, format!("{scene:?}"));
        let end = child.status().expect("the test runs");
        if end.code() == Some(REFUSED) {
            eprintln!("not shown here: the system refuses seccomp filters");
            return None;
        }
        Some(end)
    }

    fn was_killed(end: ExitStatus) -> bool {
        end.signal() == Some(libc::SIGSYS)
    }

    #[test]
    fn playing_makes_no_system_calls() {
        let Some(end) = end_of(Scene::Clock) else { return };
        let scene = if was_killed(end) { Scene::PlayWithClock } else { Scene::Play };
        if scene == Scene::PlayWithClock {
            eprintln!("here even a look at the clock is a system call: it is left out");
        }
        let Some(end) = end_of(scene) else { return };
        assert_eq!(end.code(), Some(PLAYED), "{end}");
    }

    #[test]
    fn a_block_that_makes_one_is_seen() {
        for scene in [Scene::Sleep, Scene::Write] {
            let Some(end) = end_of(scene) else { return };
            assert!(was_killed(end), "{scene:?}: {end}");
        }
    }

    /// A filter that lets a thread wake others, and that is all.
    fn filter(with_clock: bool) -> BpfProgram {
        let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
        let is_wake = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, wake).expect("an argument");
        let mut rules =
            BTreeMap::from([(libc::SYS_futex, vec![SeccompRule::new(vec![is_wake]).expect("a condition")])]);
        if with_clock {
            rules.insert(libc::SYS_clock_gettime, Vec::new());
        }
        let here = env::consts::ARCH.try_into().expect("one of the two");
        let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, here);
        filter.and_then(TryInto::try_into).expect("a sound filter")
    }

    /// From now on this thread makes no other calls.
    fn obey(filter: &BpfProgram) {
        if apply_filter(filter).is_err() {
            exit(REFUSED);
        }
    }

    /// What is left to a thread that may not even end when it is done: its process must end without it.
    fn stay(done: &AtomicBool) -> ! {
        done.store(true, Ordering::Release);
        loop {
            std::hint::spin_loop();
        }
    }

    fn wait_for(done: &AtomicBool) {
        while !done.load(Ordering::Acquire) {
            sleep(Duration::from_millis(1));
        }
    }

    fn look_at_the_clock() {
        let (filter, done) = (filter(false), AtomicBool::new(false));
        scope(|scope| {
            scope.spawn(|| {
                obey(&filter);
                std::hint::black_box(Instant::now());
                stay(&done)
            });
            wait_for(&done);
            exit(PLAYED);
        });
    }

    /// What is played in a scene, in turn.
    fn makers(scene: Scene) -> Vec<Arc<dyn Maker>> {
        match scene {
            Scene::Sleep => return vec![Arc::new(Marked(Poor(|_| sleep(Duration::from_nanos(1)))))],
            Scene::Write => return vec![Arc::new(Marked(Poor(|_| drop(std::fs::write("/dev/null", "x")))))],
            Scene::Clock | Scene::PlayWithClock | Scene::Play => {}
        }
        let bundled = bundled_models().into_iter().map(|path| file::read(&path).expect("bundled models are whole"));
        let small = [untrained_instrument(1), untrained_effect(2), untrained_codec(3)];
        let models = small.into_iter().chain(bundled).map(Arc::new);
        let patches = models.flat_map(|model| {
            [Source::Notes, Source::Sound].map(|source| {
                let options = PipelineOptions { source, voices: Some(4), ..Default::default() };
                Patch::new(model.clone(), options).expect("it plays")
            })
        });
        patches.map(|patch| Arc::new(Marked(patch)) as Arc<dyn Maker>).collect()
    }

    /// Plays twice as fast as it sounds, until there were enough blocks and models.
    fn play(scene: Scene) {
        let (makers, filter) = (makers(scene), filter(scene == Scene::PlayWithClock));
        let remote = Remote::new();
        let session = remote.activate(SETUP).expect("a sound setup");
        let (enough, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (blocks, heard) = (AtomicUsize::new(0), AtomicUsize::new(0));
        scope(|scope| {
            scope.spawn(|| {
                let mut player = Player::new(session, 3, 2 * SETUP.max_block);
                let speed = 2.0 * f64::from(SETUP.sample_rate);
                let begun = Instant::now();
                obey(&filter);
                while !enough.load(Ordering::Relaxed) {
                    heard.fetch_add(usize::from(player.play()), Ordering::Relaxed);
                    blocks.fetch_add(1, Ordering::Relaxed);
                    let due = Duration::from_secs_f64(player.position() as f64 / speed);
                    while begun.elapsed() < due {
                        std::hint::spin_loop();
                    }
                }
                stay(&done)
            });
            let mut swaps = 0;
            while swaps < SWAPS || blocks.load(Ordering::Relaxed) < BLOCKS {
                swap(&remote, &makers, swaps..swaps + 1);
                swaps += 1;
            }
            enough.store(true, Ordering::Relaxed);
            wait_for(&done);
            assert!(heard.load(Ordering::Relaxed) > 1000, "a silent session shows nothing");
            exit(PLAYED);
        });
    }
}
