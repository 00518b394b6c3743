//! Sessions of real agents that checks left behind: evaluated again, each tells the same.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use evals::internal::conformance::evaluate::{About, evaluate};
use evals::internal::conformance::observed::Observed;
use evals::internal::conformance::probes::Probe;
use evals::internal::conformance::{ModelSource, Outcome};
use evals::internal::ids::TrialRecord;
use evals::internal::result::TrialResult;
use evals::internal::sandbox;
use evals::internal::wire::{Reader, WireLine};

fn lines(path: &Path) -> Vec<WireLine> {
    let mut reader = Reader::new(BufReader::new(File::open(path).unwrap()));
    std::iter::from_fn(|| reader.next_line().unwrap()).collect()
}

fn no_result(harness: &str) -> TrialResult {
    let trial = TrialRecord {
        case: "session".into(),
        harness: harness.into(),
        model: None,
        arm: "default".into(),
        trial: 1,
        skip: None,
        failed_in: None,
        sandbox: sandbox::Kind::None,
    };
    TrialResult::skipped(&trial, "recorded")
}

#[test]
fn recorded_checks_are_judged_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/checks");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = String::new();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap().strip_suffix(".wire.jsonl").unwrap();
        let manifest = evals::internal::harness::built_in::named(name).unwrap();
        let session = Observed::new(Probe::Session, manifest, lines(path), no_result(name));
        let about = About { manifest, model: ModelSource::None, printed: None, not_started: None };
        let evaluation = evaluate(&about, &[session]);
        writeln!(all, "{name} {}", evaluation.version.as_deref().unwrap_or("?")).unwrap();
        for item in
            evaluation.items.iter().filter(|item| item.outcome != Outcome::NotChecked || !item.evidence.is_empty())
        {
            let places: Vec<String> = item.evidence.iter().map(|at| at.line.to_string()).collect();
            writeln!(all, "  {}: {}: {} [{}]", item.item.word(), item.outcome.word(), item.text, places.join(" "))
                .unwrap();
        }
        for odd in &evaluation.oddities {
            writeln!(all, "  odd {} ×{}", odd.code, odd.count).unwrap();
        }
        assert_eq!(evaluation.tier, manifest.tier, "{name}");
        // What a manifest says was seen is what its recording shows, where the agent tells its version there.
        if let Some(version) = evaluation.version {
            let verified = &manifest.verified.last().unwrap().version;
            assert!(version.starts_with(verified.as_str()), "{name}: {version} is not {verified}");
        }
    }
    assert!(files.len() >= 7);
    insta::assert_snapshot!("recorded_checks", all);
}
