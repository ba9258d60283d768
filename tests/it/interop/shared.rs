//! One shared value of Curator's own classes and of ours, while processes of both are killed.
//!
//! A process changes the value by one compare-and-set at a time: it adds one to a `SharedCount`, or appends a
//! text of its own to a `SharedValue`. So the last value tells the order of all changes that were committed.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::SharedValue;
use lockkeeper::value::SharedData;
use lockkeeper::view::ViewChanges;
use lockkeeper_tests::{Ensemble, RawClient, Timing, eventually, left_out};
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;

use super::fixture::{Failure, Outcome, chosen_seed};
use super::peer_slot::{Language, PeerSlot};
use crate::support::connect;

/// The test does not wait for the end of a session: long, so that a busy machine does not end one.
const SESSION: Duration = Duration::from_secs(10);
/// The threads of each process, and how often each of them changes the value.
const THREADS: usize = 2;
const CHANGES: usize = 12;
/// The kills of each language.
const KILLS: usize = 3;

/// Curator's class, and ours with the same bytes.
#[derive(Clone, Copy, Debug)]
enum Class {
    Count,
    Value,
}

/// What one compare-and-set was to do, and what is known of it.
#[derive(Clone, Debug)]
struct Attempt {
    /// What it appended to a `SharedValue`.
    text: String,
    begun: usize,
    ended: usize,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// It changed this value.
    Set(String),
    /// It found this value, and another revision than it expected.
    NotSet(String),
    /// Curator's class did not change this value, or did: it also returns `false` if an answer was lost.
    Doubtful(String),
    /// Its process was killed.
    Unknown,
}

#[derive(Default)]
struct History {
    clock: AtomicUsize,
    attempts: Mutex<Vec<Attempt>>,
}

impl Class {
    fn path(self) -> &'static str {
        match self {
            Self::Count => "/interop/shared/count",
            Self::Value => "/interop/shared/value",
        }
    }

    fn request(self, thread: &str, text: &str) -> String {
        match self {
            Self::Count => format!("trycount {thread} {}", self.path()),
            Self::Value => format!("tryvalue {thread} {} {text}", self.path()),
        }
    }

    /// Asks Curator's class for its value, which it has from its watch.
    fn question(self) -> String {
        match self {
            Self::Count => format!("counted reader {}", self.path()),
            Self::Value => format!("valued reader {}", self.path()),
        }
    }

    /// The values that there were one after the other, the first one included.
    fn values_until(self, last: &str) -> Result<Vec<String>, Failure> {
        Ok(match self {
            Self::Count => (0..=last.parse::<i32>()?).map(|number| number.to_string()).collect(),
            Self::Value => {
                let ends = last.match_indices(',').map(|(comma, _)| comma + 1);
                std::iter::once(0).chain(ends).map(|end| last[..end].to_owned()).collect()
            }
        })
    }
}

impl Attempt {
    /// Checks that the value which it found instead of the expected one was there at an instant between its
    /// beginning and its end. `set` has the confirmed changes, each with the place of the value before it.
    fn check_found(&self, set: &[(usize, &Self)], at: impl Fn(&String) -> Option<usize>) {
        let How::NotSet(found) = &self.how else { return };
        let found = at(found).unwrap_or_else(|| panic!("there was no such value: {self:?}"));
        for (place, change) in set {
            let is_possible =
                if *place < found { change.begun < self.ended } else { change.ended > self.begun };
            assert!(is_possible, "{self:?} found a value too early or too late, by {change:?}");
        }
    }
}

impl History {
    fn now(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, text: String, begun: usize, how: How) {
        self.attempts.lock().push(Attempt { text, begun, ended: self.now(), how });
    }

    /// Checks that `values`, one after the other, are the work of the attempts, each of which counts once or,
    /// where that is possible, never; and that an attempt which ended before another one began comes before
    /// it.
    fn check(&self, class: Class, values: &[String]) {
        let attempts = self.attempts.lock();
        let at = |value: &String| values.iter().position(|other| other == value);
        let mut set: Vec<(usize, &Attempt)> = Vec::new();
        for attempt in attempts.iter() {
            if let How::Set(before) = &attempt.how {
                let place = at(before).unwrap_or_else(|| panic!("lost: {attempt:?} in {values:?}"));
                set.push((place, attempt));
            }
        }
        set.sort_by_key(|(place, _)| *place);
        assert!(set.is_sorted_by(|one, next| one.0 < next.0), "two changes of one value: {set:?}");
        for (number, (_, later)) in set.iter().enumerate() {
            let earlier = set[..number].iter().all(|(_, earlier)| earlier.begun < later.ended);
            assert!(earlier, "{later:?} ended before an earlier change began: {set:?}");
        }
        attempts.iter().for_each(|attempt| attempt.check_found(&set, at));
        let mut open: Vec<&Attempt> = attempts
            .iter()
            .filter(|attempt| matches!(attempt.how, How::Doubtful(_) | How::Unknown))
            .collect();
        let mut set = set.into_iter().peekable();
        for (place, pair) in values.windows(2).enumerate() {
            let text = &pair[1][pair[0].len().min(pair[1].len())..];
            let is_it = |attempt: &Attempt| matches!(class, Class::Count) || attempt.text == text;
            if let Some((_, attempt)) = set.next_if(|(at, _)| *at == place) {
                assert!(
                    is_it(attempt),
                    "{text} at {place} is not the change that was confirmed: {attempt:?}"
                );
                continue;
            }
            let fits = |attempt: &&Attempt| match &attempt.how {
                How::Doubtful(before) => *before == pair[0],
                _ => is_it(attempt),
            };
            let found = open.iter().position(fits);
            open.swap_remove(found.unwrap_or_else(|| panic!("nobody's change at {place}: {attempts:#?}")));
        }
    }
}

/// Changes the value until `CHANGES` changes are confirmed.
async fn change(
    class: Class,
    slot: Arc<PeerSlot>,
    history: Arc<History>,
    thread: String,
    mut client: RawClient,
    mut rng: StdRng,
) -> Outcome {
    let (mut confirmed, mut number) = (0, 0);
    while confirmed < CHANGES {
        number += 1;
        let text = format!("{thread}-{number},");
        let request = class.request(&thread, &text);
        let begun = history.now();
        let how = match slot.ask(&request, &mut client, &mut rng).await? {
            Some(answer) => match answer.rsplit_once(' ').ok_or("no answer")? {
                (before, "true") => How::Set(before.to_owned()),
                (before, _) if slot.language() == Language::Java => How::Doubtful(before.to_owned()),
                (found, _) => How::NotSet(found.to_owned()),
            },
            None => How::Unknown,
        };
        confirmed += usize::from(matches!(how, How::Set(_)));
        history.record(text, begun, how);
    }
    Ok(())
}

/// The values that a view shows, until it ends.
async fn follow<T: Display>(mut changes: ViewChanges<T>) -> Result<Vec<String>, Failure> {
    let mut shown = Vec::new();
    while let Some(difference) = changes.next().await {
        if !difference.changes().is_empty() {
            let node = difference.snapshot().root().ok_or("the node was deleted")?;
            shown.push(node.value()?.to_string());
        }
    }
    Ok(shown)
}

async fn share<T>(class: Class) -> Outcome
where
    T: SharedData + Display + Default + Clone + Send + Sync + 'static,
{
    if left_out() {
        return Ok(());
    }
    let seed = chosen_seed();
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let manager = connect(&servers).await;
    let value = SharedValue::new(&manager, class.path(), T::default())?;
    let view = value.view()?;
    let shown = tokio::spawn(follow(view.changes()));

    let history = Arc::new(History::default());
    let (mut tasks, mut slots) = (JoinSet::new(), Vec::new());
    for language in [Language::Java, Language::Rust] {
        let slot = Arc::new(PeerSlot::start(language, &servers, SESSION, KILLS).await?);
        if language == Language::Java {
            // Curator's class creates the node with the first value, so that each change is a write.
            slot.peer().0.ask(&class.question()).await?;
        }
        for number in 0..THREADS {
            let (slot, history) = (Arc::clone(&slot), Arc::clone(&history));
            let rng = StdRng::seed_from_u64(seed ^ tasks.len() as u64);
            let thread = format!("{language:?}{number}");
            tasks.spawn(change(class, slot, history, thread, ensemble.raw().await?, rng));
        }
        slots.push(slot);
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let killed: usize = slots.iter().map(|slot| KILLS - slot.kills_left()).sum();
    assert!(killed > 0, "no process was killed");

    let last = value.get().await?.value.to_string();
    let values = class.values_until(&last)?;
    history.check(class, &values);
    let (_, stat) = ensemble.raw().await?.data(class.path()).await?;
    assert_eq!(stat.version as usize, values.len() - 1, "each change is one write");

    let (java, _) = slots[0].peer();
    eventually("Curator's class shows the last value", Timing::settle(), async || {
        (java.ask(&class.question()).await.ok()? == last).then_some(())
    })
    .await?;
    view.sync().await?;
    drop(view);
    let shown = shown.await??;
    assert_eq!(shown.last(), Some(&last));
    let mut rest = values.iter();
    assert!(
        shown.iter().all(|one| rest.any(|other| other == one)),
        "{shown:?} is not in the order of {values:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_count_of_java_and_rust_loses_no_change_while_both_are_killed() -> Outcome {
    share::<i32>(Class::Count).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_value_of_java_and_rust_has_one_history_while_both_are_killed() -> Outcome {
    share::<String>(Class::Value).await
}
