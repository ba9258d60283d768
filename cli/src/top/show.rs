//! The loop of the screen: keys, signals, looks, and what becomes of what a key asked for.

use std::io::{self, IsTerminal};

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use lockkeeper::inspect::ContenderInfo;
use lockkeeper::{ConnectionManager, Error, Inspection, Revoker, ZnodePath};
use rustix::process::Signal;
use tokio::sync::{mpsc, watch};

use super::batch::Batch;
use super::options::TopOptions;
use super::reader::{Look, Reader, Wanted};
use super::screen;
use super::state::{Act, Action, Key, Move, State};
use super::terminal::Screen;
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::signals::Signals;

pub(crate) async fn top(connection: &ConnectionOptions, options: TopOptions) -> Result<Exit, Failure> {
    if !options.batch && !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "top draws on a terminal, and the output is none; use top -b, tree or inspect -w",
        ));
    }
    let root = parse_path(&options.root)?;
    connection
        .with_session(async |manager| {
            let reader = Reader::new(manager, root.clone(), &options);
            if options.batch {
                let (count, interval, sort) = (options.count, options.interval, options.sort);
                return Batch { count, interval, sort }.run(root.as_str(), reader).await;
            }
            let state = State::new(root.as_str(), options.sort, options.interval);
            let (wanted, wants) = watch::channel(Wanted::default());
            let (results, looks) = mpsc::channel(1);
            let reading = tokio::spawn(reader.run(wants, results));
            let ended = show(manager, state, looks, &wanted).await;
            reading.abort();
            ended
        })
        .await
}

/// What became of a key.
enum Outcome {
    /// The contenders of a lock, for a question.
    Contenders(Act, ZnodePath, Result<Vec<ContenderInfo>, String>),
    /// What was done to the holders.
    Done(String),
}

async fn show(
    manager: &ConnectionManager,
    mut state: State,
    mut looks: mpsc::Receiver<Result<Look, Error>>,
    wanted: &watch::Sender<Wanted>,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    signals.listen_for_jobs()?;
    let mut screen = Screen::open()?;
    let mut events = EventStream::new();
    let (answers, mut outcomes) = mpsc::channel(4);
    loop {
        let mut is_whole = true;
        screen.draw(|frame| is_whole = screen::draw(frame, &mut state))?;
        wanted.send_replace(state.wanted());
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
            Some(outcome) = outcomes.recv() => {
                match outcome {
                    Outcome::Contenders(act, path, read) => state.ask_about(act, path, read),
                    Outcome::Done(said) => state.acted(said),
                }
                Action::Nothing
            }
            look = looks.recv() => {
                match look {
                    Some(Ok(look)) => state.update(look),
                    Some(Err(error)) => state.trouble = Some(error.to_string()),
                    None => return Ok(Exit::SUCCESS),
                }
                Action::Nothing
            }
        };
        // The servers may not answer for long, and the keys still do.
        let (manager, answers) = (manager.clone(), answers.clone());
        match action {
            Action::Nothing => {}
            Action::Quit => return Ok(Exit::SUCCESS),
            Action::Suspend => screen.suspend()?,
            Action::Ask(act, path) => drop(tokio::spawn(async move {
                let read = contenders(&manager, &path).await;
                // Nobody wants it if the screen has ended.
                let _ = answers.send(Outcome::Contenders(act, path, read)).await;
            })),
            Action::Act(act, holders) => drop(tokio::spawn(async move {
                let said = carry_out(&manager, act, holders).await;
                let _ = answers.send(Outcome::Done(said)).await;
            })),
        }
    }
}

/// All contenders of a lock, as they are.
async fn contenders(manager: &ConnectionManager, path: &ZnodePath) -> Result<Vec<ContenderInfo>, String> {
    let read = Inspection::of_path(manager, path).await.map_err(|error| error.to_string())?;
    Ok(read.map(|lock| lock.contenders().to_vec()).unwrap_or_default())
}

/// Does what a key asked for, and says the outcome.
async fn carry_out(manager: &ConnectionManager, act: Act, holders: Vec<ContenderInfo>) -> String {
    let revoker = Revoker::new(manager);
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
            KeyCode::Char('c') => Key::Interrupt,
            KeyCode::Char('z') => Key::Suspend,
            _ => Key::Other,
        };
    }
    match event.code {
        KeyCode::Up => Key::Move(Move::Up),
        KeyCode::Down => Key::Move(Move::Down),
        KeyCode::PageUp => Key::Move(Move::PageUp),
        KeyCode::PageDown => Key::Move(Move::PageDown),
        KeyCode::Home => Key::Move(Move::First),
        KeyCode::End => Key::Move(Move::Last),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Back,
        KeyCode::Backspace => Key::Erase,
        KeyCode::Char(c) => Key::Char(c),
        _ => Key::Other,
    }
}
