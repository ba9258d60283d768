//! One load on Redis, by one library, as one line of JSON: see `benches/README.md`.
//!
//! `lockkeeper-redis-bench URL PEER SCENARIO key=value…`

mod load;
mod peers;

#[tokio::main]
async fn main() -> Result<(), load::Failure> {
    load::run::<peers::Client>().await
}
