//! What `tests/fuzz` runs on random bytes: the decoders of names, texts and data of nodes. No part of the
//! API.

use std::time::{Duration, SystemTime};

use lockkeeper_lock::{FencingToken, FencingTokenError};
use uuid::Uuid;

use crate::config::connect_string::ConnectString;
use crate::hold::{REVOKE, is_request, without_request};
use crate::inspect::Identity;
use crate::register::fuzzing::attempt_numbers;
use crate::wire::zookeeper::fuzzing::server_answers;
use crate::znode::name::{CreateId, Kind, Label, NodeName};
use crate::znode::node_data::shown;
use crate::znode::path::ZnodePath;

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("names", names),
    ("paths", paths),
    ("connect_strings", connect_strings),
    ("identities", identities),
    ("tokens", tokens),
    ("attempt_numbers", attempt_numbers),
    ("server_answers", server_answers),
];

/// An error is printed and logged: the input must not fill the log.
const MESSAGE_BYTES_MAX: usize = 3_000;

const LABELS: [Label; 6] = [Label::LOCK, Label::LEASE, Label::READ, Label::WRITE, Label::LATCH, Label::LIMIT];

fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(name) = NodeName::parse(text) {
        assert_eq!(name.as_str(), text);
        let with = NodeName::parse_with(text, &LABELS).map(|with| (with.kind(), with.sequence()));
        assert_eq!(with, Some((name.kind(), name.sequence())));
        assert!(text.ends_with(|last: char| last.is_ascii_digit()));
    }
    if let Some(id) = NodeName::create_id(text) {
        let create_id = CreateId::of(text);
        assert_eq!(create_id.map(|id| id.to_string()), Some(format!("_c_{}-", id.to_ascii_lowercase())));
    }
    // The name of a node as this library and the server make it.
    let Some((unique, sequence)) = data.split_first_chunk::<16>() else { return };
    let Some((sequence, _)) = sequence.split_first_chunk::<4>() else { return };
    let (create_id, sequence) = (CreateId::new(Uuid::from_bytes(*unique)), i32::from_be_bytes(*sequence));
    for label in LABELS {
        let text = format!("{}{sequence:010}", create_id.name(label));
        let name = NodeName::parse(&text).map(|name| (name.kind(), name.sequence()));
        assert_eq!(name, Some((label.kind(), sequence)), "{text}");
        assert_ne!(label.kind(), Kind::OTHER);
        assert_eq!(CreateId::of(&text), Some(create_id));
    }
}

fn paths(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = match text.parse::<ZnodePath>() {
        Ok(path) => path,
        Err(error) => return assert!(error.to_string().len() <= MESSAGE_BYTES_MAX),
    };
    assert_eq!(path.as_str(), text);
    if let Some(parent) = path.parent() {
        assert_eq!(parent.child(path.name()).as_ref(), Ok(&path));
    }
    let Ok(chroot) = "/app".parse::<ZnodePath>() else { return };
    if let Ok(whole) = chroot.join(&path) {
        assert_eq!(chroot.strip(whole.as_str()), path.as_str());
    }
}

fn connect_strings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<ConnectString>() {
        Ok(parsed) => {
            let servers: Vec<String> = parsed.endpoints().iter().map(ToString::to_string).collect();
            assert_eq!(format!("{}{}", servers.join(","), parsed.chroot()).parse(), Ok(parsed));
        }
        Err(error) => assert!(error.to_string().len() <= MESSAGE_BYTES_MAX),
    }
}

fn identities(data: &[u8]) {
    let identity = Identity::read(data);
    let line = shown(data);
    assert!(!line.is_empty() && line.chars().count() <= 120 && !line.chars().any(char::is_control));
    let parts = [identity.host(), identity.owner(), identity.note(), Some(&identity.to_string())];
    for part in parts.into_iter().flatten() {
        assert!(part.len() <= MESSAGE_BYTES_MAX && !part.chars().any(char::is_control), "{part:?}");
    }
    assert!(identity.holds().len() <= 8);
    assert!(identity.pid().is_none() || identity.host().is_some());

    let asked = [REVOKE, b" ", data].concat();
    assert!(is_request(&asked) && without_request(&asked) == data);
    if !is_request(data) {
        assert_eq!(Identity::read(&asked), identity);
        wait_is_read(data);
    }
}

/// What a waiter appends to its data is read again.
fn wait_is_read(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.contains(" owner=") {
        return;
    }
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let waits = Identity::read(&Identity::append_wait(data, &["5a1f".to_owned()], Some(until)));
    assert_eq!(waits.until(), Some(until));
    let holds = waits.holds();
    assert!(holds.len() == 8 || holds.last().is_some_and(|last| last == "5a1f"), "{holds:?}");
}

fn tokens(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let short = |error: FencingTokenError| assert!(error.to_string().len() <= MESSAGE_BYTES_MAX);
        match text.parse::<FencingToken>() {
            Ok(token) => assert_eq!(token.to_string().parse(), Ok(token)),
            Err(error) => short(error),
        }
        match FencingToken::from_decimal(text) {
            Ok(token) => assert!(token.to_decimal().ends_with(text)),
            Err(error) => short(error),
        }
    }
    let Some((one, rest)) = data.split_first_chunk::<16>() else { return };
    let Some((other, _)) = rest.split_first_chunk::<16>() else { return };
    let (one, other) = (FencingToken::from_be_bytes(*one), FencingToken::from_be_bytes(*other));
    assert_eq!(one.cmp(&other), one.to_be_bytes().cmp(&other.to_be_bytes()));
    assert_eq!(one.cmp(&other), one.to_decimal().cmp(&other.to_decimal()));
    assert_eq!(one.to_string().parse(), Ok(one));
    assert_eq!(FencingToken::from_decimal(&one.to_decimal()), Ok(one));
    assert!(one.mark_above() > one || one.to_be_bytes() == [0xff; 16]);
}

#[cfg(test)]
#[path = "../tests/fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_inputs_of_names_and_data_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
