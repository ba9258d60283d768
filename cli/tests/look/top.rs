use lockkeeper::Mutex;
use lockkeeper::error::LossReason;
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::{Passed, Subject};

use crate::fixture::Fixture;
use crate::screen::Terminal;

/// Waits until one path is shown above the other: a look may see a part of a picture.
async fn ordered(terminal: &Terminal, first: &str, second: &str) {
    let look = async || {
        let screen = terminal.contents();
        let row = |path: &str| screen.lines().position(|line| line.contains(path));
        (row(first)? < row(second)?).then_some(())
    };
    eventually(format!("{first} above {second}"), Timing::event(), look).await.unwrap();
}

#[tokio::test]
async fn the_screen_shows_the_locks_sorts_them_and_takes_one_away() {
    for fixture in Fixture::both().await {
        let crowded = Mutex::new(&fixture.manager, "/look/top/crowded").unwrap();
        let quiet = Mutex::new(&fixture.manager, "/look/top/a-quiet").unwrap();
        let guard = crowded.acquire().await.unwrap();
        let _waiting = (crowded.enqueue().await.unwrap(), crowded.enqueue().await.unwrap());
        let quiet_guard = quiet.acquire().await.unwrap();

        let mut terminal = Terminal::start(&fixture, &["top", "/look/top", "--interval", "100ms"]);
        let pid = format!("pid={}", std::process::id());
        let screen = terminal
            .shows(&["lockkeeper top /look/top: 2 locks, 2 waiting, by waiters", "> /look/top/crowded", &pid])
            .await;
        println!("{screen}");
        ordered(&terminal, "/look/top/crowded", "/look/top/a-quiet").await;
        terminal.press("p");
        terminal.shows(&["by path"]).await;
        ordered(&terminal, "/look/top/a-quiet", "/look/top/crowded").await;

        // The holder of the crowded lock is the older one.
        terminal.press("a");
        terminal.shows(&["by age", "AGE*", "> /look/top/"]).await;
        // Of equal rates the first path is the first one; the rate counts each contender that comes and goes.
        terminal.press("r");
        terminal.shows(&["by rate", "NEW/S*", "0.0"]).await;
        let busy = Mutex::new(&fixture.client().await, "/look/top/crowded").unwrap();
        let busy = tokio::spawn(async move {
            loop {
                drop(busy.enqueue().await.unwrap());
            }
        });
        ordered(&terminal, "/look/top/crowded", "/look/top/a-quiet").await;
        busy.abort();

        // The table of the selected lock, and back.
        terminal.press("w");
        terminal.shows(&["by waiters", "> /look/top/"]).await;
        terminal.press("kkk\r");
        terminal.shows(&["mutex /look/top/crowded: held by 1, 2 waiting", "waits"]).await;
        terminal.press("\u{1b}");
        terminal.shows(&["> /look/top/crowded"]).await;

        terminal.press("v");
        terminal.shows(&["ask to release?", "/look/top/crowded", &pid, "y to continue"]).await;
        terminal.press("n");
        terminal.shows(&["nothing was done", "> /look/top/crowded"]).await;
        terminal.press("v");
        terminal.shows(&["ask to release?"]).await;
        terminal.press("y");
        terminal.shows(&["asked to release: 1 nodes"]).await;
        guard.revoke_requested().await.unwrap();
        terminal.press("x");
        terminal.shows(&["take the lock away?", "/look/top/crowded", "two holders", "y to continue"]).await;
        terminal.press("n");
        terminal.shows(&["nothing was done", "> /look/top/crowded"]).await;
        assert!(guard.is_valid());
        terminal.press("x");
        terminal.shows(&["take the lock away?"]).await;
        terminal.press("y");
        terminal.shows(&["taken away: 1 nodes"]).await;
        assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
        assert!(quiet_guard.is_valid());
        terminal.press("q");
        assert_eq!(terminal.ended().await, 0);
    }
}

#[tokio::test]
async fn a_selected_lock_that_ends_leaves_no_other_one_selected() {
    for fixture in Fixture::both().await {
        let selected = Mutex::new(&fixture.manager, "/look/ends/a").unwrap().acquire().await.unwrap();
        let other = Mutex::new(&fixture.manager, "/look/ends/b").unwrap().acquire().await.unwrap();
        let mut terminal = Terminal::start(&fixture, &["top", "/look/ends", "--interval", "100ms"]);
        terminal.shows(&["2 locks", "> /look/ends/a"]).await;
        selected.release().await.unwrap();
        terminal.shows(&["1 locks", "/look/ends/a has no contender any more"]).await;
        terminal.press("vyxy");
        terminal.press("w");
        terminal.shows(&["by waiters", "/look/ends/b"]).await;
        assert!(!terminal.contents().contains("> /look/ends/b"), "{}", terminal.contents());
        terminal.press("j");
        terminal.shows(&["> /look/ends/b"]).await;
        assert!(other.is_valid());
        terminal.press("q");
        assert_eq!(terminal.ended().await, 0);
        other.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_question_that_the_window_hides_in_part_cannot_be_confirmed() {
    let fixture = Fixture::both().await.remove(0);
    let guard = Mutex::new(&fixture.manager, "/look/hidden/a").unwrap().acquire().await.unwrap();
    let mut terminal = Terminal::start(&fixture, &["top", "/look/hidden", "--interval", "100ms"]);
    terminal.shows(&["> /look/hidden/a"]).await;
    terminal.press("x");
    terminal.shows(&["take the lock away?", "y to continue"]).await;
    terminal.resize(8);
    terminal.gone("y to continue").await;
    terminal.press("y");
    terminal.shows(&["enlarge the window"]).await;
    assert!(guard.is_valid());
    terminal.resize(24);
    terminal.shows(&["take the lock away?", "y to continue"]).await;
    terminal.press("y");
    terminal.shows(&["taken away: 1 nodes"]).await;
    assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
}

#[tokio::test]
async fn every_end_and_every_stop_gives_the_terminal_back() {
    let fixture = Fixture::both().await.remove(0);
    for (name, number) in [("INT", 2), ("QUIT", 3), ("TERM", 15), ("HUP", 1), ("USR1", 10)] {
        let mut terminal = Terminal::start(&fixture, &["top", "/look/signals"]);
        terminal.shows(&["lockkeeper top /look/signals: 0 locks"]).await;
        terminal.signal(name);
        assert_eq!(terminal.end().await, 128 + number, "{name}");
        terminal.until_given_back().await;
    }
    for stop in ["\u{1a}", ""] {
        let mut terminal = Terminal::start_program(&fixture, "bash", &["--norc", "--noediting", "-i"]);
        terminal.press("$LOCKKEEPER top /look/signals\n");
        terminal.shows(&["lockkeeper top /look/signals: 0 locks"]).await;
        if stop.is_empty() {
            terminal.signal_child("TSTP");
        } else {
            terminal.press(stop);
        }
        terminal.shows(&["Stopped"]).await;
        terminal.until_given_back().await;
        terminal.press("fg\n");
        terminal.shows(&["lockkeeper top /look/signals: 0 locks"]).await;
        terminal.press("q");
        terminal.until_given_back().await;
        terminal.press("exit 7\n");
        assert_eq!(terminal.ended().await, 7);
    }
}

#[tokio::test]
async fn an_outage_keeps_no_key_from_its_work() {
    let fixture = Fixture::both().await.remove(0);
    let _held = Mutex::new(&fixture.manager, "/look/outage/a").unwrap().acquire().await.unwrap();
    let mut terminal = Terminal::start(&fixture, &["top", "/look/outage", "--interval", "100ms"]);
    terminal.shows(&["> /look/outage/a"]).await;
    terminal.press("x");
    terminal.shows(&["take the lock away?"]).await;
    fixture.embedded.as_ref().unwrap().freeze();
    terminal.press("y");
    terminal.shows(&["waiting for the servers"]).await;
    terminal.press("p");
    terminal.shows(&["by path"]).await;
    terminal.press("x");
    terminal.shows(&["still waiting for the servers"]).await;
    terminal.press("q");
    assert_eq!(terminal.end().await, 0);
    terminal.until_given_back().await;
}

#[tokio::test]
async fn without_a_terminal_top_says_what_to_use() {
    let fixture = Fixture::both().await.remove(0);
    let ended = fixture.run(&["top", "/"]).await;
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.messages.contains("top -b"), "{ended:?}");
}

/// A screen of 24 rows, and many more locks than it shows.
#[tokio::test]
async fn a_look_reads_what_is_on_the_screen_and_a_bounded_part_of_the_rest() {
    let fixture = Fixture::both().await.remove(0);
    let server = fixture.embedded.as_ref().unwrap();
    let (locks, visible, background) = (400, 20, 10);
    let mut held = Vec::new();
    for number in 0..locks {
        let mutex = Mutex::new(&fixture.manager, format!("/look/many/{number:03}")).unwrap();
        held.push(mutex.enqueue().await.unwrap());
    }
    let own = server.sessions();
    let transcript = server.transcript();
    let background_text = background.to_string();
    let arguments = ["top", "/look/many", "--sort", "path", "--interval", "100ms"];
    let terminal = Terminal::start(&fixture, &[&arguments[..], &["--background", &background_text]].concat());
    terminal.shows(&["400 locks, 0 waiting, by path", "those not shown up to"]).await;
    let is_look = |of: &Passed| {
        of.subject == Subject::Request(Op::GetChildren)
            && of.paths == ["/look/many/000"]
            && !own.contains(&of.session)
    };
    let before = transcript.passed().len();
    let looks = 10;
    let looked = async || {
        let passed = transcript.passed();
        let mut at = passed.iter().enumerate().skip(before).filter(|(_, of)| is_look(of));
        let (first, last) = (at.next()?.0, at.nth(looks - 1)?.0);
        Some(passed[first..last].to_vec())
    };
    let passed = eventually("some looks", Timing::event(), looked).await.unwrap();
    // Without the signs of life, of which there may be any number on a slow machine.
    let is_read = |op: Op| !matches!(op, Op::Ping | Op::Multi);
    let requests = passed
        .iter()
        .filter(|of| matches!(of.subject, Subject::Request(op) if is_read(op)) && !own.contains(&of.session));
    // A list for each row, for the root and for each of the others.
    let most = looks * (visible + 1 + background);
    assert!(requests.clone().count() <= most, "{} > {most}", requests.count());
}

#[tokio::test]
async fn a_path_has_the_room_of_the_row_and_keeps_both_of_its_ends() {
    let fixture = Fixture::both().await.remove(0);
    let path = "/look/room/shop-eu-1/warehouses/reservations/train-7";
    let _held = Mutex::new(&fixture.manager, path).unwrap().acquire().await.unwrap();
    let terminal = Terminal::start(&fixture, &["top", "/look/room"]);
    terminal.resize_to(24, 80);
    let pid = format!("pid={}", std::process::id());
    let screen = terminal.shows(&["> /look/room/", "/reservations/train-7 ", "…", "mutex"]).await;
    let row = screen.lines().find(|line| line.contains("train-7")).unwrap();
    let shown = row.split_whitespace().nth(1).unwrap();
    assert!(shown.chars().count() >= 30, "{screen}");
    assert!(row.contains(&pid[pid.len() - 3..]), "{screen}");
    terminal.resize_to(24, 120);
    terminal.shows(&[path, &pid]).await;
}

#[tokio::test]
async fn every_list_and_every_page_scrolls() {
    let fixture = Fixture::both().await.remove(0);
    let mut kept = Vec::new();
    for number in 0..60 {
        let lock = Mutex::new(&fixture.manager, format!("/look/scroll/{number:02}")).unwrap();
        kept.push(lock.enqueue().await.unwrap());
        let crowded = Mutex::new(&fixture.manager, "/look/scroll/00").unwrap();
        kept.push(crowded.enqueue().await.unwrap());
    }
    let arguments = ["top", "/look/scroll", "--sort", "path", "--interval", "100ms"];
    let mut terminal = Terminal::start(&fixture, &arguments);
    let (down, end, home) = ("\u{1b}[6~", "\u{1b}[F", "\u{1b}[H");
    terminal.shows(&["60 locks", "> /look/scroll/00", "/look/scroll/19"]).await;
    terminal.press(down);
    terminal.shows(&["> /look/scroll/20"]).await;
    terminal.press(end);
    terminal.shows(&["> /look/scroll/59", "/look/scroll/40"]).await;
    terminal.press(home);
    terminal.shows(&["> /look/scroll/00"]).await;
    terminal.press("\r");
    terminal.shows(&["held by 1, 60 waiting", "  waits  1 "]).await;
    terminal.press(end);
    terminal.shows(&["  waits  60 "]).await;
    terminal.press(home);
    terminal.shows(&["held by 1, 60 waiting"]).await;
    terminal.press("?");
    terminal.shows(&["take the lock away", "any other key goes back"]).await;
    terminal.press("\u{1b}");
    terminal.shows(&["> /look/scroll/00"]).await;
}

#[tokio::test]
async fn a_filter_shows_the_locks_that_have_its_text_and_no_key_acts_on_a_hidden_one() {
    for fixture in Fixture::both().await {
        let names = ["a-train-7", "b-truck-1", "c-train-9"];
        let mut held = Vec::new();
        for name in names {
            let mutex = Mutex::new(&fixture.manager, format!("/look/filter/{name}")).unwrap();
            held.push(mutex.acquire().await.unwrap());
        }
        let mut terminal = Terminal::start(&fixture, &["top", "/look/filter", "--interval", "100ms"]);
        terminal.shows(&["3 locks", "> /look/filter/a-train-7"]).await;
        terminal.press("/TRuck");
        terminal.shows(&["filter: TRuck", "1 of 3 locks", "  /look/filter/b-truck-1"]).await;
        assert!(!terminal.contents().contains("/look/filter/c-train-9"), "{}", terminal.contents());
        // Its letters are a text meanwhile.
        terminal.press("vxyq");
        terminal.shows(&["filter: TRuckvxyq", "0 of 3 locks"]).await;
        terminal.press("\u{7f}\u{7f}\u{7f}\u{7f}\r");
        terminal
            .shows(&["1 of 3 locks", "with \"TRuck\"", "/look/filter/a-train-7 is hidden by the filter"])
            .await;
        // The lock that was selected is not on the screen.
        terminal.press("xyvy");
        terminal.press("w");
        terminal.shows(&["by waiters", "  /look/filter/b-truck-1"]).await;
        terminal.press("j");
        terminal.shows(&["> /look/filter/b-truck-1"]).await;
        terminal.press("x");
        terminal.shows(&["take the lock away?", "/look/filter/b-truck-1", "y to continue"]).await;
        terminal.press("y");
        terminal.shows(&["taken away: 1 nodes"]).await;
        assert_eq!(held[1].lost().await.reason, LossReason::NodeDeleted);
        assert!(held[0].is_valid() && held[2].is_valid());
        terminal.press("\u{1b}");
        terminal.shows(&["2 locks", "/look/filter/a-train-7", "/look/filter/c-train-9"]).await;
        // The filter finds holders, too.
        terminal.press(&format!("/pid={}\r", std::process::id()));
        terminal.shows(&["2 locks", "with \"pid="]).await;
        terminal.press("q");
        assert_eq!(terminal.ended().await, 0);
    }
}

#[tokio::test]
async fn batch_mode_prints_plain_text_for_pipes_and_cron() {
    for fixture in Fixture::both().await {
        let long = format!("/look/batch/{}/lock", "a-long-name-".repeat(12));
        let crowded = Mutex::new(&fixture.manager, "/look/batch/crowded").unwrap();
        let _held = (crowded.acquire().await.unwrap(), crowded.enqueue().await.unwrap());
        let _long = Mutex::new(&fixture.manager, &long).unwrap().acquire().await.unwrap();
        let arguments = ["top", "/look/batch", "-b", "-n", "2", "--interval", "100ms"];
        let ended = fixture.run(&arguments).await;
        assert_eq!((ended.code, ended.messages.as_str()), (Some(0), ""), "{ended:?}");
        let pid = format!("pid={}", std::process::id());
        ended.has(&["lockkeeper top /look/batch: 2 locks, 1 waiting, by waiters", &long, &pid]);
        assert_eq!(ended.output.matches("2 locks, 1 waiting").count(), 2, "{ended:?}");
        assert!(ended.output.chars().all(|c| c == '\n' || !c.is_control()), "{ended:?}");
        let order = |line: &str| ended.output.lines().position(|of| of.contains(line)).unwrap();
        assert!(order("/look/batch/crowded") < order(&long), "{ended:?}");
        let mut running =
            fixture.start(&["top", "/look/batch", "-b", "--sort", "path", "--interval", "100ms"]);
        for _ in 0..3 {
            running.until("by path").await;
        }
        let wrong = fixture.run(&["top", "-n", "2"]).await;
        assert_eq!(wrong.code, Some(64), "{wrong:?}");
    }
}
