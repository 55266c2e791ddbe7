//! Opens the library, gives up rights, and accepts the engine's connections.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ondes_engine::torch::Library;
use ondes_engine::torch::interface;
use ondes_engine::torch::process::protocol::{self, Reply, Start, Started};

use crate::{connection, sandbox};

/// Serves the engine until it closes its socket, standard input.
///
/// # Errors
/// Returns an error if standard input is no such socket.
pub fn run() -> io::Result<()> {
    sandbox::close_inherited_files();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let start: Start = protocol::receive(&control, None)?;
    let mut program = Vec::new();
    File::from(protocol::receive_file(&control)?).read_to_end(&mut program)?;
    let program: Arc<[u8]> = program.into();
    let (library, started) = match prepare(&start) {
        Ok(prepared) => prepared,
        Err(reason) => return protocol::send::<Reply<Started>>(&control, &Err(reason)),
    };
    protocol::send::<Reply<_>>(&control, &Ok(started))?;
    // This thread waits for the engine while others compute: the process ends with the engine,
    // whatever the program does.
    while let Ok(socket) = protocol::receive_file(&control) {
        let (library, program) = (library.clone(), program.clone());
        let serve = move || connection::serve(&UnixStream::from(socket), &library, &program);
        std::thread::Builder::new()
            .name("ondes-program".into())
            .spawn(serve)?;
    }
    // Without destructors: a program may be running.
    sandbox::exit()
}

/// Opens the library and gives up rights.
fn prepare(start: &Start) -> Result<(Arc<Library>, Started), String> {
    if start.version != interface::VERSION {
        return Err(format!(
            "ondes-program-host belongs to another version of Ondes (interface {}, expected {}): \
             `ondes setup-torch` of this version replaces it",
            interface::VERSION,
            start.version
        ));
    }
    sandbox::limit_resources(start.uses_gpu);
    let library = Library::open(&start.library).map_err(|error| error.to_string())?;
    let missing_protection = sandbox::enter(&start.library, start.uses_gpu);
    Ok((Arc::new(library), Started { missing_protection }))
}
