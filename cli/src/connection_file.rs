//! The file of settings.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::exit::Failure;

const NAMES: &str = "connect, auth, acl, session-timeout, connect-timeout, tick-time, token-generation, \
                     tls-ca, tls-cert and tls-key";

/// The settings in a file, as texts. Numbers are as they are read.
#[derive(Default)]
pub(crate) struct ConnectionFile {
    pub(crate) connect: Option<String>,
    pub(crate) auth: Option<String>,
    pub(crate) acl: Option<String>,
    pub(crate) session_timeout: Option<String>,
    pub(crate) connect_timeout: Option<String>,
    pub(crate) tick_time: Option<String>,
    pub(crate) token_generation: Option<u32>,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
}

impl ConnectionFile {
    /// No message shows a value: it may be a password.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path)?;
        Self::parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or_else(String::new, |at| format!("line {} ", line_of(text, &at)));
            format!("{line}is no TOML; write lines such as connect = \"zk1:2181,zk2:2181\"")
        })?;
        let mut file = Self::default();
        for (name, value) in table {
            match name.as_str() {
                "connect" => file.connect = Some(word(&name, value)?),
                "auth" => file.auth = Some(word(&name, value)?),
                "acl" => file.acl = Some(word(&name, value)?),
                "session-timeout" => file.session_timeout = Some(word(&name, value)?),
                "connect-timeout" => file.connect_timeout = Some(word(&name, value)?),
                "tick-time" => file.tick_time = Some(word(&name, value)?),
                "token-generation" => file.token_generation = Some(number(&name, &value)?),
                "tls-ca" => file.tls_ca = Some(word(&name, value)?.into()),
                "tls-cert" => file.tls_cert = Some(word(&name, value)?.into()),
                "tls-key" => file.tls_key = Some(word(&name, value)?.into()),
                _ => return Err(format!("{name} is no setting; the settings are {NAMES}")),
            }
        }
        Ok(file)
    }
}

/// The line of a place in the text, from 1.
fn line_of(text: &str, at: &Range<usize>) -> usize {
    text.bytes().take(at.start).filter(|byte| *byte == b'\n').count() + 1
}

fn word(name: &str, value: Value) -> Result<String, String> {
    let example = match name {
        "auth" => "user:password",
        "acl" => "open",
        "connect" => "zk1:2181",
        "session-timeout" | "connect-timeout" | "tick-time" => "20s",
        _ => "/etc/lockkeeper/file.pem",
    };
    match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("{name} is no text; write {name} = \"{example}\"")),
    }
}

fn number(name: &str, value: &Value) -> Result<u32, String> {
    let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("{name} is no number from 0 to {}; write {name} = 1", u32::MAX))
}

pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named_with_what_to_write() {
        for (text, expected) in [
            ("connect = 3", "connect is no text; write connect = \"zk1:2181\""),
            ("session-timeout = 20", "session-timeout is no text; write session-timeout = \"20s\""),
            ("token-generation = \"1\"", "token-generation is no number from 0 to 4294967295"),
            ("token-generation = -1", "token-generation is no number"),
            ("connexion = \"a\"", "connexion is no setting; the settings are connect, auth"),
            ("acl = \"open\"\nconnect = \"a", "line 2 is no TOML; write lines such as connect = "),
        ] {
            let error = ConnectionFile::parse(text).err().unwrap();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let file = ConnectionFile::parse("connect = \"a:1\"\ntoken-generation = 7").ok().unwrap();
        assert_eq!((file.connect.as_deref(), file.token_generation), (Some("a:1"), Some(7)));
    }
}
