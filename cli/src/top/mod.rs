//! `top`: a live screen of the locks below a root.

mod batch;
mod columns;
mod index;
mod options;
mod queue;
mod reader;
mod row;
mod screen;
mod show;
mod state;
mod terminal;
mod words;

pub(crate) use self::options::TopOptions;
pub(crate) use self::show::top;
