//! The connection: made, watched, and made again.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_lock::BootInstant;
use redis::{PushInfo, PushKind, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::shared::{ManagerPhase, Shared};
use super::wire::{Target, Wire};
use crate::script::read_grant;

/// The first pause between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Keeps a connection, until the manager stops.
pub(super) async fn run(shared: Arc<Shared>, target: Target, mut reports: mpsc::UnboundedReceiver<u64>) {
    let mut phase = shared.phase.subscribe();
    let mut pause = PAUSE_MIN;
    loop {
        let (pushes, mut messages) = mpsc::unbounded_channel();
        let connected = tokio::select! {
            biased;
            () = stopped(&mut phase) => return,
            connected = connect(&shared, &target, pushes) => connected,
        };
        let began = BootInstant::now();
        match connected {
            Ok(wire) => {
                let generation = shared.link.set_connected(wire);
                info!(generation, "connected to Redis");
                tokio::select! {
                    biased;
                    () = stopped(&mut phase) => return,
                    () = serve(&shared, generation, &mut messages, &mut reports) => {}
                }
                shared.link.set_broken("the connection broke".to_owned());
                warn!(generation, "the connection to Redis broke");
            }
            Err(cause) => {
                debug!(%cause, "no connection");
                shared.link.set_broken(cause);
            }
        }
        // A server that accepts and drops connections is not asked faster and faster.
        if BootInstant::now().since(began) > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        tokio::select! {
            biased;
            () = stopped(&mut phase) => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn stopped(phase: &mut watch::Receiver<ManagerPhase>) {
    let _ = phase.wait_for(|phase| *phase == ManagerPhase::Stopped).await;
}

async fn connect(
    shared: &Shared,
    target: &Target,
    pushes: mpsc::UnboundedSender<PushInfo>,
) -> Result<Wire, String> {
    let limit = shared.settings.request_limit();
    match timeout(limit, target.connect(pushes, shared.link.channel())).await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no connection within {limit:.1?}")),
    }
}

/// Passes messages on until the connection breaks, or is reported as broken.
async fn serve(
    shared: &Shared,
    generation: u64,
    messages: &mut mpsc::UnboundedReceiver<PushInfo>,
    reports: &mut mpsc::UnboundedReceiver<u64>,
) {
    loop {
        tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(PushInfo { kind: PushKind::Message, data }) => deliver(shared, &data),
                Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => return,
                Some(_) => {}
            },
            report = reports.recv() => if report == Some(generation) { return },
        }
    }
}

/// Passes a grant on to its waiter. A waiter that has gone leaves the lock in the background anyway.
fn deliver(shared: &Shared, data: &[Value]) {
    let [_, Value::BulkString(message)] = data else { return };
    let Ok(message) = std::str::from_utf8(message) else { return };
    if let Some((id, token)) = read_grant(message) {
        shared.waits.deliver(id, token);
    }
}
