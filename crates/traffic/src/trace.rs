//! Flows read from a file, and flows written to one.

use std::fmt::Write;
use std::path::Path;

use weft_packet::{Class, HostId};
use weft_units::{Span, Time, read_regular_bytes, read_regular_file, read_regular_lines};

use crate::carriers::Carriers;
use crate::classes::ClassPicker;
use crate::generate::LATEST_START;
use crate::{FabricShape, Flow, MAX_FLOW_BYTES, MAX_FLOWS, TrafficError};

const START: &str = "start_us";
const SRC: &str = "src";
const DST: &str = "dst";
const SIZE: &str = "size_bytes";
const CLASS: &str = "class";
const TRANSPORT: &str = "transport";

/// The text of the file that `key` names.
pub(crate) fn read_file(key: &'static str, path: &str, base_dir: &Path) -> Result<String, TrafficError> {
    read_by(read_regular_file, key, path, base_dir)
}

/// Bytes of the file that `key` names, which is no text.
pub(crate) fn read_file_bytes(
    key: &'static str,
    path: &str,
    base_dir: &Path,
) -> Result<Vec<u8>, TrafficError> {
    read_by(read_regular_bytes, key, path, base_dir)
}

fn read_by<T>(
    read: impl Fn(&Path) -> std::io::Result<T>,
    key: &'static str,
    path: &str,
    base_dir: &Path,
) -> Result<T, TrafficError> {
    let full = base_dir.join(path);
    read(&full).map_err(|error| unreadable(key, &full, &error))
}

fn unreadable(key: &'static str, path: &Path, error: &std::io::Error) -> TrafficError {
    TrafficError::Unreadable { key, path: path.display().to_string(), reason: error.to_string() }
}

/// The first `most` flows of the file of a trace, which is read no further.
pub(crate) fn read_trace_file(
    file: &str,
    base_dir: &Path,
    most: usize,
    shape: &FabricShape,
    classes: &mut ClassPicker<'_>,
    carriers: &mut Carriers<'_>,
) -> Result<Vec<Flow>, TrafficError> {
    const KEY: &str = "traffic.trace";
    let path = base_dir.join(file);
    let lines = read_by(read_regular_lines, KEY, file, base_dir)?;
    let lines = lines.map(|line| line.map_err(|error| unreadable(KEY, &path, &error)));
    read_trace(file, lines, most, shape, classes, carriers)
}

/// Writes `flows` as a trace that reads back to the same flows, exact to the picosecond. Long-lived
/// flows are left out: a trace has no way to write them. So is which of several transports carries
/// a flow, whose labels are the spec's.
pub fn write_trace(flows: &[Flow]) -> String {
    let mut text = format!("{START},{SRC},{DST},{SIZE},{CLASS}\n");
    for flow in flows.iter().filter(|flow| !flow.background) {
        let ps = flow.start.as_ps();
        let (us, fraction) = (ps / 1_000_000, ps % 1_000_000);
        let (src, dst, size, class) = (flow.src.0, flow.dst.0, flow.size_bytes, flow.class.name());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{us}.{fraction:06},{src},{dst},{size},{class}");
    }
    text
}

/// Where each column stands in a row.
struct Columns {
    /// How many there are, with those that are passed over.
    count: usize,
    start: usize,
    src: usize,
    dst: usize,
    size: usize,
    class: Option<usize>,
    transport: Option<usize>,
}

/// Text of a cell or a line, and what is allowed there.
type Mistake = (String, String);

/// Reads the first `most` flows of a trace. The first line names the columns: `start_us`, `src`,
/// `dst`, `size_bytes` and, if wanted, `class` and `transport`, in any order; others are passed
/// over. Cells are separated by commas, without quotes.
fn read_trace(
    file: &str,
    lines: impl Iterator<Item = Result<String, TrafficError>>,
    most: usize,
    shape: &FabricShape,
    classes: &mut ClassPicker<'_>,
    carriers: &mut Carriers<'_>,
) -> Result<Vec<Flow>, TrafficError> {
    let at = |line: usize, (found, allowed): Mistake| TrafficError::BadLine {
        file: file.to_owned(),
        line,
        found,
        allowed,
    };
    let empty = |found: &str, allowed: &str| TrafficError::BadFile {
        file: file.to_owned(),
        found: found.to_owned(),
        allowed: allowed.to_owned(),
    };
    let mut columns: Option<Columns> = None;
    let mut flows: Vec<Flow> = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let line = line?;
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line.as_str() };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(columns) = &columns else {
            columns = Some(Columns::find(line).map_err(|mistake| at(number, mistake))?);
            continue;
        };
        let mut flow = columns.flow(line, shape).map_err(|mistake| at(number, mistake))?;
        if flow.0.start > LATEST_START {
            let found = format!("{START} {}", flow.0.start.as_us());
            return Err(at(number, (found, "a start within 100 days".to_owned())));
        }
        if let Some(last) = flows.last()
            && flow.0.start < last.start
        {
            let found = format!("{START} {}", flow.0.start.as_us());
            let allowed = format!(
                "{} or later, the start of the row before: rows are sorted by time",
                last.start.as_us()
            );
            return Err(at(number, (found, allowed)));
        }
        // A draw for every row, so that a class in one row does not move those of the others.
        let drawn = classes.pick(flow.0.size_bytes);
        flow.0.class = flow.1.unwrap_or(drawn);
        let label = columns.label(line).map_err(|mistake| at(number, mistake))?;
        flow.0.transport = match label {
            None => carriers.of_class(flow.0.class),
            Some(label) => {
                let found = || format!("{TRANSPORT} {label:?}");
                carriers.number(label).map_err(|allowed| at(number, (found(), allowed)))?
            }
        };
        flows.push(flow.0);
        if flows.len() as u64 > MAX_FLOWS {
            return Err(TrafficError::too_many_flows("traffic.trace", flows.len() as f64));
        }
        if flows.len() == most {
            break;
        }
    }
    match (columns, flows.is_empty()) {
        (None, _) => Err(empty("an empty file", "a header and at least one row")),
        (Some(_), true) => Err(empty("no row below the header", "at least one row")),
        (Some(_), false) => Ok(flows),
    }
}

impl Columns {
    fn find(header: &str) -> Result<Self, Mistake> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let place = |wanted: &str| names.iter().position(|&name| name == wanted);
        for wanted in [START, SRC, DST, SIZE, CLASS, TRANSPORT] {
            if names.iter().filter(|&&name| name == wanted).count() > 1 {
                return Err((format!("the column {wanted} twice"), "each column once".to_owned()));
            }
        }
        // Without these columns a trace is one, too: a misspelt one would be passed over.
        for wanted in [CLASS, TRANSPORT] {
            let is_near = |name: &&&str| strsim::levenshtein(&name.to_ascii_lowercase(), wanted) <= 1;
            if let (None, Some(near)) = (place(wanted), names.iter().find(is_near)) {
                return Err((
                    format!("the column {near:?}"),
                    format!("{wanted}, or a name that is not so near to it"),
                ));
            }
        }
        let must = |wanted: &str| {
            let allowed = format!(
                "a header with the columns {START}, {SRC}, {DST}, {SIZE} and perhaps {CLASS} and {TRANSPORT}"
            );
            place(wanted).ok_or_else(|| (format!("{header:?} without the column {wanted}"), allowed))
        };
        Ok(Self {
            count: names.len(),
            start: must(START)?,
            src: must(SRC)?,
            dst: must(DST)?,
            size: must(SIZE)?,
            class: place(CLASS),
            transport: place(TRANSPORT),
        })
    }

    /// The flow of one row, and its class if it has one.
    fn flow(&self, line: &str, shape: &FabricShape) -> Result<(Flow, Option<Class>), Mistake> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let cell = |name: &str, place: usize| {
            cells
                .get(place)
                .copied()
                .ok_or_else(|| (format!("a row without {name}"), "a cell for every column".to_owned()))
        };
        // One too many may be a size with a comma in it, "1,500": it would be read as another one.
        if cells.len() > self.count {
            return Err((
                format!("a row of {} cells", cells.len()),
                format!("{}, one for each column of the header", self.count),
            ));
        }
        let start = parse_start(cell(START, self.start)?)?;
        let src = parse_host(SRC, cell(SRC, self.src)?, shape)?;
        let dst = parse_host(DST, cell(DST, self.dst)?, shape)?;
        if src == dst {
            return Err((format!("{SRC} and {DST} both {}", src.0), "two different hosts".to_owned()));
        }
        let size_bytes = parse_size(cell(SIZE, self.size)?)?;
        let class =
            self.class.map(|place| cell(CLASS, place)).transpose()?.map(parse_class).transpose()?.flatten();
        Ok((
            Flow { start, size_bytes, src, dst, class: Class::Unknown, background: false, transport: 0 },
            class,
        ))
    }

    /// The label of a row's transport; an empty cell names none.
    fn label<'l>(&self, line: &'l str) -> Result<Option<&'l str>, Mistake> {
        let Some(place) = self.transport else { return Ok(None) };
        let cell = line.split(',').nth(place).map(str::trim);
        let cell =
            cell.ok_or_else(|| (format!("a row without {TRANSPORT}"), "a cell for every column".to_owned()))?;
        Ok(Some(cell).filter(|cell| !cell.is_empty()))
    }
}

fn parse_start(text: &str) -> Result<Time, Mistake> {
    let span: Result<Span, _> = format!("{text}us").parse();
    let allowed = "microseconds from 0, with at most six decimal places (a picosecond)";
    span.map(|span| Time::ZERO.saturating_add(span))
        .map_err(|_| (format!("{START} {text:?}"), allowed.to_owned()))
}

fn parse_host(column: &str, text: &str, shape: &FabricShape) -> Result<HostId, Mistake> {
    let host = text.parse::<u16>().ok().filter(|&host| usize::from(host) < shape.hosts());
    host.map(HostId)
        .ok_or_else(|| (format!("{column} {text:?}"), format!("a host, 0 to {}", shape.hosts() - 1)))
}

fn parse_size(text: &str) -> Result<u64, Mistake> {
    let size = text.parse::<u64>().ok().filter(|size| (1..=MAX_FLOW_BYTES).contains(size));
    size.ok_or_else(|| {
        (format!("{SIZE} {text:?}"), format!("a whole number of bytes, 1 to {MAX_FLOW_BYTES}"))
    })
}

/// An empty cell says nothing: the class follows from the spec.
fn parse_class(text: &str) -> Result<Option<Class>, Mistake> {
    if text.is_empty() {
        return Ok(None);
    }
    let class = Class::ALL.into_iter().find(|class| class.name() == text);
    let allowed = || format!("{}, or nothing", Class::ALL.map(Class::name).join(", "));
    class.map(Some).ok_or_else(|| (format!("{CLASS} {text:?}"), allowed()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_units::Bytes;

    use super::*;
    use crate::fixtures::leaf_spine;
    use crate::{ClassSpec, TrafficSpec};

    const HEADER: &str = "start_us,src,dst,size_bytes";

    fn read_with(text: &str, spec: &ClassSpec) -> Result<Vec<Flow>, TrafficError> {
        let carriers = &mut Carriers::new(&TrafficSpec::default(), &[])?;
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        read_trace("t.csv", lines, usize::MAX, &leaf_spine(), &mut ClassPicker::new(spec, 1), carriers)
    }

    fn read(text: &str) -> Result<Vec<Flow>, TrafficError> {
        read_with(text, &ClassSpec::default())
    }

    #[test]
    fn columns_are_found_by_name_and_others_passed_over() {
        let text =
            "fct_us,dst,src,size_bytes,start_us,class\n9,3,2,100,0.5,\n9,4,1,7,86.651160,best-effort\r\n";
        let spec = ClassSpec { short_below: Some(Bytes::new(1_000)), ..ClassSpec::default() };
        let flow = |ps, src, dst, size_bytes, class| Flow {
            start: Time::from_ps(ps),
            size_bytes,
            src: HostId(src),
            dst: HostId(dst),
            class,
            background: false,
            transport: 0,
        };
        let expected = [flow(500_000, 2, 3, 100, Class::Short), flow(86_651_160, 1, 4, 7, Class::BestEffort)];
        assert_eq!(read_with(text, &spec).unwrap(), expected);
    }

    #[test]
    fn each_mistake_names_its_line_and_what_is_allowed() {
        let cases = [
            ("1,0,16,9", "t.csv:2: found dst \"16\": allowed is a host, 0 to 15"),
            ("1,-1,1,9", "t.csv:2: found src \"-1\": allowed is a host, 0 to 15"),
            ("1,2,2,9", "t.csv:2: found src and dst both 2: allowed is two different hosts"),
            ("1,0,1,0", "t.csv:2: found size_bytes \"0\": allowed is a whole number of bytes, 1 to"),
            ("1,0,1,1000000000001", "t.csv:2: found size_bytes \"1000000000001\""),
            ("1,0,1,1.5", "t.csv:2: found size_bytes \"1.5\""),
            (
                "0.0000001,0,1,9",
                "t.csv:2: found start_us \"0.0000001\": allowed is microseconds from 0, with at most six",
            ),
            ("-1,0,1,9", "t.csv:2: found start_us \"-1\""),
            ("1e3,0,1,9", "t.csv:2: found start_us \"1e3\""),
            (",0,1,9", "t.csv:2: found start_us \"\""),
            ("1,0,1", "t.csv:2: found a row without size_bytes"),
            (
                "1,0,1,1,500",
                "t.csv:2: found a row of 5 cells: allowed is 4, one for each column of the header",
            ),
            ("5,0,1,9\n\n4.5,0,1,9", "t.csv:4: found start_us 4.5: allowed is 5 or later"),
            ("", "t.csv: found no row below the header"),
        ];
        for (rows, expected) in cases {
            let found = read(&format!("{HEADER}\n{rows}")).unwrap_err().to_string();
            assert!(found.contains(expected), "{rows:?}: {found}");
        }
        let class = read("start_us,src,dst,size_bytes,class\n1,0,1,9,fast").unwrap_err().to_string();
        assert!(
            class.contains("found class \"fast\": allowed is unknown, short, long, best-effort, tc4, tc5, tc6, tc7, or nothing"),
            "{class}"
        );
        assert!(
            read("start_us,src,size_bytes\n").unwrap_err().to_string().contains(
                "without the column dst: allowed is a header with the columns start_us, src, dst, size_bytes and perhaps class \
                 and transport"
            )
        );
        for column in [START, SRC, DST, SIZE, CLASS, TRANSPORT] {
            let twice = read(&format!("{HEADER},class,transport,{column}\n1,0,1,9,short,,9"))
                .unwrap_err()
                .to_string();
            assert!(twice.contains(&format!("t.csv:1: found the column {column} twice")), "{twice}");
        }
        assert!(read("").unwrap_err().to_string().contains("t.csv: found an empty file"));
        let late = read(&format!("{HEADER}\n8640000000001,0,1,9")).unwrap_err().to_string();
        assert!(
            late.contains("t.csv:2: found start_us 8640000000001: allowed is a start within 100 days"),
            "{late}"
        );
        for (column, name) in [("clas", CLASS), ("Class", CLASS), ("transports", TRANSPORT)] {
            let near = read(&format!("{HEADER},{column}\n1,0,1,9,short")).unwrap_err().to_string();
            assert!(
                near.contains(&format!("t.csv:1: found the column {column:?}: allowed is {name}")),
                "{near}"
            );
        }
    }

    #[test]
    fn a_trace_is_read_no_further_than_the_flows_that_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let rows = "1,0,1,9\n2,1,0,9\n3,0,99,9\nnot a row \u{1}\n";
        let bytes =
            [format!("\u{feff}# a comment\r\n{HEADER}\r\n\r\n{rows}").as_bytes(), &[0xff, 0xfe]].concat();
        std::fs::write(folder.path().join("t.csv"), bytes).unwrap();
        let of = |flows: &str| {
            let spec = crate::fixtures::spec(&format!("trace = 't.csv'\n{flows}"));
            spec.generate(&leaf_spine(), 1, folder.path()).map(|traffic| traffic.flows.len())
        };
        assert_eq!((of("flows = 1"), of("flows = 2")), (Ok(1), Ok(2)));
        let third = of("flows = 3").unwrap_err().to_string();
        assert!(third.contains("t.csv:6: found dst \"99\""), "{third}");
        assert_eq!(of("").unwrap_err().to_string(), third);
    }

    fn flows() -> impl Strategy<Value = Vec<Flow>> {
        let one = (0..=LATEST_START.as_ps(), 1..=MAX_FLOW_BYTES, 0u16..16, 1u16..16, 0u8..8);
        prop::collection::vec(one, 1..40).prop_map(|rows| {
            let flow = |(ps, size_bytes, src, step, class)| Flow {
                start: Time::from_ps(ps),
                size_bytes,
                src: HostId(src),
                dst: HostId((src + step) % 16),
                class: Class::from_bits(class),
                background: false,
                transport: 0,
            };
            let mut flows: Vec<Flow> = rows.into_iter().map(flow).collect();
            flows.sort_by_key(|flow| flow.start);
            flows
        })
    }

    proptest! {
        #[test]
        fn a_trace_written_and_read_is_the_same_to_the_picosecond(flows in flows()) {
            prop_assert_eq!(read(&write_trace(&flows)).unwrap(), flows);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>(), rows in "[0-9.,e\\-\n#a-z]{0,80}") {
            let _ = read(&text);
            let _ = read(&format!("{HEADER},class\n{rows}"));
        }
    }
}
