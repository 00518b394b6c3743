//! Chooses the proxy for an address, from the usual variables of the environment.

/// Returns true if a variable names a proxy, or hosts that are reached without one.
pub fn is_proxy(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_PROXY")
}

/// Returns the proxy for an address, from the usual variables.
pub fn proxy_for<'a>(url: &str, get: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or(six),
        None => authority.split(':').next().unwrap_or(authority),
    };
    let here = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    let names = if scheme == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let all = ["ALL_PROXY", "all_proxy"];
    let exempt = ["NO_PROXY", "no_proxy"].iter().find_map(|name| get(name)).unwrap_or_default();
    let is_exempt =
        exempt.split(',').map(|part| part.trim().trim_start_matches("*.").trim_start_matches('.')).any(|part| {
            part == "*"
                || (!part.is_empty() && (host == part || host.strip_suffix(part).is_some_and(|it| it.ends_with('.'))))
        });
    if here || is_exempt {
        return None;
    }
    names.iter().chain(&all).find_map(|name| get(name)).map(str::to_owned)
}
