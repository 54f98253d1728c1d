//! The documents whose Rust snippets are compiled and run as documentation tests of this crate. Those that need a codec
//! are run with the feature `typed`.

macro_rules! documents {
    ($($(#[$condition:meta])? $name:ident = $path:literal;)*) => {
        /// Paths from the folder of the checkout.
        pub const DOCUMENTS: &[&str] = &[$($path,)*];

        $(
            #[cfg(doctest)]
            $(#[$condition])?
            #[doc = include_str!(concat!("../../../", $path))]
            pub struct $name;
        )*
    };
}

documents! {
    Readme = "README.md";
    Producing = "docs/guide/producing.md";
    Consuming = "docs/guide/consuming.md";
    ShuttingDown = "docs/guide/shutting-down.md";
    #[cfg(feature = "typed")]
    Typed = "docs/guide/typed.md";
    #[cfg(feature = "typed")]
    EventQueues = "docs/guide/event-queues.md";
}
