//! One load on Redis, by one library, as one line of JSON: see `benches/README.md`.
//!
//! `lockkeeper-redis-bench URL PEER SCENARIO key=value…`

mod limit;
mod load;
mod peers;

#[tokio::main]
async fn main() -> Result<(), load::Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [url, peer, scenario, rest @ ..] if peer == "gcra" && scenario == "admit" => {
            limit::run(url, rest).await
        }
        _ => load::run::<peers::Client>().await,
    }
}
