use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::decide::Engine;
use super::error::PresenceError;
use super::state::{OnDeletion, PresenceState};
use super::task::{Command, Task};
use crate::config::limits;
use crate::environment::ensure_runtime;
use crate::error::{ConfigError, Error, Operation, Phase};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::watch::{Watch, WatchSource};
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::whole_path::WholePath;
use crate::znode::zxid::Zxid;

/// An ephemeral node that is created again in each session.
///
/// For recipe authors; applications use `Registration` and `Group` of the crate `lockkeeper`, which document
/// the promises. A drop deletes the node in the background.
#[must_use = "a presence that is not kept is over at once"]
pub struct Presence {
    manager: ConnectionManager,
    path: ZnodePath,
    commands: mpsc::UnboundedSender<Command>,
    state: watch::Receiver<PresenceState>,
}

/// The state of a presence, for a [`Watch`].
#[derive(Clone, Debug)]
struct PresenceSource {
    state: watch::Receiver<PresenceState>,
    path: WholePath,
    /// What [`changed`](WatchSource::changed) returned last.
    returned: Option<PresenceState>,
}

impl Presence {
    /// Begins to create the node at `path`, below the manager's chroot, in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for an invalid path, for the root, for data that is too large, and without a tokio
    /// runtime; [`Error::Closed`] after a shutdown.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        data: impl Into<Vec<u8>>,
        policy: OnDeletion,
    ) -> Result<Self, Error> {
        ensure_runtime()?;
        let (path, data) = (path.into_path()?, data.into());
        let full = manager.full_path(&path)?;
        if full.is_root() {
            let (name, value, advice) = ("path", path.to_string(), "the root exists for ever; name a node");
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        limits::check(full.as_str().len() + data.len()).map_err(Error::Config)?;
        if manager.is_closing() {
            return Err(Error::Closed);
        }
        let (commands, received) = mpsc::unbounded_channel();
        let (published, state) = watch::channel(PresenceState::Missing { since: manager.now() });
        let task = Task::new(manager.clone(), full, Engine::new(policy, data.into()), received, published);
        manager.spawn(task.run());
        Ok(Self { manager: manager.clone(), path, commands, state })
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The path of the node on the server, for errors and logs.
    #[must_use]
    pub fn whole_path(&self) -> WholePath {
        self.manager.whole_path(&self.path)
    }

    /// Whether the node exists, as far as is known.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        *self.state.borrow()
    }

    /// Follows the state. The watch does not keep the presence alive, and ends after a
    /// [final](PresenceState::is_final) state.
    #[must_use]
    pub fn watch(&self) -> Watch<PresenceState> {
        PresenceSource { state: self.state.clone(), path: self.whole_path(), returned: None }.into_watch()
    }

    /// Waits until the node exists and is ours. Returns the id of the transaction that created it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses the node, [`PresenceError::Deleted`] by [`Error::recipe`],
    /// [`Error::Closed`] after a shutdown, and [`Error::RuntimeEnded`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the presence continues.
    pub async fn registered(&self) -> Result<Zxid, Error> {
        let mut state = self.state.clone();
        let is_decided = |state: &PresenceState| {
            !matches!(state, PresenceState::Missing { .. } | PresenceState::Conflict { .. })
        };
        let decided = state.wait_for(is_decided).await.map_or(PresenceState::Closed, |state| *state);
        match decided {
            PresenceState::Registered { czxid } => Ok(czxid),
            PresenceState::Refused(refusal) => {
                Err(Error::Refused { operation: Operation::Create, path: self.whole_path(), refusal })
            }
            state => Err(self.ended(state)),
        }
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says what is in the way. Otherwise as [`registered`](Self::registered).
    ///
    /// # Cancel safety
    ///
    /// As [`registered`](Self::registered).
    pub async fn registered_timeout(&self, timeout: Duration) -> Result<Zxid, Error> {
        let limit = Deadline::after(timeout);
        tokio::select! {
            biased;
            registered = self.registered() => registered,
            () = limit.passed() => {
                let phase = format!("waiting for the registration, which is {}", self.state());
                let (path, waited) = (self.whole_path(), limit.waited());
                Err(Error::Timeout { phase: Phase::Recipe(phase.into()), path, waited })
            }
        }
    }

    /// Gives the node other data, in this session and in those that follow, and waits until the node of the
    /// current session has it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: the server refuses the data, and the node keeps what it had. [`Error::Unknown`]
    /// after the manager's operation timeout; the data is written later. [`Error::Config`] for data that is
    /// too large, [`PresenceError::Deleted`] by [`Error::recipe`], [`Error::Closed`] and
    /// [`Error::RuntimeEnded`].
    ///
    /// # Cancel safety
    ///
    /// The data is written in the background.
    pub async fn set_data(&self, data: impl Into<Vec<u8>>) -> Result<(), Error> {
        let data = data.into();
        limits::check(self.whole_path().as_str().len() + data.len()).map_err(Error::Config)?;
        let (done, written) = oneshot::channel();
        let _ = self.commands.send(Command::SetData(data.into(), done));
        self.answered(written, Operation::Write).await
    }

    /// Deletes the node, and waits until the server has confirmed this. Succeeds if there is no node of ours.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] after the manager's operation timeout; the delete continues in the background.
    /// A create whose answer was lost has the same result: the node is deleted at once, and again after a
    /// session timeout, because that create may be applied late. [`Error::Unknown`], too, if the session
    /// ended first: the server deletes the node with the session.
    ///
    /// # Cancel safety
    ///
    /// The delete continues in the background.
    pub async fn release(self) -> Result<(), Error> {
        let (done, released) = oneshot::channel();
        let _ = self.commands.send(Command::Release(done));
        let answer = self.answered(released, Operation::Delete).await;
        if self.state() == PresenceState::Deleted { Ok(()) } else { answer }
    }

    async fn answered(
        &self,
        answer: oneshot::Receiver<Result<(), Error>>,
        operation: Operation,
    ) -> Result<(), Error> {
        let limit = Deadline::after(self.manager.operation_timeout());
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(self.ended(self.state()))),
            () = limit.passed() => {
                let (waited, state) = (limit.waited(), self.state());
                let cause = format!(
                    "not confirmed within {waited:.1?}, with the registration {state}; it is done later"
                );
                Err(Error::Unknown { operation, path: self.whole_path(), cause })
            }
        }
    }

    fn ended(&self, state: PresenceState) -> Error {
        match state {
            PresenceState::Deleted => PresenceError::Deleted { path: self.whole_path() }.into(),
            _ => self.manager.ended_task(self.whole_path()),
        }
    }
}

impl WatchSource for PresenceSource {
    type State = PresenceState;

    fn state(&self) -> PresenceState {
        *self.state.borrow()
    }

    async fn changed(&mut self) -> Result<PresenceState, Error> {
        loop {
            let state = *self.state.borrow_and_update();
            if self.returned.replace(state) != Some(state) {
                return Ok(state);
            }
            if self.state.changed().await.is_err() {
                return Err(match state {
                    PresenceState::Deleted => PresenceError::Deleted { path: self.path.clone() }.into(),
                    PresenceState::Closed => Error::Closed,
                    _ => Error::RuntimeEnded { path: self.path.clone() },
                });
            }
        }
    }
}

impl Debug for Presence {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Presence")
            .field("path", &self.path)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
