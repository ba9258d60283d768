//! A way to a server that takes time: the network of a fleet, which a loopback hides.

#![allow(clippy::disallowed_methods, reason = "a stopwatch of milliseconds, and threads of no runtime")]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Takes connections for a server, and delays every byte each way. It ends with the process.
///
/// Its threads sleep until a byte is due, which is exact to some hundredth of a millisecond; the timers of an
/// async runtime have steps of a millisecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
}

/// Bytes, and when they are due.
type Delayed = (Instant, Vec<u8>);

impl Relay {
    /// Listens on the loopback.
    pub(crate) fn start(server: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that fails is one that the server refused.
                let _ = join(client, server, delay);
            }
        });
        Ok(Self { address })
    }

    pub(crate) fn connect_string(self) -> String {
        self.address.to_string()
    }
}

fn join(client: TcpStream, server: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || receive(from, &sender, delay));
        thread::spawn(move || send(to, &receiver));
    }
    Ok(())
}

/// Ends with the connection, or with its other end.
fn receive(mut from: TcpStream, sender: &Sender<Delayed>, delay: Duration) {
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let due = Instant::now() + delay;
        if sender.send((due, bytes.get(..length).unwrap_or_default().to_vec())).is_err() {
            return;
        }
    }
}

fn send(mut to: TcpStream, receiver: &Receiver<Delayed>) {
    while let Ok((due, bytes)) = receiver.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Bytes of the other direction may be on their way.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_in_order_and_not_before_its_time() {
        const DELAY: Duration = Duration::from_millis(2);
        let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(echo.local_addr().unwrap(), DELAY).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = echo.accept().unwrap();
            io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap()
        });
        let mut client = TcpStream::connect(relay.connect_string()).unwrap();
        let sent: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let begun = Instant::now();
        for part in sent.chunks(50_000) {
            client.write_all(part).unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert!(begun.elapsed() >= DELAY * 2, "{:?}", begun.elapsed());
        assert!(received == sent, "{} bytes", received.len());
        assert_eq!(server.join().unwrap(), 200_000);
    }
}
