//! The modes in which this process uses paths, to refuse a mix of both modes.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper_core::{ConfigError, ConnectionManager, ManagerExt, ZnodePath};
use parking_lot::Mutex;

/// The two ways to take several locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ordered,
    Atomic,
}

/// For each path that is a member of multi-locks: the mode, and the number of multi-locks.
#[derive(Debug, Default)]
struct ModeRegistry(Mutex<BTreeMap<ZnodePath, (Mode, usize)>>);

/// The registration of one multi-lock, until it is dropped.
pub(super) struct ModeGuard {
    modes: Arc<ModeRegistry>,
    paths: Vec<ZnodePath>,
}

impl ModeGuard {
    /// Registers these paths, unless one is in use in the other mode.
    pub(super) fn enter(
        manager: &ConnectionManager,
        paths: Vec<ZnodePath>,
        mode: Mode,
    ) -> Result<Self, ConfigError> {
        let modes: Arc<ModeRegistry> = manager.shared_table();
        let mut entered = modes.0.lock();
        let other = |path: &&ZnodePath| entered.get(*path).is_some_and(|(used, _)| *used != mode);
        if let Some(path) = paths.iter().find(other) {
            return Err(ConfigError::Setting {
                name: "atomic",
                value: format!(
                    "{mode:?} for {path}, but another multi-lock of this process uses that path in the other \
                     mode"
                ),
                advice: "take each path in one mode only: takers of both modes can wait for each other",
            });
        }
        for path in &paths {
            entered.entry(path.clone()).or_insert((mode, 0)).1 += 1;
        }
        drop(entered);
        Ok(Self { modes, paths })
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        let mut entered = self.modes.0.lock();
        for path in &self.paths {
            if let Some((_, count)) = entered.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    entered.remove(path);
                }
            }
        }
    }
}
