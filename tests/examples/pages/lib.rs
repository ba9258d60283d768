//! The pages whose code is compiled and run as it is written there, and what their blocks have in common.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/cookbook.md")]
struct Cookbook;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing-your-service.md")]
struct TestingYourService;

#[cfg(doctest)]
#[doc = include_str!("../../server/README.md")]
struct TestServerReadme;

use std::error::Error;

use lockkeeper::ConnectionManager;
use lockkeeper_testserver::TestServer;

/// What the code of a page ends with.
pub type Outcome = Result<(), Box<dyn Error>>;

/// Runs the code of a page with a manager, and with the server to which it is connected.
///
/// # Errors
///
/// That of the code; or the session cannot be closed.
pub fn run<F>(code: F) -> Outcome
where
    F: AsyncFnOnce(ConnectionManager, TestServer) -> Outcome,
{
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let server = TestServer::start().await?;
        let manager = ConnectionManager::connect(&server.connect_string()).await?;
        code(manager.clone(), server).await?;
        // The code may have ended with its server.
        drop(manager);
        Ok(())
    })
}

/// Runs the code of a page in a thread without a runtime, with the connect string of a server.
///
/// # Errors
///
/// That of the code.
pub fn run_blocking(code: impl FnOnce(String) -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let server = runtime.block_on(TestServer::start())?;
    code(server.connect_string())
}
