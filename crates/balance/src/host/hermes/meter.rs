//! Sending rates: discounting rate estimators, as in CONGA.

use weft_units::{Rate, Span, Time};

/// How all estimators of a host decay: each `t_dre` they lose the share `alpha`.
#[derive(Debug, Clone, Copy)]
pub struct Decay {
    period_ps: u64,
    kept: f64,
    /// Time constant, `t_dre` / `alpha`, in seconds.
    tau_s: f64,
}

impl Decay {
    pub fn new(t_dre: Span, alpha: f64) -> Self {
        Self { period_ps: t_dre.as_ps(), kept: 1.0 - alpha, tau_s: t_dre.as_s() / alpha }
    }

    /// The number of the period at a time.
    #[inline]
    pub const fn period(&self, now: Time) -> u64 {
        now.as_ps() / self.period_ps
    }

    /// Bytes in an estimator when this share of a rate is sent.
    pub fn bytes_at(&self, rate: Rate, share: f64) -> f64 {
        rate.as_bps() as f64 * share * self.tau_s / 8.0
    }
}

/// One estimator: it holds about rate times time constant, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    bytes: f64,
    period: u64,
}

impl Meter {
    /// A packet was sent.
    #[inline]
    pub fn add(&mut self, decay: &Decay, period: u64, bytes: u16) {
        self.bytes = self.read(decay, period) + f64::from(bytes);
        self.period = period;
    }

    /// Bytes in the estimator. Less than one is nothing, so that idle paths are equal.
    #[inline]
    pub fn read(&self, decay: &Decay, period: u64) -> f64 {
        if period == self.period {
            return self.bytes;
        }
        let left = self.bytes * power(decay.kept, period - self.period);
        if left < 1.0 { 0.0 } else { left }
    }
}

/// `base` to the power of `exponent`, the same on every machine: multiplications alone.
pub fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut square, mut product) = (base, 1.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_repeated_products() {
        assert_eq!(power(0.5, 0).to_bits(), 1.0f64.to_bits());
        assert_eq!(power(0.5, 10).to_bits(), (1.0f64 / 1_024.0).to_bits());
        assert!((power(0.99, 137) - 0.99f64.powi(137)).abs() < 1e-12);
        assert_eq!(power(0.8, u64::MAX).to_bits(), 0);
    }

    #[test]
    fn a_steady_rate_fills_it_to_rate_times_time_constant() {
        // 1,500 bytes each 1.2us are 10 Gbit/s; tau = 30us / 0.2 = 150us, so 187,500 bytes, less by
        // up to a decay of 20 %.
        let decay = Decay::new(Span::from_us(30), 0.2);
        let mut meter = Meter::default();
        let mut now = Time::ZERO;
        for _ in 0..5_000 {
            meter.add(&decay, decay.period(now), 1_500);
            now += Span::from_ns(1_200);
        }
        let full = decay.bytes_at(Rate::from_gbps(10), 1.0);
        assert!((full - 187_500.0).abs() < 1e-6);
        let held = meter.read(&decay, decay.period(now));
        assert!(held > 0.79 * full && held <= 1.01 * full, "{held} of {full} bytes");
        // Three periods later 0.8^3 of it, and nothing in the end.
        let later = decay.period(now) + 3;
        assert!((meter.read(&decay, later) - held * 0.512).abs() < 1e-6);
        assert_eq!(meter.read(&decay, later + 100).to_bits(), 0);
    }
}
