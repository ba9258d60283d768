//! Owners of one manager that wait for each other: pure.

use std::collections::VecDeque;

use lockkeeper_core::ZnodePath;
use lockkeeper_lock::OwnerId;

use super::side::Side;

/// An owner that waits for one side of a path, and what it holds meanwhile.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    pub(super) owner: OwnerId,
    pub(super) path: &'a ZnodePath,
    pub(super) side: Side,
    pub(super) holds: Vec<(ZnodePath, Side)>,
}

impl Waiter<'_> {
    /// Whether the other owner holds what this one waits for. Two readers share a path.
    fn waits_for(&self, other: &Self) -> bool {
        let blocks = |(path, side): &(ZnodePath, Side)| {
            path == self.path && (self.side == Side::Write || *side == Side::Write)
        };
        self.owner != other.owner && other.holds.iter().any(blocks)
    }
}

/// The shortest circle of waiters that begins with the waiter `first`: each one waits for the next one, and
/// the last one for the first one.
pub(super) fn circle(waiters: &[Waiter<'_>], first: usize) -> Option<Vec<usize>> {
    let mut reached_from: Vec<Option<usize>> = vec![None; waiters.len()];
    let mut to_visit = VecDeque::from([first]);
    while let Some(at) = to_visit.pop_front() {
        let waiter = waiters.get(at)?;
        for (next, _) in waiters.iter().enumerate().filter(|(_, other)| waiter.waits_for(other)) {
            if next == first {
                let mut circle: Vec<usize> =
                    std::iter::successors(Some(at), |at| reached_from.get(*at).copied().flatten()).collect();
                circle.reverse();
                return Some(circle);
            }
            if let Some(from) = reached_from.get_mut(next).filter(|from| from.is_none()) {
                *from = Some(at);
                to_visit.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Owner;
    use super::*;

    type Row = (usize, &'static str, Side, &'static [(&'static str, Side)]);

    fn find(rows: &[Row], first: usize) -> Option<Vec<usize>> {
        let owners: Vec<Owner> = (0..10).map(|_| Owner::new("")).collect();
        let paths: Vec<ZnodePath> = rows.iter().map(|row| row.1.parse().unwrap()).collect();
        let waiters: Vec<Waiter<'_>> = rows
            .iter()
            .zip(&paths)
            .map(|((owner, _, side, holds), path)| Waiter {
                owner: owners[*owner].id(),
                path,
                side: *side,
                holds: holds.iter().map(|(path, side)| (path.parse().unwrap(), *side)).collect(),
            })
            .collect();
        circle(&waiters, first)
    }

    #[test]
    fn a_chain_is_no_circle_and_two_opposite_waits_are_one() {
        use Side::Write;
        let chain: &[Row] = &[(0, "/b", Write, &[("/a", Write)]), (1, "/c", Write, &[("/b", Write)])];
        assert_eq!(find(chain, 0), None);
        assert_eq!(find(chain, 1), None);
        let two: &[Row] = &[(0, "/b", Write, &[("/a", Write)]), (1, "/a", Write, &[("/b", Write)])];
        assert_eq!(find(two, 1), Some(vec![1, 0]));
    }

    #[test]
    fn a_waiter_into_a_circle_is_not_part_of_it() {
        use Side::Write;
        let rows: &[Row] = &[
            (0, "/b", Write, &[("/a", Write)]),
            (1, "/c", Write, &[("/b", Write)]),
            (2, "/a", Write, &[("/c", Write)]),
            (3, "/a", Write, &[("/d", Write)]),
        ];
        assert_eq!(find(rows, 2), Some(vec![2, 0, 1]));
        assert_eq!(find(rows, 3), None);
    }

    #[test]
    fn readers_do_not_wait_for_readers_nor_an_owner_for_itself() {
        use Side::{Read, Write};
        let readers: &[Row] = &[(0, "/b", Read, &[("/a", Write)]), (1, "/a", Write, &[("/b", Read)])];
        assert_eq!(find(readers, 0), None);
        let own: &[Row] = &[(0, "/b", Write, &[("/a", Write)]), (0, "/a", Write, &[("/b", Write)])];
        assert_eq!(find(own, 0), None);
    }
}
