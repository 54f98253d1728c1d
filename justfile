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

# Every interleaving of the models of crates/millpond/tests/loom, one process each; prints the executions.
loom:
    RUSTFLAGS="--cfg loom" cargo test --release -p millpond --test loom --target-dir target/loom \
        --config 'profile.release.lto="off"' --config profile.release.codegen-units=16 --no-run
    RUSTFLAGS="--cfg loom" cargo test --release -p millpond --test loom --target-dir target/loom \
        --config 'profile.release.lto="off"' --config profile.release.codegen-units=16 -q -- --nocapture --test-threads=1
