//! Connections over TLS: trusted servers and accepted clients.

use std::env;
use std::process::Output;
use std::time::Duration;

use lockkeeper::config::{ConnectionManagerBuilder, Tls};
use lockkeeper::error::ConnectError;
use lockkeeper_tests::{Ensemble, Timing, left_out};

use crate::certificates::{Authority, Identity};
use crate::support::{Outcome, a_mutex_passes_between, builder};

/// Long enough for many handshakes.
const SHORTLY: Duration = Duration::from_secs(3);

/// On a busy machine the server may answer too late to say why it refuses.
fn is_too_late(said: &str) -> bool {
    ["no answer within", "no connection within"].iter().any(|cause| said.contains(cause))
}

async fn refused(ensemble: &Ensemble, tls: Tls) -> ConnectError {
    refusal(builder(&ensemble.secure_connect_string()).tls(tls).connect_deadline(SHORTLY)).await
}

/// The error of an attempt that the server answered in time.
async fn refusal(builder: ConnectionManagerBuilder) -> ConnectError {
    loop {
        let refused = builder.clone().connect().await.expect_err("a refusal");
        if !is_too_late(&refused.to_string()) {
            return refused;
        }
    }
}

#[track_caller]
fn says_what_to_check(error: &ConnectError) {
    let ConnectError::Timeout { cause, .. } = error else { panic!("{error}") };
    assert!(cause.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_mutex_is_acquired_over_tls_and_unknown_servers_are_not_trusted() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ensemble = Ensemble::builder().tls(ours.server(false)).start().await?;
    let trusting = || {
        // Several are read, in whatever order they were given.
        let tls = Tls::new().authority(&theirs.pem()).authority(&ours.pem());
        builder(&ensemble.secure_connect_string()).tls(tls)
    };
    let (one, other) = (trusting().connect().await?, trusting().connect().await?);
    a_mutex_passes_between(&one, &other).await?;
    // Clients with TLS and clients without it share one tree.
    let plain = builder(&ensemble.connect_string()).connect().await?;
    a_mutex_passes_between(&one, &plain).await?;

    says_what_to_check(&refused(&ensemble, Tls::new().authority(&theirs.pem())).await);
    Ok(())
}

#[tokio::test]
async fn tls_on_one_side_only_is_named_for_each_server() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ours = Authority::new("ours");
    let ensemble = Ensemble::builder().tls(ours.server(false)).start().await?;
    let with_tls = format!("tcp+tls://{}", ensemble.connect_string());
    let without = ensemble.secure_connect_string().replace("tcp+tls://", "");
    let secure = builder(&with_tls).tls(Tls::new().authority(&ours.pem()));
    for (builder, said) in [(secure, "the server expects no TLS"), (builder(&without), "does it expect TLS")]
    {
        let error = refusal(builder.connect_deadline(SHORTLY)).await.to_string();
        assert!(error.contains(said), "{error}");
        assert!(error.contains(without.split(',').next().unwrap()) || error.contains(&with_tls), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_requires_certificates_accepts_known_clients_only() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ensemble = Ensemble::builder().tls(ours.server(true)).start().await?;
    let with = |Identity { certificate, key }: Identity| {
        Tls::new().authority(&ours.pem()).client_identity(&certificate, &key)
    };
    let connect = |tls| builder(&ensemble.secure_connect_string()).tls(tls).connect();
    let (one, other) = (connect(with(ours.sign("a"))).await?, connect(with(ours.sign("b"))).await?);
    a_mutex_passes_between(&one, &other).await?;

    says_what_to_check(&refused(&ensemble, Tls::new().authority(&ours.pem())).await);
    says_what_to_check(&refused(&ensemble, with(theirs.sign("unknown"))).await);
    Ok(())
}

/// For a test that runs itself in a process of other variables: the servers, and the seconds to reach them.
const SERVERS: &str = "LOCKKEEPER_SECURED_SERVERS";
const SECONDS: &str = "LOCKKEEPER_SECURED_SECONDS";

/// Runs a test of this file in a process whose system trusts this authority alone, or none.
async fn run_where_the_system_trusts(
    authority: Option<&Authority>,
    test: &str,
    servers: &str,
    limit: Duration,
) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.pem");
    std::fs::write(&store, authority.map(Authority::pem).unwrap_or_default()).unwrap();
    let mut program = tokio::process::Command::new(env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).kill_on_drop(true);
    program.env(SERVERS, servers).env(SECONDS, limit.as_secs().to_string());
    program.env("SSL_CERT_FILE", store).env_remove("SSL_CERT_DIR");
    program.output().await.unwrap()
}

#[tokio::test]
async fn a_server_is_trusted_if_the_system_trusts_its_authority_and_only_then() -> Outcome {
    if let Ok(servers) = env::var(SERVERS) {
        let limit = Duration::from_secs(env::var(SECONDS)?.parse()?);
        let manager = builder(&servers).connect_deadline(limit).connect().await?;
        return a_mutex_passes_between(&manager, &manager).await;
    }
    if left_out() {
        return Ok(());
    }
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ensemble = Ensemble::builder().tls(ours.server(false)).start().await?;
    let servers = ensemble.secure_connect_string();
    let run = |authority, limit| {
        let test = "tls::a_server_is_trusted_if_the_system_trusts_its_authority_and_only_then";
        run_where_the_system_trusts(authority, test, &servers, limit)
    };
    let said =
        |output: &Output| [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    let (trusting, mut refusing) =
        tokio::join!(run(Some(&ours), Timing::settle()), run(Some(&theirs), SHORTLY));
    while is_too_late(&said(&refusing)) {
        refusing = run(Some(&theirs), SHORTLY).await;
    }
    let unable = run(None, SHORTLY).await;
    assert!(trusting.status.success() && said(&trusting).contains("1 passed"), "{}", said(&trusting));
    assert!(!refusing.status.success() && said(&refusing).contains("certificate"), "{}", said(&refusing));
    let advice = "install the system's certificates, or give yours by Tls::authority()";
    assert!(!unable.status.success() && said(&unable).contains(advice), "{}", said(&unable));
    Ok(())
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_believed() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ours = Authority::new("ours");
    let ensemble = Ensemble::builder().tls(ours.server_named("elsewhere.example", false)).start().await?;
    says_what_to_check(&refused(&ensemble, Tls::new().authority(&ours.pem())).await);
    Ok(())
}
