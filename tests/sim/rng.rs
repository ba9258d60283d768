/// All chance of a run, from its seed: SplitMix64, so that a seed means the same in every release of every
/// crate.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1));
        rng.throw();
        rng
    }

    /// A new generator for a user whose draws must not depend on the number of draws of others.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.throw())
    }

    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.throw() % (high.max(low) - low + 1)
    }

    /// True with a probability of `chance` in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.throw() % 100 < chance
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.throw() % length.max(1) as u64).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}
