//! The order in which members are taken, and the members that are named twice: pure.

use std::sync::Arc;

use lockkeeper_core::ConfigError;

use crate::lock::Recipe;

/// Sorts members by their paths, with each path once.
///
/// Two members with the same request become one. So do two readers, and a writer and a reader of the same
/// owner. Permits are added up. Any other pair on one path would wait for each other, and is refused.
pub(super) fn in_order(mut members: Vec<Arc<dyn Recipe>>) -> Result<Vec<Arc<dyn Recipe>>, ConfigError> {
    members.sort_by(|one, other| one.path().cmp(other.path()));
    let mut planned: Vec<Arc<dyn Recipe>> = Vec::new();
    for member in members {
        let Some(share) = member.request() else {
            return Err(refused(
                &*member,
                "a multi-lock, an election or a lock without an owner is no member; \
                 name the locks themselves",
            ));
        };
        match planned.last_mut().filter(|last| last.path() == member.path()) {
            None => planned.push(member),
            Some(last) => match last.merged_with(share) {
                Some(merged) => *last = merged,
                None => {
                    return Err(refused(
                        &*member,
                        "a path can be one kind of lock, for one owner, in one multi-lock",
                    ));
                }
            },
        }
    }
    Ok(planned)
}

fn refused(member: &dyn Recipe, advice: &'static str) -> ConfigError {
    ConfigError::Setting { name: "lock", value: member.path().to_string(), advice }
}
