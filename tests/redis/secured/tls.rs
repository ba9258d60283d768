//! Connections over TLS: trusted servers and accepted clients.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use lockkeeper_redis::{ConnectError, ConnectionManager, ConnectionManagerBuilder, Mutex, Semaphore, Tls};
use lockkeeper_redis_tests::{Proxy, RedisServer, left_out};
use tempfile::TempDir;

use crate::certificates::{Authority, Identity};
use crate::fixture::{LONG, builder, wait_for_queue};

/// Long enough for a handshake on a busy machine, and the length of each test of a refusal.
const SHORTLY: Duration = Duration::from_secs(3);

/// A server with a port for TLS beside its own.
struct SecureServer {
    server: RedisServer,
    port: u16,
    _certificates: TempDir,
}

impl SecureServer {
    /// Shows this identity, and believes the clients of `authority`, if it asks for their certificates at
    /// all.
    async fn start(identity: &Identity, authority: &Authority, asks_for_certificates: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (certificate, key) =
            (path("server.crt", &identity.certificate), path("server.key", &identity.key));
        let authority = path("authority.crt", &authority.pem());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let asks = if asks_for_certificates { "yes" } else { "no" };
        let server = RedisServer::start(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &authority,
            "--tls-auth-clients",
            asks,
        ])
        .await
        .unwrap();
        Self { server, port, _certificates: folder }
    }

    fn secure(&self, tls: Tls) -> ConnectionManagerBuilder {
        builder(&format!("rediss://127.0.0.1:{}/", self.port), LONG).tls(tls)
    }

    /// Why a client with these settings has no connection.
    async fn refused(&self, tls: Tls) -> ConnectError {
        self.secure(tls).connect_deadline(SHORTLY).connect().await.expect_err("a refusal")
    }
}

/// Two managers hand one mutex to each other, and share the permits of a semaphore.
async fn locks_pass_between(server: &RedisServer, one: &ConnectionManager, other: &ConnectionManager) {
    let (first, second) = (Mutex::new(one, "a").unwrap(), Mutex::new(other, "a").unwrap());
    let guard = first.acquire().await.unwrap();
    assert!(second.try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(async move { second.acquire().await.unwrap() });
    wait_for_queue(server, "a", 1).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
    let permits = [one, other].map(|manager| Semaphore::new(manager, "s", 2).unwrap());
    let lease = permits[0].acquire_many(2).await.unwrap();
    assert!(permits[1].try_acquire().await.unwrap().is_none());
    lease.release().await.unwrap();
}

#[track_caller]
fn says_what_to_check(error: &ConnectError) {
    let ConnectError::Timeout { cause, .. } = error else { panic!("{error}") };
    assert!(cause.contains("certificate"), "{error}");
}

#[tokio::test]
async fn locks_are_taken_over_tls_and_unknown_servers_are_not_trusted() {
    if left_out() {
        return;
    }
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let server = SecureServer::start(&ours.sign("server"), &ours, false).await;
    // Several are read, in whatever order they were given.
    let trusting = || server.secure(Tls::new().authority(&theirs.pem()).authority(&ours.pem())).connect();
    let (one, other) = (trusting().await.unwrap(), trusting().await.unwrap());
    locks_pass_between(&server.server, &one, &other).await;
    // Clients with TLS and clients without it share one lock.
    let plain = builder(&server.server.url(), LONG).connect().await.unwrap();
    locks_pass_between(&server.server, &one, &plain).await;
    locks_pass_between(&server.server, &plain, &one).await;

    says_what_to_check(&server.refused(Tls::new().authority(&theirs.pem())).await);
    // The system's authorities have not signed the certificate of this test.
    says_what_to_check(&server.refused(Tls::new()).await);
}

#[tokio::test]
async fn a_server_that_requires_certificates_accepts_known_clients_only() {
    if left_out() {
        return;
    }
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let server = SecureServer::start(&ours.sign("server"), &ours, true).await;
    let with = |Identity { certificate, key }: Identity| {
        Tls::new().authority(&ours.pem()).client_identity(&certificate, &key)
    };
    let one = server.secure(with(ours.sign("a"))).connect().await.unwrap();
    let other = server.secure(with(ours.sign("b"))).connect().await.unwrap();
    locks_pass_between(&server.server, &one, &other).await;

    for tls in [Tls::new().authority(&ours.pem()), with(theirs.sign("unknown"))] {
        let error = server.refused(tls).await;
        assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_believed() {
    if left_out() {
        return;
    }
    let ours = Authority::new("ours");
    let server = SecureServer::start(&ours.sign_for("server", "elsewhere.example"), &ours, false).await;
    says_what_to_check(&server.refused(Tls::new().authority(&ours.pem())).await);
}

#[tokio::test]
async fn a_waiter_whose_link_with_tls_breaks_keeps_its_position_and_misses_no_grant() {
    if left_out() {
        return;
    }
    let ours = Authority::new("ours");
    let server = SecureServer::start(&ours.sign("server"), &ours, false).await;
    let proxy = Proxy::start(server.port).await.unwrap();
    let tls = Tls::new().authority(&ours.pem());
    let waiting = builder(&format!("rediss://127.0.0.1:{}/", proxy.port()), LONG).tls(tls.clone());
    let waiting = waiting.connect().await.unwrap();
    let guard =
        Mutex::new(&server.secure(tls).connect().await.unwrap(), "a").unwrap().acquire().await.unwrap();
    let mutex = Mutex::new(&waiting, "a").unwrap();
    let acquire = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    wait_for_queue(&server.server, "a", 1).await;
    // The grant is published while nobody listens.
    proxy.sever();
    guard.release().await.unwrap();
    wait_for_queue(&server.server, "a", 0).await;
    proxy.heal();
    let next = acquire.await.unwrap();
    assert!(next.is_valid());
    next.release().await.unwrap();
}

#[tokio::test]
async fn certificates_that_are_none_and_settings_without_tls_are_refused_before_anything_is_sent() {
    let ours = Authority::new("ours");
    let Identity { certificate, key } = ours.sign("a");
    let broken = "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n";
    let wrong = [
        Tls::new().authority(""),
        Tls::new().authority("not a certificate"),
        Tls::new().authority(broken),
        Tls::new().authority(&key),
        Tls::new().client_identity("", &key),
        Tls::new().client_identity(&certificate, ""),
        Tls::new().client_identity(&certificate, &certificate),
    ];
    // Nothing listens there, and nothing is asked.
    for tls in wrong {
        let connect = ConnectionManager::builder("rediss://127.0.0.1:1/").tls(tls).connect();
        let error = connect.await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)), "{error}");
    }
    let plain = ConnectionManager::builder("redis://127.0.0.1:1/").tls(Tls::new()).connect();
    let error = plain.await.unwrap_err();
    assert!(error.to_string().contains("rediss://"), "{error}");
    assert!(!format!("{:?}", Tls::new().client_identity(&certificate, &key)).contains("PRIVATE"));
}
