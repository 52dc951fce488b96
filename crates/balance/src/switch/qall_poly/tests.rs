//! Values that make a polynomial, and values that are rejected.

use std::path::PathBuf;

use super::*;

/// A file of fits in the system's own folder for such, gone when the test is over.
struct Fits(PathBuf);

impl Fits {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weft-{}-{name}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn params(&self, degree: u8) -> Params {
        Params { file: Some(self.0.to_string_lossy().into_owned()), degree, ..Params::default() }
    }
}

impl Drop for Fits {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const FITS: &str = r#"{"scheme": "qall-poly", "time_constant": "500us", "polynomials": [
    {"degree": 1, "coefficients": [0.16, 0.26, -0.46], "r2": 0.5},
    {"degree": 2, "coefficients": [0.16, 0.26, -0.46]},
    {"degree": 3, "coefficients": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1e40]}]}"#;

#[test]
fn a_file_of_fits_gives_the_polynomial_of_its_degree_and_the_time_constant() {
    let fits = Fits::new("good", FITS);
    let mut params = fits.params(1);
    assert!(params.validate().is_err(), "a file that was not read is no polynomial");
    params.load().unwrap();
    assert_eq!(params.validate(), Ok(()));
    assert_eq!(params.time_constant, Span::from_us(500));
    let shares = Polynomial::new(&[0.16, 0.26, -0.46].map(|share: f64| share * 100.0));
    assert_eq!(params.polynomial(), shares);
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_its_name() {
    let fits = Fits::new("bad", FITS);
    let other = Fits::new("other", r#"{"scheme": "qall", "time_constant": "1us", "polynomials": []}"#);
    let broken = Fits::new("broken", "degree = 1");
    let missing = Params { file: Some("/there/is/no/such.json".to_owned()), ..Params::default() };
    let table = [
        (fits.params(4), "degree", "has the degrees 1, 2, 3: allowed is one of those"),
        (fits.params(2), "file", "degree 2 has 3 coefficients: degree n needs (n + 1)(n + 2) / 2 of them"),
        (fits.params(3), "file", "each coefficient is from -1e30 to 1e30"),
        (other.params(1), "file", "which is for the scheme \"qall\""),
        (broken.params(1), "file", "which holds no fits"),
        (missing, "file", "which cannot be read"),
    ];
    for (mut params, key, part) in table {
        let error = params.load().unwrap_err();
        assert_eq!(error.key, key);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn coefficients_take_the_place_of_the_published_ones_and_their_number_is_that_of_a_degree() {
    let with = |coefficients: &[f64]| Params { coefficients: coefficients.to_vec(), ..Params::default() };
    assert_eq!(Params::default().polynomial(), Some(Polynomial::published(Form::Poly3, Cubic::Eq13)));
    assert_eq!(with(&[1.0, 2.0, 3.0]).validate(), Ok(()));
    assert_eq!(
        with(&[1.0, 2.0]).validate().unwrap_err().to_string(),
        "coefficients is an array of 2: none, or 3, 6, 10, 15, 21, 28, 36, 45, 55 or 66 values, for degrees 1 to 10"
    );
    let wild = with(&[1.0, f64::NAN, 3.0]).validate().unwrap_err();
    assert_eq!(wild.to_string(), "coefficients is NaN: each coefficient is from -1e30 to 1e30");
    let both = Params { file: Some("x.json".to_owned()), ..with(&[1.0, 2.0, 3.0]) };
    assert_eq!(both.validate().unwrap_err().key, "file");
    let no_pause = Params { update: Span::ZERO, ..Params::default() };
    assert_eq!(no_pause.validate().unwrap_err().to_string(), "update is 0ps: longer than nothing");
}
