use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::incoming::{Fate, Incoming};
use super::outbox::{Outbox, Parcel};
use super::shared::Shared;
use super::socket::{Receiver, Sender, plain};
use crate::fault::{Fault, Gate, Strike};
use crate::machine::ClientId;
use crate::wire::{FourLetter, Frame, decode_connect, decode_request, read_frame};

/// How many bytes are gathered before they are written.
const BATCH: usize = 64 * 1024;

/// How long a connection may take to ask for a session.
const FIRST_FRAME: Duration = Duration::from_secs(10);

/// Serves one connection until either side closes it.
pub(super) async fn serve(shared: Arc<Shared>, server: usize, stream: TcpStream, peer: SocketAddr) {
    // Replies are small and waited for: they must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let Some((read, write)) = sides(&shared, stream).await else { return };
    let outbox = Arc::new(Outbox::default());
    let client = shared.open(server, &peer.ip().to_string(), Arc::clone(&outbox));
    let writer = tokio::spawn(write_all(Arc::clone(&shared), server, Arc::clone(&outbox), write));
    let connection = Connection { shared, server, client, outbox };
    connection.read_all(read).await;
    connection.outbox.finish();
    connection.shared.disconnect(client);
    // The read half is dropped by now; the socket closes when the writer has sent the rest.
    let _ = writer.await;
}

/// Both sides of the connection; nothing if its handshake fails or does not end.
async fn sides(shared: &Shared, stream: TcpStream) -> Option<(Receiver, Sender)> {
    #[cfg(feature = "tls")]
    if let Some(identity) = &shared.identity {
        return tokio::time::timeout(FIRST_FRAME, identity.accept(stream)).await.ok()?.ok();
    }
    #[cfg(not(feature = "tls"))]
    let _ = shared;
    Some(plain(stream))
}

async fn write_all(shared: Arc<Shared>, server: usize, outbox: Arc<Outbox>, mut socket: Sender) {
    let sending = async {
        let mut batch = BytesMut::new();
        while let Some(parcel) = outbox.next().await {
            if let Some(gate) = parcel.gate {
                gate.pass().await;
            }
            batch.extend_from_slice(&parcel.frame);
            while batch.len() < BATCH
                && let Some(parcel) = outbox.next_ready()
            {
                batch.extend_from_slice(&parcel.frame);
            }
            outbox.taken();
            if let Some(front) = shared.fronts.get(server) {
                front.thawed().await;
            }
            if socket.write_all(&batch).await.is_err() {
                break;
            }
            batch.clear();
        }
    };
    tokio::select! {
        () = sending => {}
        () = outbox.cut_off() => {}
    }
    outbox.cut();
    socket.end(outbox.ends_by_reset()).await;
}

struct Connection {
    shared: Arc<Shared>,
    server: usize,
    client: ClientId,
    outbox: Arc<Outbox>,
}

impl Connection {
    async fn read_all(&self, socket: Receiver) {
        let mut socket = BufReader::new(socket);
        let mut first = true;
        loop {
            let frame = tokio::select! {
                frame = read_frame(&mut socket, first, self.shared.max_request) => frame,
                () = sleep(FIRST_FRAME), if first => return,
                () = self.outbox.closing() => return,
            };
            if let Some(front) = self.shared.fronts.get(self.server) {
                tokio::select! {
                    () = front.thawed() => {}
                    () = self.outbox.closing() => return,
                }
            }
            let incoming = match frame {
                Ok(Frame::Body(body)) if first => decode_connect(body).map(Incoming::Connect),
                Ok(Frame::Body(body)) => {
                    decode_request(body).map(|(xid, request)| Incoming::Request(xid, request))
                }
                Ok(Frame::Letters(letters)) => return self.four_letters(letters),
                Ok(Frame::End) | Err(_) => return,
            };
            first = false;
            let Some(incoming) = incoming else { return };
            self.outbox.room().await;
            // What is read at the end of a session, or behind it, meets no fault of the next one.
            if !self.outbox.is_open() {
                return;
            }
            self.handle(incoming).await;
        }
    }

    fn four_letters(&self, letters: [u8; 4]) {
        let answer = self.shared.four_letters(self.server, FourLetter::from(letters));
        self.outbox.push(Parcel { frame: answer.into(), gate: None });
        self.outbox.finish();
    }

    async fn handle(&self, incoming: Incoming) {
        let Some(strike) = self.shared.consult(self.client, self.server, &incoming) else {
            return self.apply(incoming, &Fate::Sent);
        };
        match strike.fault() {
            Fault::DropConnectionBefore => self.shared.break_off(self.server, &self.outbox),
            Fault::DropConnectionAfter => {
                self.apply(incoming, &Fate::Silenced);
                self.shared.break_off(self.server, &self.outbox);
            }
            Fault::HoldRequest => return self.hold(incoming, &strike).await,
            Fault::DelayRequest(by) => {
                strike.done();
                sleep(by).await;
                return self.apply(incoming, &Fate::Sent);
            }
            Fault::HoldReply => self.apply(incoming, &Fate::Gated(strike.gate())),
            Fault::DelayReply(by) => self.apply(incoming, &Fate::Gated(Gate::At(Instant::now() + by))),
            Fault::DropReply => self.apply(incoming, &Fate::Dropped),
            Fault::Refuse(error) => self.shared.refuse(self.client, &incoming, error),
            Fault::SwapSession => {
                let mut incoming = incoming;
                if let Incoming::Connect(request) = &mut incoming {
                    request.session = 0;
                    request.password.clear();
                }
                self.apply(incoming, &Fate::Sent);
            }
        }
        strike.done();
    }

    fn apply(&self, incoming: Incoming, fate: &Fate) {
        self.shared.apply(self.client, incoming, fate);
    }

    /// Keeps a request until it is released, on its connection or without it.
    async fn hold(&self, incoming: Incoming, strike: &Strike) {
        let origin = self.shared.origin(self.client);
        let gate = strike.gate();
        strike.done();
        tokio::select! {
            () = gate.clone().pass() => {}
            () = self.outbox.closing() => {}
        }
        // Asked behind the gate: a connection can have ended before the release, and be told of both at once.
        if self.outbox.is_open() {
            self.apply(incoming, &Fate::Sent);
        } else if let (Incoming::Request(_, request), Some(origin)) = (incoming, origin) {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                gate.pass().await;
                shared.late_write(&origin, request);
            });
        }
    }
}
