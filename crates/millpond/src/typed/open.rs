//! Opening a queue of values.

use super::Codec;
use crate::builder::Builder;
use crate::error::OpenError;
use crate::queue::Queue;

impl Builder {
    /// Opens a queue of values of `T` in postcard.
    ///
    /// ```
    /// use millpond::{Builder, Queue, Reserved, store::MemStore};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Job {
    ///     block: u64,
    /// }
    ///
    /// # let store = MemStore::new();
    /// # let job = Job { block: 7 };
    /// let queue: Queue<Job> = Builder::new(store).capacity(1024).open_typed()?;
    /// queue.push(&job)?;
    /// let item = queue.reserve()?;
    /// # let item: Option<Reserved<Job>> = item;
    /// if let Some(item) = item {
    ///     let job: &Job = &item;
    ///     assert_eq!(job.block, 7);
    ///     item.ack()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`]; [`OpenError::CodecMismatch`] when the queue was written with another codec.
    #[cfg(feature = "serde")]
    pub fn open_typed<T: serde::Serialize + serde::de::DeserializeOwned>(
        self,
    ) -> Result<Queue<T>, OpenError> {
        self.open_typed_with()
    }

    /// Opens a queue of values of `T` in borsh.
    ///
    /// ```
    /// use borsh::{BorshDeserialize, BorshSerialize};
    /// use millpond::{Builder, store::MemStore};
    ///
    /// #[derive(BorshSerialize, BorshDeserialize)]
    /// struct Job {
    ///     block: u64,
    /// }
    ///
    /// let queue = Builder::new(MemStore::new()).open_borsh::<Job>()?;
    /// queue.push(&Job { block: 7 })?;
    /// assert_eq!(queue.get(1)?.map(|job| job.block), Some(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`]; [`OpenError::CodecMismatch`] when the queue was written with another codec.
    #[cfg(feature = "borsh")]
    pub fn open_borsh<T>(self) -> Result<Queue<T, super::Borsh>, OpenError>
    where
        T: borsh::BorshSerialize + borsh::BorshDeserialize,
    {
        self.open_typed_with()
    }

    /// Opens a queue of archives of `T`, which can be read without decoding them
    /// ([`Queue::reserve_archived`]).
    ///
    /// ```
    /// use millpond::{Builder, store::MemStore};
    /// use rkyv::{Archive, Deserialize, Serialize};
    ///
    /// #[derive(Archive, Serialize, Deserialize)]
    /// struct Job {
    ///     name: String,
    ///     block: u64,
    /// }
    ///
    /// let queue = Builder::new(MemStore::new()).open_rkyv::<Job>()?;
    /// queue.push(&Job { name: "index".to_owned(), block: 7 })?;
    /// if let Some(item) = queue.reserve_archived()? {
    ///     assert_eq!(item.name, "index"); // read where it lies: no String is made
    ///     assert_eq!(item.block, 7);
    ///     item.ack()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`]; [`OpenError::CodecMismatch`] when the queue was written with another codec.
    #[cfg(feature = "rkyv")]
    pub fn open_rkyv<T>(self) -> Result<Queue<T, super::Rkyv>, OpenError>
    where
        super::Rkyv: Codec<T>,
    {
        self.open_typed_with()
    }

    /// Opens a queue of values of `T` in the encoding of `C`, whose name stands for any given to [`Builder::codec`].
    ///
    /// # Errors
    /// As [`Builder::open`]; [`OpenError::CodecMismatch`] when the queue was written with another codec.
    pub fn open_typed_with<T, C: Codec<T>>(self) -> Result<Queue<T, C>, OpenError> {
        Ok(self.codec(C::NAME).open()?.cast())
    }
}
