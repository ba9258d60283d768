//! `top`: a live screen of the locks below a root.

mod row;
mod screen;
mod state;
mod terminal;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use lockkeeper::inspect::{ContenderInfo, Survey};
use lockkeeper::{ConnectionManager, Error, Revoker, ZnodePath};
use rustix::process::Signal;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use self::row::Sort;
use self::state::{Act, Action, Key, State};
use self::terminal::Screen;
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::partial::NODES;
use crate::signals::Signals;
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct TopOptions {
    /// The path below which the locks are; / for everything
    #[arg(default_value = "/")]
    root: String,

    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::interval)]
    interval: Duration,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    nodes: usize,
}

/// The result of one survey of the locks.
type SurveyResult = Result<Survey, Error>;

pub(crate) async fn top(connection: &ConnectionOptions, options: TopOptions) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "top draws on a terminal, and the output is none; use tree or inspect -w",
        ));
    }
    let root = parse_path(&options.root)?;
    connection
        .with_session(async |manager| {
            let wanted = Arc::new(Notify::new());
            let (results, seen) = mpsc::channel(1);
            let state = State::new(root.as_str(), options.nodes);
            let looks =
                survey_repeatedly(manager.clone(), root.clone(), options, Arc::clone(&wanted), results);
            let looking = tokio::spawn(looks);
            let ended = show(manager, state, seen, &wanted).await;
            looking.abort();
            ended
        })
        .await
}

/// Surveys the locks again and again: after each interval, and at once when the user wants it.
async fn survey_repeatedly(
    manager: ConnectionManager,
    root: ZnodePath,
    options: TopOptions,
    wanted: Arc<Notify>,
    results: mpsc::Sender<SurveyResult>,
) {
    loop {
        let result = Survey::below_with(&manager, &root, options.nodes).await;
        if results.send(result).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            () = wanted.notified() => {}
            () = tokio::time::sleep(options.interval) => {}
        }
    }
}

async fn show(
    manager: &ConnectionManager,
    mut state: State,
    mut seen: mpsc::Receiver<SurveyResult>,
    wanted: &Notify,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    signals.listen_for_jobs()?;
    let mut screen = Screen::open()?;
    let mut events = EventStream::new();
    let mut last_look: Option<tokio::time::Instant> = None;
    let mut acting: Option<JoinHandle<String>> = None;
    loop {
        let mut is_whole = true;
        screen.draw(|frame| is_whole = screen::draw(frame, &state))?;
        let action = tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::TSTP => Action::Suspend,
                Signal::CONT => {
                    screen.resume()?;
                    Action::Nothing
                }
                signal => return Ok(Exit::of_signal(signal.as_raw())),
            },
            event = events.next() => match event {
                Some(Ok(Event::Key(event))) if event.kind == KeyEventKind::Press => {
                    state.on_key(key(event), is_whole)
                }
                // Drawn again: the window may have another size.
                Some(Ok(_)) => Action::Nothing,
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(Exit::SUCCESS),
            },
            said = outcome(&mut acting) => {
                acting = None;
                state.acted(said);
                wanted.notify_one();
                Action::Nothing
            }
            result = seen.recv() => {
                let now = tokio::time::Instant::now();
                match result {
                    Some(Ok(survey)) => {
                        let since_last = last_look.replace(now).map(|last| now.duration_since(last));
                        state.update(&survey, since_last);
                    }
                    Some(Err(error)) => state.trouble = Some(error.to_string()),
                    None => return Ok(Exit::SUCCESS),
                }
                Action::Nothing
            }
        };
        match action {
            Action::Nothing => {}
            Action::Quit => return Ok(Exit::SUCCESS),
            Action::Suspend => screen.suspend()?,
            // The servers may not answer for long, and the keys still do.
            Action::Act(act, holders) => {
                acting = Some(tokio::spawn(carry_out(manager.clone(), act, holders)))
            }
        }
    }
}

/// The outcome of what a key asked for, if it asked for anything.
///
/// Cancel safe: the work continues.
async fn outcome(acting: &mut Option<JoinHandle<String>>) -> String {
    match acting {
        Some(work) => work.await.unwrap_or_else(|error| error.to_string()),
        None => std::future::pending().await,
    }
}

/// Does what a key asked for, and says the outcome.
async fn carry_out(manager: ConnectionManager, act: Act, holders: Vec<ContenderInfo>) -> String {
    let revoker = Revoker::new(&manager);
    let (done, said) = match act {
        Act::Ask => (revoker.ask(&holders).await, "asked to release"),
        Act::Release => (revoker.force_release(&holders).await, "taken away"),
    };
    match done {
        Ok(done) if done.is_empty() => "nothing was done: those who were shown hold no more".to_owned(),
        Ok(done) => format!("{said}: {} nodes", done.len()),
        Err(error) => error.to_string(),
    }
}

fn key(event: KeyEvent) -> Key {
    if event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return match event.code {
            KeyCode::Char('c') => Key::Quit,
            KeyCode::Char('z') => Key::Suspend,
            _ => Key::Other,
        };
    }
    match event.code {
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
