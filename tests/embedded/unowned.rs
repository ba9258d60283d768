//! A persistent node where the layout says ephemeral: tools that copy or restore a tree leave such nodes in
//! the directory of each recipe. They belong to no session.

use std::time::Duration;

use lockkeeper::discovery::{Instance, ServiceType, Strategy};
use lockkeeper::inspect::{Role, Survey};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{
    ConnectionManager, Discovery, DoubleBarrier, Election, Group, Inspection, Mutex, Partition, Semaphore,
};

use crate::limit::{gives_up, within};
use crate::presence::client;
use crate::server_fixture::ServerFixture;

/// The names of contenders that the servers would give in a new directory.
const CONTENDERS: [&str; 3] = [
    "lock-0000000000",
    "_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-0000000000",
    "0123456789abcdef0123456789abcdef__lock__0000000000",
];

async fn leave_persistent(manager: &ConnectionManager, path: &str, data: impl Into<Vec<u8>>) {
    manager.znodes().create(path, data, CreateMode::Persistent).await.unwrap();
}

#[tokio::test]
async fn a_persistent_node_is_no_member_of_a_group() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let copies =
        ["copied".to_owned(), format!("{}__party__", "0".repeat(32)), format!("{}-b", "1".repeat(32))];
    for copied in &copies {
        leave_persistent(&server_fixture.rival, &format!("/group/{copied}"), "b").await;
    }
    let group = Group::new(&manager, "/group").unwrap();
    let members = group.members().unwrap();
    let membership = group.join("a", "here").unwrap();
    within("the join", membership.registered()).await.unwrap().unwrap();
    let snapshot = within("the view", members.sync()).await.unwrap().unwrap();
    assert_eq!(members.ids(), ["a"]);
    for copied in &copies {
        let error = snapshot.get(copied).unwrap().value().unwrap_err();
        assert!(error.to_string().contains("belongs to no session"), "{error}");
    }
    let inspection = group.inspect().await.unwrap();
    assert_eq!(inspection.members().len(), 1);
    assert_eq!(inspection.unowned().len(), copies.len());
    assert_eq!(inspection.to_string().matches("no member: persistent").count(), copies.len());
    let survey = Survey::below(&manager, "/").await.unwrap();
    let [found] = survey.groups() else { panic!("{:?}", survey.groups()) };
    assert_eq!((found.members().len(), found.unowned().len()), (1, copies.len()));
}

#[tokio::test]
async fn no_item_belongs_to_a_persistent_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let partition = Partition::new(&manager, "/shards").unwrap();
    let items: Vec<String> = (0..32).map(|item| format!("{item:02}")).collect();
    partition.add(&items).await.unwrap();
    for copied in ["b", "c"] {
        leave_persistent(&server_fixture.rival, &format!("/shards/members/{copied}"), "").await;
    }
    let mut member = partition.join("a").unwrap();
    let mut guards = Vec::new();
    for _ in &items {
        guards.push(within("an item", member.next()).await.unwrap().unwrap());
    }
    let share = within("the share", member.settled(Duration::from_secs(20))).await.unwrap().unwrap();
    assert_eq!((share.members(), share.held().count()), (1, items.len()));
    let inspection = partition.inspect().await.unwrap();
    assert_eq!(
        (inspection.members(), inspection.unowned()),
        (&["a".to_owned()][..], &["b".to_owned(), "c".to_owned()][..])
    );
    assert_eq!(inspection.misplaced().count(), 0);
}

#[tokio::test]
async fn a_double_barrier_counts_no_persistent_node_and_waits_for_none() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let barrier = |id: &str| DoubleBarrier::new(&manager, "/barrier", 2).unwrap().with_id(id).unwrap();
    // Older than every opening, and so in every round by its age.
    leave_persistent(&server_fixture.rival, "/barrier/copied", "").await;
    let (one, two) = (barrier("one"), barrier("two"));
    gives_up("waiting for 1 more members", async |timeout| one.enter_timeout(timeout).await.unwrap_err())
        .await;
    for _ in 0..2 {
        let entered = async { tokio::try_join!(one.enter(), two.enter()) };
        let (in_one, in_two) = within("the round", entered).await.unwrap().unwrap();
        let seen = one.inspect().await.unwrap();
        assert_eq!((seen.inside().count(), seen.members().len(), seen.unowned().len()), (2, 2, 1), "{seen}");
        let left = async { tokio::try_join!(in_one.leave(), in_two.leave()) };
        within("the end of the round", left).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_persistent_node_leads_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let copied = "/election/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-latch-0000000000";
    leave_persistent(&server_fixture.rival, copied, "copied").await;
    let election = Election::new(&manager, "/election", "a").unwrap();
    let observer = Election::new(&server_fixture.rival, "/election", "observer").unwrap();
    let mut leaders = observer.observe().await.unwrap();
    assert!(leaders.changed().await.unwrap().is_none());
    let campaign = tokio::spawn({
        let election = election.clone();
        async move { election.campaign().await }
    });
    let is_candidate = async { while observer.candidates().await.unwrap() != ["a"] {} };
    within("the candidate", is_candidate).await.unwrap();
    // It waits: other libraries, too, wait behind the node.
    assert_eq!((campaign.is_finished(), leaders.state()), (false, None));
    let seen = observer.inspect().await.unwrap().to_string();
    assert!(seen.contains("(belongs to no session) copied"), "{seen}");
    assert!(server_fixture.rival.znodes().delete(copied).await.unwrap());
    let leadership = within("the leadership", campaign).await.unwrap().unwrap().unwrap();
    let leader = within("the leader", leaders.changed()).await.unwrap().unwrap().unwrap();
    assert_eq!((leader.id(), leader.fencing_token()), ("a", leadership.fencing_token()));
}

#[tokio::test]
async fn a_client_chooses_no_persistent_instance_unless_its_type_is_persistent() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let instance = |service_type: ServiceType| {
        Instance::new("web", "10.0.0.7", 80).with_id(service_type.to_string()).with_service_type(service_type)
    };
    let types =
        [ServiceType::Dynamic, ServiceType::DynamicSequential, ServiceType::Static, ServiceType::Permanent];
    for service_type in types {
        let data = instance(service_type).to_json().unwrap();
        leave_persistent(&server_fixture.rival, &format!("/services/web/{service_type}"), data).await;
    }
    let discovery: Discovery = Discovery::new(&manager, "/services").unwrap();
    let balancer = discovery.balancer("web", Strategy::RoundRobin).unwrap();
    within("the view", balancer.view().sync()).await.unwrap().unwrap();
    let instances = balancer.view().instances();
    let ids: Vec<&str> = instances.iter().map(|instance| instance.id()).collect();
    assert_eq!(ids, ["PERMANENT", "STATIC"]);
    for _ in types {
        assert!(ids.contains(&balancer.choose().unwrap().id()));
    }
    let inspection = discovery.inspect().await.unwrap();
    let unowned = inspection.services()[0].instances().iter().filter(|instance| instance.instance().is_err());
    assert_eq!(unowned.count(), 2, "{inspection}");
}

#[tokio::test]
async fn a_persistent_contender_blocks_and_errors_inspections_and_surveys_say_so() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    for contender in CONTENDERS {
        let directory = format!("/locks/of-{}", contender.len());
        leave_persistent(&server_fixture.rival, &format!("{directory}/{contender}"), "copied").await;
        let mutex = Mutex::new(&manager, directory.as_str()).unwrap();
        gives_up("belongs to no session", async |timeout| mutex.acquire_timeout(timeout).await.unwrap_err())
            .await;
        let seen = mutex.inspect().await.unwrap();
        let holder = seen.holders().next().unwrap();
        assert_eq!((holder.session(), holder.name()), (0, contender));
        assert!(seen.to_string().contains("(belongs to no session) copied"), "{seen}");
        let survey = Survey::below(&manager, directory.as_str()).await.unwrap();
        assert_eq!(survey.locks()[0].holders().next().map(|of| of.session()), Some(0));
    }
    // A permit that nobody can give back is out, for other libraries, too.
    leave_persistent(&server_fixture.rival, "/permits/leases/_c_a-lease-0000000000", "copied").await;
    let semaphore = Semaphore::new(&manager, "/permits", 1).unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let seen = semaphore.inspect().await.unwrap().to_string();
    assert!(seen.contains("(belongs to no session) copied"), "{seen}");
}

#[tokio::test]
async fn a_lock_directory_with_the_name_of_a_contender_is_a_lock_and_no_contender() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (named, plain) = ("/locks/lock-1700000001", "/locks/other");
    let mutexes = [named, plain].map(|path| Mutex::new(&manager, path).unwrap());
    let _guards = [mutexes[0].acquire().await.unwrap(), mutexes[1].acquire().await.unwrap()];
    let survey = Survey::below(&manager, "/").await.unwrap();
    let paths: Vec<&str> = survey.locks().iter().map(|lock| lock.path().as_str()).collect();
    assert_eq!(paths, [named, plain]);
    assert!(survey.locks().iter().all(|lock| lock.holders().count() == 1));
    assert_eq!(Inspection::of_path(&manager, "/locks").await.unwrap(), None);
    // Whoever takes the parent for a lock waits behind the directory, and sees it for what it is.
    let parent = Mutex::new(&manager, "/locks").unwrap();
    let seen = parent.inspect().await.unwrap();
    assert_eq!((seen.holders().count(), seen.contenders()[0].role()), (0, Role::Foreign));
}
