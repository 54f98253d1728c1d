//! The files of the checkout that people write.

use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold what was built or fetched.
const LEFT_OUT: [&str; 5] = [".git", "target", "node_modules", "dist", "proptest-regressions"];

/// The folder of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Every file under `folder` with one of these endings, in path order.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(folder: &Path, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            let name = entry.file_name();
            if kind.is_dir() && !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                folders.push(path);
            } else if kind.is_file()
                && path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
