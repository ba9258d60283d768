//! Which kinds of requests make the servers close the connection: pure.
//!
//! Some servers close the connection on a request that they do not know, without an answer. So connections
//! that break again and again at one kind of request mean that the servers do not know that kind. The counts
//! are those of a manager: a server may close the connection *and* replace the session each time.
//!
//! A connection may also break by chance, three times in a row at one kind. So a verdict is no knowledge, and
//! lapses after some time, to one more trial. If the connection of the trial breaks as well, the kind is not
//! sent for twice as long. An answer to a request of that kind shows that the servers know it.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::time::boot::BootInstant;

/// After this many broken connections in a row at one kind of request, the servers do not know that kind.
const HANG_UPS_MAX: u32 = 3;

/// How long a kind of request is not sent after the first verdict. Each later one holds for twice as long.
const FIRST_VERDICT: Duration = Duration::from_secs(600);

/// A kind of request that some servers do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    /// The create of a container.
    Container,
    /// The list of the session's own ephemeral nodes.
    OwnEphemerals,
    /// Several reads in one request.
    MultiRead,
    /// A watch that stays until it is removed.
    PathWatch,
}

impl Display for Suspect {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Container => "createContainer",
            Self::OwnEphemerals => "getEphemerals",
            Self::MultiRead => "multiRead",
            Self::PathWatch => "addWatch",
        })
    }
}

/// The broken connections of all sessions of a manager, for each kind of request, and the verdicts.
#[derive(Debug, Default)]
pub(crate) struct HangUps {
    container: HangUpCount,
    own_ephemerals: HangUpCount,
    multi_read: HangUpCount,
    path_watch: HangUpCount,
}

#[derive(Clone, Copy, Debug, Default)]
struct HangUpCount {
    /// Whether the last connection that carried this kind answered it.
    is_known: bool,
    /// The connections in a row that broke at this kind.
    broken: u32,
    /// Until then, no request of this kind is sent.
    verdict_until: Option<BootInstant>,
}

impl HangUps {
    /// A connection broke at this kind of request. Returns for how long the kind is not sent, if
    /// that is the proof against it.
    pub(super) fn broke(&mut self, suspect: Suspect, now: BootInstant) -> Option<Duration> {
        if self.is_cause(suspect, now) {
            // The request was sent before the verdict.
            return None;
        }
        let kind = self.kind_mut(suspect);
        kind.is_known = false;
        kind.broken = kind.broken.saturating_add(1);
        let lapsed = kind.broken.checked_sub(HANG_UPS_MAX)?;
        let holds_for = FIRST_VERDICT.saturating_mul(2_u32.saturating_pow(lapsed));
        kind.verdict_until = Some(now.after(holds_for));
        Some(holds_for)
    }

    /// The servers answered a request of this kind.
    pub(super) fn answered(&mut self, suspect: Suspect) {
        *self.kind_mut(suspect) = HangUpCount { is_known: true, ..HangUpCount::default() };
    }

    /// Whether this kind of request is the cause of broken connections.
    pub(super) fn is_cause(&self, suspect: Suspect, now: BootInstant) -> bool {
        self.kind(suspect).verdict_until.is_some_and(|until| now < until)
    }

    /// Whether the servers answered the last request of this kind.
    pub(super) fn is_known(&self, suspect: Suspect) -> bool {
        self.kind(suspect).is_known
    }

    fn kind(&self, suspect: Suspect) -> &HangUpCount {
        match suspect {
            Suspect::Container => &self.container,
            Suspect::OwnEphemerals => &self.own_ephemerals,
            Suspect::MultiRead => &self.multi_read,
            Suspect::PathWatch => &self.path_watch,
        }
    }

    fn kind_mut(&mut self, suspect: Suspect) -> &mut HangUpCount {
        match suspect {
            Suspect::Container => &mut self.container,
            Suspect::OwnEphemerals => &mut self.own_ephemerals,
            Suspect::MultiRead => &mut self.multi_read,
            Suspect::PathWatch => &mut self.path_watch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn at(seconds: u64) -> BootInstant {
        BootInstant::at(START + Duration::from_secs(seconds))
    }

    /// The verdict of three broken connections in a row, the last one at that instant.
    fn judged(now: BootInstant) -> HangUps {
        let mut hang_ups = HangUps::default();
        for _ in 1..HANG_UPS_MAX {
            assert_eq!(hang_ups.broke(Suspect::Container, now), None);
            assert!(!hang_ups.is_cause(Suspect::Container, now));
        }
        assert_eq!(hang_ups.broke(Suspect::Container, now), Some(FIRST_VERDICT));
        hang_ups
    }

    #[test]
    fn three_broken_connections_in_a_row_are_a_verdict_on_their_kind_alone() {
        let hang_ups = judged(at(0));
        assert!(hang_ups.is_cause(Suspect::Container, at(0)));
        for other in [Suspect::OwnEphemerals, Suspect::PathWatch] {
            assert!(!hang_ups.is_cause(other, at(0)));
        }
    }

    #[test]
    fn an_answer_begins_the_count_of_its_kind_anew_and_of_no_other() {
        let mut hang_ups = HangUps::default();
        for suspect in [Suspect::Container, Suspect::PathWatch] {
            for _ in 1..HANG_UPS_MAX {
                assert_eq!(hang_ups.broke(suspect, at(0)), None);
            }
        }
        hang_ups.answered(Suspect::Container);
        assert!(hang_ups.is_known(Suspect::Container) && !hang_ups.is_known(Suspect::PathWatch));
        assert_eq!(hang_ups.broke(Suspect::Container, at(1)), None);
        assert!(!hang_ups.is_known(Suspect::Container));
        assert!(hang_ups.broke(Suspect::PathWatch, at(1)).is_some());
    }

    #[test]
    fn a_verdict_lapses_to_a_trial_and_holds_for_twice_as_long_if_that_breaks_its_connection() {
        let mut hang_ups = judged(at(0));
        let mut judged_at = at(0);
        for times in [1, 2, 4, 8] {
            let lapses = judged_at.after(FIRST_VERDICT * times);
            assert!(hang_ups.is_cause(Suspect::Container, lapses.before(Duration::from_millis(1))));
            assert!(!hang_ups.is_cause(Suspect::Container, lapses));
            let again = hang_ups.broke(Suspect::Container, lapses);
            assert_eq!(again, Some(FIRST_VERDICT * times * 2), "one connection suffices");
            judged_at = lapses;
        }
    }

    #[test]
    fn an_answer_to_the_trial_ends_the_verdict_and_the_next_one_is_a_first_one() {
        let mut hang_ups = judged(at(0));
        assert!(hang_ups.broke(Suspect::Container, at(600)).is_some());
        hang_ups.answered(Suspect::Container);
        assert!(!hang_ups.is_cause(Suspect::Container, at(600)));
        for _ in 1..HANG_UPS_MAX {
            assert_eq!(hang_ups.broke(Suspect::Container, at(601)), None);
        }
        assert_eq!(hang_ups.broke(Suspect::Container, at(601)), Some(FIRST_VERDICT));
    }

    #[test]
    fn what_was_sent_before_a_verdict_does_not_prolong_it() {
        let mut hang_ups = judged(at(0));
        assert_eq!(hang_ups.broke(Suspect::Container, at(1)), None);
        assert!(!hang_ups.is_cause(Suspect::Container, at(600)));
        assert_eq!(hang_ups.broke(Suspect::Container, at(600)), Some(FIRST_VERDICT * 2));
    }

    #[test]
    fn no_number_of_trials_overflows() {
        let (mut hang_ups, mut now) = (judged(at(0)), at(0));
        for _ in 0..100 {
            let Some(until) = hang_ups.container.verdict_until else { panic!("{hang_ups:?}") };
            now = until.max(now);
            assert!(hang_ups.broke(Suspect::Container, now).is_none_or(|time| time > FIRST_VERDICT));
        }
    }
}
