/// What is known of where a node came from.
///
/// Whom a connection belongs to is shown by a node of ours that is listed among its own, and by the owner of
/// a node that it made. Neither shows anything the other way round: what an old connection made may be ours
/// or not, and whoever owns a node, any connection finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The connection there was just before the create was sent, if its answer came. It may have been sent
    /// over a later one, which is not the present one then, either.
    pub(crate) created_on: Option<u64>,
    /// The owner was compared with the session.
    pub(crate) is_owner_seen: bool,
}

impl Origin {
    /// It was looked for and found, with this session as its owner.
    pub(crate) const FOUND: Self = Self { created_on: None, is_owner_seen: true };
}
