//! The terminal, which other programs find as they left it, however this one ends or is stopped.

use std::io;
use std::ops::{Deref, DerefMut};

use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::DefaultTerminal;
use ratatui::backend::CrosstermBackend;

use crate::run::job;

/// The terminal in raw mode, on its alternate screen. Its drop gives it back.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // A panic gives the terminal back, too.
        Ok(Self(ratatui::try_init()?))
    }

    /// Gives the terminal back, stops this job, and takes the terminal again when the job continues.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        ratatui::restore();
        job::stop();
        self.take()
    }

    /// Takes the terminal again, after a stop that nobody announced.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        // The modes of the terminal are those of the shell, whatever they were before.
        ratatui::restore();
        self.take()
    }

    fn take(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        // It draws all of the screen.
        self.0 = DefaultTerminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Deref for Screen {
    type Target = DefaultTerminal;

    fn deref(&self) -> &DefaultTerminal {
        &self.0
    }
}

impl DerefMut for Screen {
    fn deref_mut(&mut self) -> &mut DefaultTerminal {
        &mut self.0
    }
}
