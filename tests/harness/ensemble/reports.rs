//! The reports of a server about itself.

use super::Server;
use crate::error::HarnessError;
use crate::inspect::{self, Connection, Dump, Role, Watches};
use crate::version::Version;

/// Reports, by four-letter words. A paused server does not answer them.
impl Server {
    /// The part it plays now, in its own opinion.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotServing`] without a quorum, [`HarnessError::Io`] or [`HarnessError::Timeout`] if it
    /// does not answer.
    pub async fn role(&self) -> Result<Role, HarnessError> {
        inspect::role(self.address()).await
    }

    /// Its release, which decides some answers.
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn version(&self) -> Result<Version, HarnessError> {
        inspect::version(self.address()).await
    }

    /// The answer to any four-letter word.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Io`] or [`HarnessError::Timeout`] if it does not answer.
    pub async fn word(&self, word: &str) -> Result<String, HarnessError> {
        inspect::word(self.address(), word).await
    }

    /// How many packets it has received from clients (`mntr`), these questions included: for one client, see
    /// [`Server::connections`].
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn packets_received(&self) -> Result<u64, HarnessError> {
        inspect::counter(self.address(), "zk_packets_received").await
    }

    /// The connections of its clients, with what each has sent (`cons`).
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn connections(&self) -> Result<Vec<Connection>, HarnessError> {
        inspect::connections(self.address()).await
    }

    /// The sessions it knows and their ephemeral nodes (`dump`). Only a leader or a standalone server knows
    /// all sessions.
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn dump(&self) -> Result<Dump, HarnessError> {
        inspect::dump(self.address()).await
    }

    /// The watches of its own clients, by path (`wchp`).
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn watches(&self) -> Result<Watches, HarnessError> {
        inspect::watches(self.address()).await
    }

    /// How many watches its own clients have (`wchs`).
    ///
    /// # Errors
    ///
    /// As [`Server::role`].
    pub async fn watch_count(&self) -> Result<u64, HarnessError> {
        inspect::watch_count(self.address()).await
    }
}
