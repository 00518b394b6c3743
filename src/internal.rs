//! Re-exports for `evals` and its tests. The library's interface does not include them.

pub mod adapter {
    pub use crate::adapter::{Translation, import, seen};
    pub mod json_stream {
        pub use crate::adapter::json_stream::Knowing;
    }
    pub mod replay {
        pub use crate::adapter::replay::*;
    }
}

pub mod case {
    pub use crate::case::{
        Case, CaseKind, GraderFolder, GraderPlace, GradersHome, LoadContext, LoadError, Oracle, Pass, WorkspaceSource,
        check_harnesses, load, load_all,
    };
}

pub use crate::cli::main;

pub mod compare {
    pub mod effect {
        pub use crate::compare::effect::{EffectVerdict, effect};
    }
    pub mod gate {
        pub use crate::compare::gate::{Gate, Kind};
    }
    pub mod join {
        pub use crate::compare::join::join;
    }
    pub mod non_inferiority {
        pub use crate::compare::non_inferiority::not_worse_than;
    }
    pub mod power {
        pub use crate::compare::power::power_of;
    }
    pub mod sequential {
        pub use crate::compare::sequential::{LOOKS, level};
    }
    pub mod side {
        pub use crate::compare::side::{Arm, CaseFacts, Side};
    }
}

pub mod conformance {
    pub use crate::conformance::{ModelSource, Outcome};
    pub mod evaluate {
        pub use crate::conformance::evaluate::{About, evaluate};
    }
    pub mod observed {
        pub use crate::conformance::observed::Observed;
    }
    pub mod probes {
        pub use crate::conformance::probes::Probe;
    }
}

pub mod convert {
    pub use crate::convert::{Choices, Format, write};
}

pub mod demo {
    pub mod script {
        pub use crate::demo::script::Script;
    }
}

pub mod embedded {
    pub use crate::embedded::harnesses;
}

pub mod fold {
    pub use crate::fold::CaseTrials;
}

pub mod gateway {
    pub use crate::gateway::{Api, Reply};
    pub mod script {
        pub use crate::gateway::script::{Stop, Usage};
    }
}

pub mod grader {
    pub use crate::grader::{
        ALIASES, Evidence, Grader, GraderEntry, GraderError, Grading, Kind, Library, NamedGrader, expand, refuse_empty,
    };
}

pub mod harness {
    pub use crate::harness::{Adapter, Manifest, Tier, built_in::built_in};
    pub mod built_in {
        pub use crate::harness::built_in::named;
    }
    pub mod catalog {
        pub use crate::harness::catalog::Catalog;
    }
    pub mod login {
        pub use crate::harness::login::Login;
    }
    pub mod stream {
        pub mod compile {
            pub use crate::harness::stream::compile::compile;
        }
    }
}

pub mod ids {
    pub use crate::ids::{TrialId, TrialRecord, by_case_id};
}

pub mod interaction {
    pub use crate::interaction::{Answer, DefaultAnswer, Interaction, PolicyFolder};
}

pub mod judge {
    pub use crate::judge::Judges;
}

pub mod limits {
    pub use crate::limits::{Limits, OnLimit};
}

pub mod report {
    pub use crate::report::{
        Report, RunContext, Summary, benchmark, decisions, escape, exit_code, run_page, show, trials_named,
    };
    pub mod commands {
        pub use crate::report::commands::{again, show};
    }
    pub mod format {
        pub use crate::report::format::{Format, write};
    }
    pub mod html {
        pub use crate::report::html::shapes;
    }
    pub mod list {
        pub use crate::report::list::{CaseRow, HarnessRow, ListForm, RunRow, cases, harnesses, named, runs};
    }
    pub mod page {
        pub use crate::report::page::markdown;
    }
    pub mod progress {
        pub use crate::report::progress::{Live, LiveConditions, Plain, Size, Watch};
    }
    pub mod text {
        pub use crate::report::text::{Look, width_of};
    }
}

pub mod result {
    pub use crate::result::{ErrorRecord, Metrics, StopRecord, TrialResult, Warning};
}

pub mod run {
    pub use crate::run::{CaseRecord, HarnessRecord, RunError, RunRecord, read_json};
    pub mod events {
        pub use crate::run::events::RunEvent;
    }
    pub mod folder {
        pub use crate::run::folder::RunFolder;
    }
    pub mod journal {
        pub use crate::run::journal::{Journal, JournalEvent, JournalLine, TrialState, read};
    }
}

pub mod runner {
    pub use crate::runner::waiting;
}

pub mod sandbox {
    pub use crate::sandbox::Kind;
    pub mod bwrap {
        pub use crate::sandbox::bwrap::works;
    }
}

pub mod schema {
    pub use crate::schema::{KINDS, schema};
}

pub mod secrets {
    pub use crate::secrets::looks_secret;
}

pub mod shell {
    pub use crate::shell::Shell;
}

pub mod skill {
    pub use crate::skill::{folders, read};
}

pub mod snapshot {
    pub use crate::snapshot::{Body, Call, Item, Shape, align, form};
    pub mod compare {
        pub use crate::ids::SnapshotCellId;
        pub use crate::snapshot::compare::{Cell, Compared, State};
    }
    pub mod diff {
        pub use crate::snapshot::diff::{Sign, differences};
    }
    pub mod normalise {
        pub use crate::snapshot::normalise::Watching;
    }
    pub mod set {
        pub use crate::snapshot::set::{Accepted, AcceptedShape, Several};
    }
    pub mod settings {
        pub use crate::snapshot::settings::{Normalise, SnapshotSettings, SnapshotText};
    }
}

pub mod values {
    pub use crate::values::Fraction;
}

pub mod verdict {
    pub use crate::verdict::{PassTrials, Verdict};
}

pub mod wire {
    pub use crate::wire::{Dir, EngineLine, Reader, WireLine};
}

pub mod workspace {
    pub mod change {
        pub use crate::workspace::change::{BesideChange, BesideKind, Change, UnnamedBeside};
    }
}

pub mod yaml {
    pub use crate::yaml::{parse, write};
}
