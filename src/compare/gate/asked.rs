//! The gates requested on the command line: `--gate`, `--gate margin=0.05`, `--gate completed=0.9`.

use std::str::FromStr;

use crate::yaml::words;

/// The default of `--gate completed=`: the share of planned trials that must be completed.
const COMPLETED: f64 = 0.9;
/// The default of `--gate cases=`: the share of the old side's cases that must have a score in the new one.
const CASES: f64 = 1.0;

/// The name of the gate that a bare `--gate` requests.
pub const NO_REGRESSIONS: &str = "no-regressions";

/// The names that `--gate` accepts.
const KEYS: [&str; 4] = ["margin", "completed", "cases", NO_REGRESSIONS];

/// A value of `--gate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// No critical or regression case that passed before fails now, and no case that passed all its trials before passes
    /// none now.
    NoRegressions,
    /// The new arm is not worse by more than this.
    Margin(f64),
    /// At least this share of each side's planned trials is completed.
    Completed(f64),
    /// At least this share of the old side's cases has a score in the new one.
    Cases(f64),
}

impl FromStr for Demand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_REGRESSIONS {
            return Ok(Self::NoRegressions);
        }
        let Some((key, figure)) = text.split_once('=') else {
            return Err(format!(
                "{}; --gate without a value goes after the runs or before another option",
                wrong(text)
            ));
        };
        let number = || figure.parse::<f64>().map_err(|_| wrong(text));
        match key {
            // A margin of 0 is refused, because no number of cases would ever suffice to pass.
            "margin" => match number()? {
                margin if margin > 0.0 && margin < 1.0 => Ok(Self::Margin(margin)),
                _ => Err(format!("{}; it is between 0 and 1", wrong(text))),
            },
            "completed" => within(number()?, text).map(Self::Completed),
            "cases" => within(number()?, text).map(Self::Cases),
            _ => Err(wrong(text)),
        }
    }
}

fn wrong(text: &str) -> String {
    let (key, figure) = text.split_once('=').map_or((text, ""), |(key, figure)| (key, figure));
    let is_known = KEYS.contains(&key);
    let near = words::nearest(key, &KEYS).filter(|_| !is_known);
    let near = near.map(|near| match near {
        NO_REGRESSIONS => format!("did you mean `{near}`? Or "),
        _ => format!("did you mean `{near}={}`? Or ", if figure.is_empty() { "NUMBER" } else { figure }),
    });
    format!(
        "`{text}` is not a gate; {}write margin=NUMBER, such as margin=0.05, completed=SHARE, cases=SHARE or {NO_REGRESSIONS}",
        near.unwrap_or_default()
    )
}

fn within(share: f64, text: &str) -> Result<f64, String> {
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("{}; a share is between 0 and 1", wrong(text))) }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GateRequest {
    /// No critical or regression case that passed before fails now, and no case that passed all its trials before passes
    /// none now.
    pub no_regressions: bool,
    /// The new arm is not worse by more than this.
    pub margin: Option<f64>,
    /// The new arm scores at least this.
    pub fail_under: Option<f64>,
    /// The new arm costs at most this, in US dollars.
    pub max_cost: Option<f64>,
    completed: Option<f64>,
    cases: Option<f64>,
}

impl GateRequest {
    /// Collects the values of `--gate`, `--fail-under` and `--max-cost`. If the values only set the required
    /// evidence, `no-regressions` is added.
    ///
    /// # Errors
    /// Returns an error if a gate is given twice.
    pub fn of(demands: &[Demand], fail_under: Option<f64>, max_cost: Option<f64>) -> Result<Self, String> {
        let mut asked = Self { fail_under, max_cost, ..Self::default() };
        for demand in demands {
            let (place, figure, key) = match demand {
                Demand::NoRegressions => {
                    asked.no_regressions = true;
                    continue;
                }
                Demand::Margin(figure) => (&mut asked.margin, figure, "margin"),
                Demand::Completed(figure) => (&mut asked.completed, figure, "completed"),
                Demand::Cases(figure) => (&mut asked.cases, figure, "cases"),
            };
            if place.replace(*figure).is_some() {
                return Err(format!("--gate {key} is given twice; keep one of them"));
            }
        }
        let of_result = asked.margin.is_some() || fail_under.is_some() || max_cost.is_some();
        asked.no_regressions |= !demands.is_empty() && !of_result;
        Ok(asked)
    }

    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the share of each side's planned trials that must be completed.
    pub fn completed(&self) -> f64 {
        self.completed.unwrap_or(COMPLETED)
    }

    /// Returns the share of the old side's cases that must have a score in the new one.
    pub fn cases(&self) -> f64 {
        self.cases.unwrap_or(CASES)
    }
}

/// Returns the default share of a run's planned trials that the run's own gates require to be completed.
pub fn usual_completed() -> f64 {
    COMPLETED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(texts: &[&str]) -> Result<GateRequest, String> {
        let demands: Result<Vec<Demand>, String> = texts.iter().map(|text| text.parse()).collect();
        GateRequest::of(&demands?, None, None)
    }

    #[test]
    fn what_asks_for_no_result_asks_for_no_regressions() {
        for (texts, no_regressions) in [
            (&[][..], false),
            (&["no-regressions"], true),
            (&["margin=0.05"], false),
            (&["margin=0.05", "no-regressions"], true),
            (&["completed=0.5"], true),
            (&["cases=0.5", "completed=0.5"], true),
            (&["cases=0.5", "margin=0.1"], false),
        ] {
            assert_eq!(asked(texts).unwrap().no_regressions, no_regressions, "{texts:?}");
        }
        assert_eq!((asked(&[]).unwrap().completed(), asked(&["completed=0.5"]).unwrap().completed()), (0.9, 0.5));
        assert_eq!((asked(&[]).unwrap().cases(), asked(&["cases=0"]).unwrap().cases()), (1.0, 0.0));
    }

    #[test]
    fn what_is_no_gate_is_refused() {
        for text in [
            "",
            "0.05",
            "margin",
            "margin=",
            "margin=0",
            "margin=NaN",
            "completed=90",
            "completed=-1",
            "cases=2",
            "x=1",
        ] {
            assert!(text.parse::<Demand>().is_err(), "{text}");
        }
        for (text, near) in [
            ("no-regression", "did you mean `no-regressions`?"),
            ("margn=0.05", "did you mean `margin=0.05`?"),
            ("complete", "did you mean `completed=NUMBER`?"),
        ] {
            let error = text.parse::<Demand>().unwrap_err();
            assert!(error.contains(near), "{error}");
        }
        assert!(!"cases=2".parse::<Demand>().unwrap_err().contains("did you mean"));
        assert!(asked(&["margin=0.1", "margin=0.2"]).unwrap_err().contains("given twice"));
    }
}
