//! The store of the sales: a file for each train, in the place of a database.
//!
//! It keeps the greatest fencing token that it has seen, and refuses smaller ones. A database does the same
//! by a column: `UPDATE trains SET sold = sold + 1, token = $1 WHERE id = $2 AND token <= $1`.

use std::fs::{File, create_dir_all};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lockkeeper::FencingToken;
use thiserror::Error;
use tokio::task::spawn_blocking;

/// Why the store did not write.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// The lock has been granted to another holder since.
    #[error("refused: the token {token} is older than {newest}")]
    EarlierHolder { token: FencingToken, newest: FencingToken },
    #[error("the store is damaged: {0:?} is no sale")]
    Damaged(String),
    #[error(transparent)]
    File(#[from] io::Error),
}

/// A folder of sales.
#[derive(Debug)]
pub(crate) struct Store(PathBuf);

impl Store {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        create_dir_all(folder)?;
        Ok(Self(folder.to_owned()))
    }

    /// Sells the next seat of a train, unless the token is older than that of an earlier sale.
    pub(crate) async fn sell(&self, train: &str, token: FencingToken) -> Result<u32, StoreError> {
        let file = self.0.join(train);
        spawn_blocking(move || append(&file, token)).await.map_err(io::Error::other)?
    }
}

/// Each line is a sale: its seat and its token.
fn append(path: &Path, token: FencingToken) -> Result<u32, StoreError> {
    let mut file = File::options().create(true).read(true).append(true).open(path)?;
    // The store's own transaction: the check and the write are one step. It would not keep an earlier holder
    // out.
    file.lock()?;
    let mut sales = String::new();
    file.read_to_string(&mut sales)?;
    let mut seats = 0;
    let mut newest = None;
    for line in sales.lines() {
        let damaged = || StoreError::Damaged(line.to_owned());
        let (seat, text) = line.split_once(' ').ok_or_else(damaged)?;
        seats = seat.parse().map_err(|_| damaged())?;
        newest = Some(text.parse::<FencingToken>().map_err(|_| damaged())?);
    }
    if let Some(newest) = newest.filter(|newest| token < *newest) {
        return Err(StoreError::EarlierHolder { token, newest });
    }
    writeln!(file, "{} {token}", seats + 1)?;
    Ok(seats + 1)
}
