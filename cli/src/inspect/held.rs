//! For how long the holders of a lock have held, as far as one look shows it: no node says when its holder
//! was granted.
//!
//! A holder was granted when the last node ahead of it was deleted. The stat of the directory has the last
//! transaction that made or deleted a child: if it made the newest child, whatever was ahead of a holder was
//! gone by then. Of permits nothing is known.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use lockkeeper::inspect::{AgeClock, ContenderInfo, Kind};
use lockkeeper::znodes::{Stat, Zxid};
use lockkeeper::{ConnectionManager, Error, Inspection};

use super::print::age;

/// The holders of a lock, by the transactions that created their nodes.
pub(crate) type Holds = BTreeMap<Zxid, HeldFor>;

/// For at least so long, and for at most so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldFor {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
    /// By the clock of this machine, which may differ from that of the servers.
    pub(crate) is_estimated: bool,
}

/// Reads the directory of the lock, unless no holder needs it.
pub(crate) async fn holds(manager: &ConnectionManager, lock: &Inspection) -> Result<Holds, Error> {
    let queued = lock.holders().find(|of| has_waited(of));
    let directory = match queued.and_then(|of| of.path().as_str().rsplit_once('/')) {
        Some((directory, _)) if !directory.is_empty() => match manager.znodes().exists(directory).await {
            // The rest is shown all the same.
            Err(Error::Refused { .. }) => None,
            stat => stat?,
        },
        _ => None,
    };
    let of = |holder: &ContenderInfo| Some((holder.czxid(), HeldFor::of(holder, lock, directory.as_ref())?));
    Ok(lock.holders().filter_map(of).collect())
}

/// Whether the nodes ahead of this one tell when it was granted. Those of permits do not: Curator makes the
/// node of a permit before it waits for it.
fn has_waited(of: &ContenderInfo) -> bool {
    matches!(of.kind(), Some(Kind::LOCK | Kind::READ | Kind::WRITE | Kind::LATCH))
}

impl HeldFor {
    fn of(holder: &ContenderInfo, lock: &Inspection, directory: Option<&Stat>) -> Option<Self> {
        let most = holder.age();
        let directory = directory.filter(|_| has_waited(holder))?;
        let is_first = directory.children_made() == directory.children;
        let newest = lock.contenders().iter().max_by_key(|of| of.czxid());
        let least = match newest.filter(|of| of.czxid() == directory.pzxid) {
            // No child was ever deleted.
            _ if is_first => most,
            Some(newest) => newest.age().min(most),
            None => Duration::ZERO,
        };
        Some(Self { least, most, is_estimated: holder.age_clock() == AgeClock::Local })
    }
}

/// With `>` if it may be longer, and with `~` if it is estimated.
impl Display for HeldFor {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.least < self.most { ">" } else { "" };
        let estimated = if self.is_estimated { "~" } else { "" };
        write!(formatter, "{sign}{estimated}{}", age(self.least))
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::{Mutex, Semaphore};
    use lockkeeper_testserver::TestServer;

    use super::*;

    #[tokio::test]
    async fn a_hold_is_as_long_as_the_nodes_show_and_never_longer() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let mutex = Mutex::new(&manager, "/held/a").unwrap();
        let seen = async || {
            let lock = mutex.inspect().await.unwrap();
            let held = holds(&manager, &lock).await.unwrap();
            let newest = lock.contenders().iter().map(ContenderInfo::age).min().unwrap();
            (*held.values().next().unwrap(), newest)
        };
        let first = mutex.acquire().await.unwrap();
        let (alone, _) = seen().await;
        assert_eq!(alone.least, alone.most);
        let mut second = mutex.enqueue().await.unwrap();
        let (never_deleted, _) = seen().await;
        assert_eq!(never_deleted.least, never_deleted.most);
        first.release().await.unwrap();
        let second = second.wait().await.unwrap();
        // The last change is the end of the first one, and nobody knows when that was.
        assert_eq!(seen().await.0.least, Duration::ZERO);
        let _third = mutex.enqueue().await.unwrap();
        let (held, newest) = seen().await;
        assert_eq!(held.least, newest);
        assert!(held.least <= held.most);
        second.release().await.unwrap();

        let semaphore = Semaphore::new(&manager, "/held/b", 2).unwrap();
        let _permit = semaphore.acquire().await.unwrap();
        assert!(holds(&manager, &semaphore.inspect().await.unwrap()).await.unwrap().is_empty());
    }
}
