//! The sessions and paths of a load.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper::{ConnectionManager, ConnectionPool};

use crate::Outcome;
use crate::arguments::Arguments;
use crate::counters::Meters;

/// Open sessions, and a folder of paths of its own, so that runs do not share queues.
#[derive(Debug)]
pub(crate) struct Fixture<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) meters: Arc<Meters>,
    managers: Vec<ConnectionManager>,
    pool: Option<ConnectionPool>,
}

impl<'a> Fixture<'a> {
    /// Opens `sessions` sessions.
    pub(crate) async fn open(arguments: &'a Arguments, sessions: usize) -> Outcome<Self> {
        let mut managers = Vec::new();
        for _ in 0..sessions {
            managers.push(builder(arguments)?.connect().await?);
        }
        let meters = Arc::new(Meters::of(arguments.servers()).await);
        Ok(Self { arguments, meters, managers, pool: None })
    }

    /// Opens a pool of `sessions` sessions.
    pub(crate) async fn open_pool(arguments: &'a Arguments, sessions: u32) -> Outcome<Self> {
        let pool = builder(arguments)?.connect_pool(sessions).await?;
        let meters = Arc::new(Meters::of(arguments.servers()).await);
        Ok(Self { arguments, meters, managers: pool.managers().cloned().collect(), pool: Some(pool) })
    }

    /// The session of worker `number`: the workers use the sessions round-robin.
    pub(crate) fn manager(&self, number: usize) -> Outcome<&ConnectionManager> {
        let manager = number.checked_rem(self.managers.len()).and_then(|index| self.managers.get(index));
        manager.ok_or_else(|| "no session".into())
    }

    /// The session through which worker `number` takes `path`: the pool's for that path, if there is one.
    pub(crate) fn manager_for(&self, number: usize, path: &str) -> Outcome<&ConnectionManager> {
        self.pool.as_ref().map_or_else(|| self.manager(number), |pool| Ok(pool.for_path(path)))
    }

    /// A path of this run.
    pub(crate) fn path(&self, name: &str) -> String {
        path(name)
    }

    pub(crate) async fn close(&self) -> Outcome<()> {
        for manager in &self.managers {
            manager.shutdown().await?;
        }
        Ok(())
    }
}

/// The longest tick of the servers that are measured.
const TICK: Duration = Duration::from_secs(2);

fn builder(arguments: &Arguments) -> Outcome<ConnectionManagerBuilder> {
    let builder = ConnectionManager::builder(arguments.servers()).tick_time(TICK);
    Ok(builder.session_timeout(arguments.seconds("timeout")?))
}

/// A path of this process.
pub(crate) fn path(name: &str) -> String {
    format!("/lockkeeper-bench/{}/{name}", std::process::id())
}
