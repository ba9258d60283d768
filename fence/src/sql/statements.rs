/// The texts of the fence for one SQL database, for every driver.
///
/// Run them in the transaction of the write. The first parameter is the resource, the second one the 16 bytes
/// of [`FencingToken::to_be_bytes`](lockkeeper_lock::FencingToken::to_be_bytes).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Statements {
    /// Creates the table, if it does not exist. For a migration: once, not before each check.
    ///
    /// `resource` is the name of the resource, compared byte by byte. `token` is the newest token of a write,
    /// `read_token` the newest token of a read. Both have 16 bytes, and are 16 zeros before the first one.
    pub table: &'static str,
    /// Admits a write: inserts the token, or raises it if neither mark is newer.
    ///
    /// PostgreSQL and SQLite: one row is affected if the token is admitted, and none if it is stale. MySQL:
    /// the number of rows depends on the driver's settings, so run [`newest`](Self::newest) behind it. The
    /// token is admitted if `token` is equal to it and `read_token` is not greater.
    pub check: &'static str,
    /// Admits a read: raises `read_token`, unless `token` is newer.
    ///
    /// PostgreSQL and SQLite: as for a write. MySQL: the token is admitted if `token`, as read by
    /// [`newest`](Self::newest) behind it, is not greater than it.
    pub check_read: &'static str,
    /// Raises `token` to the given one, never lower: the mark of the engineer on call. Give it the bytes of
    /// [`FencingToken::mark_above`](lockkeeper_lock::FencingToken::mark_above).
    pub raise: &'static str,
    /// Reads `token` and `read_token` of the resource, its only parameter.
    pub newest: &'static str,
}

/// PostgreSQL. Tested on 15.
pub const POSTGRESQL: Statements = Statements {
    table: r#"CREATE TABLE IF NOT EXISTS lockkeeper_fence (
    resource TEXT COLLATE "C" PRIMARY KEY,
    token BYTEA NOT NULL DEFAULT decode(repeat('00', 16), 'hex') CHECK (octet_length(token) = 16),
    read_token BYTEA NOT NULL DEFAULT decode(repeat('00', 16), 'hex') CHECK (octet_length(read_token) = 16)
)"#,
    check: "INSERT INTO lockkeeper_fence AS fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE fence.token <= excluded.token AND fence.read_token <= excluded.token",
    check_read: "INSERT INTO lockkeeper_fence AS fence (resource, read_token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET read_token = greatest(fence.read_token, excluded.read_token)
WHERE fence.token <= excluded.read_token",
    raise: "INSERT INTO lockkeeper_fence AS fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = greatest(fence.token, excluded.token)",
    newest: "SELECT token, read_token FROM lockkeeper_fence WHERE resource = $1",
};

/// SQLite 3.24 or later.
pub const SQLITE: Statements = Statements {
    table: "CREATE TABLE IF NOT EXISTS lockkeeper_fence (
    resource TEXT PRIMARY KEY NOT NULL,
    token BLOB NOT NULL DEFAULT (zeroblob(16)) CHECK (typeof(token) = 'blob' AND length(token) = 16),
    read_token BLOB NOT NULL DEFAULT (zeroblob(16))
        CHECK (typeof(read_token) = 'blob' AND length(read_token) = 16)
)",
    check: "INSERT INTO lockkeeper_fence AS fence (resource, token) VALUES (?1, ?2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE fence.token <= excluded.token AND fence.read_token <= excluded.token",
    check_read: "INSERT INTO lockkeeper_fence AS fence (resource, read_token) VALUES (?1, ?2)
ON CONFLICT (resource) DO UPDATE SET read_token = max(fence.read_token, excluded.read_token)
WHERE fence.token <= excluded.read_token",
    raise: "INSERT INTO lockkeeper_fence AS fence (resource, token) VALUES (?1, ?2)
ON CONFLICT (resource) DO UPDATE SET token = max(fence.token, excluded.token)",
    newest: "SELECT token, read_token FROM lockkeeper_fence WHERE resource = ?1",
};

/// MySQL 5.7 or later, and MariaDB, with InnoDB.
pub const MYSQL: Statements = Statements {
    table: "CREATE TABLE IF NOT EXISTS lockkeeper_fence (
    resource VARBINARY(255) NOT NULL PRIMARY KEY,
    token BINARY(16) NOT NULL DEFAULT 0x00000000000000000000000000000000,
    read_token BINARY(16) NOT NULL DEFAULT 0x00000000000000000000000000000000
) ENGINE = InnoDB",
    check: "INSERT INTO lockkeeper_fence (resource, token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE
token = IF(token <= VALUES(token) AND read_token <= VALUES(token), VALUES(token), token)",
    check_read: "INSERT INTO lockkeeper_fence (resource, read_token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE
read_token = IF(token <= VALUES(read_token), GREATEST(read_token, VALUES(read_token)), read_token)",
    raise: "INSERT INTO lockkeeper_fence (resource, token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))",
    newest: "SELECT token, read_token FROM lockkeeper_fence WHERE resource = ? FOR UPDATE",
};
