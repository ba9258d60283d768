//! The fixture of a scenario, and the steps that scenarios share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::LossReason;
use lockkeeper::manager::{State, Transitions};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, ReleaseError};
use lockkeeper_test_recipes::{AnyAdapter, Granted, Target};
use lockkeeper_tests::bounded;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::injected_fault::InjectedFault;
use crate::limit::within;
use crate::oracle::Hold;
use crate::scenario::Ending;
use crate::server_fixture::{SESSION, ServerFixture, builder, children, queue_nodes, target};

/// Where scenarios write.
pub(crate) const WRITTEN: &str = "/written";

pub(crate) struct Fixture {
    pub(crate) server_fixture: Arc<ServerFixture>,
    pub(crate) adapter: AnyAdapter,
    pub(crate) injected_fault: Option<InjectedFault>,
    /// The client that faults are injected at. A scenario about connecting makes it itself.
    actor: Mutex<Option<ConnectionManager>>,
    /// The actor's session; 0 before there is one.
    session: AtomicI64,
    /// How often the scenario itself breaks the actor's link, and what is heard of the link.
    reconnects: u64,
    link: Mutex<LinkLog>,
    mine: Mutex<Option<Hold>>,
    theirs: Mutex<Option<Hold>>,
    waiting: Mutex<Option<JoinHandle<Result<Granted, Error>>>>,
    /// Another contender of the rival's, which waits behind its hold.
    next: Mutex<Option<JoinHandle<Result<Granted, Error>>>>,
    /// The operation has ended, though the scenario may check more.
    pub(crate) ended: watch::Sender<bool>,
    /// The fault was injected.
    pub(crate) injected: watch::Sender<bool>,
    /// The fault is over.
    pub(crate) healed: watch::Sender<bool>,
}

/// How often the actor was without a connection.
#[derive(Default)]
struct LinkLog {
    transitions: Option<Transitions>,
    breaks: u64,
}

/// The preparation.
impl Fixture {
    /// With the rival alone.
    pub(crate) async fn new(
        adapter: AnyAdapter,
        injected_fault: Option<InjectedFault>,
        reconnects: u64,
    ) -> Result<Self, String> {
        let server_fixture = Arc::new(ServerFixture::start().await?);
        adapter.prepare(target(&server_fixture.rival)).await.map_err(say)?;
        Ok(Self {
            server_fixture,
            adapter,
            injected_fault,
            actor: Mutex::default(),
            session: AtomicI64::new(0),
            reconnects,
            link: Mutex::default(),
            mine: Mutex::default(),
            theirs: Mutex::default(),
            waiting: Mutex::default(),
            next: Mutex::default(),
            ended: watch::Sender::new(false),
            injected: watch::Sender::new(false),
            healed: watch::Sender::new(false),
        })
    }

    /// The rival takes the lock once, so that its directory is there.
    pub(crate) async fn make_directory(&self) -> Result<(), String> {
        let first = self.adapter.exclude(target(&self.server_fixture.rival)).await.map_err(say)?;
        first.release().await.map_err(say)?;
        self.server_fixture.rival.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.map_err(say)?;
        Ok(())
    }

    pub(crate) async fn rival_holds(&self) -> Result<(), String> {
        let guard = self.adapter.exclude(target(&self.server_fixture.rival)).await.map_err(say)?;
        *self.theirs.lock() = Some(self.server_fixture.oracle.enter("the rival", guard));
        Ok(())
    }

    /// Another contender of the rival's waits behind its hold.
    pub(crate) async fn another_waits(&self) -> Result<(), String> {
        let before = self.server_fixture.server.inspect(queue_nodes).len();
        *self.next.lock() = Some(tokio::spawn(self.adapter.exclude(target(&self.server_fixture.rival))));
        self.server_fixture.queue_length_becomes(before + 1).await
    }

    pub(crate) async fn actor_connects(&self) -> Result<(), String> {
        let actor = builder(&self.server_fixture.server.connect_string()).connect().await.map_err(say)?;
        self.set_actor(actor);
        Ok(())
    }

    pub(crate) fn set_actor(&self, actor: ConnectionManager) {
        // The newest: a connect that took too long leaves a session behind that no client uses.
        let session = self.server_fixture.sessions_of_actor().last().copied().unwrap_or_default();
        self.session.store(session, Ordering::Relaxed);
        self.link.lock().transitions = Some(actor.transitions());
        *self.actor.lock() = Some(actor);
    }

    pub(crate) async fn actor_holds(&self) -> Result<(), String> {
        let guard = self.adapter.acquire(self.target()?).await.map_err(say)?;
        *self.mine.lock() = Some(self.server_fixture.oracle.enter("the actor", guard));
        Ok(())
    }

    pub(crate) fn begin_to_wait(&self) -> Result<(), String> {
        *self.waiting.lock() = Some(tokio::spawn(self.adapter.acquire(self.target()?)));
        Ok(())
    }

    /// Every connection breaks, the clients know it, and there is no other one before the scenario begins.
    /// Until then answers from before the break may still arrive.
    pub(crate) async fn cut_off(&self) -> Result<(), String> {
        let managers = [self.actor()?, self.server_fixture.rival.clone()];
        let transitions = managers.map(|manager| (manager.transitions(), manager));
        self.server_fixture.server.refuse_connections();
        self.server_fixture.server.drop_connections();
        for (mut transitions, manager) in transitions {
            let broken = async {
                while matches!(manager.state(), State::Connected(_)) && transitions.next().await.is_some() {}
            };
            within("the loss of the link", broken).await?;
        }
        Ok(())
    }
}

/// The state.
impl Fixture {
    pub(crate) fn actor(&self) -> Result<ConnectionManager, String> {
        self.actor.lock().clone().ok_or_else(|| "no actor".to_owned())
    }

    /// The lock, as the actor takes it.
    pub(crate) fn target(&self) -> Result<Target, String> {
        Ok(target(&self.actor()?))
    }

    pub(crate) fn session(&self) -> i64 {
        self.session.load(Ordering::Relaxed)
    }

    /// Takes the actor's hold out.
    pub(crate) fn take_mine(&self) -> Result<Hold, String> {
        self.mine.lock().take().ok_or_else(|| "nothing is held".to_owned())
    }

    /// Whether no doubt is allowed: everything was answered, on the connection on which it was sent.
    ///
    /// A mild fault alone does not say so: on a machine that is paused for less than half a second the client
    /// takes a healthy link for broken, and rightly says that it does not know what became of its requests.
    /// The loss of the link may be reported later than that of the request, so it is waited for.
    pub(crate) async fn was_undisturbed(&self) -> bool {
        if !self.injected_fault.is_none_or(InjectedFault::is_mild) {
            return false;
        }
        let broken = async {
            while !self.is_disturbed() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(2), broken).await.is_err()
    }

    /// Whether the actor's link is known to have broken more often than the scenario breaks it itself.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.breaks() > self.reconnects
    }

    /// How often the actor's link is known to have broken.
    pub(crate) fn breaks(&self) -> u64 {
        let mut link = self.link.lock();
        let transitions = link.transitions.as_mut();
        let heard = std::iter::from_fn({
            let mut transitions = transitions;
            move || transitions.as_mut()?.next().now_or_never().flatten()
        });
        let breaks =
            heard.filter(|heard| matches!(heard.state, State::Suspended(_) | State::Lost(..))).count();
        link.breaks += u64::try_from(breaks).unwrap_or_default();
        link.breaks
    }

    /// Whether a try of the actor was first for certain: the contender behind it is added at the fault.
    async fn was_first(&self) -> bool {
        let is_applied_at_once = self.injected_fault.is_none_or(|injected_fault| {
            matches!(injected_fault, InjectedFault::HoldReply | InjectedFault::DelayReply)
        });
        is_applied_at_once
            && self.server_fixture.server.sessions().contains(&self.session())
            && self.was_undisturbed().await
    }

    /// The whole state, for a case that does not end.
    pub(crate) fn report(&self) -> String {
        let actor = self.actor.lock().as_ref().map(ConnectionManager::state);
        let (rival, injected, healed) =
            (self.server_fixture.rival.state(), *self.injected.borrow(), *self.healed.borrow());
        let server = self.server_fixture.server.inspect(|machine| {
            let sessions = machine.sessions();
            format!(
                "sessions {sessions:x?}, line {:?}, {} watches",
                queue_nodes(machine),
                machine.watch_count(0)
            )
        });
        format!("actor {actor:?}, rival {rival:?}, injected {injected}, healed {healed}, {server}")
    }

    pub(crate) fn written(&self) -> usize {
        self.server_fixture.server.inspect(|machine| children(machine, WRITTEN).len())
    }
}

/// The steps.
impl Fixture {
    /// Waits until the actor has so many watches. No other client sets any.
    pub(crate) async fn actor_watches(&self, watches: usize) -> Result<(), String> {
        let set = self.server_fixture.server.wait_until(|machine| machine.watch_count(0) >= watches);
        within("the waiter's watch", set).await
    }

    /// The same, after everything healed; or until the wait ended with a refusal.
    pub(crate) async fn actor_watches_or_failed(&self, count: usize) -> Result<(), String> {
        let refused = async {
            if !self.injected_fault.is_some_and(InjectedFault::refuses) {
                return std::future::pending().await;
            }
            while !self.waiting.lock().as_ref().is_some_and(JoinHandle::is_finished) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = refused => return Ok(()),
            watches = self.actor_watches(count) => watches?,
        }
        if *self.injected.borrow() {
            self.everything_healed().await?;
            // Healing may have cost the watch; a waiter that is well has one again, unless it was refused.
            if !self.injected_fault.is_some_and(InjectedFault::refuses) {
                self.actor_watches(count).await?;
            }
        }
        Ok(())
    }

    /// Ends when the fault has had time to be injected, and was not.
    pub(crate) async fn nothing_is_injected(&self) {
        let mut injected = self.injected.subscribe();
        let injected = injected.wait_for(|injected| *injected);
        let is_injected = bounded(SESSION * 5, injected).await.is_some();
        if is_injected {
            std::future::pending().await
        }
    }

    pub(crate) async fn everything_healed(&self) -> Result<(), String> {
        let mut healed = self.healed.subscribe();
        let healing = healed.wait_for(|healed| *healed);
        within("the end of the fault", healing).await?.map(|_| ()).map_err(say)
    }

    pub(crate) async fn rival_releases(&self) -> Result<(), String> {
        let Some(hold) = self.theirs.lock().take() else { return Ok(()) };
        // Its connection may have been cut together with the other's: the manager does the rest.
        match hold.release().await {
            None | Some(Ok(()) | Err(ReleaseError::Unconfirmed { .. })) => Ok(()),
            Some(Err(error)) => Err(format!("the rival, without a fault: {error}")),
        }
    }

    /// The contender behind the rival's hold is granted.
    pub(crate) async fn another_holds(&self) -> Result<(), String> {
        let Some(next) = self.next.lock().take() else { return Ok(()) };
        let guard =
            within("the grant of the rival's other contender", next).await?.map_err(say)?.map_err(say)?;
        *self.theirs.lock() = Some(self.server_fixture.oracle.enter("the rival's other one", guard));
        Ok(())
    }

    /// How the wait ended that was begun before.
    pub(crate) async fn waited(&self) -> Result<Ending, String> {
        let waiting = self.waiting.lock().take().ok_or("no acquire is waiting")?;
        self.acquired(waiting.await.map_err(say)?)
    }

    /// An acquire without a deadline ends with the lock, or with a refusal if there was one.
    pub(crate) fn acquired(&self, result: Result<Granted, Error>) -> Result<Ending, String> {
        match result {
            Ok(guard) => Ok(Ending::holding("granted", self.server_fixture.oracle.enter("the actor", guard))),
            Err(Error::Refused { refusal, .. })
                if self.injected_fault.is_some_and(InjectedFault::refuses) =>
            {
                Ok(Ending::new(format!("refused: {refusal:?}")))
            }
            Err(error) => Err(format!("an acquire failed: {error} ({error:?})")),
        }
    }

    /// A try ends at once. It may return `None` only if another client holds the lock.
    pub(crate) async fn tried(&self, result: Result<Option<Granted>, Error>) -> Result<Ending, String> {
        match result {
            Ok(None) if self.theirs.lock().is_some() || !self.was_first().await => {
                Ok(Ending::new("not free"))
            }
            Ok(None) => Err("a free lock was not free".to_owned()),
            Ok(Some(guard)) => self.acquired(Ok(guard)),
            Err(error) if error.is_timeout() && !self.was_undisturbed().await => Ok(Ending::new("timeout")),
            Err(error) => self.acquired(Err(error)),
        }
    }

    /// A release ends as it should: a node that reads as released does not exist, and a lost one is reported.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<String, String> {
        let path = hold.path().unwrap_or_default();
        let exists = || self.server_fixture.server.inspect(|machine| machine.tree().node(&path).is_some());
        match hold.release().await.ok_or("nothing to release")? {
            Ok(()) if exists() => Err(format!("released, and {path} exists")),
            Ok(()) => Ok("released".to_owned()),
            Err(ReleaseError::Lost(lost)) if lost.reason != LossReason::NodeDeleted => {
                Ok(format!("lost: {:?}", lost.reason))
            }
            Err(error) if self.was_undisturbed().await => Err(error.to_string()),
            Err(ReleaseError::Lost(lost)) => Ok(format!("lost: {:?}", lost.reason)),
            Err(ReleaseError::Unconfirmed { .. }) => Ok("unconfirmed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub(crate) fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}
