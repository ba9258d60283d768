//! From a session to the address of its client: the servers' answers to the four-letter word `cons`.

use std::collections::BTreeMap;

use lockkeeper::Inspection;

use crate::connection::ConnectionOptions;
use crate::escape::printable;
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
                    clients.addresses.extend(parse(&answer, server));
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

/// Reads ` /10.0.0.7:53122[1](queued=0,…,sid=0x1000003f9,…)`, one line for each connection.
fn parse(answer: &str, server: &str) -> Vec<(i64, String)> {
    let client = |line: &str| {
        let (head, rest) = line.trim().strip_prefix('/')?.split_once("](")?;
        // An IPv6 address is in brackets, too.
        let (address, _) = head.rsplit_once('[')?;
        let session = rest.split_once("sid=0x")?.1.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        let session = u64::from_str_radix(session, 16).ok()?.cast_signed();
        let address: String = address.chars().take(80).collect();
        Some((session, format!("{} at server {server}", printable(&address))))
    };
    answer.lines().filter_map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cons_tells_the_address_of_a_session() {
        let answer = " /127.0.0.1:40112[1](queued=0,recved=5,sent=5,sid=0x1000003f9,\
                      lop=PING,est=1,to=15000)\n \
                      /127.0.0.1:40113[0](queued=0,recved=1,sent=0)\n\n";
        assert_eq!(
            parse(answer, "zk1:2181"),
            [(0x1_0000_03f9, "127.0.0.1:40112 at server zk1:2181".to_owned())]
        );
    }

    #[test]
    fn a_session_with_the_highest_bit_is_the_number_that_stat_has() {
        for address in ["[0:0:0:0:0:0:0:1]:4", "10.0.0.1:4"] {
            let answer = format!(" /{address}[1](sid=0xff00000000000001,to=1)");
            assert_eq!(parse(&answer, "a"), [(-0x00ff_ffff_ffff_ffff, format!("{address} at server a"))]);
        }
    }

    #[test]
    fn a_server_that_may_not_say_is_no_list() {
        assert!(is_refused("cons is not executed because it is not in the whitelist.\n"));
        assert!(is_refused(""));
        assert!(!is_refused(" /127.0.0.1:1[1](sid=0x1)"));
    }
}
