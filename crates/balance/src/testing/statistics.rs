//! Counts against what was expected of them.

/// Pearson's chi-square of counts against shares that are proportional to `weights`.
pub fn chi_square(counts: &[u64], weights: &[u32]) -> f64 {
    let (total, weight) = (counts.iter().sum::<u64>() as f64, weights.iter().sum::<u32>());
    let cell = |(&count, &share): (&u64, &u32)| {
        let expected = total * f64::from(share) / f64::from(weight);
        (count as f64 - expected).powi(2) / expected
    };
    counts.iter().zip(weights).map(cell).sum()
}

/// The 0.1 % point of chi-square with 7 degrees of freedom: eight equally likely ports.
pub const CHI_SQUARE_7: f64 = 24.32;
/// The 0.1 % point of chi-square with 3 degrees of freedom.
pub const CHI_SQUARE_3: f64 = 16.27;
