//! The tokens of services that are recognised by their prefix alone.

/// Letters and digits.
const WORD: &str = "[A-Za-z0-9]";
const LOWER: &str = "[a-z0-9]";
const UPPER: &str = "[A-Z0-9]";
/// The characters of base64 in URLs.
const URL_SAFE: &str = "[A-Za-z0-9_-]";
/// The characters of base64, up to the padding.
const BASE64: &str = "[A-Za-z0-9+/]";
/// The characters of base64 in URLs, with dots between parts.
const PARTS: &str = "[A-Za-z0-9_.=-]";
/// The characters of base64 in URLs, with the padding.
const PADDED: &str = "[A-Za-z0-9_=-]";
const HEX: &str = "[a-fA-F0-9]";

/// The prefix of each kind of token, the characters after the prefix, and their minimum number. The number is at most the
/// one that the service issues, so that the tokens of a later version are found, too.
pub(super) const TOKENS: [(&str, &str, usize); 117] = [
    // Models.
    ("api_org_", WORD, 30),
    ("AQ.Ab", URL_SAFE, 40),
    ("crsr_", HEX, 40),
    ("csk-", LOWER, 40),
    ("e2b_", HEX, 40),
    ("fw_", WORD, 20),
    ("gsk_", WORD, 40),
    ("jina_", URL_SAFE, 40),
    ("lsv2_pt_", "[a-f0-9_]", 40),
    ("lsv2_sk_", "[a-f0-9_]", 40),
    ("nvapi-", URL_SAFE, 40),
    ("pcsk_", "[A-Za-z0-9_]", 40),
    ("pplx-", WORD, 40),
    ("r8_", WORD, 32),
    ("tgp_v1_", URL_SAFE, 40),
    ("tvly-", "[A-Za-z0-9-]", 28),
    ("xai-", WORD, 60),
    // Clouds and hosting.
    ("1//0", URL_SAFE, 40),
    ("ABSK", BASE64, 100),
    ("AKID", WORD, 32),
    ("bedrock-api-key-", BASE64, 40),
    ("cfat_", WORD, 40),
    ("cfk_", WORD, 40),
    ("cfut_", WORD, 40),
    ("dapi", HEX, 32),
    ("doo_v1_", HEX, 40),
    ("dop_v1_", HEX, 40),
    ("dor_v1_", HEX, 40),
    ("fm1a_", BASE64, 80),
    ("fm1r_", BASE64, 80),
    ("fm2_", BASE64, 80),
    ("fo1_", URL_SAFE, 40),
    ("FwoGZXIvYXdz", BASE64, 100),
    ("GOCSPX-", URL_SAFE, 24),
    ("HRKU-AA", URL_SAFE, 50),
    ("IQoJb3JpZ2luX2Vj", BASE64, 100),
    ("LTAI", WORD, 20),
    ("napi_", LOWER, 60),
    ("nfb_", WORD, 36),
    ("nfc_", WORD, 36),
    ("nfo_", WORD, 36),
    ("nfp_", WORD, 36),
    ("nfu_", WORD, 36),
    ("pscale_oauth_", PARTS, 32),
    ("pscale_pw_", PARTS, 32),
    ("pscale_tkn_", PARTS, 32),
    ("rnd_", WORD, 28),
    ("sb_secret_", URL_SAFE, 20),
    ("sbp_", LOWER, 40),
    ("sbp_oauth_", LOWER, 40),
    ("sbp_v0_", LOWER, 40),
    ("sha256~", URL_SAFE, 43),
    ("tskey-", "[A-Za-z0-9-]", 24),
    ("v1.0-", "[a-f0-9-]", 150),
    ("vca_", WORD, 24),
    ("vci_", WORD, 24),
    ("vck_", WORD, 24),
    ("vcp_", WORD, 24),
    ("vcr_", WORD, 24),
    ("vercel_blob_rw_", "[A-Za-z0-9_]", 30),
    ("ya29.", PARTS, 30),
    // Code, packages and deployment.
    ("AKCp", WORD, 69),
    ("ATATT3", PADDED, 60),
    ("ATBB", WORD, 32),
    ("ATCTT3", PADDED, 60),
    ("bkua_", HEX, 40),
    ("CCIPAT_", "[A-Za-z0-9_]", 40),
    ("CCIPRJ_", "[A-Za-z0-9_]", 40),
    ("CFPAT-", URL_SAFE, 40),
    ("cio", WORD, 32),
    ("CLOJARS_", LOWER, 60),
    ("dckr_oat_", URL_SAFE, 27),
    ("dckr_pat_", URL_SAFE, 27),
    ("hvb.", URL_SAFE, 100),
    ("hvr.", URL_SAFE, 24),
    ("hvs.", URL_SAFE, 24),
    ("oy2", LOWER, 43),
    ("pnu_", WORD, 36),
    ("pul-", HEX, 40),
    ("rubygems_", HEX, 48),
    ("sgp_", "(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]", 40),
    ("sqa_", HEX, 40),
    ("sqp_", HEX, 40),
    ("squ_", HEX, 40),
    // Work, payment, messages and monitoring.
    ("ddapp_", WORD, 32),
    ("dt0c01.", "[A-Z0-9.]", 80),
    ("eyJrIjoi", WORD, 70),
    ("figd_", URL_SAFE, 38),
    ("figu_", URL_SAFE, 38),
    ("glc_", BASE64, 32),
    ("glsa_", "[A-Za-z0-9_]", 32),
    ("lin_api_", WORD, 32),
    ("lin_oauth_", LOWER, 40),
    ("NRAK-", UPPER, 27),
    ("NRII-", URL_SAFE, 32),
    ("ntn_", WORD, 40),
    ("ops_eyJ", "[A-Za-z0-9+/_-]", 100),
    ("pat-eu1-", "[a-f0-9-]", 36),
    ("pat-na1-", "[a-f0-9-]", 36),
    ("phx_", WORD, 32),
    ("PMAK-", "[a-fA-F0-9-]", 50),
    ("PMAT-", UPPER, 26),
    ("rdme_", LOWER, 70),
    ("secret_", WORD, 43),
    ("shpat_", HEX, 32),
    ("shpca_", HEX, 32),
    ("shppa_", HEX, 32),
    ("shpss_", HEX, 32),
    ("sntryi_", HEX, 64),
    ("sntrys_", "[A-Za-z0-9+/=_-]", 40),
    ("sntryu_", HEX, 64),
    ("sq0atp-", URL_SAFE, 22),
    ("sq0csp-", URL_SAFE, 43),
    ("tfp_", "[A-Za-z0-9_.-]", 50),
    ("xapp-", "[A-Za-z0-9-]", 20),
    ("xkeysib-", "[A-Za-z0-9-]", 64),
    ("xsmtpsib-", "[A-Za-z0-9-]", 64),
];

/// Returns true if the tokens with these characters have letters of both cases.
pub(super) fn has_both_cases(characters: &str) -> bool {
    characters.contains("A-Z") && characters.contains("a-z")
}

/// Returns true if the text after a prefix is random, and not a name in code or of a file. Random text has both cases and
/// digits, or many capital letters. Without separators, some services issue letters of one case with many digits.
pub(super) fn is_random(token: &str) -> bool {
    let count = |test: fn(&u8) -> bool| token.bytes().filter(test).count();
    let (digits, upper) = (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase));
    let is_mixed = upper > 0 && count(u8::is_ascii_lowercase) > 0 && (digits > 1 || upper * 4 > token.len());
    let is_of_one_case = digits * 6 >= token.len() && count(u8::is_ascii_alphanumeric) == token.len();
    (is_mixed || is_of_one_case) && !is_words(token)
}

/// Returns true if the text after a prefix, whose letters have one case, is random.
pub(super) fn is_random_of_one_case(token: &str) -> bool {
    token.bytes().filter(u8::is_ascii_digit).count() > 1 && !is_words(token)
}

/// Returns true for short words that are joined, as in the name of a style or a package: `sk-toolbar-button-2`. Longer parts
/// may be random.
pub(super) fn is_short_words(token: &str) -> bool {
    let is_short = |part: &str| part.len() <= 15 && part.bytes().filter(u8::is_ascii_digit).count() <= 4;
    is_words(token) && token.split(['_', '-', '.']).all(is_short)
}

/// Returns true for words that are joined, as in `embeddings_v3_base` or `Release-Notes-2024`.
pub(super) fn is_words(token: &str) -> bool {
    let is_word = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let rest = letters.get(1..).unwrap_or_default();
        letters.chars().all(char::is_alphabetic)
            && (rest.chars().all(char::is_lowercase) || letters.chars().all(char::is_uppercase))
    };
    token.contains(['_', '-', '.']) && token.split(['_', '-', '.']).all(is_word)
}
