//! Surveys and the diagnosis of deadlocks, for threads.

use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{CannotBlock, ConnectionManager, Deadlocks, Inspection, Mutex, Survey};
use lockkeeper_tests::Timing;

use crate::support::{aside, connect, server};

/// Waits until so many contenders wait below `/locks`.
fn waiting(manager: &ConnectionManager, count: usize) -> Vec<lockkeeper::Inspection> {
    let look = async || {
        let survey = lockkeeper::Survey::below(manager.as_async(), "/locks").await.ok()?;
        let waiting: usize = survey.locks().iter().map(|lock| lock.waiters().count()).sum();
        (waiting == count).then(|| survey.locks().to_vec())
    };
    manager.block_on(lockkeeper_tests::eventually("the waits", Timing::settle(), look)).unwrap().unwrap()
}

#[test]
fn a_thread_reads_the_locks_and_finds_threads_that_wait_for_each_other() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let mutex = |at: usize, path: &str| Mutex::new(&managers[at], path).unwrap();
    let (first, second) = (mutex(0, "/locks/a").acquire().unwrap(), mutex(1, "/locks/b").acquire().unwrap());
    thread::scope(|scope| {
        let waiters = [mutex(0, "/locks/b"), mutex(1, "/locks/a")];
        let waiters = waiters.map(|mutex| scope.spawn(move || mutex.acquire().map(drop)));
        let locks = waiting(&managers[0], 2);
        let survey = Survey::below_with(&managers[0], "/locks", 100).unwrap();
        assert_eq!(survey.locks().len(), locks.len());
        let lock = Inspection::of_path(&managers[0], "/locks/a").unwrap().unwrap();
        assert_eq!((lock.holders().count(), lock.waiters().count()), (1, 1));
        // The threads name no owner.
        let deadlocks = Deadlocks::among(&managers[0], survey.locks(), Duration::ZERO).unwrap();
        assert_eq!((deadlocks.all().len(), deadlocks.is_any_found()), (1, false), "{deadlocks}");
        first.release().unwrap();
        second.release().unwrap();
        for waiter in waiters {
            waiter.join().unwrap().unwrap();
        }
    });
}

#[test]
fn a_survey_within_a_task_is_refused() {
    let server = server();
    let manager = connect(&server);
    aside(async {
        let refused = [
            Survey::below(&manager, "/").err(),
            Inspection::of_path(&manager, "/a").err(),
            Deadlocks::among(&manager, &[], Duration::ZERO).err(),
        ];
        for refused in refused {
            assert!(
                refused.as_ref().is_some_and(|error| error.recipe::<CannotBlock>().is_some()),
                "{refused:?}"
            );
        }
    });
}
