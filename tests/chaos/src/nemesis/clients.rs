//! Faults of clients, and of what is between them and the servers.

use lockkeeper_tests::Direction;
use rustix::process::Signal;

use super::{Fault, Nemesis, Planned, last};
use crate::Failure;
use crate::history::{Incident, Void};

impl Nemesis {
    /// Strikes a client and undoes it, also when it could not be done as it was meant.
    pub(super) async fn strike_client(
        &self,
        planned: Planned,
        incident: &mut Incident,
    ) -> Result<(), Failure> {
        let client = self.clients.get(planned.target % self.clients.len()).ok_or("no client")?;
        let proxies = &client.proxies;
        incident.target.clone_from(&client.name);
        match planned.fault {
            Fault::CutClient => {
                proxies.refuse().await?;
                last(planned).await;
                proxies.accept().await?;
            }
            Fault::BreakLinks => {
                proxies.cut().await?;
                last(planned).await;
                proxies.cut().await?;
            }
            Fault::ClientUnheard | Fault::ClientDeaf => {
                let way = if planned.fault == Fault::ClientDeaf {
                    Direction::ToClient
                } else {
                    Direction::ToServer
                };
                proxies.hold(way);
                last(planned).await;
                proxies.release(way);
            }
            Fault::LoseServer => {
                let servers = self.ensemble.servers().len();
                let proxy = proxies.proxy(planned.target / self.clients.len() % servers);
                incident.target = format!("{} from s{}", client.name, proxy.index());
                proxy.refuse().await?;
                last(planned).await;
                proxy.accept().await?;
            }
            Fault::ExpireSession => {
                let session = proxies.sessions().last().ok_or("no session")?.id;
                let expired = proxies.sever_until_expired(session).await;
                proxies.accept().await?;
                expired?;
            }
            Fault::CloseSession => {
                incident.voids.push(Void::Session { client: client.name.clone() });
                let session = proxies.sessions().last().ok_or("no session")?.id;
                proxies.expire_session(session).await?;
            }
            Fault::FreezeClient => {
                client.signal(Signal::STOP).await?;
                last(planned).await;
                client.signal(Signal::CONT).await?;
            }
            Fault::KillClient => {
                client.kill().await?;
                last(planned).await;
                client.revive().await?;
            }
            other => return Err(format!("{other:?} strikes no client").into()),
        }
        Ok(())
    }
}
