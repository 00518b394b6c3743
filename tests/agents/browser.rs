//! The HTML report in a pinned headless Chromium: what a reader does with it, its accessibility, hostile texts; and the
//! alignment of two trials, which the page's script computes as the engine does; and the picture in the README.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use evals::internal::report::html::shapes;
use evals::internal::snapshot::{Body, Call, Item, Shape, align};
use evals::trace::ToolKind;
use serde_json::{Value, json};

use crate::installed::{Agent, Check};
use crate::pages;
use crate::project::{Project, copy};
use crate::served::{Going, Served};

static BROWSER: Agent = Agent {
    name: "Chromium",
    part: "browser/npm",
    pins: "browser/package-lock.json",
    program: "node_modules/puppeteer-core/package.json",
};

/// The checks.
pub static CHECKS: [Check; 5] = [
    Check { agent: &BROWSER, what: "a reader uses the page", run: a_reader_uses_the_page },
    Check { agent: &BROWSER, what: "a reader follows a run", run: a_reader_follows_a_run },
    Check { agent: &BROWSER, what: "a reader reads the history", run: a_reader_reads_the_history },
    Check { agent: &BROWSER, what: "trials are aligned as snapshots are", run: trials_are_aligned_as_snapshots_are },
    Check { agent: &BROWSER, what: "the picture is what the page shows", run: the_picture_is_what_the_page_shows },
];

fn node(script: &str, args: &[impl AsRef<OsStr>]) {
    let done = Command::new("node").arg(format!("tests/agents/browser/{script}")).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{script}:\n{}\n{}", text(&done.stdout), text(&done.stderr));
}

fn a_reader_uses_the_page(_: &Agent, _: &Path) {
    let project = pages::run();
    node("page.mjs", &[&project.path("out.html")]);
}

fn a_reader_follows_a_run(_: &Agent, _: &Path) {
    let project = Project::on_disk();
    let going = Going::start(&project, 2, "live");
    let served = Served::start(&project, &[]);
    let run = project.runs().remove(0);
    let go = |number: u32| project.path(&format!("go-{number}")).display().to_string();
    node("view.mjs", &[&served.url, &run, &go(1), &go(2)]);
    assert_eq!(going.end(), 0);
}

fn a_reader_reads_the_history(_: &Agent, _: &Path) {
    let project = pages::history();
    project.evals(&["history", "--format", "html", "-o", "history.html"]).exits(0);
    node("history.mjs", &[&project.path("history.html")]);
}

/// `docs/pictures/make` makes the picture and its text anew.
fn the_picture_is_what_the_page_shows(_: &Agent, _: &Path) {
    let project = Project::bundled();
    copy(Path::new("examples"), &project.path("examples"));
    let run =
        ["run", "cases/", "--case", "safety/respect*", "--harness", "demo", "--harness", "examples/careless.yaml"];
    project.evals(&[&run[..], &["--reporter", "html=page.html"]].concat()).exits(1);
    let shown = project.path("page.txt");
    node("../../../docs/pictures/page.mjs", &[&project.path("page.html"), &shown]);
    let pictured = fs::read_to_string("docs/pictures/page.txt").unwrap();
    let (_, pictured) = pictured.split_once('\n').unwrap();
    assert_eq!(pictured, fs::read_to_string(shown).unwrap(), "run docs/pictures/make");
}

/// A small generator: the same lists every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn call(&mut self, depth: u32) -> Call {
        let kinds = [ToolKind::Read, ToolKind::Edit, ToolKind::Execute];
        let details = (0..self.below(4)).map(|n| (format!("key{n}"), format!("value{}", self.below(3)))).collect();
        let inner =
            if depth == 0 && self.below(6) == 0 { (0..self.below(4)).map(|_| self.item(1)).collect() } else { vec![] };
        let name = (self.below(3) > 0).then(|| format!("tool{}", self.below(2)));
        Call { kind: kinds[self.below(3) as usize], name, details, inner, events: vec![self.below(99)] }
    }

    fn item(&mut self, depth: u32) -> Item {
        let text = format!("text{}", self.below(4));
        let body = match self.below(8) {
            0 => Body::User(Some(text)),
            1 => Body::Says(text),
            2 => Body::Thinks(text),
            3 => Body::Plan(vec![(text, "pending".to_owned())]),
            _ => Body::Step((0..=self.below(3)).map(|_| self.call(depth)).collect()),
        };
        Item { body, events: vec![self.below(99)] }
    }

    fn items(&mut self, count: u64) -> Vec<Item> {
        (0..count).map(|_| self.item(0)).collect()
    }

    /// The list with items changed, removed and added.
    fn changed(&mut self, items: &[Item]) -> Vec<Item> {
        let mut changed = Vec::new();
        for item in items {
            match self.below(6) {
                0 => {}
                1 => changed.push(self.item(0)),
                2 => changed.extend([item.clone(), self.item(0)]),
                _ => changed.push(item.clone()),
            }
        }
        changed
    }
}

fn trials_are_aligned_as_snapshots_are(_: &Agent, _: &Path) {
    let mut chance = Chance(7);
    let mut lists: Vec<(Vec<Item>, Vec<Item>)> = Vec::new();
    for size in 0..120 {
        let old = chance.items(size % 40);
        let new = if size % 3 == 0 { chance.items(size % 37) } else { chance.changed(&old) };
        lists.push((old, new));
    }
    // Too long to look for similar items.
    let old = chance.items(1100);
    let mut new = old.clone();
    new.remove(500);
    new.insert(20, chance.item(0));
    new.insert(900, chance.item(0));
    new[0] = chance.item(0);
    new[1099] = chance.item(0);
    lists.push((old, new));
    let shape = |items: &[Item]| shapes::of_shape(&Shape { items: items.to_vec(), ..Shape::default() });
    let rows: Vec<Value> = lists
        .iter()
        .map(|(old, new)| json!({"old": shape(old), "new": shape(new), "pairs": align::items(old, new)}))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lists.json");
    fs::write(&file, serde_json::to_vec(&rows).unwrap()).unwrap();
    node("align.mjs", &[&file]);
}
