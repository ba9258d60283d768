//! What `tests/fuzz` runs on random bytes: the decoders of the recipes. No part of the API.

use crate::counter::fuzzing::numbers;
#[cfg(feature = "discovery")]
use crate::discovery::fuzzing::{instances, uri_specs};
use crate::group::fuzzing::group_members;
use crate::migrations::fuzzing::migration_records;
use crate::rate_limiter::fuzzing::windows;
use crate::schedule::fuzzing::slot_records;
use crate::semaphore::fuzzing::limits;
use crate::survey::fuzzing::directories;
use crate::table::fuzzing::table_entries;
use crate::value::LatchState;
use crate::value::SharedData;
use crate::work_queue::fuzzing::{queue_items, queue_names};

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("queue_items", queue_items),
    ("queue_names", queue_names),
    ("table_entries", table_entries),
    ("slot_records", slot_records),
    ("migration_records", migration_records),
    ("windows", windows),
    ("values", values),
    ("group_members", group_members),
    ("directories", directories),
    #[cfg(feature = "discovery")]
    ("instances", instances),
    #[cfg(feature = "discovery")]
    ("uri_specs", uri_specs),
];

/// The data of the nodes with one value: counters, limits, shared values, latches.
fn values(data: &[u8]) {
    numbers(data);
    limits(data);
    round_trip::<i32>(data);
    round_trip::<i64>(data);
    round_trip::<String>(data);
    round_trip::<Vec<u8>>(data);
    round_trip::<LatchState>(data);
}

fn round_trip<V: SharedData + PartialEq + std::fmt::Debug>(data: &[u8]) {
    let Ok(Some(value)) = V::decode(data) else { return };
    assert_eq!(V::decode(&value.encode()).ok(), Some(Some(value)));
}

#[cfg(test)]
#[path = "../../tests/fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_inputs_of_recipes_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
