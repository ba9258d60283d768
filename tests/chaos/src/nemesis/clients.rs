//! Faults of clients, and of what is between them and the servers.

use lockkeeper_tests::{Direction, HarnessError, Match, OpCode, Proxies};
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
            Fault::LoseMessages => {
                // Without messages of this kind nothing is lost, and the fault ends by time.
                let _ = tokio::time::timeout(planned.lasting, lose(proxies, planned.target)).await;
                proxies.disarm_all();
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

/// Loses one message after the other, of every kind.
async fn lose(proxies: &Proxies, first: usize) -> Result<(), HarnessError> {
    let kinds = [OpCode::Create2, OpCode::Multi, OpCode::Delete, OpCode::GetChildren, OpCode::GetData];
    for (number, kind) in kinds.into_iter().cycle().enumerate().skip(first % kinds.len()) {
        let arming = proxies.on(Match::new().op(kind).nth(1 + number % 3));
        let lost =
            if number.is_multiple_of(2) { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        lost.triggered().await?;
    }
    Ok(())
}
