/// One connection, and what stands for it at either end.
pub(super) struct Connection {
    pub(super) session: usize,
    pub(super) server: usize,
    /// Messages do not overtake each other.
    pub(super) to_server_from: u64,
    pub(super) to_client_from: u64,
    /// What the server says gets lost.
    pub(super) loses_replies: bool,
    /// Whether the server still has it, and the client.
    pub(super) at_server: bool,
    pub(super) at_client: bool,
}
