use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// More than exist at one time: the node of an earlier contender is being deleted.
const NAMES_MAX: usize = 8;

/// The names of the contenders of this process that wait for all of its tasks.
#[derive(Debug, Default)]
pub(super) struct OwnContenders {
    names: Mutex<Names>,
    is_settled: Notify,
}

#[derive(Debug, Default)]
struct Names {
    /// The last ones.
    entered: VecDeque<String>,
    /// The number of contenders whose names are not known yet.
    entering: u32,
}

/// A contender whose name is not known yet.
#[derive(Debug)]
pub(super) struct Entering {
    /// Empty once the name is known.
    own: Option<Arc<OwnContenders>>,
}

impl OwnContenders {
    /// Announces a contender, before its node is created.
    pub(super) fn enter(self: &Arc<Self>) -> Entering {
        self.names.lock().entering += 1;
        Entering { own: Some(Arc::clone(self)) }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.lock().entered.iter().any(|own| own == name)
    }

    /// Resolves while the names of all contenders are known.
    pub(super) async fn settled(&self) {
        loop {
            let settled = self.is_settled.notified();
            if self.names.lock().entering == 0 {
                return;
            }
            settled.await;
        }
    }
}

impl Entering {
    pub(super) fn entered(&mut self, name: Option<&str>) {
        let Some(own) = self.own.take() else { return };
        let mut names = own.names.lock();
        names.entered.extend(name.map(str::to_owned));
        let surplus = names.entered.len().saturating_sub(NAMES_MAX);
        names.entered.drain(..surplus);
        names.entering -= 1;
        drop(names);
        own.is_settled.notify_one();
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        self.entered(None);
    }
}
