use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockkeeper_core::{ConnectionManager, ManagerExt, ZnodePath};
use parking_lot::Mutex;

/// The tries of one manager that are in progress, by path.
#[derive(Default)]
struct TryTurns(Mutex<HashMap<ZnodePath, Weak<TryTurn>>>);

/// Locked by the try that is in progress.
type TryTurn = tokio::sync::Mutex<()>;

/// The turn of the tries at this path. First come, first served.
pub(super) fn turn_of(manager: &ConnectionManager, path: &ZnodePath) -> Arc<TryTurn> {
    let turns: Arc<TryTurns> = manager.shared_table();
    let mut turns = turns.0.lock();
    if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::<TryTurn>::default();
    turns.insert(path.clone(), Arc::downgrade(&turn));
    turn
}
