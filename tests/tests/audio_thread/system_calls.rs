//! The audio thread makes no system call, except the one that wakes the worker.
//!
//! A seccomp filter proves it: any other call kills the process. So each scene runs in a child
//! process, which is this test again.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[test]
fn playing_makes_no_system_calls() {
    eprintln!("not shown here: seccomp, which shows it, is Linux's, on x86-64 and AArch64");
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
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
    use ondes_engine::pipeline::{ControlSource, PipelineOptions};
    use ondes_engine::realtime::{ModelFactory, PlayableModel, SessionController, Setup};
    use ondes_tests::audio_models::{untrained_codec, untrained_effect};
    use ondes_tests::random_performance::{MarkedModel, MisbehavingModel, RandomPlayer, swap};
    use ondes_tests::{bundled_models, untrained_instrument};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter,
    };

    /// Environment variable with the child's scene.
    const SCENE: &str = "ONDES_SYSTEM_CALLS";
    /// Exit code of a child that completed its scene; no test runner uses it.
    const PLAYED: i32 = 42;
    /// Exit code of a child that may not install a filter.
    const REFUSED: i32 = 43;
    /// Minimum of blocks and of model changes.
    const BLOCKS: usize = 10_000;
    const SWAPS: usize = 12;
    const SETUP: Setup = Setup {
        sample_rate: 48_000,
        max_block: 128,
    };

    /// Activity of a thread whose only permitted system call wakes others.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Scene {
        /// Reads the clock.
        Clock,
        /// Plays; reading the clock is a system call on this machine, and permitted.
        PlayWithClock,
        /// Plays.
        Play,
        /// Plays a model that sleeps in each block.
        Sleep,
        /// Plays a model that writes to a file in each block.
        Write,
    }

    const SCENES: [Scene; 5] = [
        Scene::Clock,
        Scene::PlayWithClock,
        Scene::Play,
        Scene::Sleep,
        Scene::Write,
    ];

    /// Runs a scene in a child process and does not return there.
    #[test]
    fn scene() {
        let Ok(name) = env::var(SCENE) else { return };
        // A panicking thread would never be joined.
        let say = take_hook();
        set_hook(Box::new(move |panic| {
            say(panic);
            exit(1);
        }));
        match SCENES
            .into_iter()
            .find(|scene| format!("{scene:?}") == name)
        {
            Some(Scene::Clock) => read_clock(),
            Some(scene) => play(scene),
            None => panic!("there is no scene {name}"),
        }
    }

    /// Runs a scene in a child; `None` if the system permits no filter.
    fn run_child(scene: Scene) -> Option<ExitStatus> {
        let mut child = Command::new(env::current_exe().expect("there is a test"));
        child
            .args(["system_calls::linux::scene", "--exact", "--nocapture"])
            .env(SCENE, format!("{scene:?}"));
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
        let Some(end) = run_child(Scene::Clock) else {
            return;
        };
        let scene = if was_killed(end) {
            Scene::PlayWithClock
        } else {
            Scene::Play
        };
        if scene == Scene::PlayWithClock {
            eprintln!("here even a look at the clock is a system call: it is left out");
        }
        let Some(end) = run_child(scene) else { return };
        assert_eq!(end.code(), Some(PLAYED), "{end}");
    }

    #[test]
    fn a_system_call_in_a_block_is_detected() {
        for scene in [Scene::Sleep, Scene::Write] {
            let Some(end) = run_child(scene) else { return };
            assert!(was_killed(end), "{scene:?}: {end}");
        }
    }

    /// Creates a filter that permits waking other threads and nothing else.
    fn filter(with_clock: bool) -> BpfProgram {
        let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
        let is_wake = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, wake)
            .expect("an argument");
        let mut rules = BTreeMap::from([(
            libc::SYS_futex,
            vec![SeccompRule::new(vec![is_wake]).expect("a condition")],
        )]);
        if with_clock {
            rules.insert(libc::SYS_clock_gettime, Vec::new());
        }
        let here = env::consts::ARCH.try_into().expect("one of the two");
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::KillProcess,
            SeccompAction::Allow,
            here,
        );
        filter.and_then(TryInto::try_into).expect("a sound filter")
    }

    /// Installs the filter for this thread.
    fn install_filter(filter: &BpfProgram) {
        if apply_filter(filter).is_err() {
            exit(REFUSED);
        }
    }

    /// Spins for ever: even exiting the thread would be a system call.
    fn spin_forever(done: &AtomicBool) -> ! {
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

    fn read_clock() {
        let (filter, done) = (filter(false), AtomicBool::new(false));
        scope(|scope| {
            scope.spawn(|| {
                install_filter(&filter);
                std::hint::black_box(Instant::now());
                spin_forever(&done)
            });
            wait_for(&done);
            exit(PLAYED);
        });
    }

    /// Returns the models that a scene plays in turn.
    fn factories(scene: Scene) -> Vec<Arc<dyn ModelFactory>> {
        match scene {
            Scene::Sleep => {
                return vec![Arc::new(MarkedModel(MisbehavingModel(|_| {
                    sleep(Duration::from_nanos(1))
                })))];
            }
            Scene::Write => {
                return vec![Arc::new(MarkedModel(MisbehavingModel(|_| {
                    drop(std::fs::write("/dev/null", "x"))
                })))];
            }
            Scene::Clock | Scene::PlayWithClock | Scene::Play => {}
        }
        let bundled = bundled_models()
            .into_iter()
            .map(|path| file::read(&path).expect("bundled models are whole"));
        let small = [
            untrained_instrument(1),
            untrained_effect(2),
            untrained_codec(3),
        ];
        let models = small.into_iter().chain(bundled).map(Arc::new);
        let playable_models = models.flat_map(|model| {
            [ControlSource::Notes, ControlSource::AudioInput].map(|source| {
                let options = PipelineOptions {
                    source,
                    voices: Some(4),
                    ..Default::default()
                };
                PlayableModel::new(model.clone(), options).expect("it plays")
            })
        });
        playable_models
            .map(|playable_model| Arc::new(MarkedModel(playable_model)) as Arc<dyn ModelFactory>)
            .collect()
    }

    /// Plays at twice real time, until the minimum of blocks and model changes is reached.
    fn play(scene: Scene) {
        let (factories, filter) = (factories(scene), filter(scene == Scene::PlayWithClock));
        let controller = SessionController::new();
        let session = controller.activate(SETUP).expect("a sound setup");
        let (enough, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (blocks, output) = (AtomicUsize::new(0), AtomicUsize::new(0));
        scope(|scope| {
            scope.spawn(|| {
                let mut player = RandomPlayer::new(session, 3, 2 * SETUP.max_block);
                let speed = 2.0 * f64::from(SETUP.sample_rate);
                let begun = Instant::now();
                install_filter(&filter);
                while !enough.load(Ordering::Relaxed) {
                    output.fetch_add(usize::from(player.play()), Ordering::Relaxed);
                    blocks.fetch_add(1, Ordering::Relaxed);
                    let due = Duration::from_secs_f64(player.position() as f64 / speed);
                    while begun.elapsed() < due {
                        std::hint::spin_loop();
                    }
                }
                spin_forever(&done)
            });
            let mut swaps = 0;
            while swaps < SWAPS || blocks.load(Ordering::Relaxed) < BLOCKS {
                swap(&controller, &factories, swaps..swaps + 1);
                swaps += 1;
            }
            enough.store(true, Ordering::Relaxed);
            wait_for(&done);
            assert!(
                output.load(Ordering::Relaxed) > 1000,
                "a silent session shows nothing"
            );
            exit(PLAYED);
        });
    }
}
