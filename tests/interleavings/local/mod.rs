pub(crate) mod decide;
