//! Reads of items for takes.

use lockkeeper_core::{Deadline, ZnodePath};

use super::handle::WorkQueue;
use super::name::ItemName;
use super::read_ahead::{ItemNode, ItemTake, ReadStep};
use super::take::{PAUSE, waiting};
use super::worker::QueueWorker;
use crate::lock::at_head::NotTaken;
use crate::value::SharedData;

impl<T: SharedData> WorkQueue<T> {
    /// The data of an item that a taker tries, with that of the next ones.
    pub(super) async fn read_item(
        &self,
        worker: &QueueWorker,
        name: &ItemName,
        deadline: Deadline,
    ) -> Result<ItemNode, NotTaken> {
        let ahead = &self.shared.read_ahead;
        let take =
            ItemTake { name, draw: self.shared.draw(worker.name()), reads_before: worker.reads_before };
        loop {
            let ended = ahead.until_one_ends();
            let asked = match ahead.begin(&take, &self.shared.candidates) {
                ReadStep::Use(node) => return Ok(node),
                ReadStep::Read(asked) => asked,
                ReadStep::Wait => {
                    tokio::select! {
                        biased;
                        () = ended => continue,
                        () = deadline.passed() => return Err(NotTaken::NotNow(waiting())),
                    }
                }
            };
            let paths =
                asked.names().iter().map(|name| self.item_path(name)).collect::<Result<Vec<_>, _>>()?;
            if let Some(node) = asked.answered(self.read_first(&paths, deadline).await?) {
                return Ok(node);
            }
        }
    }

    async fn read_first(&self, paths: &[ZnodePath], deadline: Deadline) -> Result<Vec<ItemNode>, NotTaken> {
        loop {
            match self.manager().znodes().read_first(paths).await {
                Ok(read) => return Ok(read),
                Err(error) if error.is_transient() && !deadline.has_passed() => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(NotTaken::Failed(error)),
            }
        }
    }
}
