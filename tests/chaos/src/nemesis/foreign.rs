//! Interventions of foreign clients: deleted nodes, and overload.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use lockkeeper_tests::{HarnessError, RawClient};

use super::{Fault, Nemesis, Planned, bounded, last};
use crate::fixture::{REGISTERS, SOAK_LOCKS, path_of};
use crate::history::{Incident, Void};
use crate::{Failure, clock};

/// The number of clients, each with one request at a time: more than the servers' limit.
const CROWD: usize = 150;
/// The time between two deletions.
const LOOK: Duration = Duration::from_millis(200);

impl Nemesis {
    pub(super) async fn interfere(&self, planned: Planned, incident: &mut Incident) -> Result<(), Failure> {
        let servers = self.ensemble.addresses();
        let server = servers.get(planned.target % servers.len()).copied().ok_or("no server")?;
        incident.target = format!("through s{}", planned.target % servers.len());
        match planned.fault {
            Fault::FillQueue => {
                let crowd = (0..CROWD).filter_map(|number| servers.get(number % servers.len()));
                let asking = join_all(crowd.map(|server| overload(*server)));
                tokio::select! {
                    _ = asking => {}
                    () = last(planned) => {}
                }
            }
            Fault::DeleteNodes => {
                let touched: Vec<String> =
                    SOAK_LOCKS.iter().filter(|soak_lock| soak_lock.touched).map(path_of).collect();
                tokio::select! {
                    () = last(planned) => {}
                    () = async {
                        for number in planned.target.. {
                            let Some(folder) = touched.get(number % touched.len()) else { return };
                            // The chosen server may be down.
                            let _ = bounded(delete_one(server, folder, number, incident)).await;
                            tokio::time::sleep(LOOK).await;
                        }
                    } => {}
                }
            }
            other => return Err(format!("{other:?} is no fault of a foreign client").into()),
        }
        Ok(())
    }
}

/// Writes again and again. Little at a time: the number of requests matters, and servers have little memory.
async fn overload(server: SocketAddr) -> Result<(), HarnessError> {
    let mut raw = RawClient::connect_for(server, Duration::from_secs(2)).await?;
    let data = vec![b'x'; 1 << 10];
    let path = format!("{REGISTERS}/of-foreign-clients");
    let _ = raw.create(&path, b"", lockkeeper_tests::CreateMode::Persistent).await;
    loop {
        raw.set_data(&path, &data).await?;
    }
}

/// Deletes the first contender of a lock, or another one.
async fn delete_one(
    server: SocketAddr,
    folder: &str,
    number: usize,
    incident: &mut Incident,
) -> Result<(), HarnessError> {
    let mut raw = RawClient::connect_for(server, Duration::from_secs(2)).await?;
    let mut contenders = raw.children(folder).await?;
    // By sequence number: the holder is the first.
    contenders.sort_by_key(|name| name.rsplit('-').next().unwrap_or_default().to_owned());
    let index = if number.is_multiple_of(3) { number % contenders.len().max(1) } else { 0 };
    if let Some(name) = contenders.get(index).filter(|name| name.starts_with("_c_")) {
        let path = format!("{folder}/{name}");
        // Recorded before the delete, and even if its result is unknown.
        incident.voids.push(Void::Node { path: path.clone(), at: clock::now() });
        raw.delete(&path).await?;
    }
    raw.close().await
}
