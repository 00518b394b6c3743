//! A folder and changes to it, with every kind of change that a patch can describe, for tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Makes the folder before the changes.
pub fn before(dir: &Path) {
    fs::write(dir.join("text"), "one\ntwo\nthree\n").unwrap();
    fs::write(dir.join("no-end"), "a\nb").unwrap();
    fs::write(dir.join("gone"), "bye\n").unwrap();
    fs::write(dir.join("empty-gone"), "").unwrap();
    fs::write(dir.join("binary"), [0u8, 159, 146, 150, 10, 0]).unwrap();
    fs::write(dir.join("binary-gone"), [0u8; 3000]).unwrap();
    fs::write(dir.join("mode"), "#!/bin/sh\n").unwrap();
    fs::write(dir.join("odd \"name\"\n\u{e9}"), "x\n").unwrap();
    fs::write(dir.join("to-link"), "text\n").unwrap();
    symlink("text", dir.join("link")).unwrap();
}

/// Changes the folder: creates three files, deletes three, changes seven.
pub fn after(dir: &Path) {
    fs::write(dir.join("text"), "one\n2\nthree\nfour\n").unwrap();
    fs::write(dir.join("no-end"), "a\nc").unwrap();
    fs::remove_file(dir.join("gone")).unwrap();
    fs::remove_file(dir.join("empty-gone")).unwrap();
    fs::write(dir.join("binary"), (0..=255u8).cycle().take(5000).collect::<Vec<_>>()).unwrap();
    fs::remove_file(dir.join("binary-gone")).unwrap();
    fs::set_permissions(dir.join("mode"), Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("odd \"name\"\n\u{e9}"), "y\n").unwrap();
    fs::remove_file(dir.join("to-link")).unwrap();
    symlink("mode", dir.join("to-link")).unwrap();
    fs::remove_file(dir.join("link")).unwrap();
    symlink("no-end", dir.join("link")).unwrap();
    fs::create_dir_all(dir.join("new/deep")).unwrap();
    fs::write(dir.join("new/deep/file"), "new\n").unwrap();
    fs::write(dir.join("new/empty"), "").unwrap();
    fs::write(dir.join("new/binary"), [0u8, 1, 2]).unwrap();
}
