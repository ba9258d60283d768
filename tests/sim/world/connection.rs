/// One connection, and its state at both ends.
pub(super) struct Connection {
    pub(super) session: usize,
    pub(super) server: usize,
    /// Messages do not overtake each other.
    pub(super) to_server_from: u64,
    pub(super) to_client_from: u64,
    /// The server's messages get lost.
    pub(super) loses_replies: bool,
    /// Whether the server still has it, and the client.
    pub(super) at_server: bool,
    pub(super) at_client: bool,
}
