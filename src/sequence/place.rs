//! A node of ours in the line, and what is known of who is in front of it.

use std::sync::Arc;

use futures::future::join_all;
use tracing::debug;

use super::claim::{Standing, czxid};
use super::exchange::uncounted;
use super::interruption::{Interruption, pause, time_left};
use super::line::Line;
use super::look::Looks;
use super::name::NodeName;
use super::rule::{Rule, Verdict};
use super::view::View;
use super::watching::AskedWatch;
use crate::backend::{Stat, WireError};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::session::{Approach, Before, Origin, OwnNode, Session};

/// A node of ours in the line.
pub(super) struct Place {
    // Dropped in this order: struck out first, then deleted.
    pub(super) entry: Entry,
    pub(super) standing: Standing,
    pub(super) czxid: Option<i64>,
    pub(super) state: Judged,
    /// What was asked to be looked at behind the list that granted the place.
    pub(super) glimpse: Option<Box<Looks>>,
    /// A watch on the nearest blocker that was asked for before it was needed.
    pub(super) ahead_of_time: Option<Box<AskedWatch>>,
}

/// What is known of the line in front of us.
pub(super) enum Judged {
    /// Nothing; or what was known may be out of date.
    Unknown,
    Held,
    Waiting(View),
}

/// Our node in the session's books. Dropped, it is given up and struck out; only then its delete may be sent.
pub(super) struct Entry(pub(super) Arc<OwnNode>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.set_given_up();
        self.0.session().disown(&self.0);
    }
}

impl Place {
    /// `connection` is the one there was before the create was sent, unless the node was only found. With a
    /// `stat`, its owner was compared with the session.
    pub(super) fn new(
        session: &Session,
        mut standing: Standing,
        line: &Line,
        stat: Option<Stat>,
        connection: Option<u64>,
    ) -> Self {
        debug_assert_eq!(
            line.directory().listed_child(standing.name()),
            standing.path(),
            "a node outside its directory"
        );
        let (path, data) = (standing.shared_path(), Arc::clone(line.data()));
        let origin = Origin { made_on: connection, is_owner_seen: stat.is_some() };
        let node = session.own(path, data, line.position(standing.name()), origin);
        standing.known_as(&node);
        Self {
            entry: Entry(node),
            standing,
            czxid: czxid(stat.as_ref()),
            state: Judged::Unknown,
            glimpse: None,
            ahead_of_time: None,
        }
    }

    pub(super) fn session(&self) -> &Session {
        self.entry.0.session()
    }

    /// Lists until something is known.
    pub(super) async fn look(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        while matches!(self.state, Judged::Unknown) {
            self.list(line, deadline).await?;
        }
        Ok(())
    }

    pub(super) async fn list(&mut self, line: &Line, deadline: Deadline) -> Result<(), Interruption> {
        let directory = line.directory().as_str();
        let connection = self.session().connection();
        let mut reply = self.session().read(|wire| wire.children(directory));
        // Behind the list, as with the create.
        let glimpse = Looks::ask(line.looks(), self.session(), connection);
        match self.session().answer(&mut reply, deadline).await {
            Ok(children) => {
                let is_told = self.judge(&children, connection, line, deadline).await?;
                self.glimpse =
                    Some(glimpse).filter(|_| is_told && matches!(self.state, Judged::Held)).map(Box::new);
                Ok(())
            }
            // No directory, no node of ours.
            Err(WireError::Refused(Refusal::NoNode)) => Err(Interruption::StartOver),
            Err(error) => self.look_again_after(&error, Operation::List, directory, deadline).await,
        }
    }

    /// Judges a list that was read on `connection`; whether the list alone told. If not, more was read behind it, and
    /// what was seen between the two is older than the verdict.
    pub(super) async fn judge(
        &mut self,
        children: &[String],
        connection: Option<u64>,
        line: &Line,
        deadline: Deadline,
    ) -> Result<bool, Interruption> {
        let mut is_told_by_list = true;
        let mut verdict = line.rule().judge(children, self.standing.name(), line.besides_names());
        if let Verdict::AskCreationOrder(contenders) = verdict {
            is_told_by_list = false;
            match Box::pin(self.creation_order(contenders, line, deadline)).await? {
                Some(ordered) => verdict = ordered,
                None => return Ok(false),
            }
        }
        self.state = match verdict {
            Verdict::Held => {
                self.entry.0.set_clear();
                Judged::Held
            }
            Verdict::WaitFor(lower) => {
                self.entry.0.set_ahead(lower.len());
                View::new(lower, connection).map_or(Judged::Held, Judged::Waiting)
            }
            // Whatever stands of ours is deleted: a list alone does not prove that nothing does.
            Verdict::Gone | Verdict::AskCreationOrder(_) => return Err(Interruption::StartOver),
            Verdict::Uncounted => return Err(uncounted(line.directory().as_str()).into()),
            Verdict::Mixed(node) => {
                return Err(Error::MixedKinds {
                    path: line.directory().to_string(),
                    child: node.to_string(),
                }
                .into());
            }
        };
        Ok(is_told_by_list)
    }

    /// Where numbers do not tell who came first, the creation zxids do; `None` when they could not be read.
    async fn creation_order(
        &mut self,
        contenders: Vec<NodeName>,
        line: &Line,
        deadline: Deadline,
    ) -> Result<Option<Verdict>, Interruption> {
        let mine = self.token_zxid(deadline, line.directory().as_str()).await?;
        let session = self.session().clone();
        let stats = contenders.into_iter().map(|node| {
            let path = line.directory().listed_child(node.as_str());
            let mut reply = session.read(|wire| wire.exists(&path));
            let session = session.clone();
            async move { (session.answer(&mut reply, deadline).await, node) }
        });
        let mut ordered = Vec::new();
        for (stat, node) in join_all(stats).await {
            match stat {
                Ok(Some(stat)) => ordered.push((stat.czxid, node)),
                Ok(None) => {}
                Err(error) => {
                    self.look_again_after(&error, Operation::Read, line.directory().as_str(), deadline)
                        .await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(Rule::judge_by_creation(ordered, mine)))
    }

    /// Who is in front, by the number that the node got; no list is needed where that tells. `glimpse` was asked for behind
    /// the create.
    pub(super) async fn look_in_front(
        &mut self,
        approach: Option<Approach>,
        glimpse: Option<Box<Looks>>,
        connection: Option<u64>,
        deadline: Deadline,
    ) {
        let (Some(approach), Some(position)) = (approach, self.entry.0.position()) else {
            return;
        };
        self.state = match self.session().before(approach, position, deadline).await {
            Before::Nobody { word, at_first } => {
                self.entry.0.set_clear();
                self.entry.0.set_word(word);
                self.glimpse = glimpse.filter(|_| at_first);
                Judged::Held
            }
            Before::Own(node) => {
                let name = NodeName::parse(node.name());
                // Where that is not known, somebody may be in front of that one, too. If a transaction deletes
                // that node, its directory may have been made again since, with our number in it.
                let is_first = node.lets_in(&self.entry.0) && node.is_clear() && !node.is_replacing();
                let hidden = if is_first { 0 } else { node.ahead().max(1) };
                self.entry.0.set_ahead(hidden + 1);
                name.map_or(Judged::Unknown, |name| Judged::Waiting(View::behind(name, hidden, connection)))
            }
            Before::Unknown => Judged::Unknown,
        };
    }

    /// Our node is not there any more: said by the node itself, not by a list, which may be an old one.
    pub(super) fn gone(&mut self) -> Interruption {
        self.standing.is_gone();
        Interruption::StartOver
    }

    pub(super) async fn token_zxid(
        &mut self,
        deadline: Deadline,
        directory: &str,
    ) -> Result<i64, Interruption> {
        loop {
            if let Some(czxid) = self.czxid {
                return Ok(czxid);
            }
            let path = self.entry.0.path().to_owned();
            let mut reply = self.session().read(|wire| wire.exists(&path));
            match self.session().answer(&mut reply, deadline).await {
                Ok(Some(stat)) => self.czxid = czxid(Some(&stat)),
                Ok(None) => return Err(self.gone()),
                Err(error) => self.look_again_after(&error, Operation::Read, directory, deadline).await?,
            }
        }
    }

    /// A read failed: says no, starts over, or sees to it that the line is looked at again.
    pub(super) async fn look_again_after(
        &mut self,
        error: &WireError,
        operation: Operation,
        path: &str,
        deadline: Deadline,
    ) -> Result<(), Interruption> {
        match error {
            WireError::SessionEnded(LossReason::Closed) => Err(Error::Closed.into()),
            WireError::SessionEnded(_) => Err(Interruption::StartOver),
            WireError::Refused(refusal) if refusal.is_transient() => {
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
            WireError::Refused(_) => Err(Error::of_wire(operation, path, error, deadline).into()),
            _ => {
                debug!(path, %error, "no answer; looking again");
                self.state = Judged::Unknown;
                pause(self.session(), deadline).await;
                time_left(deadline, path, Phase::Answer)
            }
        }
    }
}
