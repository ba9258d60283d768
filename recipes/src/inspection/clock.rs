use std::time::SystemTime;

use lockkeeper_core::{ConnectionManager, ManagerExt};

/// The present time by the clock of the servers, in milliseconds since 1970: as far as this session knows it,
/// and otherwise by the clock of this machine. Good for what people read, and for no decision.
pub(crate) fn estimated_time(manager: &ConnectionManager) -> i64 {
    manager.estimated_server_time().unwrap_or_else(|| {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    })
}
