//! Chooses the proxy for an address, from the usual variables of the environment.

use std::net::IpAddr;

/// Returns true if a variable names a proxy, or hosts that are reached without one.
pub fn is_proxy(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_PROXY")
}

/// Returns the proxy for an address, from the usual variables.
pub fn proxy_for<'a>(url: &str, get: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or(six),
        None => authority.split(':').next().unwrap_or(authority),
    };
    let host = host.to_ascii_lowercase();
    let here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let names = if scheme == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let all = ["ALL_PROXY", "all_proxy"];
    let exempt = ["NO_PROXY", "no_proxy"].iter().find_map(|name| get(name)).unwrap_or_default();
    if here || exempt.split(',').any(|entry| names_host(entry.trim(), &host)) {
        return None;
    }
    names.iter().chain(&all).find_map(|name| get(name)).map(str::to_owned)
}

/// Returns true if an entry of `NO_PROXY` names a host: `*`, the host itself, a domain above it, or a range of addresses
/// (`10.0.0.0/8`). The host is in lower case.
fn names_host(entry: &str, host: &str) -> bool {
    if let (Some((network, bits)), Ok(address)) = (entry.split_once('/'), host.parse()) {
        return is_in(network, bits, address);
    }
    let name = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
    let is_above = || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
    name == "*" || (!name.is_empty() && (host == name || is_above()))
}

/// Returns true if the first bits of an address are those of a network.
fn is_in(network: &str, bits: &str, address: IpAddr) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differs = u32::from(network) ^ u32::from(address);
            bits <= u32::BITS && differs.checked_shr(u32::BITS - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differs = u128::from(network) ^ u128::from(address);
            bits <= u128::BITS && differs.checked_shr(u128::BITS - bits).unwrap_or(0) == 0
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_proxy_are_named_in_any_case_and_by_ranges() {
        let proxy = |url: &str, exempt| {
            let get = |name: &str| match name {
                "NO_PROXY" => Some(exempt),
                "ALL_PROXY" => Some("http://p:1"),
                _ => None,
            };
            proxy_for(url, get).is_some()
        };
        for (url, exempt, has_proxy) in [
            ("http://example.com", "Example.COM", false),
            ("http://EXAMPLE.com/x", "example.com", false),
            ("http://a.example.com", ".Example.com", false),
            ("http://example.com", "*.example.com", false),
            ("http://myexample.com", "example.com", true),
            ("http://example.com", "", true),
            ("http://example.com", "*", false),
            ("http://LOCALHOST:1", "", false),
            ("http://host#@x", "host", false),
            ("http://10.1.2.3:80", "a, 10.0.0.0/8", false),
            ("http://11.1.2.3", "10.0.0.0/8", true),
            ("http://192.168.7.1", "192.168.7.0/31", false),
            ("http://192.168.7.2", "192.168.7.0/31", true),
            ("http://11.1.2.3", "0.0.0.0/0", false),
            ("http://10.1.2.3", "10.0.0.0/33", true),
            ("http://10.1.2.3", "fd00::/8", true),
            ("http://[fd00::7]:80/x", "fd00::/8", false),
            ("http://[fe00::7]", "fd00::/8", true),
            ("http://10.1.2.3", "10.1.2.3", false),
        ] {
            assert_eq!(proxy(url, exempt), has_proxy, "{url} {exempt}");
        }
    }
}
