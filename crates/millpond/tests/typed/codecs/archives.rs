use std::time::Duration;

use millpond::store::MemStore;
use millpond::typed::{Archive, Codec, Rkyv, Undecodable};
use millpond::{Builder, ErrorCode, Queue, ReadError, ReserveError};
use proptest::prelude::*;

use super::jobs::{Job, Retry, any_job};

fn open() -> Queue<Job, Rkyv> {
    Builder::new(MemStore::new()).open_rkyv().unwrap()
}

fn is_same(archived: &Archive<Job>, job: &Job) -> bool {
    archived.name == job.name
        && archived.body == job.body
        && archived.blocks.iter().map(|block| block.to_native()).eq(job.blocks.iter().copied())
        && archived.labels.len() == job.labels.len()
        && archived.retry.is_some() == job.retry.is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn archives_are_read_where_they_lie(jobs in prop::collection::vec(any_job(), 1..6)) {
        let queue = open();
        queue.push_many(&jobs).unwrap();
        for (job, id) in jobs.iter().zip(1..) {
            prop_assert!(is_same(&queue.get_archived(id).unwrap().unwrap(), job));
            let item = queue.reserve_archived().unwrap().unwrap();
            prop_assert_eq!(item.seq(), id);
            prop_assert!(is_same(&item, job));
            prop_assert!(item.ack().unwrap());
        }
        prop_assert!(queue.get_archived(1).unwrap().is_none());
        prop_assert!(queue.reserve_archived().unwrap().is_none());
    }

    /// Whatever was stored, an archive is read only after it was validated.
    #[test]
    fn damaged_archives_are_never_read(
        job in any_job(),
        place in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        Rkyv::encode(&job, &mut bytes).unwrap();
        let queue = open();
        queue.bytes().push(&bytes[..cut.index(bytes.len())]).unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= flip;
        queue.bytes().push(&bytes).unwrap();
        for _ in 0..2 {
            match queue.reserve_archived() {
                // What is flipped may be a part of the value, and then another value is read: all of it.
                Ok(Some(item)) => {
                    let _ = format!("{}{:?}{:?}", item.name, item.body.as_slice(), item.blocks.len());
                    for (label, number) in item.labels.iter() {
                        let _ = format!("{label}{number}");
                    }
                }
                Err(ReserveError::Decode(entry)) => prop_assert!(entry.ack().unwrap()),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

#[test]
fn an_archive_that_does_not_check_is_delivered_as_an_error() {
    let queue = open();
    queue.bytes().push(b"no archive at all").unwrap();
    queue.bytes().push(b"").unwrap();
    let job = Job {
        name: "behind".to_owned(),
        body: vec![1; 33],
        weight: 1.5,
        blocks: vec![u128::MAX],
        retry: Some(Retry::After(3)),
        labels: std::iter::once(("a".to_owned(), -1)).collect(),
    };
    queue.push(&job).unwrap();

    let Err(ReadError::Decode(read)) = queue.get_archived(1) else { panic!("it cannot be read") };
    assert_eq!((read.id(), read.bytes()), (1, &b"no archive at all"[..]));
    let rejected = |outcome| match outcome {
        Err(ReserveError::Decode(entry)) => entry,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it cannot be read"),
    };
    let first: Undecodable = rejected(queue.reserve_archived());
    assert_eq!((first.id(), first.bytes(), first.code()), (1, &b"no archive at all"[..], ErrorCode::Decode));
    let second: Undecodable = rejected(queue.reserve_archived_timeout(Duration::ZERO));
    assert_eq!((second.id(), second.bytes()), (2, &b""[..]));
    let third = queue.reserve_archived().unwrap().unwrap();
    assert!(is_same(&third, &job));
    assert!(first.ack().unwrap() && second.nack().unwrap() && third.ack().unwrap());
    assert_eq!(queue.len(), 1);
}

#[test]
fn decoding_does_not_depend_on_where_the_bytes_lie() {
    let mut bytes = vec![0; 16];
    let job = Job {
        name: "anywhere".to_owned(),
        body: Vec::new(),
        weight: -0.0,
        blocks: vec![1, 2, 3],
        retry: Some(Retry::Each { every: 1, most: -1 }),
        labels: std::collections::BTreeMap::new(),
    };
    for shift in 0..16 {
        bytes.truncate(shift);
        Rkyv::encode(&job, &mut bytes).unwrap();
        let decoded: Job = Rkyv::decode(&bytes[shift..]).unwrap();
        assert_eq!(decoded, job);
        bytes.resize(16, 0);
    }
}
