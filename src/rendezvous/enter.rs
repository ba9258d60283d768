//! A member enters.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use tracing::{Instrument, debug, debug_span, field};
use uuid::Uuid;

use super::admitted::Admitted;
use super::decide::{Enter, Ready, enter};
use super::member::{EnteringMember, MEMBER};
use super::member_list::MemberList;
use super::place::Rendezvous;
use crate::config::limits;
use crate::error::{ConfigError, Error, Operation, Phase, Refusal};
use crate::hold::{HeldNode, Hold};
use crate::session::Session;
use crate::telemetry::timers::WaitTimer;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, MultiError, WireError, WriteOp};
use crate::znode::fencing_token::from_czxid;
use crate::znode::zxid::Zxid;

/// What a step of the wait found.
enum EnterStep {
    Inside(Ready),
    Again,
    /// This many members are missing; waits until something has changed.
    Wait(u32, MemberList),
}

impl Rendezvous {
    /// Enters with `count` members: waits until so many exist at once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when `deadline` passes first: the member is no member any more. [`Error::Lost`] if
    /// the session ended, or the node was deleted, during the wait: the barrier may have been opened with
    /// this member. [`Error::Refused`], [`Error::Config`] for a count of zero, or one so large that no
    /// transaction can name all members, [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind. If the barrier was opened, the member counts as one that has
    /// left.
    pub async fn enter(&self, count: u32, deadline: Deadline) -> Result<Admitted, Error> {
        if count == 0 {
            let advice = "a barrier has at least one member";
            return Err(ConfigError::Setting { name: "count", value: "0".to_owned(), advice }.into());
        }
        self.check_opening(count)?;
        let span = debug_span!(
            "enter",
            path = self.full.as_str(),
            recipe = self.metric_name,
            outcome = field::Empty,
            waited = field::Empty,
        );
        let timer = WaitTimer::begin(self.manager.environment(), self.metric_name, span.clone());
        let entered = tokio::select! {
            biased;
            () = self.manager.closing() => Err(Error::Closed),
            entered = self.enter_within(count, deadline).instrument(span) => entered,
        };
        let waited = timer.end(&entered, |_| true);
        if let Ok(admitted) = &entered {
            admitted.hold.start_span(Some(waited));
        }
        entered
    }

    /// The transaction that opens the barrier names each member. Too large a one would be sent for ever.
    fn check_opening(&self, count: u32) -> Result<(), ConfigError> {
        let each = WriteOp::Check { path: self.member_path(Uuid::nil()), version: None }.bytes();
        let members = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes = members.saturating_mul(each).saturating_add(self.ready.len() + self.node_data.len());
        limits::check(bytes).map_err(|_| {
            let advice = "take fewer members or a shorter path: one transaction names all members";
            ConfigError::Setting { name: "count", value: count.to_string(), advice }
        })
    }

    async fn enter_within(&self, count: u32, deadline: Deadline) -> Result<Admitted, Error> {
        // A try waits for answers, and for no other member.
        let limit = match deadline.is_immediate() {
            true => Deadline::after(self.manager.operation_timeout()),
            false => deadline,
        };
        let member = self.create_member(limit).await?;
        let node = Arc::clone(&member.registration.0);
        let session = node.session().clone();
        let mut missing = count - 1;
        let ready = loop {
            let step = tokio::select! {
                biased;
                lost = node.lost() => return Err(node.error_of(lost.reason.into())),
                step = self.step(&session, &member, count) => step,
                () = limit.passed() => return Err(self.timeout(missing, limit)),
            };
            match step {
                Ok(EnterStep::Inside(ready)) => break ready,
                Ok(EnterStep::Again) => {}
                Ok(EnterStep::Wait(now_missing, _)) if deadline.is_immediate() => {
                    return Err(self.timeout(now_missing, deadline));
                }
                Ok(EnterStep::Wait(now_missing, mut list)) => {
                    missing = now_missing;
                    tokio::select! {
                        biased;
                        lost = node.lost() => return Err(node.error_of(lost.reason.into())),
                        _ = list.observation.changed() => {}
                        () = limit.passed() => return Err(self.timeout(missing, limit)),
                    }
                }
                Err(error) => {
                    let path = self.full.as_str();
                    let retry = session.retry_after(&error, Operation::Create, path, limit);
                    retry.await.map_err(|stop| node.error_of(stop))?;
                }
            }
        };
        self.grant(member, ready, limit).await
    }

    fn timeout(&self, missing: u32, deadline: Deadline) -> Error {
        let text = match missing {
            0 => "waiting for the end of the round before".to_owned(),
            missing => format!("waiting for {missing} more members"),
        };
        let (path, waited) = (self.full.as_str().into(), deadline.waited());
        Error::Timeout { phase: Phase::Recipe(text.into()), path, waited }
    }

    /// Reads, decides, and opens the barrier if that is up to this member.
    async fn step(
        &self,
        session: &Session,
        member: &EnteringMember,
        count: u32,
    ) -> Result<EnterStep, WireError> {
        let list = match self.list_members(session).await {
            // The directory was deleted, and the node of the member with it.
            Err(WireError::Refused(Refusal::NoNode)) => {
                member.registration.0.on_missing();
                return Ok(EnterStep::Again);
            }
            list => list?,
        };
        let (names, own) = (list.names(), member.node_guard.name());
        let decide = |ages| enter(count, own, member.czxid, &names, list.ready, ages);
        let decision = match decide(None) {
            Enter::AskAges => decide(Some(&self.ages(session, &names).await?)),
            decision => decision,
        };
        match decision {
            Enter::Inside(ready) => Ok(EnterStep::Inside(ready)),
            Enter::Wait { missing } => Ok(EnterStep::Wait(missing, list)),
            Enter::Open { members, replaces } => {
                self.open(session, &members, replaces).await?;
                Ok(EnterStep::Again)
            }
            Enter::Gone => {
                member.registration.0.on_missing();
                Ok(EnterStep::Again)
            }
            Enter::AskAges => Ok(EnterStep::Again),
        }
    }

    /// When the members were created, as far as they exist. A persistent node is no member.
    async fn ages(&self, session: &Session, names: &[String]) -> Result<BTreeMap<String, Zxid>, WireError> {
        let asked = names.iter().map(|name| {
            let path = self.full.listed_child(name);
            let mut reply = session.read(|wire| wire.exists(&path));
            async move { (name.clone(), session.await_reply(&mut reply, Deadline::never()).await) }
        });
        let mut ages = BTreeMap::new();
        for (name, stat) in join_all(asked).await {
            match stat? {
                Some(stat) if stat.ephemeral_owner == 0 => self.warn_of_unowned(&name, &stat),
                Some(stat) => _ = ages.insert(name, stat.czxid),
                None => {}
            }
        }
        Ok(ages)
    }

    /// Opens the barrier, if all of these members exist. Whether it is open, the next list shows.
    async fn open(
        &self,
        session: &Session,
        members: &[String],
        replaces: Option<i32>,
    ) -> Result<(), WireError> {
        let checks = members.iter().map(|name| self.full.listed_child(name));
        let checks = checks.map(|path| WriteOp::Check { path, version: None });
        let (path, data) = (self.ready.clone(), self.node_data.to_vec());
        let open = match replaces {
            None => WriteOp::Create { path, data, mode: CreateMode::Persistent },
            version => WriteOp::SetData { path, data, version },
        };
        let operations: Vec<WriteOp> = checks.chain([open]).collect();
        match session.multi(&operations, Deadline::never()).await {
            Ok(_) => debug!(path = %self.full, members = members.len(), "opened"),
            Err(MultiError::Operation {
                refusal: Refusal::NoNode | Refusal::NodeExists | Refusal::BadVersion,
                ..
            }) => {}
            Err(MultiError::Operation { refusal, .. }) => return Err(WireError::Refused(refusal)),
            Err(MultiError::Request(error)) => return Err(error),
        }
        Ok(())
    }

    /// The last step: the lease is valid now, and the node is not known to be deleted.
    async fn grant(
        &self,
        member: EnteringMember,
        ready: Ready,
        deadline: Deadline,
    ) -> Result<Admitted, Error> {
        let node = Arc::clone(&member.registration.0);
        let session = node.session();
        while !session.try_grant(&node).map_err(|reset| reset.error(self.full.as_str()))? {
            let confirmed = tokio::select! {
                biased;
                confirmed = session.until_lease_is_valid(deadline) => confirmed,
                lost = node.lost() => return Err(node.error_of(lost.reason.into())),
            };
            match confirmed {
                Ok(true) => {}
                Ok(false) => {
                    let (path, waited) = (self.full.as_str().into(), deadline.waited());
                    return Err(Error::Timeout { phase: Phase::Confirmation, path, waited });
                }
                Err(reason) => return Err(node.error_of(reason.into())),
            }
        }
        node.settle().map_err(|lost| node.error_of(lost.reason.into()))?;
        let EnteringMember { registration, node_guard, creates, czxid } = member;
        let generation = registration.0.session().settings().token_generation;
        let held_node = HeldNode { registration, node_guard, label: MEMBER };
        let (manager, token) = (self.manager.clone(), from_czxid(czxid, generation));
        let hold = Hold::new(manager, held_node, Vec::new(), token, Some(self.metric_name));
        if self.manager.is_closing() {
            return Err(Error::Closed);
        }
        Ok(Admitted { hold, ready, rendezvous: self.clone(), creates })
    }
}
