//! TeX commands in titles and abstracts: `$\dfrac{B}{\mathrm{GeV}}$` holds the words "B" and "GeV", not "dfrac".
//!
//! A command of which a reader sees no word (a style, a sign, a layout) is no token. A Greek letter keeps its name
//! (`\alpha` is "alpha", `\varphi` is "phi") and a function its own (`\log`), because readers write them so. The list is
//! closed: a folder in a path (`C:\reports`) and an author's macro (`\GeV`) stay words.

/// In the order of their bytes; no Greek letters and no functions.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "Big", "Bigg", "Biggl", "Biggr", "Bigl", "Bigr", "Im", "Large", "Leftarrow", "Leftrightarrow", "Longrightarrow",
    "Re", "Rightarrow", "aleph", "approx", "ast", "asymp", "bar", "begin", "bf", "bfseries", "big", "bigcap",
    "bigcup", "bigg", "biggl", "biggr", "bigl", "bigoplus", "bigotimes", "bigr", "bigskip", "binom", "bm", "boldmath",
    "boldsymbol", "breve", "bullet", "cal", "cap", "cdot", "cdots", "cfrac", "check", "circ", "cite", "citep",
    "citet", "colon", "cong", "cup", "dagger", "dbinom", "ddagger", "ddot", "ddots", "degree", "dfrac",
    "displaystyle", "dot", "dots", "downarrow", "ell", "em", "emph", "emptyset", "end", "ensuremath", "equiv",
    "exists", "forall", "frac", "ge", "geq", "geqslant", "gg", "gtrsim", "hat", "hbar", "hbox", "hfill", "hline",
    "hookrightarrow", "hspace", "iff", "in", "infty", "int", "it", "itshape", "kern", "langle", "lceil", "ldots",
    "le", "left", "leftarrow", "leftrightarrow", "leq", "leqslant", "lesssim", "lfloor", "limits", "ll",
    "longleftrightarrow", "longmapsto", "longrightarrow", "lvert", "mapsto", "mathbb", "mathbf", "mathbin", "mathcal",
    "mathfrak", "mathit", "mathnormal", "mathop", "mathord", "mathrel", "mathring", "mathrm", "mathscr", "mathsf",
    "mathtt", "mbox", "mid", "middle", "mp", "nabla", "ne", "nearrow", "neg", "neq", "ni", "noindent", "nolimits",
    "nonumber", "notin", "odot", "oint", "ominus", "operatorname", "oplus", "oslash", "otimes", "over", "overbrace",
    "overline", "overset", "parallel", "partial", "perp", "phantom", "pm", "prec", "preceq", "prime", "prod",
    "propto", "qquad", "quad", "rangle", "rceil", "rfloor", "right", "rightarrow", "rightharpoonup",
    "rightleftharpoons", "rm", "rmfamily", "rvert", "scriptscriptstyle", "scriptsize", "scriptstyle", "setminus",
    "sf", "sffamily", "sim", "simeq", "small", "sqrt", "stackrel", "star", "subset", "subseteq", "succ", "succeq",
    "sum", "supset", "supseteq", "tbinom", "text", "textbf", "textcolor", "textemdash", "textendash", "textit",
    "textmd", "textnormal", "textrm", "textsc", "textsf", "textsl", "textstyle", "textsubscript", "textsuperscript",
    "texttt", "textup", "tfrac", "tilde", "times", "to", "top", "triangle", "tt", "ttfamily", "underbrace",
    "underline", "underset", "unicode", "uparrow", "vdots", "vec", "vee", "vphantom", "vspace", "wedge", "widehat",
    "widetilde", "xrightarrow",
];

const GREEK_VARIANTS: &[&str] = &["epsilon", "kappa", "phi", "pi", "rho", "sigma", "theta"];

/// How much of the text after a backslash belongs to a command of which the reader sees no word.
pub fn unseen(text: &str) -> usize {
    let letters = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let name = &text[..letters(text)];
    if let Some(letter) = name.strip_prefix("var") {
        return if GREEK_VARIANTS.contains(&letter) { 3 } else { 0 };
    }
    if COMMANDS.binary_search(&name).is_err() {
        return 0;
    }
    // The name of an environment is part of the command: \begin{equation}.
    if let ("begin" | "end", Some(group)) = (name, text[name.len()..].strip_prefix('{')) {
        let environment = letters(group);
        if group[environment..].trim_start_matches('*').starts_with('}') {
            return name.len() + 1 + environment;
        }
    }
    name.len()
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, unseen};
    use crate::text::tokens::tokens;

    #[test]
    fn the_commands_are_in_order() {
        assert!(COMMANDS.is_sorted_by(|a, b| a < b));
        assert!(COMMANDS.iter().all(|name| unseen(name) == name.len()));
    }

    #[test]
    fn commands_are_no_words() {
        let cases: [(&str, &[&str]); 10] = [
            (r"Measurement of $\dfrac{B(D_s^\mp)}{\mathrm{GeV}}$", &["measurement", "of", "b", "d", "s", "gev"]),
            (r"$\alpha$-decay, $\varphi$ and \Delta", &["alpha", "decay", "phi", "and", "delta"]),
            (r"\frac12 \log x \mathbbR", &["12", "log", "x", "mathbbr"]),
            (r"\begin{equation*}a\end{equation*} \begin{x", &["a", "x"]),
            (r"C:\reports\text.doc \GeV \variable", &["c", "reports", "doc", "gev", "variable"]),
            (r"\\mathrm{x} frac mathrm", &["x", "frac", "mathrm"]),
            (r"\to\infty", &[]),
            ("\\textit\u{e9}t\u{e9} \\", &["\u{e9}t\u{e9}"]),
            (r"\begin", &[]),
            (r"\begin{", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }
}
