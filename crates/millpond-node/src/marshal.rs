//! Deliveries and entries in one `ArrayBuffer` each, in V8's own memory: Electron refuses foreign memory.
//!
//! Layout, native byte order: the count as a double, then the figures of each item as doubles, then the payloads one
//! after another. `src-ts/internal/delivery.ts` is the reader.

use std::ptr;

use millpond::{Entry, Reserved};
use napi::bindgen_prelude::ToNapiValue;
use napi::{check_status, sys};

use crate::number;

const FIGURE_BYTES: usize = size_of::<f64>();

/// Any value of JavaScript.
pub(crate) fn js<T: ToNapiValue>(env: sys::napi_env, value: T) -> napi::Result<sys::napi_value> {
    #[expect(unsafe_code, reason = "conversion outside of a generated function")]
    // SAFETY: `env` is the environment whose thread runs this: napi hands it to the callers of this function.
    unsafe {
        T::to_napi_value(env, value)
    }
}

/// Items to deliver. Those that do not reach JavaScript are dropped, which returns them to the queue.
pub struct PackedDeliveries(pub(crate) Vec<Reserved>);

impl ToNapiValue for PackedDeliveries {
    #[expect(unsafe_code, reason = "the trait's method is unsafe")]
    unsafe fn to_napi_value(env: sys::napi_env, items: Self) -> napi::Result<sys::napi_value> {
        items.pack(env)
    }
}

impl PackedDeliveries {
    pub(crate) fn pack(self, env: sys::napi_env) -> napi::Result<sys::napi_value> {
        let figures = self.0.iter().flat_map(|item| {
            let handle = item.handle();
            let deliveries = f64::from(item.deliveries());
            [
                number::to_js(handle.id),
                number::to_js(handle.generation),
                deliveries,
                number::len_to_js(item.len()),
            ]
        });
        let payloads = self.0.iter().map(|item| &**item);
        let packed = pack(env, self.0.len(), 4, figures, payloads)?;
        for item in self.0 {
            // JavaScript holds it by its handle from here on.
            let _ = item.detach();
        }
        Ok(packed)
    }
}

/// Entries without a reservation.
pub(crate) fn pack_entries(env: sys::napi_env, entries: &[Entry]) -> napi::Result<sys::napi_value> {
    let figures =
        entries.iter().flat_map(|entry| [number::to_js(entry.id), number::len_to_js(entry.payload.len())]);
    pack(env, entries.len(), 2, figures, entries.iter().map(|entry| entry.payload.as_slice()))
}

fn pack<'a>(
    env: sys::napi_env,
    count: usize,
    figures_each: usize,
    figures: impl Iterator<Item = f64>,
    payloads: impl Iterator<Item = &'a [u8]> + Clone,
) -> napi::Result<sys::napi_value> {
    let head = (1 + count * figures_each) * FIGURE_BYTES;
    // At least the count; and a multiple of a figure, so that all of it can be seen as figures.
    let bytes = (head + payloads.clone().map(<[u8]>::len).sum::<usize>()).next_multiple_of(FIGURE_BYTES);
    let (value, buffer) = array_buffer(env, bytes)?;
    let (head, mut rest) = buffer.split_at_mut(head);
    for (place, figure) in
        head.chunks_exact_mut(FIGURE_BYTES).zip(std::iter::once(number::len_to_js(count)).chain(figures))
    {
        place.copy_from_slice(&figure.to_ne_bytes());
    }
    for payload in payloads {
        let (place, behind) = rest.split_at_mut(payload.len());
        place.copy_from_slice(payload);
        rest = behind;
    }
    Ok(value)
}

/// A new `ArrayBuffer` and its bytes, for as long as no JavaScript has run.
#[expect(unsafe_code, reason = "napi-rs has no way to write into a new ArrayBuffer without a second copy")]
fn array_buffer<'a>(env: sys::napi_env, bytes: usize) -> napi::Result<(sys::napi_value, &'a mut [u8])> {
    let mut data = ptr::null_mut();
    let mut value = ptr::null_mut();
    check_status!(
        // SAFETY: `env` is the environment whose thread runs this; both pointers are valid for the call.
        unsafe { sys::napi_create_arraybuffer(env, bytes, &raw mut data, &raw mut value) },
        "no memory for an ArrayBuffer of {bytes} bytes"
    )?;
    // SAFETY: V8 gave `bytes` zeroed bytes at `data` (never 0 bytes: the count is always there). Nobody else sees them
    // before the value is returned to JavaScript, which is after the caller has let go of the slice.
    let slice = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) };
    Ok((value, slice))
}
