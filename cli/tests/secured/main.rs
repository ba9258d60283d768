//! The command over TLS, on Apache ZooKeeper. The certificates beside this file are for the loopback address,
//! and for these tests alone: the key of their authority is not kept.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use lockkeeper_tests::{Ensemble, ServerTls, Timing, left_out};
use tokio::process::Command;
use tokio::time::timeout;

fn file(name: &str) -> String {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/secured");
    folder.join(name).display().to_string()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

fn server_tls() -> ServerTls {
    ServerTls {
        identity: format!("{}{}", text("server.key"), text("server.pem")),
        authorities: text("authority.pem"),
        asks_for_certificates: true,
    }
}

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    command.env_remove("LOCKKEEPER_CONNECT").args(["--session-timeout", "30s", "--tick-time", "500ms"]);
    let work = command.args(arguments).kill_on_drop(true).output();
    timeout(Timing::settle(), work).await.expect("an end").unwrap()
}

/// All that the doctor asks goes over TLS: the plain port may be closed.
#[tokio::test]
async fn the_servers_are_examined_over_tls_and_a_certificate_that_cannot_be_used_is_named_with_the_reason() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().tls(server_tls()).start().await.unwrap();
    let servers = ensemble.secure_connect_string();
    let (authority, certificate, key) = (file("authority.pem"), file("client.pem"), file("client.key"));
    let connect =
        ["--connect", &servers, "--connect-timeout", "2s", "--tls-ca", &authority, "--tls-key", &key];
    let known = [&connect[..], &["--tls-cert", &certificate]].concat();
    let page = run(&[&known[..], &["doctor"]].concat()).await;
    let said = String::from_utf8(page.stdout).unwrap();
    assert!(said.contains(", standalone") && said.contains("tickTime 500 ms, within the setting"), "{said}");
    assert!(!said.contains("no report"), "{said}");
    let clients = run(&[&known[..], &["inspect", "--clients", "/tls/none"]].concat()).await;
    assert!(!String::from_utf8(clients.stdout).unwrap().contains("does not say"));

    // The server refuses a client without a certificate, and says so in the words of TLS.
    let unknown = ["--connect", &servers, "--connect-timeout", "2s", "--tls-ca", &authority, "doctor"];
    let refused = run(&unknown).await;
    let said = String::from_utf8(refused.stdout).unwrap();
    assert!(said.contains("no report: received fatal alert"), "{said}");

    for (certificate, reason) in [
        ("client-1.pem", "is not of version 3"),
        ("server.pem", "is not that of the certificate"),
        ("client.key", "no certificate in PEM form"),
    ] {
        let certificate = file(certificate);
        for subcommand in [&["doctor"][..], &["lock", "/tls/a", "--", "true"]] {
            let refused = run(&[&connect[..], &["--tls-cert", &certificate], subcommand].concat()).await;
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(64), "{said}");
            assert!(said.contains(reason), "{said}");
        }
    }
}

#[tokio::test]
async fn a_program_runs_under_a_lock_over_tls_and_neither_side_trusts_a_stranger() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::builder().tls(server_tls()).start().await.unwrap();
    let servers = ensemble.secure_connect_string();
    let (authority, certificate, key) = (file("authority.pem"), file("client.pem"), file("client.key"));
    let program = ["lock", "/tls/a", "--", "echo", "ran"];
    let flags = ["--tls-ca", &authority, "--tls-cert", &certificate, "--tls-key", &key];
    let ran = run(&[&["--connect", &servers], &flags[..], &program].concat()).await;
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"ran\n"[..]), "{ran:?}");

    let mut settings = tempfile::NamedTempFile::new().unwrap();
    let names =
        [("connect", &servers), ("tls-ca", &authority), ("tls-cert", &certificate), ("tls-key", &key)];
    for (name, value) in names {
        writeln!(settings, "{name} = \"{value}\"").unwrap();
    }
    let by_file = run(&[&["--config", settings.path().to_str().unwrap()], &program[..]].concat()).await;
    assert_eq!(by_file.status.code(), Some(0), "{by_file:?}");

    // The server asks for a certificate; the command trusts another authority; half of an identity.
    let limit = ["--connect", &servers, "--connect-timeout", "2s"];
    let cases = [
        (&["--tls-ca", &authority][..], 69),
        (&["--tls-ca", &certificate, "--tls-cert", &certificate, "--tls-key", &key], 69),
        (&["--tls-ca", &authority, "--tls-cert", &certificate], 64),
    ];
    for (flags, code) in cases {
        let refused = run(&[&limit[..], flags, &program].concat()).await;
        assert_eq!(refused.status.code(), Some(code), "{flags:?}: {refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
        assert_eq!(String::from_utf8(refused.stderr).unwrap().lines().count(), 1);
    }

    // Nothing listens there, and nothing is asked.
    let plain = run(&[&["--connect", "127.0.0.1:1"], &flags[..], &program].concat()).await;
    assert_eq!(plain.status.code(), Some(64), "{plain:?}");
    assert!(String::from_utf8(plain.stderr).unwrap().contains("tcp+tls://"));
}
