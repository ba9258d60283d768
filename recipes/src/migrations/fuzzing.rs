use std::collections::BTreeMap;

use super::record::{RecordVerdict, name_of, position_of};

/// The records of steps: in each line the name of a node, a blank, and its data.
pub(crate) fn migration_records(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut records = BTreeMap::new();
    for (name, record) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let Some(position) = position_of(name) {
            assert_eq!(name_of(position), name);
            records.insert(position, record.to_owned());
        }
    }
    let steps: Vec<String> = (0..).map_while(|position| records.get(&position).cloned()).collect();
    let verdict = RecordVerdict::of(&records, &steps);
    let is_all = steps.len() == records.len();
    assert_eq!(matches!(verdict, RecordVerdict::Done(done) if done as usize == steps.len()), is_all);
    assert_eq!(matches!(verdict, RecordVerdict::Ahead { .. }), !is_all);
}
