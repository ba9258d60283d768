use std::io;

use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

/// The side of a connection that is read, in plain or over TLS.
pub(super) type Receiver = Box<dyn AsyncRead + Send + Unpin>;

/// The side of a connection that is written.
pub(super) enum Sender {
    Plain(OwnedWriteHalf),
    #[cfg(feature = "tls")]
    Secure(Box<dyn tokio::io::AsyncWrite + Send + Unpin>),
}

/// Both sides of a connection in plain.
pub(super) fn plain(stream: TcpStream) -> (Receiver, Sender) {
    let (read, write) = stream.into_split();
    (Box::new(read), Sender::Plain(write))
}

impl Sender {
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes).await,
            #[cfg(feature = "tls")]
            Self::Secure(socket) => {
                socket.write_all(bytes).await?;
                socket.flush().await
            }
        }
    }

    /// Closes the connection: in order, or by a reset, which is not done over TLS.
    pub(super) async fn end(self, by_reset: bool) {
        match self {
            Self::Plain(socket) if by_reset => {
                // Nothing is left to be sent, so the close of the socket is a reset.
                let _ = socket.as_ref().set_zero_linger();
                socket.forget();
            }
            Self::Plain(mut socket) => drop(socket.shutdown().await),
            #[cfg(feature = "tls")]
            Self::Secure(mut socket) => drop(socket.shutdown().await),
        }
    }
}
