//! The record of a step, and what the records say about the steps of a program: pure.

use std::collections::BTreeMap;

use lockkeeper_core::count_of;

/// The data of the record of a step.
pub(super) fn record_of(name: &str, version: u32) -> String {
    format!("{version} {name}")
}

/// The name of the node of the record at this position.
pub(super) fn name_of(position: u32) -> String {
    format!("{position:04}")
}

/// The position of a record, by the name of its node.
pub(super) fn position_of(name: &str) -> Option<u32> {
    let position = name.parse().ok()?;
    (name_of(position) == name).then_some(position)
}

/// What the records say about the steps of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordVerdict {
    /// So many steps are done, and the others are not.
    Done(u32),
    /// Another record is where a step of this program should be, or none is there although a later one is.
    Changed { position: u32, recorded: String },
    /// The first record behind the steps of this program.
    Ahead { position: u32, recorded: String },
}

impl RecordVerdict {
    /// `steps` are the records that the steps of the program would have.
    pub(super) fn of(records: &BTreeMap<u32, String>, steps: &[String]) -> Self {
        for (position, step) in (0..).zip(steps) {
            match records.get(&position) {
                Some(recorded) if recorded == step => {}
                Some(recorded) => return Self::Changed { position, recorded: format!("{recorded:?}") },
                None => {
                    return match records.range(position..).next() {
                        Some(_) => Self::Changed { position, recorded: "nothing".to_owned() },
                        None => Self::Done(position),
                    };
                }
            }
        }
        let steps = count_of(steps.len());
        match records.range(steps..).next() {
            Some((position, recorded)) => {
                Self::Ahead { position: *position, recorded: format!("{recorded:?}") }
            }
            None => Self::Done(steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_are_the_first_steps_in_their_order_or_something_is_wrong() {
        let steps = ["1 a", "1 b", "2 c"].map(str::to_owned);
        let verdict = |done: &[(u32, &str)]| {
            let records = done.iter().map(|(position, record)| (*position, (*record).to_owned()));
            RecordVerdict::of(&records.collect(), &steps)
        };
        let changed =
            |position, recorded: &str| RecordVerdict::Changed { position, recorded: recorded.to_owned() };
        assert_eq!(verdict(&[]), RecordVerdict::Done(0));
        assert_eq!(verdict(&[(0, "1 a"), (1, "1 b")]), RecordVerdict::Done(2));
        let all = [(0, "1 a"), (1, "1 b"), (2, "2 c")];
        assert_eq!(verdict(&all), RecordVerdict::Done(3));
        assert_eq!(verdict(&[(0, "1 a"), (1, "2 b")]), changed(1, "\"2 b\""));
        assert_eq!(verdict(&[(0, "1 b")]), changed(0, "\"1 b\""));
        assert_eq!(verdict(&[(0, "1 a"), (2, "2 c")]), changed(1, "nothing"));
        let ahead = [all.to_vec(), vec![(3, "1 d"), (4, "1 e")]].concat();
        assert_eq!(verdict(&ahead), RecordVerdict::Ahead { position: 3, recorded: "\"1 d\"".to_owned() });
    }

    #[test]
    fn a_position_has_one_name() {
        for position in [0, 7, 9_999, 10_000, u32::MAX] {
            assert_eq!(position_of(&name_of(position)), Some(position));
        }
        for other in ["", "7", "00007", "000a", "+007"] {
            assert_eq!(position_of(other), None, "{other}");
        }
    }
}
