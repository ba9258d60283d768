use std::collections::HashMap;
use std::sync::Arc;

use super::Origin;
use crate::protocol::{Create, CreateMode, CreateOp, ErrorCode, WriteOp};
use crate::tree::{Acl, Change, Owner, Permissions, Tree, parent, validate};

/// The facts of a node that a check needs.
#[derive(Clone)]
struct Record {
    created_children: i32,
    children: usize,
    version: i32,
    aversion: i32,
    owner: Owner,
    acl: Arc<[Acl]>,
}

/// Checks writes and turns them into changes.
///
/// The operations of one transaction are checked one after the other, each against the tree as the ones
/// before would leave it; `pending` holds that difference.
pub(super) struct Prepare<'a> {
    tree: &'a Tree,
    origin: &'a Origin,
    ttl_nodes: bool,
    /// Counters of parents after the creates in flight.
    ahead: &'a HashMap<String, i32>,
    pending: HashMap<String, Option<Record>>,
}

impl<'a> Prepare<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        origin: &'a Origin,
        ttl_nodes: bool,
        ahead: &'a HashMap<String, i32>,
    ) -> Self {
        Self { tree, origin, ttl_nodes, ahead, pending: HashMap::new() }
    }

    /// Checks one operation. `None` when it changes nothing.
    pub(super) fn op(&mut self, op: &WriteOp) -> Result<Option<Change>, ErrorCode> {
        match op {
            WriteOp::Create(create) => self.create(create).map(Some),
            WriteOp::Delete { path, version } => self.delete(path, *version).map(Some),
            WriteOp::SetData { path, data, version } => {
                well_formed(path)?;
                let mut node = self.record(path)?;
                self.permitted(&node, Permissions::WRITE)?;
                node.version = bumped(node.version, *version)?;
                let change =
                    Change::SetData { path: path.clone(), data: data.clone(), version: node.version };
                self.pending.insert(path.clone(), Some(node));
                Ok(Some(change))
            }
            WriteOp::Check { path, version } => {
                well_formed(path)?;
                let node = self.record(path)?;
                self.permitted(&node, Permissions::READ)?;
                bumped(node.version, *version)?;
                Ok(None)
            }
        }
    }

    pub(super) fn set_acl(&mut self, path: &str, acl: &[Acl], version: i32) -> Result<Change, ErrorCode> {
        well_formed(path)?;
        let acl = Acl::expand(acl, &self.origin.identities)?;
        let node = self.record(path)?;
        self.permitted(&node, Permissions::ADMIN)?;
        let version = bumped(node.aversion, version)?;
        Ok(Change::SetAcl { path: path.to_owned(), acl: acl.into(), version })
    }

    fn create(&mut self, create: &Create) -> Result<Change, ErrorCode> {
        let mode = CreateMode::from_flags(create.flags)?;
        let owner = self.owner(create, mode)?;
        let above =
            parent(&create.path).filter(|_| !create.path.contains('\0')).ok_or(ErrorCode::BadArguments)?;
        let acl = Acl::expand(&create.acl, &self.origin.identities)?;
        let mut parent = self.record(above)?;
        self.permitted(&parent, Permissions::CREATE)?;
        let mut path = create.path.clone();
        if mode.is_sequential() {
            path.push_str(&format!("{:010}", parent.created_children));
        }
        well_formed(&path)?;
        if self.record(&path).is_ok() {
            return Err(ErrorCode::NodeExists);
        }
        if parent.owner.is_ephemeral() {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        parent.created_children = parent.created_children.wrapping_add(1);
        parent.children += 1;
        let parent_created = parent.created_children;
        let acl: Arc<[Acl]> = acl.into();
        let node = Record {
            created_children: 0,
            children: 0,
            version: 0,
            aversion: 0,
            owner,
            acl: Arc::clone(&acl),
        };
        self.pending.insert(above.to_owned(), Some(parent));
        self.pending.insert(path.clone(), Some(node));
        Ok(Change::Create { path, data: create.data.clone(), acl, owner, parent_created })
    }

    /// The operation decides over container and TTL, the flags over ephemeral: flags that ask for a container
    /// in a plain `create` make a persistent node, as in the real server.
    fn owner(&self, create: &Create, mode: CreateMode) -> Result<Owner, ErrorCode> {
        if mode.is_ttl() && !self.ttl_nodes {
            return Err(ErrorCode::Unimplemented);
        }
        if mode.is_ttl() != (1..=Owner::MAX_TTL).contains(&create.ttl) || !mode.is_ttl() && create.ttl >= 0 {
            return Err(ErrorCode::BadArguments);
        }
        match create.op {
            CreateOp::Ttl if mode.is_ttl() => Ok(Owner::Ttl(create.ttl)),
            CreateOp::Ttl => Err(ErrorCode::BadArguments),
            CreateOp::Container => Ok(Owner::Container),
            _ if mode.is_ephemeral() => Ok(Owner::Session(self.origin.session)),
            _ => Ok(Owner::Nobody),
        }
    }

    fn delete(&mut self, path: &str, version: i32) -> Result<Change, ErrorCode> {
        let special = matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config");
        let above =
            parent(path).filter(|_| !special && !path.contains('\0')).ok_or(ErrorCode::BadArguments)?;
        let mut parent = self.record(above)?;
        self.permitted(&parent, Permissions::DELETE)?;
        let node = self.record(path)?;
        bumped(node.version, version)?;
        if node.children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        parent.children -= 1;
        self.pending.insert(above.to_owned(), Some(parent));
        self.pending.insert(path.to_owned(), None);
        Ok(Change::Delete { path: path.to_owned() })
    }

    fn record(&self, path: &str) -> Result<Record, ErrorCode> {
        match self.pending.get(path) {
            Some(Some(record)) => Ok(record.clone()),
            Some(None) => Err(ErrorCode::NoNode),
            None => {
                let node = self.tree.node(path).ok_or(ErrorCode::NoNode)?;
                let stat = node.stat();
                Ok(Record {
                    created_children: self.ahead.get(path).copied().unwrap_or(node.created_children),
                    children: node.children.len(),
                    version: stat.version,
                    aversion: stat.aversion,
                    owner: node.owner,
                    acl: Arc::clone(&node.acl),
                })
            }
        }
    }

    fn permitted(&self, node: &Record, wanted: Permissions) -> Result<(), ErrorCode> {
        Acl::permit(&node.acl, wanted, &self.origin.identities).then_some(()).ok_or(ErrorCode::NoAuth)
    }
}

fn well_formed(path: &str) -> Result<(), ErrorCode> {
    validate(path).then_some(()).ok_or(ErrorCode::BadArguments)
}

fn bumped(version: i32, expected: i32) -> Result<i32, ErrorCode> {
    if expected != -1 && expected != version {
        return Err(ErrorCode::BadVersion);
    }
    Ok(version.wrapping_add(1))
}
