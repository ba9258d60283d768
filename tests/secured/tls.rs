//! Connections over TLS: trusted servers and accepted clients.

use std::time::Duration;

use lockkeeper::{ConnectError, Tls};
use lockkeeper_tests::{Ensemble, left_out};

use crate::certificates::{Authority, Identity};
use crate::support::{Outcome, a_mutex_passes_between, builder};

/// Long enough for many handshakes.
const SHORTLY: Duration = Duration::from_secs(3);

async fn refused(ensemble: &Ensemble, tls: Tls) -> ConnectError {
    let refused = builder(&ensemble.secure_connect_string()).tls(tls).connect_deadline(SHORTLY).connect();
    refused.await.expect_err("a refusal")
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
    // The trusted authority has to be configured.
    let nobody = refused(&ensemble, Tls::new()).await;
    assert!(matches!(nobody, ConnectError::Config(_)), "{nobody}");
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
