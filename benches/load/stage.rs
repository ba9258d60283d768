//! What a load is run on.

use std::sync::Arc;

use lockkeeper::ConnectionManager;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::counters::Meters;

/// Open sessions, and a folder of paths of its own, so that one run does not stand in another's lines.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) meters: Arc<Meters>,
    managers: Vec<ConnectionManager>,
}

impl<'a> Stage<'a> {
    /// Opens `sessions` sessions.
    pub(crate) async fn open(arguments: &'a Arguments, sessions: usize) -> Outcome<Self> {
        let mut managers = Vec::new();
        for _ in 0..sessions {
            let builder = ConnectionManager::builder(arguments.servers());
            managers.push(builder.session_timeout(arguments.seconds("timeout")?).connect().await?);
        }
        Ok(Self { arguments, meters: Arc::new(Meters::of(arguments.servers()).await), managers })
    }

    /// The session of worker `number`: they are dealt out in turn.
    pub(crate) fn manager(&self, number: usize) -> Outcome<&ConnectionManager> {
        let manager = number.checked_rem(self.managers.len()).and_then(|index| self.managers.get(index));
        manager.ok_or_else(|| "no session".into())
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

/// A path of this process.
pub(crate) fn path(name: &str) -> String {
    format!("/lockkeeper-bench/{}/{name}", std::process::id())
}
