//! `lockkeeper-chaos run` strikes and judges, `judge` judges a run once more, `client` is what `run` starts.

use clap::Parser;
use lockkeeper_chaos::{
    ClientOptions, Failure, Options, RedisClientOptions, RedisOptions, judge_again, redis_round, run_client,
    run_redis_client, soak,
};

#[derive(Debug, Parser)]
#[command(about, version)]
enum Command {
    /// Round after round until the time is up or a promise is broken. Each has a seed, which is printed.
    Run(Options),
    /// Reads the folder of a round, and writes its pictures and summary anew.
    Judge {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// One round on a Redis server of its own.
    Redis(RedisOptions),
    /// A process that contends on Redis.
    #[command(hide = true)]
    RedisClient(RedisClientOptions),
    /// A process that contends.
    #[command(hide = true)]
    Client(ClientOptions),
}

#[tokio::main]
async fn main() -> Result<std::process::ExitCode, Failure> {
    let verdict = match Command::parse() {
        Command::Client(options) => {
            run_client(options).await?;
            return Ok(std::process::ExitCode::SUCCESS);
        }
        Command::RedisClient(options) => {
            run_redis_client(options).await?;
            return Ok(std::process::ExitCode::SUCCESS);
        }
        Command::Redis(options) => {
            let verdict = redis_round(&options, &std::env::current_exe()?).await?;
            verdict.faults.iter().for_each(|fault| println!("{fault:?}"));
            verdict.violations.iter().for_each(|violation| println!("{violation}"));
            println!(
                "grants: {:?}, {} violations: {}",
                verdict.grants,
                verdict.violations.len(),
                verdict.folder.display()
            );
            return Ok(if verdict.violations.is_empty() {
                std::process::ExitCode::SUCCESS
            } else {
                std::process::ExitCode::FAILURE
            });
        }
        Command::Run(options) => soak(options, std::env::current_exe()?).await?,
        Command::Judge { folder } => judge_again(&folder)?,
    };
    println!("{}", verdict.summary);
    Ok(if verdict.violations.is_empty() {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    })
}
