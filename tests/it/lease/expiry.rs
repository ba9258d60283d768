//! The instant at which a leader expired a session, by its own log.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockkeeper::BootInstant;
use lockkeeper_tests::Ensemble;

const DAY: u64 = 86_400_000;

/// The instant at which the first server, except one, decided that `session` has expired. It is at most a
/// millisecond early, the resolution of the log; the log's clock is UTC by a setting of the
/// [fixture](super::fixture).
pub(super) fn expired_at(ensemble: &Ensemble, session: i64, but: usize) -> Option<BootInstant> {
    let servers = ensemble.servers().iter().filter(|server| server.index() != but);
    let logs = servers.map(|server| fs::read_to_string(server.log_file()).unwrap_or_default());
    let lines: Vec<String> =
        logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let sign = format!("Expiring session 0x{session:x},");
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()? % DAY;
    let boot = BootInstant::now();
    let ages = lines
        .iter()
        .filter(|line| line.contains(&sign))
        .filter_map(|line| Some(DAY + now - time_of_day(line)?));
    Some(boot.before(Duration::from_millis(ages.map(|age| age % DAY).max()?)))
}

/// The milliseconds of `12:34:56.789 …`.
fn time_of_day(line: &str) -> Option<u64> {
    let (time, _) = line.split_once(' ')?;
    let (clock, milliseconds) = time.split_once('.')?;
    let seconds = clock.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    Some(seconds * 1000 + milliseconds.parse::<u64>().ok()?)
}
