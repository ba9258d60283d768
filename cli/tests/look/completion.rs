//! The key of completion, in the shells themselves.

use std::path::Path;

use lockkeeper::Mutex;
use lockkeeper::znodes::CreateMode;
use lockkeeper_tests::leave_out_without;

use crate::fixture::Fixture;
use crate::screen::Terminal;

/// A shell, its arguments, and what lets it complete the command.
const SHELLS: [(&str, &[&str], &str); 3] = [
    (
        "bash",
        &["--noprofile", "--norc", "-i"],
        "PATH=${LOCKKEEPER%/*}:$PATH; source <(lockkeeper completions bash)",
    ),
    (
        "zsh",
        &["-f", "-i"],
        "PATH=${LOCKKEEPER%/*}:$PATH; autoload -U compinit; compinit -D -u; \
         source <(lockkeeper completions zsh)",
    ),
    (
        "fish",
        &["--no-config", "-i"],
        "set -x PATH (dirname $LOCKKEEPER) $PATH; lockkeeper completions fish | source",
    ),
];

/// The key that removes what is typed.
const CLEAR: &str = "\u{15}";

fn is_installed(shell: &str) -> bool {
    std::process::Command::new(shell).args(["-c", "true"]).status().is_ok_and(|status| status.success())
}

/// A terminal for each installed shell, which is ready. Their home is this folder.
async fn shells(fixture: &Fixture, home: &Path) -> Vec<(&'static str, Terminal)> {
    let mut started = Vec::new();
    let home = format!("HOME={}", home.display());
    for (shell, arguments, setup) in SHELLS {
        if !is_installed(shell) {
            leave_out_without(shell);
            continue;
        }
        let words = [&[home.as_str(), shell], arguments].concat();
        let mut terminal = Terminal::start_program(fixture, "env", &words);
        terminal.press(&format!("{setup}; echo re''ady\r"));
        terminal.shows(&["ready"]).await;
        started.push((shell, terminal));
    }
    started
}

#[tokio::test]
async fn a_path_is_completed_from_the_servers_and_contenders_are_none() {
    for fixture in Fixture::both().await {
        let znodes = fixture.manager.znodes();
        let _held = Mutex::new(&fixture.manager, "/look/tab/trains/blue").unwrap().acquire().await.unwrap();
        for other in ["/look/tab/trains/red: 1", "/look/tab/other", "/look/tab/a@bc"] {
            znodes.create(other, "", CreateMode::Persistent).await.unwrap();
        }
        let flag = ["--connect", &fixture.servers];
        let home = tempfile::tempdir().unwrap();
        for (shell, mut terminal) in shells(&fixture, home.path()).await {
            terminal.press("lockkeeper inspect /look/tab/tr\t");
            terminal.shows(&["lockkeeper inspect /look/tab/trains"]).await;
            terminal.press("/bl\tend");
            // A space: nothing but contenders is below it.
            let line = terminal.shows(&["/look/tab/trains/blue end"]).await;
            assert!(!line.contains("_c_"), "{shell}: {line}");
            terminal.press(CLEAR);
            // A name that has to be quoted.
            terminal.press("lockkeeper ls /look/tab/trains/r\tend");
            terminal.shows(&["end"]).await;
            terminal.shows(&[r"/look/tab/trains/red:\ 1"]).await;
            terminal.press(CLEAR);
            // A character that cuts words in bash.
            terminal.press("lockkeeper ls /look/tab/a@\tend");
            terminal.shows(&["ls /look/tab/a@bc end"]).await;
            terminal.press(CLEAR);
            // The servers of the line.
            terminal.press(&format!(
                "LOCKKEEPER_CONNECT=127.0.0.1:1 lockkeeper {} ls /look/tab/o\t",
                flag.join(" ")
            ));
            terminal.shows(&[&format!("{} ls /look/tab/other", fixture.servers)]).await;
            terminal.press(CLEAR);
        }
    }
}

#[tokio::test]
async fn the_arguments_of_the_program_are_completed_as_those_of_the_program() {
    let fixture = Fixture::both().await.remove(0);
    let home = tempfile::tempdir().unwrap();
    for (_, mut terminal) in shells(&fixture, home.path()).await {
        terminal.press("lockkeeper lock /a -- lockkeep\t");
        terminal.shows(&["/a -- lockkeeper"]).await;
        terminal.press(CLEAR);
        terminal.press("lockkeeper lock /b -- lockkeeper deadl\t");
        terminal.shows(&["/b -- lockkeeper deadlocks"]).await;
    }
}

#[tokio::test]
async fn without_a_server_the_key_says_nothing() {
    let mut fixture = Fixture::both().await.remove(0);
    fixture.servers = "127.0.0.1:1".to_owned();
    let home = tempfile::tempdir().unwrap();
    for (_, mut terminal) in shells(&fixture, home.path()).await {
        terminal.press("lockkeeper inspect /b\tend");
        let screen = terminal.shows(&["lockkeeper inspect /bend"]).await;
        assert!(!screen.contains("lockkeeper:"), "{screen}");
    }
}
