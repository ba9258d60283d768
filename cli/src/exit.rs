//! The exit codes. The numbers are those of `sysexits.h`, except for the loss of a lock.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::process::ExitCode;

use lockkeeper::Error;
use lockkeeper::error::{ConnectError, ErrorKind, Phase, Refusal};

use crate::setting;

/// The number of the signal that a write to a closed pipe means.
const SIGPIPE: i32 = 13;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// All is well.
    pub(crate) const SUCCESS: Self = Self(0);
    /// The answer to what was asked is no: a lock is free, a deadlock was found.
    pub(crate) const NO: Self = Self(1);
    /// Something is wrong with the servers or the locks, and not only worth a warning.
    pub(crate) const BAD: Self = Self(2);
    /// The answer is no as far as was seen, and not all was seen.
    pub(crate) const PARTIAL: Self = Self(3);
    /// The command line or the settings are wrong. Nothing was sent.
    pub(crate) const USAGE: Self = Self(64);
    /// No server was reached, or none answered.
    pub(crate) const UNAVAILABLE: Self = Self(69);
    /// The operating system refused what the command needs.
    pub(crate) const INTERNAL: Self = Self(70);
    /// The lock was not got in time.
    pub(crate) const NOT_IN_TIME: Self = Self(75);
    /// The servers refused: the access list, the credentials, a quota.
    pub(crate) const REFUSED: Self = Self(77);
    /// The lock was lost, or the program was stopped because the lease was about to end. No code of
    /// `sysexits.h`, so that it is not mistaken.
    pub(crate) const LOST: Self = Self(79);

    /// The code of a program that ended by itself.
    pub(crate) fn of_program(code: u8) -> Self {
        Self(code)
    }

    /// The code of what a signal ended, as a shell reports it.
    pub(crate) fn of_signal(number: i32) -> Self {
        Self(u8::try_from(number).map_or(u8::MAX, |number| number.saturating_add(128)))
    }

    /// The number that the process ends with.
    #[cfg(test)]
    pub(crate) fn code(self) -> u8 {
        self.0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}

/// Why a subcommand could not do what was asked: one line for people, and an exit code for scripts.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// For a setting that is wrong: exit code 64.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::USAGE, message)
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether there is nothing to say: the reader of the output has read enough.
    pub(crate) fn is_quiet(&self) -> bool {
        self.message.is_empty()
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match &error {
            Error::Config(config) => setting::message(config),
            error => error.to_string(),
        };
        Self::new(exit_of(&error), message)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let message = match &error {
            ConnectError::Timeout { .. } => format!("no server is reachable: {error}"),
            ConnectError::Config(config) => setting::message(config),
            _ => error.to_string(),
        };
        Self::new(exit_of(&error.into()), message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // As SIGPIPE ends another program, which says nothing either.
            io::ErrorKind::BrokenPipe => Self::new(Exit::of_signal(SIGPIPE), ""),
            _ => Self::new(Exit::INTERNAL, error.to_string()),
        }
    }
}

fn exit_of(error: &Error) -> Exit {
    match error {
        // Only a wait for other contenders is late. In the other phases no server answered.
        Error::Timeout { phase: Phase::Connecting | Phase::Answer | Phase::Confirmation, .. } => {
            Exit::UNAVAILABLE
        }
        Error::Refused { refusal, .. } if is_unavailable(*refusal) => Exit::UNAVAILABLE,
        error => match error.kind() {
            ErrorKind::Misuse => Exit::USAGE,
            ErrorKind::Timeout => Exit::NOT_IN_TIME,
            ErrorKind::Lost => Exit::LOST,
            ErrorKind::Refused => Exit::REFUSED,
            ErrorKind::Recipe => Exit::USAGE,
            _ => Exit::UNAVAILABLE,
        },
    }
}

fn is_unavailable(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::Throttled | Refusal::ReadOnly | Refusal::SessionMoved)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockkeeper::error::{ConfigError, Operation};

    use super::*;

    fn timeout(phase: Phase) -> Error {
        Error::Timeout { phase, path: "/lock".into(), waited: Duration::from_secs(1) }
    }

    fn refused(refusal: Refusal) -> Error {
        Error::Refused { operation: Operation::Create, path: "/lock".into(), refusal }
    }

    #[test]
    fn each_kind_of_error_has_its_code() {
        let queued = Phase::Queued {
            predecessor: String::new(),
            predecessor_data: String::new(),
            ahead: 1,
            held_here: None,
        };
        let no_server = ConnectError::Timeout {
            servers: "a:1".to_owned(),
            waited: Duration::ZERO,
            cause: "refused".to_owned(),
        };
        for (error, code) in [
            (timeout(queued), 75),
            (timeout(Phase::Recipe("waiting for 3 permits".into())), 75),
            (timeout(Phase::Connecting), 69),
            (timeout(Phase::Answer), 69),
            (no_server.into(), 69),
            (ConnectError::AuthFailed { servers: "a:1".to_owned() }.into(), 77),
            (refused(Refusal::NoAuth), 77),
            (refused(Refusal::ReadOnly), 69),
            (ConfigError::NoRuntime.into(), 64),
            (Error::Closed, 69),
        ] {
            assert_eq!(Failure::from(error.clone()).exit().code(), code, "{error}");
        }
    }

    #[test]
    fn the_exit_code_of_a_signal_is_that_of_a_shell() {
        assert_eq!(Exit::of_signal(2).code(), 130);
        assert_eq!(Exit::of_signal(64).code(), 192);
    }
}
