//! The picture of a terminal in the README shows what the program prints today. That of a page is compared in a browser
//! (`tests/agents/browser.rs`).

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::project::{Project, copy};
use crate::tutorial::masked;

/// The texts of a picture, line by line.
fn texts(svg: &str) -> Vec<String> {
    let line = Regex::new(r"(?m)^<text [^>]*>(.*)</text>$").unwrap();
    let tag = Regex::new(r"<[^>]*>").unwrap();
    let plain = |text: &str| tag.replace_all(text, "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    line.captures_iter(svg).map(|found| masked(&plain(&found[1]))).collect()
}

/// `docs/pictures/make` makes the picture anew.
#[test]
fn the_picture_of_a_terminal_is_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let texts = texts(&fs::read_to_string(root.join("docs/pictures/terminal.svg")).unwrap());
    let command = texts[0].strip_prefix("$ evals ").unwrap();
    let args: Vec<&str> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
    let project = Project::bundled();
    copy(&root.join("examples"), &project.path("examples"));
    let ran = project.evals(&args).exits(1);
    let printed: Vec<String> = ran.out.lines().map(masked).filter(|line| !line.is_empty()).collect();
    assert_eq!(texts[1..], printed, "run docs/pictures/make");
}

/// The text beside the picture of the page, which is compared in a browser, was made together with the picture.
#[test]
fn the_picture_of_a_page_has_its_text_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    let mut checksum = flate2::Crc::new();
    checksum.update(&fs::read(folder.join("page.png")).unwrap());
    let text = fs::read_to_string(folder.join("page.txt")).unwrap();
    let first = format!("The text of page.png, CRC-32 {:08x}:", checksum.sum());
    assert_eq!(text.lines().next(), Some(first.as_str()), "run docs/pictures/make");
}

#[test]
fn the_pictures_are_small() {
    for name in ["terminal.svg", "page.png"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures").join(name);
        let bytes = fs::metadata(&path).unwrap().len();
        assert!((1000..200_000).contains(&bytes), "{name} has {bytes} bytes");
    }
}
