use crate::rng::Rng;

/// A fault of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A connection breaks; messages in flight may be lost.
    Cut,
    /// The answers of a server are lost until the client abandons the connection.
    LoseReplies,
    /// A process reaches no server for a while.
    Partition,
    /// A server closes all connections and is down for a while.
    Restart,
    /// A server is cut off from the others without noticing.
    Stale,
    /// The same, and it believes it leads.
    Depose,
    /// A process is paused, and only its clock runs.
    Freeze,
    /// The network is slow for a while.
    Slow,
    /// Empty directories are removed.
    Reap,
    /// A server silently gives a reconnecting client another session, as ClickHouse Keeper does.
    Swap,
    /// A contender's node is deleted by hand.
    DeleteByHand,
    /// A contender's node is written by hand, and deleted a little later.
    Meddle,
    /// All contenders of a lock are deleted by hand, the last one first; with or without a process that
    /// reaches no server meanwhile.
    Clear,
    /// Sequence numbers continue past the end of their range, as while creates are in flight, or stop to.
    CountAhead,
    /// A process reaches no server for a long while, from the answer to one of its writes on: the servers
    /// hear nothing from it after the instant that its lease counts from.
    Strand,
    /// The counter is deleted by hand with its writer nodes, often while the answers of a server are lost.
    ClearCounter,
    /// The next change of the counter is refused for want of the right.
    RefuseChange,
    /// A process crashes, and closes nothing.
    Crash,
    /// A transaction with creates is held on its way and its connection breaks; it is applied right after a
    /// later list of the same directory, whose answer is late.
    HoldTransaction,
    /// A tool that restores trees leaves a persistent node with the name of a contender or a member: beside
    /// it, or once it is gone.
    Restore,
    /// A Curator client creates a lease of a semaphore without a node in the queue, which ended with its
    /// session.
    CuratorsLease,
}

/// The faults of most plans.
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

/// Faults of a plan that counts.
pub(crate) fn of_counter(rng: &mut Rng) -> Vec<Fault> {
    let mut faults = Vec::new();
    if rng.percent(50) {
        faults.extend([Fault::ClearCounter; 3]);
    }
    if rng.percent(50) {
        faults.push(Fault::RefuseChange);
    }
    faults
}
