//! What a task does while it holds something.

use std::time::Duration;

use lockkeeper::Hold;
use lockkeeper::znodes::{TxnResult, Version};
use lockkeeper_test_recipes::{Grant, Granted, Share};
use rand::RngExt;

use super::errand::Errand;
use super::look::LOOK;
use crate::clock;
use crate::fixture::{SoakLock, path_of, register_of};
use crate::history::{Mode, Token, What};

/// One hold as it is reported in the history.
#[derive(Clone, Debug)]
struct Reported {
    number: u64,
    soak_lock: &'static SoakLock,
    mode: Mode,
}

impl Errand {
    /// Holds it for a while, and converts, drops or releases it.
    pub(super) async fn keep(&mut self, soak_locks: &[&'static SoakLock], attempt: u64, mut grant: Granted) {
        loop {
            let reported = self.tell(soak_locks, attempt, &*grant);
            let stayed = self.stay(&*grant, &reported).await;
            if !stayed && self.common.cheats {
                // Claimed for a long time yet.
                return;
            }
            reported.iter().for_each(|reported| self.say(What::Ended { hold: reported.number }));
            if grant.can_convert() && self.rng.random_bool(0.25) {
                match self.common.quiet.run_until_cancelled(grant.convert()).await {
                    Some(Ok(Some(converted))) => grant = converted,
                    Some(Err(error)) => return self.failed(attempt, &error).await,
                    Some(Ok(None)) | None => return,
                }
            } else if self.rng.random_bool(0.2) {
                return drop(grant);
            } else {
                let Some(released) = self.common.quiet.run_until_cancelled(grant.release()).await else {
                    return;
                };
                let outcome = released.map_or_else(|error| error.to_string(), |()| "released".to_owned());
                return reported.iter().for_each(|reported| {
                    self.say(What::Released { hold: reported.number, outcome: outcome.clone() });
                });
            }
        }
    }

    fn tell(&self, soak_locks: &[&'static SoakLock], attempt: u64, grant: &dyn Grant) -> Vec<Reported> {
        let mut all = Vec::new();
        for (claim, hold) in grant.claims().into_iter().zip(grant.holds()) {
            let at = |soak_lock: &&&SoakLock| claim.directory().starts_with(&path_of(soak_lock));
            let Some(soak_lock) = soak_locks.iter().find(at).copied() else { continue };
            let mode = match claim.share {
                Share::Exclusive => Mode::Alone,
                Share::Shared => Mode::Reading,
                Share::Permits { permits, .. } => Mode::Permits(permits),
            };
            let number = self.common.journal.number();
            self.say(What::Granted {
                attempt,
                hold: number,
                lock: soak_lock.name.to_owned(),
                mode,
                token: self.token(hold),
                nodes: claim.nodes,
            });
            if let Some(due) = grant.due_slot() {
                self.say(What::Due { hold: number, slot: due.slot });
            }
            all.push(Reported { number, soak_lock, mode });
        }
        all
    }

    fn token(&self, hold: &Hold) -> Token {
        let token = Token::from(hold.fencing_token());
        // As if nothing had been handed over.
        if self.common.cheats { Token { handover: 0, ..token } } else { token }
    }

    /// Looks at the guard and writes with it, until its time is up or it is lost; whether it was valid to the
    /// end.
    async fn stay(&mut self, grant: &dyn Grant, reported: &[Reported]) -> bool {
        let span = match self.rng.random_range(0..100) {
            0..85 => self.rng.random_range(5..40),
            85..97 => self.rng.random_range(100..400),
            _ => self.rng.random_range(1_000..2_500),
        };
        let end = clock::now() + span * 1_000_000;
        let mut written = false;
        loop {
            if !self.look(grant, reported).await {
                return false;
            }
            let left = Duration::from_nanos(end.saturating_sub(clock::now()));
            if !written || left.is_zero() && self.rng.random_bool(0.3) {
                written = true;
                self.write(grant, reported).await;
                continue;
            }
            if left.is_zero() || self.common.quiet.is_cancelled() {
                return true;
            }
            let holds = grant.holds();
            tokio::select! {
                () = self.rest(left.min(LOOK)) => {}
                lost = Hold::lost_any(&holds) => if let Some(reported) = reported.first()
                    && holds.iter().all(|hold| hold.is_valid())
                {
                    let text = format!("lost() says {lost}, is_valid() says true");
                    self.say(What::Contradiction { hold: reported.number, text });
                }
            }
        }
    }

    /// Writes down whether each hold is valid; whether all are.
    async fn look(&self, grant: &dyn Grant, reported: &[Reported]) -> bool {
        let mut valid = true;
        for (reported, hold) in reported.iter().zip(grant.holds()) {
            valid &= self.common.look(self.task, reported.number, hold).await;
        }
        valid
    }

    /// Writes the registers, as a holder may.
    async fn write(&mut self, grant: &dyn Grant, reported: &[Reported]) {
        for (reported, hold) in reported.iter().zip(grant.holds()) {
            if reported.mode == Mode::Alone {
                self.commit(hold, reported).await;
            }
            if !matches!(reported.mode, Mode::Permits(_)) {
                let (token, reading) = (self.token(hold), reported.mode == Mode::Reading);
                let Ok(accepted) = self.common.fenced.stamp(reported.soak_lock.name, token, reading).await
                else {
                    return;
                };
                let at = clock::now();
                let what = What::Stamped { hold: reported.number, accepted, valid: hold.is_valid() };
                self.common.journal.say_at(at, self.task, what);
            }
        }
        let Some(Reported { number: hold, soak_lock, .. }) = reported.first().cloned() else { return };
        match grant.acquire_again(self.target(soak_lock, None)).await {
            Ok(None) => {}
            Ok(Some(token)) => self.say(What::Again { hold, token: token.into() }),
            Err(error) => self.say(What::Uncommitted { hold, why: error.to_string() }),
        }
    }

    async fn commit(&self, hold: &Hold, Reported { number, soak_lock, .. }: &Reported) {
        let data = self.token(hold).to_string();
        let commit = hold.txn().set(register_of(soak_lock), data, Version::Any).commit();
        let outcome = match tokio::time::timeout(self.common.session, commit).await {
            Ok(Ok(results)) => match results.first() {
                Some(TxnResult::Written { version, .. }) => Ok(*version),
                other => Err(format!("{other:?}")),
            },
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no answer".to_owned()),
        };
        self.say(match outcome {
            Ok(version) => What::Committed { hold: *number, version },
            Err(why) => What::Uncommitted { hold: *number, why },
        });
    }
}
