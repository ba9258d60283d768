//! What is done with a lock while something happens: one scenario for each way through each recipe.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::{
    ConnectionManager, Error, LossReason, Mutex, Owner, ReentrantMutex, ReleaseError, TxnError, TxnResult,
};
use lockkeeper_testserver::{Fault, Op, When};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::court::{Guard, Hold};
use crate::limit::within;
use crate::mishap::Mishap;
use crate::site::{Site, What};
use crate::world::{LOCK, World, builder, children, in_line};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// An acquire of a free lock whose directory has to be made first.
    AcquireMakingDirectory,
    AcquireFree,
    /// An acquire whose create lost its answer: its connection broke after the create was applied.
    AcquireRecovering,
    TryFree,
    TryTaken,
    /// A wait in line; the holder leaves once the waiter has settled down.
    Wait,
    /// A wait in line; the holder leaves at the very moment the mishap strikes.
    WaitOvertaken,
    /// A wait in line whose connection broke.
    WaitReconnecting,
    /// A wait that is not served in time.
    WaitTimesOut,
    Release,
    DropGuard,
    /// First hold, nested hold, nested release, last release.
    Reentrant,
    Commit,
    /// A hold that lasts.
    HoldOn,
    /// A hold whose connection broke.
    HoldReconnecting,
    /// A connection with nothing to do, and then an acquire.
    Idle,
    Connect,
    Shutdown,
}

/// Where a transaction writes.
const WRITTEN: &str = "/written";
const WRITTEN_NODES: &str = "/written/*";

/// The stage set for a scenario.
pub(crate) struct Stage {
    pub(crate) world: Arc<World>,
    pub(crate) mishap: Option<Mishap>,
    /// Whom things happen to; made by the scenario itself where that is what it does.
    pub(crate) actor: SyncMutex<Option<ConnectionManager>>,
    /// The actor's session; 0 before there is one.
    pub(crate) session: i64,
    mine: SyncMutex<Option<Hold>>,
    theirs: SyncMutex<Option<Hold>>,
    waiting: SyncMutex<Option<JoinHandle<Result<lockkeeper::OwnedMutexGuard, Error>>>>,
    /// The mishap has struck.
    pub(crate) struck: watch::Sender<bool>,
    /// Nothing is in the way of healing any more.
    pub(crate) healed: watch::Sender<bool>,
}

/// How a scenario ended.
pub(crate) struct Ending {
    /// In a few words, for the table.
    pub(crate) said: String,
    /// What is still held.
    pub(crate) hold: Option<Hold>,
}

impl Ending {
    fn new(said: impl Into<String>) -> Self {
        Self { said: said.into(), hold: None }
    }
}

impl Scenario {
    /// Whether somebody else is in line, so that nobody may be put in front of the actor's turn.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Wait | Self::WaitOvertaken | Self::WaitReconnecting)
    }

    /// How often it reconnects by itself.
    pub(crate) fn reconnects(self) -> u64 {
        u64::from(matches!(self, Self::AcquireRecovering | Self::WaitReconnecting | Self::HoldReconnecting))
    }

    /// What of a recording is part of the scenario, and comes again each time.
    pub(crate) fn sites(self, recorded: Vec<Site>) -> Vec<Site> {
        match self {
            // Requests that come by the clock: the first two.
            Self::Idle => vec![Site::request(Op::Ping, 1), Site::request(Op::Ping, 2)],
            Self::HoldOn => vec![Site::request(Op::Multi, 1), Site::request(Op::Multi, 2)],
            Self::Commit => vec![Site { path: Some(WRITTEN_NODES), ..Site::request(Op::Multi, 1) }],
            Self::HoldReconnecting => {
                recorded.into_iter().filter(|site| !site.is_ping() && site.nth <= 2).collect()
            }
            _ => recorded.into_iter().filter(|site| !site.is_ping() && !site.is(Op::Multi)).collect(),
        }
    }

    /// Sets the stage, up to the moment from which the mishap may strike.
    pub(crate) async fn set(self, mishap: Option<Mishap>) -> Result<Stage, String> {
        let world = Arc::new(World::start().await?);
        let rivals = Mutex::new(&world.rival, LOCK).map_err(say)?;
        if self != Self::AcquireMakingDirectory {
            let first = rivals.acquire_owned().await.map_err(say)?;
            let txn = first.txn().create(WRITTEN.parse().map_err(say)?, Vec::new());
            txn.commit().await.map_err(say)?;
            first.release().await.map_err(say)?;
        }
        let theirs = if self.waits() || matches!(self, Self::TryTaken | Self::WaitTimesOut) {
            let guard = rivals.acquire_owned().await.map_err(say)?;
            Some(world.court.enter("the rival", Guard::Plain(guard)))
        } else {
            None
        };
        let actor = match self {
            Self::Connect => None,
            Self::Idle => {
                let idle = builder(&world.server.connect_string()).keep_confirmed(Duration::ZERO).connect();
                Some(idle.await.map_err(say)?)
            }
            _ => Some(world.actor().await?),
        };
        let session = world.sessions_of_actor().first().copied().unwrap_or_default();
        let stage = Stage {
            world,
            mishap,
            actor: SyncMutex::new(actor),
            session,
            mine: SyncMutex::default(),
            theirs: SyncMutex::new(theirs),
            waiting: SyncMutex::default(),
            struck: watch::Sender::new(false),
            healed: watch::Sender::new(false),
        };
        self.set_actor(&stage).await?;
        Ok(stage)
    }

    async fn set_actor(self, stage: &Stage) -> Result<(), String> {
        let server = &stage.world.server;
        match self {
            Self::Release
            | Self::DropGuard
            | Self::Commit
            | Self::HoldOn
            | Self::HoldReconnecting
            | Self::Shutdown => {
                let guard = stage.mutex()?.acquire_owned().await.map_err(say)?;
                *stage.mine.lock() = Some(stage.world.court.enter("the actor", Guard::Plain(guard)));
            }
            Self::AcquireRecovering => {
                let lost = server.fault(When::create().path("/locks/lock/*"), Fault::DropConnectionAfter);
                server.refuse_connections();
                stage.begin_to_wait()?;
                within("the create", lost.hit()).await?;
            }
            Self::WaitReconnecting => {
                stage.begin_to_wait()?;
                // The one in front, and itself.
                let watches = server.wait_until(|machine| machine.watch_count(0) == 2);
                within("both watches", watches).await?;
                // Answers come in order: with this one, those of the watches have come.
                let actor = stage.actor.lock().clone().ok_or("no actor")?;
                actor.znodes().read(&LOCK.parse().map_err(say)?).await.map_err(say)?;
            }
            _ => {}
        }
        if matches!(self, Self::HoldReconnecting | Self::WaitReconnecting) {
            server.refuse_connections();
            server.drop_connections();
        }
        Ok(())
    }

    /// Does what the scenario is about. An error is a broken promise.
    pub(crate) async fn act(self, stage: &Stage) -> Result<Ending, String> {
        match self {
            Self::AcquireMakingDirectory | Self::AcquireFree => {
                stage.acquired(stage.mutex()?.acquire_owned().await)
            }
            Self::AcquireRecovering | Self::WaitReconnecting => {
                stage.world.server.accept_connections();
                if self == Self::WaitReconnecting {
                    stage.actor_watches_or_failed().await?;
                    stage.they_release().await?;
                }
                let waiting = stage.waiting.lock().take().ok_or("nobody waits")?;
                stage.acquired(waiting.await.map_err(say)?)
            }
            Self::TryFree => stage.tried(stage.mutex()?.try_acquire_owned().await),
            Self::TryTaken => {
                let tried = stage.tried(stage.mutex()?.try_acquire_owned().await)?;
                stage.they_release().await?;
                Ok(tried)
            }
            Self::Wait | Self::WaitOvertaken => {
                stage.begin_to_wait()?;
                let mut struck = stage.struck.subscribe();
                let struck = async {
                    if self == Self::Wait {
                        return std::future::pending().await;
                    }
                    let _ = struck.wait_for(|struck| *struck).await;
                };
                tokio::select! {
                    watches = stage.actor_watches_or_failed() => watches?,
                    () = struck => {}
                }
                stage.they_release().await?;
                let waiting = stage.waiting.lock().take().ok_or("nobody waits")?;
                stage.acquired(waiting.await.map_err(say)?)
            }
            Self::WaitTimesOut => {
                let waited = stage.mutex()?.acquire_owned_timeout(Duration::from_millis(150)).await;
                let ending = match waited {
                    Err(error) if error.is_timeout() => Ending::new("timeout"),
                    other => stage.acquired(other)?,
                };
                stage.they_release().await?;
                Ok(ending)
            }
            Self::Release => {
                let hold = stage.mine.lock().take().ok_or("nothing is held")?;
                stage.release(&hold).await.map(Ending::new)
            }
            Self::DropGuard => {
                drop(stage.mine.lock().take().and_then(|hold| hold.take()));
                within("the node gone", stage.world.server.wait_until(|machine| in_line(machine).is_empty()))
                    .await?;
                Ok(Ending::new("gone"))
            }
            Self::Reentrant => stage.reentrant().await,
            Self::Commit => stage.commit().await,
            Self::HoldOn | Self::HoldReconnecting => {
                stage.world.server.accept_connections();
                let hold = stage.mine.lock().take().ok_or("nothing is held")?;
                stage.hold_on(hold).await
            }
            Self::Idle => {
                stage.everything_healed().await?;
                stage.acquired(stage.mutex()?.acquire_owned().await)
            }
            Self::Connect => {
                let actor = stage.world.actor().await?;
                *stage.actor.lock() = Some(actor);
                stage.acquired(stage.mutex()?.acquire_owned().await)
            }
            Self::Shutdown => {
                let actor = stage.actor.lock().clone().ok_or("no actor")?;
                match actor.shutdown().await {
                    Ok(()) if stage.world.server.sessions().contains(&stage.session) => {
                        Err("shut down, and the session lives".to_owned())
                    }
                    Ok(()) => Ok(Ending::new("closed")),
                    Err(error) if error.is_timeout() && !stage.is_mild() => Ok(Ending::new("timeout")),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }
}

impl Stage {
    pub(crate) fn mutex(&self) -> Result<Mutex, String> {
        let actor = self.actor.lock().clone().ok_or("no actor")?;
        Mutex::new(&actor, LOCK).map_err(say)
    }

    fn begin_to_wait(&self) -> Result<(), String> {
        let mutex = self.mutex()?;
        *self.waiting.lock() = Some(tokio::spawn(async move { mutex.acquire_owned().await }));
        Ok(())
    }

    /// Waits until the actor watches whom it waits for. Nobody else sets watches.
    async fn actor_watches(&self) -> Result<(), String> {
        let watches = self.world.server.wait_until(|machine| machine.watch_count(0) >= 1);
        within("the waiter's watch", watches).await
    }

    /// The same, after everything healed; or until the wait ended with a refusal.
    async fn actor_watches_or_failed(&self) -> Result<(), String> {
        let refused = async {
            if !self.mishap.is_some_and(Mishap::refuses) {
                return std::future::pending().await;
            }
            while !self.waiting.lock().as_ref().is_some_and(JoinHandle::is_finished) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = refused => return Ok(()),
            watches = self.actor_watches() => watches?,
        }
        if *self.struck.borrow() {
            self.everything_healed().await?;
            // Healing may have cost the watch; a waiter that is well has one again, unless it was refused.
            if !self.mishap.is_some_and(Mishap::refuses) {
                self.actor_watches().await?;
            }
        }
        Ok(())
    }

    async fn everything_healed(&self) -> Result<(), String> {
        let mut healed = self.healed.subscribe();
        let healing = healed.wait_for(|healed| *healed);
        within("the mishap", healing).await?.map(|_| ()).map_err(say)
    }

    async fn they_release(&self) -> Result<(), String> {
        let Some(hold) = self.theirs.lock().take() else { return Ok(()) };
        // Its connection may have been cut together with the other's: the manager sees to the rest.
        match hold.release().await {
            None | Some(Ok(()) | Err(ReleaseError::Unconfirmed { .. })) => Ok(()),
            Some(Err(error)) => Err(format!("the rival, whom nothing happened to: {error}")),
        }
    }

    fn is_mild(&self) -> bool {
        self.mishap.is_none_or(Mishap::is_mild)
    }

    /// Whether a try of the actor came first for certain: the one behind comes with the strike.
    fn is_first(&self) -> bool {
        let is_applied_at_once =
            self.mishap.is_none_or(|mishap| matches!(mishap, Mishap::HoldReply | Mishap::DelayReply));
        is_applied_at_once && self.world.server.sessions().contains(&self.session)
    }

    /// An acquire without a deadline ends with the lock, or with a refusal if there was one.
    fn acquired(&self, result: Result<lockkeeper::OwnedMutexGuard, Error>) -> Result<Ending, String> {
        match result {
            Ok(guard) => Ok(self.granted(Guard::Plain(guard))),
            Err(error @ Error::Refused { .. }) if self.mishap.is_some_and(Mishap::refuses) => {
                Ok(Ending::new(said(&error)))
            }
            Err(error) => Err(format!("an acquire failed: {error} ({error:?})")),
        }
    }

    fn granted(&self, guard: Guard) -> Ending {
        let hold = self.world.court.enter("the actor", guard);
        Ending { said: "granted".to_owned(), hold: Some(hold) }
    }

    fn tried(&self, result: Result<Option<lockkeeper::OwnedMutexGuard>, Error>) -> Result<Ending, String> {
        match result {
            Ok(None) if self.theirs.lock().is_some() || !self.is_first() => Ok(Ending::new("not free")),
            Ok(None) => Err("a free lock was not free".to_owned()),
            Ok(Some(guard)) => self.acquired(Ok(guard)),
            Err(error) if error.is_timeout() && !self.is_mild() => Ok(Ending::new("timeout")),
            Err(error) => self.acquired(Err(error)),
        }
    }

    /// A release ends as it should: what reads as released is gone, and what was lost says so.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<String, String> {
        let path = hold.path().unwrap_or_default();
        let stands = || self.world.server.inspect(|machine| machine.tree().node(&path).is_some());
        match hold.release().await.ok_or("nothing to release")? {
            Ok(()) if stands() => Err(format!("released, and {path} stands")),
            Ok(()) => Ok("released".to_owned()),
            Err(ReleaseError::Lost(lost)) if lost.reason == LossReason::NodeDeleted && self.is_mild() => {
                Err(lost.to_string())
            }
            Err(ReleaseError::Lost(lost)) => Ok(format!("lost: {:?}", lost.reason)),
            Err(ReleaseError::Unconfirmed { .. }) if !self.is_mild() => Ok("unconfirmed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn reentrant(&self) -> Result<Ending, String> {
        let actor = self.actor.lock().clone().ok_or("no actor")?;
        let mutex = ReentrantMutex::new(&actor, LOCK).map_err(say)?;
        let owner = Owner::new("one");
        let outer = match mutex.acquire_owned(&owner).await {
            Ok(outer) => outer,
            Err(error) => return self.acquired(Err(error)),
        };
        let token = outer.fencing_token();
        let nested = mutex.acquire_owned(&owner).await;
        let outer = self.world.court.enter("the actor", Guard::Reentrant(outer));
        match nested {
            Ok(nested) => {
                if (nested.fencing_token(), mutex.hold_count(&owner)) != (token, 2) {
                    return Err("a nested hold is not the first one's".to_owned());
                }
                // Lost or not, it goes nowhere over the network.
                let _ = nested.release().await;
            }
            Err(error) if error.is_lost() => {}
            Err(error) => return Err(format!("a nested acquire: {error}")),
        }
        let said = self.release(&outer).await?;
        match mutex.hold_count(&owner) {
            0 => Ok(Ending::new(said)),
            count => Err(format!("{count} holds after the last release")),
        }
    }

    fn written(&self) -> usize {
        self.world.server.inspect(|machine| children(machine, WRITTEN).len())
    }

    /// What was said of a commit is so, also at the end of the case.
    async fn commit(&self) -> Result<Ending, String> {
        let hold = self.mine.lock().take().ok_or("nothing is held")?;
        let node = format!("{WRITTEN}/n-").parse().map_err(say)?;
        let guard = hold.guard().ok_or("nothing is held")?;
        let committed = guard.txn().create_sequential(node, Vec::new()).commit().await;
        let (least, most, said) = match &committed {
            Ok(results) if matches!(results[..], [TxnResult::Created(_)]) => (1, 1, "committed"),
            Ok(results) => return Err(format!("{results:?}")),
            Err(TxnError::Lost(_)) => (0, 0, "lost"),
            Err(TxnError::Refused { .. }) => (0, 0, "refused"),
            Err(error) if error.outcome_unknown() => (0, 1, "unknown"),
            Err(_) => (0, 0, "failed"),
        };
        if self.is_mild() && committed.is_err() && guard.is_valid() {
            return Err(format!("{committed:?}"));
        }
        // What was held back would have been let go by now.
        if self.mishap.is_some() {
            self.everything_healed().await?;
        }
        let written = self.written();
        if !(least..=most).contains(&written) {
            return Err(format!("{committed:?}, and {written} nodes were written"));
        }
        Ok(Ending { said: said.to_owned(), hold: Some(hold) })
    }

    /// No transaction was done twice, however late.
    pub(crate) fn verdict_of_commit(&self) -> Result<(), String> {
        match self.written() {
            0 | 1 => Ok(()),
            written => Err(format!("one transaction wrote {written} nodes")),
        }
    }

    /// Holds until everything healed and the hold is lost, or its session is confirmed anew if that lives on.
    async fn hold_on(&self, hold: Hold) -> Result<Ending, String> {
        self.everything_healed().await?;
        let begun = hold.valid_until();
        let must_be_lost = self.mishap.is_some_and(Mishap::ends_session);
        let settled = async {
            while hold.is_valid() && (must_be_lost || hold.valid_until() <= begun) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("a hold that is either lost or confirmed", settled).await?;
        let said = if hold.is_valid() { "still held" } else { "lost" };
        if self.mishap.is_none() && said == "lost" {
            return Err("a hold was lost though nothing happened".to_owned());
        }
        Ok(Ending { said: said.to_owned(), hold: Some(hold) })
    }
}

impl Site {
    fn is(self, op: Op) -> bool {
        self.what == What::Request(op)
    }

    fn is_ping(self) -> bool {
        self.is(Op::Ping)
    }
}

fn said(error: &Error) -> String {
    match error {
        Error::Refused { refusal, .. } => format!("refused: {refusal:?}"),
        other => other.to_string(),
    }
}

pub(crate) fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}
