//! One case: a scenario, a site in it, and what happens there; and everything that must hold afterwards.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::{BootInstant, Mutex};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::court::{Guard, Hold};
use crate::limit::within;
use crate::mishap::{Armed, Mishap};
use crate::scenario::{Ending, Scenario, Stage, say};
use crate::site::{Recording, Site};
use crate::world::{LOCK, in_line};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) site: Site,
    pub(crate) mishap: Mishap,
}

impl Display for Case {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}/{}/{}", self.scenario, self.site, self.mishap)
    }
}

/// A case that kept every promise.
#[derive(Debug)]
pub(crate) struct Kept {
    /// How the operation ended.
    pub(crate) said: String,
    /// From the moment nothing was in the way any more until everything was well.
    pub(crate) healed_within: Duration,
}

/// Runs a scenario to which nothing happens, and says what passed meanwhile.
pub(crate) async fn record(scenario: Scenario) -> Result<Vec<Site>, String> {
    let stage = scenario.set(None).await?;
    let recording = Recording::of(&stage.world.server, stage.session);
    stage.struck.send_replace(true);
    stage.healed.send_replace(true);
    let ending = within("the scenario by itself", scenario.act(&stage)).await??;
    // What is done in the background belongs to it.
    stage.world.line_becomes(usize::from(ending.hold.is_some())).await?;
    let sites = recording.sites();
    drop(recording);
    aftermath(&stage, ending.hold, None).await?;
    Ok(scenario.sites(sites))
}

impl Case {
    /// `None` when the operation came to its end before it got to the site.
    pub(crate) async fn run(self) -> Result<Option<Kept>, String> {
        let stage = self.scenario.set(Some(self.mishap)).await?;
        let armed =
            self.mishap.arm(&stage.world.server, self.site, stage.session, self.scenario.reconnects());
        if self.mishap.is_decreed() {
            stage.world.court.suspend();
        }
        let ended = watch::Sender::new(false);
        let act = async {
            let ending = within("the end of the operation", self.scenario.act(&stage)).await;
            ended.send_replace(true);
            ending?
        };
        let (ending, played) = tokio::join!(act, self.play(&stage, &armed, &ended));
        let Ending { said, hold } = ending?;
        let Some((behind, healed_at)) = played? else { return Ok(None) };
        drop(armed);
        aftermath(&stage, hold, behind).await?;
        Ok(Some(Kept { said, healed_within: BootInstant::now().since(healed_at) }))
    }

    /// Waits for the strike and does what belongs to it; meanwhile somebody stands behind the actor.
    async fn play(
        self,
        stage: &Stage,
        armed: &Armed,
        ended: &watch::Sender<bool>,
    ) -> Result<Option<(Option<Behind>, BootInstant)>, String> {
        let has_ended = || async {
            let _ = ended.subscribe().wait_for(|ended| *ended).await;
        };
        tokio::select! {
            biased;
            () = armed.hit() => {}
            // What is left to be done in the background comes a little later.
            () = has_ended() => armed.hit_soon().await,
        }
        let has_hit = armed.has_hit();
        stage.struck.send_replace(true);
        let mut behind = None;
        if has_hit {
            if !self.scenario.waits() {
                behind = Some(Behind::enqueue(stage)?);
            }
            let actor = stage.actor.lock().clone();
            armed.play(&stage.world, actor.as_ref(), has_ended()).await?;
        }
        stage.healed.send_replace(true);
        Ok(has_hit.then(|| (behind, BootInstant::now())))
    }
}

/// Somebody who waits behind the actor, or in front of it if the actor comes back from a lost session.
struct Behind(JoinHandle<Result<(), String>>);

impl Behind {
    fn enqueue(stage: &Stage) -> Result<Self, String> {
        let mutex = Mutex::new(&stage.world.rival, LOCK).map_err(say)?;
        let court = Arc::clone(&stage.world.court);
        Ok(Self(tokio::spawn(async move {
            let guard = mutex.acquire_owned().await.map_err(say)?;
            let hold = court.enter("the one behind", Guard::Plain(guard));
            // Its connection may be cut, too; that the node goes is seen in the line.
            let _ = hold.release().await;
            Ok(())
        })))
    }

    async fn served(self) -> Result<(), String> {
        within("the lock for the one behind: a lost wake-up", self.0).await?.map_err(say)?
    }
}

/// What must hold after every case.
async fn aftermath(stage: &Stage, hold: Option<Hold>, behind: Option<Behind>) -> Result<(), String> {
    let world = &stage.world;
    let behind = match behind {
        Some(behind) => behind,
        None => Behind::enqueue(stage)?,
    };
    if let Some(hold) = hold {
        within("the release", stage.release(&hold)).await??;
    }
    behind.served().await?;
    let actor = stage.actor.lock().clone();
    let is_closed = actor.as_ref().is_none_or(|actor| actor.state() == lockkeeper::State::Closed);
    if !is_closed {
        // The actor is well again: it gets the lock like everyone else, and nobody else has it meanwhile.
        let guard = within("the lock for the actor, once more", stage.mutex()?.acquire_owned()).await?;
        let hold = world.court.enter("the actor again", Guard::Plain(guard.map_err(say)?));
        within("the last release", stage.release(&hold)).await??;
    }
    world.line_becomes(0).await.map_err(|error| format!("an orphan: {error}"))?;
    world.court.verdict()?;
    stage.verdict_of_commit()?;
    if let Some(actor) = actor.filter(|_| !is_closed) {
        within("the shutdown", actor.shutdown()).await?.map_err(say)?;
    }
    within("the rival's shutdown", world.rival.shutdown()).await?.map_err(say)?;
    within("the end of all sessions", world.server.wait_until(|machine| machine.sessions().is_empty()))
        .await?;
    // Nothing came late.
    let left = world.server.inspect(|machine| (in_line(machine), machine.tree().ephemeral_count()));
    if left != (Vec::new(), 0) {
        return Err(format!("left behind: {left:?}"));
    }
    Ok(())
}
