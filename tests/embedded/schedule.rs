//! Slots: who does them, how often they are recorded, and what is missed.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use lockkeeper::error::{ConfigError, ScheduleError};
use lockkeeper::manager::Transition;
use lockkeeper::schedule::{Missed, Slot};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Schedule};
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_testserver::{Fault, Op, When};

use crate::cancellation::dropped_anywhere;
use crate::fixture::WRITTEN;
use crate::limit::{gives_up, within};
use crate::server_fixture::{LOCK, ServerFixture, builder, children, queue_nodes};

/// Far longer than a test takes: a slot begins when the clock of the servers is advanced.
const INTERVAL: Duration = Duration::from_secs(20);

/// So long that only the tested events end a session, and no advance of the clock.
const SESSION: Duration = Duration::from_secs(60);

const SLOTS: &str = "/locks/lock/slots";

/// A server whose schedule has begun, and two clients.
struct ScheduleFixture {
    server_fixture: ServerFixture,
    here: Schedule,
    there: Schedule,
    /// The session of `there`.
    session: i64,
    /// A slot begins just before the test, so that no other one begins by itself during the test.
    offset: Duration,
}

impl ScheduleFixture {
    async fn new() -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        server_fixture.rival.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
        let before = server_fixture.server.sessions();
        let there = client(&server_fixture).await;
        let is_new = |session: &i64| !before.contains(session);
        let session = server_fixture.server.sessions().into_iter().find(is_new).unwrap();
        // By the server's clock: this machine's may be set meanwhile.
        let (_, made) = server_fixture.rival.znodes().read(WRITTEN).await.unwrap().unwrap();
        let offset = Duration::from_millis(u64::try_from(made.mtime).unwrap() - 1);
        let (here, there) = (schedule(&client(&server_fixture).await, offset), schedule(&there, offset));
        assert!(here.try_due().await.unwrap().is_none(), "a slot before the schedule began");
        Self { server_fixture, here, there, session, offset }
    }

    async fn advance(&self, slots: u32) {
        for _ in 0..slots {
            self.server_fixture.server.advance_clock(INTERVAL);
            // The sessions live on.
            self.server_fixture.round_trip_of_rival().await.unwrap();
            for schedule in [&self.here, &self.there] {
                schedule.inspect().await.unwrap();
            }
        }
    }

    /// The slots that were done.
    fn done(&self) -> usize {
        self.server_fixture.server.inspect(|machine| {
            let names = children(machine, SLOTS);
            let data = |name: &String| machine.tree().node(&format!("{SLOTS}/{name}"))?.data.clone();
            names.iter().filter_map(data).filter(|data| data.starts_with(b"done ")).count()
        })
    }

    fn written(&self) -> usize {
        self.server_fixture.server.inspect(|machine| children(machine, WRITTEN).len())
    }
}

async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

fn schedule(manager: &ConnectionManager, offset: Duration) -> Schedule {
    Schedule::new(manager, LOCK, INTERVAL).unwrap().with_offset(offset).with_missed(Missed::CatchUp)
}

async fn due(schedule: &Schedule) -> Slot {
    within("a slot", schedule.due()).await.unwrap().unwrap()
}

/// Ends the slot with a write.
async fn write(slot: Slot) -> Result<(), Error> {
    slot.done_with("written", |txn| txn.create_sequential(format!("{WRITTEN}/w-"), b"".to_vec())).await
}

#[tokio::test]
async fn each_slot_is_done_once_by_one_of_several_processes() {
    let server_fixture = ServerFixture::start().await.unwrap();
    server_fixture.rival.znodes().create(WRITTEN, b"", CreateMode::Persistent).await.unwrap();
    let interval = Duration::from_millis(20);
    let (each, mut tasks) = (8, tokio::task::JoinSet::new());
    for number in 0..3 {
        let schedule = Schedule::new(&client(&server_fixture).await, LOCK, interval).unwrap();
        let schedule = schedule.with_missed(Missed::CatchUp).with_node_data(format!("process {number}"));
        tasks.spawn(async move {
            let mut begins = Vec::new();
            for _ in 0..each {
                let slot = due(&schedule).await;
                assert!(slot.is_valid());
                begins.push(slot.begins());
                write(slot).await.unwrap();
            }
            begins
        });
    }
    let begins: Vec<SystemTime> = tasks.join_all().await.into_iter().flatten().collect();
    let slots: BTreeSet<SystemTime> = begins.iter().copied().collect();
    assert_eq!((slots.len(), begins.len()), (3 * each, 3 * each), "a slot was due twice");
    let slots: Vec<SystemTime> = slots.into_iter().collect();
    for pair in slots.windows(2) {
        assert_eq!(pair[1].duration_since(pair[0]).unwrap(), interval, "a slot was left out");
    }
    let (written, kept) = server_fixture
        .server
        .inspect(|machine| (children(machine, WRITTEN).len(), children(machine, SLOTS).len()));
    assert_eq!(written, 3 * each);
    // Old records are deleted before a wait, or when there are too many. The begin of the schedule has one.
    assert!(kept <= 3 * each + 1 && kept >= 10, "{kept} records");

    let seen = Schedule::new(&server_fixture.rival, LOCK, interval).unwrap().inspect().await.unwrap();
    let last = seen.last().unwrap();
    assert_eq!((Some(&last.slot()), last.result()), (slots.last(), &b"written"[..]));
    assert!(last.by().starts_with("process ") && last.done_at() >= last.slot(), "{last:?}");
    assert_eq!(seen.next(), last.slot().checked_add(interval));
    assert!(seen.to_string().contains("by process "), "{seen}");
}

#[tokio::test]
async fn old_records_are_deleted_while_the_next_slot_is_awaited() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(14).await;
    for _ in 0..14 {
        write(fixture.here.try_due().await.unwrap().unwrap()).await.unwrap();
    }
    let waiting = tokio::spawn({
        let here = fixture.here.clone();
        async move { here.due().await }
    });
    let ten = fixture.server_fixture.server.wait_until(|machine| children(machine, SLOTS).len() == 10);
    within("ten records", ten).await.unwrap();
    assert_eq!(fixture.here.inspect().await.unwrap().last().unwrap().result(), b"written");
    waiting.abort();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    // No delete is in flight any more.
    fixture.advance(1).await;
    assert!(fixture.here.try_due().await.unwrap().is_some());
    let kept = fixture.server_fixture.server.inspect(|machine| children(machine, SLOTS).len());
    assert_eq!(kept, 10);
}

#[tokio::test]
async fn old_records_are_deleted_although_no_process_ever_waits_for_a_slot() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(40).await;
    for _ in 0..40 {
        write(fixture.here.try_due().await.unwrap().unwrap()).await.unwrap();
        let kept = fixture.server_fixture.server.inspect(|machine| children(machine, SLOTS).len());
        assert!(kept <= 21, "{kept} records");
    }
    assert_eq!(fixture.written(), 40);
    assert_eq!(fixture.here.inspect().await.unwrap().last().unwrap().result(), b"written");
}

#[tokio::test]
async fn a_slot_that_is_given_up_is_due_again_for_the_next() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(1).await;
    let slot = due(&fixture.here).await;
    let begins = slot.begins();
    assert!(fixture.there.try_due().await.unwrap().is_none(), "two have one slot");
    let refused = fixture.there.due_timeout(Duration::ZERO).await.unwrap_err();
    assert!(refused.is_timeout(), "{refused}");
    drop(slot);
    let slot = due(&fixture.there).await;
    assert_eq!(slot.begins(), begins);
    slot.release().await.unwrap();
    let slot = due(&fixture.here).await;
    assert_eq!(slot.begins(), begins);
    slot.done(b"\x00\xff".to_vec()).await.unwrap();
    assert!(fixture.there.try_due().await.unwrap().is_none(), "a slot that was done is due again");
    assert_eq!(fixture.there.inspect().await.unwrap().last().unwrap().result(), b"\x00\xff");
}

#[tokio::test]
async fn the_record_of_a_slot_has_its_fencing_token_in_the_generation_of_its_manager() {
    let fixture = ScheduleFixture::new().await;
    for generation in [0, 2] {
        fixture.advance(1).await;
        let servers = fixture.server_fixture.server.connect_string();
        let client = builder(&servers).session_timeout(SESSION).token_generation(generation);
        let slot = due(&schedule(&client.connect().await.unwrap(), fixture.offset)).await;
        let token = slot.fencing_token();
        assert_eq!(token.generation(), generation);
        slot.done("").await.unwrap();
        assert_eq!(fixture.there.inspect().await.unwrap().last().unwrap().fencing_token(), token);
    }
}

#[tokio::test]
async fn a_slot_whose_session_ends_is_done_by_another_and_by_no_other() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(1).await;
    let slot = due(&fixture.there).await;
    let begins = slot.begins();
    assert!(fixture.server_fixture.server.expire(fixture.session));
    let again = due(&fixture.here).await;
    assert_eq!(again.begins(), begins);
    assert!(again.fencing_token() > slot.fencing_token());
    write(again).await.unwrap();
    within("the loss", slot.lost()).await.unwrap();
    let refused = write(slot).await.unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    assert_eq!((fixture.done(), fixture.written()), (1, 1));
    assert!(fixture.there.try_due().await.unwrap().is_none());
}

#[tokio::test]
async fn a_lost_answer_records_the_slot_and_its_writes_once() {
    for fault in [Fault::DropConnectionBefore, Fault::DropConnectionAfter] {
        let fixture = ScheduleFixture::new().await;
        fixture.advance(1).await;
        let slot = due(&fixture.there).await;
        let record = format!("{SLOTS}/*");
        let lost = fixture.server_fixture.server.fault(When::op(Op::Multi).path(&record), fault);
        within("the record", write(slot)).await.unwrap().unwrap();
        assert_eq!(lost.hits(), 1);
        assert_eq!((fixture.done(), fixture.written()), (1, 1), "{fault:?}");
        assert!(fixture.here.try_due().await.unwrap().is_none(), "{fault:?}");
    }
}

#[tokio::test]
async fn a_record_whose_session_ends_before_its_answer_counts_if_it_was_committed() {
    for (fault, is_committed) in [(Fault::DropReply, true), (Fault::DropConnectionBefore, false)] {
        let fixture = ScheduleFixture::new().await;
        fixture.advance(1).await;
        let slot = due(&fixture.there).await;
        let begins = slot.begins();
        let when = When::op(Op::Multi).path(&format!("{SLOTS}/*")).always();
        let lost = fixture.server_fixture.server.fault(when, fault);
        let done = tokio::spawn(write(slot));
        within("the transaction", lost.hit()).await.unwrap();
        assert!(fixture.server_fixture.server.expire(fixture.session));
        let error = within("the end", done).await.unwrap().unwrap().unwrap_err();
        assert!(error.outcome_unknown() || error.is_lost(), "{error}");
        drop(lost);
        let next = within("the next", fixture.here.try_due()).await.unwrap().unwrap();
        assert_eq!(next.map(|next| next.begins()), (!is_committed).then_some(begins), "{error}");
        assert_eq!(
            (fixture.done(), fixture.written()),
            (usize::from(is_committed), usize::from(is_committed))
        );
    }
}

#[tokio::test]
async fn no_slot_is_recorded_twice_though_its_lock_is_deleted_by_hand() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(1).await;
    let slot = due(&fixture.there).await;
    assert!(fixture.server_fixture.server.delete_node(slot.path()));
    write(due(&fixture.here).await).await.unwrap();
    let refused = write(slot).await.unwrap_err();
    // By then it may have noticed the delete.
    let is_by_another = matches!(refused.recipe(), Some(ScheduleError::DoneByAnother { .. }));
    assert!(is_by_another || refused.is_lost(), "{refused}");
    assert_eq!((fixture.done(), fixture.written()), (1, 1));
}

#[tokio::test]
async fn missed_slots_are_skipped_or_caught_up() {
    let fixture = ScheduleFixture::new().await;
    let skipping = fixture.here.clone().with_missed(Missed::Skip);
    fixture.advance(4).await;
    // All four, the oldest first.
    let slot = due(&fixture.there).await;
    let first = slot.begins();
    assert_eq!(slot.missed(), 3);
    slot.done("1").await.unwrap();
    // The newest of the three that are left.
    let slot = due(&skipping).await;
    assert_eq!((slot.begins(), slot.missed()), (first + INTERVAL * 3, 2));
    slot.done("4").await.unwrap();
    assert!(fixture.there.try_due().await.unwrap().is_none(), "a slot before one that was done");
    assert_eq!(fixture.done(), 2);
}

#[tokio::test]
async fn no_clock_of_a_client_decides_whether_a_slot_is_due() {
    let fixture = ScheduleFixture::new().await;
    // The clocks of the clients jump back, again and again: those of the servers are ahead of them.
    for jump in 1..=3 {
        fixture.advance(1).await;
        let slot = due(&fixture.here).await;
        assert!(slot.begins() > SystemTime::now(), "jump {jump}: due by the clock of a client");
        slot.done("").await.unwrap();
        assert!(fixture.there.try_due().await.unwrap().is_none(), "jump {jump}");
    }
    assert_eq!(fixture.done(), 3);
}

#[tokio::test]
async fn a_refused_write_records_nothing_and_the_slot_is_due_again() {
    let fixture = ScheduleFixture::new().await;
    fixture.advance(1).await;
    let slot = due(&fixture.here).await;
    let begins = slot.begins();
    let refused = slot.done_with("", |txn| txn.set("/nowhere", b"".to_vec(), -1)).await.unwrap_err();
    assert!(matches!(refused, Error::NotCommitted(_)) && !refused.outcome_unknown(), "{refused}");
    assert_eq!(fixture.done(), 0);
    let slot = due(&fixture.here).await;
    assert_eq!(slot.begins(), begins);
    // More than fits into one request.
    let refused = slot.done(vec![0; 2 << 20]).await.unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
    assert_eq!(due(&fixture.here).await.begins(), begins);
}

#[tokio::test]
async fn a_wait_says_when_the_next_slot_begins_and_ends_with_a_shutdown() {
    let fixture = ScheduleFixture::new().await;
    let wait = async |timeout| fixture.here.due_timeout(timeout).await.unwrap_err();
    let refused = gives_up("next slot, which begins in", wait).await;
    assert!(refused.is_timeout(), "{refused}");
    let manager = client(&fixture.server_fixture).await;
    let waiting = tokio::spawn({
        let schedule = schedule(&manager, fixture.offset);
        async move { schedule.due().await.err() }
    });
    fixture.server_fixture.queue_length_becomes(1).await.unwrap();
    let mut transitions = manager.transitions();
    manager.shutdown().await.unwrap();
    let closed = within("the end of the wait", waiting).await.unwrap().unwrap();
    assert!(closed.is_some_and(|error| error.is_closed()));
    while let Some(Transition { .. }) = within("the last state", transitions.next()).await.unwrap() {}
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_head_that_loses_its_session_waits_again_in_the_next() {
    let fixture = ScheduleFixture::new().await;
    let waiting = tokio::spawn({
        let there = fixture.there.clone();
        async move { due(&there).await.begins() }
    });
    // As the head, it has written its node to read the time.
    let is_head = fixture.server_fixture.server.wait_until(|machine| {
        let head = queue_nodes(machine).first().and_then(|path| machine.tree().node(path));
        // The node of the schedule's first head may not be deleted yet.
        head.map(|node| node.stat())
            .is_some_and(|head| head.ephemeral_owner == fixture.session && head.version > 0)
    });
    within("the head", is_head).await.unwrap();
    assert!(fixture.server_fixture.server.expire(fixture.session));
    fixture.advance(1).await;
    // It reads the time when it is the head again.
    within("the slot", waiting).await.unwrap().unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn bad_settings_are_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = &server_fixture.rival;
    for (path, interval, wrong) in [
        ("/", INTERVAL, "path"),
        (LOCK, Duration::ZERO, "interval"),
        (LOCK, Duration::from_micros(1), "interval"),
        (LOCK, Duration::MAX, "interval"),
    ] {
        let refused = Schedule::new(manager, path, interval).unwrap_err();
        let is_named = matches!(&refused, Error::Config(ConfigError::Setting { name, .. }) if *name == wrong);
        assert!(is_named, "{refused}");
    }
    assert!(matches!(Schedule::new(manager, "locks", INTERVAL), Err(Error::Config(_))));
    assert_eq!(schedule(manager, Duration::ZERO).interval(), INTERVAL);
    assert_eq!(schedule(manager, Duration::ZERO).path(), LOCK);
}

#[tokio::test]
async fn a_slot_dropped_anywhere_under_any_fault_leaves_no_contender_in_the_queue() {
    let do_slot = |actor: ConnectionManager| async move {
        let schedule = Schedule::new(&actor, LOCK, Duration::from_millis(1)).unwrap();
        // The slot may be lost by now.
        let _ = schedule.due().await.unwrap().done("").await;
    };
    dropped_anywhere(&Plain, do_slot).await;
}
