//! What a session of this command sees: its timeout, the times of its requests, and the clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockkeeper::znodes::CreateMode;
use lockkeeper::{BootInstant, ConnectionManager, Error};

use super::finding::Finding;
use crate::exit::Failure;

/// The number of requests of each kind that are timed.
const ROUNDS: usize = 5;

/// A difference of clocks that is worth a word.
const CLOCK_MAX: Duration = Duration::from_secs(2);

pub(super) async fn examine(manager: &ConnectionManager, asked: Duration) -> Result<Vec<Finding>, Failure> {
    let granted = manager.session_timeout();
    let mut findings = vec![negotiated(asked, granted)];
    let mut reads = Vec::new();
    for _ in 0..ROUNDS {
        let sent = BootInstant::now();
        manager.znodes().read("/").await?;
        reads.push(BootInstant::now().since(sent));
    }
    findings.push(time("a read takes", median(&mut reads), granted));
    let path = format!("/lockkeeper-doctor-{}", std::process::id());
    match write(manager, &path).await {
        Ok((mut writes, offset)) => {
            findings.push(time("a write, which confirms a session, takes", median(&mut writes), granted));
            findings.push(clock(offset));
        }
        Err(error @ Error::Refused { .. }) => findings.push(Finding::warn(
            format_args!("no write was timed: {error}"),
            "this needs the right CREATE at the chroot",
        )),
        Err(error) => return Err(error.into()),
    }
    Ok(findings)
}

/// The times of some writes, and how far this machine's clock is from the leader's.
async fn write(manager: &ConnectionManager, path: &str) -> Result<(Vec<Duration>, Offset), Error> {
    let znodes = manager.znodes();
    let earliest = wall_clock();
    znodes.create(path, b"", CreateMode::Ephemeral).await?;
    let latest = wall_clock();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let sent = BootInstant::now();
        znodes.write(path, b"", lockkeeper::znodes::Version::Any).await?;
        times.push(BootInstant::now().since(sent));
    }
    let made = znodes.read(path).await?.map_or(earliest, |(_, stat)| i128::from(stat.ctime));
    znodes.delete(path).await?;
    Ok((times, Offset::of(made, earliest, latest)))
}

/// How far this machine's clock is from the leader's, in milliseconds: at least this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset(i128);

impl Offset {
    /// The node was made between two looks at this machine's clock.
    fn of(made: i128, earliest: i128, latest: i128) -> Self {
        Self(if made < earliest { earliest - made } else { (latest - made).min(0) })
    }
}

/// Milliseconds since 1970.
fn wall_clock() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_millis()).unwrap_or(i128::MAX)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn negotiated(asked: Duration, granted: Duration) -> Finding {
    if asked == granted {
        return Finding::ok(format!("the session timeout is {granted:?}, as asked for"));
    }
    Finding::warn(
        format_args!("the servers granted a session timeout of {granted:?} instead of {asked:?}"),
        "set --session-timeout within their minSessionTimeout and maxSessionTimeout",
    )
}

/// A request may take a part of the time between two confirmations, a sixth of the session timeout.
fn time(what: &str, took: Duration, session_timeout: Duration) -> Finding {
    let text = format!("{what} {:.1} ms", took.as_secs_f64() * 1e3);
    if took < session_timeout / 60 {
        Finding::ok(text)
    } else if took < session_timeout / 6 {
        Finding::warn(text, "the servers, their disks or the network are slow")
    } else {
        Finding::bad(text, "sessions cannot be confirmed in time: holders will lose their locks")
    }
}

fn clock(Offset(offset): Offset) -> Finding {
    let apart = Duration::from_millis(u64::try_from(offset.unsigned_abs()).unwrap_or(u64::MAX));
    if apart <= CLOCK_MAX {
        return Finding::ok("this machine's clock and the leader's agree within 2s");
    }
    let direction = if offset > 0 { "ahead of" } else { "behind" };
    Finding::warn(
        format_args!("this machine's clock is {apart:?} {direction} the leader's"),
        "no promise of a lock rests on it, but ages in reports and the program's LOCKKEEPER_VALID_UNTIL do",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn the_offset_of_the_clocks_is_what_the_round_trip_does_not_explain() {
        assert_eq!(Offset::of(105, 100, 110), Offset(0));
        assert_eq!(Offset::of(90, 100, 110), Offset(10));
        assert_eq!(Offset::of(140, 100, 110), Offset(-30));
        assert_eq!(clock(Offset(2_000)).level, Level::Ok);
        assert!(clock(Offset(3_000)).text.contains("3s ahead of"));
        assert!(clock(Offset(-3_000)).text.contains("3s behind"));
    }

    #[test]
    fn a_request_is_slow_in_relation_to_the_session_timeout() {
        let timeout = Duration::from_secs(12);
        for (millis, level) in [(10, Level::Ok), (300, Level::Warn), (2_500, Level::Bad)] {
            assert_eq!(time("it takes", Duration::from_millis(millis), timeout).level, level);
        }
    }
}
