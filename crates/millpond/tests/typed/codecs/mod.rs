//! The codecs of this crate, each behind its feature: what goes in comes out, and nothing else does.

#[cfg(feature = "rkyv")]
mod archives;

#[cfg(any(feature = "serde", feature = "borsh", feature = "rkyv"))]
mod jobs {
    use std::collections::BTreeMap;

    use millpond::store::MemStore;
    use millpond::typed::Codec;
    use millpond::{Builder, Queue};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
    #[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
    pub(super) struct Job {
        pub(super) name: String,
        pub(super) body: Vec<u8>,
        pub(super) weight: f64,
        pub(super) blocks: Vec<u128>,
        pub(super) retry: Option<Retry>,
        pub(super) labels: BTreeMap<String, i64>,
    }

    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
    #[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
    pub(super) enum Retry {
        Never,
        After(u64),
        Each { every: u32, most: i16 },
    }

    pub(super) fn any_job() -> impl Strategy<Value = Job> {
        let retry = prop_oneof![
            Just(Retry::Never),
            any::<u64>().prop_map(Retry::After),
            (any::<u32>(), any::<i16>()).prop_map(|(every, most)| Retry::Each { every, most }),
        ];
        let weight = any::<f64>().prop_filter("borsh has no NaN", |weight| !weight.is_nan());
        let labels = btree_map(".{0,8}", any::<i64>(), 0..4);
        let parts = (".{0,40}", vec(any::<u8>(), 0..300), weight, vec(any::<u128>(), 0..5));
        (parts, prop::option::of(retry), labels).prop_map(|((name, body, weight, blocks), retry, labels)| {
            Job { name, body, weight, blocks, retry, labels }
        })
    }

    /// Through a queue one by one and together, and read without delivery.
    fn goes_through_a_queue<C: Codec<Job>>(jobs: &[Job]) {
        let queue: Queue<Job, C> = Builder::new(MemStore::new()).open_typed_with().unwrap();
        for job in jobs {
            queue.push(job).unwrap();
        }
        queue.push_many(jobs).unwrap();
        let read: Vec<Job> = queue.iter().map(|entry| entry.unwrap().payload).collect();
        assert_eq!(read, [jobs, jobs].concat());
        for (job, id) in read.iter().zip(1..) {
            assert_eq!(queue.get(id).unwrap().as_ref(), Some(job));
            let item = queue.reserve().unwrap().unwrap();
            assert_eq!(&*item, job);
            item.ack().unwrap();
        }
        assert!(queue.is_empty());
    }

    /// Bytes that are not an encoding are an error or another value; never a panic, never bytes left over.
    fn survives_any_bytes<C: Codec<Job>>(job: &Job, place: usize, bytes: &[u8]) {
        let mut encoded = b"before".to_vec();
        C::encode(job, &mut encoded).unwrap();
        assert!(encoded.starts_with(b"before"), "encoding appends");
        let encoded = encoded.split_off(6);
        assert_eq!(&C::decode(&encoded).unwrap(), job);
        let _ = C::decode(bytes);
        let place = place % encoded.len();
        let _ = C::decode(&encoded[..place]);
        let mut flipped = encoded;
        flipped[place] ^= 0x41;
        let _ = C::decode(&flipped);
    }

    macro_rules! codec_tests {
        ($($feature:literal $module:ident $codec:ident $name:literal;)*) => {$(
            #[cfg(feature = $feature)]
            mod $module {
                use super::*;
                use millpond::typed::$codec;

                proptest! {
                    #![proptest_config(ProptestConfig::with_cases(64))]

                    #[test]
                    fn values_go_through_a_queue(jobs in vec(any_job(), 0..6)) {
                        goes_through_a_queue::<$codec>(&jobs);
                    }

                    #[test]
                    fn any_bytes_are_survived(
                        job in any_job(),
                        place in any::<usize>(),
                        bytes in vec(any::<u8>(), 0..64),
                    ) {
                        survives_any_bytes::<$codec>(&job, place, &bytes);
                    }
                }

                #[test]
                fn the_name_is_part_of_the_format() {
                    assert_eq!(<$codec as Codec<Job>>::NAME, $name);
                }
            }
        )*};
    }

    codec_tests! {
        "serde" in_postcard Postcard "postcard";
        "borsh" in_borsh Borsh "borsh";
        "rkyv" in_rkyv Rkyv "rkyv";
    }

    #[cfg(feature = "serde")]
    #[test]
    fn bytes_too_many_are_refused_by_postcard() {
        use millpond::typed::Postcard;
        let error = <Postcard as Codec<u8>>::decode(&[7, 8, 9]).unwrap_err();
        assert_eq!(error.to_string(), "2 bytes too many");
    }

    #[cfg(feature = "borsh")]
    #[test]
    fn bytes_too_many_are_refused_by_borsh() {
        use millpond::typed::Borsh;
        assert!(<Borsh as Codec<u8>>::decode(&[7, 8, 9]).is_err());
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_claimed_length_allocates_nothing() {
        use millpond::typed::Postcard;
        // A vector of 2^63 elements, by its first bytes.
        let claim = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
        assert!(<Postcard as Codec<Vec<u64>>>::decode(&claim).is_err());
    }

    #[cfg(feature = "borsh")]
    #[test]
    fn a_value_borsh_has_no_encoding_for_is_refused() {
        use millpond::{ErrorCode, typed::Borsh};
        let queue: Queue<f64, Borsh> = Builder::new(MemStore::new()).open_borsh().unwrap();
        assert_eq!(queue.push(&f64::NAN).unwrap_err().code(), ErrorCode::Encode);
        assert!(queue.is_empty());
    }
}
