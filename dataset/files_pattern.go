package dataset

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A namePattern extracts the label and factors from file names, for instance
// "{label}_{speaker}_{take}.wav".
type namePattern struct {
	text        string
	matchesPath bool // whether it matches paths relative to the folder; otherwise file names
	regexp      *regexp.Regexp
	fields      []string
}

var patternField = regexp.MustCompile(`\{([^{}]*)\}`)

// parsePattern parses a pattern. A field matches the shortest text that lets the rest match,
// without slashes. There must be text between two fields. The text of {} is not used.
func parsePattern(text string) (namePattern, error) {
	p := namePattern{text: text, matchesPath: strings.Contains(text, "/")}
	var expression strings.Builder
	at := 0
	for _, m := range patternField.FindAllStringSubmatchIndex(text, -1) {
		literal, name := text[at:m[0]], text[m[2]:m[3]]
		if at > 0 && literal == "" {
			return p, fmt.Errorf("pattern %q: put a literal between {%s} and the field before it", text, name)
		}
		if name != "" && slices.Contains(p.fields, name) {
			return p, fmt.Errorf("pattern %q: field {%s} occurs twice", text, name)
		}
		expression.WriteString(regexp.QuoteMeta(literal) + `([^/]+?)`)
		p.fields = append(p.fields, name)
		at = m[1]
	}
	if at == 0 {
		return p, fmt.Errorf("pattern %q has no field such as {label}", text)
	}
	if rest := text[at:]; strings.ContainsAny(rest, "{}") {
		return p, fmt.Errorf("pattern %q: unmatched brace", text)
	}
	expression.WriteString(regexp.QuoteMeta(text[at:]))
	var err error
	p.regexp, err = regexp.Compile("^" + expression.String() + "$")
	return p, err
}

// match returns the text of each field in a name, or nil if the name does not match.
func (p namePattern) match(name string) []string {
	if !p.matchesPath {
		name = path.Base(name)
	}
	if m := p.regexp.FindStringSubmatch(name); m != nil {
		return m[1:]
	}
	return nil
}

// labelByPattern sets labels and factors of the list's files from their names. label is the name of
// the field that holds the label. If it is "", the field {label} does, if there is one.
func (l *fileList) labelByPattern(text, label string) error {
	p, err := parsePattern(text)
	if err != nil {
		return err
	}
	labelName := label
	if label == "" {
		labelName = "label"
	}
	labelField := slices.Index(p.fields, labelName)
	if labelField < 0 && label != "" {
		return fmt.Errorf("pattern %q has no field {%s} for the label", text, label)
	}
	rows, err := l.matchAll(p)
	if err != nil {
		return err
	}
	labels, factors := make([]string, len(rows)), make([][]string, len(rows))
	var names []string
	for c, name := range p.fields {
		if c != labelField && name != "" {
			names = append(names, name)
		}
		for i, row := range rows {
			switch {
			case c == labelField:
				labels[i] = row[c]
			case name != "":
				factors[i] = append(factors[i], row[c])
			}
		}
	}
	if err := l.label(labels); err != nil {
		return err
	}
	return l.setFactors(names, factors, func(i int) string { return l.files[i].name })
}

// matchAll returns the texts of the fields for every file.
func (l *fileList) matchAll(p namePattern) ([][]string, error) {
	rows := make([][]string, len(l.files))
	var unmatched []string
	for i, f := range l.files {
		if rows[i] = p.match(f.name); rows[i] == nil {
			unmatched = append(unmatched, f.name)
		}
	}
	if len(unmatched) > 0 {
		return nil, fmt.Errorf("%d of %d %s do not match the pattern %q; the first is %s", len(unmatched), len(l.files), l.what, p.text, unmatched[0])
	}
	return rows, nil
}
