use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::{ConfigError, Error, Presence, PresenceState, PresenceWatch, ZnodePath};
use serde::Serialize;
use tokio::sync::{Mutex, MutexGuard};

use super::instance::{Instance, InstanceState, NoPayload};
use super::json;

/// An instance of a service, registered: a [`Registration`](crate::Registration) whose data is the
/// [`Instance`]. It outlives sessions. A drop ends it in the background.
#[must_use = "a registration that is not kept is over at once"]
pub struct InstanceRegistration<P = NoPayload> {
    presence: Presence,
    id: String,
    with_enabled: bool,
    /// As it was last written.
    instance: Mutex<Instance<P>>,
}

impl<P> InstanceRegistration<P> {
    pub(super) fn new(presence: Presence, instance: Instance<P>, with_enabled: bool) -> Self {
        Self { presence, id: instance.id().to_owned(), with_enabled, instance: Mutex::new(instance) }
    }

    /// The id of the instance.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.presence.path()
    }

    /// Whether the node exists, as far as is known. Sends nothing.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.presence.state()
    }

    /// The states of the registration, one after the other.
    #[must_use]
    pub fn watch(&self) -> PresenceWatch {
        self.presence.watch()
    }

    /// Waits until the instance is registered, without a limit of time, and returns the id of the
    /// transaction that created its node: a [view](crate::Discovery::service) has the instance after
    /// [`await_until`](crate::view::View::await_until) that.
    ///
    /// # Errors
    ///
    /// As [`Registration::registered`](crate::Registration::registered).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the registration continues.
    pub async fn registered(&self) -> Result<i64, Error> {
        self.presence.registered().await
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which says what is in the way: for example the session that owns the node.
    /// Otherwise as [`registered`](Self::registered).
    ///
    /// # Cancel safety
    ///
    /// As [`registered`](Self::registered).
    pub async fn registered_timeout(&self, timeout: Duration) -> Result<i64, Error> {
        self.presence.registered_timeout(timeout).await
    }

    /// Deletes the node, and waits until the server has confirmed this. No error if there is no node.
    ///
    /// A client may still choose the instance until it learns of the delete. So
    /// [drain](Self::set_state) first, and continue to answer for a while.
    ///
    /// # Errors
    ///
    /// As [`Registration::release`](crate::Registration::release).
    ///
    /// # Cancel safety
    ///
    /// The delete continues in the background.
    pub async fn release(self) -> Result<(), Error> {
        self.presence.release().await
    }
}

impl<P: Serialize> InstanceRegistration<P> {
    /// Enables the instance or drains it, now and in the sessions that follow, and waits until the node has
    /// the state.
    ///
    /// # Ordering
    ///
    /// The updates of one registration are done one after the other, in the order of the calls.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: the server refuses the data, and the instance stays as it was. [`Error::Unknown`]
    /// after the manager's operation timeout; the data is written as soon as possible, so do not repeat the
    /// call.
    /// [`Error::Config`] if the data is too large.
    /// [`PresenceError::Deleted`](lockkeeper_core::PresenceError::Deleted) by [`Error::recipe`], and
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// The data is written in the next session.
    ///
    /// # Cancel safety
    ///
    /// The data is written in the background, unless the call still waits for an earlier update. If the
    /// server refuses it after the call has ended, the node keeps what it had, and only the log has the
    /// refusal; the update is then a part of the next one. The same holds after [`Error::Unknown`].
    pub async fn set_state(&self, state: InstanceState) -> Result<(), Error> {
        let mut instance = self.instance.lock().await;
        let before = std::mem::replace(&mut instance.state, state);
        self.write(instance, |instance| instance.state = before).await
    }

    /// Replaces the payload, and waits until the node has it. The class of the payload stays.
    ///
    /// # Errors
    ///
    /// As [`set_state`](Self::set_state), and [`Error::Config`] if the payload cannot be JSON.
    ///
    /// # Session loss
    ///
    /// As [`set_state`](Self::set_state).
    ///
    /// # Cancel safety
    ///
    /// As [`set_state`](Self::set_state).
    pub async fn set_payload(&self, payload: P) -> Result<(), Error> {
        let mut instance = self.instance.lock().await;
        let before = instance.payload.replace(payload);
        self.write(instance, |instance| instance.payload = before).await
    }

    /// Replaces the whole instance, and waits until the node has it: Curator's `updateService`.
    ///
    /// # Errors
    ///
    /// As [`set_payload`](Self::set_payload), and [`Error::Config`] if the name, the id or the type of the
    /// instance is another one: its node would be another one, too.
    ///
    /// # Session loss
    ///
    /// As [`set_state`](Self::set_state).
    ///
    /// # Cancel safety
    ///
    /// As [`set_state`](Self::set_state).
    pub async fn update(&self, instance: Instance<P>) -> Result<(), Error> {
        let mut now = self.instance.lock().await;
        let identity = |of: &Instance<P>| (of.name.clone(), of.id.clone(), of.service_type);
        if identity(&now) != identity(&instance) {
            let value = format!("{}/{} of type {}", instance.name, instance.id, instance.service_type);
            let advice = "keep the name, the id and the type; register another instance beside this one";
            return Err(ConfigError::Setting { name: "the instance", value, advice }.into());
        }
        let before = std::mem::replace(&mut *now, instance);
        self.write(now, |instance| *instance = before).await
    }

    /// Writes the instance. What is refused is undone.
    async fn write(
        &self,
        mut instance: MutexGuard<'_, Instance<P>>,
        undo: impl FnOnce(&mut Instance<P>),
    ) -> Result<(), Error> {
        let written = match json::write(&instance, self.with_enabled) {
            Ok(data) => self.presence.set_data(data).await,
            Err(error) => Err(error),
        };
        if let Err(Error::Config(_) | Error::Refused { .. }) = &written {
            undo(&mut instance);
        }
        written
    }
}

impl<P> Debug for InstanceRegistration<P> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.presence.fmt(formatter)
    }
}
