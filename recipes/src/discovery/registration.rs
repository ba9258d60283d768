use lockkeeper_core::{ConfigError, Error, Presence};
use serde::Serialize;
use tokio::sync::{Mutex, MutexGuard};

use super::instance::{Instance, InstanceState, NoPayload};
use super::json;
use crate::registration::Registration;

/// An instance of a service, registered: a [`Registration`](crate::Registration) whose data is the
/// [`Instance`]. It outlives sessions. A drop ends it in the background.
///
/// A client may still choose the instance until it learns of the delete. So [drain](Registration::set_state)
/// it before its [release](Registration::release), and continue to answer for a while.
///
/// # Methods
///
/// Those of every [`Registration`](crate::Registration), and [`id`](Self::id),
/// [`set_state`](Self::set_state), [`set_payload`](Self::set_payload) and [`update`](Self::update).
pub type InstanceRegistration<P = NoPayload> = Registration<InstanceKind<P>>;

/// An instance of a service.
#[derive(Debug)]
pub struct InstanceKind<P> {
    id: String,
    with_enabled: bool,
    /// As it was last written.
    instance: Mutex<Instance<P>>,
}

impl<P> InstanceRegistration<P> {
    pub(super) fn new(presence: Presence, instance: Instance<P>, with_enabled: bool) -> Self {
        let (id, instance) = (instance.id().to_owned(), Mutex::new(instance));
        Self { presence, kind: InstanceKind { id, with_enabled, instance } }
    }

    /// The id of the instance.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.kind.id
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
        let mut instance = self.kind.instance.lock().await;
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
        let mut instance = self.kind.instance.lock().await;
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
        let mut now = self.kind.instance.lock().await;
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
        let written = match json::write(&instance, self.kind.with_enabled) {
            Ok(data) => self.presence.set_data(data).await,
            Err(error) => Err(error),
        };
        if let Err(Error::Config(_) | Error::Refused { .. }) = &written {
            undo(&mut instance);
        }
        written
    }
}
