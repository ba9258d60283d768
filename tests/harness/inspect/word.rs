//! Asking a four-letter word.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::HarnessError;
use crate::timing::{Timing, within};

/// The answer of the server at `address` to a four-letter word such as `ruok`.
///
/// # Errors
///
/// [`HarnessError::Io`] if nothing listens there, [`HarnessError::Timeout`] if nothing answers, as from a
/// paused server, and [`HarnessError::NotServing`] if the server has no quorum.
pub async fn word(address: SocketAddr, word: &str) -> Result<String, HarnessError> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let answer = within(format!("{address} answers `{word}`"), Timing::answer(), ask)
        .await?
        .map_err(HarnessError::io(format!("ask {address} for `{word}`")))?;
    if answer.contains("not currently serving requests") {
        return Err(HarnessError::NotServing { address: address.to_string() });
    }
    Ok(answer)
}

/// A number from the server's `mntr` report, such as `zk_packets_received`.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] if the report has no such number.
pub async fn counter(address: SocketAddr, name: &str) -> Result<u64, HarnessError> {
    let report = word(address, "mntr").await?;
    report
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| HarnessError::malformed(format!("`{name}` in `mntr`")))
}
