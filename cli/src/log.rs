//! The lines on the standard error: messages of the command, and with `-v` what the library logs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use humantime::format_rfc3339_millis;
use serde::Serialize;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::escape::neutral;
use crate::escape::to_text;

/// The lines of the level `debug` that `-v` shows: the predecessor of a contender, and the end of its wait.
const WAITING: [&str; 2] = ["waiting in the queue", "acquired"];

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct LogOptions {
    /// Say more: the predecessor of a contender that waits, and what becomes of the link and the session;
    /// twice for every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Messages as lines for people, or as a JSON object on each line
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = ENVIRONMENT,
        default_value_t = LogFormat::Text
    )]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Names the format for the processes of a run, and for commands within its program.
pub(crate) const ENVIRONMENT: &str = "LOCKKEEPER_LOG_FORMAT";

/// What a line has besides its message.
pub(crate) type Fields = BTreeMap<&'static str, Value>;

static FORMAT: OnceLock<LogFormat> = OnceLock::new();

#[derive(Debug, Serialize)]
struct Line<'a> {
    schema: u32,
    time: String,
    level: String,
    message: &'a str,
    fields: &'a Fields,
}

impl LogOptions {
    /// From here on lines are written as the options say. On a screen that a program draws there is no place
    /// for what the library logs.
    pub(crate) fn start(&self, draws: bool) {
        // It is the only start of the process.
        let _ = FORMAT.set(self.log_format);
        if self.verbose > 0 && !draws {
            let _ = tracing::subscriber::set_global_default(Lines { verbose: self.verbose });
        }
    }
}

/// The same for a process that a command has started.
pub(crate) fn start_within() {
    let format = std::env::var(ENVIRONMENT).ok().and_then(|name| LogFormat::from_str(&name, true).ok());
    let _ = FORMAT.set(format.unwrap_or_default());
}

/// The format, as the environment names it.
pub(crate) fn format() -> &'static str {
    match FORMAT.get().copied().unwrap_or_default() {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
}

/// Writes a line. One write, so that the lines of two processes do not mix.
pub(crate) fn write(level: &Level, message: &str, fields: &Fields) {
    let line = match FORMAT.get().copied().unwrap_or_default() {
        LogFormat::Text => format!("lockkeeper: {}\n", neutral(&text(message, fields))),
        LogFormat::Json => {
            let time = format_rfc3339_millis(SystemTime::now()).to_string();
            let level = level.as_str().to_lowercase();
            format!("{}\n", to_text(&Line { schema: 1, time, level, message, fields }))
        }
    };
    // Nobody reads it if the standard error is closed.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

fn text(message: &str, fields: &Fields) -> String {
    let mut text = message.to_owned();
    for (name, value) in fields {
        match value {
            Value::String(value) => text.push_str(&format!("  {name}={value}")),
            value => text.push_str(&format!("  {name}={value}")),
        }
    }
    text
}

/// What the library logs.
#[derive(Debug)]
struct Lines {
    verbose: u8,
}

impl Subscriber for Lines {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_event() && of.target().starts_with("lockkeeper") && *of.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Read::default();
        event.record(&mut line);
        let level = event.metadata().level();
        if *level <= Level::INFO || self.verbose > 1 || WAITING.contains(&line.message.as_str()) {
            write(level, &line.message, &line.fields);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // No span is enabled.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message and the fields of an event.
#[derive(Default)]
struct Read {
    message: String,
    fields: Fields,
}

impl Read {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name(), value.into());
    }
}

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.put(field, text) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}
