//! The predecessor of a new node, by its sequence number alone.

use super::contender_kind::ContenderKind;
use super::entry::{Entry, EntryKey, Predecessor};
use super::in_flight::CreateInFlight;
use super::local_queue::{Effect, LocalQueue};
use super::prediction::Prediction;
use super::released_head::ReleasedHead;

/// What the sequence number of a new node proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement<P> {
    /// The node is the head of the queue.
    Head {
        /// The payload of the released head before it.
        payload: Option<P>,
        /// The node was the head already when the create was sent, so that the head sends every read behind
        /// the create.
        since_send: bool,
    },
    /// The contender waits for this node of its session, and is linked to it.
    Behind {
        predecessor: EntryKey,
        /// No node is ahead of the predecessor, and no request deletes it yet: its delete grants.
        is_second: bool,
    },
    /// Nothing: a list decides.
    Unknown,
}

impl<P: Clone> LocalQueue<P> {
    /// Ends a create that was answered over `create.connection`. `connection` is the present one.
    ///
    /// Two consecutive numbers prove that no node is between theirs, so the state of the predecessor decides:
    ///
    /// * It exists: the new node is right behind it.
    /// * It was released as the head before the create was sent, and the directory is unchanged since: the
    ///   new node is the head. A delete that was sent after the create proves nothing: it checked no node
    ///   whose create had no reply yet, so the new node may be deleted, and others behind it may hold.
    /// * Readers do not wait for readers. Two neighbouring readers have the same blockers, except while a
    ///   request that deletes the first reader is in flight, because its directory may have been created
    ///   again. So a reader is the head after a released reader, too, if nothing blocked that one when
    ///   the create was sent.
    ///
    /// All of this holds only while the connection is the one that carried the create: on another one, the
    /// delete of a released head may never have been sent.
    pub(crate) fn judge_by_sequence(
        &mut self,
        create: CreateInFlight,
        key: EntryKey,
        connection: Option<u64>,
    ) -> (Judgement<P>, Vec<Effect<P>>) {
        let judgement = self.predecessor_of(&create, key, connection);
        let mut effects = match &judgement {
            Judgement::Behind { predecessor, .. } => self.link(key, predecessor.sequence),
            Judgement::Head { .. } => {
                let reader = self.entries.get(&(key.sequence - 1)).and_then(Entry::clear_since);
                self.clear_since(key, reader.unwrap_or_default().max(create.order));
                Vec::new()
            }
            Judgement::Unknown => Vec::new(),
        };
        effects.extend(self.count(create, key, &judgement));
        (judgement, effects)
    }

    /// Ends a create that a list has judged already. The outcome by its sequence number is counted, so that
    /// the next create may need no list.
    pub(crate) fn judged_by_list(
        &mut self,
        create: CreateInFlight,
        key: EntryKey,
        connection: Option<u64>,
    ) -> Vec<Effect<P>> {
        let judgement = self.predecessor_of(&create, key, connection);
        self.count(create, key, &judgement)
    }

    fn count(&mut self, create: CreateInFlight, key: EntryKey, judgement: &Judgement<P>) -> Vec<Effect<P>> {
        let before = key.sequence.checked_sub(1);
        let follows_own = before.is_some_and(|before| self.is_known(before, create.connection));
        self.history.record_create(key.sequence, create.connection, follows_own);
        let watch = self.directory_watch_due(judgement, create.connection);
        self.forget_waiter(key);
        let mut effects = self.forget_create(create);
        effects.extend(watch);
        effects
    }

    fn predecessor_of(
        &self,
        create: &CreateInFlight,
        key: EntryKey,
        connection: Option<u64>,
    ) -> Judgement<P> {
        let is_countable = (1..i32::MAX).contains(&key.sequence);
        let is_same_connection = connection == Some(create.connection);
        let (Some(kind), true) =
            (self.entry(key).map(|entry| entry.kind), is_countable && is_same_connection)
        else {
            return Judgement::Unknown;
        };
        let before = key.sequence - 1;
        match self.entries.get(&before) {
            Some(entry) if (kind, entry.kind) == (ContenderKind::Read, ContenderKind::Read) => {
                match entry.predecessor {
                    _ if self.directory_watch.set_on(create.connection).is_none() => Judgement::Unknown,
                    _ if entry.is_leaving => Judgement::Unknown,
                    Predecessor::None { .. } => Judgement::Head { payload: None, since_send: false },
                    Predecessor::Own(writer) => self.behind(writer, kind),
                    Predecessor::Unknown => Judgement::Unknown,
                }
            }
            Some(_) => self.behind(before, kind),
            None => self.after_released(create, before, kind),
        }
    }

    fn behind(&self, sequence: i32, kind: ContenderKind) -> Judgement<P> {
        let entry = self.entries.get(&sequence).filter(|entry| entry.kind.shares_rule_with(kind));
        entry.map_or(Judgement::Unknown, |entry| Judgement::Behind {
            predecessor: EntryKey { sequence, node: entry.node },
            is_second: entry.kind.hands_off_to(kind) && entry.has_no_predecessor() && !entry.is_leaving,
        })
    }

    /// `before` is the sequence number of a node that no longer exists.
    fn after_released(&self, create: &CreateInFlight, before: i32, kind: ContenderKind) -> Judgement<P> {
        // Next to a released reader, or in place of a released writer, other nodes may exist that a writer
        // waits for.
        let head = self
            .released_at(before, create.connection)
            .filter(|head| kind != ContenderKind::Write && head.kind.shares_rule_with(kind));
        match head {
            Some(head) if self.was_clear_before(head, create) && self.is_directory_unchanged_since(head) => {
                let since_send = create.prediction == Prediction::AfterOwn(before);
                Judgement::Head { payload: head.payload.clone(), since_send }
            }
            _ => Judgement::Unknown,
        }
    }

    /// Whether no node of the head's number, or ahead of it, blocked the new node when its create was sent.
    fn was_clear_before(&self, head: &ReleasedHead<P>, create: &CreateInFlight) -> bool {
        let is_watched = head.covered_by.is_some_and(|watch| watch.order() < create.order);
        head.order < create.order
            || (head.kind == ContenderKind::Read && head.clear_since < create.order && is_watched)
    }

    /// A watch pays off on a directory that this session alone uses repeatedly.
    fn directory_watch_due(&self, judgement: &Judgement<P>, connection: u64) -> Option<Effect<P>> {
        let is_worth_it =
            self.history.expects_consecutive() && !matches!(judgement, Judgement::Behind { .. });
        let is_missing = !self.directory_watch.is_asked_on(connection);
        (is_worth_it && is_missing).then_some(Effect::WatchDirectory { connection })
    }
}
