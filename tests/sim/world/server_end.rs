//! The servers' end of the network.

use lockkeeper_testserver::machine::{ClientId, Output};

use super::happening::Happening;
use super::state::State;

impl State {
    pub(super) fn emit(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let client = output.client();
            let way = self.way();
            let Some(connection) = self.connections.get_mut(&client).filter(|known| known.at_server) else {
                continue;
            };
            let at = (self.now + way).max(connection.to_client_from);
            connection.to_client_from = at;
            if matches!(output, Output::Close { .. }) {
                connection.at_server = false;
                self.machine.disconnect(client);
            }
            self.at(at, Happening::ToClient(client, output));
        }
        self.plan_advance();
    }

    pub(super) fn hang_up(&mut self, client: ClientId) {
        if let Some(connection) = self.connections.get_mut(&client)
            && connection.at_server
        {
            connection.at_server = false;
            self.machine.disconnect(client);
        }
    }
}
