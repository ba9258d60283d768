//! The proof that no lease was made out of turn, and the rule for the case without that proof: pure.
//!
//! Only the head of the queue makes leases, with one exception. If a session of Curator's client ends while
//! its create is in flight, the client sends the create again in its next session, although its node in the
//! queue was deleted with the earlier one. So permits that were free in the head's list may be taken when the
//! exchange is committed.
//!
//! The server numbers the leases by the directory's counter of children. If the first new lease has the
//! number that the list promised, no other lease was made between the list and the exchange. With any other
//! number the taker lists again, while its leases exist, as Curator does. Curator keeps its lease if that
//! list has no more leases than the limit. We keep ours if they are among the first leases, as many as the
//! limit says. That is safe: of several holders at one time, take the one whose lease was made last. The
//! leases of all other holders existed before, and still exist, so its list had all of them. It holds, so
//! there were no more than the limit allows.
//!
//! A taker that does not keep its leases deletes them, and waits without any. So no two takers wait for each
//! other.

use lockkeeper_core::{NodeName, Stat, count_of};

/// The facts that prove that no lease was made between a list and an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Continuity {
    /// The number of the next lease, in a directory of this version.
    Next { number: i32, version: i32 },
    /// No proof yet: the directory could be removed when empty, and made again with numbers from 0. After its
    /// first write the version is the proof: only the head of the queue writes the directory.
    Unmarked,
    /// No proof.
    Unknown,
}

impl Continuity {
    /// The proof that a listed directory gives.
    pub(super) fn of(directory: Option<&Stat>) -> Self {
        let Some(directory) = directory else { return Self::Unmarked };
        match (directory.version, directory.data_length) {
            (0, 0) => Self::Unmarked,
            // Data of a foreign client.
            (0, _) => Self::Unknown,
            (version, _) => Self::Next { number: directory.children_made(), version },
        }
    }

    /// The proof after `made` more leases.
    pub(super) fn after(self, made: u32) -> Option<Self> {
        let Self::Next { number, version } = self else { return None };
        Some(Self::Next { number: number.checked_add(i32::try_from(made).ok()?)?, version })
    }

    /// Whether no lease was made between the list and the exchange that made these.
    pub(super) fn is_proven_by(self, leases: &[NodeName]) -> bool {
        let Some(first) = leases.iter().map(NodeName::sequence).min() else { return false };
        let is_ordered = leases.iter().all(NodeName::has_ordered_sequence);
        // The first leases of a directory have no others before them.
        let is_next = first == 0 || matches!(self, Self::Next { number, .. } if number == first);
        is_ordered && is_next
    }
}

/// Whether a taker keeps its leases, by a list that was read after they were made.
pub(super) fn keeps(own: &[NodeName], listed: &[String], limit: u32) -> bool {
    if !own.iter().all(|lease| listed.iter().any(|name| name == lease.as_str())) {
        return false;
    }
    if count_of(listed.len()) <= limit {
        return true;
    }
    let is_ordered = own.iter().all(NodeName::has_ordered_sequence);
    let Some(last) = own.iter().map(NodeName::sequence).max().filter(|_| is_ordered) else { return false };
    // A child that may have been made before counts, and so does one without an ordered number.
    let is_later = |name: &&String| {
        NodeName::parse(name).is_some_and(|name| name.has_ordered_sequence() && name.sequence() > last)
    };
    count_of(listed.len() - listed.iter().filter(is_later).count()) <= limit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use lockkeeper_core::Zxid;

    use super::*;

    fn lease(number: i32) -> NodeName {
        NodeName::parse(&format!("_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lease-{number:010}")).unwrap()
    }

    fn names(numbers: &[i32]) -> Vec<String> {
        numbers.iter().map(|number| lease(*number).as_str().to_owned()).collect()
    }

    fn directory(version: i32, data_length: i32, child_version: i32, children: i32) -> Stat {
        let (czxid, mzxid, pzxid) = (Zxid::new(5), Zxid::new(5), Zxid::new(5));
        let (ctime, mtime, ephemeral_owner) = (0, 0, 0);
        Stat {
            czxid,
            mzxid,
            pzxid,
            ctime,
            mtime,
            version,
            child_version,
            ephemeral_owner,
            data_length,
            children,
        }
    }

    #[test]
    fn the_number_of_a_lease_tells_that_none_was_made_since_the_list() {
        // Seven made, five deleted.
        let listed = Continuity::of(Some(&directory(1, 4, 12, 2)));
        assert_eq!(listed, Continuity::Next { number: 7, version: 1 });
        assert!(listed.is_proven_by(&[lease(7), lease(8)]));
        assert!(!listed.is_proven_by(&[lease(8), lease(9)]));
        assert!(!listed.is_proven_by(&[lease(6)]));
        assert_eq!(listed.after(2), Some(Continuity::Next { number: 9, version: 1 }));
    }

    #[test]
    fn in_a_directory_that_nobody_wrote_only_the_very_first_lease_tells() {
        for nothing in [None, Some(directory(0, 0, 14, 0)), Some(directory(0, 8, 14, 0))] {
            let nothing = Continuity::of(nothing.as_ref());
            assert!(nothing.is_proven_by(&[lease(0), lease(1)]));
            assert!(!nothing.is_proven_by(&[lease(7)]), "{nothing:?}");
            assert_eq!(nothing.after(1), None);
        }
    }

    #[test]
    fn where_numbers_end_they_tell_nothing() {
        let last = Continuity::Next { number: i32::MAX, version: 1 };
        assert!(!last.is_proven_by(&[lease(i32::MAX)]));
        assert!(last.after(1).is_none());
        assert!(keeps(&[lease(i32::MAX)], &names(&[i32::MAX, 4]), 2));
        assert!(!keeps(&[lease(i32::MAX)], &names(&[i32::MAX, 4]), 1));
        assert!(!keeps(&[lease(-5)], &names(&[-5, 4]), 1));
        assert!(!keeps(&[lease(4)], &names(&[4, i32::MAX]), 1));
    }

    #[test]
    fn leases_made_later_take_nothing_away_and_earlier_ones_do() {
        for (own, listed, limit, is_kept) in [
            (&[4][..], &[4][..], 1, true),
            (&[4], &[4, 5], 1, true),
            (&[4], &[3, 4], 1, false),
            (&[4], &[3, 4, 5], 2, true),
            (&[4, 5], &[3, 4, 5], 2, false),
            (&[4, 5], &[4, 5, 6], 2, true),
            // An own lease is missing.
            (&[4, 5], &[4], 2, false),
        ] {
            let own: Vec<NodeName> = own.iter().map(|number| lease(*number)).collect();
            assert_eq!(keeps(&own, &names(listed), limit), is_kept, "{own:?} of {listed:?}, limit {limit}");
        }
        let by_hand = [names(&[4]), vec!["no-number".to_owned()]].concat();
        assert!(!keeps(&[lease(4)], &by_hand, 1));
    }

    proptest! {
        /// Each taker lists at some time after its lease was made, while other leases are made and deleted.
        /// Curator keeps its lease by the count, we keep ours by the order.
        #[test]
        fn no_more_contenders_keep_a_lease_than_the_limit_in_any_order_of_lists(
            steps in prop::collection::vec((0usize..3, 0usize..6, any::<bool>()), 1..80),
            limit in 1u32..4,
        ) {
            let (mut next, mut out) = (0, Vec::<(i32, bool, bool)>::new());
            for (step, which, is_ours) in steps {
                match (step, which % out.len().max(1)) {
                    (0, _) => {
                        out.push((next, is_ours, false));
                        next += 1;
                    }
                    (1, at) if at < out.len() => {
                        let listed = names(&out.iter().map(|(number, ..)| *number).collect::<Vec<_>>());
                        let (number, is_ours, holds) = out[at];
                        let is_kept = match is_ours {
                            true => keeps(&[lease(number)], &listed, limit),
                            false => count_of(listed.len()) <= limit,
                        };
                        if is_kept || holds {
                            out[at].2 = true;
                        } else if is_ours {
                            out.remove(at);
                        }
                    }
                    (2, at) if at < out.len() => drop(out.remove(at)),
                    _ => {}
                }
                prop_assert!(count_of(out.iter().filter(|(_, _, holds)| *holds).count()) <= limit, "{out:?}");
            }
        }
    }
}
