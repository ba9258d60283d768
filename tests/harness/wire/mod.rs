//! As much of ZooKeeper's wire protocol as an observer needs.
//!
//! Source: `zookeeper.jute` and `ZooDefs.java` of 3.8. Every message is a frame: four bytes of length, then
//! the body. The first of each side is the handshake; then a request is `xid, opcode, …` and a reply `xid,
//! zxid, error, …`, in order of the requests.

mod create_mode;
mod expire;
mod handshake;
mod jute;
mod message;
mod multi;
mod op_code;
mod raw_client;
mod stat;

pub use self::create_mode::CreateMode;
pub use self::expire::expire_session;
pub(crate) use self::expire::session_password;
pub(crate) use self::handshake::{ConnectRequest, ConnectResponse};
pub(crate) use self::jute::{Reader, Writer};
pub(crate) use self::message::{Reply, Request};
pub use self::op_code::OpCode;
pub use self::raw_client::RawClient;
pub use self::stat::Stat;

use tokio_util::codec::LengthDelimitedCodec;

/// ZooKeeper's frames. The limit is far above the server's (`jute.maxbuffer`, 1 MiB), as the harness judges
/// no one.
pub(crate) fn frames() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(64 << 20).new_codec()
}
