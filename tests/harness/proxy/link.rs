//! One connection from a client through a proxy to a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};
use tokio_util::sync::CancellationToken;

use super::gate::Gate;
use super::held::Held;
use super::record::{Fate, Record};
use super::rule::{Judgement, Rule};
use super::tap::Tap;
use crate::timing::Timing;
use crate::wire::frames;

type Source = FramedRead<OwnedReadHalf, LengthDelimitedCodec>;
type Drain = FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>;

/// A connection in the making, and all it needs.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: u64,
    pub(crate) target: SocketAddr,
    pub(crate) gate: Arc<Gate>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) cut: CancellationToken,
}

/// The fault that ended a connection.
#[derive(Debug)]
struct Strike {
    rule: Arc<Rule>,
    record: Record,
}

impl Link {
    /// Relays until a side ends, the proxy cuts, or a fault strikes. Calls `ended` when both sides are
    /// closed.
    pub(crate) async fn run(self, client: TcpStream, ended: impl FnOnce()) {
        let server = tokio::select! {
            biased;
            () = self.cut.cancelled() => None,
            server = TcpStream::connect(self.target) => server.ok(),
        };
        // A server that refuses shows as a connection that ends at once: a proxy cannot take back that it
        // accepted.
        let Some(server) = server else {
            self.tap.closed(self.connection);
            drop(client);
            return ended();
        };
        // Or small messages wait for each other, and the log shows an order that the peers did not make.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (mut from_client, mut to_client) = (source(from_client), drain(to_client));
        let (mut from_server, mut to_server) = (source(from_server), drain(to_server));

        let strike = tokio::select! {
            biased;
            () = self.cut.cancelled() => None,
            strike = self.requests(&mut from_client, &mut to_server) => strike,
            strike = self.replies(&mut from_server, &mut to_client) => strike,
        };
        // An orderly end (FIN) in both directions: a reset could destroy bytes that were forwarded before.
        let _ = tokio::join!(to_client.get_mut().shutdown(), to_server.get_mut().shutdown());
        self.tap.closed(self.connection);
        if let Some(Strike { rule, record }) = strike {
            rule.strike(record);
        }
        ended();
        // Closing a socket with unread bytes resets it; so read them, until the peers have closed or for a
        // while.
        let (mut client, mut server) = (from_client.into_inner(), from_server.into_inner());
        let (mut one, mut other) = (sink(), sink());
        let rest = async { tokio::join!(copy(&mut client, &mut one), copy(&mut server, &mut other)) };
        let _ = tokio::time::timeout(Timing::scaled(Duration::from_secs(2)), rest).await;
    }

    async fn requests(&self, source: &mut Source, drain: &mut Drain) -> Option<Strike> {
        loop {
            let frame = source.next().await;
            // Behind the reading, so that an end of the connection is held back as well.
            self.gate.to_server().await;
            let frame = frame?.ok()?;
            let judged = self.tap.judge_request(self.connection, &frame).ok()?;
            if let Some(rule) = &judged.rule {
                let dropped = if rule.action().holds() {
                    let record = self.tap.arriving_request(self.connection, &judged).ok()?;
                    Held::new(&self.tap, rule, record).judged().await == Judgement::Cut
                } else {
                    true
                };
                if dropped {
                    let record = self.tap.request(self.connection, &judged, Fate::Dropped).ok()?;
                    return Some(Strike { rule: Arc::clone(rule), record });
                }
            }
            self.tap.request(self.connection, &judged, Fate::Passed).ok()?;
            drain.send(frame.freeze()).await.ok()?;
        }
    }

    async fn replies(&self, source: &mut Source, drain: &mut Drain) -> Option<Strike> {
        loop {
            let frame = source.next().await;
            self.gate.to_client().await;
            let frame = frame?.ok()?;
            let judged = self.tap.judge_reply(self.connection, &frame).ok()?;
            if let Some(rule) = &judged.rule {
                let dropped = if rule.action().holds() {
                    let record = self.tap.arriving_reply(self.connection, &judged).ok()?;
                    Held::new(&self.tap, rule, record).judged().await == Judgement::Cut
                } else {
                    true
                };
                if dropped {
                    let record = self.tap.reply(self.connection, &judged, &frame, Fate::Dropped).ok()?;
                    return Some(Strike { rule: Arc::clone(rule), record });
                }
            }
            let record = self.tap.reply(self.connection, &judged, &frame, Fate::Passed).ok()?;
            let liar = self.tap.liar();
            match liar.and_then(|liar| liar.instead_of(&frame, record.op, record.path.as_deref())) {
                // Nothing is left in the buffers of `drain`: each message is flushed.
                Some(lie) => drain.get_mut().write_all(&lie).await.ok()?,
                None => drain.send(frame.freeze()).await.ok()?,
            }
        }
    }
}

fn source(half: OwnedReadHalf) -> Source {
    FramedRead::new(half, frames())
}

fn drain(half: OwnedWriteHalf) -> Drain {
    FramedWrite::new(half, frames())
}
