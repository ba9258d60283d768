//! Clients' connections (`cons`).

use std::net::SocketAddr;

use super::{session_id, word};
use crate::error::HarnessError;

/// A client's connection as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The client's end; with a proxy between, the proxy's.
    pub peer: String,
    /// The session attached to it; none yet in a handshake, or for a four-letter word.
    pub session: Option<i64>,
    /// Packets received on it, pings included.
    pub received: u64,
    /// Packets sent on it, watch events included.
    pub sent: u64,
}

/// The connections of the server at `address`, the asking one included.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a report of another shape.
pub async fn connections(address: SocketAddr) -> Result<Vec<Connection>, HarnessError> {
    word(address, "cons").await?.lines().map(str::trim).filter(|line| !line.is_empty()).map(parse).collect()
}

/// ` /127.0.0.1:40000[1](queued=0,recved=1,sent=0,sid=0x1000,…)`
fn parse(line: &str) -> Result<Connection, HarnessError> {
    let malformed = || HarnessError::malformed(format!("the connection `{line}`"));
    let (peer, rest) = line.trim_start_matches('/').split_once('[').ok_or_else(malformed)?;
    let (_, fields) = rest.split_once('(').ok_or_else(malformed)?;
    let field = |name: &str| {
        let mut pairs = fields.trim_end_matches(')').split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name| field(name).and_then(|value| value.parse().ok()).ok_or_else(malformed);
    Ok(Connection {
        peer: peer.to_owned(),
        session: field("sid").map(session_id).transpose()?,
        received: number("recved")?,
        sent: number("sent")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_yields_its_session_and_counts() {
        let seen =
            parse("/127.0.0.1:40000[1](queued=0,recved=12,sent=11,sid=0x1000a,lop=PING,est=1,to=4000)").ok();
        let peer = "127.0.0.1:40000".to_owned();
        assert_eq!(seen, Some(Connection { peer, session: Some(0x1000a), received: 12, sent: 11 }));
    }

    #[test]
    fn a_connection_may_have_no_session() {
        let seen = parse("/127.0.0.1:40000[0](queued=0,recved=1,sent=0)").ok();
        assert_eq!(seen.and_then(|seen| seen.session), None);
    }
}
