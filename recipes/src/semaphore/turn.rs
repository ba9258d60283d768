//! One turn at the head of the line: look, wait until there is room, and take.

use lockkeeper_core::{
    Changes, Deadline, Error, Exchange, ExchangeError, Exchanged, Hold, NodeName, Operation, Phase, Refusal,
    Sight,
};

use tracing::debug;

use super::continuity::{Continuity, keeps};
use super::limit::Limit;
use super::view::{Step, Terms, Unclear, View, decide};
use super::{Lease, Semaphore};

/// What a head of the line leaves to the next one of this process: no more than these are out, if the next lease has the
/// number that it should have.
struct Tally {
    taken: usize,
    limit: usize,
    continuity: Continuity,
}

/// Why a turn ended without permits.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// The hold of the line was lost, or what was taken had to be given back: start over at the end of the line.
    TurnLost,
    /// Tell the caller.
    Failed(Error),
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        match error {
            Error::Lost(_) => Self::TurnLost,
            error => Self::Failed(error),
        }
    }
}

impl Semaphore {
    /// Spends a turn, which is a hold of [`line`](Self::line): waits until `asked` permits are free, takes them and
    /// leaves the line, all in one transaction.
    pub(super) async fn take(&self, hold: Hold, asked: usize, deadline: Deadline) -> Result<Lease, NotTaken> {
        // Given up with the line, whatever happens.
        let mut slot = Some(hold);
        self.take_from(&mut slot, asked, deadline).await
    }

    /// As [`take`](Self::take), and leaves the turn in its slot when it is given up before its transaction is sent.
    pub(super) async fn take_from(
        &self,
        slot: &mut Option<Hold>,
        asked: usize,
        deadline: Deadline,
    ) -> Result<Lease, NotTaken> {
        let mut turn = Turn { semaphore: self, slot, asked };
        tokio::select! {
            biased;
            // Looked at first at each step: also what a transaction in flight takes is given back.
            () = self.manager.closing() => Err(Error::Closed.into()),
            taken = turn.take(deadline) => taken,
        }
    }

    /// As [`take`](Self::take), but without waiting for permits: what it would have had to wait for.
    pub(super) async fn try_take(
        &self,
        hold: Hold,
        asked: usize,
        deadline: Deadline,
    ) -> Result<Result<Lease, Phase>, NotTaken> {
        let mut slot = Some(hold);
        let mut turn = Turn { semaphore: self, slot: &mut slot, asked };
        tokio::select! {
            biased;
            () = self.manager.closing() => Err(Error::Closed.into()),
            tried = turn.try_take(deadline) => tried,
        }
    }
}

/// The head of the line.
struct Turn<'a> {
    semaphore: &'a Semaphore,
    /// Its hold of the line; empty while a transaction is under way that ends it.
    slot: &'a mut Option<Hold>,
    asked: usize,
}

impl Turn<'_> {
    fn hold(&mut self) -> Result<&mut Hold, NotTaken> {
        self.slot.as_mut().ok_or(NotTaken::TurnLost)
    }

    async fn take(&mut self, deadline: Deadline) -> Result<Lease, NotTaken> {
        if let Some(lease) = self.take_unseen(deadline).await? {
            return Ok(lease);
        }
        let mut sights = self.hold()?.look(deadline).await?;
        let mut changes: Option<Changes> = None;
        loop {
            match self.judge(&sights, deadline).await? {
                Some((Step::Take, view)) => match self.exchange(&view, deadline).await? {
                    Some(lease) => return Ok(lease),
                    None => {
                        changes = None;
                        sights = self.hold()?.look(deadline).await?;
                    }
                },
                Some((Step::Wait { free }, _)) => {
                    if let Some(changes) = &mut changes {
                        self.sleep(changes, free, deadline).await?;
                    }
                    let watching = self.hold()?.watch(deadline).await?;
                    (sights, changes) = (watching.0, Some(watching.1));
                }
                Some((Step::Never, view)) => return Err(self.too_many(&view)),
                None => sights = self.hold()?.look(deadline).await?,
            }
        }
    }

    async fn try_take(&mut self, deadline: Deadline) -> Result<Result<Lease, Phase>, NotTaken> {
        if let Some(lease) = self.take_unseen(deadline).await? {
            return Ok(Ok(lease));
        }
        loop {
            let sights = self.hold()?.look(deadline).await?;
            match self.judge(&sights, deadline).await? {
                Some((Step::Take, view)) => {
                    if let Some(lease) = self.exchange(&view, deadline).await? {
                        return Ok(Ok(lease));
                    }
                }
                Some((Step::Wait { free }, _)) => return Ok(Err(Phase::Permits { free, asked: self.asked })),
                Some((Step::Never, view)) => return Err(self.too_many(&view)),
                None => {}
            }
        }
    }

    fn too_many(&self, view: &View) -> NotTaken {
        self.semaphore.too_many(self.asked, view.limit).into()
    }

    async fn lost(&self) -> NotTaken {
        match &*self.slot {
            Some(hold) => Error::Lost(hold.lost().await).into(),
            None => NotTaken::TurnLost,
        }
    }

    /// Takes without a look, where the head before this one has left a tally that shows room.
    async fn take_unseen(&mut self, deadline: Deadline) -> Result<Option<Lease>, NotTaken> {
        let Limit::Fixed(fixed) = &self.semaphore.limit else { return Ok(None) };
        let left = self.hold()?.told::<Tally>().filter(|tally| tally.limit == fixed.permits());
        match left {
            Some(tally) if decide(tally.taken, tally.limit, self.asked) == Step::Take => {
                let Tally { taken, limit, continuity } = *tally;
                let view = View { taken, limit, terms: Terms::Nothing, continuity };
                self.exchange(&view, deadline).await
            }
            _ => Ok(None),
        }
    }

    /// What may be done; `None` when it has to be looked at again.
    async fn judge(&self, sights: &[Sight], deadline: Deadline) -> Result<Option<(Step, View)>, NotTaken> {
        let Self { semaphore, asked, .. } = *self;
        match View::of(&semaphore.limit, sights) {
            Ok(view) => Ok(Some((decide(view.taken, view.limit, asked), view))),
            Err(Unclear::Disagree { recorded }) => {
                let Limit::Fixed(fixed) = &semaphore.limit else { return Ok(None) };
                let (path, mine) = (semaphore.path.to_string(), fixed.permits());
                Err(Error::LimitsDisagree { path, mine, recorded }.into())
            }
            Err(Unclear::Unread) => {
                self.read_record(deadline).await?;
                Ok(None)
            }
            Err(Unclear::Failed(error)) => Err(error.into()),
        }
    }

    /// Finds out what limit is recorded. Only the head of the line writes it, and that is us.
    async fn read_record(&self, deadline: Deadline) -> Result<(), NotTaken> {
        let Limit::Fixed(fixed) = &self.semaphore.limit else { return Ok(()) };
        let znodes = self.semaphore.manager.znodes();
        let read = tokio::select! {
            biased;
            read = znodes.read(&self.semaphore.leases) => read,
            lost = self.lost() => return Err(lost),
            () = deadline.passed() => return Err(self.time_over(Phase::Answer, deadline)),
        };
        match read {
            Ok(Some((data, stat))) => fixed.saw(&data, &stat),
            Ok(None) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits until there is something else to see.
    async fn sleep(&self, changes: &mut Changes, free: usize, deadline: Deadline) -> Result<(), NotTaken> {
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost),
            () = changes.any() => Ok(()),
            () = deadline.passed() => {
                Err(self.time_over(Phase::Permits { free, asked: self.asked }, deadline))
            }
        }
    }

    fn time_over(&self, phase: Phase, deadline: Deadline) -> NotTaken {
        let path = self.semaphore.path.to_string();
        Error::Timeout { phase, path, waited: deadline.waited() }.into()
    }

    /// One transaction: the leases, what they rest on, and the end of the place in line. `None` when it was not
    /// committed, and has to be looked at again.
    async fn exchange(&mut self, view: &View, deadline: Deadline) -> Result<Option<Lease>, NotTaken> {
        let Self { semaphore, asked, .. } = *self;
        let Some(hold) = self.slot.take() else { return Err(NotTaken::TurnLost) };
        let leases = semaphore.leases_line.clone().node_data(semaphore.signed_data());
        let mut exchange = (0..asked).fold(hold.exchange(), |exchange, _| exchange.enter(&leases));
        if let (Limit::Fixed(_), Some(continuity)) = (&semaphore.limit, view.continuity.after(asked)) {
            exchange = exchange.telling(Tally { taken: view.taken + asked, limit: view.limit, continuity });
        }
        let begun = semaphore.manager.now();
        match semaphore.on_terms(exchange, view).commit(deadline).await {
            Ok(Exchanged { hold: Some(hold), is_fresh, sent }) => {
                if let (Terms::Record { .. }, Limit::Fixed(fixed)) = (view.terms, &semaphore.limit) {
                    fixed.forget();
                }
                // What was seen over an earlier connection may have been out of date; and by an earlier try, which may have
                // been the one, something else was seen.
                let is_certain = is_fresh && sent >= begun;
                self.keep(hold, view, is_certain, deadline).await.map(Some)
            }
            Ok(Exchanged { hold: None, .. }) => Err(NotTaken::TurnLost),
            Err(ExchangeError::NotDone { hold, refused }) => match refused {
                Some((path, refusal)) if !is_out_of_date(refusal) => {
                    Err(Error::Refused { operation: Operation::Commit, path, refusal }.into())
                }
                _ => {
                    *self.slot = Some(*hold);
                    Ok(None)
                }
            },
            Err(ExchangeError::Failed(error)) => Err(error.into()),
        }
    }

    /// Makes sure that the leases are within the limit; else gives them back.
    async fn keep(
        &self,
        mut hold: Hold,
        view: &View,
        is_certain: bool,
        deadline: Deadline,
    ) -> Result<Lease, NotTaken> {
        let names = hold.paths().filter_map(|path| NodeName::parse(path.rsplit('/').next()?));
        let own: Vec<NodeName> = names.collect();
        if own.len() < hold.width() {
            return Err(NotTaken::TurnLost);
        }
        if is_certain && view.continuity.is_proven_by(&own) {
            return Ok(Lease::new(hold));
        }
        let sights = hold.look(deadline).await?;
        let listed = match sights.first() {
            Some(Sight::Children { names, .. }) => names.as_slice(),
            _ => &[],
        };
        if keeps(&own, listed, view.limit) {
            return Ok(Lease::new(hold));
        }
        debug!(path = %self.semaphore.path, out = listed.len(), "a lease was made out of turn; giving ours back");
        Err(NotTaken::TurnLost)
    }
}

impl Semaphore {
    fn on_terms(&self, exchange: Exchange, view: &View) -> Exchange {
        let exchange = match view.continuity {
            Continuity::Next { version, .. } => exchange.check(&self.leases, version),
            Continuity::Unmarked => exchange.set(&self.leases, Vec::new(), 0),
            Continuity::Unknown => exchange,
        };
        match (view.terms, &self.limit) {
            (Terms::LimitIs { version }, Limit::Shared(shared)) => exchange.check(shared.path(), version),
            (Terms::Record { version }, Limit::Fixed(fixed)) => {
                exchange.set(&self.leases, fixed.record(), version)
            }
            _ => exchange,
        }
    }
}

/// Whether it says that something was written or removed since it was read.
fn is_out_of_date(refusal: Refusal) -> bool {
    refusal.is_transient() || matches!(refusal, Refusal::BadVersion | Refusal::NoNode)
}
