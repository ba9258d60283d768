//! Every request of a registered instance and of a client's view times every fault.

use futures::future::join_all;
use lockkeeper::discovery::{InstanceState, Strategy};
use lockkeeper_testserver::{Op, When};

use super::{data, discovery, instance};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};
use crate::strike::{STRIKES, Strike};

/// The requests of an instance and of a view.
const REQUESTS: [Op; 7] =
    [Op::Connect, Op::Create2, Op::GetData, Op::SetData, Op::GetEphemerals, Op::AddWatch, Op::GetChildren2];

#[tokio::test]
async fn an_instance_and_its_clients_agree_after_every_fault_at_every_request() {
    let cases = STRIKES.iter().flat_map(|strike| REQUESTS.map(|op| (op, *strike)));
    let cases: Vec<_> = cases.collect();
    for cases in cases.chunks(24) {
        join_all(cases.iter().map(|(op, strike)| case(*op, *strike))).await;
    }
}

async fn case(op: Op, strike: Strike) {
    let what = format!("{strike:?} at {op:?}");
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    // The view has a session of its own.
    let when = match op {
        Op::AddWatch | Op::GetChildren2 => When::op(op),
        _ => When::op(op).session(session),
    };
    let armed = server_fixture.server.fault(when, strike.fault());
    let striking = strike.carry_out(&server_fixture, session, &armed);
    let living = async {
        let discovery = discovery(&manager);
        let balancer = discovery.balancer("web", Strategy::RoundRobin).unwrap();
        let registration = discovery.register(instance("a")).unwrap();
        let chosen = async {
            while balancer.choose().is_none() {
                // It may end with its time.
                let _ = balancer.view().sync().await;
            }
        };
        within(&format!("a choice after {what}"), chosen).await.unwrap();
        server_fixture.server.drop_connections();
        // The call may end with its time; the data is written all the same.
        let _ = registration.set_state(InstanceState::Draining).await;
        let drained = async {
            while balancer.choose().is_some() {
                let _ = balancer.view().sync().await;
            }
        };
        within(&format!("the drain after {what}"), drained).await.unwrap();
        within(&what, armed.hit()).await.unwrap();
        drop(registration);
        let gone = server_fixture.server.wait_until(|machine| data(machine, "a").is_none());
        within(&format!("the end of the node after {what}"), gone).await.unwrap();
        let gone = async {
            while !balancer.view().instances().is_empty() {
                let _ = balancer.view().sync().await;
            }
        };
        within(&format!("the end of the instance after {what}"), gone).await.unwrap();
    };
    tokio::select! {
        () = living => {}
        () = async { striking.await; std::future::pending::<()>().await } => {}
    }
}
