//! The flow-size distributions that come with Weft. `data/workloads/PROVENANCE.md` says where each
//! is from.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Distribution, TrafficError};

/// A built-in distribution: its name, title, source and the text of its file.
struct Builtin {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    csv: &'static str,
}

/// The entry of the file with this name.
macro_rules! builtin {
    ($name:literal, $title:literal, $source:literal) => {
        Builtin {
            name: $name,
            title: $title,
            source: $source,
            csv: include_str!(concat!("../../../data/workloads/", $name, ".csv")),
        }
    };
}

#[rustfmt::skip]
const BUILTINS: [Builtin; 24] = [
    builtin!("web-search", "Web search, as in DCTCP (linear from 0 bytes)",
        "datacenter/empirical-traffic-gen DCTCP_CDF; DCTCP, SIGCOMM 2010"),
    builtin!("web-search-pfabric", "Web search, pFabric lineage (in packets of 1,460 bytes)",
        "HKUST-SING/PIAS-NS2 CDF_dctcp.tcl"),
    builtin!("web-search-expresspass", "Web search, ExpressPass lineage",
        "kaist-ina/ns2-xpass workload_search.tcl; ExpressPass, SIGCOMM 2017"),
    builtin!("data-mining", "Data mining, as in VL2",
        "datacenter/empirical-traffic-gen VL2_CDF; VL2, SIGCOMM 2009"),
    builtin!("data-mining-pfabric", "Data mining, pFabric lineage (in packets of 1,460 bytes)",
        "HKUST-SING/PIAS-NS2 CDF_vl2.tcl"),
    builtin!("data-mining-expresspass", "Data mining, ExpressPass lineage",
        "kaist-ina/ns2-xpass workload_mining.tcl; ExpressPass, SIGCOMM 2017"),
    builtin!("enterprise-meet", "Enterprise, as in MEET (key-value sizes)",
        "datacenter/empirical-traffic-gen FB_CDF"),
    builtin!("enterprise", "Enterprise, as in CONGA",
        "jiaqing-phd/numfabric ENTERPRISE_CDF; NUMFabric, SIGCOMM 2016"),
    builtin!("cache-follower", "Facebook cache follower, ExpressPass lineage",
        "kaist-ina/ns2-xpass workload_cachefollower.tcl; Roy et al., SIGCOMM 2015"),
    builtin!("cache-follower-roy", "Facebook cache follower, digitised from Roy et al.",
        "PlatformLab/HomaSimulation Facebook_CacheFollowerDist_IntraCluster.txt"),
    builtin!("web-server", "Facebook web server, ExpressPass lineage",
        "kaist-ina/ns2-xpass workload_webserver.tcl; Roy et al., SIGCOMM 2015"),
    builtin!("web-server-roy", "Facebook web server, digitised from Roy et al.",
        "PlatformLab/HomaSimulation Facebook_WebServerDist_IntraCluster.txt"),
    builtin!("hadoop", "Facebook Hadoop, as in HPCC",
        "HPCC FbHdp_distribution.txt; HPCC, SIGCOMM 2019"),
    builtin!("hadoop-roy", "Facebook Hadoop, digitised from Roy et al. (longer tail)",
        "parsimon-eval hadoop-all.txt"),
    builtin!("ali-storage", "Alibaba storage, 2019",
        "HPCC AliStorage2019.txt"),
    builtin!("google-rpc", "Google RPCs, 2008",
        "conweave-ns3 GoogleRPC2008.txt"),
    builtin!("solar", "Alibaba Solar storage, 2022",
        "conweave-ns3 Solar2022.txt; Solar, SIGCOMM 2022"),
    builtin!("google-search-rpc", "Google search RPCs, as in Homa (W2)",
        "PlatformLab/HomaSimulation Google_SearchRPC.txt"),
    builtin!("memcached-etc", "Facebook memcached ETC, as in Homa (W1)",
        "PlatformLab/HomaSimulation FacebookKeyValue_Sampled.txt; Atikoglu et al., 2012"),
    builtin!("imc10", "Benson et al., IMC 2010, as in pHost",
        "NetSys/simulator CDF_aditya.txt; Benson et al., IMC 2010"),
    builtin!("ml-synthetic", "Machine learning transfers of 39 to 40 MB (synthetic)",
        "Usernamehaha2018/TianWu mix/ml.txt"),
    builtin!("data-mining-table", "Data mining, reconstructed from MaxPass Table 1",
        "bins 78/5/8/9 % and mean 7.41 MB of MaxPass Table 1"),
    builtin!("web-search-table", "Web search, reconstructed from MaxPass Table 2",
        "bins 15/38/17/30 % and mean 1.6 MB of MaxPass Table 2"),
    builtin!("cache-follower-table", "Cache follower, reconstructed from MaxPass Table 2",
        "bins 50/3/18/29 % and mean 701 KB of MaxPass Table 2"),
];

/// A built-in workload, as `weft workloads` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadInfo {
    /// The name to use in `traffic.workload`.
    pub name: &'static str,
    /// Title of the distribution, in a line.
    pub title: &'static str,
    /// Where the numbers come from.
    pub source: &'static str,
    /// Mean flow size in bytes, exact under linear interpolation.
    pub mean_bytes: f64,
    /// Median flow size in bytes.
    pub median_bytes: f64,
    /// Largest flow size in bytes.
    pub max_bytes: f64,
    /// Share of the flows of at most 100 KB, 0 to 1.
    pub share_of_flows_up_to_100_kb: f64,
    /// Share of the bytes in flows of more than 1 MB, 0 to 1.
    pub share_of_bytes_above_1_mb: f64,
    /// The distribution itself: size in bytes and the share of the flows that have at most this
    /// size, linear in between.
    pub knots: Vec<[f64; 2]>,
}

/// The built-in workloads. The first is the one most papers use.
pub fn workloads() -> &'static [WorkloadInfo] {
    static WORKLOADS: LazyLock<Vec<WorkloadInfo>> =
        LazyLock::new(|| BUILTINS.iter().filter_map(|builtin| describe(builtin).ok()).collect());
    &WORKLOADS
}

fn describe(builtin: &Builtin) -> Result<WorkloadInfo, TrafficError> {
    let sizes = Distribution::from_csv(builtin.name, builtin.csv)?;
    Ok(WorkloadInfo {
        name: builtin.name,
        title: builtin.title,
        source: builtin.source,
        mean_bytes: sizes.mean(),
        median_bytes: sizes.quantile(0.5),
        max_bytes: sizes.max(),
        share_of_flows_up_to_100_kb: sizes.share_of_flows_up_to(1e5),
        share_of_bytes_above_1_mb: sizes.share_of_bytes_above(1e6),
        knots: sizes.knots().collect(),
    })
}

impl Distribution {
    /// The built-in distribution with this name.
    ///
    /// # Errors
    /// [`TrafficError::UnknownWorkload`], with the nearest name, if there is none.
    pub fn builtin(name: &str) -> Result<Self, TrafficError> {
        let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
            return Err(unknown(name));
        };
        Self::from_csv(builtin.name, builtin.csv)
    }
}

fn unknown(found: &str) -> TrafficError {
    /// Below this likeness a suggestion would only puzzle.
    const NEAR: f64 = 0.75;
    let likeness = |builtin: &Builtin| strsim::jaro_winkler(&found.to_lowercase(), builtin.name);
    let nearest = BUILTINS
        .iter()
        .map(|builtin| (likeness(builtin), builtin.name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        // The first of equals, which is the commoner variant.
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    TrafficError::UnknownWorkload {
        found: found.to_owned(),
        nearest: nearest.map(|(_, name)| name.to_owned()),
        known: BUILTINS.map(|builtin| builtin.name).join(", "),
    }
}

#[cfg(test)]
mod tests {
    use weft_units::{Purpose, Stream};

    use super::*;

    const PROVENANCE: &str = include_str!("../../../data/workloads/PROVENANCE.md");

    /// The rows of the provenance table: name, then the other cells.
    fn provenance() -> Vec<Vec<&'static str>> {
        let table = PROVENANCE.split("## Table").nth(1).unwrap().split("### Sources").next().unwrap();
        let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }

    /// Whether `value` rounds to the number in `cell`.
    fn assert_shown(name: &str, value: f64, cell: &str) {
        let places = cell.split_once('.').map_or(0, |(_, fraction)| fraction.len() as u32);
        let shown: f64 = cell.replace(',', "").parse().unwrap();
        let half_unit = 0.5 / f64::from(10u32.pow(places));
        assert!((value - shown).abs() <= half_unit + 1e-6, "{name}: {value} is not {cell}");
    }

    #[test]
    fn every_file_has_the_numbers_of_the_provenance_table() {
        let rows = provenance();
        assert_eq!(rows.len(), workloads().len());
        assert_eq!(workloads().len(), BUILTINS.len());
        for row in rows {
            let name = row[0];
            let info = workloads().iter().find(|info| info.name == name).unwrap();
            assert_shown(name, info.mean_bytes, row[3]);
            assert_shown(name, info.median_bytes, row[6]);
            assert_shown(name, info.max_bytes, row[7]);
            assert_shown(name, info.share_of_bytes_above_1_mb * 100.0, row[8]);
            let sizes = Distribution::builtin(name).unwrap();
            let up_to = [0.0, 1e4, 1e5, 1e6, 1e12].map(|size| sizes.share_of_flows_up_to(size));
            for (bin, cell) in row[5].split('/').map(str::trim).enumerate() {
                let from = if bin == 0 { 0.0 } else { up_to[bin] };
                assert_shown(name, (up_to[bin + 1] - from) * 100.0, cell);
            }
        }
    }

    #[test]
    fn listed_knots_are_those_of_the_file() {
        let web_server = workloads().iter().find(|info| info.name == "web-server").unwrap();
        let file = include_str!("../../../data/workloads/web-server.csv");
        let rows = file.lines().skip(1).map(|row| {
            let (size, share) = row.split_once(',').unwrap();
            [size.parse::<f64>().unwrap(), share.parse().unwrap()]
        });
        assert_eq!(web_server.knots, rows.collect::<Vec<_>>());
    }

    #[test]
    fn samples_converge_to_the_exact_mean() {
        for info in workloads() {
            let sizes = Distribution::builtin(info.name).unwrap();
            let mut stream = Stream::new(11, Purpose::Sizes, 0);
            let (mut sum, mut squares, draws) = (0.0, 0.0, 100_000.0);
            for _ in 0..100_000 {
                let size = sizes.sample(&mut stream) as f64;
                sum += size;
                squares += size * size;
            }
            let mean: f64 = sum / draws;
            let standard_error = ((squares / draws - mean * mean) / draws).sqrt();
            assert!((mean - info.mean_bytes).abs() < 4.0 * standard_error + 0.5, "{}: {mean}", info.name);
        }
    }

    #[test]
    fn a_misspelt_workload_gets_the_nearest_name() {
        let message = |name| Distribution::builtin(name).unwrap_err().to_string();
        for (misspelt, near) in
            [("websearch", "web-search"), ("Data_Mining", "data-mining"), ("hadop", "hadoop")]
        {
            assert!(message(misspelt).contains(&format!("did you mean {near:?}?")), "{}", message(misspelt));
        }
        assert!(!message("quux").contains("did you mean"), "{}", message("quux"));
        assert!(message("quux").contains("ali-storage"));
    }
}
