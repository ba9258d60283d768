use std::time::Duration;

use super::write::CreateMode;
use crate::config::acl::Acl;
use crate::error::ConfigError;

/// The longest time to live that a server stores: 40 bits of milliseconds, some 34 years.
const TIME_TO_LIVE_MAX: Duration = Duration::from_millis((1 << 40) - 1);

/// How a node is created, for [`Znodes::create_with`](crate::Znodes::create_with). A [`CreateMode`] alone
/// becomes one by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    pub(crate) mode: CreateMode,
    pub(crate) acl: Option<Acl>,
    pub(crate) time_to_live: Option<Duration>,
}

impl CreateOptions {
    /// A node of this mode.
    #[must_use]
    pub fn new(mode: CreateMode) -> Self {
        Self { mode, acl: None, time_to_live: None }
    }

    /// The access list of the node. Default: that of the manager, which missing parents get in any case.
    #[must_use]
    pub fn acl(self, acl: Acl) -> Self {
        Self { acl: Some(acl), ..self }
    }

    /// The server deletes the node when it has had no children and was not written for this long, of one
    /// millisecond to 34 years. For a persistent node, on servers with
    /// `zookeeper.extendedTypesEnabled=true`. Default: none.
    #[must_use]
    pub fn time_to_live(self, time_to_live: Duration) -> Self {
        Self { time_to_live: Some(time_to_live), ..self }
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> CreateMode {
        self.mode
    }

    /// Refuses what no server accepts.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Some(time) = self.time_to_live else { return Ok(()) };
        let is_persistent = matches!(self.mode, CreateMode::Persistent | CreateMode::PersistentSequential);
        let advice = match is_persistent {
            false => "give a time to live to persistent nodes alone",
            true if time.as_millis() == 0 => "give the node a millisecond or more",
            true if time > TIME_TO_LIVE_MAX => "give the node 34 years or less",
            true => return Ok(()),
        };
        Err(ConfigError::Setting { name: "time_to_live", value: format!("{time:?}"), advice })
    }
}

impl From<CreateMode> for CreateOptions {
    fn from(mode: CreateMode) -> Self {
        Self::new(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_persistent_node_has_a_time_to_live_that_a_server_can_store() {
        let with = |mode, time| CreateOptions::new(mode).time_to_live(time).check().is_ok();
        for mode in [CreateMode::Persistent, CreateMode::PersistentSequential] {
            assert!(with(mode, Duration::from_millis(1)) && with(mode, TIME_TO_LIVE_MAX));
            assert!(!with(mode, Duration::from_micros(999)));
            assert!(!with(mode, TIME_TO_LIVE_MAX + Duration::from_millis(1)) && !with(mode, Duration::MAX));
        }
        for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential, CreateMode::Container] {
            assert!(!with(mode, Duration::from_secs(1)), "{mode:?}");
            assert!(CreateOptions::new(mode).check().is_ok());
        }
    }
}
