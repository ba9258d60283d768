//! From a session to the address of its client: the servers' answers to the four-letter word `cons`.

use std::collections::BTreeMap;

use lockkeeper::Inspection;

use super::cons;
use crate::connection::ConnectionOptions;
use crate::exit::Failure;
use crate::four_letter_words::addresses;

/// The clients of all servers that answered.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// By session.
    addresses: BTreeMap<i64, String>,
    /// Why a server did not say.
    silent: Vec<String>,
}

impl Clients {
    /// Asks each server of the connect string.
    pub(crate) async fn ask(connection: &ConnectionOptions) -> Result<Self, Failure> {
        let mut clients = Self::default();
        let words = connection.words()?;
        for address in addresses(connection.with_file()?.servers()?) {
            let server = &address.host_and_port;
            let reason = match words.ask(&address, "cons").await {
                Ok(answer) if is_refused(&answer) => "add cons to 4lw.commands.whitelist".to_owned(),
                Ok(answer) => {
                    clients.addresses.extend(cons::parse(&answer, server));
                    continue;
                }
                Err(error) => error.to_string(),
            };
            clients.silent.push(format!("{server} does not say its clients: {reason}"));
        }
        Ok(clients)
    }

    /// The client that has this session.
    pub(crate) fn address(&self, session: i64) -> Option<&str> {
        self.addresses.get(&session).map(String::as_str)
    }

    /// One line for each session of the lock, and one for each server that did not say.
    pub(crate) fn of(&self, lock: &Inspection) -> Vec<String> {
        let mut sessions: Vec<i64> = lock
            .contenders()
            .iter()
            .map(lockkeeper::inspect::ContenderInfo::session)
            .filter(|id| *id != 0)
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        let line = |session: i64| match self.address(session) {
            Some(address) => format!("session {session:#x} is {address}"),
            None => format!("session {session:#x} has no connection to a server that answered"),
        };
        sessions.into_iter().map(line).chain(self.silent.iter().cloned()).collect()
    }
}

/// A server says so if the word is not in its list. One that does not know the word closes the connection.
fn is_refused(answer: &str) -> bool {
    answer.trim().is_empty() || answer.contains("is not executed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_not_say_is_no_list() {
        assert!(is_refused("cons is not executed because it is not in the whitelist.\n"));
        assert!(is_refused(""));
        assert!(!is_refused(" /127.0.0.1:1[1](sid=0x1)"));
    }
}
