use crate::fixture::Fixture;
use crate::screen::Terminal;

#[tokio::test]
async fn help_is_as_wide_as_the_terminal() {
    let fixture = Fixture::both().await.remove(0);
    let show = ["-c", "stty cols 60; $LOCKKEEPER lock --help; echo e''nd"];
    let terminal = Terminal::start_program(&fixture, "sh", &show);
    let shown = terminal.shows(&["end"]).await;
    let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(shown.lines().count() > 20 && (40..=60).contains(&widest), "{widest}:\n{shown}");
}
