use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;

use lockkeeper::value::{CompareAndSet, SharedData};
use lockkeeper::{ConnectionManager, Counter, SharedCount, SharedValue};
use parking_lot::Mutex;

type Open<T> = Mutex<HashMap<String, SharedValue<T>>>;

/// The shared values of a process, by their paths. They stay open, as those of the Java driver do.
pub(crate) struct Values {
    manager: ConnectionManager,
    counts: Open<i32>,
    texts: Open<String>,
    counters: Mutex<HashMap<String, Counter>>,
}

impl Values {
    pub(crate) fn new(manager: &ConnectionManager) -> Self {
        Self {
            manager: manager.clone(),
            counts: Mutex::default(),
            texts: Mutex::default(),
            counters: Mutex::default(),
        }
    }

    /// Adds one to a count, in one try. Returns what it was, and whether the try succeeded.
    pub(crate) async fn try_count(&self, path: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        let count: SharedCount = open(&self.counts, &self.manager, path)?;
        attempt(&count, |before| before + 1).await
    }

    /// Adds to a counter. Returns the last sum.
    pub(crate) async fn add(
        &self,
        path: &str,
        number: i64,
        times: usize,
    ) -> Result<String, Box<dyn Error + Send + Sync>> {
        let counter = self.counter(path)?;
        let mut sum = counter.get().await?;
        for _ in 0..times {
            sum = counter.add(number).await?;
        }
        Ok(sum.to_string())
    }

    fn counter(&self, path: &str) -> Result<Counter, lockkeeper::Error> {
        let mut counters = self.counters.lock();
        if let Some(counter) = counters.get(path) {
            return Ok(counter.clone());
        }
        let counter = Counter::new(&self.manager, path)?;
        counters.insert(path.to_owned(), counter.clone());
        Ok(counter)
    }

    /// Appends to a text, in one try. Returns the same.
    pub(crate) async fn try_value(
        &self,
        path: &str,
        more: &str,
    ) -> Result<String, Box<dyn Error + Send + Sync>> {
        let text = open(&self.texts, &self.manager, path)?;
        attempt(&text, |before| format!("{before}{more}")).await
    }
}

fn open<T>(
    open: &Open<T>,
    manager: &ConnectionManager,
    path: &str,
) -> Result<SharedValue<T>, lockkeeper::Error>
where
    T: SharedData + Clone + Default + Send + Sync + 'static,
{
    let mut open = open.lock();
    if let Some(value) = open.get(path) {
        return Ok(value.clone());
    }
    let value = SharedValue::new(manager, path, T::default())?;
    open.insert(path.to_owned(), value.clone());
    Ok(value)
}

async fn attempt<T>(
    value: &SharedValue<T>,
    change: impl FnOnce(&T) -> T,
) -> Result<String, Box<dyn Error + Send + Sync>>
where
    T: SharedData + Clone + Display + Send + Sync + 'static,
{
    let before = value.get().await?;
    let after = change(&before.value);
    Ok(match value.compare_and_set(before.revision, after).await? {
        CompareAndSet::Set(_) => format!("{} true", before.value),
        CompareAndSet::Differs(found) => format!("{} false", found.value),
    })
}
