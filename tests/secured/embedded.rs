//! TLS on the embedded server.

use std::time::Duration;

use lockkeeper::config::Tls;
use lockkeeper_testserver::TestServer;

use crate::certificates::Authority;
use crate::support::{Outcome, a_mutex_passes_between, builder};

const SHORTLY: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_manager_takes_locks_over_tls_on_the_embedded_server() -> Outcome {
    let server = TestServer::builder().tls(true).start().await?;
    let servers = format!("tcp+tls://{}", server.connect_string());
    let authority = server.tls_authority().ok_or("no authority")?;
    let connect = || builder(&servers).tls(Tls::new().authority(authority)).connect();
    let (one, other) = (connect().await?, connect().await?);
    a_mutex_passes_between(&one, &other).await?;

    // Its connections are cut as those in plain, and made again.
    server.drop_connections();
    a_mutex_passes_between(&one, &other).await?;
    server.stop().await;
    server.restart().await?;
    a_mutex_passes_between(&one, &other).await?;
    Ok(())
}

#[tokio::test]
async fn the_embedded_server_over_tls_takes_no_plain_client_and_no_client_trusts_it_by_chance() -> Outcome {
    let server = TestServer::builder().tls(true).start().await?;
    let plain = builder(&server.connect_string()).connect_deadline(SHORTLY).connect().await;
    assert!(plain.is_err(), "a client in plain");
    let servers = format!("tcp+tls://{}", server.connect_string());
    let stranger = Tls::new().authority(&Authority::new("stranger").pem());
    let refused = builder(&servers).tls(stranger).connect_deadline(SHORTLY).connect().await;
    assert!(refused.is_err(), "a server of an unknown authority");
    assert_eq!(server.sessions(), [0_i64; 0]);
    Ok(())
}
