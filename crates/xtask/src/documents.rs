//! The documents whose Rust snippets are compiled and run as documentation tests of this crate.

macro_rules! documents {
    ($($name:ident = $path:literal;)*) => {
        /// Paths from the folder of the checkout.
        pub const DOCUMENTS: &[&str] = &[$($path,)*];

        $(
            #[cfg(doctest)]
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
}
