//! Sets TCP_NODELAY on the client's sockets. The client crate neither sets it nor gives access to its
//! sockets.
//!
//! Without it the kernel delays the second of two small requests until the first is acknowledged, so two
//! requests that are sent together cost two round trips instead of one. On Linux a process can get a second
//! descriptor of each of its own sockets from the kernel (`pidfd_getfd`), so no memory of other code is
//! touched. The sockets are recognised by their peer address. Where this is not possible everything works,
//! but slower.

use crate::config::connect_string::Endpoint;

/// Sets the option on this process's connections to any of `endpoints`, in the background.
#[cfg(target_os = "linux")]
pub(super) fn set_on_connections_to(endpoints: &[Endpoint]) {
    let endpoints = endpoints.to_vec();
    // Resolving names and reading /proc block.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || {
            if let Err(error) = linux::set(&endpoints) {
                tracing::debug!(
                    %error,
                    "TCP_NODELAY stays off: requests sent together may cost two round trips"
                );
            }
        });
    }
}

/// On other systems this needs unsafe code.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_on_connections_to(_: &[Endpoint]) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::{SocketAddr, ToSocketAddrs};

    use rustix::fs::{Dir, Mode, OFlags, open, readlinkat};
    use rustix::net::{getpeername, sockopt};
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    use crate::config::connect_string::Endpoint;

    pub(super) fn set(endpoints: &[Endpoint]) -> io::Result<()> {
        let servers: Vec<SocketAddr> = endpoints
            .iter()
            .filter_map(|endpoint| endpoint.address().to_socket_addrs().ok())
            .flatten()
            .collect();
        let myself = pidfd_open(getpid(), PidfdFlags::empty())?;
        let descriptors =
            open("/proc/self/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        for entry in Dir::read_from(&descriptors)?.flatten() {
            let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // Only sockets: closing a second descriptor of a file would end the locks that the process has on
            // that file. The links are read relative to the folder, because resolving a whole path for each
            // of thousands of descriptors is most of the work.
            let to = readlinkat(&descriptors, entry.file_name(), Vec::new());
            if !to.is_ok_and(|to| to.to_bytes().starts_with(b"socket:")) {
                continue;
            }
            // The descriptor may have been closed meanwhile.
            let Ok(socket) = pidfd_getfd(&myself, number, PidfdGetfdFlags::empty()) else {
                continue;
            };
            let peer = getpeername(&socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
            if peer.is_some_and(|peer| servers.iter().any(|server| same(*server, peer))) {
                sockopt::set_tcp_nodelay(&socket, true)?;
            }
        }
        Ok(())
    }

    /// IPv6 sockets show IPv4 peers as mapped addresses. Scopes do not matter here.
    fn same(server: SocketAddr, peer: SocketAddr) -> bool {
        server.port() == peer.port() && server.ip().to_canonical() == peer.ip().to_canonical()
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        use super::*;

        #[test]
        fn connections_to_the_servers_are_found_and_set_and_no_other() {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let other = TcpListener::bind("127.0.0.1:0").unwrap();
            let to_server = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            let to_other = TcpStream::connect(other.local_addr().unwrap()).unwrap();
            let text = format!("127.0.0.1:{}", server.local_addr().unwrap().port());
            let endpoints = text.parse::<crate::ConnectString>().unwrap().endpoints().to_vec();
            set(&endpoints).unwrap();
            assert!(to_server.nodelay().unwrap());
            assert!(!to_other.nodelay().unwrap());
        }
    }
}
