use std::time::Duration;

use futures::FutureExt;
use lockkeeper::view::{Difference, ViewState};
use lockkeeper::{ConnectionManager, TreeView};
use tokio::time::{sleep, timeout};

use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::witness::{Nodes, Witness, is_current, nodes_at, nodes_of};
use crate::world::World;

/// The directory of all locks. It may not exist.
const ROOT: &str = "/locks";

/// A task that follows the nodes of all locks, and compares what it is shown with the servers.
pub(super) struct Viewer {
    pub(super) name: String,
    pub(super) world: World,
    pub(super) oracle: Oracle,
    pub(super) manager: ConnectionManager,
    pub(super) rng: Rng,
}

/// The manager is being shut down.
struct Closed;

impl Viewer {
    /// Until the faults have ended, and everything is shown.
    pub(super) async fn follow(mut self) {
        let view = match TreeView::new(&self.manager, ROOT) {
            Ok(view) => view,
            Err(error) if error.is_closed() => return,
            Err(error) => return self.breach(&error.to_string()),
        };
        let mut witness = Witness::new(view.changes());
        let longest = self.world.plan().timeout / 4;
        while !self.world.is_healing() {
            let pause = Duration::from_millis(self.rng.between(0, longest));
            // A slow reader gets the changes merged. The pause is simulated time, and takes none.
            if self.rng.percent(50) {
                sleep(pause).await;
            } else if let Ok(Closed) = timeout(pause, self.read(&mut witness)).await {
                return;
            }
            if self.sync(&view).await.is_err() || self.read_ready(&mut witness).is_err() {
                return;
            }
        }
        self.world.note(|| format!("{} waits until everything is shown", self.name));
        while view.state() != ViewState::Live || nodes_of(&view.snapshot()) != self.nodes() {
            if view.state() == ViewState::Closed {
                return;
            }
            sleep(Duration::from_millis(longest / 5)).await;
        }
        if self.read_ready(&mut witness).is_ok() && *witness.copy() != nodes_of(witness.changes.snapshot()) {
            self.breach("the differences do not lead to the last snapshot");
        }
        self.world.note(|| format!("{} is done", self.name));
    }

    fn nodes(&self) -> Nodes {
        self.world.machine(|machine| nodes_at(machine.tree(), ROOT))
    }

    async fn sync(&self, view: &TreeView) -> Result<(), Closed> {
        let (zxid, then) = self.world.machine(|machine| (machine.zxid(), nodes_at(machine.tree(), ROOT)));
        match view.sync().await {
            Ok(snapshot) => {
                if let Err(wrong) = is_current(&nodes_of(&snapshot), &then, zxid, &self.nodes()) {
                    self.breach(&format!("after a sync, {wrong}"));
                }
            }
            Err(error) if error.is_timeout() => {}
            Err(error) if error.is_closed() => return Err(Closed),
            Err(error) => self.breach(&error.to_string()),
        }
        Ok(())
    }

    async fn read(&self, witness: &mut Witness) -> Closed {
        while let Some(difference) = witness.changes.next().await {
            self.apply(witness, &difference);
        }
        Closed
    }

    /// Reads what there is.
    fn read_ready(&self, witness: &mut Witness) -> Result<(), Closed> {
        while let Some(next) = witness.changes.next().now_or_never() {
            let difference = next.ok_or(Closed)?;
            self.apply(witness, &difference);
        }
        Ok(())
    }

    fn apply(&self, witness: &mut Witness, difference: &Difference) {
        self.oracle.shown();
        if let Err(wrong) = witness.apply(difference) {
            self.breach(&wrong);
        }
    }

    fn breach(&self, wrong: &str) {
        self.oracle.breach(&self.world, format!("views: {}: {wrong}", self.name));
    }
}
