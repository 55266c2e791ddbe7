//! Rank of this process, number of processes and address of the first one, from the environment
//! variables of the launcher.

use anyhow::{Context, bail, ensure};

/// Default port at which processes meet; that of `torchrun`.
const PORT: u16 = 29_500;

/// Rank of a process, and the group that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Index of the process; the first one, 0, writes the files.
    pub rank: usize,
    /// Number of processes.
    pub size: usize,
    /// Index among the processes of this machine, which selects a GPU.
    pub local_rank: usize,
    /// Host at which the processes meet: that of the first.
    pub host: String,
    /// Port there.
    pub port: u16,
    /// The launcher has opened the port already.
    pub is_served: bool,
    /// Number of restarts so far.
    pub restarts: u64,
}

/// Variables of a launcher: rank, number of processes, rank on this machine.
const LAUNCHERS: [(&str, [&str; 3]); 3] = [
    ("torchrun", ["RANK", "WORLD_SIZE", "LOCAL_RANK"]),
    (
        "Open MPI",
        [
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
        ],
    ),
    ("Slurm", ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"]),
];

impl Membership {
    /// Reads the variables of the environment; `None` if this process trains alone.
    ///
    /// # Errors
    /// Returns an error that names a variable that is missing or no number.
    pub fn from_environment() -> anyhow::Result<Option<Self>> {
        Self::from_variables(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let number = |name: &str| -> anyhow::Result<Option<usize>> {
            let Some(value) = variable(name) else {
                return Ok(None);
            };
            let number = value
                .parse()
                .with_context(|| format!("the variable {name} is {value:?}, not a number"))?;
            Ok(Some(number))
        };
        for (launcher, [rank, size, local_rank]) in LAUNCHERS {
            let (Some(found), Some(processes)) = (number(rank)?, number(size)?) else {
                continue;
            };
            // A shell inside an allocation of Slurm has these variables, too.
            if processes == 1 {
                continue;
            }
            ensure!(
                found < processes,
                "{rank} is {found}, but there are {processes} processes ({size})"
            );
            let host = match variable("MASTER_ADDR") {
                Some(host) => host,
                None if launcher == "Slurm" => {
                    let list =
                        variable("SLURM_STEP_NODELIST").or_else(|| variable("SLURM_JOB_NODELIST"));
                    first_host(&list.context("MASTER_ADDR is not set, and Slurm names no node")?)?
                }
                None => bail!(
                    "{launcher} started {processes} processes, but MASTER_ADDR, the host of the first, is not set"
                ),
            };
            let port = match number("MASTER_PORT")? {
                Some(port) => u16::try_from(port)
                    .ok()
                    .filter(|port| *port > 0)
                    .context("MASTER_PORT is no port")?,
                None => PORT,
            };
            return Ok(Some(Self {
                rank: found,
                size: processes,
                local_rank: number(local_rank)?.unwrap_or(0),
                host,
                port,
                is_served: variable("TORCHELASTIC_USE_AGENT_STORE")
                    .is_some_and(|value| value == "True"),
                restarts: number("TORCHELASTIC_RESTART_COUNT")?.unwrap_or(0) as u64,
            }));
        }
        Ok(None)
    }

    /// Tells whether this process writes the files and prints.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }
}

/// Returns the first host of a list of Slurm's, such as `node[07-12,20],login1`.
fn first_host(list: &str) -> anyhow::Result<String> {
    let Some((prefix, rest)) = list
        .split_once('[')
        .filter(|(prefix, _)| !prefix.contains(','))
    else {
        let first = list.split(',').next().unwrap_or_default();
        ensure!(
            !first.is_empty(),
            "the list of Slurm's nodes is empty; set MASTER_ADDR"
        );
        return Ok(first.to_owned());
    };
    let (ranges, suffix) = rest
        .split_once(']')
        .with_context(|| format!("cannot read Slurm's nodes {list:?}"))?;
    let first = ranges.split([',', '-']).next().unwrap_or_default();
    let suffix = suffix.split(',').next().unwrap_or_default();
    Ok(format!("{prefix}{first}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> anyhow::Result<Option<Membership>> {
        let find = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Membership::from_variables(&find)
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(read(&[]).expect("no variables"), None);
        let torchrun = [
            ("RANK", "3"),
            ("WORLD_SIZE", "4"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29511"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
        ];
        let expected = Membership {
            rank: 3,
            size: 4,
            local_rank: 1,
            host: "10.0.0.1".into(),
            port: 29_511,
            is_served: true,
            restarts: 2,
        };
        assert_eq!(read(&torchrun).expect("all is there"), Some(expected));
        let slurm = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "8"),
            ("SLURM_STEP_NODELIST", "gpu[07-09,12]"),
        ];
        let slurm = read(&slurm).expect("all is there").expect("processes");
        assert_eq!(
            (slurm.rank, slurm.size, slurm.host.as_str(), slurm.port),
            (0, 8, "gpu07", PORT)
        );
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "a"),
        ];
        assert_eq!(
            read(&mpi).expect("all is there").expect("processes").rank,
            1
        );
        // An interactive shell of Slurm's.
        assert_eq!(
            read(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]).expect("no processes"),
            None
        );
    }

    #[test]
    fn wrong_variables_are_named() {
        for (variables, name) in [
            (vec![("RANK", "a"), ("WORLD_SIZE", "2")], "RANK"),
            (
                vec![("RANK", "2"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a")],
                "RANK",
            ),
            (vec![("RANK", "0"), ("WORLD_SIZE", "2")], "MASTER_ADDR"),
            (
                vec![
                    ("RANK", "0"),
                    ("WORLD_SIZE", "2"),
                    ("MASTER_ADDR", "a"),
                    ("MASTER_PORT", "0"),
                ],
                "MASTER_PORT",
            ),
        ] {
            let error = read(&variables).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn the_first_of_slurms_nodes_is_found() {
        for (list, first) in [
            ("a", "a"),
            ("a,b[1-2]", "a"),
            ("n[01-04]", "n01"),
            ("n[3,5]-ib,m", "n3-ib"),
            ("n1,n2", "n1"),
        ] {
            assert_eq!(first_host(list).expect("a list"), first);
        }
        assert!(first_host("").is_err() && first_host("n[1").is_err());
    }
}
