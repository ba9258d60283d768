//! Ports for the servers of one ensemble, which no other test process takes.
//!
//! The system's free ports (bind to 0) will not do: while a server is down, any outgoing connection may be
//! given its port, or a client that retries may connect to itself. So ports come from below the range the
//! system hands out, in blocks, each guarded by a lock file that the system releases when its holder dies.
//! The embedded server takes its ports below these.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::{env, fs, process};

use crate::error::HarnessError;

/// Ports in a block: three for each of up to three servers, and one for TLS.
const BLOCK: u16 = 10;
const FIRST: u16 = 27_000;
const BLOCKS: u16 = 500;

/// A block of loopback ports, reserved for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Ports {
    first: u16,
    _lock: File,
}

impl Ports {
    /// Reserves a block of which every port is free now.
    pub(crate) fn reserve() -> Result<Self, HarnessError> {
        // A start of its own for each process and call, so that neighbours seldom probe the same block.
        static TURN: AtomicU16 = AtomicU16::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let start = (process::id() % u32::from(BLOCKS)) as u16 * 7;

        // One folder for each user, as no user can open another's locks; servers of other users show as ports
        // that are taken.
        let user = rustix::process::getuid().as_raw();
        let folder = env::temp_dir().join(format!("lockkeeper-tests-ports-{user}"));
        fs::create_dir_all(&folder).map_err(HarnessError::io("create the folder of port locks"))?;
        for step in 0..BLOCKS {
            let first = FIRST + (start.wrapping_add(turn).wrapping_add(step) % BLOCKS) * BLOCK;
            let Ok(lock) = File::create(folder.join(first.to_string())) else { continue };
            if lock.try_lock().is_ok() && (first..first + BLOCK).all(is_free) {
                return Ok(Self { first, _lock: lock });
            }
        }
        Err(HarnessError::io("reserve loopback ports")(io::Error::from(io::ErrorKind::AddrInUse)))
    }

    /// The address that clients of a server connect to.
    pub(crate) fn client(&self, server: usize) -> SocketAddr {
        self.at(server, 0)
    }

    /// The address at which a server follows its leader.
    pub(crate) fn quorum(&self, server: usize) -> SocketAddr {
        self.at(server, 1)
    }

    /// The address at which a server votes.
    pub(crate) fn election(&self, server: usize) -> SocketAddr {
        self.at(server, 2)
    }

    /// The address at which a single server takes clients over TLS.
    pub(crate) fn secure(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.first + BLOCK - 1))
    }

    fn at(&self, server: usize, offset: u16) -> SocketAddr {
        let server = u16::try_from(server).unwrap_or(u16::MAX);
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.first + server * 3 + offset))
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
