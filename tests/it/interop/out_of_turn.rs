//! Curator's own class makes a lease out of turn. Its session ends while the create of the lease is in
//! flight, so its node in the queue is deleted. Its retry policy then sends the create again, in the next
//! session.

use std::fmt::Debug;
use std::time::Duration;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Error, MultiLockGuard, Mutex, Semaphore};
use lockkeeper_tests::{
    CuratorPeer, CuratorThread, Ensemble, Fate, HarnessError, Hold, Match, Message, OpCode, Proxies,
    RawClient, Record, Timing, eventually, left_out,
};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::fixture::{Failure, Outcome, SESSION};
use crate::support::{builder, nodes_become};

/// The session of our manager outlives a held exchange, however slow the machine is.
const OUR_SESSION: Duration = Duration::from_secs(60);

/// The one permit, as a class of Curator and a type of ours know it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// `InterProcessSemaphoreV2` and `Semaphore`.
    Semaphore,
    /// `InterProcessSemaphoreMutex` and `Mutex::in_semaphore_layout`.
    Mutex,
}

impl Kind {
    fn lock(self, manager: &ConnectionManager, path: &str) -> Result<Box<dyn ZooKeeperLock>, Failure> {
        Ok(match self {
            Self::Semaphore => Box::new(Semaphore::new(manager, path, 1)?.permits(1)),
            Self::Mutex => Box::new(Mutex::in_semaphore_layout(manager, path)?),
        })
    }

    async fn take(self, thread: &CuratorThread, path: &str) -> Outcome {
        let is_taken = match self {
            Self::Semaphore => thread.permits(path, "1", 1, None).await?.is_some(),
            Self::Mutex => thread.enter(path, None).await?,
        };
        assert!(is_taken, "Curator gives up, although it waits without a limit of time");
        Ok(())
    }

    async fn give_back(self, thread: &CuratorThread, path: &str) -> Outcome {
        match self {
            Self::Semaphore => thread.return_permits(path, 1).await?,
            Self::Mutex => thread.leave(path).await?,
        }
        Ok(())
    }
}

/// The client that used the path before. Ours writes the directory of the leases, and then the sequence
/// number of its lease shows whether another lease was made behind its list.
#[derive(Clone, Copy, Debug)]
enum UsedBy {
    Curator,
    Ours,
}

/// The lease that is made first.
#[derive(Clone, Copy, Debug)]
enum First {
    Curators,
    Ours,
    /// Both creates are sent at the same time.
    Any,
}

/// The holder of the permit.
enum Holder {
    Curator,
    Ours(MultiLockGuard),
}

/// Both clients while the creates of their leases are held on the way.
struct CreatesInFlight {
    path: String,
    thread: CuratorThread,
    curator: JoinHandle<Outcome>,
    ours: JoinHandle<Result<MultiLockGuard, Error>>,
    /// Curator's create, in its next session.
    again: Hold,
    exchange: Hold,
    /// Curator's next session.
    session: i64,
    before: Tree,
}

/// The nodes of the semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tree {
    /// The number of creates and deletes of leases so far.
    changes: i32,
    leases: i32,
    /// The length of the queue.
    queued: i32,
}

impl Tree {
    async fn read(client: &mut RawClient, path: &str) -> Option<Self> {
        let leases = client.exists(&format!("{path}/leases")).await.ok()??;
        let locks = client.exists(&format!("{path}/locks")).await.ok()??;
        let (changes, leases, queued) = (leases.cversion, leases.num_children, locks.num_children);
        Some(Self { changes, leases, queued })
    }
}

/// Both clients behind proxies of their own.
struct OutOfTurnFixture {
    ensemble: Ensemble,
    curators: Proxies,
    ours: Proxies,
    java: CuratorPeer,
    manager: ConnectionManager,
}

impl OutOfTurnFixture {
    async fn start() -> Result<Self, Failure> {
        // The directory of the leases is empty for a while, and must not be reaped.
        let ensemble =
            Ensemble::builder().property("znode.container.checkIntervalMs", "3600000").start().await?;
        let (curators, ours) = (Proxies::start(&ensemble).await?, Proxies::start(&ensemble).await?);
        let java = CuratorPeer::start(&curators.connect_string(), SESSION).await?;
        let manager = builder(&ours.connect_string()).session_timeout(OUR_SESSION).connect().await?;
        Ok(Self { ensemble, curators, ours, java, manager })
    }

    /// Waits until the tree is as `expected`, and the client behind `proxies` has listed the leases behind
    /// its last create.
    async fn waits(&self, path: &str, expected: Tree, proxies: &Proxies) -> Result<(), HarnessError> {
        let leases = format!("{path}/leases");
        let oracle = AsyncMutex::new(self.ensemble.raw().await?);
        eventually(
            format!("{expected:?} at {path}, and a list of the leases"),
            Timing::settle(),
            async || {
                let tree = Tree::read(&mut *oracle.lock().await, path).await?;
                let log = proxies.log();
                let create = log.requests().filter(|request| request.op == OpCode::Create2).last()?;
                let is_list = |record: &Record| {
                    record.message == Message::Reply
                        && record.op == OpCode::GetChildren2
                        && record.path.as_ref() == Some(&leases)
                };
                let has_listed = log.iter().any(|record| record.at > create.at && is_list(record));
                (tree == expected && has_listed).then_some(())
            },
        )
        .await
    }

    /// Holds both creates on the way: ours was decided after the end of Curator's session, and Curator's is
    /// the one that its retry policy sends in the next session.
    async fn hold_creates(
        &self,
        kind: Kind,
        used_by: UsedBy,
        path: String,
    ) -> Result<CreatesInFlight, Failure> {
        let (locks, leases) = (format!("{path}/locks"), format!("{path}/leases"));
        let thread = self.java.thread(&path);
        let lock = kind.lock(&self.manager, &path)?;
        match used_by {
            UsedBy::Curator => {
                kind.take(&thread, &path).await?;
                kind.give_back(&thread, &path).await?;
            }
            UsedBy::Ours => lock.acquire().await?.release().await?,
        }
        self.nothing_is_left(&path).await;
        let before = Tree::read(&mut self.ensemble.raw().await?, &path).await.ok_or("no directory")?;

        // Curator is the head of the queue, and its lease is on the way. Ours waits behind it.
        let lease = Match::new().op(OpCode::Create2).path_contains(format!("{leases}/"));
        let lost = self.curators.on(lease.clone()).hold_request();
        let curator = tokio::spawn({
            let (thread, path) = (thread.clone(), path.clone());
            async move { kind.take(&thread, &path).await }
        });
        let ended = lost.triggered().await?.session;
        let exchange = Match::new().op(OpCode::Multi).path_contains(format!("{leases}/"));
        let exchange = self.ours.on(exchange).hold_request();
        let ours = tokio::spawn(async move { lock.acquire().await });
        nodes_become(&self.ensemble, &locks, 2).await;

        // No connection is accepted until Curator's session is over. Ours becomes the head, and exchanges.
        let again = self.curators.on(lease).hold_request();
        self.curators.refuse().await?;
        self.curators.expire_session(ended).await?;
        assert_eq!(lost.triggered().await?.fate, Fate::Dropped, "the server never sees the first create");
        exchange.triggered().await?;
        self.curators.accept().await?;
        let session = again.triggered().await?.session;
        assert_ne!(session, ended, "Curator sends the create again in its next session");
        nodes_become(&self.ensemble, &locks, 1).await;
        nodes_become(&self.ensemble, &leases, 0).await;
        Ok(CreatesInFlight { path, thread, curator, ours, again, exchange, session, before })
    }

    async fn one_holds_the_permit(&self, kind: Kind, used_by: UsedBy, first: First) -> Outcome {
        let path = format!("/interop/out-of-turn/{kind:?}-{used_by:?}-{first:?}").to_lowercase();
        let CreatesInFlight { path, thread, mut curator, mut ours, again, exchange, session, before } =
            self.hold_creates(kind, used_by, path).await?;
        let holder = match first {
            First::Curators => {
                again.release();
                (&mut curator).await??;
                exchange.release();
                Holder::Curator
            }
            First::Ours => {
                exchange.release();
                let guard = (&mut ours).await??;
                again.release();
                Holder::Ours(guard)
            }
            First::Any => {
                again.release();
                exchange.release();
                tokio::select! {
                    granted = &mut curator => granted?.map(|()| Holder::Curator)?,
                    granted = &mut ours => Holder::Ours(granted??),
                }
            }
        };
        match holder {
            Holder::Curator => {
                // Both made a lease. Ours deleted its own, and waits at the head of the queue.
                let tree = Tree { changes: before.changes + 3, leases: 1, queued: 1 };
                let ours_waits = self.waits(&path, tree, &self.ours);
                waits_beside_the_holder(&mut ours, ours_waits).await?;
                let dump = self.ensemble.dump().await?;
                let of_curator = dump.ephemerals.get(&session).ok_or("Curator has no lease")?;
                let lease = format!("{path}/leases/");
                assert!(of_curator.iter().any(|node| node.starts_with(&lease)), "{of_curator:?}");
                kind.give_back(&thread, &path).await?;
                let guard = ours.await??;
                assert!(guard.is_valid());
                guard.release().await?;
            }
            Holder::Ours(guard) => {
                // Both made a lease, and Curator waits with its own.
                let tree = Tree { changes: before.changes + 2, leases: 2, queued: 0 };
                let curator_waits = self.waits(&path, tree, &self.curators);
                waits_beside_the_holder(&mut curator, curator_waits).await?;
                assert!(guard.is_valid());
                guard.release().await?;
                curator.await??;
                kind.give_back(&thread, &path).await?;
            }
        }
        self.nothing_is_left(&path).await;
        Ok(())
    }

    async fn nothing_is_left(&self, path: &str) {
        for directory in ["leases", "locks"] {
            nodes_become(&self.ensemble, &format!("{path}/{directory}"), 0).await;
        }
    }
}

/// Waits until `waits` shows that the waiter waits. The waiter must not be granted the permit meanwhile.
async fn waits_beside_the_holder<T: Debug>(
    waiter: &mut JoinHandle<T>,
    waits: impl Future<Output = Result<(), HarnessError>>,
) -> Outcome {
    tokio::select! {
        biased;
        granted = &mut *waiter => panic!("two hold the one permit: {granted:?}"),
        waits = waits => waits?,
    }
    assert!(!waiter.is_finished(), "two hold the one permit");
    Ok(())
}

async fn one_holds_the_permit(kind: Kind) -> Outcome {
    if left_out() {
        return Ok(());
    }
    let fixture = OutOfTurnFixture::start().await?;
    for used_by in [UsedBy::Curator, UsedBy::Ours] {
        for first in [First::Curators, First::Ours, First::Any] {
            println!("{kind:?}, used by {used_by:?}, first {first:?}");
            fixture.one_holds_the_permit(kind, used_by, first).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn one_permit_has_one_holder_when_curators_class_makes_its_lease_out_of_turn() -> Outcome {
    one_holds_the_permit(Kind::Semaphore).await
}

#[tokio::test]
async fn a_semaphore_mutex_has_one_holder_when_curators_class_makes_its_lease_out_of_turn() -> Outcome {
    one_holds_the_permit(Kind::Mutex).await
}
