use lockkeeper_core::{
    ConnectionManager, CreateMode, Deadline, Error, IntoPath, Phase, Refusal, Version, WholePath, ZnodePath,
};

use super::encoding;
use super::error::SemaphoreError;

/// The limit of a [`Semaphore`](super::Semaphore) or of a [`RateLimiter`](crate::RateLimiter), kept in a node
/// that all its users read. It can change at run time.
///
/// The node is Curator's `SharedCount`: a persistent node with a big-endian integer of four bytes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::locks::SharedLimit;
///
/// let limit = SharedLimit::new(&manager, "/licences/limit")?;
/// limit.set(4).await?;
/// assert_eq!(limit.get().await?, 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedLimit {
    manager: ConnectionManager,
    /// Below the manager's chroot.
    path: ZnodePath,
    whole: WholePath,
}

impl SharedLimit {
    /// Makes the limit at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let whole = manager.whole_path(&path);
        Ok(Self { manager: manager.clone(), path, whole })
    }

    pub(crate) fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Reads the limit.
    ///
    /// # Errors
    ///
    /// [`SemaphoreError::NoLimit`] if the node does not exist, or has no number. Otherwise as
    /// [`Znodes::read`](lockkeeper_core::Znodes::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn get(&self) -> Result<u32, Error> {
        match self.manager.znodes().read(&self.path).await? {
            Some((data, _)) => self.decode(&data),
            None => Err(self.missing()),
        }
    }

    /// Sets the limit, and creates the node if it does not exist. A higher limit wakes the waiter at the
    /// head. A lower one revokes nothing. A limit of zero closes the semaphore: every acquire returns
    /// [`SemaphoreError::TooManyPermits`]. It closes a rate limiter as well:
    /// [`RateLimiterError::TooManyStarts`](crate::error::RateLimiterError::TooManyStarts).
    ///
    /// This call takes no longer than the manager's
    /// [operation timeout](ConnectionManager::operation_timeout), by default the session timeout.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a number that Curator's bytes cannot hold. At the operation timeout
    /// [`Error::Unknown`] if a request has no answer, and [`Error::Timeout`] if none is out: there was no
    /// connection, or others delete and create the node all the time. Otherwise as
    /// [`Znodes::write`](lockkeeper_core::Znodes::write).
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the limit may change although the future was dropped.
    pub async fn set(&self, permits: u32) -> Result<(), Error> {
        encoding::check(permits)?;
        let (timeout, data) = (self.manager.operation_timeout(), encoding::encode(permits));
        let deadline = Deadline::after(timeout);
        loop {
            // Each request has the time that is left, so it is the request that says what is in doubt.
            let left = timeout.saturating_sub(deadline.waited());
            let Ok(manager) = self.manager.with_operation_timeout(left) else {
                let (path, waited) = (self.whole.clone(), deadline.waited());
                return Err(Error::Timeout { phase: Phase::Answer, path, waited });
            };
            match manager.znodes().write(&self.path, data.as_slice(), Version::Any).await {
                Err(Error::Refused { refusal: Refusal::NoNode, .. }) => {}
                written => return written.map(drop),
            }
            match manager.znodes().create(&self.path, data.as_slice(), CreateMode::Persistent).await {
                Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => {}
                created => return created.map(drop),
            }
        }
    }

    /// Below the manager's chroot.
    pub(crate) fn path(&self) -> &ZnodePath {
        &self.path
    }

    pub(crate) fn decode(&self, data: &[u8]) -> Result<u32, Error> {
        encoding::decode(data)
            .ok_or_else(|| self.unreadable(format!("{} bytes that are no number", data.len())))
    }

    pub(crate) fn missing(&self) -> Error {
        self.unreadable("there is no such node".to_owned())
    }

    fn unreadable(&self, found: String) -> Error {
        SemaphoreError::NoLimit { path: self.whole.clone(), found }.into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockkeeper_core::ErrorKind;
    use lockkeeper_testserver::{ErrorCode, Fault, Op, TestServer, When};

    use super::*;

    async fn limit_on(server: &TestServer) -> SharedLimit {
        let connecting = ConnectionManager::builder(&server.connect_string())
            .operation_timeout(Duration::from_millis(200))
            .connect();
        SharedLimit::new(&connecting.await.unwrap(), "/limit").unwrap()
    }

    async fn failure_of_set(limit: &SharedLimit) -> Error {
        let set = tokio::time::timeout(Duration::from_secs(20), limit.set(4)).await;
        set.expect("set() ends").unwrap_err()
    }

    #[tokio::test]
    async fn a_change_ends_by_the_operation_timeout_whatever_the_server_says() {
        let server = TestServer::start().await.unwrap();
        let limit = limit_on(&server).await;
        // The node is never there to be written, and always there to be created, as when others delete and
        // create it.
        let _unwritten = server.fault(When::op(Op::SetData).always(), Fault::Refuse(ErrorCode::NoNode));
        let existing = When::create().path("/limit").always();
        let _existing = server.fault(existing, Fault::Refuse(ErrorCode::NodeExists));
        let error = failure_of_set(&limit).await;
        // The time may end between two requests or within one.
        assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unknown), "{error}");
    }

    #[tokio::test]
    async fn a_change_without_an_answer_is_unknown_and_not_to_be_repeated() {
        for op in [Op::SetData, Op::Create2] {
            let server = TestServer::start().await.unwrap();
            let limit = limit_on(&server).await;
            let request = server.fault(When::op(op).path("/limit"), Fault::HoldReply);
            let error = failure_of_set(&limit).await;
            assert!(request.hits() == 1 && matches!(error, Error::Unknown { .. }), "{op:?}: {error}");
            assert!(!error.is_transient(), "{op:?}: {error}");
        }
    }
}
