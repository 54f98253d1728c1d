//! Where files go, and the raw loop there.

use std::path::PathBuf;

use tempfile::TempDir;
use xtask::raw_loop::RawFile;
use xtask::tree;

pub(crate) struct Place {
    directory: PathBuf,
    raw: Option<(RawFile, TempDir)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let chosen = std::env::var_os("MILLPOND_BENCH_DIR").map(PathBuf::from);
        let directory = chosen.unwrap_or_else(|| tree::root().join("target/bench"));
        std::fs::create_dir_all(&directory).expect("the folder of the files");
        Self { directory, raw: None }
    }

    /// An empty directory, removed when it is dropped.
    pub(crate) fn fresh(&self) -> TempDir {
        tempfile::tempdir_in(&self.directory).expect("a directory")
    }

    /// The file of the raw loop; made at the first call, which takes a second or two.
    pub(crate) fn raw(&mut self) -> &mut RawFile {
        if self.raw.is_none() {
            let home = self.fresh();
            let file = RawFile::create(&home.path().join("raw.dat")).expect("the raw file");
            self.raw = Some((file, home));
        }
        &mut self.raw.as_mut().expect("made above").0
    }
}
