//! One sale from the first node to the last.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use lockkeeper::Error;
use thiserror::Error as ThisError;
use tokio::time::Instant;
use uuid::Uuid;

use super::audit::Books;
use super::ledger::{Ledger, LedgerError};
use super::messages::Briefing;
use super::office::{Office, OfficeError};
use super::options::Options;
use super::orders::{self, Order, OrdersError};
use super::report::Report;
use crate::fixture::{
    Connection, GRACE, Interrupt, Interrupted, NoEngine, Server, ServerError, TROUBLE, USAGE,
};

/// On the embedded server: short, so that a seller that dies is soon found out.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Why there is nothing to report.
#[derive(Debug, ThisError)]
pub(crate) enum RunError {
    #[error(transparent)]
    Orders(#[from] OrdersError),
    #[error(transparent)]
    Engine(#[from] NoEngine),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Connect(#[from] Error),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Office(#[from] OfficeError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunError {
    /// The exit code of the process.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Orders(_) | Self::Connect(Error::Config(_)) => USAGE,
            Self::Interrupted(interrupted) => interrupted.code(),
            _ => TROUBLE,
        }
    }
}

/// Runs the sale, and reports its result.
pub(crate) async fn run(options: &Options) -> Result<ExitCode, RunError> {
    let orders = orders::read(&options.orders)?;
    let mut interrupt = Interrupt::listen()?;
    interrupt.or(options.engine.check()).await??;
    // The server lives until everything is cleaned up.
    let (mut connection, _server) = match &options.common.connect {
        Some(servers) => (Connection::to(servers), None),
        None => {
            let server = interrupt.or(Server::start()).await??;
            (server.connection(SESSION_TIMEOUT), Some(server))
        }
    };
    connection.session_timeout = options.common.session_timeout().or(connection.session_timeout);
    let manager = interrupt.or(connection.open("ticket office")).await??;
    let root = format!("/ticket-office/{}", Uuid::new_v4()).parse().map_err(Error::from)?;
    let ledger = Ledger::new(&manager, root);

    let sold = sell(options, &orders, &ledger, connection, &mut interrupt).await;

    if options.keep {
        eprintln!("the nodes of this run are at {}", ledger.root());
    } else {
        let removed = match interrupt.or(ledger.remove()).await {
            Ok(removed) => removed.map_err(RunError::from),
            Err(interrupted) => Err(interrupted.into()),
        };
        if let Err(error) = removed {
            eprintln!("the nodes at {} are left there ({error}); delete them by hand", ledger.root());
        }
    }
    // All our locks were the sellers'; a session that cannot be closed in order expires.
    let _ = interrupt.or(manager.shutdown_within(GRACE)).await?;
    let report = sold?;
    let text = if options.json { report.json()? } else { report.to_string() };
    writeln!(io::stdout(), "{text}")?;
    Ok(if report.books.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn sell(
    options: &Options,
    orders: &[Order],
    ledger: &Ledger,
    connection: Connection,
    interrupt: &mut Interrupt,
) -> Result<Report, RunError> {
    interrupt.or(ledger.open(&orders::trains(orders), options.seats)).await??;
    let briefing = Briefing {
        // The office numbers its sellers.
        seller: 0,
        connection,
        root: ledger.root().to_string(),
        tasks: options.tasks,
        lock: !options.no_lock,
        engine: options.engine.clone(),
        think: options.think(),
    };
    let mut office = Office::new(ledger, orders, briefing, options.kill);
    let opened = Instant::now();
    let sold = interrupt.or(office.sell(options.processes)).await;
    let spent = opened.elapsed();
    let killed = office.close().await;
    sold??;
    let books = interrupt.or(Books::read(ledger, orders, options.seats)).await??;
    Ok(Report { books, orders: orders.len(), lock: !options.no_lock, killed, spent })
}
