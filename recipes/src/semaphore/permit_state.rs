//! What the head of the line makes of what it sees: pure.

use lockkeeper_core::{Error, ReadResult, Stat};

use super::continuity::Continuity;
use super::limit::{Fixed, Limit};

/// What the head of the line may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Take,
    /// Until something comes back, or the limit is raised.
    Wait {
        free: usize,
    },
    /// There are not so many in all.
    Never,
}

/// Decides on `asked` permits when `taken` of `limit` are out; more than all, after the limit was lowered.
pub(super) fn decide(taken: usize, limit: usize, asked: usize) -> Decision {
    let free = limit.saturating_sub(taken);
    match asked {
        _ if asked > limit => Decision::Never,
        _ if asked > free => Decision::Wait { free },
        _ => Decision::Take,
    }
}

/// What is out, and how many there are in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitState {
    /// All children of the leases' directory, be they whose they will: Curator counts them so.
    pub(super) taken: usize,
    pub(super) limit: usize,
    pub(super) terms: Terms,
    pub(super) continuity: Continuity,
}

/// What a grant rests on, beside the leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terms {
    /// Nothing else.
    Nothing,
    /// The shared limit's node is still of this version.
    LimitIs { version: i32 },
    /// Our limit is written into the directory, if it is still of this version.
    Record { version: i32 },
}

/// What keeps a view from being told.
#[derive(Debug)]
pub(super) enum NotReady {
    /// What the directory says of the limit has to be read.
    Unread,
    Disagree {
        recorded: usize,
    },
    Failed(Error),
}

impl PermitState {
    /// Reads what was seen of the leases, and behind that of the limit.
    pub(super) fn of(limit: &Limit, results: &[ReadResult]) -> Result<Self, NotReady> {
        let (taken, directory) = match results.first() {
            Some(ReadResult::Children { names, stat }) => (names.len(), Some(stat)),
            _ => (0, None),
        };
        let behind = results.get(1);
        match limit {
            Limit::Fixed(fixed) => {
                if let Some(ReadResult::Data { data, stat }) = behind {
                    fixed.saw(data, stat);
                }
                let terms = Self::terms(fixed, taken, directory)?;
                let continuity = match terms {
                    // Written by the exchange itself.
                    Terms::Record { .. } => Continuity::Unknown,
                    _ => Continuity::of(directory),
                };
                Ok(Self { taken, limit: fixed.permits(), terms, continuity })
            }
            Limit::Shared(shared) => match behind {
                Some(ReadResult::Data { data, stat }) => {
                    let limit = shared.decode(data).map_err(NotReady::Failed)?;
                    let (terms, continuity) =
                        (Terms::LimitIs { version: stat.version }, Continuity::of(directory));
                    Ok(Self { taken, limit, terms, continuity })
                }
                _ => Err(NotReady::Failed(shared.missing())),
            },
        }
    }

    fn terms(fixed: &Fixed, taken: usize, directory: Option<&Stat>) -> Result<Terms, NotReady> {
        // It will be made along with the leases.
        let Some(directory) = directory else { return Ok(Terms::Record { version: 0 }) };
        let record = Terms::Record { version: directory.version };
        match fixed.recorded(directory).ok_or(NotReady::Unread)? {
            Some(recorded) if recorded == fixed.permits() => Ok(Terms::Nothing),
            // Nobody holds by the other one any more.
            Some(_) if taken == 0 => Ok(record),
            Some(recorded) => Err(NotReady::Disagree { recorded }),
            None if directory.data_length == 0 => Ok(record),
            // Somebody else's data.
            None => Ok(Terms::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limit::encode;
    use super::*;

    #[test]
    fn permits_are_granted_all_at_once_or_not_at_all() {
        for (taken, limit, asked, step) in [
            (0, 1, 1, Decision::Take),
            (1, 1, 1, Decision::Wait { free: 0 }),
            (3, 4, 1, Decision::Take),
            (2, 4, 3, Decision::Wait { free: 2 }),
            (1, 4, 3, Decision::Take),
            // Lowered below what is out.
            (5, 4, 1, Decision::Wait { free: 0 }),
            (0, 4, 5, Decision::Never),
            (4, 4, 5, Decision::Never),
            (0, 0, 1, Decision::Never),
            (usize::MAX, 1, 1, Decision::Wait { free: 0 }),
        ] {
            assert_eq!(decide(taken, limit, asked), step, "{asked} of {limit} with {taken} out");
        }
    }

    fn stat(version: i32, data: &[u8]) -> Stat {
        Stat {
            czxid: 5,
            mzxid: 5,
            ctime: 0,
            mtime: 0,
            version,
            child_version: 8,
            ephemeral_owner: 0,
            data_length: i32::try_from(data.len()).unwrap(),
            children: 0,
        }
    }

    fn results(taken: usize, version: i32, data: &[u8]) -> Vec<ReadResult> {
        let stat = stat(version, data);
        let names = (0..taken).map(|number| number.to_string()).collect();
        vec![ReadResult::Children { names, stat }, ReadResult::Data { data: data.to_vec(), stat }]
    }

    #[test]
    fn fixed_limits_are_compared_while_permits_are_out() {
        let other = encode(3);
        for (taken, data, terms) in [
            (0, &b""[..], Some(Terms::Record { version: 1 })),
            // Curator's leases.
            (2, b"", Some(Terms::Record { version: 1 })),
            (2, &encode(4), Some(Terms::Nothing)),
            (0, &other, Some(Terms::Record { version: 1 })),
            (1, &other, None),
            (1, b"10.0.0.1", Some(Terms::Nothing)),
        ] {
            let limit = Limit::fixed(4).unwrap();
            match (PermitState::of(&limit, &results(taken, 1, data)), terms) {
                (Ok(state), Some(terms)) => {
                    assert_eq!((state.taken, state.limit, state.terms), (taken, 4, terms));
                    let is_told = matches!(state.continuity, Continuity::Next { number: 4, version: 1 });
                    assert_eq!(is_told, terms == Terms::Nothing);
                    // From now on the list of children tells it.
                    assert_eq!(PermitState::of(&limit, &results(taken, 1, data)[..1]).unwrap().terms, terms);
                }
                (Err(NotReady::Disagree { recorded: 3 }), None) => {}
                (other, _) => panic!("{taken} out, {data:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_known_of_the_limit_has_to_be_read() {
        let limit = Limit::fixed(4).unwrap();
        let data = encode(4);
        let seen = PermitState::of(&limit, &results(1, 1, &data)[..1]);
        assert!(matches!(seen, Err(NotReady::Unread)));
        assert!(PermitState::of(&limit, &results(1, 1, &data)).is_ok());
        assert!(matches!(PermitState::of(&limit, &results(1, 2, &data)[..1]), Err(NotReady::Unread)));
        // No directory: it is made, and written, in one go.
        let missing = PermitState::of(&limit, &[ReadResult::Missing, ReadResult::Missing]).unwrap();
        assert_eq!(
            missing,
            PermitState {
                continuity: Continuity::Unknown,
                taken: 0,
                limit: 4,
                terms: Terms::Record { version: 0 }
            }
        );
    }
}
