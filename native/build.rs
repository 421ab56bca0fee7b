//! Bakes in a digest of the sources, so that a library that is older than they are is not taken for them.
use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let mut sources: Vec<_> = fs::read_dir(here.join("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.sort();
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325; // FNV-1a, as native/digest.py has it
    for source in sources {
        for byte in fs::read(source).unwrap() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=SYNDICATE_SOURCES={digest:016x}");
}
