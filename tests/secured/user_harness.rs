//! The real server that `lockkeeper-testserver` starts for users, with its feature `zookeeper`.

use std::io::{BufRead, BufReader, stdin};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lockkeeper::Mutex;
use lockkeeper_tests::{Timing, eventually, left_out};
use lockkeeper_testserver::zookeeper::{ZooKeeper, ZooKeeperError};

use crate::support::{Outcome, a_mutex_passes_between, builder};

#[tokio::test]
async fn a_real_server_is_killed_and_continues_on_its_data() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let server = ZooKeeper::start().await?;
    let address = server.connect_string();
    let (one, other) = (builder(&address).connect().await?, builder(&address).connect().await?);
    one.znodes().create_or_write("/kept", "by the server").await?;
    a_mutex_passes_between(&one, &other).await?;

    server.kill().await?;
    assert!(server.pid().is_none());
    assert!(matches!(server.kill().await, Err(ZooKeeperError::Down)));
    server.restart().await?;
    assert_eq!(server.connect_string(), address);
    assert_eq!(one.znodes().read("/kept").await?.map(|(data, _)| data), Some(b"by the server".to_vec()));
    server.stop().await?;
    server.restart().await?;
    let next = builder(&address).connect().await?;
    next.shutdown().await?;
    Ok(())
}

#[tokio::test]
async fn a_holder_on_a_paused_real_server_learns_of_its_loss_before_another_is_granted() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let server = ZooKeeper::builder().setting("maxClientCnxns", "0").start().await?;
    let manager = builder(&server.connect_string()).connect().await?;
    let guard = Mutex::new(&manager, "/lock")?.acquire().await?;
    server.pause().await?;
    guard.lost().await;
    assert!(!guard.is_valid());
    server.resume().await?;
    Mutex::new(&manager, "/lock")?.acquire().await?.release().await?;
    Ok(())
}

#[tokio::test]
async fn a_real_server_that_cannot_start_says_why() {
    if left_out() {
        return;
    }
    let nowhere = ZooKeeper::builder().jars("/nowhere/lib").start().await.unwrap_err();
    assert!(matches!(nowhere, ZooKeeperError::NotInstalled { .. }), "{nowhere}");
    assert!(nowhere.to_string().contains("zookeeper-….jar in the folder /nowhere/lib is missing. Install"));
    let ended = ZooKeeper::builder().setting("tickTime", "never").start().await.unwrap_err();
    assert!(matches!(&ended, ZooKeeperError::Ended { log, .. } if log.contains("never")), "{ended}");
}

/// The other process of the next test.
#[tokio::test]
#[ignore = "a process of another test"]
async fn a_process_with_a_real_server() {
    let server = ZooKeeper::start().await.unwrap();
    println!("started {} {}", server.pid().unwrap(), server.log_file().display());
    let _ = stdin().lines().next();
}

#[tokio::test]
async fn a_real_server_ends_with_the_process_that_started_it_however_that_dies() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", "user_harness::a_process_with_a_real_server", "--ignored", "--nocapture"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
    let line = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("started ")?.1.to_owned()));
    let line = line.ok_or("no server")?;
    let (pid, log) = line.split_once(' ').ok_or("no log")?;
    let (of_server, log) = (PathBuf::from(format!("/proc/{pid}/exe")), PathBuf::from(log));
    assert!(of_server.exists() && log.exists());
    process.kill()?;
    process.wait()?;
    let gone = async || (!of_server.exists() && !log.exists()).then_some(());
    eventually("the end of the server, and of its folder", Timing::event(), gone).await?;
    Ok(())
}
