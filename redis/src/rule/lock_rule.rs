/// A lock with its holders and its queue. A mutex has one permit. All times are milliseconds of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRule {
    limit: u64,
    holders: Vec<Holder>,
    queue: Vec<Waiter>,
    tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    id: u64,
    permits: u64,
    expires: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiter {
    id: u64,
    permits: u64,
    lease: u64,
    expires: u64,
}

/// A waiter that was granted by the call of another contender. Its manager gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The waiter.
    pub id: u64,
    /// The fencing token.
    pub token: u64,
}

/// The answer to an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The contender holds the lock.
    Held {
        /// The fencing token.
        token: u64,
    },
    /// Others are ahead, or hold too much.
    Waits {
        /// The number of waiters ahead.
        ahead: usize,
        /// The newest token. A grant that is not newer is not of this wait: its lease may be over.
        newest: u64,
    },
}

impl LockRule {
    /// A free lock with this number of permits.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Takes the lock for `lease`, or queues for it if `waits`. Again by a waiter, it keeps the position.
    pub fn acquire(
        &mut self,
        at: u64,
        id: u64,
        permits: u64,
        lease: u64,
        waits: bool,
    ) -> (Answer, Vec<Grant>) {
        self.drop_expired(at);
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.id == id) {
            holder.expires = at.saturating_add(lease);
            return (Answer::Held { token: self.next_token() }, Vec::new());
        }
        let was_empty = self.queue.is_empty();
        if was_empty && self.has_room(permits) {
            return (Answer::Held { token: self.take(at, id, permits, lease) }, Vec::new());
        }
        if waits {
            let expires = at.saturating_add(lease);
            match self.queue.iter_mut().find(|waiter| waiter.id == id) {
                Some(waiter) => waiter.expires = expires,
                None => self.queue.push(Waiter { id, permits, lease, expires }),
            }
        }
        let grants = self.settle(at);
        if let Some(own) = grants.iter().find(|grant| grant.id == id) {
            return (Answer::Held { token: own.token }, grants);
        }
        if !waits && self.queue.is_empty() && self.has_room(permits) {
            return (Answer::Held { token: self.take(at, id, permits, lease) }, grants);
        }
        let ahead = self.queue.iter().position(|waiter| waiter.id == id);
        (Answer::Waits { ahead: ahead.unwrap_or(self.queue.len()), newest: self.tokens }, grants)
    }

    /// Gives up what the id holds, or its position. Returns whether it held anything.
    pub fn release(&mut self, at: u64, id: u64) -> (bool, Vec<Grant>) {
        self.drop_expired(at);
        let held = self.is_held_by(id);
        self.holders.retain(|holder| holder.id != id);
        self.queue.retain(|waiter| waiter.id != id);
        (held, self.settle(at))
    }

    /// Extends the lease of a holder. Returns whether the id still holds anything.
    pub fn extend(&mut self, at: u64, id: u64, lease: u64) -> (bool, Vec<Grant>) {
        self.drop_expired(at);
        match self.holders.iter_mut().find(|holder| holder.id == id) {
            Some(holder) => {
                holder.expires = at.saturating_add(lease);
                (true, Vec::new())
            }
            None => (false, self.settle(at)),
        }
    }

    /// Whether the id holds the lock, if its lease has not ended.
    #[must_use]
    pub fn is_held_by(&self, id: u64) -> bool {
        self.holders.iter().any(|holder| holder.id == id)
    }

    /// The sum of the permits in use.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.holders.iter().map(|holder| holder.permits).sum()
    }

    /// The waiters that are alive, in order.
    pub fn waiting(&self, at: u64) -> impl Iterator<Item = u64> {
        self.queue.iter().filter(move |waiter| waiter.expires > at).map(|waiter| waiter.id)
    }

    fn has_room(&self, permits: u64) -> bool {
        self.taken().saturating_add(permits) <= self.limit
    }

    fn drop_expired(&mut self, at: u64) {
        self.holders.retain(|holder| holder.expires > at);
    }

    /// Grants the heads of the queue, as long as there is room. Waiters that are not alive leave.
    fn settle(&mut self, at: u64) -> Vec<Grant> {
        let mut grants = Vec::new();
        while let Some(head) = self.queue.first().cloned() {
            if head.expires > at && !self.has_room(head.permits) {
                break;
            }
            self.queue.remove(0);
            if head.expires > at {
                let token = self.take(at, head.id, head.permits, head.lease);
                grants.push(Grant { id: head.id, token });
            }
        }
        grants
    }

    fn take(&mut self, at: u64, id: u64, permits: u64, lease: u64) -> u64 {
        self.holders.push(Holder { id, permits, expires: at.saturating_add(lease) });
        self.next_token()
    }

    fn next_token(&mut self) -> u64 {
        self.tokens = self.tokens.saturating_add(1);
        self.tokens
    }
}
