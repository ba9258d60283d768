//! The loads of `lockkeeper-redis-bench` by the crate `rslock`: see `benches/README.md`.
//!
//! `lockkeeper-redis-peer URL rslock SCENARIO key=value…`

#[path = "../redis/load.rs"]
mod load;

use rslock::{LockGuard, LockManager};

use self::load::{Failure, KEY, LEASE, Peer};

/// A connection by `rslock`, to one server. While another client has the lock, it tries again after up to 200
/// ms.
struct Rslock(LockManager);

impl Peer for Rslock {
    type Kind = ();
    type Held = LockGuard;

    fn kind(name: &str) -> Result<(), Failure> {
        match name {
            "rslock" => Ok(()),
            _ => Err(format!("{name} is no peer: use rslock").into()),
        }
    }

    async fn connect(url: &str, (): ()) -> Result<Self, Failure> {
        Ok(Self(LockManager::new(vec![url])))
    }

    async fn acquire(&self) -> Result<LockGuard, Failure> {
        Ok(self.0.acquire(KEY.as_bytes(), LEASE).await?)
    }

    async fn release(&self, held: LockGuard) -> Result<(), Failure> {
        held.release().await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    load::run::<Rslock>().await
}
