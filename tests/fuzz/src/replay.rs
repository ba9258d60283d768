//! Runs the targets of a crate on the inputs that are kept, without libFuzzer: part of the tests of each
//! crate that has targets.

use std::fs;
use std::path::{Path, PathBuf};

/// Runs each target on the files of its two folders. A target without a corpus is a mistake.
#[expect(clippy::type_complexity, reason = "a name and a function")]
pub(crate) fn replay(targets: &[(&str, fn(&[u8]))]) {
    let folder = folder();
    for (name, check) in targets {
        let corpus = inputs(&folder.join("corpus").join(name));
        assert!(!corpus.is_empty(), "the target {name} has no tests/fuzz/corpus/{name}");
        for input in corpus.into_iter().chain(inputs(&folder.join("kept").join(name))) {
            // The name of the file is in the output of a test that fails.
            println!("{name}: {}", input.display());
            check(&fs::read(&input).unwrap());
        }
    }
}

fn folder() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tests/fuzz"));
    above.find(|folder| folder.join("corpus").is_dir()).unwrap()
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths
}
