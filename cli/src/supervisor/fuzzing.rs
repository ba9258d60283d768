use super::message::{Order, Report};
use super::process_stat::ProcessStat;

/// What the command and the supervisor send each other, and what `/proc` says of a process.
pub(crate) fn messages(data: &[u8]) {
    if let Ok(order) = serde_json::from_slice::<Order>(data) {
        let written = serde_json::to_string(&order).unwrap_or_default();
        let again =
            serde_json::from_str::<Order>(&written).ok().and_then(|again| serde_json::to_string(&again).ok());
        assert_eq!(again, Some(written));
        if let Order::Start { lease_end, .. } | Order::Extend { lease_end } = order {
            assert!(lease_end.before(std::time::Duration::from_secs(1)) <= lease_end);
        }
    }
    if let Ok(report) = serde_json::from_slice::<Report>(data) {
        let written = serde_json::to_vec(&report).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<Report>(&written).ok(), Some(report));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        ProcessStat::parse(text);
        // The name of a program may have any characters, and changes nothing behind it.
        let stat = ProcessStat::parse("42 (cat) S 7 42 41 0 -1");
        let name: String = text.chars().filter(|c| *c != '\0').collect();
        assert_eq!(ProcessStat::parse(&format!("42 ({name}) S 7 42 41 0 -1")), stat);
    }
}
