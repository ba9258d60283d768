use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

use super::connection::serve;
use super::shared::Shared;

/// Ports below the range that the kernel gives to outgoing connections.
///
/// In that range a client that tries again and again to reach a stopped server would sooner or later be given
/// the server's own port, connect to itself, and keep the server from coming back.
const QUIET_PORTS: Range<u16> = 10_000..26_000;

/// The next of them in turn, from a random one on: so the port of a stopped server is given to no other
/// server of this process for long.
fn next_quiet_port() -> u16 {
    static TURN: LazyLock<AtomicU16> = LazyLock::new(|| AtomicU16::new(rand::random()));
    let count = QUIET_PORTS.end - QUIET_PORTS.start;
    QUIET_PORTS.start + TURN.fetch_add(1, Ordering::Relaxed) % count
}

/// Opens a port: the given one, or for 0 any that is free.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let quiet = || {
        let ports = (0..100).map(|_| next_quiet_port());
        ports.filter_map(|port| std::net::TcpListener::bind((address.ip(), port)).ok()).next()
    };
    match address.port() {
        0 => quiet().map_or_else(|| std::net::TcpListener::bind(address), Ok),
        _ => std::net::TcpListener::bind(address),
    }
}

/// A port that is free now, and that the kernel gives to no outgoing connection.
#[cfg(feature = "zookeeper")]
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(bind(SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0)))?.local_addr()?.port())
}

/// Takes connections until it is aborted.
pub(super) async fn accept(shared: Arc<Shared>, server: usize, listener: TcpListener) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Out of files, most likely; connections that end give some back.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        match shared.fronts.get(server) {
            Some(front) if !front.is_refusing() => {
                tokio::spawn(serve(Arc::clone(&shared), server, stream, peer));
            }
            _ => drop(stream),
        }
    }
}
