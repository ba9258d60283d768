//! How the command reaches the servers: flags, the environment, a file, and credentials.

use std::io::Write;

use lockkeeper::ConnectionManager;
use lockkeeper_tests::{Timing, eventually};
use tempfile::NamedTempFile;

use crate::fixture::{Fixture, Running};

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn all_settings_come_from_a_file_and_a_flag_wins_over_it() {
    for fixture in Fixture::both().await {
        let (servers, timeout, tick) = (&fixture.servers, fixture.session_timeout, fixture.tick_time);
        let text = format!(
            "connect = \"{servers}\"\nauth = \"shop:secret\"\nacl = \"creator\"\n\
             session-timeout = \"{timeout}\"\ntick-time = \"{tick}\"\nconnect-timeout = \"30s\"\n",
        );
        let settings = file(&text);
        let path = settings.path().to_str().unwrap();
        let command = |flags: &[&str]| {
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
            command.env_remove("LOCKKEEPER_CONNECT").env("LOCKKEEPER_CONFIG", path).args(flags);
            command
        };
        let program = ["lock", "/settings/file", "--", "true"];
        let ended = Running::start(&mut command(&program)).ended().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let elsewhere = [&["--connect", "127.0.0.1:1", "--connect-timeout", "100ms"], &program[..]].concat();
        let ended = Running::start(&mut command(&elsewhere)).ended().await;
        assert_eq!(ended.code, Some(69), "{ended:?}");
        // The lock's directory is the user's of the file alone.
        let manager = ConnectionManager::connect(servers).await.unwrap();
        let refused = manager.znodes().children("/settings/file").await.unwrap_err();
        assert!(refused.to_string().contains("/settings/file"), "{refused}");
    }
}

#[tokio::test]
async fn a_longer_tick_of_the_servers_than_the_setting_is_a_warning() {
    for fixture in Fixture::both().await.into_iter().filter(|fixture| fixture.embedded.is_none()) {
        for quiet in [&["-q"][..], &[]] {
            let flags = [&["--tick-time", "100ms", "lock", "/settings/tick"], quiet].concat();
            // The command around it has said that.
            let inner = env!("CARGO_BIN_EXE_lockkeeper");
            let nested = ["--", inner, "--tick-time", "100ms", "lock", "/settings/inner", "--", "true"];
            for program in [&["--", "true"][..], &nested] {
                // A server that answers late is not waited for.
                let said = async || {
                    let ended = fixture.ended([&flags[..], program].concat()).await;
                    assert_eq!(ended.code, Some(0));
                    let times =
                        ended.messages.matches("a tickTime of 500ms, and --tick-time is 100ms").count();
                    assert!(times <= 1, "{ended:?}");
                    (times == 1).then_some(())
                };
                eventually("a warning", Timing::settle(), said).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn what_the_servers_refuse_ends_with_77_and_one_line() {
    for fixture in Fixture::both().await {
        let owner = ["--auth", "shop:secret", "--acl", "creator"];
        let program = ["lock", "/settings/acl", "--", "true"];
        let made = fixture.ended([&owner[..], &program].concat()).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        for stranger in [&[][..], &["--auth", "shop:wrong"]] {
            for refused in [&program[..], &["inspect", "/settings/acl"], &["revoke", "/settings/acl"]] {
                let ended = fixture.ended([stranger, refused].concat()).await;
                assert_eq!(ended.code, Some(77), "{stranger:?} {refused:?}: {ended:?}");
                assert_eq!(ended.messages.lines().count(), 1, "{ended:?}");
                assert!(!ended.messages.contains("wrong"), "{ended:?}");
            }
        }
        let tree = fixture.ended(["tree", "/settings"]).await;
        assert!(tree.output.contains("may not be read"), "{tree:?}");
        let mut command = fixture.command(program);
        command.env("LOCKKEEPER_AUTH", "shop:secret");
        assert_eq!(Running::start(&mut command).ended().await.code, Some(0));
    }
}

#[tokio::test]
async fn no_message_shows_a_secret_from_wherever_it_comes() {
    let fixture = Fixture::at("127.0.0.1:1");
    let text = "auth = \"hunter2\"";
    let settings = file(text);
    let config = settings.path().to_str().unwrap();
    for subcommand in [&["lock", "/a", "--", "true"][..], &["tree", "/"], &["doctor"], &["deadlocks", "/"]] {
        let by_flag = fixture.command([&["--auth", "hunter2"], subcommand].concat());
        let mut by_environment = fixture.command(subcommand);
        by_environment.env("LOCKKEEPER_AUTH", "hunter2");
        let by_file = fixture.command([&["--config", config], subcommand].concat());
        for mut command in [by_flag, by_environment, by_file] {
            let ended = Running::start(&mut command).ended().await;
            assert_eq!(ended.code, Some(64), "{ended:?}");
            assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
            assert!(ended.messages.contains("user:password"), "{ended:?}");
        }
    }
    let mut help = fixture.command(["--help"]);
    help.env("LOCKKEEPER_AUTH", "shop:hunter2");
    let help = Running::start(&mut help).ended().await;
    assert!(!help.output.contains("hunter2"), "{help:?}");
}

#[tokio::test]
async fn a_wrong_setting_is_named_as_the_command_line_names_it() {
    let fixture = Fixture::at("127.0.0.1:1");
    for (flags, expected) in [
        (&["--session-timeout", "0"][..], "--session-timeout is 0, below 100ms; give a longer time"),
        (&["--session-timeout", "100d"], "--session-timeout is 8640000s, above 86400s; give a shorter time"),
        (&["--tick-time", "0"], "--tick-time is 0, below 1ms; give a longer time"),
        (&["--tick-time", "30s"], "--session-timeout is 30s with a --tick-time of 30s"),
        (&["--connect-timeout", "0"], "--connect-timeout is 0, below 1ms; give a longer time"),
        (&["--acl", "creator"], "--acl creator needs a user; give --auth user:password"),
        (&["--session-timeout", "soon"], "it is no time; give one such as 90s"),
        (&["--connect", "a:b:c"], "write [::1]:2181"),
    ] {
        for subcommand in [&["inspect", "/a"][..], &["lock", "/a", "--", "true"]] {
            let ended = fixture.ended([flags, subcommand].concat()).await;
            assert_eq!(ended.code, Some(64), "{ended:?}");
            assert!(ended.messages.contains(expected), "{ended:?}");
            for of_the_library in ["_", "()", "::open", "Acl", "expected "] {
                assert!(!ended.messages.contains(of_the_library), "{of_the_library}: {ended:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_path_is_found_before_a_server_is_asked() {
    let fixture = Fixture::at("127.0.0.1:1");
    for subcommand in [
        &["lock", "a"][..],
        &["read", "a"],
        &["write", "/a/"],
        &["semaphore", "-n", "1", "/a//b"],
        &["multi", "/a", "b"],
        &["elect", "a"],
        &["once", "a"],
    ] {
        let ended = fixture.ended([subcommand, &["--", "true"]].concat()).await;
        assert_eq!((ended.code, ended.messages.lines().count()), (Some(64), 1), "{ended:?}");
        assert!(ended.messages.contains("path \""), "{ended:?}");
    }
}

#[tokio::test]
async fn a_file_that_does_not_exist_is_a_wrong_usage() {
    let fixture = Fixture::at("127.0.0.1:1");
    let ended = fixture.ended(["--config", "/no/such/file", "tree", "/"]).await;
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.messages.contains("/no/such/file"), "{ended:?}");
}
