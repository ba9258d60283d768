use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use thiserror::Error;

use crate::znode::path::{PathError, ZnodePath};

/// The servers of an ensemble and, at its end, an optional chroot: `host1:2181,host2,[::1]:2183/app`.
///
/// The default port is 2181. With the feature `tls`, an endpoint may begin with `tcp+tls://`. With a chroot,
/// all paths are below it; the manager creates it on first use. The chroot is given once, behind the last
/// server, and has neither a comma nor a semicolon. List every server: a client switches between
/// listed servers within milliseconds, while the restart of a single listed server can outlast the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectString {
    endpoints: Vec<Endpoint>,
    chroot: ZnodePath,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    tls: bool,
}

impl ConnectString {
    /// The path that is prepended to every other one; `/` without a chroot.
    #[must_use]
    pub fn chroot(&self) -> &ZnodePath {
        &self.chroot
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }
}

impl Endpoint {
    /// Host and port, in the form that the resolver takes.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Whether connections to this endpoint use TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls
    }

    fn parse(text: &str) -> Result<Self, ConnectStringFlaw> {
        let (address, tls) = match text.split_once("://") {
            None => (text, false),
            Some(("tcp", address)) => (address, false),
            Some(("tcp+tls", address)) => (address, true),
            Some(_) => return Err(ConnectStringFlaw::UnknownScheme),
        };
        if tls && !cfg!(feature = "tls") {
            return Err(ConnectStringFlaw::NoTls);
        }
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(ConnectStringFlaw::BadAddress)?;
                (
                    host,
                    if port.is_empty() {
                        None
                    } else {
                        Some(port.strip_prefix(':').ok_or(ConnectStringFlaw::BadAddress)?)
                    },
                )
            }
            None => match address.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(ConnectStringFlaw::BareIpv6),
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        let is_no_part = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '[' | ']');
        if host.is_empty() || host.contains(is_no_part) {
            return Err(ConnectStringFlaw::BadAddress);
        }
        let port = match port {
            None => 2181,
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(ConnectStringFlaw::BadPort)?,
        };
        Ok(Self { host: host.to_owned(), port, tls })
    }
}

impl Display for Endpoint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tcp+tls" } else { "tcp" };
        if self.host.contains(':') {
            write!(formatter, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, ConnectStringError> {
        let error = |flaw| ConnectStringError { text: text.chars().take(200).collect(), flaw };
        if text.contains(';') {
            return Err(error(ConnectStringFlaw::Semicolon(one_chroot(text))));
        }
        let mut items: Vec<&str> = text.split(',').collect();
        let last = items.pop().unwrap_or_default();
        if items.iter().any(|item| chroot_at(item).is_some()) {
            return Err(error(ConnectStringFlaw::ChrootInside(one_chroot(text))));
        }
        let (hosts, chroot) = text.split_at(text.len() - last.len() + chroot_at(last).unwrap_or(last.len()));
        let chroot = if chroot.is_empty() { "/" } else { chroot };
        let chroot = chroot.parse().map_err(|source| error(ConnectStringFlaw::Chroot(source)))?;
        if hosts.trim().is_empty() {
            return Err(error(ConnectStringFlaw::Empty));
        }
        let endpoints = hosts
            .split(',')
            .map(|host| Endpoint::parse(host.trim()))
            .collect::<Result<_, _>>()
            .map_err(error)?;
        Ok(Self { endpoints, chroot })
    }
}

/// Where the chroot of one server begins. The slashes of its scheme begin none.
fn chroot_at(item: &str) -> Option<usize> {
    let host_from = item.find("://").map_or(0, |at| at + 3);
    item.get(host_from..)?.find('/').map(|at| host_from + at)
}

/// The connect string that was probably meant: the servers, and the first chroot at the end.
fn one_chroot(text: &str) -> String {
    let items = text.split([',', ';']).map(str::trim).filter(|item| !item.is_empty());
    let split: Vec<(&str, &str)> =
        items.map(|item| item.split_at(chroot_at(item).unwrap_or(item.len()))).collect();
    let servers: Vec<&str> = split.iter().map(|(server, _)| *server).collect();
    let chroot = split.iter().map(|(_, chroot)| *chroot).find(|chroot| !chroot.is_empty());
    format!("{}{}", servers.join(","), chroot.unwrap_or_default()).chars().take(200).collect()
}

/// Why a connect string is invalid, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("connect string {text:?}: {flaw}")]
pub struct ConnectStringError {
    text: String,
    flaw: ConnectStringFlaw,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum ConnectStringFlaw {
    #[error("names no server; give host:port,host:port,…")]
    Empty,
    #[error("has a bad address; give host or host:port")]
    BadAddress,
    #[error("has a bad port; give a number from 1 to 65535")]
    BadPort,
    #[error("has an IPv6 address without brackets; write [::1]:2181")]
    BareIpv6,
    #[error("has an unknown scheme; use none, tcp:// or tcp+tls://")]
    UnknownScheme,
    #[error("asks for TLS; build with the feature `tls`")]
    NoTls,
    #[error(
        "has a chroot before its last server; give the chroot once, at the end, and without a comma: {0}"
    )]
    ChrootInside(String),
    #[error("has a semicolon; separate the servers by commas, and take a chroot without one: {0}")]
    Semicolon(String),
    #[error("has a bad chroot: {0}")]
    Chroot(PathError),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> (Vec<String>, String) {
        let parsed: ConnectString = text.parse().unwrap();
        (parsed.endpoints.iter().map(ToString::to_string).collect(), parsed.chroot.to_string())
    }

    #[test]
    fn hosts_ports_and_chroot_are_read() {
        assert_eq!(shown("a"), (vec!["tcp://a:2181".to_owned()], "/".to_owned()));
        assert_eq!(shown("a:1/"), (vec!["tcp://a:1".to_owned()], "/".to_owned()));
        assert_eq!(
            shown("a:1, b,[::1]:3/app/x"),
            (["tcp://a:1", "tcp://b:2181", "tcp://[::1]:3"].map(str::to_owned).to_vec(), "/app/x".to_owned())
        );
        assert_eq!(shown("tcp://a:1,tcp://b/app").1, "/app");
    }

    #[test]
    fn invalid_connect_strings_are_refused_with_what_to_change() {
        for (text, word) in [
            ("", "names no server"),
            ("/app", "names no server"),
            ("a,,b", "bad address"),
            ("a b", "bad address"),
            ("a:0", "bad port"),
            ("a:99999", "bad port"),
            ("a:x", "bad port"),
            ("::1", "brackets"),
            ("[::1", "bad address"),
            ("[::1]2181", "bad address"),
            ("[[]:2", "bad address"),
            ("http://a", "scheme"),
            ("a/app/", "last slash"),
            ("a//", "slash"),
            (
                "h1:2181/app,h2:2181/app",
                "give the chroot once, at the end, and without a comma: h1:2181,h2:2181/app",
            ),
            ("h1/app, [::1]:2", "at the end, and without a comma: h1,[::1]:2/app"),
            ("tcp://h1:1/app,tcp://h2:2/app", "comma: tcp://h1:1,tcp://h2:2/app"),
            ("tcp://h1/app,h2", "comma: tcp://h1,h2/app"),
            ("h1:2181/app,", "comma: h1:2181/app"),
            ("h1:2181/a,b", "comma: h1:2181,b/a"),
            (
                "h1:2181;h2:2181/app",
                "separate the servers by commas, and take a chroot without one: h1:2181,h2:2181/app",
            ),
            ("h1:2181/app;h2:2181/app", "without one: h1:2181,h2:2181/app"),
        ] {
            let message = text.parse::<ConnectString>().unwrap_err().to_string();
            assert!(message.contains(word), "{text:?}: {message}");
        }
    }

    proptest! {
        /// For any text. A text that is accepted reads the same after it is formatted.
        #[test]
        fn no_text_panics_and_an_accepted_one_is_read_back(
            text in "([a:,/.\\[\\] 0-9]|tcp://|tcp\\+tls://|2181|::1|\\PC){0,12}",
        ) {
            if let Ok(parsed) = text.parse::<ConnectString>() {
                let servers: Vec<String> = parsed.endpoints.iter().map(ToString::to_string).collect();
                let written = format!("{}{}", servers.join(","), parsed.chroot);
                prop_assert_eq!(written.parse(), Ok(parsed));
            }
        }
    }
}
