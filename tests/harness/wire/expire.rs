//! The end of another client's session.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_util::codec::Framed;

use super::{ConnectRequest, OpCode, Writer, frames};
use crate::error::HarnessError;
use crate::inspect::{forgotten, leader};
use crate::timing::{Timing, eventually, within};

/// Makes `servers` forget `session`, and waits until the leader among them has. Its client sees what it sees
/// at an expiry.
///
/// A second connection attaches the session and closes it. The owner may snatch it back in between, so this
/// is done until it holds.
///
/// # Errors
///
/// [`HarnessError::Timeout`] if the session lives on, as with a wrong password or without a quorum.
pub async fn expire_session(
    servers: &[SocketAddr],
    session: i64,
    password: &[u8],
) -> Result<(), HarnessError> {
    let what = format!("the servers forget session {session:#x}, if that is its password");
    eventually(what, Timing::event(), async || {
        let leader = leader(servers).await?;
        if forgotten(leader, session).await.ok()? {
            return Some(());
        }
        // The result does not matter, only the leader's sessions afterwards.
        let _ = within("a session is closed", Timing::answer(), close(leader, session, password)).await;
        None
    })
    .await
}

/// The password of any session, which ZooKeeper derives from the number of the session:
/// `ZooKeeperServer.generatePasswd` of 3.8 and 3.9, with `java.util.Random`.
pub(crate) fn session_password(session: i64) -> Vec<u8> {
    const SECRET: i64 = 0xB341_5C00;
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const BITS: u64 = (1 << 48) - 1;
    let mut state = ((session ^ SECRET).cast_unsigned() ^ MULTIPLIER) & BITS;
    let mut next = || {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & BITS;
        (state >> 16) as u32
    };
    (0..4).flat_map(|_| next().to_le_bytes()).collect()
}

async fn close(server: SocketAddr, session: i64, password: &[u8]) -> std::io::Result<()> {
    let mut frames = Framed::new(TcpStream::connect(server).await?, frames());
    let request = ConnectRequest { timeout: Duration::from_secs(10), session, password: password.to_vec() };
    frames.feed(request.encode()).await?;
    // Behind it at once, without waiting for the answer: that leaves the owner the least time to come back.
    frames.send(Writer::default().int(1).int(OpCode::CloseSession.to_wire()).finish()).await?;
    // The server ends the connection when it has closed the session, or refused it.
    while let Some(Ok(_)) = frames.next().await {}
    Ok(())
}
