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

async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    command.env_remove("LOCKKEEPER_CONNECT").args(["--session-timeout", "4s", "--tick-time", "500ms"]);
    let work = command.args(arguments).kill_on_drop(true).output();
    timeout(Timing::settle(), work).await.expect("an end").unwrap()
}

#[tokio::test]
async fn a_program_runs_under_a_lock_over_tls_and_neither_side_trusts_a_stranger() {
    if left_out() {
        return;
    }
    let tls = ServerTls {
        identity: format!("{}{}", text("server.key"), text("server.pem")),
        authorities: text("authority.pem"),
        asks_for_certificates: true,
    };
    let ensemble = Ensemble::builder().tls(tls).start().await.unwrap();
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
