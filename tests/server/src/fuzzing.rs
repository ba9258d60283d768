//! What `tests/fuzz` runs on random bytes: the frames of clients. No part of the API.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::machine::{Machine, Settings};
use crate::protocol::ConnectRequest;
use crate::wire::{FourLetter, Frame, MAX_FRAME, decode_connect, decode_request, encode, read_frame};

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("frames", frames), ("connections", connections)];

/// All that a client sends over a connection.
fn connections(data: &[u8]) {
    let mut rest = data;
    let mut frames = Vec::new();
    let mut read = 0;
    loop {
        match ready(read_frame(&mut rest, frames.is_empty(), MAX_FRAME)) {
            Some(Ok(Frame::Body(body))) => {
                read += 4 + body.len();
                frames.push(body);
            }
            Some(Ok(Frame::Letters(letters))) => {
                let word = FourLetter::from(letters);
                return assert!(data.starts_with(&letters), "{word:?}");
            }
            Some(Ok(Frame::End) | Err(_)) | None => break,
        }
    }
    assert!(read <= data.len(), "more than was sent");
    let mut frames = frames.into_iter();
    let Some(request) = frames.next().and_then(decode_connect) else { return };
    serve(true, request, frames);
}

/// A frame: a request to connect, and any other.
fn frames(data: &[u8]) {
    let frame = Bytes::copy_from_slice(data);
    if let Some(request) = decode_connect(frame.clone()) {
        assert!(request.password.len() <= data.len());
    }
    if let Some((xid, _)) = decode_request(frame.clone()) {
        assert!(data.starts_with(&xid.to_be_bytes()));
    }
    serve(true, ConnectRequest::default(), std::iter::once(frame));
}

/// The machine answers whatever it is asked. A client without a session connects again.
pub(crate) fn serve(ttl_nodes: bool, request: ConnectRequest, frames: impl Iterator<Item = Bytes>) {
    let mut machine = Machine::new(Settings { ttl_nodes, ..Settings::default() }, 0);
    let mut client = machine.open(0, "127.0.0.1");
    machine.connect(client, request, 0);
    for (now, frame) in (0..).zip(frames) {
        if machine.session_of(client).is_none() {
            machine.disconnect(client);
            client = machine.open(0, "127.0.0.1");
            machine.connect(client, ConnectRequest::default(), now);
        }
        let Some((xid, request)) = decode_request(frame) else { continue };
        for sent in machine.request(client, xid, request, now).iter().filter_map(encode) {
            let length = sent.first_chunk().map(|length| i32::from_be_bytes(*length));
            let end = length.and_then(|length| usize::try_from(length).ok()?.checked_add(4));
            assert_eq!(end, Some(sent.len()), "a frame and its length");
        }
        machine.advance(now);
    }
}

/// The result of what never waits: all bytes are there.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[cfg(test)]
#[path = "../../fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_frames_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
