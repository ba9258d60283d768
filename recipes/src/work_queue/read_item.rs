//! Reads of items for takes.

use lockkeeper_core::{Deadline, Error, ManagerExt};
use tokio::sync::oneshot;

use super::handle::WorkQueue;
use super::name::ItemName;
use super::read_ahead::{AskedItems, ItemNode, ItemTake, ReadStep};
use super::take::PAUSE;
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
        let (draw, reads_before) = (self.shared.draw(worker.name()), worker.reads_before);
        let take = ItemTake { name, draw, reads_before, is_alone: !self.layout.is_own() };
        loop {
            let ended = ahead.until_one_ends();
            let asked = match ahead.begin(&take, &self.shared.candidates) {
                ReadStep::Use(node) => return Ok(node),
                ReadStep::Read(asked) => asked,
                ReadStep::Wait => {
                    tokio::select! {
                        biased;
                        () = ended => continue,
                        () = deadline.passed() => return Err(self.timeout_error(deadline).into()),
                    }
                }
            };
            let read = tokio::select! {
                biased;
                read = self.read_asked(asked) => read,
                () = deadline.passed() => return Err(self.timeout_error(deadline).into()),
            };
            match read {
                Ok(Some(node)) => return Ok(node),
                Ok(None) => {}
                Err(error) if error.is_transient() && !deadline.has_passed() => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(NotTaken::Failed(error)),
            }
        }
    }

    /// Sends one request. `None` if its first item was not read. Other takes may wait for its items, so it
    /// goes on in a task: this take may be dropped, or not be polled for long.
    async fn read_asked(&self, asked: AskedItems) -> Result<Option<ItemNode>, Error> {
        let paths = asked.names().iter().map(|name| self.item_path(name)).collect::<Result<Vec<_>, _>>()?;
        let manager = self.manager().clone();
        let read = async move { Ok(asked.answered(manager.znodes().read_first(&paths).await?)) };
        let (sender, answer) = oneshot::channel();
        self.manager().spawn(async move { drop(sender.send(read.await)) });
        answer.await.unwrap_or_else(|_| Err(Error::RuntimeEnded { path: self.whole_path() }))
    }
}
