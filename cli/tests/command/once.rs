//! A program that runs once for ever, or once per interval.

use lockkeeper::{ConnectionManager, OnceCell};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_program_that_succeeded_is_never_run_again_and_one_that_failed_is() {
    for fixture in Fixture::both().await {
        let failed = fixture.ended(["once", "/once/ever", "--", "sh", "-c", "echo ran; exit 3"]).await;
        assert_eq!((failed.code, failed.output.as_str()), (Some(3), "ran\n"), "{failed:?}");
        for output in ["ran\n", "", ""] {
            let ended = fixture.ended(["once", "/once/ever", "--", "echo", "ran"]).await;
            assert_eq!((ended.code, ended.output.as_str()), (Some(0), output), "{ended:?}");
        }
        // The record is a cell of the library.
        let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
        let cell = OnceCell::new(&manager, "/once/ever").unwrap();
        assert!(cell.get().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn of_several_commands_at_once_one_runs_the_program_and_all_succeed() {
    for fixture in Fixture::both().await {
        let start = |_| fixture.start(["once", "/once/race", "--", "echo", "ran"]);
        let commands: Vec<_> = (0..4).map(start).collect();
        let mut runs = 0;
        for command in commands {
            let ended = command.ended().await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            runs += usize::from(ended.output == "ran\n");
        }
        assert_eq!(runs, 1);
    }
}

#[tokio::test]
async fn each_slot_runs_the_program_once() {
    for fixture in Fixture::both().await {
        // The first slot begins after the first call.
        let first =
            fixture.ended(["once", "--every", "1h", "--try", "/once/hourly", "--", "echo", "ran"]).await;
        assert_eq!((first.code, first.output.as_str()), (Some(75), ""), "{first:?}");
        for _ in 0..2 {
            let ended = fixture.ended(["once", "--every", "200ms", "/once/often", "--", "echo", "ran"]).await;
            assert_eq!((ended.code, ended.output.as_str()), (Some(0), "ran\n"), "{ended:?}");
        }
    }
}

#[tokio::test]
async fn what_was_run_is_shown_and_can_be_forgotten() {
    for fixture in Fixture::both().await {
        for (flag, code, output) in [("--show", 1, "not done yet\n"), ("--reset", 1, "not done yet\n")] {
            let ended = fixture.ended(["once", flag, "/once/shown"]).await;
            assert_eq!((ended.code, ended.output.as_str()), (Some(code), output), "{ended:?}");
        }
        let run = || fixture.ended(["once", "/once/shown", "--", "echo", "ran"]);
        assert_eq!(run().await.output, "ran\n");
        let shown = fixture.ended(["once", "/once/shown", "--show"]).await;
        assert!(shown.code == Some(0) && shown.output.starts_with("done at 2"), "{shown:?}");
        assert!(shown.output.contains(" by host="), "{shown:?}");
        assert_eq!(fixture.ended(["once", "/once/shown", "--reset"]).await.code, Some(0));
        assert_eq!(run().await.output, "ran\n");

        let every = ["once", "--every", "200ms", "/once/shown-often"];
        fixture.ended(every.into_iter().chain(["--", "true"])).await;
        let shown = fixture.ended(every.into_iter().chain(["--show"])).await;
        assert!(shown.output.starts_with("done for the interval of 2"), "{shown:?}");
        let program = fixture.ended(["once", "/once/shown", "--show", "--", "true"]).await;
        let nothing = fixture.ended(["once", "/once/shown"]).await;
        assert_eq!((program.code, nothing.code), (Some(64), Some(64)), "{nothing:?}");
    }
}

#[tokio::test]
async fn a_path_that_no_cell_can_have_is_a_wrong_usage() {
    let fixture = Fixture::embedded().await;
    for path in ["/", "/a/", "a"] {
        let ended = fixture.ended(["once", path, "--", "true"]).await;
        assert_eq!(ended.code, Some(64), "{path}: {ended:?}");
    }
    let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
    let made = manager.znodes().children("/").await.unwrap().unwrap_or_default();
    assert!(!made.iter().any(|name| name == "value"), "{made:?}");
}
