use crate::tree::Identity;

/// One connection to one server of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

#[derive(Debug, Clone)]
pub(super) struct Client {
    /// Which server it is connected to.
    pub(super) server: usize,
    pub(super) identities: Vec<Identity>,
    /// Its session, once it has one.
    pub(super) session: Option<i64>,
    pub(super) timeout: i32,
    /// Requests of it that wait for a cut-off server to be connected again.
    pub(super) waiting: usize,
}

impl Client {
    pub(super) fn new(server: usize, address: &str) -> Self {
        let identities = vec![Identity::new("ip", address)];
        Self { server, identities, session: None, timeout: 0, waiting: 0 }
    }
}
