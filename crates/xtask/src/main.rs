//! `cargo xtask <task>`.
#![expect(clippy::print_stderr, reason = "a command line program says what went wrong")]

use std::process::ExitCode;

use xtask::{codegen, raw_loop, tree};

const USAGE: &str = "usage: cargo xtask <task>

  codegen            write src-ts/errors.generated.ts and docs/errors.md from the table of error codes
  raw-loop FILE      zero-fill FILE, then time write + fdatasync: one `BYTES SECONDS` a line on stdin,
                     one JSON line on stdout for each
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["codegen"] => codegen::write(&tree::root()),
        ["raw-loop", file] => {
            raw_loop::serve(file.as_ref(), std::io::stdin().lock(), std::io::stdout().lock())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}
