use lockkeeper::Inspection;
use lockkeeper_tests::Take::{self, Both, Lock, Permit, Read, Write};
use lockkeeper_tests::{Circle, Timing, eventually};

use crate::fixture::Fixture;
use crate::screen::Terminal;

/// Starts the circle, and waits until each of its owners waits.
async fn started(fixture: &Fixture, rows: &[(Take, Take)], waits: &[(&str, usize)]) -> Circle {
    let circle = Circle::start(&[fixture.manager.clone(), fixture.client().await], rows);
    for (path, count) in waits {
        let look = async || {
            let lock = Inspection::of_path(&fixture.manager, *path).await.unwrap()?;
            (lock.waiters().count() == *count).then_some(())
        };
        eventually(format!("{count} wait at {path}"), Timing::event(), look).await.unwrap();
    }
    circle
}

#[tokio::test]
async fn a_made_circle_ends_with_1_and_the_way_out_of_the_report_ends_it() {
    for fixture in Fixture::both().await {
        let none = fixture.run(&["deadlocks", "/look/dead", "--pause", "0"]).await;
        assert_eq!(none.code, Some(0), "{none:?}");
        none.has(&["no deadlock"]);

        let rows =
            [(Lock("/look/dead/a"), Lock("/look/dead/b")), (Lock("/look/dead/b"), Lock("/look/dead/a"))];
        let mut circle = started(&fixture, &rows, &[("/look/dead/a", 1), ("/look/dead/b", 1)]).await;
        let found = fixture.run(&["deadlocks", "/look/dead", "--pause", "10ms"]).await;
        assert_eq!(found.code, Some(1), "{found:?}");
        found.has(&[
            "deadlock: 2 owners wait for each other",
            "owner=owner 0  waits to lock /look/dead/b",
            "owner=owner 1  waits to lock /look/dead/a",
            "behind",
            "take /look/dead/a, /look/dead/b together as one MultiLock",
            "lockkeeper revoke /look/dead/",
            "refuse every token below",
        ]);
        let terminal = Terminal::start(&fixture, &["deadlocks", "/look/dead", "--pause", "10ms"]);
        terminal.shows(&["deadlock: 2 owners wait for each other", "refuse every token below"]).await;
        terminal.picture("deadlocks");
        assert_eq!(terminal.ended().await, 1);
        let json = fixture.run(&["deadlocks", "/look/dead", "--pause", "0", "-o", "json"]).await;
        let line: serde_json::Value = serde_json::from_str(json.output.trim()).unwrap();
        assert_eq!((&line["certainty"], line["edges"].as_array().unwrap().len()), (&"found".into(), 2));

        // The last line of the report is a command.
        let line = found.output.lines().find(|line| line.contains("release --force")).unwrap();
        let mut words: Vec<&str> = line.split_whitespace().skip(1).take(5).collect();
        words.push("--yes");
        let released = fixture.run(&words).await;
        assert_eq!(released.code, Some(0), "{released:?}");
        circle.next_served().await.unwrap();
        let after = fixture.run(&["deadlocks", "/look/dead", "--pause", "0"]).await;
        assert_eq!(after.code, Some(0), "{after:?}");
    }
}

/// The maker of a lock chooses its name.
#[tokio::test]
async fn a_command_of_the_report_that_is_pasted_names_the_lock_and_runs_nothing_else() {
    for fixture in Fixture::both().await {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        // No name has a slash.
        let name = |end: &str| format!("/look/paste/x;$(touch made)`touch made`'\"\u{202e}{end}");
        let (a, b) = (name("a"), name("b"));
        // The circle keeps its paths for the whole test.
        let (a, b): (&'static str, &'static str) = (a.leak(), b.leak());
        let mut circle =
            started(&fixture, &[(Lock(a), Lock(b)), (Lock(b), Lock(a))], &[(a, 1), (b, 1)]).await;
        let found = fixture.run(&["deadlocks", "/look/paste", "--pause", "10ms"]).await;
        assert!(!found.output.contains('\u{202e}'), "{found:?}");
        let pasted = |part: &str| {
            let line = found.output.lines().find(|line| line.contains(part)).unwrap();
            let path = std::path::Path::new(env!("CARGO_BIN_EXE_lockkeeper")).parent().unwrap();
            let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
            let script = line.replace("release --force", "release --force --yes");
            let mut shell = tokio::process::Command::new("sh");
            shell.args(["-c", &script]).current_dir(folder.path());
            shell.env("PATH", path).env("LOCKKEEPER_CONNECT", &fixture.servers);
            shell
        };
        let asked = pasted("lockkeeper revoke").output().await.unwrap();
        assert_eq!(asked.status.code(), Some(0), "{asked:?}");
        let released = pasted("lockkeeper release").output().await.unwrap();
        assert_eq!(released.status.code(), Some(0), "{released:?}");
        circle.next_served().await.unwrap();
        assert!(!made.exists());
    }
}

#[tokio::test]
async fn a_circle_of_five_kinds_is_found_and_watched() {
    for fixture in Fixture::both().await {
        let rows = [
            (Lock("/look/mix/a"), Write("/look/mix/b")),
            (Read("/look/mix/b"), Permit("/look/mix/c", 1)),
            (Permit("/look/mix/c", 1), Both("/look/mix/d", "/look/mix/e")),
            (Lock("/look/mix/e"), Read("/look/mix/f")),
            (Write("/look/mix/f"), Lock("/look/mix/a")),
        ];
        let mut running =
            fixture.start(&["deadlocks", "/look/mix", "--watch", "--interval", "100ms", "--pause", "10ms"]);
        let waits = ["a", "b", "c", "e", "f"].map(|name| (format!("/look/mix/{name}"), 1));
        let waits = waits.each_ref().map(|(path, count)| (path.as_str(), *count));
        let circle = started(&fixture, &rows, &waits).await;
        running.until("deadlock: 5 owners wait for each other").await;
        running.until("1 deadlocks now, 0 ended; 1 found and 0 possible so far").await;
        drop(circle);
        running.until("0 deadlocks now, 1 ended; 1 found and 0 possible so far").await;
    }
}
