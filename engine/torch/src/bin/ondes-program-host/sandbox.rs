//! Gives up the rights that a TorchScript program does not need: limits of the system on resources,
//! Landlock on files, network and signals, and seccomp on system calls. Each is used as far as the
//! kernel has it; seccomp alone already keeps a program on the CPU from writing files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use ondes_engine::torch::libtorch_found;
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// Most memory for the data of a program on the CPU, in bytes.
const MAX_DATA: u64 = 8 << 30;
/// Version of Landlock whose rights are given up; an older kernel has some of them.
const LANDLOCK: ABI = ABI::V6;
/// Files that libtorch reads while it computes: libraries that it opens late, properties of
/// processor and system, and seeds.
const READABLE: [&str; 9] = [
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/proc",
    "/sys",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
];

/// Closes all files but standard input and output: the engine's host may have left some open.
pub fn close_inherited_files() {
    // SAFETY: nothing has been opened yet. Fails before Linux 5.9; there the files stay.
    unsafe { libc::close_range(3, u32::MAX, 0) };
}

/// Ends the process without destructors.
pub fn exit() -> ! {
    // SAFETY: the call has no preconditions.
    unsafe { libc::_exit(0) }
}

/// Limits memory, forbids core dumps, and makes this process the first to go when the system lacks
/// memory.
pub fn limit_resources(uses_gpu: bool) {
    let limit = |bytes| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    // Without these the rest of the protection is the same.
    let _ = setrlimit(Resource::Core, limit(0));
    if !uses_gpu {
        let _ = setrlimit(Resource::Data, limit(MAX_DATA));
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Gives up rights for good, in all threads. Returns what this system cannot forbid, one line each.
pub fn enter(library: &Path, uses_gpu: bool) -> Vec<String> {
    // Before system calls are filtered. There are no other threads yet.
    let files = restrict_files(library, uses_gpu);
    let calls = filters(uses_gpu).and_then(|filters| {
        filters
            .iter()
            .try_for_each(|filter| apply_filter_all_threads(filter))
            .map_err(|error| error.to_string())
    });
    let missing_files = match files {
        Ok(RulesetStatus::NotEnforced) => {
            Some("this kernel has no Landlock: the program can read your files".into())
        }
        Ok(_) => None,
        Err(error) => Some(format!("the program can read your files: {error}")),
    };
    let missing_calls = calls
        .err()
        .map(|error| format!("the program can make any system call: {error}"));
    missing_files.into_iter().chain(missing_calls).collect()
}

/// Forbids all files but those that libtorch reads, TCP, abstract sockets, and signals to other
/// processes.
fn restrict_files(library: &Path, uses_gpu: bool) -> Result<RulesetStatus, RulesetError> {
    let mut readable: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    readable.extend(library.parent().map(Path::to_path_buf));
    // PyTorch keeps NVIDIA's libraries beside its own folder.
    let above = if uses_gpu { 2 } else { 0 };
    readable.extend(
        libtorch_found().and_then(|folder| Some(folder.ancestors().nth(above)?.to_path_buf())),
    );
    let devices = std::fs::read_dir("/dev")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let is_gpu = |path: &PathBuf| path.to_string_lossy().starts_with("/dev/nvidia");
    let devices: Vec<PathBuf> = devices.filter(|path| uses_gpu && is_gpu(path)).collect();
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(
            readable,
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .add_rules(path_beneath_rules(devices, AccessFs::from_all(LANDLOCK)))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// System calls that fail whatever their arguments: network, other processes, other programs, the
/// machine.
const FORBIDDEN: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_truncate,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Older forms of [`FORBIDDEN`].
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_OLD: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_iopl,
    libc::SYS_ioperm,
];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_OLD: &[i64] = &[];

/// System calls whose arguments a filter cannot see. They seem to be missing, so that the C library
/// uses older ones.
const HIDDEN: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// Returns the filters of system calls.
fn filters(uses_gpu: bool) -> Result<Vec<BpfProgram>, String> {
    let text = |error: seccompiler::BackendError| error.to_string();
    let condition = |argument, operator, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
        condition
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(text)
    };
    let has_flag = |argument, flag: i32| {
        let flag = flag.unsigned_abs().into();
        condition(argument, SeccompCmpOp::MaskedEq(flag), flag)
    };
    let always = |calls: &[i64]| {
        calls
            .iter()
            .map(|&call| (call, Vec::new()))
            .collect::<BTreeMap<_, _>>()
    };
    let mut forbidden = always(FORBIDDEN);
    forbidden.append(&mut always(FORBIDDEN_OLD));
    // New processes; threads are allowed.
    let thread = libc::CLONE_THREAD.unsigned_abs().into();
    forbidden.insert(
        libc::SYS_clone,
        vec![condition(0, SeccompCmpOp::MaskedEq(thread), 0)?],
    );
    // Signals to others; `abort` sends one to its own process.
    let own = std::process::id().into();
    forbidden.insert(libc::SYS_tgkill, vec![condition(0, SeccompCmpOp::Ne, own)?]);
    if !uses_gpu {
        // A GPU is used by writing to its devices.
        let writing = |argument| {
            [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC]
                .into_iter()
                .map(|flag| has_flag(argument, flag))
                .collect::<Result<Vec<_>, _>>()
        };
        forbidden.insert(libc::SYS_openat, writing(2)?);
        #[cfg(target_arch = "x86_64")]
        forbidden.insert(libc::SYS_open, writing(1)?);
    }
    let architecture = std::env::consts::ARCH.try_into().map_err(text)?;
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    let filter = |rules, action| {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
        filter.and_then(BpfProgram::try_from).map_err(text)
    };
    Ok(vec![
        filter(always(&HIDDEN), errno(libc::ENOSYS))?,
        filter(forbidden, errno(libc::EPERM))?,
    ])
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::process::Command;

    use super::*;

    fn refused<T>(what: &str, result: std::io::Result<T>) {
        let kind = result.map(drop).expect_err(what).kind();
        assert_eq!(kind, PermissionDenied, "{what}");
    }

    /// Tries on one thread what a program might do: both protections can be entered by a thread
    /// alone.
    #[test]
    fn a_program_has_no_network_writes_nothing_and_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, new, socket) = (
            folder.path().join("secret"),
            folder.path().join("new"),
            folder.path().join("socket"),
        );
        std::fs::write(&secret, "of mine").unwrap();
        let (listener, server) = (
            UnixListener::bind(&socket).unwrap(),
            TcpListener::bind("127.0.0.1:0").unwrap(),
        );
        let address = server.local_addr().unwrap();
        let tried = std::thread::spawn(move || {
            let files = restrict_files(Path::new("/nowhere/libondes_torch.so"), false).unwrap();
            for filter in filters(false).unwrap() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            refused("a connection", TcpStream::connect(address));
            refused("a TCP port", TcpListener::bind("127.0.0.1:0"));
            refused("a UDP port", UdpSocket::bind("127.0.0.1:0"));
            refused("a socket of the system", UnixStream::connect(&socket));
            refused("a datagram socket", UnixDatagram::unbound());
            refused("a new file", File::create(&new));
            refused("a change", OpenOptions::new().append(true).open(&secret));
            refused("a removal", std::fs::remove_file(&secret));
            refused("a rename", std::fs::rename(&secret, &new));
            refused("a link", std::os::unix::fs::symlink("/", &new));
            refused("a folder", std::fs::create_dir(&new));
            refused(
                "permissions",
                std::fs::set_permissions("/proc/self/exe", std::fs::Permissions::from_mode(0o777)),
            );
            refused("another program", Command::new("/bin/true").status());
            // SAFETY: signal 0 only asks whether it may be sent.
            let sent = unsafe { libc::kill(libc::getppid(), 0) };
            assert_eq!(
                (sent, std::io::Error::last_os_error().kind()),
                (-1, PermissionDenied)
            );
            if files == RulesetStatus::NotEnforced {
                eprintln!("not shown here: this kernel has no Landlock");
            } else {
                refused("a file of the user", File::open(&secret));
                refused("a file of the system", File::open("/etc/passwd"));
            }
            // What libtorch needs.
            assert!(
                std::fs::read_to_string("/proc/thread-self/status")
                    .unwrap()
                    .contains("NoNewPrivs:\t1")
            );
            assert!(File::open("/dev/urandom").is_ok());
            std::thread::spawn(|| ()).join().unwrap();
        });
        tried.join().unwrap();
        drop((listener, server));
        assert_eq!(
            std::fs::read_to_string(folder.path().join("secret")).unwrap(),
            "of mine"
        );
    }
}
