//! What a contender looks at beside its line: the nodes that tell whether its turn is worth something.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, select_all};
use parking_lot::Mutex;
use tracing::debug;

use super::interruption::{Interruption, pause, time_left};
use crate::backend::{Reply, Stat, Watch, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::path::ZnodePath;
use crate::session::{OwnNode, Reservation, Session};

/// One node to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Which children it has.
    Children(ZnodePath),
    /// What is in it.
    Data(ZnodePath),
    /// What is in it now: that it changes is of no interest, and is not told.
    DataOnce(ZnodePath),
}

/// What was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Its children, in no order.
    Children {
        /// Their names.
        names: Vec<String>,
        /// The node's own stat.
        stat: Stat,
    },
    /// Its data.
    Data {
        /// The bytes.
        data: Vec<u8>,
        /// The node's stat.
        stat: Stat,
    },
    /// There is no such node.
    Missing,
}

/// Tells when something that was seen has changed, or may have.
#[derive(Debug)]
#[must_use]
pub struct Changes {
    session: Session,
    asked_on: Option<u64>,
    watches: Vec<Watching>,
    /// Not everything could be watched.
    incomplete: bool,
}

struct Watching {
    event: Watch,
    _room: Reservation,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Watching")
    }
}

impl Changes {
    /// Resolves when there is something else to see, or may be: look again then.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a change is told again.
    pub async fn any(&mut self) {
        let events = self.watches.iter_mut().map(|watching| (&mut watching.event).boxed());
        let changed = async {
            match self.incomplete {
                true => tokio::time::sleep(poll_pause(&self.session)).await,
                false => std::future::pending().await,
            }
        };
        let events = events.chain([std::future::pending().boxed()]);
        tokio::select! {
            biased;
            _ = select_all(events) => {}
            _ = self.session.ended() => {}
            // The client sets its watches again by itself, but says nothing when the server refuses that.
            () = self.session.reconnected(self.asked_on) => {}
            () = changed => {}
        }
    }
}

/// Where there is no room for a watch, a look now and then takes its place.
fn poll_pause(session: &Session) -> Duration {
    session.timeout() / 20
}

/// What to look at, and what was asked already.
#[derive(Default)]
pub(super) struct Looks {
    looks: Arc<[Look]>,
    /// Replies to reads that were sent behind the list that granted the place.
    // Locked by nobody: a reply may be moved between threads, but not shared.
    glimpse: Mutex<Option<Vec<Reply<Sight>>>>,
    /// The connection over which the last look was asked for.
    seen_on: Option<u64>,
}

impl Looks {
    pub(super) fn new(looks: &Arc<[Look]>) -> Self {
        Self { looks: Arc::clone(looks), glimpse: Mutex::default(), seen_on: None }
    }

    /// Sends all reads now, over `connection`.
    pub(super) fn ask(looks: &Arc<[Look]>, session: &Session, connection: Option<u64>) -> Self {
        let replies = ask_all(looks, session);
        Self { looks: Arc::clone(looks), glimpse: Mutex::new(Some(replies)), seen_on: connection }
    }

    /// What was asked together with the place is out of date.
    pub(super) fn forget_glimpse(&mut self) {
        *self.glimpse.get_mut() = None;
        self.seen_on = None;
    }

    pub(super) fn seen_on(&self) -> Option<u64> {
        self.seen_on
    }

    pub(super) async fn look(&mut self, node: &OwnNode, deadline: Deadline) -> Result<Vec<Sight>, Error> {
        let session = node.session().clone();
        // Without the lease, or the node, what is seen is not seen under the hold.
        node.check()?;
        loop {
            let mut replies = match self.glimpse.get_mut().take() {
                Some(replies) => replies,
                None => {
                    let Some(asked_on) = self.caught_up(node, deadline).await? else {
                        continue;
                    };
                    self.seen_on = Some(asked_on);
                    ask_all(&self.looks, &session)
                }
            };
            let answers = join_all(replies.iter_mut().map(|reply| session.answer(reply, deadline))).await;
            match self.read(answers, &self.looks, node, deadline).await? {
                Some(sights) => return Ok(sights),
                None => debug!("looking again"),
            }
        }
    }

    pub(super) async fn watch(
        &mut self,
        node: &OwnNode,
        deadline: Deadline,
    ) -> Result<(Vec<Sight>, Changes), Error> {
        let session = node.session().clone();
        node.check()?;
        // What was asked before is older than what is seen now.
        self.forget_glimpse();
        loop {
            let asked_on = self.caught_up(node, deadline).await?;
            if asked_on.is_none() {
                continue;
            }
            self.seen_on = asked_on;
            let mut replies: Vec<_> = self.looks.iter().map(|look| look.ask_watching(&session)).collect();
            let answers =
                join_all(replies.iter_mut().map(|(reply, _)| session.answer(reply, deadline))).await;
            let mut changes =
                Changes { session: session.clone(), asked_on, watches: Vec::new(), incomplete: false };
            let rooms = replies.into_iter().map(|(_, room)| room);
            let mut sights = Vec::new();
            for ((answer, room), look) in answers.into_iter().zip(rooms).zip(&*self.looks) {
                sights.push(answer.map(|(sight, watch)| {
                    match (watch, room) {
                        (Some(event), Some(room)) => changes.watches.push(Watching { event, _room: room }),
                        _ => changes.incomplete |= !matches!(look, Look::DataOnce(_)),
                    }
                    sight
                }));
            }
            if let Some(sights) = self.read(sights, &self.looks, node, deadline).await? {
                return Ok((sights, changes));
            }
        }
    }

    /// Sees to it that this connection shows what was seen over earlier ones, and says which it is. Who was told by an
    /// event that the turn has come may have been moved to a server that is behind.
    async fn caught_up(&self, node: &OwnNode, deadline: Deadline) -> Result<Option<u64>, Error> {
        let caught_up = node.session().catch_up(deadline).await;
        // The very connection that has caught up: there may be another one by now.
        let connection = caught_up.as_ref().ok().copied();
        let synced = caught_up.map(|_| Sight::Missing);
        let done = match self.looks.first() {
            Some(first) => self.read(vec![synced], std::slice::from_ref(first), node, deadline).await?,
            None => Some(Vec::new()),
        };
        Ok(done.and(connection))
    }

    /// All answers, or `None` when they have to be asked for again.
    async fn read(
        &self,
        answers: Vec<Result<Sight, WireError>>,
        looks: &[Look],
        node: &OwnNode,
        deadline: Deadline,
    ) -> Result<Option<Vec<Sight>>, Error> {
        node.check()?;
        let mut sights = Vec::new();
        for (answer, look) in answers.into_iter().zip(looks) {
            match answer {
                Ok(sight) => sights.push(sight),
                Err(WireError::SessionEnded(LossReason::Closed)) => return Err(Error::Closed),
                Err(WireError::SessionEnded(reason)) => return Err(node.loss_by(reason).into()),
                Err(error @ WireError::Refused(refusal)) if !refusal.is_transient() => {
                    return Err(Error::of_wire(look.operation(), look.path().as_str(), &error, deadline));
                }
                Err(error) => {
                    debug!(path = %look.path(), %error, "no answer; looking again");
                    pause(node.session(), deadline).await;
                    return match time_left(deadline, look.path().as_str(), Phase::Answer) {
                        Err(Interruption::Fail(error)) => Err(error),
                        _ => Ok(None),
                    };
                }
            }
        }
        Ok(Some(sights))
    }
}

impl Look {
    /// The node looked at.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        match self {
            Self::Children(path) | Self::Data(path) | Self::DataOnce(path) => path,
        }
    }

    pub(super) fn at(&self, path: ZnodePath) -> Self {
        match self {
            Self::Children(_) => Self::Children(path),
            Self::Data(_) => Self::Data(path),
            Self::DataOnce(_) => Self::DataOnce(path),
        }
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Children(_) => Operation::List,
            Self::Data(_) | Self::DataOnce(_) => Operation::Read,
        }
    }

    fn ask(&self, session: &Session) -> Reply<Sight> {
        match self {
            Self::Children(path) => {
                let reply = session.read(|wire| wire.children_stat(path.as_str()));
                Box::pin(
                    async move { seen(reply.await.map(|(names, stat)| Sight::Children { names, stat })) },
                )
            }
            Self::Data(path) | Self::DataOnce(path) => {
                let reply = session.read(|wire| wire.data(path.as_str()));
                Box::pin(async move { seen(reply.await.map(|(data, stat)| Sight::Data { data, stat })) })
            }
        }
    }

    fn ask_watching(&self, session: &Session) -> (Reply<(Sight, Option<Watch>)>, Option<Reservation>) {
        let room = match self {
            Self::Children(path) | Self::Data(path) => session.watch_budget().reserve(path.as_str()),
            Self::DataOnce(_) => None,
        };
        let Some(room) = room else {
            let reply = self.ask(session);
            return (Box::pin(async move { Ok((reply.await?, None)) }), None);
        };
        let reply: Reply<(Sight, Option<Watch>)> = match self {
            Self::Children(path) => {
                let reply = session.read(|wire| wire.watch_children(path.as_str()));
                Box::pin(async move {
                    let (names, stat, watch) = reply.await?;
                    Ok((Sight::Children { names, stat }, Some(watch)))
                })
            }
            Self::Data(path) | Self::DataOnce(path) => {
                let reply = session.read(|wire| wire.watch_data(path.as_str()));
                Box::pin(async move {
                    let (data, stat, watch) = reply.await?;
                    Ok((Sight::Data { data, stat }, Some(watch)))
                })
            }
        };
        let reply = reply.map(|answer| match answer {
            // Nothing there, and so nothing watched.
            Err(WireError::Refused(Refusal::NoNode)) => Ok((Sight::Missing, None)),
            answer => answer,
        });
        (Box::pin(reply), Some(room))
    }
}

fn ask_all(looks: &[Look], session: &Session) -> Vec<Reply<Sight>> {
    looks.iter().map(|look| look.ask(session)).collect()
}

fn seen(answer: Result<Sight, WireError>) -> Result<Sight, WireError> {
    match answer {
        Err(WireError::Refused(Refusal::NoNode)) => Ok(Sight::Missing),
        answer => answer,
    }
}
