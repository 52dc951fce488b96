//! The header that a packet carries between leaves.

/// The header's fields (§3.1), in the 32 bits that a scheme has in a packet. The paper's are
/// narrower: `LBTag` 4 bits, CE 3, `FB_LBTag` 4, `FB_Metric` 3.
///
/// | bits | field |
/// |---|---|
/// | 0 to 5 | `LBTag`: the uplink that it left its leaf by |
/// | 6 to 13 | CE: the worst metric of the links crossed |
/// | 14 to 19 | `FB_LBTag`: the uplink of the *receiving* leaf that is reported on |
/// | 20 to 27 | `FB_Metric`: what is reported |
/// | 28 | `LBTag` and CE are valid |
/// | 29 | the report is valid |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header(pub u32);

impl Header {
    /// Uplinks that `LBTag` tells apart.
    pub const TAGS: usize = 64;
    const CE: u32 = 6;
    const FB_TAG: u32 = 14;
    const FB_METRIC: u32 = 20;
    const VALID: u32 = 1 << 28;
    const FB_VALID: u32 = 1 << 29;
    const TAG_MASK: u32 = Self::TAGS as u32 - 1;

    /// A header that has collected nothing yet.
    #[inline]
    pub fn new(tag: u8, report: Option<(u8, u8)>) -> Self {
        let report = report.map_or(0, |(tag, metric)| {
            Self::FB_VALID | u32::from(tag) << Self::FB_TAG | u32::from(metric) << Self::FB_METRIC
        });
        Self(Self::VALID | u32::from(tag) | report)
    }

    /// The link ahead has this metric (§3.3: CE is replaced if the link's metric is larger).
    #[inline]
    pub fn raise(&mut self, metric: u8) {
        let worst = self.congestion().max(metric);
        self.0 = self.0 & !(0xff << Self::CE) | u32::from(worst) << Self::CE;
    }

    #[inline]
    fn congestion(self) -> u8 {
        (self.0 >> Self::CE) as u8
    }

    /// `LBTag` and CE.
    #[inline]
    pub fn path(self) -> Option<(u8, u8)> {
        (self.0 & Self::VALID != 0).then_some(((self.0 & Self::TAG_MASK) as u8, self.congestion()))
    }

    /// Feedback that it carries: an uplink of the leaf that it goes to, and the metric of the path
    /// from there.
    #[inline]
    pub fn feedback(self) -> Option<(u8, u8)> {
        let tag = (self.0 >> Self::FB_TAG & Self::TAG_MASK) as u8;
        (self.0 & Self::FB_VALID != 0).then_some((tag, (self.0 >> Self::FB_METRIC) as u8))
    }
}
