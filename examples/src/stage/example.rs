use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use uuid::Uuid;

use super::connection::Connection;
use super::failure::Failure;
use super::interrupt::{GRACE, Interrupt};
use super::options::Common;
use super::server::Server;
use super::setting::Stage;
use super::sweep::sweep;
use super::verdict::Verdict;
use super::worker::{self, Worker};

/// A small application: its options, and its two sides.
pub trait Example: Parser {
    /// What a process that works tells the one that leads.
    type News: Serialize + DeserializeOwned + Send + 'static;

    /// How long sessions are on the embedded server. The shorter, the sooner a dead process is found out.
    const SESSION: Duration = Duration::from_secs(4);

    /// What every example can be told.
    fn common(&self) -> &Common;

    /// Sets the scene, starts processes, and judges what came of it.
    fn lead(&self, stage: &mut Stage<Self::News>) -> impl Future<Output = Result<Verdict, Failure>>;

    /// Works, in each of those processes.
    fn work(&self, worker: &Worker) -> impl Future<Output = Result<(), Failure>>;
}

/// Plays an example, on whichever side this process is.
///
/// Exit code: 0 the claim held; 1 it did not; 2 the input is wrong; 3 it could not be finished; 130 interrupted (Ctrl-C).
#[must_use]
pub fn play<E: Example>() -> ExitCode {
    let (example, name) = (E::parse(), E::command().get_name().to_owned());
    let code = block_on(async {
        match example.common().process {
            Some(number) => {
                let work = async |worker: &Worker| example.work(worker).await;
                worker::perform(number, &name, work).await.map(|()| ExitCode::SUCCESS)
            }
            None => lead(&example, &name).await,
        }
    });
    let failed = |failure: Failure| {
        eprintln!("{name}: {failure}");
        ExitCode::from(failure.code())
    };
    code.map_err(Failure::from).flatten().unwrap_or_else(failed)
}

/// Runs `work` in a runtime of its own.
///
/// # Errors
///
/// Of the operating system.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let output = runtime.block_on(work);
    // A read of standard input that no one waits for any more must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(output)
}

async fn lead<E: Example>(example: &E, name: &str) -> Result<ExitCode, Failure> {
    let mut interrupt = Interrupt::listen()?;
    // The server lives until everything is cleaned up.
    let (mut connection, _server) = match &example.common().connect {
        Some(servers) => (Connection::to(servers), None),
        None => {
            let server = interrupt.or(Server::start()).await??;
            (server.connection(E::SESSION), Some(server))
        }
    };
    connection.session_timeout = example.common().session_timeout().or(connection.session_timeout);
    let manager = interrupt.or(connection.open(name)).await??;
    let root = format!("/lockkeeper-examples/{name}-{}", Uuid::new_v4()).parse()?;
    let mut stage = Stage::new(manager.clone(), connection, root);

    let judged = interrupt.or(example.lead(&mut stage)).await;

    stage.close().await;
    if let Err(error) = interrupt.or(sweep(&manager.znodes(), stage.root().clone())).await? {
        eprintln!("the nodes at {} are left there ({error}); delete them by hand", stage.root());
    }
    // A session that cannot be closed in order expires.
    let _ = interrupt.or(manager.shutdown_within(GRACE)).await?;
    let verdict = judged??;
    writeln!(io::stdout(), "{verdict}")?;
    Ok(verdict.code())
}
