//! `top`: a live screen of the locks below a root.

mod screen;
mod state;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use lockkeeper::{ConnectionManager, Error, Inspection, Revoker, Survey, ZnodePath};
use ratatui::DefaultTerminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use self::state::{Action, Key, Sort, State};
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct TopOptions {
    /// The path below which the locks are; / for everything
    #[arg(default_value = "/")]
    root: String,

    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::interval)]
    interval: Duration,
}

/// The result of one survey of the locks.
type SurveyResult = Result<Vec<Inspection>, Error>;

pub(crate) async fn top(connection: &ConnectionOptions, options: TopOptions) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "top draws on a terminal, and the output is none; use tree or inspect -w",
        ));
    }
    let root = parse_path(&options.root)?;
    let manager = connection.connect().await?;
    let wanted = Arc::new(Notify::new());
    let (results, mut seen) = mpsc::channel(1);
    let looking = tokio::spawn(survey_repeatedly(
        manager.clone(),
        root.clone(),
        options.interval,
        Arc::clone(&wanted),
        results,
    ));
    // A panic gives the terminal back, too.
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, &manager, State::new(root.as_str()), &mut seen, &wanted).await;
    ratatui::restore();
    looking.abort();
    ended
}

/// Surveys the locks again and again: after each interval, and at once when the user wants it.
async fn survey_repeatedly(
    manager: ConnectionManager,
    root: ZnodePath,
    interval: Duration,
    wanted: Arc<Notify>,
    results: mpsc::Sender<SurveyResult>,
) {
    loop {
        let result = Survey::below(&manager, &root).await.map(|survey| survey.locks().to_vec());
        if results.send(result).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            () = wanted.notified() => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
}

async fn show(
    terminal: &mut DefaultTerminal,
    manager: &ConnectionManager,
    mut state: State,
    seen: &mut mpsc::Receiver<SurveyResult>,
    wanted: &Notify,
) -> Result<Exit, Failure> {
    let mut events = EventStream::new();
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut last_look: Option<tokio::time::Instant> = None;
    loop {
        terminal.draw(|frame| screen::draw(frame, &state))?;
        let action = tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(Exit::of_signal(15)),
            _ = hang_up.recv() => return Ok(Exit::of_signal(1)),
            event = events.next() => match event {
                Some(Ok(Event::Key(event))) if event.kind == KeyEventKind::Press => state.on_key(key(event)),
                // Drawn again: the window may have another size.
                Some(Ok(_)) => Action::Nothing,
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(Exit::SUCCESS),
            },
            result = seen.recv() => {
                let now = tokio::time::Instant::now();
                match result {
                    Some(Ok(locks)) => {
                        let since_last = last_look.replace(now).map(|last| now.duration_since(last));
                        if since_last.is_none() {
                            state.message.clear();
                        }
                        state.update(locks, since_last);
                    }
                    Some(Err(error)) => state.message = error.to_string(),
                    None => return Ok(Exit::SUCCESS),
                }
                Action::Nothing
            }
        };
        match action {
            Action::Nothing => {}
            Action::Quit => return Ok(Exit::SUCCESS),
            action => {
                state.message = act(manager, action).await;
                wanted.notify_one();
            }
        }
    }
}

/// Does what a key asked for, and says the outcome.
async fn act(manager: &ConnectionManager, action: Action) -> String {
    let revoker = Revoker::new(manager);
    let (done, said) = match &action {
        Action::Ask(holders) => (revoker.ask(holders).await, "asked to release"),
        Action::Release(holders) => (revoker.force_release(holders).await, "taken away"),
        Action::Nothing | Action::Quit => return String::new(),
    };
    match done {
        Ok(done) if done.is_empty() => "nothing was done: those who were shown hold no more".to_owned(),
        Ok(done) => format!("{said}: {} nodes", done.len()),
        Err(error) => error.to_string(),
    }
}

fn key(event: KeyEvent) -> Key {
    match event.code {
        KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Char('w') => Key::Sort(Sort::Waiters),
        KeyCode::Char('a') => Key::Sort(Sort::Age),
        KeyCode::Char('r') => Key::Sort(Sort::Rate),
        KeyCode::Char('p') => Key::Sort(Sort::Path),
        KeyCode::Enter => Key::Open,
        KeyCode::Esc => Key::Back,
        KeyCode::Char('v') => Key::Ask,
        KeyCode::Char('x') => Key::Release,
        KeyCode::Char('y') => Key::Yes,
        _ => Key::Other,
    }
}
