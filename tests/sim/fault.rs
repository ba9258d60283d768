/// What can strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A connection breaks; what is on its way may be lost or not.
    Cut,
    /// What a server answers is lost from here on, until the client gives the connection up.
    LoseReplies,
    /// A process reaches no server for a while.
    Partition,
    /// A server hangs up on everyone and is away for a while.
    Restart,
    /// A server is cut off from the others without noticing.
    Stale,
    /// The same, and it believes it leads.
    Depose,
    /// A process stands still, and only its clock runs.
    Freeze,
    /// The network is slow for a while.
    Slow,
    /// Empty directories are removed.
    Reap,
    /// A server silently gives a client that comes back another session, as ClickHouse Keeper does.
    Swap,
    /// Somebody deletes a contender's node by hand.
    DeleteByHand,
    /// Somebody writes into a contender's node by hand, and deletes it a little later.
    Meddle,
    /// Somebody deletes all contenders of a lock by hand, the last one first; while a process reaches nobody,
    /// or not.
    Clear,
    /// Numbers run on past the end of their range, as while creates are under way, or no longer.
    CountAhead,
    /// A process reaches no server for a long while, from the moment on that a write of its was answered: nothing is
    /// heard of it after what its lease counts from.
    Strand,
    /// A process is gone, and closes nothing.
    Crash,
    /// A transaction that makes something is held on its way and its connection breaks; it is applied right behind a later
    /// look at the same directory, whose answer is late.
    HoldTransaction,
    /// Curator's client makes a lease of a semaphore out of turn: its place in line went with its session.
    CuratorsLease,
}

/// What strikes in most plans.
pub(crate) const COMMON: [Fault; 9] = [
    Fault::Cut,
    Fault::LoseReplies,
    Fault::Partition,
    Fault::Restart,
    Fault::Stale,
    Fault::Depose,
    Fault::Freeze,
    Fault::Slow,
    Fault::Reap,
];
