//! Connection manager and sequential-node primitives under the `lockkeeper` recipes.
