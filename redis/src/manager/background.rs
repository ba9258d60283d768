//! The background work of a manager: renewals of leases, and releases that nobody waits for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use lockkeeper_lock::BootInstant;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::shared::{CleanupJob, ManagerPhase, Shared};
use crate::error::LossReason;
use crate::lease;
use crate::record::HoldRecord;

/// The pause before a release is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Renews the leases of all holds, until the manager stops.
pub(super) async fn renew(shared: Arc<Shared>) {
    let mut phase = shared.phase.subscribe();
    let check = lease::renewal_check(shared.settings.lease);
    loop {
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase == ManagerPhase::Stopped) => return,
            () = tokio::time::sleep(check) => {}
        }
        let now = BootInstant::now();
        let holds: Vec<Arc<HoldRecord>> = shared.holds.lock().values().cloned().collect();
        for record in holds.iter().filter(|record| record.expire(now)) {
            warn!(name = %record.keys().name, "the lease of a lock on Redis ran out");
            shared.clean_up(record.keys(), record.id());
        }
        let due = holds.iter().filter(|record| record.is_renewal_due(now));
        join_all(due.map(|record| renew_one(&shared, record))).await;
    }
}

async fn renew_one(shared: &Shared, record: &HoldRecord) {
    let limit = shared.settings.request_limit();
    let Ok(mut connection) = tokio::time::timeout(limit, shared.link.connection()).await else { return };
    let call = record.keys().extend(record.id(), shared.settings.lease_millis());
    let sent = BootInstant::now();
    match shared.link.send(&mut connection, &call, limit).await.as_deref() {
        Ok([1]) => record.confirm(sent),
        // A release that its holder waits for may have been processed before.
        Ok(_) if record.is_releasing() => {}
        Ok(_) => {
            warn!(name = %record.keys().name, "Redis does not know a hold any more");
            record.lose(LossReason::Gone);
        }
        Err(error) => debug!(name = %record.keys().name, ?error, "not renewed"),
    }
}

/// Does the cleanup jobs, until the manager is closed and all are done.
pub(super) async fn clean_up(shared: Arc<Shared>, mut queue: mpsc::UnboundedReceiver<CleanupJob>) {
    let mut phase = shared.phase.subscribe();
    let mut pending = shared.pending.subscribe();
    let mut jobs = FuturesUnordered::new();
    loop {
        let is_closed = *phase.borrow_and_update() >= ManagerPhase::Closed;
        if is_closed && *pending.borrow_and_update() == 0 {
            shared.advance(ManagerPhase::Stopped);
            return;
        }
        tokio::select! {
            biased;
            Some(job) = queue.recv() => jobs.push(clean_up_one(&shared, job)),
            Some(()) = jobs.next() => {}
            _ = phase.changed(), if !is_closed => {}
            _ = pending.changed(), if is_closed => {}
        }
    }
}

async fn clean_up_one(shared: &Shared, job: CleanupJob) {
    let limit = shared.settings.request_limit();
    let call = job.keys.release(&job.id);
    while job.until.remaining() > Duration::ZERO {
        let connection = tokio::time::timeout(job.until.remaining(), shared.link.connection());
        let Ok(mut connection) = connection.await else { break };
        match shared.link.send(&mut connection, &call, limit).await {
            Ok(_) => break,
            Err(error) => debug!(name = %job.keys.name, ?error, "not released yet"),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    shared.pending.send_modify(|pending| *pending -= 1);
}
