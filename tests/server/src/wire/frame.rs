use std::io;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest frame accepted: `jute.maxbuffer` of the real server.
pub(crate) const MAX_FRAME: usize = 0xf_ffff;

/// How much is set aside for a frame before its bytes have come.
const CHUNK: usize = 16 * 1024;

#[derive(Debug, Error)]
pub(crate) enum FrameError {
    #[error("a frame of {announced} bytes was announced; send at most {max}")]
    Length { announced: i32, max: usize },
    #[error("the connection broke inside a frame: {0}")]
    Io(#[from] io::Error),
}

/// Reads the length of the next frame. `None` at a clean end.
async fn read_length(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<[u8; 4]>, FrameError> {
    let mut length = [0; 4];
    match from.read_exact(&mut length).await {
        Ok(_) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The beginning of a frame.
pub(crate) enum Frame {
    /// A whole frame.
    Body(Bytes),
    /// Four letters where a length should be, as the first bytes of a connection.
    Letters([u8; 4]),
    /// The other side has closed.
    End,
}

/// Reads one frame of at most `max` bytes. `first` allows a four-letter command instead.
pub(crate) async fn read_frame(
    from: &mut (impl AsyncRead + Unpin),
    first: bool,
    max: usize,
) -> Result<Frame, FrameError> {
    let Some(prefix) = read_length(from).await? else { return Ok(Frame::End) };
    if first && prefix.iter().all(u8::is_ascii_lowercase) {
        return Ok(Frame::Letters(prefix));
    }
    let announced = i32::from_be_bytes(prefix);
    let length = usize::try_from(announced).ok().filter(|length| *length <= max);
    let length = length.ok_or(FrameError::Length { announced, max })?;
    let mut body = BytesMut::with_capacity(length.min(CHUNK));
    let mut rest = from.take(length as u64);
    while body.len() < length {
        if rest.read_buf(&mut body).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
    Ok(Frame::Body(body.freeze()))
}
