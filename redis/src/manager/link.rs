use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::wire::Wire;
use crate::script::Call;

/// The connection of a manager.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Sender<LinkState>,
    broken: mpsc::UnboundedSender<u64>,
    channel: String,
}

/// The present connection.
#[derive(Clone, Debug, Default)]
struct LinkState {
    wire: Option<Wire>,
    /// The number of the connection, or of the last one.
    generation: u64,
    last_error: Option<String>,
}

/// A connection on which requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    wire: Wire,
    generation: u64,
}

/// Why a request has no answer that its caller can use.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// The server may have processed it, or will be able to later: ask again.
    NoAnswer(String),
    /// The server does not process it.
    Refused(String),
    /// The key has a value of another type.
    ConflictingKind,
}

impl Link {
    /// A link without a connection, and the reports of broken ones for its task.
    pub(super) fn new(channel: String) -> (Self, mpsc::UnboundedReceiver<u64>) {
        let (broken, reports) = mpsc::unbounded_channel();
        (Self { state: watch::Sender::default(), broken, channel }, reports)
    }

    /// The channel on which the grants to this manager's waiters are published.
    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state.borrow().wire.is_some()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.state.borrow().last_error.clone()
    }

    /// There is a connection. Returns its number.
    pub(super) fn set_connected(&self, wire: Wire) -> u64 {
        self.state.send_modify(|state| {
            *state = LinkState { wire: Some(wire), generation: state.generation + 1, last_error: None };
        });
        self.state.borrow().generation
    }

    /// There is no connection, for this reason.
    pub(super) fn set_broken(&self, cause: String) {
        self.state.send_modify(|state| {
            state.wire = None;
            state.last_error = Some(cause);
        });
    }

    /// Waits for a connection.
    pub(crate) async fn connection(&self) -> Connection {
        let mut state = self.state.subscribe();
        loop {
            let LinkState { wire, generation, .. } = state.borrow_and_update().clone();
            if let Some(wire) = wire {
                return Connection { wire, generation };
            }
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Resolves when this connection is not the present one any more, and another one is.
    pub(crate) async fn replaced(&self, connection: &Connection) {
        let mut state = self.state.subscribe();
        let is_new = |state: &LinkState| state.wire.is_some() && state.generation != connection.generation;
        if state.wait_for(is_new).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Sends a script, and waits for the answer for at most `limit`.
    pub(crate) async fn send(
        &self,
        connection: &mut Connection,
        call: &Call,
        limit: Duration,
    ) -> Result<Vec<i64>, CallError> {
        let error = match timeout(limit, call.send(&mut connection.wire)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                let _ = self.broken.send(connection.generation);
                return Err(CallError::NoAnswer(format!("no answer within {limit:.1?}")));
            }
        };
        let (error, reconnect) = classify(&error);
        if reconnect {
            let _ = self.broken.send(connection.generation);
        }
        Err(error)
    }
}

/// What an error of the client means, and whether another connection may help.
fn classify(error: &RedisError) -> (CallError, bool) {
    let text = error.to_string();
    // Before Redis 7, an error within a script has the code of the script's failure, and its own in the text.
    let is = |code: &str| error.code() == Some(code) || text.contains(&format!("{code} "));
    if is("WRONGTYPE") {
        return (CallError::ConflictingKind, false);
    }
    // The server is, or became, a replica: a name may lead to the primary by now.
    if is("READONLY") || is("LOADING") || is("MASTERDOWN") {
        return (CallError::NoAnswer(text), true);
    }
    if ["CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MOVED", "ASK"].into_iter().any(is) {
        return (CallError::NoAnswer(text), false);
    }
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoScript) => (CallError::NoAnswer(text), false),
        ErrorKind::Server(_) | ErrorKind::Extension => (CallError::Refused(text), false),
        ErrorKind::UnexpectedReturnType => (CallError::Refused(text), false),
        ErrorKind::AuthenticationFailed => (CallError::Refused(text), true),
        _ => (CallError::NoAnswer(text), true),
    }
}
