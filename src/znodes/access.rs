use super::handle::{Znodes, read_in_sync};
use crate::config::acl::Acl;
use crate::error::{Error, Operation};
use crate::session::Session;
use crate::wire::existing;
use crate::znode::path::IntoPath;
use crate::znode::version::Version;

impl Znodes {
    /// A node's access list and its version, which counts the writes of the list; `None` if the node does not
    /// exist.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn acl(&self, path: impl IntoPath) -> Result<Option<(Acl, i32)>, Error> {
        let full = &self.manager.full_path(&path.into_path()?)?;
        let acl = |session: Session, deadline| async move {
            let acl = || session.read(|wire| wire.acl(full.as_str()));
            existing(read_in_sync(&session, acl, deadline).await)
        };
        self.until_read(Operation::Read, full, acl).await
    }

    /// Sets a node's access list, if the list has this version. Returns its new version.
    ///
    /// The list of a parent says who may delete the node. No list is inherited.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::BadVersion`](crate::Refusal::BadVersion),
    /// [`Refusal::NoNode`](crate::Refusal::NoNode), [`Refusal::InvalidAcl`](crate::Refusal::InvalidAcl), or
    /// [`Refusal::NoAuth`](crate::Refusal::NoAuth) without [`ADMIN`](crate::Permissions::ADMIN); otherwise as
    /// [`read`](Self::read). After [`Error::Unknown`] the list may be set: read it before you retry.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::{Acl, Permissions};
    ///
    /// let znodes = manager.znodes();
    /// znodes.ensure("/prices").await?;
    /// let (open, version) = znodes.acl("/prices").await?.expect("it exists");
    /// assert_eq!(open, Acl::open());
    /// let frozen = Acl::new(Permissions::READ, "world", "anyone");
    /// assert_eq!(znodes.set_acl("/prices", &frozen, version).await?, version + 1);
    /// assert!(znodes.write("/prices", "1", 0).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_acl(
        &self,
        path: impl IntoPath,
        acl: &Acl,
        version: impl Into<Version>,
    ) -> Result<i32, Error> {
        let (session, full, deadline) = self.begin(path).await?;
        let version = version.into().on_wire();
        let mut reply = session.write(|wire| wire.set_acl(full.as_str(), acl, version));
        let answer = session.await_reply(&mut reply, deadline).await;
        answer.map_err(|error| Error::of_wire(Operation::Write, full.as_str(), &error, deadline))
    }
}
