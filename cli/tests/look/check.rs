use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lockkeeper::{Election, Mutex};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_lock_that_is_held_or_waited_for_too_long_is_named_and_an_election_is_not() {
    for fixture in Fixture::both().await {
        let manager = &fixture.manager;
        let mutex = Mutex::new(manager, "/look/check/a\"lock").unwrap();
        let _held = mutex.acquire().await.unwrap();
        let _waits = mutex.enqueue().await.unwrap();
        let _leads =
            Election::new(manager, "/look/check/leader", "node-1").unwrap().campaign().await.unwrap();
        let young =
            fixture.run(&["check", "/look/check", "--holder-older", "1h", "--waiter-older", "1h"]).await;
        assert_eq!((young.code, young.output.trim_end()), (Some(0), "ok: 2 locks below /look/check"));
        // No limit, no verdict.
        assert_eq!(fixture.run(&["check", "/look/check"]).await.code, Some(0));

        let file = std::env::temp_dir().join(format!("lockkeeper-check-{}.prom", std::process::id()));
        let arguments = ["check", "/look/check", "--textfile", file.to_str().unwrap()];
        let old = ["--holder-older", "0s", "--waiter-older", "0s"];
        // The clock of the servers has milliseconds.
        let ended = loop {
            let ended = fixture.run(&[&arguments[..], &old].concat()).await;
            if ended.output.starts_with("2 ") {
                break ended;
            }
        };
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let pid = format!("pid={}", std::process::id());
        ended.has(&[
            "2 too old: 2 locks",
            "/look/check/a\"lock: in the queue and holding for",
            "waiting for",
            &pid,
        ]);
        assert!(!ended.output.contains("leader"), "{ended:?}");
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        for line in [
            r#"lockkeeper_check_holders{path="/look/check/a\"lock",recipe="mutex"} 1"#,
            r#"lockkeeper_check_waiters{path="/look/check/a\"lock",recipe="mutex"} 1"#,
            "lockkeeper_check_partial 0",
        ] {
            assert!(text.lines().any(|of| of == line), "{line} in {text}");
        }

        // The alert rules use these metrics and no other.
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/monitoring/check.yml");
        let rules = fs::read_to_string(rules).unwrap();
        let words = rules.split(|of: char| !(of.is_ascii_lowercase() || of == '_'));
        let used: BTreeSet<&str> = words.filter(|word| word.starts_with("lockkeeper_check_")).collect();
        assert_eq!(used.len(), 4, "{used:?}");
        for name in used {
            assert!(text.contains(&format!("\n{name}")), "{name} in {text}");
        }

        let cut = fixture.run(&["check", "/look", "--nodes", "1", "--holder-older", "1h"]).await;
        assert_eq!(cut.code, Some(3), "{cut:?}");
        cut.has(&["unknown", "PARTIAL"]);
        let unwritten = fixture.run(&["check", "/look/check", "--textfile", "/nowhere/at/all"]).await;
        assert_eq!(unwritten.code, Some(70), "{unwritten:?}");
    }
}
