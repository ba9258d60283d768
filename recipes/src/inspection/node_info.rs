use std::time::{Duration, SystemTime};

use futures::future::join_all;
use lockkeeper_core::{ConnectionManager, Error, Stat, ZnodePath};

/// How many requests of an inspection are in flight.
const BATCH: usize = 64;

/// A node of a group, of a service or of a [`Survey`](crate::inspect::Survey), as a server knew it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    pub(crate) name: String,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) stat: Stat,
}

impl NodeInfo {
    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The data of the node. `None` in a [`Survey`](crate::inspect::Survey), which keeps no data.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// The session that owns the node; 0 for a persistent one.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.stat.ephemeral_owner
    }

    /// The time since the node was created, by the clock of this machine.
    #[must_use]
    pub fn age(&self) -> Duration {
        let created = Duration::from_millis(u64::try_from(self.stat.ctime).unwrap_or_default());
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(created)
    }

    /// The node's complete stat.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}

/// The children of a directory, in the order of their names. A child that is deleted meanwhile is left out.
pub(crate) async fn read_children(
    manager: &ConnectionManager,
    directory: &ZnodePath,
) -> Result<Vec<NodeInfo>, Error> {
    let znodes = manager.znodes();
    let mut names = znodes.children(directory).await?.unwrap_or_default();
    names.sort_unstable();
    let mut nodes = Vec::with_capacity(names.len());
    for batch in names.chunks(BATCH) {
        let paths = batch.iter().map(|name| directory.child(name)).collect::<Result<Vec<_>, _>>()?;
        let reads = join_all(paths.iter().map(|path| znodes.read(path))).await;
        for (name, read) in batch.iter().zip(reads) {
            nodes.extend(read?.map(|(data, stat)| NodeInfo { name: name.clone(), data: Some(data), stat }));
        }
    }
    Ok(nodes)
}
