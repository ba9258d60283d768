use std::fmt::{self, Debug, Formatter};

use lockkeeper::{ConnectionManager, Owner};

use crate::SharedLocks;

/// What an acquire needs: the path of the lock, the client, and what is left to chance.
pub struct Target {
    /// The client.
    pub manager: ConnectionManager,
    /// The lock.
    pub path: String,
    /// The owner, for recipes that have owners. Without one, a recipe that can do without it does.
    pub owner: Option<Owner>,
    /// What the tasks of one process share.
    pub shared: SharedLocks,
    draws: Option<Draws>,
}

/// Draws a number below another one.
type Draws = Box<dyn FnMut(usize) -> usize + Send>;

impl Target {
    /// A lock, with nothing left to chance.
    pub fn new(manager: &ConnectionManager, path: &str) -> Self {
        Self {
            manager: manager.clone(),
            path: path.to_owned(),
            owner: None,
            shared: SharedLocks::default(),
            draws: None,
        }
    }

    /// Leaves to chance what an adapter [draws](Self::draw).
    #[must_use]
    pub fn with_draws(self, draws: impl FnMut(usize) -> usize + Send + 'static) -> Self {
        Self { draws: Some(Box::new(draws)), ..self }
    }

    /// A count from one to `most`; without chance, `otherwise`.
    pub fn draw_count(&mut self, most: u32, otherwise: u32) -> u32 {
        let below = |count: u32| count.try_into().unwrap_or(usize::MAX);
        let drawn = self.draw(below(most), below(otherwise.saturating_sub(1)));
        u32::try_from(drawn).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A number below `count`; without chance, `otherwise`.
    pub fn draw(&mut self, count: usize, otherwise: usize) -> usize {
        self.draws.as_mut().map_or(otherwise, |draws| draws(count))
    }
}

impl Debug for Target {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Target").field(&self.path).finish()
    }
}
