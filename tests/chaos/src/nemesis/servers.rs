//! Faults of servers, and of what is between them.

use lockkeeper_tests::{Between, Server};

use super::{Fault, Nemesis, Planned, Role, last};
use crate::Failure;
use crate::history::Incident;

impl Nemesis {
    /// Strikes one, undoes it, and waits until the servers agree again.
    pub(super) async fn strike_servers(
        &self,
        planned: Planned,
        incident: &mut Incident,
    ) -> Result<(), Failure> {
        // From the previous fault they may have recovered to another leader.
        let role = match planned.fault {
            Fault::KillServer(role) | Fault::PauseServer(role) | Fault::IsolateServer(role) => role,
            Fault::LeaderUnheard | Fault::LeaderDeaf => Role::Leader,
            _ => Role::Only,
        };
        let server = self.server(role, planned.target).await?;
        incident.target = format!("s{}", server.index());
        incident.start = crate::clock::now();
        match planned.fault {
            Fault::KillServer(_) => {
                server.kill().await?;
                last(planned).await;
                server.start().await?;
            }
            Fault::RestartServer => {
                server.stop().await?;
                last(planned).await;
                server.start().await?;
            }
            Fault::PauseServer(_) => {
                server.pause().await?;
                last(planned).await;
                server.resume().await?;
            }
            fault => {
                let between = self.ensemble.between().ok_or("there are no relays between the servers")?;
                self.cut(fault, server.index(), between);
                last(planned).await;
                between.mend_all();
            }
        }
        // The picture shows how long the others took to agree.
        Ok(self.ensemble.settled().await?)
    }

    async fn server(&self, role: Role, target: usize) -> Result<&Server, Failure> {
        let servers = self.ensemble.servers();
        let any = || servers.get(target % servers.len()).ok_or("no server");
        Ok(match role {
            Role::Leader => self.ensemble.leader().await?,
            Role::Follower => {
                let followers = self.ensemble.followers().await?;
                followers.get(target % followers.len().max(1)).copied().ok_or("no follower")?
            }
            Role::Only => any()?,
        })
    }

    fn cut(&self, fault: Fault, server: usize, between: &Between) {
        let peers = (0..self.ensemble.servers().len()).filter(|peer| *peer != server);
        match fault {
            Fault::LeaderUnheard => peers.for_each(|peer| between.cut(server, peer)),
            Fault::LeaderDeaf => peers.for_each(|peer| between.cut(peer, server)),
            Fault::Scatter => peers.chain([server]).for_each(|server| between.isolate(server)),
            _ => between.isolate(server),
        }
    }
}
