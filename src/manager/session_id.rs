//! The numbers of a manager's sessions, as the servers have them.

use super::connection_manager::ConnectionManager;
use crate::session::Session;

impl ConnectionManager {
    /// The number of the session in use; `None` while there is none. Costs no request.
    ///
    /// The servers show the same number: as the owner of the manager's ephemeral nodes, in their logs, and in
    /// `cons`. A later session has another one. So a test can end the session of one manager of several, and
    /// an engineer can find a process by its node.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// let session = manager.session_id().ok_or("not connected")?;
    /// assert_eq!(server.sessions(), [session]);
    /// # manager.shutdown().await?;
    /// # assert_eq!(manager.session_id(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn session_id(&self) -> Option<i64> {
        let session = self.0.shared.publisher.session();
        session.filter(|session| session.loss().is_none()).as_ref().map(Session::id)
    }

    /// The number of the session that all views of this manager share; `None` while it has no view. Costs no
    /// request.
    ///
    /// Views have a session of their own, without nodes. The first view opens it, and the last one closes it.
    #[must_use]
    pub fn views_session_id(&self) -> Option<i64> {
        let views = self.0.shared.views.lock().upgrade();
        views.and_then(|handle| Self(handle).session_id())
    }
}
