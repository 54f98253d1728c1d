//! Where things lie on a disk: files, and a file system's journal. For faults that hit exactly them.

use std::io;
use std::path::Path;

use super::mount::FileSystem;
use super::{SECTOR, program};

/// Sectors of a block of 4 KiB.
const BLOCK: u64 = 8;
/// The most sectors of XFS's journal that are named.
const AHEAD: u64 = 2048;

/// The most blocks of a file that are named: what is reserved ahead may be much more.
const BLOCKS: usize = 512;

/// The first sector of each block of 4 KiB of a file, up to 2 MiB.
///
/// # Errors
/// When the file system does not say.
pub fn of_file(path: &Path) -> io::Result<Vec<u64>> {
    let text = program::run("filefrag", ["-v".as_ref(), "-b512".as_ref(), path.as_os_str()])?;
    let mut sectors = Vec::new();
    // `0: 0.. 127: 66560.. 66687: 128: last,eof`
    for line in text.lines() {
        let columns: Vec<&str> = line.split(':').map(str::trim).collect();
        let [number, _, physical, ..] = columns.as_slice() else { continue };
        let Some((first, last)) = physical.split_once("..").filter(|_| number.parse::<u64>().is_ok()) else {
            continue;
        };
        let (Ok(first), Ok(last)) = (first.trim().parse::<u64>(), last.trim().parse::<u64>()) else {
            continue;
        };
        sectors.extend((first..=last).step_by(8));
    }
    sectors.truncate(BLOCKS);
    Ok(sectors)
}

/// Sectors of the journal of a file system that is new: for ext4 the first of each block behind the journal's super block,
/// for XFS the first mebibyte, where writing begins.
///
/// # Errors
/// When the file system does not say.
pub fn of_journal(kind: FileSystem, image: &Path) -> io::Result<Vec<u64>> {
    let image = image.as_os_str();
    match kind {
        FileSystem::Ext4 => {
            let blocks = program::run("debugfs", ["-R".as_ref(), "blocks <8>".as_ref(), image])?;
            let blocks = blocks.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
            Ok(blocks.skip(1).map(|block| block * BLOCK).collect())
        }
        FileSystem::Xfs => {
            let print = "p logstart logblocks agblocks agblklog blocksize";
            let text = program::run(
                "xfs_db",
                ["-r", "-c", "sb 0", "-c", print].map(AsRef::as_ref).into_iter().chain([image]),
            )?;
            let field = |name: &str| -> io::Result<u64> {
                let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
                line.and_then(|value| value.trim().parse().ok())
                    .ok_or_else(|| io::Error::other(format!("xfs_db does not say {name}: {text}")))
            };
            let [start, blocks, group, shift, bytes] = [
                field("logstart")?,
                field("logblocks")?,
                field("agblocks")?,
                field("agblklog")?,
                field("blocksize")?,
            ];
            // A block number is its group above, its place in the group below.
            let first = ((start >> shift) * group + (start & ((1 << shift) - 1))) * bytes / SECTOR;
            Ok((first..first + AHEAD.min(blocks * bytes / SECTOR)).collect())
        }
    }
}
