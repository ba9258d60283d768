//! Holding messages back without anyone noticing.

use tokio::sync::watch;

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
    /// Both ways.
    Both,
}

/// The present state of a proxy's two directions.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    shut: watch::Sender<Shut>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Shut {
    to_server: bool,
    to_client: bool,
}

impl Gate {
    pub(crate) fn set(&self, direction: Direction, shut: bool) {
        self.shut.send_modify(|state| {
            if direction != Direction::ToClient {
                state.to_server = shut;
            }
            if direction != Direction::ToServer {
                state.to_client = shut;
            }
        });
    }

    /// Waits until messages may go to the server.
    pub(crate) async fn to_server(&self) {
        // Fails only without a sender, which is `self`.
        let _ = self.shut.subscribe().wait_for(|state| !state.to_server).await;
    }

    /// Waits until messages may go to the client.
    pub(crate) async fn to_client(&self) {
        let _ = self.shut.subscribe().wait_for(|state| !state.to_client).await;
    }
}
