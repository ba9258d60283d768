use lockkeeper_core::{
    ConfigError, ConnectionManager, Error, IntoPath, OnDeletion, Presence, Stat, ViewBounds, ZnodePath,
};
use tracing::warn;

use super::member::{self, Member, MembersView};
use super::membership::{MemberKind, Membership};
use crate::view::ChildrenView;

/// Why a persistent node is no member.
const UNOWNED: &str = "this node is persistent and belongs to no session, so it is no member";

/// The processes that belong together, each with an id and a payload: the counterpart of Curator's
/// `GroupMember`.
///
/// A clone is cheap. The path belongs to the group alone: each ephemeral node below it is a member. A
/// persistent node, as tools that copy or restore trees leave it, is none: a [view](Self::members) has an
/// error in place of its value, logs it, and [`inspect`](Self::inspect) shows it.
///
/// # Ordering
///
/// The server orders joins and leaves. All readers see the same members in the end; a
/// [view](Self::members) has each change at a revision.
///
/// # Layout
///
/// `<path>/<id>`, ephemeral, with the payload as data: that of Curator's `GroupMember`. A Java service with
/// the same path is a member of the same group, and each sees the other. The members of kazoo's `Party` and
/// `ShallowParty` are read as well; kazoo does not understand ours.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Group;
/// use lockkeeper::view::ViewChange;
///
/// let group = Group::new(&manager, "/groups/indexers")?;
/// let members = group.members()?;
/// let mut changes = members.changes();
///
/// let membership = group.join("indexer-3", "10.0.0.7:8080")?;
/// membership.registered().await?;
/// let snapshot = members.sync().await?;
/// assert_eq!(snapshot.get("indexer-3").map(|node| node.data()), Some(&b"10.0.0.7:8080"[..]));
/// assert_eq!(members.ids(), ["indexer-3"]);
///
/// 'joined: while let Some(difference) = changes.next().await {
///     for change in difference.changes() {
///         if let (ViewChange::Created { node, .. }, "indexer-3") = (change, change.path()) {
///             println!("joined at revision {}, {:?}", difference.snapshot().revision(), node.data());
///             break 'joined;
///         }
///     }
/// }
/// membership.leave().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
}

impl Group {
    /// Makes the group at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self { manager: manager.clone(), path: path.into_path()? })
    }

    /// The path of the group, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Begins to join with this id, in the background. The membership ends when it is dropped.
    ///
    /// Each member needs an id of its own, such as its address. Of two members with one id, the second is in
    /// the state [`Conflict`](lockkeeper_core::PresenceState::Conflict) until the first leaves. They are
    /// never merged, and do not overwrite each other. Curator's `GroupMember` does: it takes a node with its
    /// id for its own.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the id is empty, has a `/`, or is no valid name of a node, if a view would read
    /// it as the name of one of kazoo's nodes, if the payload is too large, or without a tokio runtime;
    /// [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// As [`Registration`](crate::Registration): the member is back within one round trip of the next
    /// session.
    pub fn join(&self, id: &str, payload: impl Into<Vec<u8>>) -> Result<Membership, Error> {
        self.join_with(id, payload, OnDeletion::Recreate)
    }

    /// As [`join`](Self::join), with a policy for the case that another client deletes the node of the
    /// member.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join).
    pub fn join_with(
        &self,
        id: &str,
        payload: impl Into<Vec<u8>>,
        policy: OnDeletion,
    ) -> Result<Membership, Error> {
        if id.is_empty() {
            let (name, value, advice) = ("id", String::new(), "give each member an id, such as its address");
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        if member::is_read_as_kazoo(id) {
            let (name, value) = ("id", id.to_owned());
            let advice =
                "a view reads a node of this name as one of kazoo's Party; give the member another id";
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        let path = self.path.child(id)?;
        Ok(Membership { presence: Presence::new(&self.manager, path, payload, policy)?, kind: MemberKind })
    }

    /// Begins to follow the members, in the background, without being one: a
    /// [`ChildrenView`](crate::ChildrenView) of the group. It needs only the right to read.
    ///
    /// A [`ViewChange`](lockkeeper_core::ViewChange) is `Created` for a member that joined, `Deleted` for one
    /// that left, and `Updated` for another payload. `Recreated` is a member that left and joined again
    /// between two revisions, as after the loss of its session.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] without a tokio runtime, [`Error::Closed`] after a shutdown.
    pub fn members(&self) -> Result<MembersView, Error> {
        self.members_within(ViewBounds::default())
    }

    /// As [`members`](Self::members), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`members`](Self::members).
    pub fn members_within(&self, bounds: ViewBounds) -> Result<MembersView, Error> {
        let group = self.manager.whole_path(&self.path);
        let decode = move |name: &str, data: &[u8], stat: &Stat| {
            let member = Member::decode(name, data)?;
            if stat.ephemeral_owner == 0 {
                let path = format!("{group}/{name}");
                warn!(%path, "a node that belongs to no session is no member");
                return Err(UNOWNED.into());
            }
            Ok(member)
        };
        ChildrenView::with_stat_decoder(&self.manager, &self.path, bounds, decode)
    }
}
