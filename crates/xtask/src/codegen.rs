//! Files written from the table of error codes, so that Rust, TypeScript and the documentation cannot drift apart.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use millpond::ErrorCode;

/// Where the formatter of the TypeScript sources breaks a line.
const WIDTH: usize = 120;

/// Writes the generated files.
///
/// # Errors
/// When a file cannot be written.
pub fn write(root: &Path) -> io::Result<()> {
    for (path, text) in generated() {
        fs::write(root.join(path), text)?;
    }
    Ok(())
}

/// Compares the generated files with what [`write()`] would write.
///
/// # Errors
/// When one of them differs or cannot be read; the message names it.
pub fn check(root: &Path) -> io::Result<()> {
    for (path, text) in generated() {
        let found = fs::read_to_string(root.join(path))
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        if found != text {
            return Err(io::Error::other(format!("{path} is not up to date: run `cargo xtask codegen`")));
        }
    }
    Ok(())
}

fn generated() -> [(&'static str, String); 2] {
    [("src-ts/errors.generated.ts", typescript()), ("docs/errors.md", markdown())]
}

fn typescript() -> String {
    let mut text = String::from(
        "// Written by `cargo xtask codegen` from crates/millpond/src/code.rs. Do not edit.\n\n\
         /** Every error code: whether the same call may succeed later, when it is raised, what to do. */\n\
         export const errorTable = {\n",
    );
    for code in ErrorCode::ALL {
        let _ = writeln!(text, "  {code}: {{");
        let _ = writeln!(text, "    retryable: {},", code.is_retryable());
        property(&mut text, "when", code.when());
        property(&mut text, "remedy", code.remedy());
        text.push_str("  },\n");
    }
    text.push_str(
        "} as const\n\n/** A stable error code. Strings are never reused. */\n\
         export type ErrorCode = keyof typeof errorTable\n",
    );
    text
}

/// One string property, broken and quoted as the formatter would.
fn property(text: &mut String, name: &str, value: &str) {
    let escaped = value.replace('\\', "\\\\");
    let literal = if value.contains('\'') && !value.contains('"') {
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", escaped.replace('\'', "\\'"))
    };
    let line = format!("    {name}: {literal},");
    if line.len() <= WIDTH {
        let _ = writeln!(text, "{line}");
    } else {
        let _ = writeln!(text, "    {name}:\n      {literal},");
    }
}

fn markdown() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         <!-- Written by `cargo xtask codegen` from crates/millpond/src/code.rs. Do not edit. -->\n\n\
         Every failure carries one of these codes, the same in Rust (`error.code()`), and in TypeScript\n\
         (`MillpondError.code`). Codes are stable: a string is never given a second meaning. Plain misuse from\n\
         TypeScript (a wrong type, an id that is no safe integer) is a `TypeError` or `RangeError` instead.\n\n\
         `retryable` means that the same call may succeed later without a change by the caller.\n\n\
         Every failure also has an `outcome`. `not-done`: nothing was stored, removed or delivered. `unknown`: the\n\
         failure came after writing had begun, so the operation may have happened; repeating a push may deliver it\n\
         twice.\n\n\
         | code | retryable | when | what to do |\n\
         | --- | --- | --- | --- |\n",
    );
    for code in ErrorCode::ALL {
        let retryable = if code.is_retryable() { "yes" } else { "no" };
        let _ = writeln!(text, "| `{code}` | {retryable} | {} | {} |", code.when(), code.remedy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_the_formatter_would() {
        let mut text = String::new();
        property(&mut text, "when", "the disk's");
        property(&mut text, "when", "plain");
        property(&mut text, "when", &"long ".repeat(WIDTH / 5));
        assert!(
            text.starts_with("    when: \"the disk's\",\n    when: 'plain',\n    when:\n      'long "),
            "{text}"
        );
    }

    #[test]
    fn every_code_has_one_row_in_each_file() {
        for (path, text) in generated() {
            for code in ErrorCode::ALL {
                assert_eq!(
                    text.matches(&format!("{code}`")).count() + text.matches(&format!("{code}:")).count(),
                    1,
                    "{path} {code}"
                );
            }
        }
    }
}
