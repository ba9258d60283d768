//! Mistakes that are planted in the state of the queue.

use super::scenario::{Mistake, Scenario};
use super::world::{Contender, Phase, World};
use crate::local::decide::LocalQueue;
use crate::local::decide::released_head::DirectoryWatchState;

impl World {
    pub(super) fn plant_before_release(&mut self, scenario: &Scenario, number: usize) {
        let Contender { kind, ref phase, lost, key, .. } = self.contenders[number];
        let is_planted = *phase != Phase::Holding && !lost && scenario.has(Mistake::WaiterHandsOff);
        if let (true, Some(key), Some(queue)) = (is_planted, key, self.queue(number)) {
            if queue.node_at(key.sequence).is_none() {
                let _ = queue.register(key, kind);
            }
            queue.mark_held(key);
        }
    }

    pub(super) fn plant_before_judgement(&mut self, scenario: &Scenario, number: usize) {
        let connection = self.connection(number);
        let Some(queue) = self.queue(number) else { return };
        if scenario.has(Mistake::ReleasedOverAnotherConnection) {
            queue.released.iter_mut().for_each(|head| head.connection = connection);
            plant_watch_of_any_connection(queue, connection);
        }
        if scenario.has(Mistake::AnyDirectory) {
            plant_any_directory(queue, connection);
        }
    }

    pub(super) fn plant_after_break(&mut self, scenario: &Scenario, number: usize) {
        let now = self.sessions[number].connection;
        if let Some(queue) = &mut self.sessions[number].queue
            && scenario.has(Mistake::EarlierDirectoryWatch)
        {
            plant_watch_of_any_connection(queue, now);
        }
    }
}

fn plant_watch_of_any_connection(queue: &mut LocalQueue<u8>, now: u64) {
    if let DirectoryWatchState::Set { connection, .. } = &mut queue.directory_watch {
        *connection = now;
    }
}

fn plant_any_directory(queue: &mut LocalQueue<u8>, connection: u64) {
    if queue.directory_watch.set_on(connection).is_none() {
        queue.directory_watch_requested(connection);
        queue.directory_watch_set();
    }
    let watch = queue.directory_watch.set_on(connection);
    queue.released.iter_mut().for_each(|head| head.covered_by = watch);
}
