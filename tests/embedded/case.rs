//! One case: a scenario, an injection point, and a fault; and everything that must hold afterwards.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::BootInstant;
use lockkeeper_testserver::{Fault, When};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, say};
use crate::injected_fault::{Armed, InjectedFault};
use crate::injection_point::{InjectionPoint, injection_points};
use crate::limit::within;
use crate::oracle::Hold;
use crate::scenario::{Ending, Scenario};
use crate::server_fixture::{queue_nodes, target};

#[derive(Clone, Debug)]
pub(crate) struct Case<S> {
    pub(crate) scenario: S,
    pub(crate) injection_point: InjectionPoint,
    pub(crate) injected_fault: InjectedFault,
}

impl<S: Scenario> Display for Case<S> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}/{}/{}", self.scenario, self.injection_point, self.injected_fault)
    }
}

/// How one run of a case ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed(Passed),
    /// The operation ended before it reached the injection point.
    Missed,
    /// On a machine that was paused, the session timed out by itself.
    Disturbed(String),
}

/// A case that kept every promise.
#[derive(Debug)]
pub(crate) struct Passed {
    /// How the operation ended.
    pub(crate) said: String,
    /// From the moment nothing was in the way any more until everything was well.
    pub(crate) healed_within: Duration,
}

/// Runs a scenario to which nothing happens, and says what passed meanwhile. `None` if something happened all
/// the same: on a machine that is paused the client takes its link for broken, or a lease runs out.
pub(crate) async fn record<S: Scenario>(scenario: S) -> Result<Option<Vec<InjectionPoint>>, String> {
    let fixture = set(scenario, None).await?;
    let recorded = record_on(scenario, &fixture).await;
    if fixture.is_disturbed() { Ok(None) } else { recorded }
}

async fn record_on<S: Scenario>(
    scenario: S,
    fixture: &Fixture,
) -> Result<Option<Vec<InjectionPoint>>, String> {
    let server = &fixture.server_fixture.server;
    let session = fixture.session();
    let transcript = server.transcript();
    let clock = async {
        if let Some(op) = S::BY_CLOCK {
            let when = When::op(op).session(session).times(2);
            let twice = server.fault(when, Fault::DelayRequest(Duration::ZERO));
            within("what comes by the clock", twice.hit_times(2)).await?;
        }
        fixture.healed.send_replace(true);
        Ok::<_, String>(())
    };
    let both = async { tokio::join!(scenario.act(fixture), clock) };
    let (ending, clock) = within("the scenario by itself", both).await?;
    clock?;
    let ending = ending?;
    if ending.said.starts_with("lost") || ending.hold.as_ref().is_some_and(|hold| !hold.is_valid()) {
        return Ok(None);
    }
    // What is done in the background belongs to it.
    fixture.server_fixture.queue_length_becomes(ending.hold.as_ref().map_or(0, Hold::nodes)).await?;
    let passed = transcript.passed();
    drop(transcript);
    if aftermath(scenario, fixture, ending.hold, None).await?.is_some() {
        return Ok(None);
    }
    Ok(Some(
        injection_points(passed, session)
            .into_iter()
            .filter(|injection_point| scenario.is_tried(injection_point))
            .collect(),
    ))
}

async fn set<S: Scenario>(scenario: S, injected_fault: Option<InjectedFault>) -> Result<Fixture, String> {
    let fixture = Fixture::new(scenario.adapter(), injected_fault, S::RECONNECTS).await?;
    scenario.set(&fixture).await?;
    Ok(fixture)
}

impl<S: Scenario> Case<S> {
    pub(crate) async fn run(self) -> Result<Outcome, String> {
        let fixture = set(self.scenario, Some(self.injected_fault)).await?;
        let armed = self.injected_fault.arm(
            &fixture.server_fixture.server,
            &self.injection_point,
            fixture.session(),
            S::RECONNECTS,
        );
        if self.injected_fault.is_decreed() {
            fixture.server_fixture.oracle.suspend();
        }
        let act = async {
            let ending = within("the end of the operation", self.scenario.act(&fixture)).await;
            fixture.ended.send_replace(true);
            ending.map_err(|error| format!("{error}; {}", fixture.report()))?
        };
        let (ending, played) = tokio::join!(act, self.play(&fixture, &armed));
        // The errors of the fault first: the operation cannot end then.
        let played = played?;
        let Ending { said, hold } = ending?;
        let Some((behind, healed_at)) = played else { return Ok(Outcome::Missed) };
        drop(armed);
        let disturbed = aftermath(self.scenario, &fixture, hold, behind).await?;
        let healed_within = BootInstant::now().since(healed_at);
        Ok(disturbed.map_or(Outcome::Passed(Passed { said, healed_within }), Outcome::Disturbed))
    }

    /// Waits for the fault and does what belongs to it; meanwhile another contender waits behind the actor.
    async fn play(
        &self,
        fixture: &Fixture,
        armed: &Armed,
    ) -> Result<Option<(Option<Behind>, BootInstant)>, String> {
        let has_ended = || async {
            let _ = fixture.ended.subscribe().wait_for(|ended| *ended).await;
        };
        let session = fixture.session();
        let session_is_over = fixture
            .server_fixture
            .server
            .wait_until(|machine| session != 0 && !machine.sessions().contains(&session));
        tokio::select! {
            biased;
            () = armed.hit() => {}
            // On a busy machine, by itself: what was meant for that session will not come.
            () = session_is_over => armed.hit_soon().await,
            // What is left to be done in the background comes a little later.
            () = has_ended() => armed.hit_soon().await,
        }
        let has_hit = armed.has_hit();
        fixture.injected.send_replace(true);
        let mut behind = None;
        if has_hit {
            if !S::WAITS {
                behind = Some(Behind::enqueue(fixture));
            }
            let actor = fixture.actor().ok();
            armed.play(&fixture.server_fixture, actor.as_ref(), has_ended()).await?;
        }
        fixture.healed.send_replace(true);
        Ok(has_hit.then(|| (behind, BootInstant::now())))
    }
}

/// A contender behind the actor, or ahead of it if the actor returns from a lost session.
struct Behind(JoinHandle<Result<(), String>>);

impl Behind {
    fn enqueue(fixture: &Fixture) -> Self {
        let exclusion = fixture.adapter.exclude(target(&fixture.server_fixture.rival));
        let oracle = Arc::clone(&fixture.server_fixture.oracle);
        Self(tokio::spawn(async move {
            let guard = exclusion.await.map_err(say)?;
            let hold = oracle.enter("the one behind", guard);
            // Its connection may be cut, too; the queue shows that the node is deleted.
            let _ = hold.release().await;
            Ok(())
        }))
    }

    async fn served(self) -> Result<(), String> {
        within("the lock for the one behind: a lost wake-up", self.0).await?.map_err(say)?
    }
}

/// What must hold after every case. Returns what no client could help: a server that did not confirm the end
/// of the session in time, although nothing kept it from doing so.
async fn aftermath<S: Scenario>(
    scenario: S,
    fixture: &Fixture,
    hold: Option<Hold>,
    behind: Option<Behind>,
) -> Result<Option<String>, String> {
    let server_fixture = &fixture.server_fixture;
    let mut disturbed = None;
    let behind = behind.unwrap_or_else(|| Behind::enqueue(fixture));
    if let Some(hold) = hold {
        within("the release", fixture.release(&hold)).await??;
    }
    behind.served().await?;
    let actor = fixture.actor().ok();
    let is_closed = actor.as_ref().is_none_or(|actor| actor.state() == lockkeeper::manager::State::Closed);
    if let Some(actor) = actor.clone().filter(|_| !is_closed) {
        // The actor is well again: it gets the lock, and no other contender holds it meanwhile.
        let guard =
            within("the lock for the actor, once more", fixture.adapter.acquire(target(&actor))).await?;
        let hold = server_fixture.oracle.enter("the actor again", guard.map_err(say)?);
        within("the last release", fixture.release(&hold)).await??;
    }
    server_fixture.queue_length_becomes(0).await.map_err(|error| format!("an orphan: {error}"))?;
    server_fixture.oracle.verdict()?;
    scenario.verdict(fixture)?;
    if let Some(actor) = actor.filter(|_| !is_closed) {
        match within("the shutdown", actor.shutdown()).await? {
            // A session that was lost just before; that it ends is seen below.
            Err(error) if error.is_timeout() => {
                disturbed = fixture.was_undisturbed().await.then(|| format!("the shutdown: {error}"));
            }
            closed => closed.map_err(say)?,
        }
    }
    within("the rival's shutdown", server_fixture.rival.shutdown()).await?.map_err(say)?;
    within(
        "the end of all sessions",
        server_fixture.server.wait_until(|machine| machine.sessions().is_empty()),
    )
    .await
    .map_err(|error| format!("{error}; {}", fixture.report()))?;
    // Nothing came late.
    let left =
        server_fixture.server.inspect(|machine| (queue_nodes(machine), machine.tree().ephemeral_count()));
    if left != (Vec::new(), 0) {
        return Err(format!("left behind: {left:?}"));
    }
    Ok(disturbed)
}
