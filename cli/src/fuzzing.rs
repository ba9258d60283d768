//! What `tests/fuzz` runs on random bytes: files, arguments, the answers of servers, and the messages of the
//! command's own processes.

use lockkeeper::ZnodePath;
use lockkeeper_core::ConnectString;
use lockkeeper_testserver::tree;

use crate::connection_file::ConnectionFile;
use crate::doctor::fuzzing::reports;
use crate::escape::{is_printable, printable, to_text};
use crate::four_letter_words::{addresses, chroot};
use crate::inspect::cons;
use crate::span;
use crate::supervisor::fuzzing::messages;

/// What runs on an input, by the name of its folders in `tests/fuzz`.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub(crate) const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("settings_files", settings_files),
    ("arguments", arguments),
    ("server_reports", server_reports),
    ("messages", messages),
];

/// The file of settings. Its password is in no message, whatever else is in the file.
fn settings_files(data: &[u8]) {
    const PASSWORD: &str = "shop:Q7hunter2Q7";
    let Ok(text) = std::str::from_utf8(data) else { return };
    let password = format!("auth = \"{PASSWORD}\"\n");
    for file in [text.to_owned(), format!("{password}{text}"), format!("{text}\n{password}")] {
        if let Err(message) = ConnectionFile::parse(&file) {
            assert!(text.contains(PASSWORD) || !message.contains(PASSWORD), "{message}");
        }
    }
}

/// Paths, connect strings and times on the command line.
fn arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The library takes no path that the server refuses.
    if let Ok(path) = text.parse::<ZnodePath>() {
        assert!(tree::validate(path.as_str()), "{path:?}");
    }
    if let Ok(servers) = text.parse::<ConnectString>() {
        let whole = servers.chroot().as_str();
        assert_eq!(chroot(text), (whole != "/").then_some(whole));
        for address in addresses(text) {
            let port = address.host_and_port.rsplit_once(':').map(|(_, port)| port.parse::<u16>().is_ok());
            assert_eq!(port, Some(true), "{address:?}");
        }
    }
    if let Ok(span) = span::parse(text) {
        assert_eq!(span::interval(text).is_ok(), span >= std::time::Duration::from_millis(100));
    }
    assert!(printable(text).chars().all(is_printable));
    let line = to_text(&text);
    assert!(line.chars().all(is_printable));
    assert_eq!(serde_json::from_str::<String>(&line).ok().as_deref(), Some(text));
}

/// The answers of a server to the four-letter words.
fn server_reports(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    reports(&text);
    for (_, client) in cons::parse(&text, "zk1:2181") {
        assert!(client.chars().all(is_printable) && client.ends_with(" at server zk1:2181"), "{client:?}");
    }
}

#[cfg(test)]
#[path = "../../tests/fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    #[test]
    fn the_kept_inputs_of_the_command_keep_the_rules() {
        super::replay::replay(super::TARGETS);
    }
}
