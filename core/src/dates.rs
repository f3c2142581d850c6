//! A record's date as an index sorts and filters by it: a number, yyyymmdd.

use crate::text::tokens::is_space;

/// The date of the earliest year as yyyymmdd, with 00 for what it leaves open; else a year in the words of a cataloguer; 0
/// where there is none.
///
/// Of several dates the earliest is the work's own: DSpace states first when it came into the repository. But 0001-01-01
/// is what programs write where they know none.
pub fn date_number<'a>(values: impl Iterator<Item = &'a str> + Clone) -> u32 {
    let found: Vec<u32> = values.clone().map(parse).filter(|&number| number > 0).collect();
    let credible = |number: &&u32| **number >= 1000_0000 || found.iter().all(|&number| number < 1000_0000);
    let earliest = found.iter().filter(credible).map(|number| number / 10_000).min();
    match earliest {
        None => values.filter_map(year).min().unwrap_or(0) * 10_000, // "c. 1890", "[1887?]"
        Some(year) => found.iter().filter(credible).find(|number| *number / 10_000 == year).copied().unwrap_or(0),
    }
}

/// A date that begins as in ISO 8601, with hyphens or without; 0 for others.
fn parse(value: &str) -> u32 {
    let text = value.trim_start_matches(is_space).as_bytes();
    let number = |at: usize, size: usize| -> Option<u32> {
        let digits = text.get(at..at + size).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(digits.iter().fold(0, |sum, digit| 10 * sum + u32::from(digit - b'0')))
    };
    let two = |at: usize| {
        let begin = at + usize::from(text.get(at) == Some(&b'-'));
        number(begin, 2).map(|number| (number, begin + 2))
    };
    let ends = |at: usize| !text.get(at).is_some_and(u8::is_ascii_digit);
    let Some(year) = number(0, 4) else { return 0 };
    let in_year = |month: u32, day: u32| if month <= 12 && day <= 31 { month * 100 + day } else { 0 };
    if let Some((month, after)) = two(4) {
        if let Some((day, end)) = two(after)
            && ends(end)
        {
            return year * 10_000 + in_year(month, day);
        }
        if ends(after) {
            return year * 10_000 + in_year(month, 0);
        }
    }
    if ends(4) { year * 10_000 } else { 0 }
}

/// The first year from 1000 to 2099 that the words of a cataloguer name: "c1984, printed 1986".
pub fn year(value: &str) -> Option<u32> {
    let value = crate::text::cut(value, 1000);
    value.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() == 4).find_map(|run| {
        let year = run.parse().ok()?;
        (1000..2100).contains(&year).then_some(year)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_numbers() {
        let cases: [(&[&str], u32); 10] = [
            (&["2001-05-07"], 20010507),
            (&["2001-05"], 20010500),
            (&["20010507T10:00"], 20010507),
            (&["2001-13-01"], 20010000),
            (&["c. 1890", "[1887?]"], 18870000),
            (&["2010-01-01", "1999"], 19990000),
            (&["0001-01-01", "2005-02"], 20050200),
            (&["20011"], 0),
            (&["unknown"], 0),
            (&[], 0),
        ];
        for (values, expected) in cases {
            assert_eq!(date_number(values.iter().copied()), expected, "{values:?}");
        }
    }
}
