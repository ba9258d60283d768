//! The decision of the head of the queue, from the results of its reads: pure.

use lockkeeper_core::{Error, ReadResult, Stat, count_of};

use super::continuity::Continuity;
use super::limit::{Fixed, PermitLimit};

/// The decision of the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PermitDecision {
    Take,
    /// Wait until permits are released, or the limit is raised.
    Wait {
        free: u32,
    },
    /// Fail: the limit is lower than the request.
    Never,
}

/// Decides on `asked` permits when `taken` of `limit` are in use. More than `limit` are in use after it was
/// lowered.
pub(super) fn decide(taken: u32, limit: u32, asked: u32) -> PermitDecision {
    let free = limit.saturating_sub(taken);
    match asked {
        _ if asked > limit => PermitDecision::Never,
        _ if asked > free => PermitDecision::Wait { free },
        _ => PermitDecision::Take,
    }
}

/// What a look at the queue and at the permits shows to a process that keeps some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentionSeen {
    /// No other contender is in the queue.
    None,
    /// Another contender can take permits that are free, and leave.
    Transient,
    /// Another contender waits for permits that are in use.
    Waits,
    /// More permits are in use than the limit allows.
    Exceeded,
}

/// Judges whether another contender waits. `has_waited` is whether it has been in the queue for longer than
/// it takes to take free permits; `None` without another contender. What is not known counts as contention.
pub(super) fn contention(
    has_waited: Option<bool>,
    in_use: Option<u32>,
    limit: Option<u32>,
) -> ContentionSeen {
    let Some(limit) = limit else { return ContentionSeen::Exceeded };
    match (has_waited, in_use) {
        (_, Some(in_use)) if in_use > limit => ContentionSeen::Exceeded,
        (None, Some(_)) => ContentionSeen::None,
        (Some(false), Some(in_use)) if in_use < limit => ContentionSeen::Transient,
        _ => ContentionSeen::Waits,
    }
}

/// The permits in use, and the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PermitState {
    /// The number of children of the leases' directory. The children of every client count, as in
    /// Curator.
    pub(super) taken: u32,
    pub(super) limit: u32,
    pub(super) condition: GrantCondition,
    pub(super) continuity: Continuity,
}

/// What a grant depends on, beside the leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GrantCondition {
    /// Nothing more.
    Nothing,
    /// The node of the shared limit still has this version.
    LimitIs { version: i32 },
    /// Our limit is written into the directory, if that still has this version.
    Record { version: i32 },
}

/// The payload of a hand-off to the next head of this process: an upper bound of the permits in use. It holds
/// if the next lease has the sequence number that [`Continuity`] predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PermitCount {
    pub(super) taken: u32,
    pub(super) limit: u32,
    pub(super) continuity: Continuity,
}

impl PermitCount {
    /// The state that the next head takes permits by, without a read.
    pub(super) fn state(self) -> PermitState {
        let Self { taken, limit, continuity } = self;
        PermitState { taken, limit, condition: GrantCondition::Nothing, continuity }
    }
}

/// The reason why the state is not known.
#[derive(Debug)]
pub(super) enum NotReady {
    /// The limit that the directory records must be read.
    Unread,
    Disagree {
        recorded: u32,
    },
    Failed(Error),
}

impl PermitState {
    /// Makes the state from a read of the leases, and a read of the limit behind it.
    pub(super) fn of(limit: &PermitLimit, results: &[ReadResult]) -> Result<Self, NotReady> {
        let (taken, directory) = match results.first() {
            Some(ReadResult::Children { names, stat }) => (count_of(names.len()), Some(stat)),
            _ => (0, None),
        };
        let behind = results.get(1);
        match limit {
            PermitLimit::Fixed(fixed) => {
                if let Some(ReadResult::Data { data, stat }) = behind {
                    fixed.saw(data, stat);
                }
                let condition = Self::condition(fixed, taken, directory)?;
                let continuity = match condition {
                    // The exchange itself writes it.
                    GrantCondition::Record { .. } => Continuity::Unknown,
                    _ => Continuity::of(directory),
                };
                Ok(Self { taken, limit: fixed.permits(), condition, continuity })
            }
            PermitLimit::Shared(shared) => match behind {
                Some(ReadResult::Data { data, stat }) => {
                    let limit = shared.decode(data).map_err(NotReady::Failed)?;
                    let (condition, continuity) =
                        (GrantCondition::LimitIs { version: stat.version }, Continuity::of(directory));
                    Ok(Self { taken, limit, condition, continuity })
                }
                _ => Err(NotReady::Failed(shared.missing())),
            },
        }
    }

    /// The payload for the next head, after `asked` more permits are taken.
    pub(super) fn count_after(&self, asked: u32) -> Option<PermitCount> {
        let continuity = self.continuity.after(asked)?;
        Some(PermitCount { taken: self.taken + asked, limit: self.limit, continuity })
    }

    fn condition(fixed: &Fixed, taken: u32, directory: Option<&Stat>) -> Result<GrantCondition, NotReady> {
        // The transaction creates it, with the leases.
        let Some(directory) = directory else { return Ok(GrantCondition::Record { version: 0 }) };
        let record = GrantCondition::Record { version: directory.version };
        match fixed.recorded(directory).ok_or(NotReady::Unread)? {
            Some(recorded) if recorded == fixed.permits() => Ok(GrantCondition::Nothing),
            // No permit is in use under the other limit any more.
            Some(_) if taken == 0 => Ok(record),
            Some(recorded) => Err(NotReady::Disagree { recorded }),
            None if directory.data_length == 0 => Ok(record),
            // Data of a foreign client.
            None => Ok(GrantCondition::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoding::encode;
    use super::*;
    use lockkeeper_core::Zxid;

    #[test]
    fn permits_are_granted_all_at_once_or_not_at_all() {
        for (taken, limit, asked, step) in [
            (0, 1, 1, PermitDecision::Take),
            (1, 1, 1, PermitDecision::Wait { free: 0 }),
            (3, 4, 1, PermitDecision::Take),
            (2, 4, 3, PermitDecision::Wait { free: 2 }),
            (1, 4, 3, PermitDecision::Take),
            // The limit was lowered below the number in use.
            (5, 4, 1, PermitDecision::Wait { free: 0 }),
            (0, 4, 5, PermitDecision::Never),
            (4, 4, 5, PermitDecision::Never),
            (0, 0, 1, PermitDecision::Never),
            (u32::MAX, 1, 1, PermitDecision::Wait { free: 0 }),
        ] {
            assert_eq!(decide(taken, limit, asked), step, "{asked} of {limit} with {taken} out");
        }
    }

    #[test]
    fn a_contender_waits_if_no_permit_is_free_or_if_it_stays() {
        for (has_waited, in_use, limit, seen) in [
            (None, Some(4), Some(4), ContentionSeen::None),
            (Some(false), Some(3), Some(4), ContentionSeen::Transient),
            (Some(false), Some(4), Some(4), ContentionSeen::Waits),
            // It asks for more permits than are free.
            (Some(true), Some(3), Some(4), ContentionSeen::Waits),
            (Some(false), None, Some(4), ContentionSeen::Waits),
            (None, None, Some(4), ContentionSeen::Waits),
            (None, Some(5), Some(4), ContentionSeen::Exceeded),
            (Some(true), Some(5), Some(4), ContentionSeen::Exceeded),
            (None, Some(0), None, ContentionSeen::Exceeded),
        ] {
            assert_eq!(
                contention(has_waited, in_use, limit),
                seen,
                "{has_waited:?}, {in_use:?} of {limit:?}"
            );
        }
    }

    fn stat(version: i32, data: &[u8]) -> Stat {
        Stat {
            czxid: Zxid::new(5),
            mzxid: Zxid::new(5),
            pzxid: Zxid::new(5),
            ctime: 0,
            mtime: 0,
            version,
            child_version: 8,
            ephemeral_owner: 0,
            data_length: i32::try_from(data.len()).unwrap(),
            children: 0,
        }
    }

    fn results(taken: u32, version: i32, data: &[u8]) -> Vec<ReadResult> {
        let stat = stat(version, data);
        let names = (0..taken).map(|number| number.to_string()).collect();
        vec![ReadResult::Children { names, stat }, ReadResult::Data { data: data.to_vec(), stat }]
    }

    #[test]
    fn fixed_limits_are_compared_while_permits_are_out() {
        let other = encode(3);
        for (taken, data, condition) in [
            (0, &b""[..], Some(GrantCondition::Record { version: 1 })),
            // Curator's leases.
            (2, b"", Some(GrantCondition::Record { version: 1 })),
            (2, &encode(4), Some(GrantCondition::Nothing)),
            (0, &other, Some(GrantCondition::Record { version: 1 })),
            (1, &other, None),
            (1, b"10.0.0.1", Some(GrantCondition::Nothing)),
        ] {
            let limit = PermitLimit::fixed(4).unwrap();
            match (PermitState::of(&limit, &results(taken, 1, data)), condition) {
                (Ok(state), Some(condition)) => {
                    assert_eq!((state.taken, state.limit, state.condition), (taken, 4, condition));
                    let is_told = matches!(state.continuity, Continuity::Next { number: 4, version: 1 });
                    assert_eq!(is_told, condition == GrantCondition::Nothing);
                    // From now on the list of children shows it.
                    assert_eq!(
                        PermitState::of(&limit, &results(taken, 1, data)[..1]).unwrap().condition,
                        condition
                    );
                }
                (Err(NotReady::Disagree { recorded: 3 }), None) => {}
                (other, _) => panic!("{taken} out, {data:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_known_of_the_limit_has_to_be_read() {
        let limit = PermitLimit::fixed(4).unwrap();
        let data = encode(4);
        let seen = PermitState::of(&limit, &results(1, 1, &data)[..1]);
        assert!(matches!(seen, Err(NotReady::Unread)));
        assert!(PermitState::of(&limit, &results(1, 1, &data)).is_ok());
        assert!(matches!(PermitState::of(&limit, &results(1, 2, &data)[..1]), Err(NotReady::Unread)));
        // No directory: one transaction creates and writes it.
        let missing = PermitState::of(&limit, &[ReadResult::Missing, ReadResult::Missing]).unwrap();
        assert_eq!(
            missing,
            PermitState {
                continuity: Continuity::Unknown,
                taken: 0,
                limit: 4,
                condition: GrantCondition::Record { version: 0 }
            }
        );
    }
}
