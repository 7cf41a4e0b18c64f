package dataset

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A namePattern tells from a file's name what the file holds: "{label}_{speaker}_{take}.wav".
type namePattern struct {
	text   string
	whole  bool // it is of paths from the folder on; else of names
	regexp *regexp.Regexp
	fields []string
}

var patternField = regexp.MustCompile(`\{([^{}]*)\}`)

// parsePattern reads a pattern. A field takes the shortest text that lets the rest match, and no
// slash; two fields have something between them. A field whose name is empty is passed over.
func parsePattern(text string) (namePattern, error) {
	p := namePattern{text: text, whole: strings.Contains(text, "/")}
	var expression strings.Builder
	at := 0
	for _, m := range patternField.FindAllStringSubmatchIndex(text, -1) {
		literal, name := text[at:m[0]], text[m[2]:m[3]]
		if at > 0 && literal == "" {
			return p, fmt.Errorf("pattern %q: nothing stands between {%s} and the field before it", text, name)
		}
		if name != "" && slices.Contains(p.fields, name) {
			return p, fmt.Errorf("pattern %q: {%s} stands twice", text, name)
		}
		expression.WriteString(regexp.QuoteMeta(literal) + `([^/]+?)`)
		p.fields = append(p.fields, name)
		at = m[1]
	}
	if at == 0 {
		return p, fmt.Errorf("pattern %q has no field such as {label}", text)
	}
	if rest := text[at:]; strings.ContainsAny(rest, "{}") {
		return p, fmt.Errorf("pattern %q: a brace has no partner", text)
	}
	expression.WriteString(regexp.QuoteMeta(text[at:]))
	var err error
	p.regexp, err = regexp.Compile("^" + expression.String() + "$")
	return p, err
}

// match returns the text of each field, or nil.
func (p namePattern) match(name string) []string {
	if !p.whole {
		name = path.Base(name)
	}
	if m := p.regexp.FindStringSubmatch(name); m != nil {
		return m[1:]
	}
	return nil
}

// labelByPattern takes label and factors from the names of the files. label is the field that holds
// the label; "": label.
func (l *fileList) labelByPattern(text, label string) error {
	p, err := parsePattern(text)
	if err != nil {
		return err
	}
	labelled := label
	if label == "" {
		labelled = "label"
	}
	at := slices.Index(p.fields, labelled)
	if at < 0 && label != "" {
		return fmt.Errorf("pattern %q has no field {%s}, which is to be the label", text, label)
	}
	rows, err := l.matches(p)
	if err != nil {
		return err
	}
	labels, factors := make([]string, len(rows)), make([][]string, len(rows))
	var names []string
	for c, name := range p.fields {
		if c != at && name != "" {
			names = append(names, name)
		}
		for i, row := range rows {
			switch {
			case c == at:
				labels[i] = row[c]
			case name != "":
				factors[i] = append(factors[i], row[c])
			}
		}
	}
	l.label(labels)
	return l.setFactors(names, factors, func(i int) string { return l.files[i].name })
}

// matches are the texts of the fields of every file.
func (l *fileList) matches(p namePattern) ([][]string, error) {
	rows := make([][]string, len(l.files))
	var others []string
	for i, f := range l.files {
		if rows[i] = p.match(f.name); rows[i] == nil {
			others = append(others, f.name)
		}
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("%d of %d %s do not fit the pattern %q; the first is %s", len(others), len(l.files), l.what, p.text, others[0])
	}
	return rows, nil
}
