//! Requests to release. A request overwrites what the node says of its holder, as Curator has it. The command
//! writes it again: its program may continue, and the next engineer who looks must find its owner.

use std::future::pending;
use std::time::Duration;

use lockkeeper::error::Refusal;
use lockkeeper::inspect::{Identity, Kind};
use lockkeeper::{ConnectionManager, Error, ZnodePath};
use lockkeeper_core::NodeName;
use tokio::sync::mpsc;

use super::grant::Grant;
use crate::inspect::print::{ASKED, REVOKE, is_request};

/// What comes behind the note.
const BEHIND_THE_NOTE: [&str; 3] = [" holds=", " until=", " owner="];

/// The pause before a node is written again.
const PAUSE: Duration = Duration::from_millis(200);

/// A node, and what it said before a request.
type Said = (ZnodePath, Vec<u8>);

/// Tells of each request to release, and writes again who holds. Does not end.
pub(super) async fn follow(manager: &ConnectionManager, grant: &Grant, heard: mpsc::Sender<()>) {
    // Without an answer nothing can be written again, but a request is heard all the same.
    let said = read(manager, grant).await.unwrap_or_default();
    while grant.revoke_requested().await.is_ok() {
        // A request that was not heard of yet is the same as this one.
        let _ = heard.try_send(());
        // As long as a node is overwritten, the next request would not be heard.
        while let Err(error) = restore(manager, &said).await {
            if !(error.is_transient() || error.outcome_unknown() || is_newer(&error)) {
                return pending().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if said.len() < grant.nodes().len() {
            // A node stays overwritten, and would tell of the same request without end.
            break;
        }
    }
    pending().await
}

/// Another request has overwritten the node meanwhile.
fn is_newer(error: &Error) -> bool {
    matches!(error, Error::Refused { refusal: Refusal::BadVersion, .. })
}

async fn read(manager: &ConnectionManager, grant: &Grant) -> Result<Vec<Said>, Error> {
    let mut said = Vec::new();
    for path in grant.nodes() {
        let Some((data, _)) = manager.znodes().read(&path).await? else { continue };
        match data.strip_prefix(REVOKE.as_bytes()) {
            Some(behind) if is_request(&data) => {
                // A request that kept what the node said has it behind a space.
                said.extend(behind.strip_prefix(b" ").map(|behind| (path, behind.to_vec())));
            }
            _ => said.push((path, data)),
        }
    }
    Ok(said)
}

/// Writes again what the overwritten nodes said.
async fn restore(manager: &ConnectionManager, said: &[Said]) -> Result<(), Error> {
    for (path, data) in said {
        if let Some((found, stat)) = manager.znodes().read(path).await?
            && is_request(&found)
        {
            manager.znodes().write(path, asked(path, data), stat.version).await?;
        }
    }
    Ok(())
}

/// With the note that it was asked. The data of a candidate is its name, and that stays.
fn asked(path: &ZnodePath, data: &[u8]) -> Vec<u8> {
    let is_candidate = NodeName::parse(path.name()).is_some_and(|name| name.kind() == Kind::LATCH);
    let text = String::from_utf8_lossy(data);
    if is_candidate || Identity::read(data).host().is_none() || text.contains(ASKED) {
        return data.to_vec();
    }
    let behind = BEHIND_THE_NOTE.iter().filter_map(|part| text.find(part)).min().unwrap_or(text.len());
    let (front, back) = text.split_at(behind);
    format!("{front} {ASKED}{back}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_a_note_of_the_holder_and_a_candidate_keeps_its_name() {
        let lock: ZnodePath = "/a/_c_x-lock-0000000001".parse().unwrap();
        for (data, expected) in [
            ("host=a pid=7", "host=a pid=7 (asked to release)"),
            ("host=a pid=7 nightly owner=b", "host=a pid=7 nightly (asked to release) owner=b"),
            ("host=a pid=7 holds=1,2 owner=b", "host=a pid=7 (asked to release) holds=1,2 owner=b"),
            ("host=a pid=7 (asked to release)", "host=a pid=7 (asked to release)"),
            ("10.0.0.7", "10.0.0.7"),
        ] {
            assert_eq!(asked(&lock, data.as_bytes()), expected.as_bytes());
        }
        let candidate: ZnodePath = "/a/_c_x-latch-0000000001".parse().unwrap();
        assert_eq!(asked(&candidate, b"host=a pid=7"), b"host=a pid=7");
    }
}
