//! Packets between the command and the supervisor, over a pair of sockets that keeps their bounds.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::SIZE_MAX;

/// A received packet.
#[derive(Debug)]
pub(crate) enum Received<T> {
    /// A message, and the file that came with it.
    Message(T, Option<OwnedFd>),
    /// There is no packet now.
    Nothing,
    /// The other side is gone.
    End,
}

/// Both ends. No other process inherits them, and neither end blocks.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends a message, with a file if one is given. One above [`SIZE_MAX`] is an error, and nothing is sent.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > SIZE_MAX {
        let text = format!("a message has {} bytes, and may have {SIZE_MAX}", text.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    // A peer that is gone is an error, and no signal.
    sendmsg(socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a packet, without waiting.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Received<T>> {
    let mut buffer = vec![0; SIZE_MAX];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got,
            // The other side ended before it had received all. The kernel says so once, ahead of the packets
            // that the other side had sent.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            Err(error) => return Err(error.into()),
        }
    };
    if got.bytes == 0 {
        return Ok(Received::End);
    }
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last().or(file);
        }
    }
    let text = buffer.get(..got.bytes).unwrap_or_default();
    Ok(Received::Message(serde_json::from_slice(text)?, file))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    /// The next packet, or the end, which may come late: while another test starts a process, that has our
    /// sockets until its program begins.
    fn next(socket: &OwnedFd) -> Received<String> {
        loop {
            match receive(socket).unwrap() {
                Received::Nothing => poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap(),
                received => return received,
            };
        }
    }

    #[test]
    fn a_message_arrives_whole_and_with_its_file() {
        let (ours, theirs) = pair().unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"within").unwrap();
        send(&ours, &"one", None).unwrap();
        send(&ours, &"two", Some(File::open(file.path()).unwrap().as_fd())).unwrap();
        assert!(
            matches!(receive::<String>(&theirs).unwrap(), Received::Message(text, None) if text == "one")
        );
        let Received::Message(_, Some(received)) = receive::<String>(&theirs).unwrap() else {
            panic!("no file")
        };
        let mut text = String::new();
        File::from(received).read_to_string(&mut text).unwrap();
        assert_eq!(text, "within");
        assert!(matches!(receive::<String>(&theirs).unwrap(), Received::Nothing));
    }

    #[test]
    fn the_end_of_the_other_side_is_seen_behind_its_last_message() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &"last", None).unwrap();
        drop(ours);
        assert!(matches!(next(&theirs), Received::Message(..)));
        assert!(matches!(next(&theirs), Received::End));
        assert!(send(&theirs, &"too late", None).is_err());
    }

    #[test]
    fn the_last_message_of_a_side_that_ended_before_it_had_received_all_is_not_lost() {
        let (ours, theirs) = pair().unwrap();
        send(&theirs, &"never received", None).unwrap();
        send(&ours, &"last", None).unwrap();
        drop(ours);
        assert!(matches!(next(&theirs), Received::Message(text, None) if text == "last"));
        assert!(matches!(next(&theirs), Received::End));
    }
}
