//! A terminal, and what a program draws on it.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use lockkeeper_tests::{Timing, eventually};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

use crate::fixture::Fixture;
use crate::picture;

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(120).unwrap();

pub(crate) struct Terminal {
    screen: Arc<Mutex<Parser>>,
    keys: Box<dyn Write + Send>,
    child: Option<Box<dyn Child + Send + Sync>>,
    terminal: Box<dyn MasterPty + Send>,
    /// The modes before anything ran.
    modes: String,
}

impl Terminal {
    /// Starts the command on a terminal of 24 rows and 120 columns.
    pub(crate) fn start(fixture: &Fixture, arguments: &[&str]) -> Self {
        Self::start_program(fixture, env!("CARGO_BIN_EXE_lockkeeper"), arguments)
    }

    /// Starts any program, which finds the command as `$LOCKKEEPER`.
    pub(crate) fn start_program(fixture: &Fixture, program: &str, arguments: &[&str]) -> Self {
        let size = PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let modes = modes(pair.master.as_ref());
        let mut command = CommandBuilder::new(program);
        command.env("LOCKKEEPER", env!("CARGO_BIN_EXE_lockkeeper"));
        command.env("LOCKKEEPER_CONNECT", &fixture.servers);
        command.env("TERM", "xterm-256color");
        command.args(arguments);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new(Mutex::new(Parser::new(ROWS, COLUMNS, 0)));
        let (mut reader, parser) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        // Ends with the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                parser.lock().unwrap().process(&bytes[..count]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self { screen, keys, child: Some(child), terminal: pair.master, modes }
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Sends a signal to the only child of the program.
    pub(crate) fn signal_child(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().process_id().unwrap().to_string();
        let status = std::process::Command::new("pkill").args(["--signal", name, "--parent", &pid]).status();
        assert!(status.unwrap().success());
    }

    /// Gives the screen this number of rows.
    pub(crate) fn resize(&self, rows: u16) {
        self.resize_to(rows, COLUMNS.get());
    }

    /// Gives the screen this size.
    pub(crate) fn resize_to(&self, rows: u16, columns: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.terminal.resize(size).unwrap();
    }

    /// Waits until the terminal is as it was before anything ran.
    pub(crate) async fn until_given_back(&self) {
        let look = async || {
            let is_alternate = self.screen.lock().unwrap().screen().alternate_screen();
            (!is_alternate && modes(self.terminal.as_ref()) == self.modes).then_some(())
        };
        let given = eventually("the terminal as it was", Timing::event(), look).await;
        given.unwrap_or_else(|error| panic!("{error}: {}\n{}", self.modes, modes(self.terminal.as_ref())));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Keeps a picture of the screen for the documentation, if one is wanted.
    pub(crate) fn picture(&self, name: &str) {
        picture::save(name, self.screen.lock().unwrap().screen());
    }

    /// Waits until the screen has all of these texts, and returns it.
    pub(crate) async fn shows(&self, parts: &[&str]) -> String {
        let look = async || {
            let contents = self.contents();
            parts.iter().all(|part| contents.contains(part)).then_some(contents)
        };
        let shown = eventually(format!("{parts:?} on the screen"), Timing::event(), look).await;
        shown.unwrap_or_else(|error| panic!("{error}:\n{}", self.contents()))
    }

    /// Waits until the screen has this text no more.
    pub(crate) async fn gone(&self, part: &str) {
        let look = async || (!self.contents().contains(part)).then_some(());
        eventually(format!("no {part:?} on the screen"), Timing::event(), look).await.unwrap();
    }

    /// Waits until the command has ended, and returns its code.
    pub(crate) async fn ended(mut self) -> u32 {
        self.end().await
    }

    /// The same, and keeps the terminal.
    pub(crate) async fn end(&mut self) -> u32 {
        let mut child = self.child.take().unwrap();
        let work = tokio::task::spawn_blocking(move || child.wait().unwrap().exit_code());
        tokio::time::timeout(Timing::event(), work).await.expect("the command ends").unwrap()
    }
}

/// The local modes: whether the terminal echoes, and reads line by line.
fn modes(terminal: &dyn MasterPty) -> String {
    format!("{:?}", terminal.get_termios().unwrap().local_flags)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Ended already, or not needed any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
