use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::Arc;

use lockkeeper_core::Snapshot;
use lockkeeper_core::TreeScope;
use lockkeeper_core::ViewBounds;
use lockkeeper_core::ViewChanges;
use lockkeeper_core::ViewPoint;
use lockkeeper_core::ViewState;
use lockkeeper_core::{ConnectionManager, DecodeFailure, Error, IntoPath, Stat, ViewScope, ZnodePath};

/// A copy of nodes that follows the server: see [`NodeView`](super::NodeView),
/// [`ChildrenView`](super::ChildrenView) and [`TreeView`](super::TreeView).
///
/// A clone is a handle to the same copy, which ends with the last handle. Each handle keeps the manager
/// alive. The views of one manager share one session, which is not that of its locks: a view changes
/// nothing for a lock on the same path, and a lock nothing for a view.
///
/// # Ordering
///
/// * Every committed state that lasts is seen. A state that is replaced at once may be left out.
/// * The [states of one node](lockkeeper_core::ViewNode) come in the order of their zxids. Different
///   nodes have no common moment.
/// * No change between two snapshots is missed, also not a node that was deleted and created again. None
///   is reported twice.
///
/// # Session loss
///
/// While there is no connection the view shows its last complete snapshot, in the state
/// [`Stale`](ViewState::Stale). After each reconnect, and in each new session, it compares every node
/// with the server, and becomes [`Live`](ViewState::Live) again. What it missed is in the next snapshot
/// and in the [differences](Self::changes).
pub struct View<S, T = ()> {
    view: lockkeeper_core::View<T>,
    scope: PhantomData<fn() -> S>,
}

impl<S, T> Clone for View<S, T> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone(), scope: PhantomData }
    }
}

impl<S, T: Send + Sync + 'static> View<S, T> {
    pub(super) fn begin<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        scope: ViewScope,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let decode = move |path: &str, data: &[u8], _: &Stat| decode(path, data).map_err(Into::into);
        Self::begin_with_stat(manager, path, scope, bounds, decode)
    }

    pub(super) fn begin_with_stat(
        manager: &ConnectionManager,
        path: impl IntoPath,
        scope: ViewScope,
        bounds: ViewBounds,
        decode: impl Fn(&str, &[u8], &Stat) -> Result<T, DecodeFailure> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let view = lockkeeper_core::View::new(manager, path, scope, bounds, decode)?;
        Ok(Self { view, scope: PhantomData })
    }

    pub(super) fn begin_tree<E: Into<DecodeFailure>>(
        manager: &ConnectionManager,
        path: impl IntoPath,
        tree: &TreeScope,
        decode: impl Fn(&str, &[u8]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let decode = move |path: &str, data: &[u8], _: &Stat| decode(path, data).map_err(Into::into);
        let view = lockkeeper_core::View::new_tree(manager, path, tree, decode)?;
        Ok(Self { view, scope: PhantomData })
    }
}

impl<S, T> View<S, T> {
    /// The path of the root of the view, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.view.path()
    }

    /// The latest snapshot. Takes no lock, and sends nothing.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot<T>> {
        self.view.snapshot()
    }

    /// The state of the latest snapshot: whether it is complete, and followed.
    #[must_use]
    pub fn state(&self) -> ViewState {
        self.snapshot().state()
    }

    /// The differences from the latest snapshot on, as a stream. The stream has that snapshot, so no change
    /// can be between the two. A slow reader gets the differences merged, never with a gap.
    ///
    /// The stream does not keep the view alive: it ends with the last handle.
    #[must_use]
    pub fn changes(&self) -> ViewChanges<T> {
        self.view.changes()
    }

    /// Waits until the view is complete and followed, without a limit of time, and returns a snapshot
    /// that was complete. Returns at once if it is so now. A root that does not exist is complete.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] after a shutdown, [`Error::Refused`] without the right to read the root, and
    /// [`ViewError::TooLarge`](lockkeeper_core::ViewError::TooLarge) by [`Error::recipe`] if a bound is
    /// exceeded. After the last two the view continues to try: call again.
    ///
    /// # Session loss
    ///
    /// The wait continues in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn ready(&self) -> Result<Arc<Snapshot<T>>, Error> {
        self.view.ready().await
    }

    /// Waits until everything that was committed before this call is in the view, whichever client wrote
    /// it, and returns a snapshot that has it.
    ///
    /// # Cost
    ///
    /// One transaction of a check, which the servers propose as any other write, and one small read, for
    /// all callers that wait at the same time.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after the manager's operation timeout. Otherwise as [`ready`](Self::ready).
    ///
    /// # Session loss
    ///
    /// The call asks again over the next connection, within its time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the view does the same without the caller.
    pub async fn sync(&self) -> Result<Arc<Snapshot<T>>, Error> {
        self.view.sync().await
    }

    /// Waits until the view has everything up to a transaction that this process knows to be committed, and
    /// returns a snapshot that has it. `point` is a zxid, such as that of a
    /// [`Stat`], or the [fencing token](lockkeeper_core::FencingToken) of a hold:
    /// then the view has everything that was committed before the lock was granted.
    ///
    /// It sends nothing if a [`NodeView`](super::NodeView) shows this zxid or a later one already. Otherwise
    /// it is as [`sync`](Self::sync), also for errors and cancel safety. No view can know whether a zxid
    /// belongs to another ensemble.
    ///
    /// # Errors
    ///
    /// As [`sync`](Self::sync).
    ///
    /// # Cancel safety
    ///
    /// As [`sync`](Self::sync).
    pub async fn await_until(&self, point: impl Into<ViewPoint>) -> Result<Arc<Snapshot<T>>, Error> {
        self.view.await_until(point).await
    }
}

impl<S, T> Debug for View<S, T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.view.fmt(formatter)
    }
}

/// For views that decode nothing.
pub(super) fn undecoded(_path: &str, _data: &[u8]) -> Result<(), DecodeFailure> {
    Ok(())
}
