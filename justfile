# Every recipe calls the script that npm calls: there is one way to do each thing.

default:
    @just --list

# The addon and dist/.
build:
    npm run build

# Everything that must pass before a change goes in.
test:
    npm test

# The same as test, after formatting and generating.
ready: fmt codegen test

# Durable pushes beside the raw disk loop of the same run.
bench *flags:
    npm run bench -- {{flags}}

# The demonstration on real files.
start *flags:
    npm start -- {{flags}}

# Files made from the table of error codes.
codegen:
    cargo xtask codegen

fmt:
    cargo fmt --all
    npm run format

# Licences, advisories and sources of the Rust dependencies (needs cargo-deny).
deny:
    cargo deny check

# The models of the core in crates/millpond/tests/loom, each in a process of its own; prints the executions.
loom:
    RUSTFLAGS="--cfg loom" cargo nextest run --cargo-profile loom -p millpond --test loom \
        --target-dir target/loom --no-capture

sanitized := "cargo +nightly test --target x86_64-unknown-linux-gnu"
tsan_suppressions := justfile_directory() / "crates/millpond/tests/tsan/suppressions.txt"

# Data races, by ThreadSanitizer (nightly). First a planted race, which must be found.
tsan: tsan-planted
    RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
    TSAN_OPTIONS="suppressions={{tsan_suppressions}} history_size=7" \
        {{sanitized}} --target-dir target/tsan -p millpond --lib --test behaviour
    RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
    TSAN_OPTIONS="suppressions={{tsan_suppressions}} history_size=7" \
        {{sanitized}} --target-dir target/tsan -p millpond-testkit --test machine

tsan-planted:
    mkdir -p target/tsan
    rustc +nightly --edition 2024 -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer \
        --target x86_64-unknown-linux-gnu -o target/tsan/planted_race crates/millpond/tests/tsan/planted_race.rs
    TSAN_OPTIONS="suppressions={{tsan_suppressions}}" target/tsan/planted_race 2>&1 \
        | grep "SUMMARY: ThreadSanitizer: data race"

# Memory errors and leaks, by AddressSanitizer (nightly).
asan:
    RUSTFLAGS="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer" \
        {{sanitized}} --target-dir target/asan -p millpond --lib --test behaviour
    RUSTFLAGS="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer" \
        {{sanitized}} --target-dir target/asan -p millpond-testkit --test machine

# Miri. The machine this is built on lacks the component (its rustup has no miri for the nightly toolchain), so it has
# not been run there; `rustup +nightly component add miri` where it exists. Files and real disks are left out.
miri:
    MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test -p millpond --lib -- \
        --skip store::log
    MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test -p millpond --test behaviour -- \
        acking capacity closing failures futures order races

# Everything on sled and RocksDB too. Builds the latter (a quarter of an hour and more) unless ROCKSDB_LIB_DIR names a built librocksdb.a
# and ROCKSDB_STATIC=1 is set; needs libclang-dev.
test-all:
    cargo nextest run --locked --workspace --all-features
    cargo test --locked --doc --workspace --all-features

# Durable pushes beside the published crate persistent-queue 0.2.0 and a raw loop of redb, in one run.
compare *flags:
    cargo run --release --manifest-path bench/compare/Cargo.toml --target-dir target/compare -- {{flags}}

# Ten million items on disk: opening, memory, descriptors, every call beside an empty queue. Needs 4 GB beside the binary;
# instructions are counted where valgrind is.
scale items="10000000":
    cargo build --release -p millpond-testkit --bin scale
    rm -rf target/scale && mkdir target/scale
    target/release/scale target/scale {{items}}; code=$?; rm -rf target/scale; exit $code
