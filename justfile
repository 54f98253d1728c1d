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

# Every crash row in full: simulated disk, real file systems, strict file system, kill -9; prints a table. --only simulated
# takes one part: simulated, real, strict, kills.
crash *flags:
    node scripts/crash.mjs {{flags}}

# Plants one fault at a time; the crash suite must find each. Prints which test found which.
mutants:
    node scripts/planted.mjs

# The cases from the field, O-01 to O-32, at their full size (the addon and dist/ are built); prints which numbers have no test.
cases:
    node scripts/cases.mjs

# Random lives of many producers and consumers on real threads, judged, until so many operations are done.
machine operations="10000000":
    MILLPOND_OPERATIONS={{operations}} cargo nextest run --locked -p millpond-testkit --no-default-features \
        --test machine --cargo-profile crash --profile cases

# Each fuzz target for so many hours (needs the nightly toolchain; builds cargo-fuzz where it is missing).
fuzz hours="1":
    node scripts/fuzz.mjs --seconds $(({{hours}} * 3600))

# cargo-mutants on recovery, appending and stopping (needs cargo-mutants: cargo install cargo-mutants --locked).
cargo-mutants shard="0/1":
    cargo mutants --shard {{shard}} --no-shuffle -o target

# Licences, sources and bans of the Rust dependencies (needs cargo-deny: cargo install cargo-deny --locked).
deny:
    cargo deny check bans licenses sources

# Known faults of the Rust dependencies; fetches the database of advisories.
advisories:
    cargo deny check advisories

# Power cuts, disk errors and the cost of a push on real file systems (root; qemu-utils, e2fsprogs, xfsprogs): everything; --quick without RocksDB and sled.
power-cut *flags:
    node scripts/block-rig.mjs --full {{flags}}

# The addon on a strict file system that is cut off at any call (root, /dev/fuse): 5,000 crashes, and controls that must lose.
strict-disk *flags:
    node scripts/strict-disk.mjs {{flags}}

# The models of the core in crates/millpond/tests/loom, each in a process of its own; prints the executions.
loom:
    RUSTFLAGS="--cfg loom" cargo nextest run --cargo-profile loom -p millpond --test loom \
        --target-dir target/loom --no-capture

# Models with more threads than loom can finish, by schedules at random; prints how many. MILLPOND_SCHEDULES=N tries more.
shuttle:
    RUSTFLAGS="--cfg loom --cfg shuttle" cargo nextest run --cargo-profile loom -p millpond --test shuttle \
        --target-dir target/shuttle --no-capture

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

# The Rust tests on every store, RocksDB and sled too.
test-all:
    eval "$(node scripts/rocksdb.mjs)" && cargo nextest run --locked --workspace --all-features
    eval "$(node scripts/rocksdb.mjs)" && cargo test --locked --doc --workspace --all-features

# The core by criterion (stores, policies, batches, producers, codecs) beside the raw loop; writes bench/results/core.json and core-*.svg.
bench-core *flags:
    node scripts/bench-core.mjs {{flags}}

# The published crates persistent-queue 0.2.0 and arch-event-queues 0.1.1 (--events) beside ours; writes bench/results/compare.*.
compare *flags:
    node scripts/compare.mjs {{flags}}

# Instructions of the hot paths against what was recorded (needs valgrind); --accept records them.
instructions *flags:
    node scripts/instructions.mjs {{flags}}

# Ten million items on disk: opening, memory, descriptors, every call beside an empty queue. Needs 4 GB beside the binary;
# instructions are counted where valgrind is.
scale items="10000000":
    cargo build --profile measure -p millpond-testkit --bin scale
    rm -rf target/scale && mkdir target/scale
    target/measure/scale target/scale {{items}}; code=$?; rm -rf target/scale; exit $code

# Reserving a cold backlog of 4 KiB items beside `dd bs=1M` of equally cold files, in one run.
cold-read items="200000":
    cargo build --profile measure -p millpond-testkit --bin cold-read
    rm -rf target/cold-read && mkdir target/cold-read
    target/measure/cold-read target/cold-read {{items}}; code=$?; rm -rf target/cold-read; exit $code
